//! Multiversioning of stages that broadcast operands. If a size is known only at run time, the index of such an operand
//! is a conditional: 0 if the size is 1, otherwise the index of the result. This file emits a version of the stage for
//! each outcome of these conditions. Each version has plain indices, so that its loops can be vectorized and matmuls
//! are recognized.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};

use super::loop_nest_stages::{Body, Init, Stage};
use super::row_group_fusion::Group;
use super::{gemm, half_precision, saturating_casts};
use crate::access_guards::uses_guard_variable;
use crate::statement_traversal::{ExprRewriter, uses_any};

/// Maximum number of broadcast conditions for which a stage gets one version for every combination of outcomes. If there are more
/// conditions, two versions are emitted: one for the case that no condition holds, and one that selects indices for each element.
const MAX_CONDITIONS: usize = 2;

/// Returns the conditions by which the indices of a stage's operands select between 0 and another index, because an operand of size
/// 1 is broadcast. Only conditions that do not change while the stage runs are returned.
pub(super) fn broadcast_conditions(f: &PrimFunc, s: &Stage) -> Vec<Expr> {
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
                && !loads_or_calls(f, c)
                && !uses_guard_variable(f, &s.guards, c)
            {
                found.push(c);
            }
        }
    });
    found
}

fn loads_or_calls(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..) | ExprData::Call(..)));
    found
}

/// Emits a stage that is not fused with other stages, in one version for each outcome of the broadcast conditions `conditions`.
pub(super) fn emit_versions(f: &mut PrimFunc, s: &Stage, conditions: &[Expr]) -> Stmt {
    emit_versions_with(f, s, conditions, &mut emit_single_stage)
}

/// Emits one version of a stage for each outcome of the broadcast conditions `conditions`, and the branches that select a version.
/// `emit` emits the loops of one version. If there are many conditions, emits only two versions.
pub(super) fn emit_versions_with(
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
        let specialized = conditions.iter().fold(s.clone(), |s, &c| specialize(f, &s, c, false));
        let (general, specialized) = (emit(f, s), emit(f, &specialized));
        return f.add_stmt(StmtData::If(any, general, Some(specialized)));
    }
    let [one, many] = [true, false].map(|holds| {
        let version = specialize(f, s, first, holds);
        emit_versions_with(f, &version, rest, emit)
    });
    f.add_stmt(StmtData::If(first, one, Some(many)))
}

/// Emits the loops or the kernel call of a stage that is not fused with other stages.
fn emit_single_stage(f: &mut PrimFunc, s: &Stage) -> Stmt {
    if let Some(call) = gemm::tensorize(f, s) {
        return call;
    }
    let s = saturating_casts::without_implied_limits(f, s);
    let s = half_precision::widen_arithmetic(f, &s);
    let stmts = Group::new(f, s, 0).emit(f, &mut Vec::new(), &[]);
    f.seq(stmts)
}

/// Specializes a stage to the case that a condition is true (`holds`) or false.
fn specialize(f: &mut PrimFunc, s: &Stage, condition: Expr, holds: bool) -> Stage {
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
