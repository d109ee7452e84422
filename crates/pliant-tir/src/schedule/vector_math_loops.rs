//! Tiled loops around calls of vector math functions of the run-time library (`pliant_vec_*`): stores of adjacent points, and
//! reductions over a contiguous axis.

use pliant_ir::tir::{Buffer, Expr, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{
    hoist_guards, loop_nest, strip_loops_by_position, vector_lanes, vector_widths,
};
use super::loop_nest_stages::{Axis, Body, Reduction, Stage};
use super::reduction_loops::{initial_value, store_target, vector_reduction};
use super::vector_math_tiles::TiledValue;

/// Emits loops that compute and store a value at each point of an axis, tile by tile. `map` converts the loop counter to the
/// index on the axis.
pub(super) fn store(
    f: &mut PrimFunc,
    target: (Buffer, &[Expr]),
    tiles: &TiledValue,
    (axis, extent): (Var, Expr),
    map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
) -> Stmt {
    let (buffer, indices) = target;
    tiles.emit(f, (axis, extent), Some(target), map, &mut |f, base, points| {
        let widths = vector_widths(vector_lanes(f, tiles.value));
        strip_loops_by_position(f, points, &widths, &mut |f, offset| {
            let at = f.add(base, offset);
            let at = map(f, at);
            let value = tiles.value_at(f, axis, at, offset);
            let axis_value = FxHashMap::from_iter([(axis, at)]);
            let indices: Vec<Expr> = indices
                .iter()
                .map(|&i| crate::statement_traversal::substitute_expr(f, i, &axis_value))
                .collect();
            f.store(buffer, &indices, value)
        })
    })
}

/// Emits a tiled reduction over a contiguous axis: initializes the result, and accumulates each tile into it.
pub(super) fn reduction(f: &mut PrimFunc, s: &Stage, r: &Reduction, tiles: &TiledValue) -> Stmt {
    let (buffer, indices) = store_target(s);
    let first = initial_value(f, s);
    let init = f.store(buffer, &indices, first);
    let spatial = s.leading_spatial();
    let last = s.axes[s.axes.len() - 1];
    let body = tiles.emit(f, (last.var, last.extent), None, &|_, i| i, &mut |f, base, points| {
        let offset = f.size_var("place");
        let e = f.var_expr(offset);
        let at = f.add(base, e);
        let value = tiles.value_at(f, last.var, at, e);
        let old = f.load(buffer, &indices);
        let tile_stage = Stage {
            name: s.name.clone(),
            axes: vec![Axis { var: offset, extent: points, reduce: true }],
            guards: Vec::new(),
            init: None,
            body: Body::Store {
                buffer,
                indices: indices.clone(),
                value: f.binary(r.op, old, value),
            },
        };
        // A tile is short, so its sum needs no float64 total.
        vector_reduction(f, &tile_stage, &Reduction { op: r.op, value }, false)
    });
    // Guards do not depend on the last axis, but may depend on outer ones.
    let body = hoist_guards(f, s, last.extent, body);
    let body = loop_nest(f, &s.axes[spatial..s.axes.len() - 1], body);
    f.add_stmt(StmtData::Seq(vec![init, body]))
}
