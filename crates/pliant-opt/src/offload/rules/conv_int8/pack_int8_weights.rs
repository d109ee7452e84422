//! Packs constant weights for the kernel `conv_int8` at compile time.

use pliant_tensor::{Tensor, TensorError};

use super::conv_int8_matcher::Convolution;
use crate::offload::dequantized::to_i32_integers;
use crate::offload::rules::matmul_int8::pack_constant_operand::{self as matrix, PackedWeights};

impl Convolution {
    /// Whether this is a depthwise convolution, in which each channel has its own filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// The number of products that are summed for each result.
    fn products_per_sum(&self) -> i64 {
        self.filter_size.iter().product::<i64>() * (self.channels / self.groups)
    }

    /// Returns the offset in elements of a weight, given by its filter, its tap and its channel within the group.
    fn weight_offset(&self, filter: i64, tap: i64, channel: i64) -> usize {
        let shape = self.weights.shape();
        let stride = |k: usize| shape[self.weight_axes[k] + 1..].iter().product::<i64>();
        let mut rest = tap;
        let mut offset = filter * stride(0) + channel * stride(1);
        for (k, &size) in self.filter_size.iter().enumerate().rev() {
            offset += rest % size * stride(2 + k);
            rest /= size;
        }
        offset as usize
    }

    /// Iterates over the offsets in elements of a filter's weights: over taps in row-major order, and over channels for each tap.
    fn filter_offsets(&self, filter: i64) -> impl Iterator<Item = usize> + '_ {
        let group = self.channels / self.groups;
        (0..self.products_per_sum()).map(move |p| self.weight_offset(filter, p / group, p % group))
    }
}

/// Whether the weights of each filter differ by at most 255, so that they fit 8 bits after an offset per filter is subtracted.
pub(super) fn filters_fit_8_bits(c: &Convolution) -> bool {
    let Ok(Some(data)) = to_i32_integers(&c.weights) else { return false };
    (0..c.filters).all(|filter| {
        let all = || c.filter_offsets(filter).map(|at| i64::from(data[at]));
        let (low, high) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        high - low <= 255
    })
}

/// Packs the weights of each group, one group after the other. The matrix `[taps * channels of a group, filters of a group]` is
/// packed into quads, which are four adjacent values of the inner dim. Depthwise weights are packed as bytes `[taps, channels]`,
/// with zeros up to a multiple of four taps. `None` if a filter does not fit 8 bits.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn pack_weights(c: &Convolution) -> Result<Option<PackedWeights>, TensorError> {
    let Some(data) = to_i32_integers(&c.weights)? else { return Ok(None) };
    let filters_per_group = c.filters / c.groups;
    let (mut quads, mut sums, mut zeros) = (Vec::new(), Vec::new(), Vec::new());
    let mut shape = [0; 4];
    for group in 0..c.groups {
        let filters: Vec<Vec<usize>> = (0..filters_per_group)
            .map(|f| c.filter_offsets(group * filters_per_group + f).collect())
            .collect();
        let rows = 0..c.products_per_sum() as usize;
        let all = rows.flat_map(|p| filters.iter().map(move |f| f[p]));
        let matrix: Vec<i32> = all.map(|at| data[at]).collect();
        let matrix = Tensor::from_slice(&[c.products_per_sum(), filters_per_group], &matrix)?;
        let Some(packed) = matrix::pack_matrix(&matrix)? else { return Ok(None) };
        shape.copy_from_slice(packed.quads.shape());
        quads.extend(packed.quads.to_vec::<i8>()?);
        sums.extend(packed.sums.to_vec::<i32>()?);
        match packed.zeros {
            Some(packed_zeros) => zeros.extend(packed_zeros.to_vec::<i32>()?),
            None => zeros.extend(std::iter::repeat_n(0, filters_per_group as usize)),
        }
    }
    if c.is_depthwise() {
        // Only the first column of each panel is kept, because a group has one filter.
        let (rows, width) = (shape[1] * 4, shape[2]);
        let offset = |tap: i64, group: i64| ((group * shape[1] + tap / 4) * width * 4) + tap % 4;
        let all = (0..rows).flat_map(|tap| (0..c.groups).map(move |group| offset(tap, group)));
        quads = all.map(|at| quads[at as usize]).collect();
        shape = [1, rows, c.groups, 1];
    }
    shape[0] *= if c.is_depthwise() { 1 } else { c.groups };
    let has_no_zero_points = zeros.iter().all(|&z| z == 0);
    let columns = [c.filters];
    Ok(Some(PackedWeights {
        quads: Tensor::from_slice(&shape, &quads)?,
        sums: Tensor::from_slice(&columns, &sums)?,
        zeros: if has_no_zero_points { None } else { Some(Tensor::from_slice(&columns, &zeros)?) },
    }))
}
