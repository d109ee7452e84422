//! Blocked loops for stages that read an operand across their last axis, such as transposes and stages fused with them.
//!
//! Adjacent points of the last axis read elements that are far apart, each in its own cache line. The points along another axis
//! read the rest of these lines. The loops therefore run over blocks of both axes: the operand's block is copied to scratch memory
//! in the order of the results, and the stage reads it there like any other operand.

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use super::emit::{Along, along, strip_mine, strips_of, vector_axis, widths, work};
use super::group::{row_loop, serial};
use super::split;
use super::stage::{Axis, Body, Stage};
use super::tiles::{is_opaque, new_tile};
use crate::guards;
use crate::walk::{ExprRewriter, substitute_expr};

/// The number of points of a block along the axis in which an operand is contiguous: the elements of a cache line.
const ACROSS: i64 = 16;
/// The number of points of a block along the last axis.
const ALONG: i64 = 64;
/// The number of lanes that are gathered at once, each from its own cache line.
const LANES: i64 = 16;
/// An axis known to be shorter than this is not blocked.
const LEAST: i64 = 8;
/// Maximum number of operands that are copied; each needs a block on the stack.
const MOST: usize = 2;

/// The blocked loops of a stage, if that pays.
pub(super) fn emit(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    let last = s.axes.len().checked_sub(1)?;
    if !s.guards.is_empty() || s.init.is_some() || vector_axis(f, s) != Some(last) {
        return None;
    }
    let (across, loads) = crossing(f, s)?;
    if split::own_axes(f, s) > 0 {
        return None;
    }
    let blocks = Blocks::new(f, s, across, &loads);
    let mut rows: Vec<Axis> = s.axes[..last].to_vec();
    rows[across] = Axis { var: blocks.number, extent: blocks.count, reduce: false };
    let body = blocks.emit(f, s);
    let vars: Vec<Var> = rows.iter().map(|a| a.var).collect();
    let extents: Vec<Expr> = rows.iter().map(|a| a.extent).collect();
    let mut one = s.clone();
    one.axes = vec![Axis { extent: f.int(ACROSS), ..s.axes[across] }, s.axes[last]];
    let work = work(f, &one);
    Some(row_loop(f, &vars, &extents, work, body, &[]))
}

/// An axis in which some loads are contiguous that cross the last axis, and these loads.
fn crossing(f: &PrimFunc, s: &Stage) -> Option<(usize, Vec<Expr>)> {
    let Body::Store { buffer, value, .. } = s.body else { return None };
    let (last, front) = s.axes.split_last()?;
    let long = |a: &Axis| f.as_int(a.extent).is_none_or(|n| n >= LEAST);
    if !long(last) {
        return None;
    }
    let crosses = |b: Buffer, indices: &[Expr], across: &Axis| {
        // Loads from the results keep the order of the points.
        b != buffer
            && !matches!(along(f, b, indices, last.var), Along::Never | Along::Contiguous)
            && along(f, b, indices, across.var) == Along::Contiguous
            && !indices.iter().any(|&i| guards::reads(f, i))
    };
    let loads = plain_loads(f, value);
    front.iter().enumerate().rev().filter(|(_, a)| long(a)).find_map(|(at, axis)| {
        let found: Vec<Expr> = loads
            .iter()
            .copied()
            .filter(|&e| match f.expr(e) {
                ExprData::Load(b, indices) => crosses(*b, indices, axis),
                _ => false,
            })
            .collect();
        (1..=MOST).contains(&found.len()).then_some((at, found))
    })
}

/// The loads of a value that run for every point.
fn plain_loads(f: &PrimFunc, value: Expr) -> Vec<Expr> {
    let (mut stack, mut seen) = (vec![value], FxHashSet::default());
    let mut found = Vec::new();
    while let Some(e) = stack.pop() {
        if !seen.insert(e) {
            continue;
        }
        if matches!(f.expr(e), ExprData::Load(..)) {
            found.push(e);
        } else if !is_opaque(f, e) {
            for_each_operand(f.expr(e), |a| stack.push(a));
        }
    }
    found
}

/// The blocks of a stage.
struct Blocks {
    /// The axis across the last one.
    across: Axis,
    /// The variable for the number of the block along it.
    number: Var,
    /// The number of blocks.
    count: Expr,
    /// The first point of the block along that axis, and the number of its points.
    first: Expr,
    points: Expr,
    /// The loads, and the scratch memory of each.
    copies: Vec<(Expr, Buffer)>,
}

