//! Emits the loops of one stage: fuses axes, splits them into chunks that run in parallel, chooses the vector width (number of
//! lanes), vectorizes, and adds scalar loops for the remaining iterations.
//!
//! This file decides which axes of a stage become a parallel loop. A vectorized elementwise stage whose axes are fused into one is
//! parallel over chunks of this axis (`parallel_chunks`). Other stages are parallel over leading spatial axes (`parallel_rows`) and
//! serial over the rest. A stage without such axes gets serial loops, and so does a fused axis that is known to be no longer than
//! one chunk. A chunk is one iteration of the parallel loop and takes about a microsecond ([`grain`] operations). At run time, the
//! worker team decides whether such a loop runs on the calling thread alone, and into how many parts it is divided among the
//! threads (`Workers::run` and `chunks` in `pliant-pool/src/worker_threads.rs`).
//!
//! Other parallel loops are emitted elsewhere:
//! - for row groups (`row_group_fusion`), reductions to few results (`partial_reductions`), reductions over columns
//!   (`reduction_loops`, `column_extrema`), transposes (`transpose_blocking`) and stages that are split over their only axis
//!   (`loop_splitting`);
//! - for the blocks of matmuls with epilogues (`gemm_blocking`);
//! - in TE extern stages, before scheduling: by `Body::parallel` (`pliant-ops/src/te/extern_stage.rs`), mostly for the loops over
//!   rows in `pliant-ops/src/ops/parallel_row_loops.rs`.

use std::ops::Range;

use pliant_ir::tir::visit::{for_each_expr, for_each_operand};
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::loop_nest_stages::{Axis, Body, Init, Stage, is_var};
use super::reduction_loops::{parallel_column_strips, reduction_loops};
use super::row_group_fusion::{divide_position, parallel_row_loop, product_of, serial_loop};
use super::scalar_stage_loops::scalar_loop_nest;
use super::{
    loop_splitting, partial_reductions, transpose_blocking, vector_math_loops, vector_math_tiles,
};
use crate::access_guards;
use crate::code_generator_vectors::{has_widest_vectors, vector_bytes};
use crate::inline_elementwise_stages::operation_count;
use crate::statement_traversal::{for_each_value, uses_any};
use crate::vectorize_loops::{divides_in_vectors, is_division};

/// Returns the minimum number of operations of a parallel task, which take about a microsecond in generated code.
pub fn grain() -> i64 {
    pliant_machine::Machine::host().rates.generated as i64
}
/// The cost of a scalar operation relative to one lane of a vector operation, from which the work of a stage is estimated.
const SCALAR_COST: i64 = 6;
/// Minimum extent of a reduction axis for vectorization along the axis, if the extent is known.
const MIN_REDUCTION_LENGTH: i64 = 4;
/// A reduction whose axis is known to be shorter than this number of elements is vectorized over its results, if these
/// are adjacent in memory, instead of along the axis. The number is two vectors of 16 lanes. For shorter axes, the
/// final reduction of the lanes would cost more than the rest of the reduction.
const LONG_REDUCTION: i64 = 32;

/// If an axis indexes a dim of a buffer that is not the last one, adjacent values of the axis access elements at a
/// distance of the product of the sizes of the later dims. This constant is the maximum distance, in elements, for
/// which such an access counts as strided and is vectorized. Vectors of elements that are farther apart touch a cache
/// line for each lane.
const MAX_DISTANCE: i64 = 8;

/// How the address of an access depends on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessPattern {
    /// The address does not depend on the axis.
    Invariant,
    /// Adjacent values of the axis access adjacent elements in memory.
    Contiguous,
    /// Adjacent values of the axis access elements at a constant distance in memory.
    Strided,
    /// The address depends on the axis in a way that none of the other variants describes.
    Other,
}

/// Whether dim `dim` of a buffer has size 1 and its index does not use `v`. Such dims do not affect contiguity.
fn is_unit(f: &PrimFunc, buffer: Buffer, indices: &[Expr], dim: usize, v: Var) -> bool {
    f.as_int(f.buffer(buffer).shape[dim]) == Some(1) && !uses_any(f, indices[dim], &|x| x == v)
}

