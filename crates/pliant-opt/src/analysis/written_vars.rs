//! Finds the variables of a function to whose memory a call may write.

use pliant_ir::Op;
use pliant_ir::relax::visit::{Event, operand_vars, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use rustc_hash::FxHashSet;

use super::Effects;

/// Operators that have side effects but do not write to tensors.
const NON_WRITING_OPS: [Op; 2] = [Op::new("relax.print"), Op::new("relax.assert_op")];

/// Whether a call with side effects may write to a tensor. This is true for all but a few operators ([`NON_WRITING_OPS`]).
pub fn may_write_tensors(f: &Function, e: Expr) -> bool {
    match f.expr(e) {
        ExprData::Call { callee: Callee::Op(op), .. } => !NON_WRITING_OPS.contains(op),
        _ => true,
    }
}

/// Returns the variables with which a value may share memory: its operands, or the results of the branches of an `If`.
fn possible_aliases(f: &Function, e: Expr) -> Vec<Var> {
    let mut out = operand_vars(f, e);
    if let ExprData::If { then_seq, else_seq, .. } = *f.expr(e) {
        out.extend(operand_vars(f, f.seq(then_seq).result));
        out.extend(operand_vars(f, f.seq(else_seq).result));
    }
    out
}

/// Returns the variables of a function to whose memory a call in it may write. These are the operands of such calls, and all
/// values from which these operands are computed, because a value may share memory with its operands. Written values need their
/// own memory: they cannot be merged with equal values or folded to constants.
pub fn written_vars(f: &Function, effects: &Effects) -> FxHashSet<Var> {
    let mut bindings: Vec<Binding> = Vec::new();
    walk(f, f.root(), |event| {
        if let Event::LeaveBinding(_, b) = event {
            bindings.push(b);
        }
    });
    let mut written: FxHashSet<Var> = FxHashSet::default();
    for b in bindings.into_iter().rev() {
        if (effects.is_impure(f, b.value) && may_write_tensors(f, b.value))
            || written.contains(&b.var)
        {
            written.extend(possible_aliases(f, b.value));
        }
    }
    written
}
