//! Blocked loops for stages in which adjacent results read distant elements of an operand, such as transposes and stages fused
//! with them.
//!
//! Adjacent points of the last axis each read a different cache line of the operand. Points along another axis, here called
//! `across`, read the rest of such a cache line. The loops therefore run over blocks of these two axes: a block of the operand is
//! copied to scratch memory in the order of the results, and the stage reads the copy contiguously.

use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use super::emit_stage_loops::{
    AccessPattern, access_pattern, estimated_work, strip_loops, strip_mine, vector_axis,
    vector_widths,
};
use super::loop_nest_stages::{Axis, Body, Stage};
use super::loop_splitting;
use super::row_group_fusion::{parallel_row_loop, serial_loop};
use super::vector_math_tiles::{is_opaque, new_tile};
use crate::access_guards;
use crate::statement_traversal::{ExprRewriter, substitute_expr};

/// The number of points of a block along the axis `across`, along which the operand is contiguous: the number of float32 elements
/// of a cache line.
const BLOCK_ACROSS: i64 = 16;
/// The number of points of a block along the last axis of the stage.
const BLOCK_ALONG: i64 = 64;
/// The number of elements that are gathered at once, each from its own cache line.
const GATHER_LANES: i64 = 16;
/// Minimum extent of an axis that is blocked, if the extent is known.
const MIN_EXTENT: i64 = 8;
/// Maximum number of operands that are copied. Each needs a block on the stack.
const MAX_COPIES: usize = 2;

/// Emits the blocked loops of a stage; `None` if blocking is not possible or not profitable.
pub(super) fn emit(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    let last = s.axes.len().checked_sub(1)?;
    if !s.guards.is_empty() || s.init.is_some() || vector_axis(f, s) != Some(last) {
        return None;
    }
    let (across, loads) = crossing_loads(f, s)?;
    if loop_splitting::split_axis_count(f, s) > 0 {
        return None;
    }
    let blocks = BlockedStage::new(f, s, across, &loads);
    let mut rows: Vec<Axis> = s.axes[..last].to_vec();
    rows[across] = Axis { var: blocks.number, extent: blocks.count, reduce: false };
    let body = blocks.emit(f, s);
    let vars: Vec<Var> = rows.iter().map(|a| a.var).collect();
    let extents: Vec<Expr> = rows.iter().map(|a| a.extent).collect();
    let mut block = s.clone();
    block.axes = vec![Axis { extent: f.int(BLOCK_ACROSS), ..s.axes[across] }, s.axes[last]];
    let work = estimated_work(f, &block);
    Some(parallel_row_loop(f, &vars, &extents, work, body, &[]))
}

/// Finds loads whose elements are contiguous along an axis other than the last one. Returns the position of this axis
/// and the loads. Returns `None` if there are none.
fn crossing_loads(f: &PrimFunc, s: &Stage) -> Option<(usize, Vec<Expr>)> {
    let Body::Store { buffer, value, .. } = s.body else { return None };
    let (last, front) = s.axes.split_last()?;
    let is_long = |a: &Axis| f.as_int(a.extent).is_none_or(|n| n >= MIN_EXTENT);
    if !is_long(last) {
        return None;
    }
    let crosses = |b: Buffer, indices: &[Expr], across: &Axis| {
        // Loads from the buffer of the results must keep the order of the points.
        b != buffer
            && !matches!(
                access_pattern(f, b, indices, last.var),
                AccessPattern::Invariant | AccessPattern::Contiguous
            )
            && access_pattern(f, b, indices, across.var) == AccessPattern::Contiguous
            && !indices.iter().any(|&i| access_guards::reads_memory(f, i))
    };
    let loads = unconditional_loads(f, value);
    front.iter().enumerate().rev().filter(|(_, a)| is_long(a)).find_map(|(at, axis)| {
        let found: Vec<Expr> = loads
            .iter()
            .copied()
            .filter(|&e| match f.expr(e) {
                ExprData::Load(b, indices) => crosses(*b, indices, axis),
                _ => false,
            })
            .collect();
        (1..=MAX_COPIES).contains(&found.len()).then_some((at, found))
    })
}

