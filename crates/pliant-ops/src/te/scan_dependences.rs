//! Finds the reads inside a scan that may access a step that is not computed yet. Reads that cannot be proved to be correct are
//! checked when the scan runs.

use pliant_ir::tir::Intrin;
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{Expr, ExprKind, IterVar};
use super::expr_builders::{and, le, lt, not, or};
use super::expr_traversal::fold;
use super::sym_conversion::simplify;
use super::tensor::{Compute, Tensor};

/// The maximum number of distinct pairs of a subexpression and the condition under which it is
/// evaluated. If an expression has more pairs, all its reads are treated as unconditional.
const MAX_CONDITIONS: usize = 4096;

/// A read of a state, or of an intermediate stage, at a step that is not proved to be computed already.
pub(super) struct UnprovedRead {
    /// The index of the step that is read.
    step: Expr,
    /// The condition under which the stage reads the value. `None` if it always reads the value.
    condition: Option<Expr>,
    /// Whether the read may access the step that is being computed. This is possible for
    /// intermediate stages, which are computed in order within a step.
    same_step: bool,
}

impl UnprovedRead {
    /// The condition that the row that is read has already been computed when the reader computes
    /// step `t`. Rows of intermediate stages exist from step `first` on.
    pub(super) fn is_available(&self, t: &Expr, first: &Expr) -> Expr {
        let is_earlier = match self.same_step {
            true => and(&le(first, &self.step), &le(&self.step, t)),
            false => lt(&self.step, t),
        };
        match &self.condition {
            Some(condition) => or(&not(condition), &is_earlier),
            None => is_earlier,
        }
    }
}

/// The number of steps from the step that `stage` computes to the step that it reads at the indices
/// `at`; negative for an earlier step. `None` if the number is not constant.
pub(super) fn distance(stage: &Compute, at: &[Expr]) -> Option<i64> {
    simplify(&(at.first()? - &stage.axes[0].var.expr())).as_int()
}

/// The reads of a stage that must be checked at run time, and the reduction axes of the stage.
pub(super) type UnprovedReads<'s> = (Vec<UnprovedRead>, &'s [IterVar]);

/// Finds the reads of a stage that must be checked at run time.
pub(super) fn unproved_reads<'s>(
    stage: &'s Compute,
    states: &[Tensor],
    intermediate: &[Tensor],
) -> UnprovedReads<'s> {
    let (roots, axes) = match stage.body.kind() {
        ExprKind::Reduce(r) => {
            let roots = std::iter::once(&r.source).chain(&r.init).cloned().collect();
            (roots, &r.axes[..])
        }
        _ => (vec![stage.body.clone()], &[][..]),
    };
    let (mut reads, mut memo) = (Vec::new(), FxHashMap::default());
    for root in &roots {
        // Only the subexpressions that read a step are walked, because shared subexpressions can occur under many conditions.
        let reads_step: Result<bool, std::convert::Infallible> = fold(
            root,
            &mut memo,
            |e, parts| {
                let same_step = matches!(e.kind(), ExprKind::Load(t, _) if states.contains(t) || intermediate.contains(t));
                Ok(same_step || parts.iter().any(|&part| part))
            },
        );
        if let Ok(true) = reads_step {
            collect_reads(root, stage, states, intermediate, &memo, &mut reads);
        }
    }
    (reads, axes)
}

fn collect_reads(
    root: &Expr,
    stage: &Compute,
    states: &[Tensor],
    intermediate: &[Tensor],
    reading: &FxHashMap<usize, bool>,
    reads: &mut Vec<UnprovedRead>,
) {
    let mut stack: Vec<(Expr, Option<Expr>)> = vec![(root.clone(), None)];
    let (mut seen, mut kept_alive) = (FxHashSet::default(), Vec::new());
    while let Some((e, condition)) = stack.pop() {
        // Beyond the limit, a read is checked as if it were unconditional.
        let condition = condition.filter(|_| seen.len() < MAX_CONDITIONS);
        let key = (e.id(), condition.as_ref().map(Expr::id));
        kept_alive.extend(condition.clone());
        if !reading.get(&e.id()).is_some_and(|&r| r) || !seen.insert(key) {
            continue;
        }
        let with_condition =
            |cond: Expr| Some(condition.as_ref().map_or(cond.clone(), |g| and(g, &cond)));
        match e.kind() {
            ExprKind::Select(cond, yes, no) => {
                stack.push((yes.clone(), with_condition(cond.clone())));
                stack.push((no.clone(), with_condition(not(cond))));
                stack.push((cond.clone(), condition));
                continue;
            }
            ExprKind::Call(Intrin::IfThenElse, args) if args.len() == 3 => {
                stack.push((args[1].clone(), with_condition(args[0].clone())));
                stack.push((args[2].clone(), with_condition(not(&args[0]))));
                stack.push((args[0].clone(), condition));
                continue;
            }
            ExprKind::Load(t, at) if states.contains(t) || intermediate.contains(t) => {
                let (same_step, offset) = (!states.contains(t), distance(stage, at));
                let known =
                    if same_step { offset == Some(0) } else { offset.is_some_and(|d| d < 0) };
                if !known && !at.is_empty() {
                    let (step, condition) = (at[0].clone(), condition.clone());
                    reads.push(UnprovedRead { step, condition, same_step });
                }
            }
            _ => {}
        }
        stack.extend(e.children().into_iter().map(|part| (part.clone(), condition.clone())));
    }
}
