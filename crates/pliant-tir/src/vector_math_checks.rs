//! Inserts assertions in front of every call of a vector math function (`pliant_vec_*`). The assertions check that the call
//! stays inside its buffers. Calls that a schedule emitted are also checked, although the schedule guarantees this.
//! Test builds use the assertions to find bugs in schedules.

use std::sync::Arc;

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, StmtData};
use pliant_tensor::CheckFailure;

use crate::access_guards::{self, Guard};
use crate::schedule::vector_math_bounds;
use crate::statement_traversal::{direct_exprs, map_stmts};

/// Returns a lowered function with assertions in front of each statement that calls a vector math function (`pliant_vec_*`). A
/// failed assertion is an internal error. Expressions that contain a conditional are skipped.
pub fn with_kernel_checks(f: &PrimFunc) -> PrimFunc {
    let mut f = f.clone();
    let body = f.body;
    f.body = map_stmts(&mut f, body, &mut |f, s| {
        let mut calls: Vec<Box<[Expr]>> = Vec::new();
        match f.stmt(s) {
            data @ (StmtData::Evaluate(_) | StmtData::Store { .. } | StmtData::Let(..)) => {
                direct_exprs(data, |e| calls.extend(unconditional_calls(f, e)));
            }
            _ => return None,
        }
        let mut checks = Vec::new();
        for args in calls {
            let Some((symbol, conditions)) = vector_math_bounds::callee_symbol(f, &args)
                .zip(vector_math_bounds::bounds_conditions(f, &args))
            else {
                continue;
            };
            let text = format!(
                "a call of '{symbol}' without a check accesses elements outside its buffers"
            );
            let message: Arc<str> = CheckFailure::Internal.mark(&text).into();
            checks.extend(conditions.into_iter().map(|c| Guard::Check(c, message.clone())));
        }
        (!checks.is_empty()).then(|| access_guards::wrap(f, &checks, s))
    });
    f
}

/// Returns the argument lists of the calls of linked functions in an expression. Empty if the expression contains a conditional,
/// because the calls may then not be executed.
fn unconditional_calls(f: &PrimFunc, e: Expr) -> Vec<Box<[Expr]>> {
    let (mut calls, mut conditional) = (Vec::new(), false);
    for_each_expr(f, e, |e| match f.expr(e) {
        ExprData::Call(Intrin::CallExtern, args, _) => calls.push(args.clone()),
        ExprData::Call(Intrin::IfThenElse, ..) | ExprData::Binary(BinOp::And | BinOp::Or, ..) => {
            conditional = true;
        }
        _ => {}
    });
    if conditional { Vec::new() } else { calls }
}
