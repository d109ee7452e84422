//! Folding injective stages into their readers, so that a chain of formulas needs no temporaries.

use rustc_hash::{FxHashMap, FxHashSet};

use super::build::with_children;
use super::create::stages_of;
use super::expr::{Expr, ExprKind, Var};
use super::tensor::{Tensor, TensorOp};
use super::walk::{fold, substitute};

/// The outputs with every stage folded in that has no reduction and no check and is not an output itself.
/// Stages that are read more than once are recomputed by each reader, so this is for cheap formulas.
pub fn inline_injective(outputs: &[Tensor]) -> Vec<Tensor> {
    let kept: FxHashSet<&Tensor> = outputs.iter().collect();
    let mut rewritten: FxHashMap<Tensor, Tensor> = FxHashMap::default();
    for stage in stages_of(outputs) {
        let Some(compute) = stage.as_compute() else { continue };
        let mut new = compute.clone();
        new.body = inline_into(&compute.body, &rewritten, &kept);
        for check in &mut new.checks {
            check.cond = inline_into(&check.cond, &rewritten, &kept);
        }
        let same = new.body.same_as(&compute.body)
            && new.checks.iter().zip(&compute.checks).all(|(a, b)| a.cond.same_as(&b.cond));
        let tensor = if same { stage.clone() } else { stage.with_op(TensorOp::Compute(new)) };
        rewritten.insert(stage, tensor);
    }
    outputs.iter().map(|t| rewritten.get(t).unwrap_or(t).clone()).collect()
}

/// The expression with loads of injective stages replaced by their formulas, and of others by their new stage.
fn inline_into(e: &Expr, done: &FxHashMap<Tensor, Tensor>, kept: &FxHashSet<&Tensor>) -> Expr {
    let mut memo = FxHashMap::default();
    let result: Result<Expr, std::convert::Infallible> =
        fold(e, &mut memo, |e, children: &[Expr]| {
            let ExprKind::Load(tensor, _) = e.kind() else { return Ok(with_children(e, children)) };
            let Some(new) = done.get(tensor) else { return Ok(with_children(e, children)) };
            let Some(stage) = new.as_compute() else { return Ok(new.at(children)) };
            let reduces = matches!(stage.body.kind(), ExprKind::Reduce(_));
            let fits = stage.axes.len() == children.len();
            if reduces || !stage.checks.is_empty() || kept.contains(tensor) || !fits {
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
