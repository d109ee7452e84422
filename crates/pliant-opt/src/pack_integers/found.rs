//! Products of integers with constant right operands.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{DType, Op, OpRegistry};
use pliant_pass::Writers;
use pliant_pass::pattern::Defs;
use pliant_pass::rewrite::reachable_seqs;
use pliant_tensor::Tensor;

use crate::products::MATMUL;

const CAST: Op = Op("relax.astype");
const SUBTRACT: Op = Op("relax.subtract");

/// A product of integers.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The left operand, of int8 or uint8.
    pub x: Expr,
    /// Its zero point of int32: one number, or one for each row.
    pub zero: Option<Expr>,
    /// The right operand.
    pub weights: Tensor,
    /// The variable that the product is.
    pub result: Var,
}

/// The products of a function that the kernel may take.
pub(super) fn all(func: &Function, ops: &dyn OpRegistry, writers: &Writers) -> Vec<Product> {
    let mut out = Vec::new();
    let mut defs = None;
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                let Some(weights) = weights(func, *binding) else { continue };
                let defs = defs.get_or_insert_with(|| Defs::of(func, ops, Some(writers)));
                out.extend(product(func, defs, *binding, weights));
            }
        }
    }
    out
}

/// The operands of a call of an operator.
fn operands(func: &Function, e: Expr, op: Op) -> Option<&[Expr]> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(callee), args, .. } if *callee == op => {
            Some(func.list(*args))
        }
        _ => None,
    }
}

fn is_byte(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Int8 | DType::UInt8))
}

/// The constant matrix that a product of int32 has on its right.
fn weights(func: &Function, binding: Binding) -> Option<&Tensor> {
    let args = operands(func, binding.value, MATMUL)?;
    let ExprData::Constant(c) = func.expr(args[1]) else { return None };
    let weights = func.const_tensor(*c);
    let fits = func.ty(binding.value).dtype() == Some(DType::Int32)
        && weights.shape().len() == 2
        && weights.shape()[1] > 0
        && (weights.dtype() == DType::Int32 || is_byte(Some(weights.dtype())));
    fits.then_some(weights)
}

/// The product that a binding is. What its left operand was made of is read where the product stands, so nothing may have been
/// written in between.
fn product(func: &Function, defs: &Defs, binding: Binding, weights: &Tensor) -> Option<Product> {
    let args = operands(func, binding.value, MATMUL)?;
    let value = |e: Expr| defs.value_beside(func, e, binding.var);
    let (mut x, mut zero) = (args[0], None);
    if let Some(&[left, right]) = operands(func, value(x), SUBTRACT)
        && func.ty(right).dtype() == Some(DType::Int32)
        && func.ty(left).dims() == func.ty(x).dims()
    {
        (x, zero) = (left, Some(right));
    }
    if func.ty(x).dtype() == Some(DType::Int32) {
        x = operands(func, value(x), CAST)?[0];
    }
    let dims = func.ty(x).dims()?;
    let fits = is_byte(func.ty(x).dtype())
        && func.syms.as_int(*dims.last()?) == Some(weights.shape()[0])
        && (zero.is_none_or(|z| fits_rows(func, z, x)));
    fits.then(|| Product { x, zero, weights: weights.clone(), result: binding.var })
}

/// Whether a zero point is one number, or one for each row.
fn fits_rows(func: &Function, zero: Expr, x: Expr) -> bool {
    let (Some(own), Some(of)) = (func.ty(zero).dims(), func.ty(x).dims()) else { return false };
    is_one(func, zero)
        || own.len() == of.len() && own[..own.len() - 1] == of[..of.len() - 1] && {
            func.syms.as_int(own[own.len() - 1]) == Some(1)
        }
}

/// Whether a tensor has one element.
pub(super) fn is_one(func: &Function, e: Expr) -> bool {
    let dims = func.ty(e).dims();
    dims.is_some_and(|dims| dims.iter().all(|&d| func.syms.as_int(d) == Some(1)))
}
