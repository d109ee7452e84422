//! Dequantized constant weights of convolutions, as integers and per-filter scales.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType};
use pliant_tensor::{Tensor, TensorError};

use super::right::Column;
use super::{CAST, DEQUANTIZE, MULTIPLY};
use crate::offload::dequantized::{Finder, MOST_ZERO, RESHAPES, integers, numbers};

/// Integer weights with per-filter scales.
pub(super) struct Filters {
    /// The integers minus their zero points, of int32.
    pub integers: Tensor,
    /// The float32 scales: one number, or one for each filter.
    pub scales: Vec<f32>,
}

/// The integers, zero points and scales of dequantized weights. Zero points and scales hold one number, or one for each filter.
struct Parts {
    integers: Tensor,
    zeros: Vec<Vec<f64>>,
    scales: Vec<f64>,
}

impl Filters {
    /// The weights that a value is, with the filters along dim `place`. `None` if it is not dequantized from a constant, a scale or
    /// zero point varies within a filter, a zero point is not whole, a filter spans more than 8 bits, or sums of products with
    /// integers of magnitude `most` may overflow 32 bits.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn of(
        finder: &Finder<'_>,
        e: Expr,
        place: usize,
        most: i64,
    ) -> Result<Option<Filters>, TensorError> {
        let Some(parts) = parts(finder, e, place) else { return Ok(None) };
        let shape = parts.integers.shape();
        let count = usize::try_from(shape[place]).unwrap_or(0);
        let apart = shape[place + 1..].iter().product::<i64>().max(1) as usize;
        let of = |all: &[f64], filter: usize| if all.len() == 1 { all[0] } else { all[filter] };
        let zero = |filter: usize| parts.zeros.iter().map(|all| of(all, filter)).sum::<f64>();
        let zeros: Vec<f64> = (0..count).map(zero).collect();
        let scales: Vec<f32> = parts.scales.iter().map(|&s| s as f32).collect();
        let sound = zeros.iter().all(|z| z.fract() == 0.0 && z.abs() <= MOST_ZERO)
            && scales.iter().all(|s| s.is_finite());
        let Some(data) = integers(&parts.integers)?.filter(|_| sound) else { return Ok(None) };
        let mut columns = vec![Column::default(); count];
        let mut rest = Vec::with_capacity(data.len());
        for (at, x) in data.into_iter().enumerate() {
            let filter = at / apart % count;
            let x = i64::from(x) - zeros[filter] as i64;
            columns[filter].add(x);
            // Filters that do not fit are rejected below.
            rest.push(x as i32);
        }
        if !columns.iter().all(|c| c.fits(most)) {
            return Ok(None);
        }
        Ok(Some(Filters { integers: Tensor::from_slice(shape, &rest)?, scales }))
    }
}

/// The parts that weights are dequantized from.
fn parts(finder: &Finder<'_>, e: Expr, place: usize) -> Option<Parts> {
    let rank = finder.sizes(e)?.len();
    let along = |e: Expr| each(finder, e, (rank, place));
    let parts = match finder.call(e, DEQUANTIZE) {
        Some((args, attrs)) => {
            let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
            let axis = if axis < 0 { axis + rank as i64 } else { axis };
            // Vectors lie along the axis.
            let along = |e: Expr| match finder.sizes(e)?.as_slice() {
                &[size] if size != 1 => {
                    (axis == place as i64).then(|| each(finder, e, (1, 0))).flatten()
                }
                _ => each(finder, e, (rank, place)),
            };
            Parts {
                integers: finder.constant(args[0])?.clone(),
                zeros: vec![along(args[2])?],
                scales: along(args[1])?,
            }
        }
        None => {
            let (args, _) = finder.call(e, MULTIPLY)?;
            let sides = [(args[0], args[1]), (args[1], args[0])];
            sides.into_iter().find_map(|(coded, scale)| {
                let (integers, zeros) = finder.centred(coded, along)?;
                Some(Parts { integers, zeros, scales: along(scale)? })
            })?
        }
    };
    let sizes = finder.sizes(e)?;
    let same = parts.integers.shape().iter().zip(&sizes).all(|(&a, &b)| a as usize == b);
    let fits = |all: &Vec<f64>| all.len() == 1 || all.len() == sizes[place];
    let all = parts.zeros.iter().chain([&parts.scales]).all(fits);
    (same && parts.integers.ndim() == rank && place < rank && all).then_some(parts)
}

/// The elements of a constant that broadcasts to a tensor of this rank and varies along dim `place` only.
fn each(finder: &Finder<'_>, e: Expr, (rank, place): (usize, usize)) -> Option<Vec<f64>> {
    let sizes = finder.sizes(e)?;
    let missing = rank.checked_sub(sizes.len())?;
    if !sizes.iter().enumerate().all(|(k, &d)| d == 1 || k + missing == place) {
        return None;
    }
    let mut inner = e;
    // Look through a few reshapes and casts that keep the values.
    for _ in 0..8 {
        if let Some((args, _)) = RESHAPES.iter().find_map(|&op| finder.call(inner, op)) {
            inner = args[0];
        } else if let Some((args, _)) = finder.call(inner, CAST) {
            let from = finder.func.ty(args[0]).dtype();
            let to = finder.func.ty(inner).dtype();
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
    numbers(finder.constant(inner)?)
}
