//! Finds the reads inside a scan that may access a step that is not computed yet. Reads that cannot
//! be proved to be correct are checked when the scan runs.

use pliant_ir::tir::Intrin;
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::{Expr, ExprKind, IterVar};
use super::expr_builders::{and, le, lt, not, or};
use super::sym_conversion::simplify;
use super::tensor::{Compute, Tensor};
use super::traversal::fold;

/// The maximum number of pairs of a subexpression and its condition that are distinguished.
const MOST_CONDITIONS: usize = 4096;

/// A read of a state, or of an intermediate stage, at a step that is not proved to be computed
/// already.
pub(super) struct Read {
    /// The index of the step that is read.
    place: Expr,
    /// The condition under which the value is read. `None` if it is always read.
    given: Option<Expr>,
    /// Whether the reader's own step may be read, because the stages of one step are computed in
    /// order.
    own: bool,
}

impl Read {
    /// The condition that the step has been computed when the reader computes step `t`.
    /// Intermediate stages begin at step `first`.
    pub(super) fn in_time(&self, t: &Expr, first: &Expr) -> Expr {
        let early = match self.own {
            true => and(&le(first, &self.place), &le(&self.place, t)),
            false => lt(&self.place, t),
        };
        match &self.given {
            Some(given) => or(&not(given), &early),
            None => early,
        }
    }
}

/// The constant distance between the step read and the reader's own step, or `None` if it is not
/// constant.
pub(super) fn distance(stage: &Compute, at: &[Expr]) -> Option<i64> {
    simplify(&(at.first()? - &stage.axes[0].var.expr())).as_int()
}

/// The reads of a stage that are not proved to be in time, and the axes that the stage reduces.
pub(super) type OpenReads<'s> = (Vec<Read>, &'s [IterVar]);

/// The [`OpenReads`] of a stage.
pub(super) fn open_reads<'s>(
    stage: &'s Compute,
    states: &[Tensor],
    between: &[Tensor],
) -> OpenReads<'s> {
    let (roots, axes) = match stage.body.kind() {
        ExprKind::Reduce(r) => {
            let roots = std::iter::once(&r.source).chain(&r.init).cloned().collect();
            (roots, &r.axes[..])
        }
        _ => (vec![stage.body.clone()], &[][..]),
    };
    let (mut reads, mut memo) = (Vec::new(), FxHashMap::default());
    for root in &roots {
        // Only the subexpressions that read a step are walked, because shared subexpressions can
        // occur under many conditions.
        let found: Result<bool, std::convert::Infallible> = fold(root, &mut memo, |e, parts| {
            let own = matches!(e.kind(), ExprKind::Load(t, _) if states.contains(t) || between.contains(t));
            Ok(own || parts.iter().any(|&part| part))
        });
        if let Ok(true) = found {
            walk(root, stage, states, between, &memo, &mut reads);
        }
    }
    (reads, axes)
}

fn walk(
    root: &Expr,
    stage: &Compute,
    states: &[Tensor],
    between: &[Tensor],
    reading: &FxHashMap<usize, bool>,
    reads: &mut Vec<Read>,
) {
    let mut stack: Vec<(Expr, Option<Expr>)> = vec![(root.clone(), None)];
    let (mut seen, mut kept) = (FxHashSet::default(), Vec::new());
    while let Some((e, given)) = stack.pop() {
        // Beyond the limit, a read is checked as if it were unconditional.
        let given = given.filter(|_| seen.len() < MOST_CONDITIONS);
        let key = (e.id(), given.as_ref().map(Expr::id));
        kept.extend(given.clone());
        if !reading.get(&e.id()).is_some_and(|&r| r) || !seen.insert(key) {
            continue;
        }
        let under = |cond: Expr| Some(given.as_ref().map_or(cond.clone(), |g| and(g, &cond)));
        match e.kind() {
            ExprKind::Select(cond, yes, no) => {
                stack.push((yes.clone(), under(cond.clone())));
                stack.push((no.clone(), under(not(cond))));
                stack.push((cond.clone(), given));
                continue;
            }
            ExprKind::Call(Intrin::IfThenElse, args) if args.len() == 3 => {
                stack.push((args[1].clone(), under(args[0].clone())));
                stack.push((args[2].clone(), under(not(&args[0]))));
                stack.push((args[0].clone(), given));
                continue;
            }
            ExprKind::Load(t, at) if states.contains(t) || between.contains(t) => {
                let (own, far) = (!states.contains(t), distance(stage, at));
                let known = if own { far == Some(0) } else { far.is_some_and(|d| d < 0) };
                if !known && !at.is_empty() {
                    let (place, given) = (at[0].clone(), given.clone());
                    reads.push(Read { place, given, own });
                }
            }
            _ => {}
        }
        stack.extend(e.children().into_iter().map(|part| (part.clone(), given.clone())));
    }
}
