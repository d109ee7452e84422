//! Multiversioning of stages that broadcast: they read an operand at index 0 if its size is 1. Each outcome of these conditions
//! gets a version with plain indices, which vectors and matrix products can use.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};

use super::group::Group;
use super::stage::{Body, Init, Stage};
use super::{gemm, half};
use crate::guards::uses_bound;
use crate::walk::{ExprRewriter, uses_any};

/// Maximum number of conditions with a version for each outcome. With more conditions there are two versions: one in which none of
/// them holds, and one that selects for each element.
const MAX_CONDITIONS: usize = 2;

/// The conditions that select between indices of a stage and do not change while it runs.
pub(super) fn conditions(f: &PrimFunc, s: &Stage) -> Vec<Expr> {
    let Body::Store { value, .. } = &s.body else { return Vec::new() };
    let axis = |v: Var| s.axes.iter().any(|a| a.var == v);
    let mut found = Vec::new();
    for_each_expr(f, *value, |e| {
        let ExprData::Load(_, indices) = f.expr(e) else { return };
        for &i in indices {
            if let ExprData::Select(c, at, _) = *f.expr(i)
                && f.as_int(at) == Some(0)
                && !found.contains(&c)
                && !uses_any(f, c, &axis)
                && !reads_memory(f, c)
                && !uses_bound(f, &s.guards, c)
            {
                found.push(c);
            }
        }
    });
    found
}

fn reads_memory(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..) | ExprData::Call(..)));
    found
}

/// Emits the versions of a stage that is scheduled by itself.
pub(super) fn versions(f: &mut PrimFunc, s: &Stage, conditions: &[Expr]) -> Stmt {
    versions_of(f, s, conditions, &mut alone)
}

/// Emits the versions of a stage, each with `emit`.
pub(super) fn versions_of(
    f: &mut PrimFunc,
    s: &Stage,
    conditions: &[Expr],
    emit: &mut dyn FnMut(&mut PrimFunc, &Stage) -> Stmt,
) -> Stmt {
    let Some((&first, rest)) = conditions.split_first() else {
        return emit(f, s);
    };
    if conditions.len() > MAX_CONDITIONS {
        let any = rest.iter().fold(first, |any, &c| f.binary(BinOp::Or, any, c));
        let plain = conditions.iter().fold(s.clone(), |s, &c| decided(f, &s, c, false));
        let (general, plain) = (emit(f, s), emit(f, &plain));
        return f.add_stmt(StmtData::If(any, general, Some(plain)));
    }
    let [one, many] = [true, false].map(|holds| {
        let version = decided(f, s, first, holds);
        versions_of(f, &version, rest, emit)
    });
    f.add_stmt(StmtData::If(first, one, Some(many)))
}

/// Emits a stage that is scheduled by itself.
fn alone(f: &mut PrimFunc, s: &Stage) -> Stmt {
    if let Some(call) = gemm::tensorize(f, s) {
        return call;
    }
    let s = half::widened(f, s);
    let stmts = Group::new(f, s, 0).emit(f, &mut Vec::new(), &[]);
    f.seq(stmts)
}

/// The stage under the assumption that a condition holds, or that it does not.
fn decided(f: &mut PrimFunc, s: &Stage, condition: Expr, holds: bool) -> Stage {
    let mut rule = |f: &mut PrimFunc, e: Expr| match *f.expr(e) {
        ExprData::Select(c, a, b) if c == condition => Some(if holds { a } else { b }),
        _ => None,
    };
    let mut rewriter = ExprRewriter::new(&mut rule);
    let mut s = s.clone();
    for guard in &mut s.guards {
        *guard = guard.map(|e| rewriter.expr(f, e));
    }
    if let Some(Init::Value(e)) = &mut s.init {
        *e = rewriter.expr(f, *e);
    }
    if let Body::Store { indices, value, .. } = &mut s.body {
        *value = rewriter.expr(f, *value);
        for i in indices {
            *i = rewriter.expr(f, *i);
        }
    }
    s
}
