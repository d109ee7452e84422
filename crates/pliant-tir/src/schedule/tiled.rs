//! Tiled loops of stages: stores of adjacent points, and reductions over a contiguous axis.

use pliant_ir::tir::{Buffer, Expr, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::FxHashMap;

use super::emit::{guarded_once, lanes, nest, serial_strips, widths};
use super::reductions::{lanewise, start, target};
use super::stage::{Axis, Body, Reduction, Stage};
use super::tiles::Tiles;

/// Stores the value of each point of an axis, tile by tile.
pub(super) fn store(
    f: &mut PrimFunc,
    target: (Buffer, &[Expr]),
    tiles: &Tiles,
    (axis, extent): (Var, Expr),
    map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
) -> Stmt {
    let (buffer, indices) = target;
    tiles.emit(f, (axis, extent), Some(target), map, &mut |f, base, points| {
        let widths = widths(lanes(f, tiles.value));
        serial_strips(f, points, &widths, &mut |f, place| {
            let at = f.add(base, place);
            let at = map(f, at);
            let value = tiles.value_at(f, axis, at, place);
            let here = FxHashMap::from_iter([(axis, at)]);
            let indices: Vec<Expr> =
                indices.iter().map(|&i| crate::walk::substitute_expr(f, i, &here)).collect();
            f.store(buffer, &indices, value)
        })
    })
}

/// A tiled reduction over a contiguous axis: initializes the result, and accumulates each tile into it.
pub(super) fn reduction(f: &mut PrimFunc, s: &Stage, r: &Reduction, tiles: &Tiles) -> Stmt {
    let (buffer, indices) = target(s);
    let first = start(f, s);
    let init = f.store(buffer, &indices, first);
    let spatial = s.leading_spatial();
    let last = s.axes[s.axes.len() - 1];
    let body = tiles.emit(f, (last.var, last.extent), None, &|_, i| i, &mut |f, base, points| {
        let place = f.size_var("place");
        let e = f.var_expr(place);
        let at = f.add(base, e);
        let value = tiles.value_at(f, last.var, at, e);
        let old = f.load(buffer, &indices);
        let one = Stage {
            name: s.name.clone(),
            axes: vec![Axis { var: place, extent: points, reduce: true }],
            guards: Vec::new(),
            init: None,
            body: Body::Store {
                buffer,
                indices: indices.clone(),
                value: f.binary(r.op, old, value),
            },
        };
        // A tile is short, so that its sum needs no total of float64.
        lanewise(f, &one, &Reduction { op: r.op, value }, false)
    });
    // Guards do not depend on the last axis, but may depend on outer ones.
    let body = guarded_once(f, s, last.extent, body);
    let body = nest(f, &s.axes[spatial..s.axes.len() - 1], body);
    f.add_stmt(StmtData::Seq(vec![init, body]))
}
