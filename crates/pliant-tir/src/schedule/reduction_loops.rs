//! Emits the loops of reductions, with a vector of partial results over a contiguous axis, a vector of adjacent results, or one
//! scalar result. Chooses the number of accumulators and their lanes from the vector width of the code generator.
//!
//! A running total in float32 loses precision as it grows. Sums over a contiguous axis that may have more than
//! [`FLOAT32_SUM_LENGTH`] elements are therefore computed in chunks of this length. Each chunk has a vector of partial sums, and
//! the sums of the chunks are added in float64. A single scalar result is accumulated in float64. Vectors of adjacent results are
//! accumulated in their own type.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{
    estimated_work, hoist_guards, loop_nest, vector_lanes, vector_loop, vector_widths,
};
use super::loop_nest_stages::{Axis, Body, Init, Reduction, Stage};
use super::row_group_fusion::{parallel_row_loop, serial_loop};
use super::scalar_stage_loops::scalar_loop_nest;
use super::{column_extrema, row_extrema, vector_math_loops, vector_math_tiles};
use crate::access_guards;
use crate::code_generator_vectors::{has_widest_vectors, vector_bytes};

/// Maximum number of elements that are summed in float32 before the sum is added to a float64 total.
const FLOAT32_SUM_LENGTH: i64 = 1024;

fn new_accumulator(f: &mut PrimFunc, dtype: DType, lanes: i64) -> Buffer {
    f.local_buffer("acc", dtype, lanes)
}

/// Emits all loops of a reduction as serial loops. `vector` is the position of the vectorized axis.
pub(super) fn reduction_loops(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    vector: Option<usize>,
) -> Stmt {
    let spatial = s.leading_spatial();
    if s.axes[spatial..].iter().any(|a| !a.reduce) {
        return scalar_loop_nest(f, s);
    }
    let body = match vector {
        Some(a) if a < spatial => {
            let axis = s.axes[a];
            let body = column_strips(f, s, r, axis);
            return loop_nest(f, &s.axes[..a], body);
        }
        Some(last) => {
            let (buffer, indices) = store_target(s);
            let (axis, store) = (s.axes[last], (buffer, &*indices, r.value));
            match vector_math_tiles::plan_tiles(f, store, axis.var, axis.extent) {
                Some(tiles) => vector_math_loops::reduction(f, s, r, &tiles),
                None => vector_reduction(f, s, r, needs_float64_total(f, s, r)),
            }
        }
        None => scalar_reduction(f, s, r, None, needs_float64_total(f, s, r)),
    };
    loop_nest(f, &s.axes[..spatial], body)
}

/// Returns the buffer and the indices of the element that a store writes.
pub(super) fn store_target(s: &Stage) -> (Buffer, Box<[Expr]>) {
    match &s.body {
        Body::Store { buffer, indices, .. } => (*buffer, indices.clone()),
        Body::Other(_) => unreachable!("the body of a reduction is a store"),
    }
}

/// Returns the initial value of a reduction: its init, or the current value of the result.
pub(super) fn initial_value(f: &mut PrimFunc, s: &Stage) -> Expr {
    let (buffer, indices) = store_target(s);
    match s.init {
        Some(Init::Value(e)) => e,
        _ => f.load(buffer, &indices),
    }
}

/// Returns the number of vector lanes for reductions with adjacent results. It is larger than for other loops, because each
/// update of an accumulator waits for the previous one, and independent accumulators hide this latency.
fn column_lanes(f: &PrimFunc, value: Expr) -> i64 {
    match vector_lanes(f, value) {
        16 => 32,
        other => other,
    }
}

