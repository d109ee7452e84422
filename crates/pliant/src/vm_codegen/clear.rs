//! Clears allocated tensors: their memory is recycled, so all elements must be written before any is read. This holds
//! if the first use of a tensor is as the output of a loop function that writes all of it; other tensors are set to
//! zero when they are allocated.

use std::sync::Arc;

use pliant_exec::{Arg, Reg};
use pliant_ir::IRModule;
use pliant_ir::relax::visit::operand_vars;
use pliant_ir::relax::{Binding, Callee, ExprData, Function, Var};
use pliant_ir::tir::PrimFunc;
use pliant_opt::names::VM_ALLOC_TENSOR;
use pliant_opt::tail::is_kill;
use pliant_tir::full_writes::writes_whole;
use rustc_hash::FxHashMap;

use super::FunctionGen;

/// For each loop function, which of its parameters it writes completely before it reads them.
pub(super) struct FullWrites(FxHashMap<Arc<str>, Vec<bool>>);

impl FullWrites {
    /// Analyses the loop functions of a module.
    pub(super) fn of(module: &IRModule) -> FullWrites {
        FullWrites(module.prim_funcs().map(|(name, f)| (name.clone(), parameters(f))).collect())
    }

    /// Whether a call writes all of a variable's tensor before it reads any of it.
    fn by_call(&self, func: &Function, binding: &Binding, tensor: Var) -> bool {
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(binding.value)
        else {
            return false;
        };
        let ExprData::Global(name) = func.expr(*callee) else { return false };
        let Some(whole) = self.0.get(func.str(*name)) else { return false };
        let mut given = func
            .list(*args)
            .iter()
            .enumerate()
            .filter(|(_, a)| operand_vars(func, **a).contains(&tensor));
        match (given.next(), given.next()) {
            (Some((at, e)), None) => {
                matches!(func.expr(*e), ExprData::Var(_)) && whole.get(at) == Some(&true)
            }
            _ => false,
        }
    }
}

fn parameters(f: &PrimFunc) -> Vec<bool> {
    let whole = |p| f.buffer_map.get(p).is_some_and(|&b| super::writes(f, b) && writes_whole(f, b));
    f.params.iter().map(whole).collect()
}

impl FunctionGen<'_> {
    /// Clears the tensor that the bindings at `index..end` allocate, unless its first use writes all of it.
    pub(super) fn clear_unless_written(
        &mut self,
        bindings: &[Binding],
        index: usize,
        end: usize,
        tensor: Var,
    ) {
        let func = self.func;
        let allocates = bindings[index..end].iter().any(|b| {
            matches!(func.expr(b.value), ExprData::Call { callee: Callee::Op(VM_ALLOC_TENSOR), .. })
        });
        if !allocates {
            return;
        }
        // Branches and local functions may use variables that are not among their operands.
        let nested =
            |b: &Binding| matches!(func.expr(b.value), ExprData::If { .. } | ExprData::Func(_));
        let uses = |b: &&Binding| nested(b) || operand_vars(func, b.value).contains(&tensor);
        let first = bindings[end..].iter().find(uses);
        let unread = first.is_some_and(|b| is_kill(func, b));
        if unread || first.is_some_and(|b| self.full_writes.by_call(func, b, tensor)) {
            return;
        }
        if let Some(super::Operand::Reg(reg)) = self.places.get(&tensor).copied() {
            self.exec.emit_call("vm.builtin.clear", &[Arg::reg(reg)], Reg::VOID);
        }
    }
}
