//! [`Effects`]: which expressions have side effects.

use std::sync::Arc;

use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::while_loop::op_call_is_pure;
use pliant_ir::relax::{Callee, Expr, ExprData, FuncId, Function, TypeData, Var};
use pliant_ir::{IRModule, OpRegistry};
use pliant_pass::MayWrite;
use rustc_hash::FxHashSet;

/// Classifies expressions as pure or impure. Which functions of the module are pure is computed once, and stays valid while passes
/// change the module.
pub struct Effects {
    pure: FxHashSet<Arc<str>>,
    /// The functions and operators that write to their operands although their type says that they are pure.
    writers: MayWrite,
    ops: &'static dyn OpRegistry,
}

impl Effects {
    /// Computes which functions of a module may have side effects.
    pub fn of(module: &IRModule, ops: &'static dyn OpRegistry) -> Self {
        let pure = module.relax_funcs().filter(|(_, f)| f.is_pure()).map(|(n, _)| n.clone());
        Effects { pure: pure.collect(), writers: MayWrite::of(module), ops }
    }

    /// Whether an expression is a call that may have side effects. The type system treats calls that write to their operands as
    /// pure. Here such calls are impure, and so is every call of a function that may contain one.
    pub fn is_impure(&self, f: &Function, e: Expr) -> bool {
        let ExprData::Call { callee, args, .. } = f.expr(e) else { return false };
        if self.writers.may_write(f, e) {
            return true;
        }
        match callee {
            Callee::Op(op) => !op_call_is_pure(f, self.ops, *op, f.list(*args)),
            Callee::Expr(e) => match f.expr(*e) {
                ExprData::Global(name) => !self.pure.contains(f.str(*name)),
                ExprData::Extern(_) => true,
                _ => !matches!(f.ty(*e), TypeData::Callable { pure: true, .. }),
            },
        }
    }

    /// Returns the variables in the function `id` whose values may have side effects: impure calls, and each `If` that contains
    /// an impure call. A local function has no effect until it is called.
    pub fn impure_bindings(&self, f: &Function, id: FuncId) -> FxHashSet<Var> {
        let mut out = FxHashSet::default();
        // For each enclosing function and `If`, whether an impure binding was seen in it.
        let mut open = vec![false];
        walk(f, id, |event| match event {
            Event::EnterBinding(_, b) if has_nested_sequence(f, b.value) => open.push(false),
            Event::LeaveBinding(_, b) => {
                let impure = match f.expr(b.value) {
                    ExprData::If { .. } => {
                        open.pop().expect("an `If` expression is entered before it is left")
                    }
                    ExprData::Func(_) => {
                        open.pop();
                        false
                    }
                    _ => self.is_impure(f, b.value),
                };
                if impure {
                    out.insert(b.var);
                    *open
                        .last_mut()
                        .expect("the scope of the root function is open during the traversal") =
                        true;
                }
            }
            _ => {}
        });
        out
    }
}

fn has_nested_sequence(f: &Function, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::If { .. } | ExprData::Func(_))
}
