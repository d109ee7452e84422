//! The loops of reductions: vectors of partial results over a contiguous axis, vectors of adjacent results, or one scalar result.
//!
//! A running total of float32 loses digits as it grows. Sums over a contiguous axis that may have more than [`PART`] elements are
//! therefore computed in parts of this size. Each part has a vector of partial sums, and the sums of the parts are added in
//! float64. One scalar result has a running total of float64. Adjacent results have totals of their own type.

use pliant_ir::tir::{
    BinOp, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Scope, Stmt, StmtData, Ty,
};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit::{guarded_once, lanes, nest, vector_loop, widths, work};
use super::group::{row_loop, serial};
use super::plain::scalar_nest;
use super::stage::{Axis, Body, Init, Reduction, Stage};
use super::{extremes, tiled, tiles};
use crate::guards;

/// Maximum number of elements that are summed in float32.
const PART: i64 = 1024;

fn accumulator(f: &mut PrimFunc, dtype: DType, lanes: i64) -> Buffer {
    let shape = vec![f.int(lanes)];
    f.add_buffer(BufferData {
        name: "acc".into(),
        dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Local,
    })
}

/// All loops of a reduction, on the calling thread.
pub(super) fn reduction(f: &mut PrimFunc, s: &Stage, r: &Reduction, vector: Option<usize>) -> Stmt {
    let spatial = s.leading_spatial();
    if s.axes[spatial..].iter().any(|a| !a.reduce) {
        return scalar_nest(f, s);
    }
    let body = match vector {
        Some(a) if a < spatial => {
            let axis = s.axes[a];
            let body = columns(f, s, r, axis);
            return nest(f, &s.axes[..a], body);
        }
        Some(last) => {
            let (buffer, indices) = target(s);
            let (axis, store) = (s.axes[last], (buffer, &*indices, r.value));
            match tiles::plan(f, store, axis.var, axis.extent) {
                Some(tiles) => tiled::reduction(f, s, r, &tiles),
                None => lanewise(f, s, r, is_long(f, s, r)),
            }
        }
        None => one_result(f, s, r, None, is_long(f, s, r)),
    };
    nest(f, &s.axes[..spatial], body)
}

pub(super) fn target(s: &Stage) -> (Buffer, Box<[Expr]>) {
    match &s.body {
        Body::Store { buffer, indices, .. } => (*buffer, indices.clone()),
        Body::Other(_) => unreachable!("a reduction is a store"),
    }
}

/// The value that a reduction starts with: its init, or the current value of the result.
pub(super) fn start(f: &mut PrimFunc, s: &Stage) -> Expr {
    let (buffer, indices) = target(s);
    match s.init {
        Some(Init::Value(e)) => e,
        _ => f.load(buffer, &indices),
    }
}

/// The number of lanes for adjacent results: as many accumulators as registers hold, since each update waits for the previous one.
fn column_lanes(f: &PrimFunc, value: Expr) -> i64 {
    match lanes(f, value) {
        16 => 32,
        other => other,
    }
}

