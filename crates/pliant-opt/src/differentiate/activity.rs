//! Determines which variables take part in differentiation.

use pliant_ir::relax::visit::{operand_vars, value_free_vars};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ops::Gradient;
use pliant_ops::gradient::gradient_of;
use rustc_hash::FxHashSet;

use super::adjoints::is_differentiable;

/// The variables that a value reads, including those that its branches read.
fn vars_read(func: &Function, value: Expr) -> Vec<Var> {
    match func.expr(value) {
        ExprData::If { .. } | ExprData::Func(_) => {
            let mut vars = value_free_vars(func, value);
            vars.extend(operand_vars(func, value));
            vars
        }
        _ => operand_vars(func, value),
    }
}

/// The variables that depend on the variables `on` by a differentiable path, including these.
pub(super) fn varied_vars(
    func: &Function,
    bindings: &[Binding],
    on: &FxHashSet<Var>,
) -> FxHashSet<Var> {
    let mut varied = on.clone();
    for binding in bindings {
        let has_zero_gradient = matches!(
            func.expr(binding.value),
            ExprData::Call { callee: Callee::Op(op), .. }
                if matches!(gradient_of(*op), Gradient::Zero)
        );
        if !has_zero_gradient
            && is_differentiable(func, func.var(binding.var).ty)
            && vars_read(func, binding.value).iter().any(|v| varied.contains(v))
        {
            varied.insert(binding.var);
        }
    }
    varied
}

/// The bindings, from the last to the first, through which the variables in `targets` depend on varied variables.
pub(super) fn useful_bindings(
    func: &Function,
    bindings: &[Binding],
    varied: &FxHashSet<Var>,
    targets: &[Var],
) -> Vec<Binding> {
    let mut useful: FxHashSet<Var> =
        targets.iter().copied().filter(|v| varied.contains(v)).collect();
    let mut out = Vec::new();
    for binding in bindings.iter().rev() {
        if !useful.contains(&binding.var) {
            continue;
        }
        out.push(*binding);
        let read = vars_read(func, binding.value);
        useful.extend(read.into_iter().filter(|v| varied.contains(v)));
    }
    out
}