/// Returns the loads of a value that are executed at every point.
fn unconditional_loads(f: &PrimFunc, value: Expr) -> Vec<Expr> {
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

/// A stage that is split into blocks along the axis `across`. [`BlockedStage::emit`] also splits the last axis.
struct BlockedStage {
    /// The axis along which the loads are contiguous.
    across: Axis,
    /// The variable for the index of the block along `across`.
    number: Var,
    /// The number of blocks along `across`.
    count: Expr,
    /// The first position of the block on the axis `across`.
    first: Expr,
    /// The number of points of the block along `across`.
    points: Expr,
    /// The loads that are replaced, each with the scratch buffer from which the stage reads instead.
    copies: Vec<(Expr, Buffer)>,
}

impl BlockedStage {
    fn new(f: &mut PrimFunc, s: &Stage, across: usize, loads: &[Expr]) -> BlockedStage {
        let across = s.axes[across];
        let number = f.size_var("block");
        let (size, up) = (f.int(BLOCK_ACROSS), f.int(BLOCK_ACROSS - 1));
        let more = f.add(across.extent, up);
        let count = f.binary(BinOp::FloorDiv, more, size);
        let at = f.var_expr(number);
        let first = f.mul(at, size);
        let left = f.binary(BinOp::Sub, across.extent, first);
        let points = f.binary(BinOp::Min, size, left);
        let copies =
            loads.iter().map(|&e| (e, new_tile(f, f.expr_ty(e).dtype, BLOCK_ACROSS * BLOCK_ALONG)));
        BlockedStage { across, number, count, first, points, copies: copies.collect() }
    }

    /// Emits a serial loop over the blocks along the last axis.
    fn emit(&self, f: &mut PrimFunc, s: &Stage) -> Stmt {
        let last = s.axes[s.axes.len() - 1];
        let (size, up) = (f.int(BLOCK_ALONG), f.int(BLOCK_ALONG - 1));
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
        let body = serial_loop(f, number, count, body);
        self.copies.iter().fold(body, |body, &(_, b)| f.add_stmt(StmtData::Alloc(b, body)))
    }

    /// Returns the index, in the scratch buffer of a copied operand, of the point of the block at the position `across` on the axis
    /// `across` and the position `along` on the last axis.
    fn position(f: &mut PrimFunc, across: Expr, along: Expr) -> Expr {
        let row = f.int(BLOCK_ALONG);
        let row = f.mul(across, row);
        f.add(row, along)
    }

    /// Emits the copy of a block of an operand to the buffer `to`. The outer loops run over strips of the last axis, the inner
    /// loops over `points` positions of `axis`, from `first` on.
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
            let position = f.add(first, at);
            let map = FxHashMap::from_iter([(axis, position), (self.across.var, from)]);
            let element = substitute_expr(f, load, &map);
            let position = Self::position(f, across, at);
            f.store(to, &[position], element)
        };
        let mut over_points =
            |f: &mut PrimFunc, body: Stmt| serial_loop(f, point, self.points, body);
        strip_loops(f, points, &vector_widths(GATHER_LANES), &mut copy, &mut over_points)
    }

    /// Emits the loops that compute the results of a block. The loops read copied operands from the scratch buffers.
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
        let Body::Store { value, .. } = &mut s.body else {
            unreachable!("only stages whose body is a store are blocked")
        };
        let mut rule = |f: &mut PrimFunc, e: Expr| {
            let copy = self.copies.iter().find(|c| c.0 == e)?;
            Some(f.load(copy.1, &[position]))
        };
        *value = ExprRewriter::new(&mut rule).expr(f, *value);
        let from = f.add(self.first, across);
        let s = s.substituted(f, &FxHashMap::from_iter([(self.across.var, from)]));
        let body = strip_mine(f, &s, axis, points, &|f, i| f.add(first, i));
        serial_loop(f, point, self.points, body)
    }
}
