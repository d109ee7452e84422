//! Loop splitting: splits the loop over the last axis of a stage into parts at positions where a condition changes
//! (concatenation, padding, triangular matrices). If the stage divides the axis by `d` (tiling, repetition), splits the axis into
//! runs of `d` positions. Short axes are unrolled. The parts contain no conditions and no divisions, so they can be vectorized.

use pliant_ir::tir::visit::{for_each_expr, for_each_operand};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty, Var, VarTy};
use rustc_hash::{FxHashMap, FxHashSet};

use super::emit_stage_loops::{
    AccessPattern, access_pattern, constant_stride, estimated_work, guarded_body, hoist_guards,
    loop_nest, parallel_chunks, parallel_rows, unsplit_loops, vector_axis,
};
use super::loop_nest_stages::{Axis, Body, Stage, is_var};
use super::row_group_fusion::{parallel_row_loop, serial_loop};
use crate::access_guards;
use crate::check_bounds::recorded_unbounded_params;
use crate::overflow_analysis::{Interval, OverflowAnalysis, SIZE_LIMIT};
use crate::simplify_loop_functions::fold;
use crate::statement_traversal::{ExprRewriter, for_each_stmt, uses_any};

/// Maximum number of parts into which a loop is split.
const MAX_PARTS: usize = 8;
/// Maximum magnitude of the values of an axis that is split at a comparison. Sums of several axes and sizes then fit 64 bits.
const AXIS_LIMIT: i64 = 1 << 50;
/// Maximum extent of an axis that is unrolled, and maximum length of runs that are unrolled.
const MAX_UNROLLED: i64 = 8;

/// A comparison whose outcome changes once along an axis, at a split point.
#[derive(Clone, Copy, Debug)]
struct SplitCondition {
    condition: Expr,
    point: SplitPoint,
}

/// The position on an axis at which the outcome of a comparison changes.
#[derive(Clone, Copy, Debug)]
struct SplitPoint {
    /// The first value of the axis at which the comparison has its later outcome. It may be outside the range of the axis, so that
    /// the outcome is the same for the whole axis.
    position: Expr,
    /// Whether the comparison holds for values of the axis before the position.
    holds_before: bool,
    /// The operator that replaces a comparison `==` for values from the split point on, because `==` holds at only one position.
    /// `None` for other comparisons.
    later_comparison: Option<BinOp>,
}

/// Returns the number of trailing axes whose loops [`emit`] emits; 0 if no loop of the stage is split.
pub(super) fn split_axis_count(f: &mut PrimFunc, s: &Stage) -> usize {
    let Some(v) = splittable_axis(f, s) else { return 0 };
    let Body::Store { value, .. } = s.body else { return 0 };
    let has_condition = find_split_condition(f, value, v).is_some();
    if has_condition && s.axes.len() > 1 && is_short(f, s.axes[s.axes.len() - 1].extent) {
        return 2;
    }
    usize::from(has_condition || find_divisor(f, value, v).is_some())
}

/// Emits the serial loops of a stage with a split axis; `None` if [`split_axis_count`] is 0.
pub(super) fn emit(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    emit_with(f, s, LoopKind::Serial)
}

/// Emits the loops of a stage whose outermost axis is split as parallel loops; `None` if [`split_axis_count`] is 0.
pub(super) fn emit_parallel(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    emit_with(f, s, LoopKind::Parallel)
}

/// The kind of the loops over the outermost split axis of a stage: serial or parallel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopKind {
    Serial,
    Parallel,
}

/// Emits the loops of a stage with a split axis; `None` if [`split_axis_count`] is 0. `kind` applies to the outermost loops.
fn emit_with(f: &mut PrimFunc, s: &Stage, kind: LoopKind) -> Option<Stmt> {
    let trailing = split_axis_count(f, s);
    let front = s.axes.len().checked_sub(trailing).filter(|_| trailing > 0)?;
    let mut inner = fold_stage(f, s);
    let outer: Vec<Axis> = inner.axes.drain(..front).collect();
    if trailing == 2 {
        let body = unroll_last_axis(f, &inner, kind);
        return Some(loop_nest(f, &outer, body));
    }
    // The split points may depend on variables that guards bind, so the guards are in front of all parts.
    let mut unguarded = inner.clone();
    unguarded.guards.clear();
    let body = split_loops(f, &unguarded, &mut { MAX_PARTS }, kind);
    let body = hoist_guards(f, &inner, inner.axes[0].extent, body);
    Some(loop_nest(f, &outer, body))
}

