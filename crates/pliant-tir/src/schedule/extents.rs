//! Clamps extents that may be negative: a loop with extent `n - 2` has no iterations if `n` is 1. Schedules divide
//! extents into vectors, tiles and chunks, which is correct only for non-negative extents, so others become
//! `T.max(extent, 0)`.

use pliant_ir::tir::{BinOp, BlockData, Expr, ExprData, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashSet;

use crate::check_bounds::listed_unbounded;
use crate::guards;
use crate::index_facts::IndexFacts;
use crate::walk::children;

/// Clamps every extent that is not proved to be non-negative.
pub(super) fn clamp(f: &mut PrimFunc) {
    let unbounded = listed_unbounded(f);
    let mut clamp =
        Clamp { facts: IndexFacts::at_entry(f, &unbounded), negative: FxHashSet::default() };
    clamp.find(f, f.body);
    if !clamp.negative.is_empty() {
        f.body = clamp.stmt(f, f.body);
    }
}

struct Clamp {
    facts: IndexFacts,
    /// Extents that may be negative somewhere. A loop and the block axis bound to it have the same extent, and this
    /// must stay so; therefore an extent is clamped everywhere or nowhere.
    negative: FxHashSet<Expr>,
}

impl Clamp {
    fn extent(&mut self, f: &PrimFunc, extent: Expr) {
        if !self.facts.never_negative(f, extent) {
            self.negative.insert(extent);
        }
    }

    /// Collects the extents that may be negative. Only facts that hold in front of a loop nest count: schedules reorder the loops
    /// of a nest and move statements out of it, so an extent must not rely on another loop having an iteration. The dims of
    /// allocated buffers prove nothing either: schedules drop allocations, and with them the checks of their dims.
    fn find(&mut self, f: &PrimFunc, s: Stmt) {
        let mark = self.facts.mark();
        let guards_a_block = matches!(f.stmt(guards::unwrap(f, s).1), StmtData::Block(_));
        match f.stmt(s) {
            StmtData::For { extent, .. } => self.extent(f, *extent),
            StmtData::Let(var, value, _) if !guards_a_block => self.facts.bound(f, *var, *value),
            StmtData::Assert(condition, ..) if !guards_a_block => {
                self.facts.assume(f, *condition, true);
            }
            StmtData::Block(b) => {
                for iter in &b.iters {
                    self.extent(f, iter.extent);
                }
            }
            _ => {}
        }
        for s in children(f.stmt(s)) {
            self.find(f, s);
        }
        self.facts.reset(mark);
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
        crate::walk::map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
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