/// Whether the indices of an access are the mixed-radix digits of one linear position `x`, which grows by 1 with `v`: for example
/// `x // b // a`, `x // b % a` and `x % b` for dims of which the last two have the sizes `a` and `b`.
fn delinearizes_axis(f: &PrimFunc, buffer: Buffer, indices: &[Expr], v: Var) -> bool {
    let shape = &f.buffer(buffer).shape;
    // The quotient that the current index must equal or be a remainder of, as dividend and divisor; `None` for `x` itself.
    let mut rest: Option<(Expr, Expr)> = None;
    let continues = |e: Expr, rest: Option<(Expr, Expr)>| match rest {
        None => constant_stride(f, e, v) == Some(1),
        Some((dividend, dim)) => {
            matches!(f.expr(e), ExprData::Binary(BinOp::FloorDiv, x, d) if *x == dividend && *d == dim)
        }
    };
    for at in (0..indices.len()).rev() {
        if is_unit(f, buffer, indices, at, v) {
            continue;
        }
        if continues(indices[at], rest) {
            return indices[..at].iter().all(|&i| !uses_any(f, i, &|x| x == v));
        }
        match f.expr(indices[at]) {
            ExprData::Binary(BinOp::FloorMod, x, d) if *d == shape[at] && continues(*x, rest) => {
                rest = Some((*x, *d));
            }
            _ => return false,
        }
    }
    false
}

/// Returns how the address of a buffer access depends on an axis.
pub(super) fn access_pattern(
    f: &PrimFunc,
    buffer: Buffer,
    indices: &[Expr],
    v: Var,
) -> AccessPattern {
    let uses = |e: Expr| uses_any(f, e, &|x| x == v);
    let dense = f.buffer(buffer).strides.is_empty();
    let size = |at: usize| f.as_int(f.buffer(buffer).shape[at]).filter(|_| dense);
    // Trailing dims that the axis does not index multiply the distance of adjacent accesses by their sizes.
    let (mut dims, mut distance) = (indices.len(), 1);
    while let Some(last) = dims.checked_sub(1)
        && let Some(n) = size(last).filter(|n| (1..=MAX_DISTANCE / distance).contains(n))
        && !uses(indices[last])
    {
        (dims, distance) = (last, distance * n);
    }
    let indices = &indices[..dims];
    let Some((&last, front)) = indices.split_last() else { return AccessPattern::Invariant };
    let adjacent = if distance == 1 { AccessPattern::Contiguous } else { AccessPattern::Strided };
    if dense && delinearizes_axis(f, buffer, indices, v) {
        return adjacent;
    }
    if front.iter().any(|&i| uses(i)) || !dense && indices.iter().any(|&i| uses(i)) {
        return AccessPattern::Other;
    }
    match constant_stride(f, last, v) {
        Some(0) => AccessPattern::Invariant,
        Some(1) => adjacent,
        Some(_) => AccessPattern::Strided,
        None => AccessPattern::Other,
    }
}

/// Whether adjacent values of an axis access adjacent elements in memory.
pub(super) fn is_contiguous_along(f: &PrimFunc, buffer: Buffer, indices: &[Expr], v: Var) -> bool {
    access_pattern(f, buffer, indices, v) == AccessPattern::Contiguous
}

/// Returns the amount by which an index grows when `v` grows by 1; `None` if this amount is not constant.
pub(super) fn constant_stride(f: &PrimFunc, e: Expr, v: Var) -> Option<i64> {
    match *f.expr(e) {
        ExprData::Var(x) => Some(i64::from(x == v)),
        ExprData::Binary(BinOp::Add, a, b) => {
            constant_stride(f, a, v)?.checked_add(constant_stride(f, b, v)?)
        }
        ExprData::Binary(BinOp::Sub, a, b) => {
            constant_stride(f, a, v)?.checked_sub(constant_stride(f, b, v)?)
        }
        ExprData::Binary(BinOp::Mul, a, b) => match (f.as_int(a), f.as_int(b)) {
            (Some(k), _) => constant_stride(f, b, v)?.checked_mul(k),
            (_, Some(k)) => constant_stride(f, a, v)?.checked_mul(k),
            _ => (!uses_any(f, e, &|x| x == v)).then_some(0),
        },
        _ => (!uses_any(f, e, &|x| x == v)).then_some(0),
    }
}

