//! [`Effects`]: which expressions have side effects.

use std::sync::Arc;

use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::while_loop::op_call_is_pure;
use pliant_ir::relax::{Callee, Expr, ExprData, FuncId, Function, TypeData, Var};
use pliant_ir::{IRModule, OpRegistry};
use pliant_pass::MayWrite;
use rustc_hash::FxHashSet;

/// Facts about a module's functions, so that calls can be classified while the module changes.
pub struct Effects {
    pure: FxHashSet<Arc<str>>,
    /// The functions and operators that write to their operands although their type is pure.
    writers: MayWrite,
    ops: &'static dyn OpRegistry,
}

impl Effects {
    /// Computes the effects of calls in this module.
    pub fn of(module: &IRModule, ops: &'static dyn OpRegistry) -> Self {
        let pure = module.relax_funcs().filter(|(_, f)| f.is_pure()).map(|(n, _)| n.clone());
        Effects { pure: pure.collect(), writers: MayWrite::of(module), ops }
    }

    /// Whether a call may have effects. Apart from the bodies of branches, only calls have any.
    /// Types treat calls that write to their operands as pure; here these have an effect, and so
    /// does a call of a function that may make such a call.
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

    /// The variables of the bindings under `id` whose values may have effects: calls, and `If`s
    /// that contain such calls. A local function has no effect until it is called.
    pub fn impure_bindings(&self, f: &Function, id: FuncId) -> FxHashSet<Var> {
        let mut out = FxHashSet::default();
        // For each enclosing `If` and local function, whether it contains effects.
        let mut open = vec![false];
        walk(f, id, |event| match event {
            Event::Binding(_, b) if has_nested_sequence(f, b.value) => open.push(false),
            Event::Bound(_, b) => {
                let impure = match f.expr(b.value) {
                    ExprData::If { .. } => open.pop().expect("every If was entered"),
                    ExprData::Func(_) => {
                        open.pop();
                        false
                    }
                    _ => self.is_impure(f, b.value),
                };
                if impure {
                    out.insert(b.var);
                    *open.last_mut().expect("the root stays open") = true;
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