/// Strips of adjacent results. For many results, extremes call the library.
fn columns(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> Stmt {
    let strips = register_strips(f, s, r, axis);
    let Some(function) = extremes::function(f, s, r, axis) else { return strips };
    let tiles = extremes::columns(f, s, r, axis, &function);
    let few = is_few(f, axis);
    f.add_stmt(StmtData::If(few, strips, Some(tiles)))
}

/// Whether an axis has so few results that calling the library does not pay.
fn is_few(f: &mut PrimFunc, axis: Axis) -> Expr {
    let few = f.int(tiles::FEW);
    f.binary(BinOp::Lt, axis.extent, few)
}

/// Strips of adjacent results. Each strip is a vector in registers while the reduction runs.
fn register_strips(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> Stmt {
    let widths = widths(column_lanes(f, r.value));
    let mut out = Vec::new();
    let (mut done, mut left) = (f.int(0), axis.extent);
    for &w in &widths {
        let width = f.int(w);
        let turns = f.binary(BinOp::FloorDiv, left, width);
        let strip = f.size_var("strip");
        let strip_e = f.var_expr(strip);
        let at = f.mul(strip_e, width);
        let at = f.add(done, at);
        let body = column_strip(f, s, r, axis, at, w);
        out.push(serial(f, strip, turns, body));
        let covered = f.mul(turns, width);
        done = f.add(done, covered);
        left = f.binary(BinOp::FloorMod, left, width);
    }
    f.seq(out)
}

/// `w` adjacent results from `at` on.
fn column_strip(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis, at: Expr, w: i64) -> Stmt {
    if w == 1 {
        let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, at)]));
        let r = s.reduction(f).expect("substitution keeps the form");
        // Not a long sum, since the columns beside it are vectors of running totals of their own type.
        return one_result(f, &s, &r, None, false);
    }
    let (buffer, _) = target(s);
    let acc = accumulator(f, f.buffer(buffer).dtype, w);
    let width = f.int(w);
    let lane = |f: &mut PrimFunc| {
        let v = f.size_var("lane");
        let e = f.var_expr(v);
        let value = f.add(at, e);
        (v, e, s.substituted(f, &FxHashMap::from_iter([(axis.var, value)])))
    };
    let (v, e, at_lane) = lane(f);
    let init = start(f, &at_lane);
    let init = f.store(acc, &[e], init);
    let init = vector_loop(f, v, width, init);
    let (v, e, at_lane) = lane(f);
    let next = at_lane.reduction(f).expect("substitution keeps the form").value;
    let old = f.load(acc, &[e]);
    let new = f.binary(r.op, old, next);
    let update = f.store(acc, &[e], new);
    let update = vector_loop(f, v, width, update);
    let update = guards::wrap(f, &s.guards, update);
    let spatial = s.leading_spatial();
    let update = nest(f, &s.axes[spatial..], update);
    let (v, e, at_lane) = lane(f);
    let (buffer, indices) = target(&at_lane);
    let result = f.load(acc, &[e]);
    let finish = f.store(buffer, &indices, result);
    let finish = vector_loop(f, v, width, finish);
    let body = f.add_stmt(StmtData::Seq(vec![init, update, finish]));
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// A reduction whose last axis is contiguous: a vector of partial results, combined at the end or, in `long` sums, part by
/// part.
pub(super) fn lanewise(f: &mut PrimFunc, s: &Stage, r: &Reduction, long: bool) -> Stmt {
    let (buffer, _) = target(s);
    let dtype = f.buffer(buffer).dtype;
    // Wider vectors would leave longer remainders of rows, which are reduced one by one.
    let w = lanes(f, r.value).min(16);
    let width = f.int(w);
    let last = s.axes[s.axes.len() - 1];
    let acc = accumulator(f, dtype, w);
    let outer = &s.axes[s.leading_spatial()..s.axes.len() - 1];
    // The part of the last axis that fills whole vectors.
    let turns = f.binary(BinOp::FloorDiv, last.extent, width);
    let covered = f.mul(turns, width);
    let row = Row { s, r, acc, width, turns };
    let body = if long {
        let zero = f.int(0);
        let total = accumulator(f, DType::Float64, 1);
        let nothing = f.const_of(-0.0, DType::Float64);
        let init = f.store(total, &[zero], nothing);
        let sums = row.sums_of_parts(f, total);
        let sums = guarded_once(f, s, last.extent, sums);
        let sums = nest(f, outer, sums);
        let sum = f.load(total, &[zero]);
        let rest = one_result(f, s, r, Some((sum, covered)), long);
        let body = f.add_stmt(StmtData::Seq(vec![init, sums, rest]));
        f.add_stmt(StmtData::Alloc(total, body))
    } else {
        let init = row.started(f);
        let update = row.strips(f, None);
        let update = guarded_once(f, s, last.extent, update);
        let update = nest(f, outer, update);
        let partial = row.combined(f);
        let rest = one_result(f, s, r, Some((partial, covered)), long);
        f.add_stmt(StmtData::Seq(vec![init, update, rest]))
    };
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// Whether a reduction is a sum of float32 that may have too many values for one running total.
fn is_long(f: &PrimFunc, s: &Stage, r: &Reduction) -> bool {
    let dtype = f.buffer(target(s).0).dtype;
    let mut extents = s.axes.iter().filter(|a| a.reduce).map(|a| f.as_int(a.extent));
    let known = extents.try_fold(1i64, |n, e| n.checked_mul(e?));
    r.op == BinOp::Add && dtype == DType::Float32 && known.is_none_or(|n| n > PART)
}

/// The vectors of one row of a reduction.
struct Row<'a> {
    s: &'a Stage,
    r: &'a Reduction,
    /// The partial results.
    acc: Buffer,
    /// The number of partial results.
    width: Expr,
    /// The number of whole vectors in the row.
    turns: Expr,
}