/// Whether an expression can be vectorized over `v`. If `gathers` is set, its loads may gather elements at arbitrary positions,
/// provided that their indices can be vectorized.
pub(super) fn is_vectorizable(f: &PrimFunc, e: Expr, v: Var, gathers: bool) -> bool {
    let mut ok = true;
    let uses = |e: Expr| uses_any(f, e, &|x| x == v);
    for_each_value(f, e, |e| match f.expr(e) {
        ExprData::Load(b, indices) => {
            let is_strided = access_pattern(f, *b, indices, v) != AccessPattern::Other;
            let can_gather = |&i: &Expr| f.expr_ty(i) == Ty::I64 && is_vectorizable(f, i, v, true);
            ok &= is_strided || gathers && indices.iter().all(can_gather);
        }
        ExprData::Call(Intrin::IfThenElse, args, _) => ok &= !uses(args[0]),
        ExprData::Call(
            Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel | Intrin::AddressOf,
            ..,
        ) => ok = false,
        ExprData::Binary(op, a, b) => {
            ok &= !is_division(*op) || divides_in_vectors(f, *op, *a, *b) || !uses(e);
        }
        _ => {}
    });
    ok
}

/// Returns the position of the axis over which a stage is vectorized; `None` if it is not vectorized.
pub fn vector_axis(f: &PrimFunc, s: &Stage) -> Option<usize> {
    let Body::Store { buffer, indices, value } = &s.body else { return None };
    let last = s.axes.len().checked_sub(1)?;
    let tiled = !s.reduces()
        && vector_math_tiles::can_tile(f, (*buffer, indices, *value), s.axes[last].var);
    let unguarded = |v: Var| !access_guards::any_depends_on(f, &s.guards, v);
    if !s.reduces() {
        let v = s.axes[last].var;
        let vectorizable = is_contiguous_along(f, *buffer, indices, v)
            && (tiled || is_vectorizable(f, *value, v, true));
        return (vectorizable && unguarded(v)).then_some(last);
    }
    let r = s.reduction(f)?;
    if s.axes[s.leading_spatial()..].iter().any(|a| !a.reduce) {
        return None;
    }
    let inner = s.axes[last];
    let over_inner = |min_length: i64| {
        let is_long = f.as_int(inner.extent).is_none_or(|n| n >= min_length);
        inner.reduce
            && is_long
            && unguarded(inner.var)
            && is_vectorizable(f, r.value, inner.var, false)
    };
    let over_results = |spatial: usize| {
        let v = s.axes[spatial].var;
        let init = match s.init {
            Some(Init::Value(e)) => is_vectorizable(f, e, v, false),
            _ => true,
        };
        is_contiguous_along(f, *buffer, indices, v)
            && is_vectorizable(f, r.value, v, false)
            && init
            && unguarded(v)
    };
    // A vector over a short reduction is mostly empty, and reducing its lanes costs extra for each result.
    let spatial = s.leading_spatial().checked_sub(1);
    match spatial.filter(|&a| over_results(a)) {
        Some(a) => Some(if over_inner(LONG_REDUCTION) { last } else { a }),
        None => over_inner(MIN_REDUCTION_LENGTH).then_some(last),
    }
}

/// Returns the number of vector lanes with which a value is computed. It is lower for expensive values, which need many
/// registers, and for wide elements. It is at least the number of lanes of a full vector of the narrowest elements.
pub(super) fn vector_lanes(f: &PrimFunc, value: Expr) -> i64 {
    let bytes = vector_bytes(f);
    let (mut narrowest, mut widest) = (8, 1);
    let mut element = |dtype: DType| {
        // Bools are masks, which are as wide as the values that they are combined with.
        if !dtype.is_bool() {
            let size = dtype.size() as i64;
            (narrowest, widest) = (narrowest.min(size), widest.max(size));
        }
    };
    element(f.expr_ty(value).dtype);
    for_each_expr(f, value, |e| match f.expr(e) {
        ExprData::Load(b, _) => element(f.buffer(*b).dtype),
        ExprData::Cast(to, _) => element(to.dtype),
        _ => {}
    });
    // Vectors that are computed together, so that independent operations hide latencies.
    let vectors = if has_widest_vectors(f) { 2 } else { 4 };
    let base = match widest {
        1 => return vectors * bytes,
        8 => vectors * bytes / 8,
        // 16-bit floats are float32 in registers.
        _ => vectors * bytes / 4,
    };
    let base = if operation_count(f, value) >= 16 { base / 2 } else { base };
    base.max(bytes / narrowest)
}