impl Blocks {
    fn new(f: &mut PrimFunc, s: &Stage, across: usize, loads: &[Expr]) -> Blocks {
        let across = s.axes[across];
        let number = f.size_var("block");
        let (size, up) = (f.int(ACROSS), f.int(ACROSS - 1));
        let more = f.add(across.extent, up);
        let count = f.binary(BinOp::FloorDiv, more, size);
        let at = f.var_expr(number);
        let first = f.mul(at, size);
        let left = f.binary(BinOp::Sub, across.extent, first);
        let points = f.binary(BinOp::Min, size, left);
        let copies = loads.iter().map(|&e| (e, new_tile(f, f.expr_ty(e).dtype, ACROSS * ALONG)));
        Blocks { across, number, count, first, points, copies: copies.collect() }
    }

    /// The blocks along the last axis, one after the other.
    fn emit(&self, f: &mut PrimFunc, s: &Stage) -> Stmt {
        let last = s.axes[s.axes.len() - 1];
        let (size, up) = (f.int(ALONG), f.int(ALONG - 1));
        let number = f.size_var("part");
        let at = f.var_expr(number);
        let first = f.mul(at, size);
        let left = f.binary(BinOp::Sub, last.extent, first);
        let points = f.binary(BinOp::Min, size, left);
        let part = (last.var, first, points);
        let mut stmts: Vec<Stmt> =
            self.copies.iter().map(|&(load, to)| self.copy(f, part, load, to)).collect();
        stmts.push(self.results(f, s, part));
        let body = f.seq(stmts);
        let more = f.add(last.extent, up);
        let count = f.binary(BinOp::FloorDiv, more, size);
        let body = serial(f, number, count, body);
        self.copies.iter().fold(body, |body, &(_, b)| f.add_stmt(StmtData::Alloc(b, body)))
    }

    /// The position in scratch memory of a point of a block.
    fn position(f: &mut PrimFunc, across: Expr, along: Expr) -> Expr {
        let row = f.int(ALONG);
        let row = f.mul(across, row);
        f.add(row, along)
    }

    /// Copies a block of an operand: a loop over strips of the last axis, around a loop over the points of the other axis.
    fn copy(
        &self,
        f: &mut PrimFunc,
        (axis, first, points): (Var, Expr, Expr),
        load: Expr,
        to: Buffer,
    ) -> Stmt {
        let point = f.size_var("point");
        let across = f.var_expr(point);
        let from = f.add(self.first, across);
        let mut copy = |f: &mut PrimFunc, at: Expr, lane: Option<Var>| {
            let at = match lane {
                Some(lane) => {
                    let lane = f.var_expr(lane);
                    f.add(at, lane)
                }
                None => at,
            };
            let place = f.add(first, at);
            let map = FxHashMap::from_iter([(axis, place), (self.across.var, from)]);
            let element = substitute_expr(f, load, &map);
            let position = Self::position(f, across, at);
            f.store(to, &[position], element)
        };
        let mut over_points = |f: &mut PrimFunc, body: Stmt| serial(f, point, self.points, body);
        strips_of(f, points, &widths(LANES), &mut copy, &mut over_points)
    }

    /// Computes the results of a block from the operands in scratch memory.
    fn results(
        &self,
        f: &mut PrimFunc,
        s: &Stage,
        (axis, first, points): (Var, Expr, Expr),
    ) -> Stmt {
        let point = f.size_var("point");
        let across = f.var_expr(point);
        let along = f.var_expr(axis);
        let along = f.binary(BinOp::Sub, along, first);
        let position = Self::position(f, across, along);
        let mut s = s.clone();
        let Body::Store { value, .. } = &mut s.body else { unreachable!("the stage is a store") };
        let mut rule = |f: &mut PrimFunc, e: Expr| {
            let copy = self.copies.iter().find(|c| c.0 == e)?;
            Some(f.load(copy.1, &[position]))
        };
        *value = ExprRewriter::new(&mut rule).expr(f, *value);
        let from = f.add(self.first, across);
        let s = s.substituted(f, &FxHashMap::from_iter([(self.across.var, from)]));
        let body = strip_mine(f, &s, axis, points, &|f, i| f.add(first, i));
        serial(f, point, self.points, body)
    }
}