/// Emits the loops of a reduction with adjacent results, one strip of results at a time. Maxima and minima of many columns call
/// library functions (`pliant_vec_*`).
fn column_strips(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> Stmt {
    let strips = register_strips(f, s, r, axis);
    let Some(function) = column_extrema::accumulate_function(f, s, r, axis) else { return strips };
    let tiles = column_extrema::column_tiles(f, s, r, axis, function);
    let few = has_few_points(f, axis);
    f.add_stmt(StmtData::If(few, strips, Some(tiles)))
}

/// Returns the condition that an axis has too few points for calls of library functions (`pliant_vec_*`) to be profitable.
fn has_few_points(f: &mut PrimFunc, axis: Axis) -> Expr {
    let few = f.int(vector_math_tiles::MIN_POINTS);
    f.binary(BinOp::Lt, axis.extent, few)
}

/// Emits a loop over strips of adjacent results. A strip is a vector of results that stays in registers during the reduction.
fn register_strips(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> Stmt {
    let widths = vector_widths(column_lanes(f, r.value));
    let mut out = Vec::new();
    let (mut done, mut left) = (f.int(0), axis.extent);
    for &w in &widths {
        let width = f.int(w);
        let iterations = f.binary(BinOp::FloorDiv, left, width);
        let strip = f.size_var("strip");
        let strip_e = f.var_expr(strip);
        let at = f.mul(strip_e, width);
        let at = f.add(done, at);
        let body = column_strip(f, s, r, axis, at, w);
        out.push(serial_loop(f, strip, iterations, body));
        let covered = f.mul(iterations, width);
        done = f.add(done, covered);
        left = f.binary(BinOp::FloorMod, left, width);
    }
    f.seq(out)
}

/// Emits the loops that compute a strip of `w` adjacent results, starting at position `at` of the axis.
fn column_strip(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis, at: Expr, w: i64) -> Stmt {
    if w == 1 {
        let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, at)]));
        let r =
            s.reduction(f).expect("substituting variables in a reduction results in a reduction");
        // The total has the type of the results, because the totals of the adjacent columns, which are in vectors, do too.
        return scalar_reduction(f, &s, &r, None, false);
    }
    let (buffer, _) = store_target(s);
    let acc = new_accumulator(f, f.buffer(buffer).dtype, w);
    let width = f.int(w);
    let lane = |f: &mut PrimFunc| {
        let v = f.size_var("lane");
        let e = f.var_expr(v);
        let value = f.add(at, e);
        (v, e, s.substituted(f, &FxHashMap::from_iter([(axis.var, value)])))
    };
    let (v, e, at_lane) = lane(f);
    let init = initial_value(f, &at_lane);
    let init = f.store(acc, &[e], init);
    let init = vector_loop(f, v, width, init);
    let (v, e, at_lane) = lane(f);
    let next = at_lane
        .reduction(f)
        .expect("substituting variables in a reduction results in a reduction")
        .value;
    let old = f.load(acc, &[e]);
    let new = f.binary(r.op, old, next);
    let update = f.store(acc, &[e], new);
    let update = vector_loop(f, v, width, update);
    let update = access_guards::wrap(f, &s.guards, update);
    let spatial = s.leading_spatial();
    let update = loop_nest(f, &s.axes[spatial..], update);
    let (v, e, at_lane) = lane(f);
    let (buffer, indices) = store_target(&at_lane);
    let result = f.load(acc, &[e]);
    let finish = f.store(buffer, &indices, result);
    let finish = vector_loop(f, v, width, finish);
    let body = f.add_stmt(StmtData::Seq(vec![init, update, finish]));
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// Emits a reduction over a contiguous last axis. Maxima and minima of many elements call library functions (`pliant_vec_*`).
pub(super) fn vector_reduction(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    float64_total: bool,
) -> Stmt {
    let lanes = lane_reduction(f, s, r, float64_total);
    let Some(function) = row_extrema::accumulation_function(f, s, r) else { return lanes };
    let rows = row_extrema::accumulate_rows(f, s, r, function);
    let few = has_few_points(f, s.axes[s.axes.len() - 1]);
    f.add_stmt(StmtData::If(few, lanes, Some(rows)))
}

