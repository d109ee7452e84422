//! Sizes that are computed and may turn out to be negative: the loop function checks them before anything else.
//!
//! Loops over no elements at all are right at size 0 and meaningless below it, and what is fused into a function is
//! allocated nowhere, so nothing else would notice.

use pliant_ir::SymArena;
use pliant_sym::{Analyzer, Facts, Sym};
use pliant_tensor::Failed;
use rustc_hash::FxHashSet;

use super::bridge::{VarMap, to_sym};
use super::build::{explain, ge, int};
use super::expr::{Expr, ExprKind, Var};
use super::tensor::{Check, Tensor, TensorOp};
use super::walk::{free_vars, post_order};

/// Checks of the dims of results and of the extents of reductions that are not provably at least 0. Variables are
/// sizes; what is a dim of an operand has been one already.
pub(crate) fn checks(args: &[Tensor], stages: &[Tensor]) -> Vec<Check> {
    let mut found =
        Finder { arena: SymArena::new(), vars: VarMap::new(), known: FxHashSet::default() };
    for t in args.iter().filter(|t| t.is_placeholder()) {
        for dim in t.shape() {
            let sym = to_sym(&mut found.arena, dim, &mut found.vars);
            found.known.extend(sym);
        }
    }
    let mut list = Vec::new();
    for t in args.iter().filter(|t| !t.is_placeholder()) {
        for (k, dim) in t.shape().iter().enumerate() {
            list.extend(found.check(dim, &[], || format!("dim {k} of {}", t.name())));
        }
    }
    for t in stages {
        let TensorOp::Compute(stage) = t.op() else { continue };
        let mut own: Vec<Var> = stage.axes.iter().map(|a| a.var.clone()).collect();
        post_order(&stage.body, |e| {
            let ExprKind::Reduce(reduce) = e.kind() else { return };
            own.extend(reduce.axes.iter().map(|a| a.var.clone()));
            for axis in &reduce.axes {
                list.extend(
                    found.check(&axis.extent, &own, || format!("axis {}", axis.var.name())),
                );
            }
        });
    }
    list
}

struct Finder {
    arena: SymArena,
    vars: VarMap,
    known: FxHashSet<Sym>,
}

impl Finder {
    /// The check of a size, unless it needs none or is not the same everywhere: over loop variables of `own`.
    fn check(&mut self, size: &Expr, own: &[Var], what: impl FnOnce() -> String) -> Option<Check> {
        if matches!(size.kind(), ExprKind::Int(_) | ExprKind::Var(_))
            || free_vars(size).iter().any(|v| own.contains(v))
        {
            return None;
        }
        let sym = to_sym(&mut self.arena, size, &mut self.vars)?;
        if !self.known.insert(sym) {
            return None;
        }
        let mut facts = Facts::new();
        for var in self.arena.free_vars(sym) {
            facts.assume_size(var);
        }
        let zero = self.arena.int(0);
        if Analyzer::new(&mut self.arena, &facts).prove_le(zero, sym).is_yes() {
            return None;
        }
        let cond = explain(&ge(size, &int(0)), std::slice::from_ref(size));
        let message = Failed::Shape.mark(&format!("{}, {size} = {{0}}, is negative", what()));
        Some(Check { axes: Vec::new(), cond, message: message.into() })
    }
}
