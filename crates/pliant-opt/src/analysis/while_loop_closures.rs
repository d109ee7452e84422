//! Finds the closures that loops call in lowered functions. In such a function, the condition or the body of an `R.while_loop` is
//! a `vm.builtin.make_closure` of a known function.

use std::sync::Arc;

use pliant_ir::op::WHILE_LOOP;
use pliant_ir::relax::visit::{Uses, bindings};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// A closure that exactly one loop calls and that nothing else reads.
pub struct LoopClosure {
    /// The name of the function that the closure calls.
    pub name: Arc<str>,
    /// The captured values, which the loop passes to the function after the loop state.
    pub captured: Vec<Expr>,
}

/// Returns the closures that only loops call, by the variable to which each closure is bound.
pub fn loop_closures(func: &Function) -> FxHashMap<Var, LoopClosure> {
    let mut out: FxHashMap<Var, LoopClosure> = FxHashMap::default();
    let all_bindings = bindings(func);
    let mut called = FxHashSet::default();
    for operands in all_bindings.iter().filter_map(|(_, b)| loop_operands(func, b.value)) {
        for &f in operands.iter().take(2) {
            if let ExprData::Var(v) = func.expr(f) {
                called.insert(*v);
            }
        }
    }
    if called.is_empty() {
        return out;
    }
    let uses = Uses::of(func);
    for (_, binding) in all_bindings.iter().filter(|(_, b)| called.contains(&b.var)) {
        if uses.count(binding.var) == 1
            && let Some(closure) = created_closure(func, binding)
        {
            out.insert(binding.var, closure);
        }
    }
    out
}

/// Returns the closure that a binding creates, if the function that the closure calls is known; `None` otherwise.
fn created_closure(func: &Function, binding: &Binding) -> Option<LoopClosure> {
    let (target, captured) = closure_operands(func, binding.value)?;
    match func.expr(target) {
        ExprData::Global(name) => {
            Some(LoopClosure { name: func.str(*name).clone(), captured: captured.to_vec() })
        }
        _ => None,
    }
}

/// Returns the operands of a call of `vm.builtin.make_closure`: (function, captured values). `None` for other values.
pub fn closure_operands(func: &Function, value: Expr) -> Option<(Expr, &[Expr])> {
    let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(value) else {
        return None;
    };
    let ExprData::Extern(name) = func.expr(*callee) else { return None };
    let &[target, ref captured @ ..] = func.list(*args) else { return None };
    (&**func.str(*name) == "vm.builtin.make_closure").then_some((target, captured))
}

/// Returns the operands of a `R.while_loop`: condition, body and initial state. `None` for other values.
pub fn loop_operands(func: &Function, value: Expr) -> Option<&[Expr]> {
    match func.expr(value) {
        ExprData::Call { callee: Callee::Op(WHILE_LOOP), args, .. } => Some(func.list(*args)),
        _ => None,
    }
}
