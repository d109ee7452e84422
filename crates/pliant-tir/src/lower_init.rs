//! LowerInitBlock: turns the init of a block into separate statements.
//!
//! If only loops are between the outermost reduction loop and the block, and the init does not depend on them, it moves in front of
//! that loop, into its own loops over the spatial axes. Otherwise it runs in the block at the first values of all reduction axes,
//! and once more in front of the loop under the condition that a reduction axis has no values, provided that this condition does
//! not depend on the loops. In both cases the result of an empty reduction is the reducer's identity.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, BlockData, BufferRegion, Expr, ExprData, Intrin, IterKind, IterVar, PrimFunc, Stmt,
    StmtData, Var,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::check_bounds::listed_unbounded;
use crate::error::LowerError;
use crate::index_facts::IndexFacts;
use crate::walk::{for_each_stmt, map_children, own_exprs, substitute, substitute_expr, uses_any};

/// Lowers the init of every block.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = lower(f, body, &mut Vec::new());
    Ok(())
}

/// A loop around a statement.
#[derive(Clone, Copy)]
struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
}

fn lower(f: &mut PrimFunc, s: Stmt, outer: &mut Vec<Loop>) -> Stmt {
    let depth = outer.len();
    let (s, mut before) = match f.stmt(s).clone() {
        StmtData::For { var, min, extent, .. } => {
            let mut before = Vec::new();
            let s = reductions(f, s, var, outer, &mut before);
            outer.push(Loop { var, min, extent });
            (s, before)
        }
        // No enclosing loop runs over the block's reduction axes.
        StmtData::Block(b) if b.init.is_some() => (in_place(f, *b), Vec::new()),
        _ => (s, Vec::new()),
    };
    let s = map_children(f, s, &mut |f, s| lower(f, s, outer));
    outer.truncate(depth);
    if before.is_empty() {
        return s;
    }
    before.push(s);
    f.seq(before)
}

/// Lowers the init of all blocks under the loop `s` for which it is the outermost reduction loop. Statements that must run before
/// the loop are added to `before`. `outer` holds the enclosing loops.
fn reductions(f: &mut PrimFunc, s: Stmt, var: Var, outer: &[Loop], before: &mut Vec<Stmt>) -> Stmt {
    let mut paths = Vec::new();
    find(f, s, var, &mut Vec::new(), true, &mut paths);
    let mut lowered = FxHashMap::default();
    for Found { block, path, alone } in paths {
        let StmtData::Block(b) = f.stmt(block).clone() else { continue };
        let site = Site::new(f, *b, path, outer);
        let data = site.block.clone();
        let new = if alone && site.can_move(f) {
            before.push(site.init(f));
            f.add_stmt(StmtData::Block(Box::new(BlockData { init: None, ..data })))
        } else {
            if site.has_own_loops(f) {
                before.extend(site.init_when_empty(f));
            }
            in_place(f, data)
        };
        lowered.insert(block, new);
    }
    if lowered.is_empty() { s } else { replace(f, s, &lowered) }
}

/// A block with an init, and the loops, lets and assertions from the reduction loop down to it.
struct Found {
    block: Stmt,
    path: Vec<Stmt>,
    /// Whether the path consists only of loops.
    alone: bool,
}

fn find(f: &PrimFunc, s: Stmt, var: Var, path: &mut Vec<Stmt>, alone: bool, out: &mut Vec<Found>) {
    match f.stmt(s) {
        StmtData::Seq(list) => {
            let alone = alone && list.len() == 1;
            list.iter().for_each(|&s| find(f, s, var, path, alone, out));
        }
        StmtData::For { body, .. } | StmtData::Let(_, _, body) | StmtData::Assert(_, _, body) => {
            path.push(s);
            let alone = alone && matches!(f.stmt(s), StmtData::For { .. });
            find(f, *body, var, path, alone, out);
            path.pop();
        }
        StmtData::Block(b) if b.init.is_some() && reduces_over(f, b, &|v| v == var) => {
            out.push(Found { block: s, path: path.clone(), alone });
        }
        _ => {}
    }
}