/// Emits a reduction over a contiguous last axis with a vector of partial results. The partial results are combined at the end
/// or, if `float64_total` is set, after each chunk.
fn lane_reduction(f: &mut PrimFunc, s: &Stage, r: &Reduction, float64_total: bool) -> Stmt {
    let (buffer, _) = store_target(s);
    let dtype = f.buffer(buffer).dtype;
    let (lanes, unroll) = accumulator_shape(f, r.value);
    let width = f.int(lanes);
    let last = s.axes[s.axes.len() - 1];
    let acc = new_accumulator(f, dtype, lanes * unroll);
    let outer = &s.axes[s.leading_spatial()..s.axes.len() - 1];
    // Full vectors cover this many elements of the last axis.
    let vectors = f.binary(BinOp::FloorDiv, last.extent, width);
    let covered = f.mul(vectors, width);
    let row = VectorReduction { s, r, acc, lanes, unroll, vectors };
    let body = if float64_total {
        let zero = f.int(0);
        let total = new_accumulator(f, DType::Float64, 1);
        let identity = f.const_of(-0.0, DType::Float64);
        let init = f.store(total, &[zero], identity);
        let sums = row.add_chunk_sums(f, total);
        let sums = hoist_guards(f, s, last.extent, sums);
        let sums = loop_nest(f, outer, sums);
        let sum = f.load(total, &[zero]);
        let rest = scalar_reduction(f, s, r, Some((sum, covered)), float64_total);
        let body = f.add_stmt(StmtData::Seq(vec![init, sums, rest]));
        f.add_stmt(StmtData::Alloc(total, body))
    } else {
        let zero = f.int(0);
        let init = row.init_partials(f);
        let update = row.accumulate_vectors(f, zero, vectors);
        let update = hoist_guards(f, s, last.extent, update);
        let update = loop_nest(f, outer, update);
        let mut body = vec![init, update];
        body.extend(row.merge_accumulators(f));
        let partial = row.combine_partials(f);
        body.push(scalar_reduction(f, s, r, Some((partial, covered)), float64_total));
        f.add_stmt(StmtData::Seq(body))
    };
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// Returns the number of lanes of an accumulator of a reduction over a contiguous axis, and the number of accumulators. Independent
/// accumulators hide the latency of their updates. With 128-bit vectors, one accumulator of 16 lanes consists of several vectors.
fn accumulator_shape(f: &PrimFunc, value: Expr) -> (i64, i64) {
    let lanes = vector_lanes(f, value);
    if !has_widest_vectors(f) {
        // More lanes would leave longer remainders of rows, which are reduced element by element.
        return (lanes.min(16), 1);
    }
    let one_vector = (vector_bytes(f) / 4).min(lanes);
    (one_vector, if lanes > one_vector { 4 } else { 2 })
}

/// Returns the position `first + position` on an axis; `position` itself if `first` is the constant 0.
fn after(f: &mut PrimFunc, first: Expr, position: Expr) -> Expr {
    if f.as_int(first) == Some(0) { position } else { f.add(first, position) }
}

/// Whether a reduction is a float32 sum that may have too many values for a float32 running total.
fn needs_float64_total(f: &PrimFunc, s: &Stage, r: &Reduction) -> bool {
    let dtype = f.buffer(store_target(s).0).dtype;
    let mut extents = s.axes.iter().filter(|a| a.reduce).map(|a| f.as_int(a.extent));
    let known = extents.try_fold(1i64, |n, e| n.checked_mul(e?));
    r.op == BinOp::Add && dtype == DType::Float32 && known.is_none_or(|n| n > FLOAT32_SUM_LENGTH)
}

/// The reduction of one row with a vector of partial results.
struct VectorReduction<'a> {
    s: &'a Stage,
    r: &'a Reduction,
    /// The buffer of the partial results: `unroll` accumulators of `lanes` lanes.
    acc: Buffer,
    /// The number of lanes of an accumulator.
    lanes: i64,
    /// The number of accumulators.
    unroll: i64,
    /// The number of whole vectors in the row that is reduced.
    vectors: Expr,
}

