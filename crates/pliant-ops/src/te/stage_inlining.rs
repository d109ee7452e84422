//! Inlines injective stages into their readers, so that a chain of formulas needs no temporaries.

use rustc_hash::{FxHashMap, FxHashSet};

use super::create_prim_func::stages_of;
use super::expr::{Expr, ExprKind, Var};
use super::expr_builders::with_children;
use super::expr_traversal::{fold, substitute, tree_size};
use super::tensor::{Tensor, TensorOp};

/// The maximum number of terms of a stage after inlining, written out as a tree. Each use repeats
/// the inlined formula, so without a limit formulas that read the previous stage twice would double
/// in size at each stage.
const MAX_INLINED: u64 = 4_000;

/// Inlines every stage that has no reduction and no check and is not an output itself, and returns
/// the rewritten outputs. Each stage that reads an inlined stage recomputes it, so this is only
/// useful for cheap formulas. A stage is not inlined if its readers would become too large.
pub fn inline_injective(outputs: &[Tensor]) -> Vec<Tensor> {
    let outputs_kept: FxHashSet<&Tensor> = outputs.iter().collect();
    let mut rewritten: FxHashMap<Tensor, RewrittenStage> = FxHashMap::default();
    for stage in stages_of(outputs) {
        let Some(compute) = stage.as_compute() else { continue };
        let mut new = compute.clone();
        new.body = inline_into(&compute.body, &rewritten, &outputs_kept);
        for check in &mut new.checks {
            check.cond = inline_into(&check.cond, &rewritten, &outputs_kept);
        }
        let same = new.body.same_as(&compute.body)
            && new.checks.iter().zip(&compute.checks).all(|(a, b)| a.cond.same_as(&b.cond));
        let tensor = if same { stage.clone() } else { stage.with_op(TensorOp::Compute(new)) };
        let terms = tensor.as_compute().map_or(1, |c| tree_size(&c.body));
        rewritten.insert(stage, RewrittenStage { tensor, terms });
    }
    outputs.iter().map(|t| rewritten.get(t).map_or(t, |r| &r.tensor).clone()).collect()
}

/// A stage after its producers have been inlined, with the number of terms of its formula.
struct RewrittenStage {
    tensor: Tensor,
    terms: u64,
}

type RewrittenStages = FxHashMap<Tensor, RewrittenStage>;

/// Inlines stages into an expression with [`inline_below`]. The bound on the size of each inlined formula is lowered until the
/// result has at most [`MAX_INLINED`] terms.
fn inline_into(e: &Expr, rewritten: &RewrittenStages, outputs_kept: &FxHashSet<&Tensor>) -> Expr {
    let mut max_terms = MAX_INLINED;
    loop {
        let inlined = inline_below(e, rewritten, outputs_kept, max_terms);
        if max_terms == 0 || tree_size(&inlined) <= MAX_INLINED {
            return inlined;
        }
        max_terms /= 4;
    }
}

/// Replaces loads of injective stages by their formulas, and redirects loads of other stages to the rewritten stages. Formulas of
/// more than `max_terms` terms are not inlined.
fn inline_below(
    e: &Expr,
    rewritten: &RewrittenStages,
    outputs_kept: &FxHashSet<&Tensor>,
    max_terms: u64,
) -> Expr {
    let mut memo = FxHashMap::default();
    let result: Result<Expr, std::convert::Infallible> =
        fold(e, &mut memo, |e, children: &[Expr]| {
            let ExprKind::Load(tensor, _) = e.kind() else { return Ok(with_children(e, children)) };
            let Some(RewrittenStage { tensor: new, terms }) = rewritten.get(tensor) else {
                return Ok(with_children(e, children));
            };
            let Some(stage) = new.as_compute() else { return Ok(new.at(children)) };
            let reduces = matches!(stage.body.kind(), ExprKind::Reduce(_));
            let fits = stage.axes.len() == children.len() && *terms <= max_terms;
            if reduces || !stage.checks.is_empty() || outputs_kept.contains(tensor) || !fits {
                return Ok(if new == tensor {
                    with_children(e, children)
                } else {
                    new.at(children)
                });
            }
            let map: FxHashMap<Var, Expr> =
                stage.axes.iter().map(|a| a.var.clone()).zip(children.iter().cloned()).collect();
            Ok(substitute(&stage.body, &map))
        });
    match result {
        Ok(e) => e,
    }
}
