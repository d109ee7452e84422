//! Finds the dims of allocated tensors, and the function that first writes to each of them, for error messages about sizes.

use std::sync::Arc;

use pliant_ir::Sym;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::operators_after_lowering::VM_ALLOC_TENSOR;

/// Maps each allocated tensor to the name of the first function that is called with it as an argument, which writes to it.
pub(super) fn first_writers(func: &Function, bindings: &[Binding]) -> FxHashMap<Var, Arc<str>> {
    let mut writers = FxHashMap::default();
    let mut unwritten = FxHashSet::default();
    for b in bindings {
        if allocated_dims(func, b.value).next().is_some() {
            unwritten.insert(b.var);
            continue;
        }
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(b.value) else {
            continue;
        };
        let ExprData::Global(name) = func.expr(*callee) else { continue };
        for &arg in func.list(*args) {
            if let ExprData::Var(v) = func.expr(arg)
                && unwritten.remove(v)
            {
                writers.insert(*v, func.str(*name).clone());
            }
        }
    }
    writers
}

/// Returns the dims of the tensor that a value allocates; empty for values that are not allocations.
pub(super) fn allocated_dims(func: &Function, value: Expr) -> impl Iterator<Item = Sym> + '_ {
    let dims = match func.expr(value) {
        ExprData::Call { callee: Callee::Op(VM_ALLOC_TENSOR), args, .. } => {
            func.list(*args).get(2).and_then(|&shape| match func.expr(shape) {
                ExprData::Shape(dims) => Some(&dims[..]),
                _ => None,
            })
        }
        _ => None,
    };
    dims.unwrap_or_default().iter().copied()
}
