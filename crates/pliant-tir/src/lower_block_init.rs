//! LowerInitBlock: lowers the init of each block, which initializes the result of a reduction, to separate statements.
//!
//! If only loops are between the outermost reduction loop and the block, and the init does not depend on the reduction
//! loops, the init is hoisted in front of the outermost reduction loop, into its own loops over the spatial axes.
//! Otherwise the init moves into the body of the block, under the condition that all reduction axes are at their first
//! values. In the latter case, a copy of the init is emitted in front of the reduction loops, which runs if a reduction
//! axis is empty. This requires that the emptiness of the axes does not depend on the loops. In both cases the result
//! of an empty reduction is the init value.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, BlockData, BufferRegion, Expr, ExprData, Intrin, IterKind, IterVar, PrimFunc, Stmt,
    StmtData, Var,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::check_bounds::recorded_unbounded_params;
use crate::index_range_analysis::IndexFacts;
use crate::lowering_error::LowerError;
use crate::statement_traversal::{
    direct_exprs, for_each_stmt, map_children, substitute, substitute_expr, uses_any,
};

/// Lowers the init of every block of a function to statements in front of the block's reduction loops or in the block's
/// body.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = lower(f, body, &mut Vec::new());
    Ok(())
}

/// A loop that encloses the current statement.
#[derive(Clone, Copy)]
struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
}

