//! Reductions of columns to their maxima or minima, computed by vector math functions (`pliant_vec_*`) of the run-time
//! library.
//!
//! Generated code has vectors of at most 128 bits, and propagating NaN takes several instructions per vector. Therefore
//! the loops call `pliant_vec_maximum_<type>` and `pliant_vec_minimum_<type>`, which use wider vectors: a tile contains
//! adjacent results, and each call accumulates a slice of one row of the operand into the tile. This requires that the
//! reduction reads its operand unchanged from memory.

use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Stmt, StmtData};
use pliant_kernel_api::vector_math_functions::{
    VectorMathFunction, VectorMathOperation, vector_math_function_for,
};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{
    estimated_work, is_contiguous_along, loop_nest, strip_loops_by_position, vector_lanes,
    vector_widths,
};
use super::loop_nest_stages::{Axis, Reduction, Stage};
use super::reduction_loops::{initial_value, store_target};
use super::row_group_fusion::{parallel_row_loop, serial_loop};
use super::vector_math_tiles::{MIN_POINTS, call_on_elements, new_tile};
use crate::access_guards;
use crate::code_generator_vectors::has_widest_vectors;
use crate::statement_traversal::substitute_expr;

/// The number of results per tile, which is also the number of elements of a row that one call processes. For a matrix
/// of 1000 columns, tiles of 256, 512 and 1024 elements take 0.33, 0.28 and 0.21 ms on one thread. A division of the
/// rows into two halves for two threads takes 0.25 ms.
const TILE_RESULTS: i64 = 1024;

/// Returns the vector math function (`pliant_vec_*`) for an operator and an element type, if there is one.
fn function_of(op: BinOp, dtype: DType) -> Option<&'static VectorMathFunction> {
    let operation = match op {
        BinOp::Max => VectorMathOperation::Maximum,
        BinOp::Min => VectorMathOperation::Minimum,
        _ => return None,
    };
    vector_math_function_for(operation, dtype, dtype)
}

/// Returns the vector math function (`pliant_vec_*`) that accumulates the operand of a reduction along an axis; `None` if no
/// vector math function can do this.
pub fn accumulate_function(
    f: &PrimFunc,
    s: &Stage,
    r: &Reduction,
    axis: Axis,
) -> Option<&'static VectorMathFunction> {
    let dtype = f.buffer(store_target(s).0).dtype;
    function_of(r.op, dtype).filter(|_| reads_operand_along(f, s, r, axis))
}

/// Whether vector math functions (`pliant_vec_*`) can read the operand of a reduction: the elements along `axis` are adjacent in
/// memory, and nothing is computed from them before the reduction. Also checks that the axis may be long enough for a call, and
/// that the code generator needs calls.
pub(super) fn reads_operand_along(f: &PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> bool {
    let (buffer, _) = store_target(s);
    let ExprData::Load(from, indices) = f.expr(r.value) else { return false };
    let few = f.as_int(axis.extent).is_some_and(|n| n < MIN_POINTS);
    *from != buffer
        && f.buffer(*from).dtype == f.buffer(buffer).dtype
        && is_contiguous_along(f, *from, indices, axis.var)
        && !indices.iter().any(|&i| access_guards::reads_memory(f, i))
        && s.guards.is_empty()
        && !few
        && !has_widest_vectors(f)
}

/// Emits a serial loop over tiles of results, which computes all results along the axis.
pub fn column_tiles(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    axis: Axis,
    function: &VectorMathFunction,
) -> Stmt {
    let (size, up) = (f.int(TILE_RESULTS), f.int(TILE_RESULTS - 1));
    let iterations = f.add(axis.extent, up);
    let iterations = f.binary(BinOp::FloorDiv, iterations, size);
    let tile = f.size_var("tile");
    let at = f.var_expr(tile);
    let at = f.mul(at, size);
    let body = tile_loops(f, s, r, axis, at, function);
    serial_loop(f, tile, iterations, body)
}

/// Emits a parallel loop over the tiles of results of a column reduction. [`column_tiles`] emits the serial form of this loop.
pub fn parallel_column_tiles(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    axis: Axis,
    function: &VectorMathFunction,
) -> Stmt {
    let (size, up) = (f.int(TILE_RESULTS), f.int(TILE_RESULTS - 1));
    let mut one_result = s.clone();
    one_result.axes.drain(..1);
    let work = estimated_work(f, &one_result);
    let work = f.mul(work, size);
    let tile = f.size_var("tile");
    let at = f.var_expr(tile);
    let at = f.mul(at, size);
    let body = tile_loops(f, s, r, axis, at, function);
    let iterations = f.add(axis.extent, up);
    let iterations = f.binary(BinOp::FloorDiv, iterations, size);
    parallel_row_loop(f, &[tile], &[iterations], work, body, &[])
}

/// Emits the loops that compute one tile of results of a column reduction. The tile starts at position `at` of the axis.
fn tile_loops(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    axis: Axis,
    at: Expr,
    function: &VectorMathFunction,
) -> Stmt {
    let (buffer, _) = store_target(s);
    let dtype = f.buffer(buffer).dtype;
    let acc = new_tile(f, dtype, TILE_RESULTS);
    let (zero, size) = (f.int(0), f.int(TILE_RESULTS));
    let left = f.binary(BinOp::Sub, axis.extent, at);
    let points = f.binary(BinOp::Min, size, left);
    let widths = vector_widths(vector_lanes(f, r.value));
    let stage_at = |f: &mut PrimFunc, offset: Expr| {
        let position = f.add(at, offset);
        s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]))
    };
    let init = strip_loops_by_position(f, points, &widths, &mut |f, offset| {
        let s = stage_at(f, offset);
        let first = initial_value(f, &s);
        f.store(acc, &[offset], first)
    });
    let row = substitute_expr(f, r.value, &FxHashMap::from_iter([(axis.var, at)]));
    let result = f.load(acc, &[zero]);
    let call = call_on_elements(f, function, &[result, result, row], points);
    let update = loop_nest(f, &s.axes[s.leading_spatial()..], call);
    let finish = strip_loops_by_position(f, points, &widths, &mut |f, offset| {
        let s = stage_at(f, offset);
        let (buffer, indices) = store_target(&s);
        let value = f.load(acc, &[offset]);
        f.store(buffer, &indices, value)
    });
    let body = f.seq(vec![init, update, finish]);
    f.add_stmt(StmtData::Alloc(acc, body))
}
