//! Fuses a stage that only checks conditions with the next stage, if both have the same axes.
//!
//! Operators such as `gather_elements` check all indices in a stage of their own. Fused, the loop loads each index once, and the
//! memory of the indices is read once. Limits of the indices that follow from the checks are removed.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, StmtData};
use rustc_hash::FxHashMap;

use super::loop_nest_stages::{Body, Item, Stage};
use crate::access_guards::Guard;
use crate::index_arithmetic::conjuncts;
use crate::simplify_loop_functions::bare_condition;
use crate::statement_traversal::ExprRewriter;

/// Fuses the stages in `items` that only check conditions with the stages that follow them, where possible.
pub(super) fn fuse_checks(f: &mut PrimFunc, items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let fused = match (out.last(), &item) {
            (Some(Item::Stage(check)), Item::Stage(stage)) => fused_stage(f, check, stage),
            _ => None,
        };
        match fused {
            Some(stage) => {
                out.pop();
                out.push(Item::Stage(stage));
            }
            None => out.push(item),
        }
    }
    out
}

/// Returns a stage with the checks of the stage `check` in front of its body. Returns `None` if the axes differ, or if the checks
/// could read what the stage writes.
fn fused_stage(f: &mut PrimFunc, check: &Stage, stage: &Stage) -> Option<Stage> {
    let Body::Store { buffer, .. } = stage.body else { return None };
    let same_axes = check.axes.len() == stage.axes.len()
        && check.axes.iter().zip(&stage.axes).all(|(a, b)| a.extent == b.extent);
    let is_plain = |s: &Stage| !s.reduces() && s.init.is_none();
    if !same_axes
        || !only_checks(f, check)
        || !is_plain(check)
        || !is_plain(stage)
        || reads_buffer(f, check, buffer)
        || reads_buffer(f, stage, buffer)
    {
        return None;
    }
    let renamed = check.axes.iter().zip(&stage.axes);
    let map = renamed.map(|(from, to)| (from.var, f.var_expr(to.var))).collect();
    let check = check.substituted(f, &map);
    Some(with_guards_in_front(f, check.guards, stage))
}

/// Whether a stage consists of checks and of bindings of variables that the checks use.
fn only_checks(f: &PrimFunc, s: &Stage) -> bool {
    let has_checks = s.guards.iter().any(|g| matches!(g, Guard::Check(..)));
    has_checks
        && matches!(&s.body, Body::Other(body) if matches!(f.stmt(*body), StmtData::Seq(list) if list.is_empty()))
}

/// Whether a stage reads a buffer.
fn reads_buffer(f: &PrimFunc, s: &Stage, buffer: Buffer) -> bool {
    s.accesses(f).iter().any(|&(b, _, writes)| b == buffer && !writes)
}

/// Adds guards in front of the guards of a stage. The stage uses the variables that the new guards bind, instead of loading the
/// same values again.
fn with_guards_in_front(f: &mut PrimFunc, mut guards: Vec<Guard>, stage: &Stage) -> Stage {
    let mut loaded: FxHashMap<Expr, Expr> = FxHashMap::default();
    for guard in &guards {
        if let Guard::Bind(var, e) = *guard
            && matches!(f.expr(e), ExprData::Load(..))
        {
            loaded.insert(e, f.var_expr(var));
        }
    }
    let known = KnownBounds::from_checks(f, &guards);
    let mut rule =
        |f: &mut PrimFunc, e: Expr| loaded.get(&e).copied().or_else(|| known.without_limit(f, e));
    let mut rewriter = ExprRewriter::new(&mut rule);
    let mut stage = stage.clone();
    for guard in &mut stage.guards {
        *guard = guard.map(|e| rewriter.expr(f, e));
    }
    if let Body::Store { indices, value, .. } = &mut stage.body {
        indices.iter_mut().for_each(|i| *i = rewriter.expr(f, *i));
        *value = rewriter.expr(f, *value);
    }
    guards.append(&mut stage.guards);
    stage.guards = guards;
    stage
}

/// The bounds of integer expressions that the checks of a stage establish for the statements after the checks.
#[derive(Default)]
struct KnownBounds {
    /// Expressions that the checks establish to be non-negative.
    non_negative: Vec<Expr>,
    /// Pairs of an expression and the exclusive upper bound that the checks establish for it.
    below: Vec<(Expr, Expr)>,
}

impl KnownBounds {
    fn from_checks(f: &PrimFunc, guards: &[Guard]) -> KnownBounds {
        let mut known = KnownBounds::default();
        let mut conditions: Vec<Expr> = Vec::new();
        for guard in guards {
            if let Guard::Check(condition, _) = guard {
                conjuncts(f, bare_condition(f, *condition), &mut conditions);
            }
        }
        for condition in conditions {
            match *f.expr(condition) {
                ExprData::Binary(BinOp::Lt, a, b) => known.below.push((a, b)),
                ExprData::Binary(BinOp::Le, a, b) if f.as_int(a) == Some(0) => {
                    known.non_negative.push(b);
                }
                ExprData::Binary(BinOp::Ge, a, b) if f.as_int(b) == Some(0) => {
                    known.non_negative.push(a);
                }
                _ => {}
            }
        }
        known
    }

    /// Returns the operand of `max(operand, 0)` or `min(operand, size - 1)` if the bounds imply this limit; `None` otherwise.
    fn without_limit(&self, f: &PrimFunc, e: Expr) -> Option<Expr> {
        let ExprData::Binary(op @ (BinOp::Min | BinOp::Max), a, b) = *f.expr(e) else {
            return None;
        };
        let is_implied = |x: Expr, limit: Expr| match op {
            BinOp::Max => f.as_int(limit) == Some(0) && self.non_negative.contains(&x),
            _ => self.below.iter().any(|&(y, size)| x == y && is_last(f, limit, size)),
        };
        if is_implied(a, b) {
            return Some(a);
        }
        is_implied(b, a).then_some(b)
    }
}

/// Whether an expression is `size - 1`.
fn is_last(f: &PrimFunc, e: Expr, size: Expr) -> bool {
    match (f.expr(e), f.as_int(e), f.as_int(size)) {
        (_, Some(last), Some(size)) => last.checked_add(1) == Some(size),
        (&ExprData::Binary(BinOp::Sub, a, b), ..) => a == size && f.as_int(b) == Some(1),
        (&ExprData::Binary(BinOp::Add, a, b), ..) => a == size && f.as_int(b) == Some(-1),
        _ => false,
    }
}
