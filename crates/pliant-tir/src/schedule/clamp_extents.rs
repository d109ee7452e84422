//! Clamps loop extents that may be negative to 0. For example, a loop with extent `n - 2` has no iterations if `n` is 1.
//! Schedules divide extents into vectors, tiles and chunks, which is correct only for non-negative extents. Extents that may be
//! negative therefore become `T.max(extent, 0)`.

use pliant_ir::tir::{BinOp, BlockData, Expr, ExprData, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashSet;

use crate::access_guards;
use crate::check_bounds::recorded_unbounded_params;
use crate::index_range_analysis::IndexFacts;
use crate::statement_traversal::children;

/// Replaces every loop extent that is not provably non-negative by `T.max(extent, 0)`.
pub(super) fn clamp(f: &mut PrimFunc) {
    let unbounded = recorded_unbounded_params(f);
    let mut clamper = ExtentClamper {
        facts: IndexFacts::at_entry(f, &unbounded),
        negative: FxHashSet::default(),
    };
    clamper.find_negative(f, f.body);
    if !clamper.negative.is_empty() {
        f.body = clamper.stmt(f, f.body);
    }
}

struct ExtentClamper {
    facts: IndexFacts,
    /// Extents that are not provably non-negative at every loop and block axis that uses them. All these loops and axes clamp the
    /// extent to 0, because a loop and the block axis that is bound to it must keep equal extents.
    negative: FxHashSet<Expr>,
}

impl ExtentClamper {
    fn check_extent(&mut self, f: &PrimFunc, extent: Expr) {
        if !self.facts.is_non_negative(f, extent) {
            self.negative.insert(extent);
        }
    }

    /// Collects the extents that may be negative. Proofs only use facts that hold in front of a loop nest: schedules reorder the
    /// loops of a nest and move statements out of it, so a proof must not assume that another loop has an iteration. Proofs do
    /// not use the dims of allocated buffers, because schedules remove allocations and thereby the checks of their dims.
    fn find_negative(&mut self, f: &PrimFunc, s: Stmt) {
        let snapshot = self.facts.snapshot();
        let guards_a_block =
            matches!(f.stmt(access_guards::split_guards(f, s).1), StmtData::Block(_));
        match f.stmt(s) {
            StmtData::For { extent, .. } => self.check_extent(f, *extent),
            StmtData::Let(var, value, _) if !guards_a_block => {
                self.facts.assume_binding(f, *var, *value)
            }
            StmtData::Assert(condition, ..) if !guards_a_block => {
                self.facts.assume(f, *condition, true);
            }
            StmtData::Block(b) => {
                for iter in &b.iters {
                    self.check_extent(f, iter.extent);
                }
            }
            _ => {}
        }
        for s in children(f.stmt(s)) {
            self.find_negative(f, s);
        }
        self.facts.restore(snapshot);
    }

    fn clamped(&self, f: &mut PrimFunc, extent: Expr) -> Expr {
        if !self.negative.contains(&extent) {
            return extent;
        }
        let zero = f.add_expr(ExprData::Int(0, f.expr_ty(extent)));
        match f.as_int(extent) {
            Some(_) => zero,
            None => f.binary(BinOp::Max, extent, zero),
        }
    }

    fn stmt(&self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        crate::statement_traversal::map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let new = self.clamped(f, extent);
                (new != extent).then(|| {
                    f.add_stmt(StmtData::For { var, min, extent: new, kind, body, annotations })
                })
            }
            StmtData::Block(b) => {
                let mut b: BlockData = *b;
                let mut changed = false;
                for iter in &mut b.iters {
                    let new = self.clamped(f, iter.extent);
                    changed |= new != iter.extent;
                    iter.extent = new;
                }
                changed.then(|| f.add_stmt(StmtData::Block(Box::new(b))))
            }
            _ => None,
        })
    }
}