/// Moves the inits of all blocks in a statement in front of the reduction loops or into the bodies of the blocks.
/// `outer` lists the enclosing loops.
fn lower(f: &mut PrimFunc, s: Stmt, outer: &mut Vec<Loop>) -> Stmt {
    let depth = outer.len();
    let (s, mut before) = match f.stmt(s).clone() {
        StmtData::For { var, min, extent, .. } => {
            let mut before = Vec::new();
            let s = lower_inits(f, s, var, outer, &mut before);
            outer.push(Loop { var, min, extent });
            (s, before)
        }
        // No enclosing loop runs over the block's reduction axes.
        StmtData::Block(b) if b.init.is_some() => (init_in_body(f, *b), Vec::new()),
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

/// Lowers the inits of all blocks whose outermost reduction loop is the loop `s`. Appends statements that must run before the
/// loop to `before`. `outer` lists the enclosing loops.
fn lower_inits(
    f: &mut PrimFunc,
    s: Stmt,
    var: Var,
    outer: &[Loop],
    before: &mut Vec<Stmt>,
) -> Stmt {
    let mut blocks = Vec::new();
    find_init_blocks(f, s, var, &mut Vec::new(), true, &mut blocks);
    let mut lowered = FxHashMap::default();
    for InitBlock { block, path, only_loops } in blocks {
        let StmtData::Block(b) = f.stmt(block).clone() else { continue };
        let nest = ReductionNest::new(f, *b, path, outer);
        let data = nest.block.clone();
        let new = if only_loops && nest.can_hoist(f) {
            before.push(nest.hoisted_init(f));
            f.add_stmt(StmtData::Block(Box::new(BlockData { init: None, ..data })))
        } else {
            if nest.is_independent_of_reduction(f) {
                before.extend(nest.init_when_empty(f));
            }
            init_in_body(f, data)
        };
        lowered.insert(block, new);
    }
    if lowered.is_empty() { s } else { replace_stmts(f, s, &lowered) }
}

/// A block with an init, and the statements between it and its outermost reduction loop.
struct InitBlock {
    block: Stmt,
    /// The loops, lets and assertions from the outermost reduction loop down to the block.
    path: Vec<Stmt>,
    /// Whether only loops are between the outermost reduction loop and the block.
    only_loops: bool,
}

/// Finds the blocks with an init that have a reduction axis over the loop variable `var`.
fn find_init_blocks(
    f: &PrimFunc,
    s: Stmt,
    var: Var,
    path: &mut Vec<Stmt>,
    only_loops: bool,
    out: &mut Vec<InitBlock>,
) {
    match f.stmt(s) {
        StmtData::Seq(list) => {
            let only_loops = only_loops && list.len() == 1;
            list.iter().for_each(|&s| find_init_blocks(f, s, var, path, only_loops, out));
        }
        StmtData::For { body, .. } | StmtData::Let(_, _, body) | StmtData::Assert(_, _, body) => {
            path.push(s);
            let only_loops = only_loops && matches!(f.stmt(s), StmtData::For { .. });
            find_init_blocks(f, *body, var, path, only_loops, out);
            path.pop();
        }
        StmtData::Block(b) if b.init.is_some() && reduces_over(f, b, &|v| v == var) => {
            out.push(InitBlock { block: s, path: path.clone(), only_loops });
        }
        _ => {}
    }
}

fn reduce_axes(b: &BlockData) -> impl Iterator<Item = &IterVar> {
    b.iters.iter().filter(|i| i.kind == IterKind::Reduce)
}

/// Whether a reduction axis of a block depends on a variable for which `var` returns true.
fn reduces_over(f: &PrimFunc, b: &BlockData, var: &dyn Fn(Var) -> bool) -> bool {
    reduce_axes(b).any(|i| uses_any(f, i.binding, var))
}

fn replace_stmts(f: &mut PrimFunc, s: Stmt, map: &FxHashMap<Stmt, Stmt>) -> Stmt {
    match map.get(&s) {
        Some(&new) => new,
        None => map_children(f, s, &mut |f, s| replace_stmts(f, s, map)),
    }
}

/// Moves the init of a block into its body, under the condition that all reduction axes are at their first values.
fn init_in_body(f: &mut PrimFunc, mut b: BlockData) -> Stmt {
    let init = b.init.take().expect("only blocks with an init are lowered here");
    let mut condition = None;
    for iter in reduce_axes(&b) {
        let v = f.var_expr(iter.var);
        let first = f.binary(BinOp::Eq, v, iter.min);
        condition = Some(combine(f, BinOp::And, condition, first));
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

fn combine(f: &mut PrimFunc, op: BinOp, a: Option<Expr>, b: Expr) -> Expr {
    match a {
        Some(a) => f.binary(op, a, b),
        None => b,
    }
}

/// A block with an init, and the statements around it, starting with its outermost reduction loop.
struct ReductionNest<'a> {
    block: BlockData,
    /// The loops, lets and assertions from the outermost reduction loop down to the block.
    path: Vec<Stmt>,
    /// The loops that enclose the outermost reduction loop, outermost first.
    outer: &'a [Loop],
    /// The variables of the reduction axes, and of the loops over which these axes run.
    reduction_vars: FxHashSet<Var>,
}

impl<'a> ReductionNest<'a> {
    fn new(
        f: &PrimFunc,
        block: BlockData,
        path: Vec<Stmt>,
        outer: &'a [Loop],
    ) -> ReductionNest<'a> {
        let mut reduction_vars: FxHashSet<Var> = reduce_axes(&block).map(|i| i.var).collect();
        for &s in &path {
            if let StmtData::For { var, .. } = f.stmt(s)
                && reduces_over(f, &block, &|v| v == *var)
            {
                reduction_vars.insert(*var);
            }
        }
        ReductionNest { block, path, outer, reduction_vars }
    }

    fn uses_reduction_vars(&self, f: &PrimFunc, e: Expr) -> bool {
        uses_any(f, e, &|v| self.reduction_vars.contains(&v))
    }

    /// Whether nothing that determines the spatial axes of the block depends on the reduction loops: the bindings and ranges of
    /// the axes, and the bounds of spatial loops and the values of lets between the outermost reduction loop and the block. Lets
    /// that read memory or call functions count as dependent, because they may only be evaluated if the reduction loops have at
    /// least one iteration.
    fn is_independent_of_reduction(&self, f: &PrimFunc) -> bool {
        let path_is_independent = self.path.iter().all(|&s| match f.stmt(s) {
            StmtData::For { var, min, extent, .. } => {
                self.reduction_vars.contains(var)
                    || !self.uses_reduction_vars(f, *min) && !self.uses_reduction_vars(f, *extent)
            }
            StmtData::Let(_, value, _) => {
                !self.uses_reduction_vars(f, *value) && is_arithmetic(f, *value)
            }
            StmtData::Assert(..) => true,
            _ => false,
        });
        path_is_independent
            && self.block.iters.iter().all(|i| {
                let binding_is_independent =
                    i.kind == IterKind::Reduce || !self.uses_reduction_vars(f, i.binding);
                binding_is_independent
                    && !self.uses_reduction_vars(f, i.min)
                    && !self.uses_reduction_vars(f, i.extent)
            })
    }

    /// Whether the init would run exactly once for each point of the spatial axes: the reduction axes are at their first values
    /// only in the first iteration of their loops. The path consists of the statements from the outermost reduction loop down to
    /// the block. The condition holds if
    /// - each spatial axis is a loop variable or does not depend on the loops of the path,
    /// - each reduction axis is a loop variable, or a sum of multiples of loop variables that start at 0,
    /// - an axis depends on each loop of the path.
    fn inits_once(&self, f: &PrimFunc) -> bool {
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
            let mut is_linear = f.as_int(iter.min) == Some(0);
            for_each_expr(f, iter.binding, |e| {
                is_linear &= match *f.expr(e) {
                    ExprData::Var(v) if self.reduction_vars.contains(&v) => {
                        first(v).is_some_and(|min| f.as_int(min) == Some(0))
                    }
                    ExprData::Int(n, _) => n > 0,
                    ExprData::Binary(op, a, b) => {
                        let reduced = [a, b].map(|e| self.uses_reduction_vars(f, e));
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
            is_linear
        })
    }

    /// Whether the init may run for all points of the spatial axes before the body runs for any of them.
    fn can_hoist(&self, f: &PrimFunc) -> bool {
        let Some(init) = self.block.init else { return false };
        let mut loads = false;
        for_each_stmt(f, init, &mut |_, data| {
            direct_exprs(data, |e| {
                for_each_expr(f, e, |e| loads |= matches!(f.expr(e), ExprData::Load(..)));
            });
        });
        self.is_independent_of_reduction(f)
            && self.inits_once(f)
            && !loads
            && self.block.allocs.is_empty()
            && !self.block.predicate.is_some_and(|p| self.uses_reduction_vars(f, p))
    }

    /// Whether the value of a spatial axis is provably in the range of the axis, without assuming that the reduction loops have an
    /// iteration.
    fn in_range(&self, f: &mut PrimFunc, iter: &IterVar) -> bool {
        let spatial = self.path.iter().filter_map(|&s| match *f.stmt(s) {
            StmtData::For { var, min, extent, .. } if !self.reduction_vars.contains(&var) => {
                Some(Loop { var, min, extent })
            }
            _ => None,
        });
        let loops: Vec<Loop> = self.outer.iter().copied().chain(spatial).collect();
        if let ExprData::Var(v) = *f.expr(iter.binding)
            && loops.iter().any(|l| (l.var, l.min, l.extent) == (v, iter.min, iter.extent))
        {
            return true;
        }
        let unbounded = recorded_unbounded_params(f);
        let mut facts = IndexFacts::at_entry(f, &unbounded);
        loops.iter().for_each(|l| facts.assume_range(f, l.var, l.min, l.extent));
        facts.range_check(f, iter.binding, iter.min, iter.extent).is_none()
    }

    /// Returns the init to be placed in front of the outermost reduction loop. It is inside copies of the spatial loops, lets and
    /// assertions that are between this loop and the block. The init runs only at points in the ranges of the spatial axes,
    /// because no other statement checks these ranges if the reduction loops have no iteration.
    fn hoisted_init(&self, f: &mut PrimFunc) -> Stmt {
        let b = &self.block;
        let mut map: FxHashMap<Var, Expr> = FxHashMap::default();
        let mut fresh = FxHashMap::default();
        for s in self.path.clone() {
            if let StmtData::For { var, .. } | StmtData::Let(var, ..) = *f.stmt(s)
                && !self.reduction_vars.contains(&var)
            {
                let data = f.var(var).clone();
                let v = f.add_var(data.name, data.ty);
                fresh.insert(var, v);
                map.insert(var, f.var_expr(v));
            }
        }
        let mut iters = Vec::new();
        let mut predicate = b.predicate.filter(|&p| !self.uses_reduction_vars(f, p));
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
                predicate = Some(combine(f, BinOp::And, predicate, low));
                predicate = Some(combine(f, BinOp::And, predicate, high));
            }
            let data = f.var(i.var).clone();
            let var = f.add_var(data.name, data.ty);
            map.insert(i.var, f.var_expr(var));
            iters.push(IterVar { var, min, extent, kind: i.kind, binding });
        }
        let init = b.init.expect("a reduction nest is only created for a block with an init");
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
        self.wrap_in_path(f, block, &fresh, &map)
    }

    /// Wraps a statement in copies of the spatial loops, lets and assertions that are between the outermost reduction loop and
    /// the block. `fresh` contains the new variables of these loops and lets, and `map` maps all variables to their replacements.
    fn wrap_in_path(
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
                StmtData::Assert(condition, message, _)
                    if !self.uses_reduction_vars(f, condition) =>
                {
                    StmtData::Assert(substitute_expr(f, condition, map), message, body)
                }
                _ => continue,
            };
            body = f.add_stmt(data);
        }
        body
    }

    /// Returns a copy of the init that runs only if a reduction axis is empty; `None` if no reduction axis can be empty, or if
    /// the extent of one depends on loops or lets between the outermost reduction loop and the block.
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
                empty = Some(combine(f, BinOp::Or, empty, none));
            }
        }
        let empty = empty?;
        let init = self.hoisted_init(f);
        Some(f.add_stmt(StmtData::If(empty, init, None)))
    }
}