/// Returns the variable of a stage's last axis, if the loop over it may be split.
fn splittable_axis(f: &PrimFunc, s: &Stage) -> Option<Var> {
    let v = s.axes.last()?.var;
    let guarded = access_guards::any_depends_on(f, &s.guards, v);
    (!s.reduces() && s.init.is_none() && !guarded).then_some(v)
}

fn is_short(f: &PrimFunc, e: Expr) -> bool {
    f.as_int(e).is_some_and(|n| (1..=MAX_UNROLLED).contains(&n))
}

/// Whether an expression depends only on variables, and does not read memory or call functions.
fn is_pure(f: &PrimFunc, e: Expr) -> bool {
    let mut ok = true;
    for_each_expr(f, e, |e| ok &= !matches!(f.expr(e), ExprData::Load(..) | ExprData::Call(..)));
    ok
}

/// Returns the first comparison in a condition of `value` that has a split point along the axis `v`; `None` if there is
/// none.
fn find_split_condition(f: &mut PrimFunc, value: Expr, v: Var) -> Option<SplitCondition> {
    let mut conditions = Vec::new();
    for_each_expr(f, value, |e| match f.expr(e) {
        ExprData::Select(c, ..) => conditions.push(*c),
        ExprData::Call(Intrin::IfThenElse, args, _) => conditions.push(args[0]),
        _ => {}
    });
    while let Some(c) = conditions.pop() {
        match *f.expr(c) {
            ExprData::Not(a) => conditions.push(a),
            ExprData::Binary(BinOp::And | BinOp::Or, a, b) => conditions.extend([b, a]),
            ExprData::Binary(op, a, b) => {
                if let Some(point) = find_split_point(f, op, a, b, v) {
                    return Some(SplitCondition { condition: c, point });
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the split point of `a op b` along `v`; `None` if there is none, or if the arithmetic may overflow.
fn find_split_point(f: &mut PrimFunc, op: BinOp, a: Expr, b: Expr, v: Var) -> Option<SplitPoint> {
    if f.expr_ty(a) != Ty::I64 || !is_pure(f, a) || !is_pure(f, b) {
        return None;
    }
    let slope = constant_stride(f, a, v)?.checked_sub(constant_stride(f, b, v)?)?;
    let (zero, one) = (f.int(0), f.int(1));
    let at_zero = FxHashMap::from_iter([(v, zero)]);
    let (first, second) = (a, b);
    let [a, b] = [a, b].map(|e| crate::statement_traversal::substitute_expr(f, e, &at_zero));
    // With `a` and `b` at `v = 0`, the comparison is `v + a - b op 0` or `a - b - v op 0`.
    let (at, op) = match slope {
        1 => (f.binary(BinOp::Sub, b, a), op),
        -1 => (f.binary(BinOp::Sub, a, b), with_swapped_operands(op)),
        _ => return None,
    };
    let next = f.add(at, one);
    let unbounded = unbounded_variables(f)?;
    if ![first, second, next].iter().all(|&e| cannot_overflow(f, e, &unbounded)) {
        return None;
    }
    let later_comparison =
        (op == BinOp::Eq).then_some(if slope == 1 { BinOp::Le } else { BinOp::Ge });
    let (position, holds_before) = match op {
        BinOp::Lt => (at, true),
        BinOp::Le => (next, true),
        BinOp::Ge | BinOp::Eq => (at, false),
        BinOp::Gt => (next, false),
        _ => return None,
    };
    let position = fold(f, position).unwrap_or(position);
    Some(SplitPoint { position, holds_before, later_comparison })
}

/// Whether the arithmetic of an expression cannot overflow if the magnitudes of all variables except `unbounded` are at most
/// [`AXIS_LIMIT`].
fn cannot_overflow(f: &PrimFunc, e: Expr, unbounded: &FxHashSet<Var>) -> bool {
    let size = Interval::new(-AXIS_LIMIT, AXIS_LIMIT);
    let within =
        |v: Var| (f.var(v).ty == VarTy::Value(Ty::I64) && !unbounded.contains(&v)).then_some(size);
    OverflowAnalysis::default().fact(f, e, &within).exact
}

/// Returns the parameters and `let` variables whose values may exceed [`AXIS_LIMIT`], such as those that are read from memory.
/// Returns `None` if a loop variable or a block axis may exceed this limit.
fn unbounded_variables(f: &PrimFunc) -> Option<FxHashSet<Var>> {
    let size = Interval::new(-AXIS_LIMIT, AXIS_LIMIT);
    let recorded = recorded_unbounded_params(f);
    let recorded = recorded.iter().filter_map(|&i| f.params.get(i).copied());
    let mut unbounded: FxHashSet<Var> = recorded.collect();
    let mut overflow = OverflowAnalysis::default();
    for &p in f.params.iter().filter(|p| f.var(**p).ty == VarTy::Value(Ty::I64)) {
        if !unbounded.contains(&p) {
            overflow.assume_range(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
        }
    }
    for &b in f.buffer_map.values() {
        let data = f.buffer(b);
        data.shape.iter().for_each(|&d| overflow.assume_dim(f, d));
        data.strides.iter().for_each(|&s| overflow.assume_stride(f, s));
    }
    let mut in_limit = true;
    let mut add_axis = |overflow: &mut OverflowAnalysis, var: Var, min: Expr, extent: Expr| {
        let [min, extent] = [min, extent].map(|e| overflow.fact(f, e, &|_| None));
        let end = Interval { lo: min.range.lo, hi: min.range.hi + extent.range.hi.max(0) };
        in_limit &= min.exact && extent.exact && size.contains(end);
        overflow.assume_range(var, size);
    };
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::For { var, min, extent, .. } => add_axis(&mut overflow, *var, *min, *extent),
        StmtData::Block(b) => {
            b.iters.iter().for_each(|i| add_axis(&mut overflow, i.var, i.min, i.extent));
        }
        StmtData::Let(var, value, _) => {
            if size.contains(overflow.fact(f, *value, &|_| None).range) {
                overflow.assume_range(*var, size);
            } else {
                unbounded.insert(*var);
            }
        }
        _ => {}
    });
    in_limit.then_some(unbounded)
}

/// Returns the operator of the equivalent comparison with swapped operands.
fn with_swapped_operands(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Ge => BinOp::Le,
        BinOp::Gt => BinOp::Lt,
        other => other,
    }
}

/// Returns the first divisor `d` for which `value` contains `v // d` or `v % d`; `None` if there is none.
fn find_divisor(f: &PrimFunc, value: Expr, v: Var) -> Option<Expr> {
    let divisor_of = |e: Expr| match *f.expr(e) {
        ExprData::Binary(BinOp::FloorDiv | BinOp::FloorMod, x, d)
            if is_var(f, x, v)
                && f.expr_ty(x) == Ty::I64
                && !uses_any(f, d, &|x| x == v)
                && is_pure(f, d) =>
        {
            Some(d)
        }
        _ => None,
    };
    let (mut stack, mut seen, mut found) = (vec![value], FxHashSet::default(), None);
    while let Some(e) = stack.pop() {
        // The indices of a contiguous or strided load, which delinearize a fused axis, become one offset.
        let has_offset = matches!(f.expr(e), ExprData::Load(b, i) if access_pattern(f, *b, i, v) != AccessPattern::Other);
        if !seen.insert(e) || has_offset {
            continue;
        }
        found = divisor_of(e).or(found);
        for_each_operand(f.expr(e), |a| stack.push(a));
    }
    // Divisions by powers of two are cheap, but prevent vectorization too.
    found.filter(|&d| f.as_int(d).is_none_or(|d| d > 1))
}

/// Applies `rule` to the value and the indices of a stage, and folds constants.
fn rewrite_stage(
    f: &mut PrimFunc,
    s: &Stage,
    rule: &dyn Fn(&mut PrimFunc, Expr) -> Option<Expr>,
) -> Stage {
    let mut s = s.clone();
    let mut folded = |f: &mut PrimFunc, e: Expr| match rule(f, e) {
        Some(new) => Some(new),
        None => fold(f, e),
    };
    let mut rewriter = ExprRewriter::new(&mut folded);
    if let Body::Store { indices, value, .. } = &mut s.body {
        *value = rewriter.expr(f, *value);
        for i in indices {
            *i = rewriter.expr(f, *i);
        }
    }
    s
}

/// Folds constants in the value and the indices of a stage.
fn fold_stage(f: &mut PrimFunc, s: &Stage) -> Stage {
    rewrite_stage(f, s, &|_, _| None)
}

/// Specializes a stage to one side of a split point, on which the comparison is true (`holds`) or false. On the side where an
/// equality may hold, `SplitPoint::later_comparison` replaces it.
fn specialize(f: &mut PrimFunc, s: &Stage, split: SplitCondition, holds: bool) -> Stage {
    rewrite_stage(f, s, &|f, e| {
        if e != split.condition {
            return None;
        }
        match (f.expr(e), split.point.later_comparison.filter(|_| holds)) {
            (&ExprData::Binary(_, a, b), Some(op)) => Some(f.binary(op, a, b)),
            _ => Some(f.add_expr(ExprData::Int(i64::from(holds), Ty::BOOL))),
        }
    })
}

/// Emits the loops over the only axis of a stage, split into at most `max_parts` parts.
fn split_loops(f: &mut PrimFunc, s: &Stage, max_parts: &mut usize, kind: LoopKind) -> Stmt {
    let Body::Store { value, .. } = s.body else { return unsplit_loops(f, s) };
    let axis = s.axes[0];
    if let Some(split) = find_split_condition(f, value, axis.var).filter(|_| *max_parts > 1) {
        *max_parts -= 1;
        return loops_around_split(f, s, split, max_parts, kind);
    }
    match find_divisor(f, value, axis.var) {
        Some(d) => loops_over_runs(f, s, d, max_parts, kind),
        None => part_loops(f, s, kind),
    }
}

/// Emits the loop over the only axis of `s`, a stage that is one part of a split loop and is not split further.
fn part_loops(f: &mut PrimFunc, s: &Stage, kind: LoopKind) -> Stmt {
    match kind {
        LoopKind::Serial => unsplit_loops(f, s),
        LoopKind::Parallel if vector_axis(f, s).is_some() => parallel_chunks(f, s),
        LoopKind::Parallel => parallel_rows(f, s, 1),
    }
}

/// Emits the outermost loop of a split axis, serial or parallel as `kind` states. `var` and `extent` are the loop variable and the
/// number of iterations, each of which takes about `work` operations.
fn outer_loop(
    f: &mut PrimFunc,
    (var, extent): (Var, Expr),
    work: Expr,
    body: Stmt,
    kind: LoopKind,
) -> Stmt {
    match kind {
        LoopKind::Serial => serial_loop(f, var, extent, body),
        LoopKind::Parallel => parallel_row_loop(f, &[var], &[extent], work, body, &[]),
    }
}

/// Emits the loops before and after a split point.
fn loops_around_split(
    f: &mut PrimFunc,
    s: &Stage,
    split: SplitCondition,
    max_parts: &mut usize,
    kind: LoopKind,
) -> Stmt {
    let axis = s.axes[0];
    let zero = f.int(0);
    let clamped = f.binary(BinOp::Max, split.point.position, zero);
    let clamped = f.binary(BinOp::Min, clamped, axis.extent);
    let clamped = f.binary(BinOp::Max, clamped, zero);
    let clamped = ExprRewriter::new(&mut |f, e| fold(f, e)).expr(f, clamped);
    let var = f.size_var("cut");
    let position = if f.as_int(clamped).is_some() { clamped } else { f.var_expr(var) };

    let mut low = specialize(f, s, split, split.point.holds_before);
    low.axes[0].extent = position;
    let low = split_loops(f, &low, max_parts, kind);

    let high = specialize(f, s, split, !split.point.holds_before);
    let high = offset_stage(f, &high, position);
    let high = split_loops(f, &high, max_parts, kind);
    let body = f.add_stmt(StmtData::Seq(vec![low, high]));
    if position == clamped { body } else { f.add_stmt(StmtData::Let(var, clamped, body)) }
}

/// Returns the part of a stage for the values of its only axis that are at least `from`. The axis of the part starts at 0.
fn offset_stage(f: &mut PrimFunc, s: &Stage, from: Expr) -> Stage {
    let axis = s.axes[0];
    let var = f.size_var("rest");
    let v = f.var_expr(var);
    let position = f.add(from, v);
    let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]));
    let mut s = fold_stage(f, &s);
    let extent = f.binary(BinOp::Sub, axis.extent, from);
    let extent = fold(f, extent).unwrap_or(extent);
    s.axes[0] = Axis { var, extent, ..axis };
    s
}

