//! Finds the binding that computes the result of a sequence. Only kills (bindings that end the life of a value) and renamings (`y =
//! x`) may follow it.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function};

use crate::common::operators_after_lowering::{
    MEMORY_KILL_STORAGE, MEMORY_KILL_TENSOR, VM_KILL_OBJECT,
};

/// Returns the number of bindings of a sequence, not counting the kills and renamings at its end.
pub fn len_without_trailing_kills(func: &Function, bindings: &[Binding]) -> usize {
    let is_kill_or_rename = |b: &&Binding| is_rename(func, b) || is_kill(func, b);
    bindings.len() - bindings.iter().rev().take_while(is_kill_or_rename).count()
}

/// Returns the index of the binding that computes the sequence's result, if only kills and renamings follow it.
pub fn tail_binding(func: &Function, bindings: &[Binding], result: Expr) -> Option<usize> {
    let index = len_without_trailing_kills(func, bindings).checked_sub(1)?;
    let ExprData::Var(mut name) = *func.expr(result) else { return None };
    for b in bindings[index + 1..].iter().rev().filter(|b| is_rename(func, b)) {
        if let ExprData::Var(source) = *func.expr(b.value)
            && b.var == name
        {
            name = source;
        }
    }
    (bindings[index].var == name).then_some(index)
}

/// Whether a binding only gives a variable another name (`y = x`).
pub fn is_rename(func: &Function, binding: &Binding) -> bool {
    binding.cast.is_none() && matches!(func.expr(binding.value), ExprData::Var(_))
}

/// Whether a binding only ends the life of a value, so that its memory can be reused.
pub fn is_kill(func: &Function, binding: &Binding) -> bool {
    matches!(
        func.expr(binding.value),
        ExprData::Call {
            callee: Callee::Op(VM_KILL_OBJECT | MEMORY_KILL_TENSOR | MEMORY_KILL_STORAGE),
            ..
        }
    )
}