fn reduce_axes(b: &BlockData) -> impl Iterator<Item = &IterVar> {
    b.iters.iter().filter(|i| i.kind == IterKind::Reduce)
}

fn reduces_over(f: &PrimFunc, b: &BlockData, var: &dyn Fn(Var) -> bool) -> bool {
    reduce_axes(b).any(|i| uses_any(f, i.binding, var))
}

fn replace(f: &mut PrimFunc, s: Stmt, map: &FxHashMap<Stmt, Stmt>) -> Stmt {
    match map.get(&s) {
        Some(&new) => new,
        None => map_children(f, s, &mut |f, s| replace(f, s, map)),
    }
}

/// The block with its init in the body, under the condition that all reduction axes are at their first values.
fn in_place(f: &mut PrimFunc, mut b: BlockData) -> Stmt {
    let init = b.init.take().expect("the caller looked");
    let mut condition = None;
    for iter in reduce_axes(&b) {
        let v = f.var_expr(iter.var);
        let first = f.binary(BinOp::Eq, v, iter.min);
        condition = Some(join(f, BinOp::And, condition, first));
    }
    let init = match condition {
        Some(c) => f.add_stmt(StmtData::If(c, init, None)),
        None => init,
    };
    b.body = f.add_stmt(StmtData::Seq(vec![init, b.body]));
    f.add_stmt(StmtData::Block(Box::new(b)))
}

/// Whether an expression neither reads memory nor calls a function.
fn is_arithmetic(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| {
        found |= matches!(
            f.expr(e),
            ExprData::Load(..)
                | ExprData::Call(
                    Intrin::CallExtern
                        | Intrin::CallPacked
                        | Intrin::CallKernel
                        | Intrin::AddressOf,
                    ..
                )
        );
    });
    !found
}

fn join(f: &mut PrimFunc, op: BinOp, a: Option<Expr>, b: Expr) -> Expr {
    match a {
        Some(a) => f.binary(op, a, b),
        None => b,
    }
}

/// A block under its outermost reduction loop.
struct Site<'a> {
    block: BlockData,
    path: Vec<Stmt>,
    /// The loops around the path, outermost first.
    outer: &'a [Loop],
    /// The variables of the reduction loops on the path, and of the reduction axes.
    reduced: FxHashSet<Var>,
}