/// Returns an expression for the estimated number of operations of all points of a stage.
pub fn estimated_work(f: &mut PrimFunc, s: &Stage) -> Expr {
    let per_point = match &s.body {
        Body::Store { value, .. } => {
            let operations = vector_math_tiles::estimated_operations(f, *value) + 2;
            if vector_axis(f, s).is_some() { operations } else { operations * SCALAR_COST }
        }
        Body::Other(_) => 8 * SCALAR_COST,
    };
    let extents: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    let points = product_of(f, &extents);
    let per_point = f.int(per_point);
    f.mul(points, per_point)
}

/// Emits the loops of a stage that has no reduction and is not fused with other stages. Adjacent axes are fused. A parallel loop
/// runs over the leading axes, and the loop over the last axis is vectorized if possible.
pub fn emit_spatial(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let s = without_unit_axes(f, s);
    let s = with_fused_axes(f, &s);
    if s.axes.len() == 1 && vector_axis(f, &s).is_some() && s.guards.is_empty() {
        return parallel_chunks(f, &s);
    }
    if let Some(blocks) = transpose_blocking::emit(f, &s) {
        return blocks;
    }
    // The last axis has its own loop, vectorized or not, so that positions are delinearized only once per row.
    let has_inner_loop = vector_axis(f, &s).is_some() || s.axes.len() > 1;
    let inner = loop_splitting::split_axis_count(f, &s).max(usize::from(has_inner_loop));
    let rows = s.axes.len() - inner;
    if rows == 0
        && let Some(parts) = loop_splitting::emit_parallel(f, &s)
    {
        return parts;
    }
    parallel_rows(f, &s, rows)
}

/// Removes the spatial axes of extent 1 from a stage. If the last axis had extent 1, the innermost loop would have only one
/// iteration.
fn without_unit_axes(f: &mut PrimFunc, s: &Stage) -> Stage {
    let (unit, rest): (Vec<Axis>, Vec<Axis>) =
        s.axes.iter().partition(|a| !a.reduce && f.as_int(a.extent) == Some(1));
    if unit.is_empty() {
        return s.clone();
    }
    let zero = f.int(0);
    let map = unit.iter().map(|a| (a.var, zero)).collect();
    Stage { axes: rest, ..s.substituted(f, &map) }
}

/// Emits the loops of a stage that is not fused with other stages into a row group (one parallel loop over shared
/// leading axes).
pub fn emit_standalone(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let s = without_unit_axes(f, s);
    partial_reductions::emit_pieces_or_whole(f, &s, |f| standalone_loops(f, &s))
}

/// Emits the loops of a stage that is neither fused with other stages nor split into partial reductions.
fn standalone_loops(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let rows = s.leading_spatial();
    if rows == 0 {
        return serial_loops(f, s);
    }
    match vector_axis(f, s) {
        // In a column reduction, the parallel loop runs over strips of columns.
        Some(a) if a + 1 == rows && a == 0 => parallel_column_strips(f, s),
        Some(a) if a < rows => parallel_rows(f, s, a),
        _ => parallel_rows(f, s, rows),
    }
}

/// Emits a parallel loop over the first `rows` axes of a stage, around serial loops over its other axes.
pub(super) fn parallel_rows(f: &mut PrimFunc, s: &Stage, rows: usize) -> Stmt {
    if rows == 0 {
        return serial_loops(f, s);
    }
    let (vars, extents): (Vec<Var>, Vec<Expr>) =
        s.axes[..rows].iter().map(|a| (a.var, a.extent)).unzip();
    let mut rest = s.clone();
    rest.axes.drain(..rows);
    let work = estimated_work(f, &rest);
    let body = serial_loops(f, &rest);
    parallel_row_loop(f, &vars, &extents, work, body, &[])
}

/// Returns the stage with adjacent axes of the same kind (spatial or reduction) fused wherever its accesses allow this.
pub(super) fn with_fused_axes(f: &mut PrimFunc, s: &Stage) -> Stage {
    let runs = fusable_runs(f, s);
    fuse(f, s, &runs)
}

