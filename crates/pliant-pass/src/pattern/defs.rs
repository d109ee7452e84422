//! [`Defs`]: the value of each variable, and between which effects it is computed.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::loops::op_call_is_pure;
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{Op, OpRegistry};

use crate::writers::Writers;

const ASSERT_OP: Op = Op("relax.assert_op");

/// How many copies in a row are followed; a longer chain is read as it stands.
const MAX_COPIES: usize = 1 << 20;

#[derive(Clone, Copy, Default)]
struct Def {
    value: PackedOption<Expr>,
    epoch: u32,
    block: PackedOption<Block>,
}

/// The values of a function's variables.
#[derive(Clone, Default)]
pub struct Defs {
    defs: SecondaryMap<Var, Def>,
    /// Which calls have effects that their types do not tell.
    writers: Option<Writers>,
}

impl Defs {
    /// No values: variables are not looked through.
    pub fn none() -> Self {
        Self::default()
    }

    /// The values of all variables that the root reaches. `writers` are those of the function's module; without them any
    /// graph function that is called may be one.
    pub fn of(func: &Function, ops: &dyn OpRegistry, writers: Option<&Writers>) -> Self {
        let writers = writers.cloned().unwrap_or_else(|| Writers::around(func));
        let mut defs = Defs { writers: Some(writers), ..Defs::default() };
        // The epoch counts the effects before a binding. A local function runs at another time than what stands
        // around it, so that its body has epochs of its own.
        let (mut epoch, mut last, mut outer) = (0u32, 0u32, Vec::new());
        walk(func, func.root(), |event| match event {
            Event::EnterFunc(_) => {
                outer.push(epoch);
                last += 1;
                epoch = last;
            }
            Event::LeaveFunc(_) => epoch = outer.pop().expect("functions begin before they end"),
            Event::Bound(place, b) => {
                let nested = matches!(func.expr(b.value), ExprData::If { .. });
                if !nested && !only_checks(func, b.value) && !defs.is_pure(func, ops, b.value) {
                    last += 1;
                    defs.define(func, b, last - 1, place.block);
                    epoch = last;
                } else {
                    defs.define(func, b, epoch, place.block);
                }
            }
            _ => {}
        });
        defs
    }

    /// Enters the value of a variable.
    pub fn define(&mut self, func: &Function, b: Binding, epoch: u32, block: Block) {
        let mut value = b.value;
        if let ExprData::Var(v) = func.expr(value)
            && let Some(canonical) = self.canonical(func, *v)
        {
            value = canonical;
        }
        self.defs[b.var] = Def { value: Some(value).into(), epoch, block: Some(block).into() };
    }

    /// The variable that `v` is a copy of in the end, as an expression; `None` where it is no copy.
    fn canonical(&self, func: &Function, v: Var) -> Option<Expr> {
        let mut found = None;
        let mut v = v;
        for _ in 0..MAX_COPIES {
            let Some(value) = self.defs[v].value.expand() else { break };
            let ExprData::Var(next) = func.expr(value) else { break };
            found = Some(value);
            v = *next;
        }
        found
    }

    /// An expression with copies and checks (`match_cast`) looked through, but not the values of variables.
    pub fn origin(&self, func: &Function, e: Expr) -> Expr {
        match func.expr(e) {
            ExprData::Var(v) => self.canonical(func, *v).unwrap_or(e),
            _ => e,
        }
    }

    /// An expression, or the value of the variable that it is. A variable without value stays.
    pub fn value(&self, func: &Function, e: Expr) -> Expr {
        let mut e = e;
        for _ in 0..MAX_COPIES {
            let ExprData::Var(v) = func.expr(e) else { break };
            let Some(value) = self.defs[*v].value.expand() else { break };
            e = value;
        }
        e
    }

    /// As [`Defs::value`], of variables that are computed between the same effects as `place`: others stay.
    pub fn value_beside(&self, func: &Function, e: Expr, place: Var) -> Expr {
        let here = self.epoch(place);
        let mut e = e;
        for _ in 0..MAX_COPIES {
            let ExprData::Var(v) = func.expr(e) else { break };
            let Some(value) = self.defs[*v].value.expand() else { break };
            if self.epoch(*v) != here {
                break;
            }
            e = value;
        }
        e
    }

    /// Between which effects a variable is computed; `None` for parameters.
    pub fn epoch(&self, v: Var) -> Option<u32> {
        self.defs[v].block.expand().map(|_| self.defs[v].epoch)
    }

    /// The block that binds a variable; `None` for parameters.
    pub fn block(&self, v: Var) -> Option<Block> {
        self.defs[v].block.expand()
    }

    /// Whether computing a value has no effect but the result. Branches count as pure: what stands in them is counted
    /// where it stands. A call that works in place has an effect, whatever its type says.
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

/// Whether a value is a check, which ends the run or does nothing: what is computed before it may be computed after it.
fn only_checks(func: &Function, value: Expr) -> bool {
    matches!(func.expr(value), ExprData::Call { callee: Callee::Op(ASSERT_OP), .. })
}
