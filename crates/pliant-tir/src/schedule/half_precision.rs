//! Rewrites arithmetic on 16-bit floats to float32 arithmetic whose results are rounded.
//!
//! Backends compute 16-bit floats in the same way, so results do not change. The rewritten form has explicit casts. Therefore
//! selections, minima and maxima are rounded only once, after the operation, and library functions (`pliant_vec_*`) can do the
//! last rounding and the widening of loads ([`super::vector_math_tiles`]).

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::{DType, round_to_bf16, round_to_f16};

use super::loop_nest_stages::{Body, Stage};
use crate::statement_traversal::ExprRewriter;

/// Whether a data type is a 16-bit float.
pub(super) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

/// Rewrites the arithmetic of a stage on 16-bit floats to float32. A reduction keeps its operator, so that it is still recognized
/// as a reduction.
pub(super) fn widen_arithmetic(f: &mut PrimFunc, s: &Stage) -> Stage {
    let mut s = s.clone();
    let reduction = s.reduction(f);
    let Body::Store { value, .. } = &mut s.body else { return s };
    match (reduction, f.expr(*value).clone()) {
        (Some(r), ExprData::Binary(op, a, b)) => {
            let new = widen_expr(f, r.value);
            let old = if r.value == b { a } else { b };
            if new != r.value {
                *value = f.binary(op, old, new);
            }
        }
        (Some(_), _) => {}
        (None, _) => *value = widen_expr(f, *value),
    }
    s
}

/// Rewrites an expression and its nested expressions to float32 arithmetic.
fn widen_expr(f: &mut PrimFunc, value: Expr) -> Expr {
    ExprRewriter::new(&mut |f, e| widen_node(f, e)).expr(f, value)
}

/// Rewrites a single operator whose operands have already been rewritten; `None` if it needs no rewriting.
fn widen_node(f: &mut PrimFunc, e: Expr) -> Option<Expr> {
    let ty = f.expr_ty(e);
    let half = is_half(ty.dtype);
    match f.expr(e).clone() {
        ExprData::Binary(op, a, b) if is_half(f.expr_ty(a).dtype) => {
            // Rounding is monotonic, so the maximum of two rounded values is the rounded maximum.
            let selects = matches!(op, BinOp::Min | BinOp::Max);
            let operand = if selects { unrounded } else { to_float32 };
            let (a, b) = (operand(f, a), operand(f, b));
            let wide = f.binary(op, a, b);
            Some(if op.is_predicate() { wide } else { rounded(f, wide, ty) })
        }
        // The selection of two rounded values is the rounded selection.
        ExprData::Select(c, a, b) if half && (is_cast(f, a) || is_cast(f, b)) => {
            let (a, b) = (unrounded(f, a), unrounded(f, b));
            let wide = f.add_expr(ExprData::Select(c, a, b));
            Some(rounded(f, wide, ty))
        }
        ExprData::Call(intrin, args, _) if half && computes_float(intrin) => {
            let args: Vec<Expr> = args.iter().map(|&a| to_float32(f, a)).collect();
            let wide = f.add_expr(ExprData::Call(intrin, args.into(), wide_type(ty)));
            Some(rounded(f, wide, ty))
        }
        _ => None,
    }
}

/// Whether an intrinsic computes a float of the same type as its operands.
fn computes_float(intrin: Intrin) -> bool {
    use Intrin::*;
    !matches!(
        intrin,
        IfThenElse
            | Likely
            | Explain
            | CallExtern
            | CallPacked
            | CallKernel
            | AddressOf
            | Reinterpret
            | VectorSum
            | VectorMax
            | VectorMin
    )
}

fn wide_type(ty: Ty) -> Ty {
    Ty::scalar(DType::Float32).with_lanes(ty.lanes)
}

fn rounded(f: &mut PrimFunc, wide: Expr, ty: Ty) -> Expr {
    f.add_expr(ExprData::Cast(ty, wide))
}

/// Whether a value is a cast whose operand is float32.
fn is_cast(f: &PrimFunc, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::Cast(_, a) if f.expr_ty(*a).dtype == DType::Float32)
}

/// Widens a 16-bit float to float32.
fn to_float32(f: &mut PrimFunc, e: Expr) -> Expr {
    let ty = wide_type(f.expr_ty(e));
    match *f.expr(e) {
        ExprData::Float(bits, Ty { dtype: DType::Float16, .. }) => {
            f.const_of(round_to_f16(f64::from_bits(bits)).to_f64(), DType::Float32)
        }
        ExprData::Float(bits, _) => {
            f.const_of(round_to_bf16(f64::from_bits(bits)).to_f64(), DType::Float32)
        }
        _ => f.add_expr(ExprData::Cast(ty, e)),
    }
}

/// Returns a 16-bit float as float32. If it is the cast of a float32 value, returns this value without the rounding; otherwise
/// widens it.
fn unrounded(f: &mut PrimFunc, e: Expr) -> Expr {
    match *f.expr(e) {
        ExprData::Cast(_, wide) if is_cast(f, e) => wide,
        _ => to_float32(f, e),
    }
}
