//! Assertions in front of every kernel call that it stays inside its buffers, also where a schedule made the call and
//! proved so. Test builds use them to find defects of schedules.

use std::sync::Arc;

use pliant_ir::tir::{ExprData, Intrin, PrimFunc, StmtData};
use pliant_tensor::Failed;

use crate::guards::{self, Guard};
use crate::schedule::reach;
use crate::walk::map_stmts;

/// A lowered function with an assertion in front of each kernel call that is a statement. A failed one is an internal
/// error.
pub fn with_kernel_checks(f: &PrimFunc) -> PrimFunc {
    let mut f = f.clone();
    let body = f.body;
    f.body = map_stmts(&mut f, body, &mut |f, s| {
        let &StmtData::Evaluate(e) = f.stmt(s) else { return None };
        let ExprData::Call(Intrin::CallExtern, args, _) = f.expr(e).clone() else { return None };
        let (kind, conditions) = reach::kind(f, &args).zip(reach::reach(f, &args))?;
        let text = format!("{kind} is called without a check and reaches outside its buffers");
        let message: Arc<str> = Failed::Internal.mark(&text).into();
        let guards: Vec<Guard> =
            conditions.into_iter().map(|c| Guard::Check(c, message.clone())).collect();
        let call = f.add_stmt(StmtData::Evaluate(e));
        Some(guards::wrap(f, &guards, call))
    });
    f
}
