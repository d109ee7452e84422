//! Removes limits that a conversion from float to integer implies.
//!
//! Conversions to integers saturate, and convert NaN to 0. So the limits in `int8(min(max(x, -128), 127))`, which quantization
//! writes, change nothing. They cost more than the conversion, because minima and maxima return NaN for NaN operands.

use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc};

use super::loop_nest_stages::{Body, Stage};
use crate::overflow_analysis::Interval;
use crate::statement_traversal::ExprRewriter;

/// Simplifies the conversions from float to integer in the value that a stage stores: removes minima and maxima with
/// constants that the conversions imply, because they saturate.
pub(super) fn without_implied_limits(f: &mut PrimFunc, s: &Stage) -> Stage {
    let mut s = s.clone();
    if let Body::Store { value, .. } = &mut s.body {
        *value = ExprRewriter::new(&mut |f, e| simplify_cast(f, e)).expr(f, *value);
    }
    s
}

/// Removes from the operand of a conversion from float to integer the minima and maxima with constants that the
/// conversion implies, because it saturates. Returns the new conversion; `None` if there are no such limits.
fn simplify_cast(f: &mut PrimFunc, e: Expr) -> Option<Expr> {
    let ExprData::Cast(ty, limited) = *f.expr(e) else { return None };
    if !f.expr_ty(limited).dtype.is_float() || !ty.dtype.is_integer() {
        return None;
    }
    let range = Interval::of_type(ty.dtype);
    let mut value = limited;
    while let Some(operand) = without_limit(f, value, range) {
        value = operand;
    }
    (value != limited).then(|| f.cast(value, ty))
}

/// Returns the operand of a minimum with a constant that is at least `range.hi`, or of a maximum with a constant that
/// is at most `range.lo`; `None` for other expressions.
fn without_limit(f: &PrimFunc, e: Expr, range: Interval) -> Option<Expr> {
    let ExprData::Binary(op @ (BinOp::Min | BinOp::Max), a, b) = *f.expr(e) else { return None };
    let is_implied = |limit: Expr| {
        let ExprData::Float(bits, _) = *f.expr(limit) else { return false };
        let limit = f64::from_bits(bits);
        if op == BinOp::Min { limit >= range.hi as f64 } else { limit <= range.lo as f64 }
    };
    if is_implied(b) {
        return Some(a);
    }
    is_implied(a).then_some(b)
}