impl<'a> Site<'a> {
    fn new(f: &PrimFunc, block: BlockData, path: Vec<Stmt>, outer: &'a [Loop]) -> Site<'a> {
        let mut reduced: FxHashSet<Var> = reduce_axes(&block).map(|i| i.var).collect();
        for &s in &path {
            if let StmtData::For { var, .. } = f.stmt(s)
                && reduces_over(f, &block, &|v| v == *var)
            {
                reduced.insert(*var);
            }
        }
        Site { block, path, outer, reduced }
    }

    fn uses_reduced(&self, f: &PrimFunc, e: Expr) -> bool {
        uses_any(f, e, &|v| self.reduced.contains(&v))
    }

    /// Whether everything but the reduction is independent of the reduction loops. Lets that read memory or call functions count as
    /// dependent: their values exist only if the reduction loops have an iteration.
    fn has_own_loops(&self, f: &PrimFunc) -> bool {
        let path = self.path.iter().all(|&s| match f.stmt(s) {
            StmtData::For { var, min, extent, .. } => {
                self.reduced.contains(var)
                    || !self.uses_reduced(f, *min) && !self.uses_reduced(f, *extent)
            }
            StmtData::Let(_, value, _) => !self.uses_reduced(f, *value) && is_arithmetic(f, *value),
            StmtData::Assert(..) => true,
            _ => false,
        });
        path && self.block.iters.iter().all(|i| {
            let own = i.kind == IterKind::Reduce || !self.uses_reduced(f, i.binding);
            own && !self.uses_reduced(f, i.min) && !self.uses_reduced(f, i.extent)
        })
    }

    /// Whether, for each point of the spatial axes, the reduction axes are at their first values in the first iteration of their
    /// loops and in no other. This holds if each spatial axis is a loop variable or does not change along the path, each reduction
    /// axis is a loop variable or a sum of multiples of loop variables that count from 0, and each loop of the path belongs to an
    /// axis.
    fn starts_once(&self, f: &PrimFunc) -> bool {
        let loops: Vec<Var> = self
            .path
            .iter()
            .filter_map(
                |&s| if let StmtData::For { var, .. } = f.stmt(s) { Some(*var) } else { None },
            )
            .collect();
        let on_path = |v: Var| loops.contains(&v);
        let spatial = |i: &IterVar| {
            i.kind == IterKind::Reduce
                || matches!(f.expr(i.binding), ExprData::Var(_))
                || !uses_any(f, i.binding, &on_path)
        };
        let used = |v: Var| self.block.iters.iter().any(|i| uses_any(f, i.binding, &|x| x == v));
        if !self.block.iters.iter().all(spatial) || !loops.iter().all(|&v| used(v)) {
            return false;
        }
        let first = |v: Var| {
            self.path.iter().find_map(|&s| match *f.stmt(s) {
                StmtData::For { var, min, .. } if var == v => Some(min),
                _ => None,
            })
        };
        reduce_axes(&self.block).all(|iter| {
            if let ExprData::Var(v) = *f.expr(iter.binding) {
                return first(v) == Some(iter.min);
            }
            let mut plain = f.as_int(iter.min) == Some(0);
            for_each_expr(f, iter.binding, |e| {
                plain &= match *f.expr(e) {
                    ExprData::Var(v) if self.reduced.contains(&v) => {
                        first(v).is_some_and(|min| f.as_int(min) == Some(0))
                    }
                    ExprData::Int(n, _) => n > 0,
                    ExprData::Binary(op, a, b) => {
                        let reduced = [a, b].map(|e| self.uses_reduced(f, e));
                        match op {
                            BinOp::Add => reduced == [true, true],
                            BinOp::Mul => {
                                reduced != [true, true]
                                    && [a, b].iter().any(|&e| f.as_int(e).is_some())
                            }
                            _ => false,
                        }
                    }
                    _ => false,
                }
            });
            plain
        })
    }

    /// Whether the init may run for all values of the spatial axes before the body runs for any of them.
    fn can_move(&self, f: &PrimFunc) -> bool {
        let Some(init) = self.block.init else { return false };
        let mut loads = false;
        for_each_stmt(f, init, &mut |_, data| {
            own_exprs(data, |e| {
                for_each_expr(f, e, |e| loads |= matches!(f.expr(e), ExprData::Load(..)));
            });
        });
        self.has_own_loops(f)
            && self.starts_once(f)
            && !loads
            && self.block.allocs.is_empty()
            && !self.block.predicate.is_some_and(|p| self.uses_reduced(f, p))
    }

    /// Whether a spatial axis is in its range even if the reduction loops have no iteration.
    fn in_range(&self, f: &mut PrimFunc, iter: &IterVar) -> bool {
        let own = self.path.iter().filter_map(|&s| match *f.stmt(s) {
            StmtData::For { var, min, extent, .. } if !self.reduced.contains(&var) => {
                Some(Loop { var, min, extent })
            }
            _ => None,
        });
        let loops: Vec<Loop> = self.outer.iter().copied().chain(own).collect();
        if let ExprData::Var(v) = *f.expr(iter.binding)
            && loops.iter().any(|l| (l.var, l.min, l.extent) == (v, iter.min, iter.extent))
        {
            return true;
        }
        let unbounded = listed_unbounded(f);
        let mut facts = IndexFacts::at_entry(f, &unbounded);
        loops.iter().for_each(|l| facts.range(f, l.var, l.min, l.extent));
        facts.inside(f, iter.binding, iter.min, iter.extent).is_none()
    }

    /// The init under the spatial loops, lets and assertions. It runs only for spatial axes that are in their range: if the
    /// reduction loops have no iteration, no other statement has checked this.
    fn init(&self, f: &mut PrimFunc) -> Stmt {
        let b = &self.block;
        let mut map: FxHashMap<Var, Expr> = FxHashMap::default();
        let mut fresh = FxHashMap::default();
        for s in self.path.clone() {
            if let StmtData::For { var, .. } | StmtData::Let(var, ..) = *f.stmt(s)
                && !self.reduced.contains(&var)
            {
                let data = f.var(var).clone();
                let v = f.add_var(data.name, data.ty);
                fresh.insert(var, v);
                map.insert(var, f.var_expr(v));
            }
        }
        let mut iters = Vec::new();
        let mut predicate = b.predicate.filter(|&p| !self.uses_reduced(f, p));
        for i in &b.iters {
            let [min, extent] = [i.min, i.extent].map(|e| substitute_expr(f, e, &map));
            if i.kind == IterKind::Reduce {
                map.insert(i.var, min);
                continue;
            }
            let binding = substitute_expr(f, i.binding, &map);
            if !self.in_range(f, i) {
                let end = f.add(min, extent);
                let (low, high) =
                    (f.binary(BinOp::Ge, binding, min), f.binary(BinOp::Lt, binding, end));
                predicate = Some(join(f, BinOp::And, predicate, low));
                predicate = Some(join(f, BinOp::And, predicate, high));
            }
            let data = f.var(i.var).clone();
            let var = f.add_var(data.name, data.ty);
            map.insert(i.var, f.var_expr(var));
            iters.push(IterVar { var, min, extent, kind: i.kind, binding });
        }
        let init = b.init.expect("the site is of a block with an init");
        let body = substitute(f, init, &map);
        let mut writes = b.writes.clone();
        for BufferRegion { region, .. } in writes.iter_mut().flatten() {
            for (start, extent) in region {
                *start = substitute_expr(f, *start, &map);
                *extent = substitute_expr(f, *extent, &map);
            }
        }
        let data = BlockData {
            name: format!("{}_init", b.name).into(),
            iters,
            predicate: predicate.map(|p| substitute_expr(f, p, &map)),
            reads: None,
            writes,
            allocs: Vec::new(),
            init: None,
            body,
            annotations: Vec::new(),
        };
        let block = f.add_stmt(StmtData::Block(Box::new(data)));
        self.wrap(f, block, &fresh, &map)
    }

    /// The spatial loops, lets and assertions of the path around a statement.
    fn wrap(
        &self,
        f: &mut PrimFunc,
        mut body: Stmt,
        fresh: &FxHashMap<Var, Var>,
        map: &FxHashMap<Var, Expr>,
    ) -> Stmt {
        for &s in self.path.iter().rev() {
            let data = match f.stmt(s).clone() {
                StmtData::For { var, min, extent, kind, .. } if fresh.contains_key(&var) => {
                    let min = substitute_expr(f, min, map);
                    let extent = substitute_expr(f, extent, map);
                    let annotations = Vec::new();
                    StmtData::For { var: fresh[&var], min, extent, kind, body, annotations }
                }
                StmtData::Let(var, value, _) if fresh.contains_key(&var) => {
                    StmtData::Let(fresh[&var], substitute_expr(f, value, map), body)
                }
                StmtData::Assert(condition, message, _) if !self.uses_reduced(f, condition) => {
                    StmtData::Assert(substitute_expr(f, condition, map), message, body)
                }
                _ => continue,
            };
            body = f.add_stmt(data);
        }
        body
    }

    /// The init under the condition that a reduction axis has no values; `None` if no axis can be empty, or if the condition
    /// depends on loops of the path.
    fn init_when_empty(&self, f: &mut PrimFunc) -> Option<Stmt> {
        let bound = self.path.clone().into_iter().filter_map(|s| match *f.stmt(s) {
            StmtData::For { var, .. } | StmtData::Let(var, ..) => Some(var),
            _ => None,
        });
        let bound: FxHashSet<Var> = bound.collect();
        let mut empty = None;
        for i in reduce_axes(&self.block) {
            if uses_any(f, i.extent, &|v| bound.contains(&v)) {
                return None;
            }
            if f.as_int(i.extent).is_none_or(|n| n <= 0) {
                let zero = f.add_expr(ExprData::Int(0, f.expr_ty(i.extent)));
                let none = f.binary(BinOp::Le, i.extent, zero);
                empty = Some(join(f, BinOp::Or, empty, none));
            }
        }
        let empty = empty?;
        let init = self.init(f);
        Some(f.add_stmt(StmtData::If(empty, init, None)))
    }
}
