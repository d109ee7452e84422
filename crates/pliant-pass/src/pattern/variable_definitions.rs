//! [`Defs`]: the value, block and effect epoch of each variable of a function.
//!
//! The effect epoch of a binding is the number of side effects that precede it in the function. The body of a local function has
//! separate epochs, because it is executed where the function is called. If two bindings have the same epoch, no side effect lies
//! between them, so a computation can be moved from one to the other.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::while_loop::op_call_is_pure;
use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{Op, OpRegistry};

use crate::argument_writing_functions::MayWrite;

const ASSERT_OP: Op = Op::new("relax.assert_op");

/// Maximum number of copies (`y = x`) that are followed from a variable to the original variable.
const MAX_COPIES: usize = 1 << 20;

/// The definition of one variable: its value, its block, and its effect epoch (the number of side effects before its binding).
#[derive(Clone, Copy, Default)]
struct Def {
    value: PackedOption<Expr>,
    epoch: u32,
    block: PackedOption<Block>,
}

/// The definitions of a function's variables: for each variable, its value, its block, and its effect epoch (the number of side
/// effects before its binding).
#[derive(Clone, Default)]
pub struct Defs {
    defs: SecondaryMap<Var, Def>,
    /// The graph functions whose calls count as side effects, because they may write to their arguments although their types are
    /// pure.
    writers: Option<MayWrite>,
}

impl Defs {
    /// Creates an empty table, with which a search does not follow variables to their values.
    pub fn none() -> Self {
        Self::default()
    }

    /// Collects the definitions of all variables that are reachable from the root of a function. `writers` lists the functions of
    /// the module that may write to their arguments; if it is `None`, every graph function is assumed to write.
    pub fn of(func: &Function, ops: &dyn OpRegistry, writers: Option<&MayWrite>) -> Self {
        let writers = writers.cloned().unwrap_or_else(|| MayWrite::within(func));
        let mut defs = Defs { writers: Some(writers), ..Defs::default() };
        // A local function is not executed where it is defined, so its body has separate epochs.
        let (mut epoch, mut last, mut outer) = (0u32, 0u32, Vec::new());
        walk(func, func.root(), |event| match event {
            Event::EnterFunc(_) => {
                outer.push(epoch);
                last += 1;
                epoch = last;
            }
            Event::LeaveFunc(_) => {
                epoch = outer.pop().expect("a function is entered before it is left")
            }
            Event::LeaveBinding(location, b) => {
                let nested = matches!(func.expr(b.value), ExprData::If { .. });
                if !nested && !is_assertion(func, b.value) && !defs.is_pure(func, ops, b.value) {
                    last += 1;
                    defs.define(func, b, last - 1, location.block);
                    epoch = last;
                } else {
                    defs.define(func, b, epoch, location.block);
                }
            }
            _ => {}
        });
        defs
    }

    /// Records the definition of the variable that the binding `b` binds. `epoch` is the number of side effects before the
    /// binding.
    pub fn define(&mut self, func: &Function, b: Binding, epoch: u32, block: Block) {
        let mut value = b.value;
        if let ExprData::Var(v) = func.expr(value)
            && let Some(original) = self.copied_var(func, *v)
        {
            value = original;
        }
        self.defs[b.var] = Def { value: Some(value).into(), epoch, block: Some(block).into() };
    }

    /// Returns `x`, as an expression, if `v` is defined as a copy `v = x`; `None` otherwise.
    fn copied_var(&self, func: &Function, v: Var) -> Option<Expr> {
        let mut original = None;
        let mut v = v;
        for _ in 0..MAX_COPIES {
            let Some(value) = self.defs[v].value.expand() else { break };
            let ExprData::Var(next) = func.expr(value) else { break };
            original = Some(value);
            v = *next;
        }
        original
    }

    /// Follows copies (`y = x`) and `match_cast` from the variable `e` to the original variable. Other expressions are returned
    /// unchanged.
    pub fn origin(&self, func: &Function, e: Expr) -> Expr {
        match func.expr(e) {
            ExprData::Var(v) => self.copied_var(func, *v).unwrap_or(e),
            _ => e,
        }
    }

    /// Returns the value to which a variable is bound. Other expressions, and variables without a definition such as parameters,
    /// are returned unchanged.
    pub fn value(&self, func: &Function, e: Expr) -> Expr {
        let mut e = e;
        for _ in 0..MAX_COPIES {
            let ExprData::Var(v) = func.expr(e) else { break };
            let Some(value) = self.defs[*v].value.expand() else { break };
            e = value;
        }
        e
    }

    /// Returns the value to which a variable is bound, like [`Defs::value`], if no side effect lies between the binding of the
    /// variable and the binding of `var`. Otherwise returns the variable unchanged.
    pub fn value_in_epoch(&self, func: &Function, e: Expr, var: Var) -> Expr {
        let epoch = self.epoch(var);
        let mut e = e;
        for _ in 0..MAX_COPIES {
            let ExprData::Var(v) = func.expr(e) else { break };
            let Some(value) = self.defs[*v].value.expand() else { break };
            if self.epoch(*v) != epoch {
                break;
            }
            e = value;
        }
        e
    }

    /// Returns the effect epoch of a variable (the number of side effects before its binding); `None` for parameters.
    pub fn epoch(&self, v: Var) -> Option<u32> {
        self.defs[v].block.expand().map(|_| self.defs[v].epoch)
    }

    /// The block that binds a variable; `None` for parameters.
    pub fn block(&self, v: Var) -> Option<Block> {
        self.defs[v].block.expand()
    }

    /// Whether computing a value has no side effects. An `If` counts as pure, because the bindings in its branches are considered
    /// separately. In-place calls have side effects, regardless of their types.
    pub fn is_pure(&self, func: &Function, ops: &dyn OpRegistry, value: Expr) -> bool {
        let ExprData::Call { callee, args, .. } = func.expr(value) else { return true };
        if self.writers.as_ref().is_some_and(|writers| writers.may_write(func, value)) {
            return false;
        }
        match callee {
            Callee::Op(CALL_PURE_PACKED) => true,
            Callee::Op(op) => {
                !op.writes_operands() && op_call_is_pure(func, ops, *op, func.list(*args))
            }
            Callee::Expr(f) => matches!(func.ty(*f), TypeData::Callable { pure: true, .. }),
        }
    }
}

/// Whether a value is a call of the assertion operator. An assertion has no effect unless it fails, so computations may be moved
/// across it.
fn is_assertion(func: &Function, value: Expr) -> bool {
    matches!(func.expr(value), ExprData::Call { callee: Callee::Op(ASSERT_OP), .. })
}
