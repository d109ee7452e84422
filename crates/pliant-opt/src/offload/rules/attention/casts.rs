//! Casts between float32 and floats of 16 bits, through which attention is seen: the kernel keeps float32 from the first sum to the
//! last.

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::{bf16_of, f16_of};

use super::matcher::Attention;
use super::{CAST, Uses};
use crate::common::products::operands_of;

/// Whether an operand is of float32 or of 16 bits.
pub(super) fn is_float(func: &Function, e: Expr) -> bool {
    matches!(func.ty(e).dtype(), Some(DType::Float32 | DType::Float16 | DType::BFloat16))
}

/// What a value is a cast of.
fn inside(cx: &RewriteCx<'_>, e: Expr) -> Option<Expr> {
    let inner = operands_of(cx, e, CAST)?[0];
    (is_float(cx.func, e) && is_float(cx.func, inner)).then_some(inner)
}

/// The same numbers in fewer bits; the value itself where it is not made of such.
pub(super) fn narrow(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    let float32 = |e: Expr| cx.func.ty(e).dtype() == Some(DType::Float32);
    inside(cx, e).filter(|&inner| float32(e) && !float32(inner)).unwrap_or(e)
}

/// The type of 16 bits that values are rounded to; `None` for no rounding.
pub(super) type Rounding = Option<DType>;

/// A number as a type of 16 bits keeps it: what leaves its range is infinite.
pub(super) fn rounded(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Some(DType::Float16) => f16_of(x).to_f64(),
        Some(DType::BFloat16) => bf16_of(x).to_f64(),
        _ => x,
    }
}

/// What a value was before casts, with what these round it to in `rounding`: one type of 16 bits, so that casts to another are
/// left.
pub(super) fn unrounded(cx: &RewriteCx<'_>, e: Expr, rounding: &mut Rounding) -> Expr {
    let mut e = e;
    while let Some(inner) = inside(cx, e) {
        let to = cx.func.ty(e).dtype().filter(|&to| to != DType::Float32);
        if to.is_some() && rounding.is_some() && *rounding != to {
            break;
        }
        *rounding = rounding.or(to);
        e = inner;
    }
    e
}

/// What a value was before casts, those that rounded it included.
pub(super) fn uncast(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    // Each is bound before its reader.
    std::iter::successors(Some(e), |&e| inside(cx, e)).last().unwrap_or(e)
}

/// The same, where nobody else reads any of them.
pub(super) fn uncast_alone(cx: &RewriteCx<'_>, uses: &Uses, e: Expr) -> Option<Expr> {
    uncast_read(cx, uses, e, 1)
}

/// The same, where the value itself is read so many times at most.
pub(super) fn uncast_read(cx: &RewriteCx<'_>, uses: &Uses, e: Expr, times: usize) -> Option<Expr> {
    let mut inner = std::iter::successors(inside(cx, e), |&e| inside(cx, e));
    let alone = uses.at_most(cx.func, e, times) && inner.all(|e| uses.at_most(cx.func, e, 1));
    alone.then(|| uncast(cx, e))
}

/// An attention whose operands are of float32, as the kernel takes them.
pub(super) fn widened(cx: &mut RewriteCx<'_>, mut a: Attention) -> Result<Attention, PassError> {
    // Queries, keys and values may be parts of one tensor.
    let mut made: Vec<(Expr, Expr)> = Vec::new();
    if let (Some(bias), Some(rounding)) = (&mut a.bias, a.bias_rounding) {
        *bias = cast(cx, *bias, rounding)?;
    }
    for e in a.sources.iter_mut().map(|s| &mut s.tensor).chain(&mut a.bias) {
        let known = made.iter().find(|(of, _)| of == e).map(|&(_, wide)| wide);
        let wide = match known {
            Some(wide) => wide,
            None => cast(cx, *e, DType::Float32)?,
        };
        made.push((*e, wide));
        *e = wide;
    }
    Ok(a)
}

/// A cast that is bound; the value itself where it is of that type.
fn cast(cx: &mut RewriteCx<'_>, e: Expr, dtype: DType) -> Result<Expr, PassError> {
    if cx.func.ty(e).dtype() == Some(dtype) {
        return Ok(e);
    }
    let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
    let value = cx.call(CAST, &[e], attrs)?;
    Ok(cx.emit(value))
}
