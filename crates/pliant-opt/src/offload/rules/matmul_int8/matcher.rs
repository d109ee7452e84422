//! Products of integers with constant right operands.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{DType, OpRegistry};
use pliant_pass::Writers;
use pliant_pass::pattern::Defs;
use pliant_pass::rewrite::reachable_seqs;
use pliant_tensor::Tensor;
use rustc_hash::FxHashSet;

use crate::common::products::{MATMUL, operands};
use crate::offload::dequantized::fits_rows;
use crate::offload::epilogue::Readers;
use crate::offload::integer_sums::{CAST, Finish, SUBTRACT, Sums, finish_of};

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
    /// What follows it.
    pub finish: Option<Finish>,
}

/// The products of a function that the kernel may take.
pub(super) fn all(func: &Function, ops: &dyn OpRegistry, writers: &Writers) -> Vec<Product> {
    let mut out = Vec::new();
    let mut uses: Option<(Readers, Defs)> = None;
    // A sum of two products is the end of one of them, and a term of it the other.
    let mut taken: FxHashSet<Var> = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            let block = func.block(block);
            for binding in &block.bindings {
                let Some(weights) = weights(func, *binding) else { continue };
                let uses = uses
                    .get_or_insert_with(|| (Readers::of(func), Defs::of(func, ops, Some(writers))));
                let Some(mut product) = product(func, &uses.1, *binding, weights) else { continue };
                if block.dataflow {
                    let (result, columns) = (product.result, product.weights.shape()[1]);
                    let sums = Sums { result, columns, rows: Some(product.x), whole: false };
                    product.finish = finish_of(func, uses, &sums, &taken);
                    taken.extend(product.finish.iter().map(|f| f.result));
                }
                out.push(product);
            }
        }
    }
    out
}

fn is_byte(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Int8 | DType::UInt8))
}

/// The constant matrix that a product of int32 has on its right.
fn weights(func: &Function, binding: Binding) -> Option<&Tensor> {
    let args = operands(func, binding.value, MATMUL)?.0;
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
    let args = operands(func, binding.value, MATMUL)?.0;
    let value = |e: Expr| defs.value_beside(func, e, binding.var);
    let (mut x, mut zero) = (args[0], None);
    if let Some((&[left, right], _)) = operands(func, value(x), SUBTRACT)
        && func.ty(right).dtype() == Some(DType::Int32)
        && func.ty(left).dims() == func.ty(x).dims()
    {
        (x, zero) = (left, Some(right));
    }
    if func.ty(x).dtype() == Some(DType::Int32) {
        x = operands(func, value(x), CAST)?.0[0];
    }
    let dims = func.ty(x).dims()?;
    let fits = is_byte(func.ty(x).dtype())
        && func.syms.as_int(*dims.last()?) == Some(weights.shape()[0])
        && (zero.is_none_or(|z| fits_rows(func, z, x)));
    let (weights, result) = (weights.clone(), binding.var);
    fits.then_some(Product { x, zero, weights, result, finish: None })
}
