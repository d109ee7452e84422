//! Packs weights for the kernel.

use pliant_tensor::{Tensor, TensorError};

use super::matcher::Convolution;
use crate::offload::dequantized::to_i32_integers;
use crate::offload::rules::matmul_int8::weights::{self as matrix, Weights};

impl Convolution {
    /// Whether each channel has its own filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// The number of products of a sum.
    fn products(&self) -> i64 {
        self.kernel.iter().product::<i64>() * (self.channels / self.groups)
    }

    /// The offset of the weight of a filter, a tap and a channel of a group.
    fn place(&self, filter: i64, tap: i64, channel: i64) -> usize {
        let shape = self.weights.shape();
        let stride = |k: usize| shape[self.places[k] + 1..].iter().product::<i64>();
        let mut rest = tap;
        let mut place = filter * stride(0) + channel * stride(1);
        for (k, &size) in self.kernel.iter().enumerate().rev() {
            place += rest % size * stride(2 + k);
            rest /= size;
        }
        place as usize
    }

    /// The offsets of a filter's weights: taps in row-major order, then channels.
    fn filter(&self, filter: i64) -> impl Iterator<Item = usize> + '_ {
        let own = self.channels / self.groups;
        (0..self.products()).map(move |p| self.place(filter, p / own, p % own))
    }
}

/// Whether each filter fits 8 bits up to an offset of its own.
pub(super) fn fit(c: &Convolution) -> bool {
    let Ok(Some(data)) = to_i32_integers(&c.weights) else { return false };
    (0..c.filters).all(|filter| {
        let all = || c.filter(filter).map(|at| i64::from(data[at]));
        let (low, high) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        high - low <= 255
    })
}

/// Packs the matrix `[taps * channels of a group, filters of a group]` of each group into quads, one group after the other. If each
/// channel has its own filter, the weights are packed as bytes of `[taps, channels]`, with zeros up to a multiple of four taps.
/// `None` if a filter does not fit 8 bits.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn packed(c: &Convolution) -> Result<Option<Weights>, TensorError> {
    let Some(data) = to_i32_integers(&c.weights)? else { return Ok(None) };
    let each = c.filters / c.groups;
    let (mut quads, mut sums, mut zeros) = (Vec::new(), Vec::new(), Vec::new());
    let mut shape = [0; 4];
    for group in 0..c.groups {
        let filters: Vec<Vec<usize>> =
            (0..each).map(|f| c.filter(group * each + f).collect()).collect();
        let rows = 0..c.products() as usize;
        let all = rows.flat_map(|p| filters.iter().map(move |f| f[p]));
        let own: Vec<i32> = all.map(|at| data[at]).collect();
        let own = Tensor::from_slice(&[c.products(), each], &own)?;
        let Some(own) = matrix::packed(&own)? else { return Ok(None) };
        shape.copy_from_slice(own.quads.shape());
        quads.extend(own.quads.to_vec::<i8>()?);
        sums.extend(own.sums.to_vec::<i32>()?);
        match own.zeros {
            Some(own) => zeros.extend(own.to_vec::<i32>()?),
            None => zeros.extend(std::iter::repeat_n(0, each as usize)),
        }
    }
    if c.is_depthwise() {
        // Keep the first column of each panel: a group has one filter.
        let (rows, width) = (shape[1] * 4, shape[2]);
        let place = |tap: i64, group: i64| ((group * shape[1] + tap / 4) * width * 4) + tap % 4;
        let all = (0..rows).flat_map(|tap| (0..c.groups).map(move |group| place(tap, group)));
        quads = all.map(|at| quads[at as usize]).collect();
        shape = [1, rows, c.groups, 1];
    }
    shape[0] *= if c.is_depthwise() { 1 } else { c.groups };
    let plain = zeros.iter().all(|&z| z == 0);
    let columns = [c.filters];
    Ok(Some(Weights {
        quads: Tensor::from_slice(&shape, &quads)?,
        sums: Tensor::from_slice(&columns, &sums)?,
        zeros: if plain { None } else { Some(Tensor::from_slice(&columns, &zeros)?) },
    }))
}