/// Replaces the axis of a stage by `outer * d + inner`, where `0 <= inner < d`. The quotient and the remainder of the
/// axis by `d` become `outer` and `inner`.
fn divide_axis(f: &mut PrimFunc, s: &Stage, d: Expr, outer: Expr, inner: Expr) -> Stage {
    let axis = s.axes[0];
    let s = rewrite_stage(f, s, &|f, e| match *f.expr(e) {
        ExprData::Binary(BinOp::FloorDiv, x, y) if y == d && is_var(f, x, axis.var) => Some(outer),
        ExprData::Binary(BinOp::FloorMod, x, y) if y == d && is_var(f, x, axis.var) => Some(inner),
        _ => None,
    });
    let start = f.mul(outer, d);
    let position = f.add(start, inner);
    let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]));
    fold_stage(f, &s)
}

/// Emits the loops of a stage whose axis is split into runs of `d` positions: a loop over runs around a loop over the positions
/// of a run. The inner loop is unrolled if `d` is small.
fn loops_over_runs(
    f: &mut PrimFunc,
    s: &Stage,
    d: Expr,
    max_parts: &mut usize,
    kind: LoopKind,
) -> Stmt {
    let axis = s.axes[0];
    let run = f.size_var("run");
    let run_e = f.var_expr(run);
    if is_short(f, d) {
        let full_runs = f.binary(BinOp::FloorDiv, axis.extent, d);
        let n = f.as_int(d).unwrap_or(0);
        let points: Vec<Stmt> = (0..n)
            .map(|k| {
                let k = f.int(k);
                let s = divide_axis(f, s, d, run_e, k);
                guarded_body(f, &s)
            })
            .collect();
        let body = f.seq(points);
        let work = work_of_points(f, s, d);
        let runs = outer_loop(f, (run, full_runs), work, body, kind);
        let tail = f.size_var("tail");
        let tail_e = f.var_expr(tail);
        let rest = divide_axis(f, s, d, full_runs, tail_e);
        let rest = guarded_body(f, &rest);
        let count = f.binary(BinOp::FloorMod, axis.extent, d);
        let rest = serial_loop(f, tail, count, rest);
        return f.add_stmt(StmtData::Seq(vec![runs, rest]));
    }
    let (zero, one) = (f.int(0), f.int(1));
    // The divisor may be any int64, so the rounded-up quotient must not be computed by adding to it.
    let last = f.binary(BinOp::Sub, axis.extent, one);
    let runs = f.binary(BinOp::FloorDiv, last, d);
    let runs = f.add(runs, one);
    let position = f.size_var("place");
    let position_e = f.var_expr(position);
    let mut inner = divide_axis(f, s, d, run_e, position_e);
    let start = f.mul(run_e, d);
    let rest = f.binary(BinOp::Sub, axis.extent, start);
    let extent = f.binary(BinOp::Min, d, rest);
    let extent = f.binary(BinOp::Max, extent, zero);
    inner.axes[0] = Axis { var: position, extent, ..axis };
    let body = split_loops(f, &inner, max_parts, LoopKind::Serial);
    let work = work_of_points(f, s, d);
    let runs = outer_loop(f, (run, runs), work, body, kind);
    // If the divisor is less than 1, there are no runs, and each element is computed with divisions.
    let unsplit = part_loops(f, s, kind);
    let is_positive = f.binary(BinOp::Lt, zero, d);
    f.add_stmt(StmtData::If(is_positive, runs, Some(unsplit)))
}

/// Returns an expression for the estimated number of operations of `points` points of the only axis of a stage.
fn work_of_points(f: &mut PrimFunc, s: &Stage, points: Expr) -> Expr {
    let mut run = s.clone();
    run.axes[0].extent = points;
    estimated_work(f, &run)
}

/// Unrolls the last of two axes inside a loop over the first axis.
fn unroll_last_axis(f: &mut PrimFunc, s: &Stage, kind: LoopKind) -> Stmt {
    let (outer, short) = (s.axes[0], s.axes[1]);
    let n = f.as_int(short.extent).unwrap_or(0);
    let points: Vec<Stmt> = (0..n)
        .map(|k| {
            let k = f.int(k);
            let s = s.substituted(f, &FxHashMap::from_iter([(short.var, k)]));
            let s = fold_stage(f, &s);
            guarded_body(f, &s)
        })
        .collect();
    let body = f.seq(points);
    let mut row = s.clone();
    row.axes.remove(0);
    let work = estimated_work(f, &row);
    outer_loop(f, (outer.var, outer.extent), work, body, kind)
}