impl VectorReduction<'_> {
    /// Emits the initialization of the partial results to the identity of the operator or to another value that does not change
    /// the result.
    fn init_partials(&self, f: &mut PrimFunc) -> Stmt {
        let identity = match self.r.op {
            // Adding to -0.0 keeps every value, including the sign of a zero.
            BinOp::Add => f.const_of(-0.0, f.buffer(self.acc).dtype),
            BinOp::Mul => f.const_of(1.0, f.buffer(self.acc).dtype),
            _ => initial_value(f, self.s),
        };
        let inits = (0..self.unroll).map(|k| self.update(f, k, |_, _, _| identity)).collect();
        f.seq(inits)
    }

    /// Emits the statement that stores a new value to each lane of accumulator `k`. `value` receives the lane and the current
    /// value.
    fn update(
        &self,
        f: &mut PrimFunc,
        k: i64,
        value: impl FnOnce(&mut PrimFunc, Expr, Expr) -> Expr,
    ) -> Stmt {
        let lane = f.size_var("lane");
        let lane_e = f.var_expr(lane);
        let first = f.int(k * self.lanes);
        let at = after(f, first, lane_e);
        let old = f.load(self.acc, &[at]);
        let new = value(f, lane_e, old);
        let store = f.store(self.acc, &[at], new);
        let lanes = f.int(self.lanes);
        vector_loop(f, lane, lanes, store)
    }

    /// Emits the statement that accumulates the full vector with index `vector` into accumulator `k`.
    fn accumulate(&self, f: &mut PrimFunc, k: i64, vector: Expr) -> Stmt {
        let last = self.s.axes[self.s.axes.len() - 1];
        self.update(f, k, |f, lane, old| {
            let lanes = f.int(self.lanes);
            let at = f.mul(vector, lanes);
            let at = f.add(at, lane);
            let map = FxHashMap::from_iter([(last.var, at)]);
            let value = crate::statement_traversal::substitute_expr(f, self.r.value, &map);
            f.binary(self.r.op, old, value)
        })
    }

    /// Emits the loops that accumulate `count` full vectors, starting with the vector with index `first`, into the accumulators:
    /// one vector into each accumulator per iteration, then the remaining vectors into the first accumulator.
    fn accumulate_vectors(&self, f: &mut PrimFunc, first: Expr, count: Expr) -> Stmt {
        let mut loops = Vec::new();
        let (mut done, mut rest) = (first, count);
        if self.unroll > 1 {
            let unroll = f.int(self.unroll);
            let iterations = f.binary(BinOp::FloorDiv, count, unroll);
            let strip = f.size_var("strip");
            let at = f.var_expr(strip);
            let at = f.mul(at, unroll);
            let at = after(f, first, at);
            let updates = (0..self.unroll)
                .map(|k| {
                    let offset = f.int(k);
                    let vector = after(f, offset, at);
                    self.accumulate(f, k, vector)
                })
                .collect();
            let updates = f.seq(updates);
            loops.push(serial_loop(f, strip, iterations, updates));
            let covered = f.mul(iterations, unroll);
            done = after(f, first, covered);
            rest = f.binary(BinOp::FloorMod, count, unroll);
        }
        let strip = f.size_var("strip");
        let at = f.var_expr(strip);
        let vector = after(f, done, at);
        let update = self.accumulate(f, 0, vector);
        loops.push(serial_loop(f, strip, rest, update));
        f.seq(loops)
    }

    /// Emits the statements that combine all accumulators into the first one, pairwise.
    fn merge_accumulators(&self, f: &mut PrimFunc) -> Vec<Stmt> {
        let mut merges = Vec::new();
        let mut count = self.unroll;
        while count > 1 {
            count /= 2;
            for k in 0..count {
                merges.push(self.update(f, k, |f, lane, old| {
                    let first = f.int((k + count) * self.lanes);
                    let at = f.add(first, lane);
                    let other = f.load(self.acc, &[at]);
                    f.binary(self.r.op, old, other)
                }));
            }
        }
        merges
    }

    /// Returns the reduction of the partial results in the first accumulator to one value.
    fn combine_partials(&self, f: &mut PrimFunc) -> Expr {
        let (zero, one) = (f.int(0), f.int(1));
        let lanes = self.lanes as u16;
        if self.r.op == BinOp::Mul {
            return self.product_of_lanes(f, lanes);
        }
        let ramp = f.add_expr(ExprData::Ramp(zero, one, lanes));
        let vector = f.load(self.acc, &[ramp]);
        let combine = match self.r.op {
            BinOp::Add => Intrin::VectorSum,
            BinOp::Max => Intrin::VectorMax,
            _ => Intrin::VectorMin,
        };
        let ty = Ty::scalar(f.buffer(self.acc).dtype);
        f.add_expr(ExprData::Call(combine, [vector].into(), ty))
    }

    /// Returns the product of the partial results, computed by pairwise multiplication.
    fn product_of_lanes(&self, f: &mut PrimFunc, lanes: u16) -> Expr {
        let mut factors: Vec<Expr> = (0..i64::from(lanes))
            .map(|lane| {
                let lane = f.int(lane);
                f.load(self.acc, &[lane])
            })
            .collect();
        while factors.len() > 1 {
            let half = factors.len() / 2;
            factors =
                (0..half).map(|k| f.binary(BinOp::Mul, factors[k], factors[k + half])).collect();
        }
        factors[0]
    }

    /// Emits a loop that adds the sums of chunks of [`FLOAT32_SUM_LENGTH`] elements to a float64 total.
    fn add_chunk_sums(&self, f: &mut PrimFunc, total: Buffer) -> Stmt {
        let chunk_vectors = FLOAT32_SUM_LENGTH / self.lanes;
        let (size, up, zero) = (f.int(chunk_vectors), f.int(chunk_vectors - 1), f.int(0));
        let chunk = f.size_var("part");
        let first = f.var_expr(chunk);
        let first = f.mul(first, size);
        let left = f.binary(BinOp::Sub, self.vectors, first);
        let count = f.binary(BinOp::Min, size, left);
        let init = self.init_partials(f);
        let update = self.accumulate_vectors(f, first, count);
        let mut body = vec![init, update];
        body.extend(self.merge_accumulators(f));
        let sum = self.combine_partials(f);
        let sum = f.add_expr(ExprData::Cast(Ty::scalar(DType::Float64), sum));
        let old = f.load(total, &[zero]);
        let sum = f.binary(BinOp::Add, old, sum);
        let add = f.store(total, &[zero], sum);
        body.push(add);
        let body = f.add_stmt(StmtData::Seq(body));
        let chunks = f.add(self.vectors, up);
        let chunks = f.binary(BinOp::FloorDiv, chunks, size);
        serial_loop(f, chunk, chunks, body)
    }
}