/// Returns the stage with adjacent reduction axes fused, so that a reduction over the pixels of an image is one long
/// contiguous loop. Spatial axes are not fused, because the stages of a row group (stages fused into one parallel loop)
/// share them.
pub(super) fn with_fused_reductions(f: &mut PrimFunc, s: &Stage) -> Stage {
    if s.reduction(f).is_none() {
        return s.clone();
    }
    let reduces = |run: &Range<usize>| s.axes[run.start].reduce;
    let runs: Vec<Range<usize>> = fusable_runs(f, s)
        .into_iter()
        .flat_map(|run| if reduces(&run) { vec![run] } else { run.map(|k| k..k + 1).collect() })
        .collect();
    fuse(f, s, &runs)
}

/// Returns the ranges of adjacent axes that can be fused. The axes of a range are all spatial axes or all reduction axes. In
/// every access, they index adjacent whole dims in the same order, or no dims.
fn fusable_runs(f: &PrimFunc, s: &Stage) -> Vec<Range<usize>> {
    let whole = 0..s.axes.len();
    let Body::Store { buffer, indices, value } = &s.body else {
        return whole.map(|k| k..k + 1).collect();
    };
    let mut accesses = vec![(*buffer, indices.clone())];
    for_each_expr(f, *value, |e| {
        if let ExprData::Load(b, i) = f.expr(e) {
            accesses.push((*b, i.clone()));
        }
    });
    // Axes that are used outside of indices or in guards are not fused.
    let keeps_own_loop = |v: Var| {
        access_guards::any_depends_on(f, &s.guards, v) || is_used_outside_indices(f, *value, v)
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for k in whole {
        match runs.last_mut() {
            Some(run)
                if s.axes[k - 1].reduce == s.axes[k].reduce
                    && !keeps_own_loop(s.axes[k - 1].var)
                    && !keeps_own_loop(s.axes[k].var)
                    && accesses
                        .iter()
                        .all(|(buf, i)| are_fusable(f, *buf, i, s.axes[k - 1], s.axes[k])) =>
            {
                run.end = k + 1;
            }
            _ => runs.push(k..k + 1),
        }
    }
    runs
}

/// Whether an access permits the fusion of two adjacent axes.
fn are_fusable(f: &PrimFunc, buffer: Buffer, indices: &[Expr], a: Axis, b: Axis) -> bool {
    let data = f.buffer(buffer);
    let at = |v: Var| -> Vec<usize> {
        (0..indices.len()).filter(|&i| uses_any(f, indices[i], &|x| x == v)).collect()
    };
    match (&at(a.var)[..], &at(b.var)[..]) {
        ([], []) => true,
        ([i], [j]) => {
            let adjacent = *j > *i && data.shape[i + 1..*j].iter().all(|&d| f.as_int(d) == Some(1));
            adjacent
                && is_var(f, indices[*i], a.var)
                && is_var(f, indices[*j], b.var)
                && data.strides.is_empty()
                && data.shape[*j] == b.extent
        }
        _ => false,
    }
}

/// Whether an expression uses a variable outside the indices of its loads.
fn is_used_outside_indices(f: &PrimFunc, e: Expr, v: Var) -> bool {
    let (mut stack, mut seen) = (vec![e], FxHashSet::default());
    while let Some(e) = stack.pop() {
        match f.expr(e) {
            _ if !seen.insert(e) => {}
            ExprData::Var(x) if *x == v => return true,
            ExprData::Load(..) => {}
            data => for_each_operand(data, |a| stack.push(a)),
        }
    }
    false
}

/// Returns the stage with the axes of each range in `runs` fused into one axis.
fn fuse(f: &mut PrimFunc, s: &Stage, runs: &[Range<usize>]) -> Stage {
    let (mut axes, mut map) = (Vec::with_capacity(runs.len()), FxHashMap::default());
    for run in runs {
        let [outer, inner @ ..] = &s.axes[run.clone()] else { continue };
        if inner.is_empty() {
            axes.push(*outer);
            continue;
        }
        let fused = f.size_var("fused");
        let mut rest = f.var_expr(fused);
        for a in inner.iter().rev() {
            map.insert(a.var, divide_position(f, BinOp::FloorMod, rest, a.extent));
            rest = divide_position(f, BinOp::FloorDiv, rest, a.extent);
        }
        map.insert(outer.var, rest);
        let extents: Vec<Expr> = s.axes[run.clone()].iter().map(|a| a.extent).collect();
        axes.push(Axis { var: fused, extent: product_of(f, &extents), reduce: outer.reduce });
    }
    if map.is_empty() {
        return s.clone();
    }
    Stage { axes, ..s.substituted(f, &map) }
}

/// Emits the loops of a stage with only one axis: a parallel loop over chunks of constant size, around vectorized loops over the
/// points of a chunk. An axis that is not longer than one chunk gets no parallel loop.
pub(super) fn parallel_chunks(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let axis = s.axes[0];
    let Body::Store { value, .. } = s.body else {
        unreachable!("only stages whose body is a store are vectorized")
    };
    let per_point = vector_math_tiles::estimated_operations(f, value) + 2;
    let chunk = (grain() / per_point).clamp(64, 65_536) / 64 * 64;
    if f.as_int(axis.extent).is_some_and(|n| n <= chunk) {
        return serial_loops(f, s);
    }
    let size = f.int(chunk);
    let (v, first) = (f.size_var("chunk"), f.size_var("first"));
    let (ve, fe) = (f.var_expr(v), f.var_expr(first));
    let left = f.binary(BinOp::Sub, axis.extent, fe);
    let iterations = f.binary(BinOp::Min, size, left);
    let map = |f: &mut PrimFunc, i: Expr| f.add(fe, i);
    let body = strip_mine(f, s, axis.var, iterations, &map);
    let start = f.mul(ve, size);
    let body = f.add_stmt(StmtData::Let(first, start, body));
    let up = f.int(chunk - 1);
    let up = f.add(axis.extent, up);
    let extent = f.binary(BinOp::FloorDiv, up, size);
    let (min, kind) = (f.int(0), ForKind::Parallel);
    f.add_stmt(StmtData::For { var: v, min, extent, kind, body, annotations: Vec::new() })
}

/// Emits all loops of a stage as serial loops.
pub fn serial_loops(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let vector = vector_axis(f, s);
    if let (true, Some(r)) = (s.reduces(), s.reduction(f)) {
        return reduction_loops(f, s, &r, vector);
    }
    if let Some(loops) = loop_splitting::emit(f, s) {
        return loops;
    }
    unsplit_loops(f, s)
}

/// Emits the loops of a stage that is not a reduction and whose last axis is not split.
pub(super) fn unsplit_loops(f: &mut PrimFunc, s: &Stage) -> Stmt {
    match vector_axis(f, s) {
        Some(last) => {
            let axis = s.axes[last];
            let body = strip_mine(f, s, axis.var, axis.extent, &|_, i| i);
            loop_nest(f, &s.axes[..last], body)
        }
        None => scalar_loop_nest(f, s),
    }
}

/// Returns the body of a stage, with the stage's guards (run-time checks and bindings) in front of it.
pub(super) fn guarded_body(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let body = match &s.body {
        Body::Store { buffer, indices, value } => f.store(*buffer, indices, *value),
        Body::Other(s) => *s,
    };
    access_guards::wrap(f, &s.guards, body)
}

/// Puts the guards (bindings and checks) of a stage in front of `body`, which consists of loops over an axis with the
/// given extent. The guards must not depend on this axis. The guards run only if the extent is positive.
pub(super) fn hoist_guards(f: &mut PrimFunc, s: &Stage, extent: Expr, body: Stmt) -> Stmt {
    if s.guards.is_empty() {
        return body;
    }
    let zero = f.int(0);
    let not_empty = f.binary(BinOp::Lt, zero, extent);
    let body = access_guards::wrap(f, &s.guards, body);
    f.add_stmt(StmtData::If(not_empty, body, None))
}

/// Wraps a statement in a nest of serial loops, one over each axis.
pub(super) fn loop_nest(f: &mut PrimFunc, axes: &[Axis], body: Stmt) -> Stmt {
    axes.iter().rev().fold(body, |body, a| serial_loop(f, a.var, a.extent, body))
}

/// Strip-mines a vectorized axis of a stage: emits loops over `0..extent` with wide vectors, then narrow vectors, then scalars.
/// `map` converts a position in this range to a value of the axis. The guards of the stage must not depend on the axis; they run
/// before the loops.
pub(super) fn strip_mine(
    f: &mut PrimFunc,
    s: &Stage,
    axis: Var,
    extent: Expr,
    map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
) -> Stmt {
    let Body::Store { buffer, indices, value } = &s.body else {
        unreachable!("only stages whose body is a store are vectorized")
    };
    let (buffer, indices, value) = (*buffer, indices, *value);
    if let Some(tiles) = vector_math_tiles::plan_tiles(f, (buffer, indices, value), axis, extent) {
        let body = vector_math_loops::store(f, (buffer, indices), &tiles, (axis, extent), map);
        return hoist_guards(f, s, extent, body);
    }
    let widths = vector_widths(vector_lanes(f, value));
    let body = strip_loops_by_position(f, extent, &widths, &mut |f, at| {
        let at = map(f, at);
        let s = s.substituted(f, &FxHashMap::from_iter([(axis, at)]));
        let Body::Store { buffer, indices, value } = s.body else {
            unreachable!("substituting variables in a store results in a store")
        };
        f.store(buffer, &indices, value)
    });
    hoist_guards(f, s, extent, body)
}

/// Returns the vector widths, in elements, of the loops into which the loop over an axis is split, in descending order. `wide` is
/// the largest width. The last width is 1.
pub(super) fn vector_widths(wide: i64) -> Vec<i64> {
    match wide {
        17.. => vec![wide, 16, 4, 1],
        8.. => vec![wide, 4, 1],
        _ => vec![wide, 1],
    }
}

/// Emits loops over `0..extent` with vectors of descending widths. `body` emits the statement for one vector or scalar: it
/// receives the position and, for a vector, the lane variable. `around` wraps each vector loop and each scalar statement in
/// further loops.
pub(super) fn strip_loops(
    f: &mut PrimFunc,
    extent: Expr,
    widths: &[i64],
    body: &mut dyn FnMut(&mut PrimFunc, Expr, Option<Var>) -> Stmt,
    around: &mut dyn FnMut(&mut PrimFunc, Stmt) -> Stmt,
) -> Stmt {
    let mut out = Vec::new();
    let mut done = f.int(0);
    let mut left = extent;
    for &w in widths {
        let width = f.int(w);
        let iterations = f.binary(BinOp::FloorDiv, left, width);
        let strip = f.size_var(if w == 1 { "tail" } else { "strip" });
        let strip_e = f.var_expr(strip);
        let at = f.mul(strip_e, width);
        let at = f.add(done, at);
        let s = if w == 1 {
            body(f, at, None)
        } else {
            let lane = f.size_var("lane");
            let s = body(f, at, Some(lane));
            vector_loop(f, lane, width, s)
        };
        let s = around(f, s);
        out.push(serial_loop(f, strip, iterations, s));
        let covered = f.mul(iterations, width);
        done = f.add(done, covered);
        left = f.binary(BinOp::FloorMod, left, width);
        if f.as_int(extent).is_some_and(|n| n % w == 0) {
            break;
        }
    }
    f.seq(out)
}

/// Emits loops over `0..extent` with vectors of the given widths, which descend. `body` emits the statement for one element: it
/// receives the position of the element, which includes the lane of the vector loop ([`strip_loops`]).
pub(super) fn strip_loops_by_position(
    f: &mut PrimFunc,
    extent: Expr,
    widths: &[i64],
    body: &mut dyn FnMut(&mut PrimFunc, Expr) -> Stmt,
) -> Stmt {
    let mut at_lane = |f: &mut PrimFunc, at: Expr, lane: Option<Var>| {
        let at = match lane {
            Some(l) => {
                let l = f.var_expr(l);
                f.add(at, l)
            }
            None => at,
        };
        body(f, at)
    };
    strip_loops(f, extent, widths, &mut at_lane, &mut |_, s| s)
}

/// Emits a vectorized loop over the lanes of a vector.
pub(super) fn vector_loop(f: &mut PrimFunc, lane: Var, width: Expr, body: Stmt) -> Stmt {
    let (min, kind) = (f.int(0), ForKind::Vectorized);
    f.add_stmt(StmtData::For { var: lane, min, extent: width, kind, body, annotations: Vec::new() })
}
