//! Follows casts between float32 and 16-bit floats in attention to the original values, because the kernel computes in float32
//! throughout.

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::{round_to_bf16, round_to_f16};

use super::attention_matcher::Attention;
use super::{CAST, ReadCounts};
use crate::common::matmul_and_conv_operands::defining_operands;

/// Whether an operand is float32 or a 16-bit float.
pub(super) fn is_float(func: &Function, e: Expr) -> bool {
    matches!(func.ty(e).dtype(), Some(DType::Float32 | DType::Float16 | DType::BFloat16))
}

/// Returns the operand of a cast from a float type to a float type; `None` for other values.
fn float_cast_operand(cx: &RewriteCx<'_>, e: Expr) -> Option<Expr> {
    let inner = defining_operands(cx, e, CAST)?[0];
    (is_float(cx.func, e) && is_float(cx.func, inner)).then_some(inner)
}

/// If a float32 value is a cast of a 16-bit value, returns the 16-bit value; otherwise returns the value itself.
pub(super) fn before_widening(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    let float32 = |e: Expr| cx.func.ty(e).dtype() == Some(DType::Float32);
    float_cast_operand(cx, e).filter(|&inner| float32(e) && !float32(inner)).unwrap_or(e)
}

/// The 16-bit type to which values are rounded; `None` if they are not rounded.
pub(super) type Rounding = Option<DType>;

/// Rounds a number to a 16-bit type. Numbers outside of its range become infinite.
pub(super) fn round_to(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Some(DType::Float16) => round_to_f16(x).to_f64(),
        Some(DType::BFloat16) => round_to_bf16(x).to_f64(),
        _ => x,
    }
}

/// Follows casts to the original value, and stores the 16-bit type to which they round in `rounding`. Stops at a cast that rounds
/// to a second 16-bit type.
pub(super) fn look_through_rounding(cx: &RewriteCx<'_>, e: Expr, rounding: &mut Rounding) -> Expr {
    let mut e = e;
    while let Some(inner) = float_cast_operand(cx, e) {
        let to = cx.func.ty(e).dtype().filter(|&to| to != DType::Float32);
        if to.is_some() && rounding.is_some() && *rounding != to {
            break;
        }
        *rounding = rounding.or(to);
        e = inner;
    }
    e
}

/// Follows casts between float types to the original value, including casts that round.
pub(super) fn uncast(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    // The chain is finite, because each value is bound before its readers.
    std::iter::successors(Some(e), |&e| float_cast_operand(cx, e)).last().unwrap_or(e)
}

/// Follows casts between float types to the original value, including casts that round. `None` if `e`, the original value or a
/// value in between is read more than once.
pub(super) fn uncast_single_reader(
    cx: &RewriteCx<'_>,
    read_counts: &ReadCounts,
    e: Expr,
) -> Option<Expr> {
    uncast_with_readers(cx, read_counts, e, 1)
}

/// Follows casts between float types to the original value, including casts that round. `None` if `e` is read more than `times`
/// times, or if the original value or a value in between is read more than once.
pub(super) fn uncast_with_readers(
    cx: &RewriteCx<'_>,
    read_counts: &ReadCounts,
    e: Expr,
    times: usize,
) -> Option<Expr> {
    let mut inner =
        std::iter::successors(float_cast_operand(cx, e), |&e| float_cast_operand(cx, e));
    let has_no_other_readers = read_counts.read_at_most(cx.func, e, times)
        && inner.all(|e| read_counts.read_at_most(cx.func, e, 1));
    has_no_other_readers.then(|| uncast(cx, e))
}

/// Casts the operands of an attention to float32, which the kernel requires.
pub(super) fn widen_operands(
    cx: &mut RewriteCx<'_>,
    mut a: Attention,
) -> Result<Attention, PassError> {
    // Queries, keys and values may be parts of one tensor, which is cast only once.
    let mut casts: Vec<(Expr, Expr)> = Vec::new();
    if let (Some(bias), Some(rounding)) = (&mut a.bias, a.bias_rounding) {
        *bias = cast(cx, *bias, rounding)?;
    }
    for e in a.sources.iter_mut().map(|s| &mut s.tensor).chain(&mut a.bias) {
        let existing = casts.iter().find(|(of, _)| of == e).map(|&(_, wide)| wide);
        let wide = match existing {
            Some(wide) => wide,
            None => cast(cx, *e, DType::Float32)?,
        };
        casts.push((*e, wide));
        *e = wide;
    }
    Ok(a)
}

/// Binds a cast of a value. Returns the value itself if it already has this type.
fn cast(cx: &mut RewriteCx<'_>, e: Expr, dtype: DType) -> Result<Expr, PassError> {
    if cx.func.ty(e).dtype() == Some(dtype) {
        return Ok(e);
    }
    let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
    let value = cx.call(CAST, &[e], attrs)?;
    Ok(cx.emit(value))
}