/// Emits the reduction of one result in a scalar accumulator, which is float64 if `float64_total` is set. If `from` is set, the
/// first part of the last axis has already been reduced: `from` is (reduced value, number of reduced positions).
fn scalar_reduction(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    from: Option<(Expr, Expr)>,
    float64_total: bool,
) -> Stmt {
    let (buffer, indices) = store_target(s);
    let dtype = f.buffer(buffer).dtype;
    let total_dtype = if float64_total { DType::Float64 } else { dtype };
    let to_total_dtype = |f: &mut PrimFunc, e: Expr| match f.expr_ty(e).dtype == total_dtype {
        true => e,
        false => f.add_expr(ExprData::Cast(Ty::scalar(total_dtype), e)),
    };
    let acc = new_accumulator(f, total_dtype, 1);
    let zero = f.int(0);
    let first = initial_value(f, s);
    let first = to_total_dtype(f, first);
    let first = match from {
        Some((partial, _)) => f.binary(r.op, first, partial),
        None => first,
    };
    let init = f.store(acc, &[zero], first);
    let spatial = s.leading_spatial();
    let mut axes = s.axes[spatial..].to_vec();
    let mut value = r.value;
    if let (Some((_, covered)), Some(last)) = (from, axes.last_mut()) {
        let tail = f.size_var("tail");
        let at = f.var_expr(tail);
        let at = f.add(covered, at);
        value = crate::statement_traversal::substitute_expr(
            f,
            value,
            &FxHashMap::from_iter([(last.var, at)]),
        );
        last.var = tail;
        last.extent = f.binary(BinOp::Sub, last.extent, covered);
    }
    let old = f.load(acc, &[zero]);
    let value = to_total_dtype(f, value);
    let new = f.binary(r.op, old, value);
    let update = f.store(acc, &[zero], new);
    let update = access_guards::wrap(f, &s.guards, update);
    let update = loop_nest(f, &axes, update);
    let mut result = f.load(acc, &[zero]);
    if total_dtype != dtype {
        result = f.add_expr(ExprData::Cast(Ty::scalar(dtype), result));
    }
    let finish = f.store(buffer, &indices, result);
    let body = f.add_stmt(StmtData::Seq(vec![init, update, finish]));
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// Emits a reduction with one spatial axis as a parallel loop over strips of adjacent results.
pub(super) fn parallel_column_strips(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let axis = s.axes[0];
    let r = s
        .reduction(f)
        .expect("a stage that is vectorized over an axis other than the last one is a reduction");
    if let Some(function) = column_extrema::accumulate_function(f, s, &r, axis) {
        let few = has_few_points(f, axis);
        let strips = register_strips(f, s, &r, axis);
        let tiles = column_extrema::parallel_column_tiles(f, s, &r, axis, function);
        return f.add_stmt(StmtData::If(few, strips, Some(tiles)));
    }
    let w = column_lanes(f, r.value);
    let (width, up) = (f.int(w), f.int(w - 1));
    let mut one_result = s.clone();
    one_result.axes.drain(..1);
    let work = estimated_work(f, &one_result);
    let work = f.mul(work, width);
    let strip = f.size_var("strip");
    let at = f.var_expr(strip);
    let at = f.mul(at, width);
    let end = f.add(at, width);
    let is_full = f.binary(BinOp::Le, end, axis.extent);
    let full_strip = column_strip(f, s, &r, axis, at, w);
    let column = f.size_var("column");
    let position = f.var_expr(column);
    let position = f.add(at, position);
    let rest = s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]));
    let r =
        rest.reduction(f).expect("substituting variables in a reduction results in a reduction");
    let extent = f.binary(BinOp::Sub, axis.extent, at);
    let partial_strip = column_strips(f, &rest, &r, Axis { var: column, extent, ..axis });
    let body = f.add_stmt(StmtData::If(is_full, full_strip, Some(partial_strip)));
    let iterations = f.add(axis.extent, up);
    let iterations = f.binary(BinOp::FloorDiv, iterations, width);
    parallel_row_loop(f, &[strip], &[iterations], work, body, &[])
}
