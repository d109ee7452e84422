//! Packs the integers, scales and zero points of dequantized constants for the kernels of weight-only quantized matmuls.

use pliant_tensor::{TensorError, pack_bytes, pack_nibbles};

use super::weight_only_kernel_call::PackedWeights;
use crate::offload::dequantized::{DequantizedWeights, MAX_ZERO_POINT, Matrix};

/// Minimum number of rows of a quantized matrix that must share a scale. With fewer rows, the scales would take as much memory as
/// the packed integers save.
const MIN_GROUP_SIZE: usize = 8;

/// Maximum relative error by which rounding to float32 may change a zero point. Within this limit, the 16 most significant bits
/// of the zero point are exact.
const MAX_RELATIVE_ERROR: f64 = 1.0 / (1 << 16) as f64;

/// Packs a dequantized constant. `None` if the kernels do not support it.
///
/// # Errors
/// If memory cannot be allocated.
pub(super) fn pack(weights: &DequantizedWeights) -> Result<Option<PackedWeights>, TensorError> {
    let matrix = Matrix::of(weights)?;
    let (k, n) = (matrix.k, matrix.n);
    let all_within = |all: &[f64], limit: f64| all.iter().all(|x| x.abs() <= limit);
    let is_valid = all_within(&weights.scale.numbers, f64::from(f32::MAX))
        && weights.zeros.iter().all(|z| all_within(&z.numbers, MAX_ZERO_POINT));
    let Some((low, high)) = matrix.integers.range() else { return Ok(None) };
    let span = i64::from(high) - i64::from(low);
    if !is_valid || span > 255 || f64::from(low).abs() > MAX_ZERO_POINT {
        return Ok(None);
    }
    let group = matrix.group_size();
    if group < k && (group < MIN_GROUP_SIZE || !group.is_multiple_of(2)) {
        return Ok(None);
    }
    // The offset that is subtracted from the stored integers and from the zero points.
    let offset = match (span, low, high) {
        (..=15, ..) => low,
        (_, -128.., ..=127) => 0,
        _ => low + 128,
    };
    let panels = if span <= 15 {
        pack_nibbles(k, n, |p, j| (matrix.integer(p, j) - offset) as u8)?
    } else {
        pack_bytes(k, n, |p, j| (matrix.integer(p, j) - offset) as i8)?
    };
    let zero = |p: usize, j: usize| matrix.zero_point(p, j) - f64::from(offset);
    let groups = 0..k.div_ceil(group);
    // Subtracting the offset may round away the fraction of a small zero point. Where the integer is 0, the zero point is the only
    // summand, so its error would be visible.
    let is_precise = |p: usize, j: usize| {
        let rounding_error = f64::from(zero(p, j) as f32) - zero(p, j);
        rounding_error.abs() <= matrix.zero_point(p, j).abs() * MAX_RELATIVE_ERROR
    };
    if !groups.clone().all(|g| (0..n).all(|j| is_precise(g * group, j))) {
        return Ok(None);
    }
    let has_no_zero_points = groups.clone().all(|g| (0..n).all(|j| zero(g * group, j) == 0.0));
    let scales = matrix.pack_per_group(group, |p, j| matrix.scale(p, j))?;
    let zeros = if has_no_zero_points { None } else { Some(matrix.pack_per_group(group, zero)?) };
    Ok(Some(PackedWeights { panels, groups: Some((group as i64, scales, zeros)) }))
}
