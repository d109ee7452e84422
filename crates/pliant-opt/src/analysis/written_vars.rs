//! Values that a call may write to.

use pliant_ir::Op;
use pliant_ir::relax::visit::{Event, operand_vars, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use rustc_hash::FxHashSet;

use super::Effects;

/// The operators with effects that do not write to tensors.
const NON_WRITING_OPS: [Op; 2] = [Op::new("relax.print"), Op::new("relax.assert_op")];

/// Whether a call with effects may change the contents of tensors: all calls except those
/// known not to.
pub fn may_write_tensors(f: &Function, e: Expr) -> bool {
    match f.expr(e) {
        ExprData::Call { callee: Callee::Op(op), .. } => !NON_WRITING_OPS.contains(op),
        _ => true,
    }
}

/// The variables that a value may share memory with: its operands, and the results of branches.
fn possible_aliases(f: &Function, e: Expr) -> Vec<Var> {
    let mut out = operand_vars(f, e);
    if let ExprData::If { then_seq, else_seq, .. } = *f.expr(e) {
        out.extend(operand_vars(f, f.seq(then_seq).result));
        out.extend(operand_vars(f, f.seq(else_seq).result));
    }
    out
}

/// The variables whose memory a call of the function may write to: operands of such calls, and
/// everything that these are computed from, since a value may share memory with its operands. These
/// values must stay separate: they can be neither merged with equal values nor turned into
/// constants.
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
