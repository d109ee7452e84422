//! Recognizes constant weights of convolutions that are dequantized from integers, and returns them as integers with per-filter
//! scales.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType};
use pliant_tensor::{Tensor, TensorError};

use crate::offload::dequantized::{
    MAX_ZERO_POINT, OperandMatcher, RESHAPES, to_f64_numbers, to_i32_integers,
};
use crate::offload::int8_epilogue::CAST;
use crate::offload::rules::integer_matmul::dequantized_right_operand::ColumnRange;
use crate::offload::rules::integer_matmul::{DEQUANTIZE, MULTIPLY};

/// Integer weights with per-filter scales.
pub(super) struct IntegerFilters {
    /// The integers minus their zero points, as int32.
    pub integers: Tensor,
    /// The float32 scales: one number, or one for each filter.
    pub scales: Vec<f32>,
}

/// The integers, zero points and scales from which weights are dequantized. Zero points and scales are one number, or one number
/// for each filter.
struct DequantizedFilters {
    integers: Tensor,
    zeros: Vec<Vec<f64>>,
    scales: Vec<f64>,
}

impl IntegerFilters {
    /// Matches dequantized constant weights whose filters lie along dim `filter_dim`. `None` if they are not dequantized from a
    /// constant, if a scale or zero point varies within a filter, if a zero point is not integral, if a filter spans more than 8
    /// bits, or if sums of products with input integers of magnitude `max_input` may overflow 32 bits.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn of(
        matcher: &OperandMatcher<'_>,
        e: Expr,
        filter_dim: usize,
        max_input: i64,
    ) -> Result<Option<IntegerFilters>, TensorError> {
        let Some(dequantized_filters) = dequantized_filters(matcher, e, filter_dim) else {
            return Ok(None);
        };
        let shape = dequantized_filters.integers.shape();
        let count = usize::try_from(shape[filter_dim]).unwrap_or(0);
        let filter_stride = shape[filter_dim + 1..].iter().product::<i64>().max(1) as usize;
        let of = |all: &[f64], filter: usize| if all.len() == 1 { all[0] } else { all[filter] };
        let zero = |filter: usize| {
            dequantized_filters.zeros.iter().map(|all| of(all, filter)).sum::<f64>()
        };
        let zeros: Vec<f64> = (0..count).map(zero).collect();
        let scales: Vec<f32> = dequantized_filters.scales.iter().map(|&s| s as f32).collect();
        let is_valid = zeros.iter().all(|z| z.fract() == 0.0 && z.abs() <= MAX_ZERO_POINT)
            && scales.iter().all(|s| s.is_finite());
        let Some(data) = to_i32_integers(&dequantized_filters.integers)?.filter(|_| is_valid)
        else {
            return Ok(None);
        };
        let mut columns = vec![ColumnRange::default(); count];
        let mut centred_integers = Vec::with_capacity(data.len());
        for (at, x) in data.into_iter().enumerate() {
            let filter = at / filter_stride % count;
            let x = i64::from(x) - zeros[filter] as i64;
            columns[filter].add(x);
            // Filters that do not fit are rejected below.
            centred_integers.push(x as i32);
        }
        if !columns.iter().all(|c| c.fits_8_bits(max_input)) {
            return Ok(None);
        }
        Ok(Some(IntegerFilters { integers: Tensor::from_slice(shape, &centred_integers)?, scales }))
    }
}

/// Recognizes dequantized weights. Returns the constants from which they are dequantized.
fn dequantized_filters(
    matcher: &OperandMatcher<'_>,
    e: Expr,
    filter_dim: usize,
) -> Option<DequantizedFilters> {
    let rank = matcher.constant_sizes(e)?.len();
    let along = |e: Expr| per_filter_numbers(matcher, e, (rank, filter_dim));
    let dequantized_filters = match matcher.call(e, DEQUANTIZE) {
        Some((args, attrs)) => {
            let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
            let axis = if axis < 0 { axis + rank as i64 } else { axis };
            // Vectors lie along the axis.
            let along = |e: Expr| match matcher.constant_sizes(e)?.as_slice() {
                &[size] if size != 1 => (axis == filter_dim as i64)
                    .then(|| per_filter_numbers(matcher, e, (1, 0)))
                    .flatten(),
                _ => per_filter_numbers(matcher, e, (rank, filter_dim)),
            };
            DequantizedFilters {
                integers: matcher.constant(args[0])?.clone(),
                zeros: vec![along(args[2])?],
                scales: along(args[1])?,
            }
        }
        None => {
            let (args, _) = matcher.call(e, MULTIPLY)?;
            let sides = [(args[0], args[1]), (args[1], args[0])];
            sides.into_iter().find_map(|(quantized, scale)| {
                let (integers, zeros) = matcher.integers_and_zero_points(quantized, along)?;
                Some(DequantizedFilters { integers, zeros, scales: along(scale)? })
            })?
        }
    };
    let sizes = matcher.constant_sizes(e)?;
    let same_shape =
        dequantized_filters.integers.shape().iter().zip(&sizes).all(|(&a, &b)| a as usize == b);
    let fits = |all: &Vec<f64>| all.len() == 1 || all.len() == sizes[filter_dim];
    let all = dequantized_filters.zeros.iter().chain([&dequantized_filters.scales]).all(fits);
    (same_shape && dequantized_filters.integers.ndim() == rank && filter_dim < rank && all)
        .then_some(dequantized_filters)
}

/// Returns the elements of a constant that broadcasts to a tensor of rank `rank` and varies only along dim `filter_dim`; `None`
/// for other constants.
fn per_filter_numbers(
    matcher: &OperandMatcher<'_>,
    e: Expr,
    (rank, filter_dim): (usize, usize),
) -> Option<Vec<f64>> {
    let sizes = matcher.constant_sizes(e)?;
    let missing = rank.checked_sub(sizes.len())?;
    if !sizes.iter().enumerate().all(|(k, &d)| d == 1 || k + missing == filter_dim) {
        return None;
    }
    let mut inner = e;
    // A few reshapes and casts that keep the values are looked through.
    for _ in 0..8 {
        if let Some((args, _)) = RESHAPES.iter().find_map(|&op| matcher.call(inner, op)) {
            inner = args[0];
        } else if let Some((args, _)) = matcher.call(inner, CAST) {
            let from = matcher.func.ty(args[0]).dtype();
            let to = matcher.func.ty(inner).dtype();
            let exact = matches!(from, Some(DType::Int8 | DType::UInt8))
                && matches!(to, Some(DType::Int32 | DType::Float32));
            if !exact {
                return None;
            }
            inner = args[0];
        } else {
            break;
        }
    }
    to_f64_numbers(matcher.constant(inner)?)
}