impl Row<'_> {
    /// Initializes the partial results to a value that does not change the result.
    fn started(&self, f: &mut PrimFunc) -> Stmt {
        let lane = f.size_var("lane");
        let at = f.var_expr(lane);
        let identity = match self.r.op {
            // Adding to -0.0 keeps every value, including the sign of a zero.
            BinOp::Add => f.const_of(-0.0, f.buffer(self.acc).dtype),
            BinOp::Mul => f.const_of(1.0, f.buffer(self.acc).dtype),
            _ => start(f, self.s),
        };
        let init = f.store(self.acc, &[at], identity);
        vector_loop(f, lane, self.width, init)
    }

    /// Accumulates vectors into the partial results: all vectors of the row, or those of `part` (the first one, and how many).
    fn strips(&self, f: &mut PrimFunc, part: Option<(Expr, Expr)>) -> Stmt {
        let last = self.s.axes[self.s.axes.len() - 1];
        let strip = f.size_var("strip");
        let mut at = f.var_expr(strip);
        let mut turns = self.turns;
        if let Some((first, count)) = part {
            (at, turns) = (f.add(first, at), count);
        }
        let lane = f.size_var("lane");
        let lane_e = f.var_expr(lane);
        let at = f.mul(at, self.width);
        let at = f.add(at, lane_e);
        let here = FxHashMap::from_iter([(last.var, at)]);
        let value = crate::walk::substitute_expr(f, self.r.value, &here);
        let old = f.load(self.acc, &[lane_e]);
        let new = f.binary(self.r.op, old, value);
        let update = f.store(self.acc, &[lane_e], new);
        let update = vector_loop(f, lane, self.width, update);
        serial(f, strip, turns, update)
    }

    /// Reduces the partial results to one value.
    fn combined(&self, f: &mut PrimFunc) -> Expr {
        let (zero, one) = (f.int(0), f.int(1));
        let lanes = f.as_int(self.width).unwrap_or(1) as u16;
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

    /// The product of the partial results, by pairwise multiplication.
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

    /// Adds the sums of parts of [`PART`] elements to a total.
    fn sums_of_parts(&self, f: &mut PrimFunc, total: Buffer) -> Stmt {
        let strips = PART / f.as_int(self.width).unwrap_or(1);
        let (most, up, zero) = (f.int(strips), f.int(strips - 1), f.int(0));
        let part = f.size_var("part");
        let first = f.var_expr(part);
        let first = f.mul(first, most);
        let left = f.binary(BinOp::Sub, self.turns, first);
        let count = f.binary(BinOp::Min, most, left);
        let init = self.started(f);
        let update = self.strips(f, Some((first, count)));
        let sum = self.combined(f);
        let sum = f.add_expr(ExprData::Cast(Ty::scalar(DType::Float64), sum));
        let old = f.load(total, &[zero]);
        let sum = f.binary(BinOp::Add, old, sum);
        let add = f.store(total, &[zero], sum);
        let body = f.add_stmt(StmtData::Seq(vec![init, update, add]));
        let parts = f.add(self.turns, up);
        let parts = f.binary(BinOp::FloorDiv, parts, most);
        serial(f, part, parts, body)
    }
}

/// One result in a scalar accumulator, which is float64 for `long` sums. `from` is the reduced value of the first positions of the
/// last axis, and the number of these positions.
fn one_result(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    from: Option<(Expr, Expr)>,
    long: bool,
) -> Stmt {
    let (buffer, indices) = target(s);
    let dtype = f.buffer(buffer).dtype;
    let kept = if long { DType::Float64 } else { dtype };
    let as_kept = |f: &mut PrimFunc, e: Expr| match f.expr_ty(e).dtype == kept {
        true => e,
        false => f.add_expr(ExprData::Cast(Ty::scalar(kept), e)),
    };
    let acc = accumulator(f, kept, 1);
    let zero = f.int(0);
    let first = start(f, s);
    let first = as_kept(f, first);
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
        value = crate::walk::substitute_expr(f, value, &FxHashMap::from_iter([(last.var, at)]));
        last.var = tail;
        last.extent = f.binary(BinOp::Sub, last.extent, covered);
    }
    let old = f.load(acc, &[zero]);
    let value = as_kept(f, value);
    let new = f.binary(r.op, old, value);
    let update = f.store(acc, &[zero], new);
    let update = guards::wrap(f, &s.guards, update);
    let update = nest(f, &axes, update);
    let mut result = f.load(acc, &[zero]);
    if kept != dtype {
        result = f.add_expr(ExprData::Cast(Ty::scalar(dtype), result));
    }
    let finish = f.store(buffer, &indices, result);
    let body = f.add_stmt(StmtData::Seq(vec![init, update, finish]));
    f.add_stmt(StmtData::Alloc(acc, body))
}

/// A reduction over rows with one spatial axis: its strips run in parallel.
pub(super) fn strips(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let axis = s.axes[0];
    let r = s.reduction(f).expect("only reductions have a vectorized spatial axis before the last");
    if let Some(function) = extremes::function(f, s, &r, axis) {
        let few = is_few(f, axis);
        let one_strip = register_strips(f, s, &r, axis);
        let tiles = extremes::strips(f, s, &r, axis, &function);
        return f.add_stmt(StmtData::If(few, one_strip, Some(tiles)));
    }
    let w = column_lanes(f, r.value);
    let (width, up) = (f.int(w), f.int(w - 1));
    let mut one = s.clone();
    one.axes.drain(..1);
    let work = work(f, &one);
    let work = f.mul(work, width);
    let strip = f.size_var("strip");
    let at = f.var_expr(strip);
    let at = f.mul(at, width);
    let end = f.add(at, width);
    let full = f.binary(BinOp::Le, end, axis.extent);
    let whole = column_strip(f, s, &r, axis, at, w);
    let column = f.size_var("column");
    let position = f.var_expr(column);
    let position = f.add(at, position);
    let rest = s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]));
    let r = rest.reduction(f).expect("substitution keeps the form");
    let extent = f.binary(BinOp::Sub, axis.extent, at);
    let part = columns(f, &rest, &r, Axis { var: column, extent, ..axis });
    let body = f.add_stmt(StmtData::If(full, whole, Some(part)));
    let turns = f.add(axis.extent, up);
    let turns = f.binary(BinOp::FloorDiv, turns, width);
    row_loop(f, &[strip], &[turns], work, body, &[])
}
