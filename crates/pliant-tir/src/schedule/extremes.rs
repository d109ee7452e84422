//! Maxima and minima of columns, by slice functions of the run-time library.
//!
//! Generated code has vectors of at most 128 bits, and propagating NaN takes it several instructions per vector. Therefore, if a
//! reduction reads its operand unchanged from memory, adjacent results are kept in a tile, and the library's function
//! (`pliant_vec_maximum_<type>`, `pliant_vec_minimum_<type>`) accumulates one slice of each row after the other.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit::{along_axis, lanes, nest, serial_strips, widths, work};
use super::group::{row_loop, serial};
use super::reductions::{start, target};
use super::stage::{Axis, Reduction, Stage};
use super::tiles::{FEW, new_tile};
use crate::guards;
use crate::walk::substitute_expr;

/// The number of results of a tile. Rows are read in runs of this length: for a matrix of 1000 columns, on one thread, runs of 256,
/// 512 and 1024 take 0.33, 0.28 and 0.21 ms, and two threads on halves of its rows take 0.25 ms.
const TILE: i64 = 1024;

/// The symbols of the functions that generated code may call here.
pub fn symbols() -> Vec<String> {
    let types = [DType::Float32, DType::Float64];
    types.iter().flat_map(|&d| [BinOp::Max, BinOp::Min].map(|op| symbol(op, d))).flatten().collect()
}

fn symbol(op: BinOp, dtype: DType) -> Option<String> {
    let name = match op {
        BinOp::Max => "maximum",
        BinOp::Min => "minimum",
        _ => return None,
    };
    let suffix = match dtype {
        DType::Float32 => "f32",
        DType::Float64 => "f64",
        _ => return None,
    };
    Some(format!("pliant_vec_{name}_{suffix}"))
}

/// The function that accumulates slices of a reduction's operand along an axis, if there is one.
pub fn function(f: &PrimFunc, s: &Stage, r: &Reduction, axis: Axis) -> Option<String> {
    let (buffer, _) = target(s);
    let dtype = f.buffer(buffer).dtype;
    let ExprData::Load(from, indices) = f.expr(r.value) else { return None };
    let plain = *from != buffer
        && f.buffer(*from).dtype == dtype
        && along_axis(f, *from, indices, axis.var)
        && !indices.iter().any(|&i| guards::reads(f, i))
        && s.guards.is_empty();
    let few = f.as_int(axis.extent).is_some_and(|n| n < FEW);
    symbol(r.op, dtype).filter(|_| plain && !few)
}

/// All results of the axis, tile by tile.
pub fn columns(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis, symbol: &str) -> Stmt {
    let (size, up) = (f.int(TILE), f.int(TILE - 1));
    let turns = f.add(axis.extent, up);
    let turns = f.binary(BinOp::FloorDiv, turns, size);
    let tile = f.size_var("tile");
    let at = f.var_expr(tile);
    let at = f.mul(at, size);
    let body = one_tile(f, s, r, axis, at, symbol);
    serial(f, tile, turns, body)
}

/// As [`columns`], with tiles that run in parallel.
pub fn strips(f: &mut PrimFunc, s: &Stage, r: &Reduction, axis: Axis, symbol: &str) -> Stmt {
    let (size, up) = (f.int(TILE), f.int(TILE - 1));
    let mut one = s.clone();
    one.axes.drain(..1);
    let work = work(f, &one);
    let work = f.mul(work, size);
    let tile = f.size_var("tile");
    let at = f.var_expr(tile);
    let at = f.mul(at, size);
    let body = one_tile(f, s, r, axis, at, symbol);
    let turns = f.add(axis.extent, up);
    let turns = f.binary(BinOp::FloorDiv, turns, size);
    row_loop(f, &[tile], &[turns], work, body, &[])
}

/// The tile of results from `at` on.
fn one_tile(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    axis: Axis,
    at: Expr,
    symbol: &str,
) -> Stmt {
    let (buffer, _) = target(s);
    let dtype = f.buffer(buffer).dtype;
    let acc = new_tile(f, dtype, TILE);
    let (zero, size) = (f.int(0), f.int(TILE));
    let left = f.binary(BinOp::Sub, axis.extent, at);
    let points = f.binary(BinOp::Min, size, left);
    let widths = widths(lanes(f, r.value));
    let here = |f: &mut PrimFunc, place: Expr| {
        let position = f.add(at, place);
        s.substituted(f, &FxHashMap::from_iter([(axis.var, position)]))
    };
    let init = serial_strips(f, points, &widths, &mut |f, place| {
        let s = here(f, place);
        let first = start(f, &s);
        f.store(acc, &[place], first)
    });
    let row = substitute_expr(f, r.value, &FxHashMap::from_iter([(axis.var, at)]));
    let result = f.load(acc, &[zero]);
    let (result, row) = (f.call(Intrin::AddressOf, &[result]), f.call(Intrin::AddressOf, &[row]));
    let name = f.add_expr(ExprData::Str(symbol.into()));
    let args = [name, result, result, row, points];
    let call = f.add_expr(ExprData::Call(Intrin::CallExtern, args.into(), Ty::I64));
    let call = f.add_stmt(StmtData::Evaluate(call));
    let update = nest(f, &s.axes[s.leading_spatial()..], call);
    let finish = serial_strips(f, points, &widths, &mut |f, place| {
        let s = here(f, place);
        let (buffer, indices) = target(&s);
        let value = f.load(acc, &[place]);
        f.store(buffer, &indices, value)
    });
    let body = f.seq(vec![init, update, finish]);
    f.add_stmt(StmtData::Alloc(acc, body))
}
