//! Partial reductions: a reduction of many values to few results is split into pieces along its first and last reduction axes.
//! The pieces run in parallel and write partial results, which a second reduction combines. The sizes of the pieces do not depend
//! on the number of threads, so the results are the same for any number of threads.

use pliant_ir::tir::{BinOp, Buffer, BufferData, Expr, PrimFunc, Scope, Stmt, StmtData, Var};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{grain, serial_loops, vector_axis};
use super::loop_nest_stages::{Axis, Body, Init, Reduction, Stage};
use super::reduction_loops::store_target;
use super::row_group_fusion::{parallel_row_loop, product_of};

/// A reduction is split only if it has fewer results than this number. With more results, parallel loops over the
/// results keep all threads busy.
const MIN_PARALLEL_RESULTS: i64 = 1024;
/// Minimum number of pieces into which a reduction is split. With fewer pieces, the gain is smaller than the cost of
/// the second reduction, which combines the partial results.
const MIN_PIECES: i64 = 4;

/// The number of values that one piece reduces, which takes about 16 microseconds.
fn piece_values() -> i64 {
    16 * grain()
}

/// A reduction axis that is split into pieces.
struct SplitAxis {
    /// The axis over the pieces; its values are the indices of the pieces.
    piece: Axis,
    /// The axis over the positions within a piece.
    within: Axis,
    /// The number of positions of the original axis in each piece. The last piece may have fewer.
    size: Expr,
}

impl SplitAxis {
    fn of(f: &mut PrimFunc, axis: Axis, size: Expr) -> SplitAxis {
        let one = f.int(1);
        let up = f.binary(BinOp::Sub, size, one);
        let up = f.add(axis.extent, up);
        let pieces = f.binary(BinOp::FloorDiv, up, size);
        let piece = Axis { var: f.size_var("piece"), extent: pieces, reduce: false };
        let first = f.var_expr(piece.var);
        let first = f.mul(first, size);
        let left = f.binary(BinOp::Sub, axis.extent, first);
        let extent = f.binary(BinOp::Min, size, left);
        let within = Axis { var: f.size_var("within"), extent, reduce: true };
        SplitAxis { piece, within, size }
    }

    /// Returns the position on the original axis: the start of the piece plus the position in the piece.
    fn position(&self, f: &mut PrimFunc) -> Expr {
        let [piece, within] = [self.piece.var, self.within.var].map(|v| f.var_expr(v));
        let first = f.mul(piece, self.size);
        f.add(first, within)
    }
}

/// Emits a stage that reduces many values to few results as parallel pieces. If the number of values or results is
/// known only at run time, emits both forms and a condition that selects one of them. `whole` emits the stage without
/// pieces.
pub(super) fn emit_pieces_or_whole(
    f: &mut PrimFunc,
    s: &Stage,
    whole: impl FnOnce(&mut PrimFunc) -> Stmt,
) -> Stmt {
    let Some(r) = s.reduction(f).filter(|r| can_split(f, s, r)) else { return whole(f) };
    let whole = whole(f);
    let extents: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    let (values, min_values) = (product_of(f, &extents), f.int(MIN_PIECES * piece_values()));
    let mut large = f.binary(BinOp::Le, min_values, values);
    if s.leading_spatial() > 0 {
        let many = f.int(MIN_PARALLEL_RESULTS);
        let few = f.binary(BinOp::Lt, s.axes[0].extent, many);
        large = f.binary(BinOp::And, large, few);
    }
    let pieces = emit_pieces(f, s, &r);
    f.add_stmt(StmtData::If(large, pieces, Some(whole)))
}

/// Whether a reduction can be split into pieces and may be large enough at run time.
fn can_split(f: &PrimFunc, s: &Stage, r: &Reduction) -> bool {
    let spatial = s.leading_spatial();
    let dtype = f.buffer(store_target(s).0).dtype;
    // 16-bit partial sums would lose precision.
    let loses_precision = matches!(dtype, DType::Float16 | DType::BFloat16)
        && !matches!(r.op, BinOp::Min | BinOp::Max);
    let columns = spatial == 0 || (spatial == 1 && vector_axis(f, s) == Some(0));
    let values = s.axes.iter().try_fold(1i64, |n, a| Some(n.saturating_mul(f.as_int(a.extent)?)));
    let large = values.is_none_or(|n| n >= MIN_PIECES * piece_values());
    let reductions_are_last = s.axes[spatial..].iter().all(|a| a.reduce);
    let has_init_value = s.guards.is_empty() && matches!(s.init, Some(Init::Value(_)));
    let many_results =
        spatial == 1 && f.as_int(s.axes[0].extent).is_some_and(|n| n >= MIN_PARALLEL_RESULTS);
    columns && reductions_are_last && has_init_value && large && !many_results && !loses_precision
}

/// Emits a reduction in pieces: a stage that computes partial results, and a stage that combines them.
fn emit_pieces(f: &mut PrimFunc, s: &Stage, r: &Reduction) -> Stmt {
    let spatial = s.leading_spatial();
    // The number of rows in a piece.
    let rows = f.size_var("piece_rows");
    let split = split_axes(f, s, rows);
    let mut map = FxHashMap::default();
    for (axis, axis_split) in &split {
        let position = axis_split.position(f);
        map.insert(axis.var, position);
    }
    let value = crate::statement_traversal::substitute_expr(f, r.value, &map);
    let pieces: Vec<Axis> = split.iter().map(|(_, axis_split)| axis_split.piece).collect();
    let within = s.axes[spatial..].iter().map(|axis| {
        let axis_split = split.iter().find(|(original, _)| original.var == axis.var);
        axis_split.map_or(*axis, |(_, axis_split)| axis_split.within)
    });
    let within: Vec<Axis> = within.collect();
    let results = &s.axes[..spatial];

    let partial = partial_results(f, s, &[&pieces[..], results].concat());
    let index: Vec<Expr> = pieces.iter().chain(results).map(|a| f.var_expr(a.var)).collect();
    let one_piece = Reduction { op: r.op, value };
    let axes = [&pieces[..], results, &within].concat();
    let start = identity_value(f, s, r);
    let first = reduction_stage(f, s, &one_piece, (partial, index.clone().into()), axes, start);
    let first = piece_loop(f, &first, pieces.len());

    let all_pieces = Reduction { op: r.op, value: f.load(partial, &index) };
    let pieces = pieces.iter().map(|a| Axis { reduce: true, ..*a });
    let axes: Vec<Axis> = results.iter().copied().chain(pieces).collect();
    let start = super::reduction_loops::initial_value(f, s);
    let second = reduction_stage(f, s, &all_pieces, store_target(s), axes, start);
    let second = serial_loops(f, &second);

    let body = f.add_stmt(StmtData::Seq(vec![first, second]));
    let body = f.add_stmt(StmtData::Alloc(partial, body));
    let size = rows_per_piece(f, s);
    f.add_stmt(StmtData::Let(rows, size, body))
}

/// Emits a parallel loop with one piece per iteration. The first `pieces` axes of the stage are the axes over pieces.
fn piece_loop(f: &mut PrimFunc, s: &Stage, pieces: usize) -> Stmt {
    let (vars, extents): (Vec<Var>, Vec<Expr>) =
        s.axes[..pieces].iter().map(|a| (a.var, a.extent)).unzip();
    let mut rest = s.clone();
    rest.axes.drain(..pieces);
    let (work, body) = (f.int(grain()), serial_loops(f, &rest));
    parallel_row_loop(f, &vars, &extents, work, body, &[])
}

/// Returns a stage that reduces values into an element of a buffer, with the initial value `start`.
fn reduction_stage(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    (buffer, indices): (Buffer, Box<[Expr]>),
    axes: Vec<Axis>,
    start: Expr,
) -> Stage {
    let old = f.load(buffer, &indices);
    let value = f.binary(r.op, old, r.value);
    let body = Body::Store { buffer, indices, value };
    Stage { name: s.name.clone(), axes, guards: Vec::new(), init: Some(Init::Value(start)), body }
}

/// Splits the first reduction axis into pieces of `rows` positions. If there is one result and more than one axis, also splits
/// the last axis, which may be long. Returns each original axis with its split form.
fn split_axes(f: &mut PrimFunc, s: &Stage, rows: Var) -> Vec<(Axis, SplitAxis)> {
    let (first, last) = (s.axes[s.leading_spatial()], s.axes[s.axes.len() - 1]);
    let rows = f.var_expr(rows);
    let mut split = vec![(first, SplitAxis::of(f, first, rows))];
    if splits_rows(s) {
        let values = f.int(piece_values());
        split.push((last, SplitAxis::of(f, last, values)));
    }
    split
}

/// Whether the last axis of a stage is split in addition to the first reduction axis.
fn splits_rows(s: &Stage) -> bool {
    s.leading_spatial() == 0 && s.axes.len() > 1
}

/// Returns the number of positions of the first reduction axis in a piece.
fn rows_per_piece(f: &mut PrimFunc, s: &Stage) -> Expr {
    let (one, values) = (f.int(1), f.int(piece_values()));
    let mut others: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    if splits_rows(s)
        && let Some(last) = others.last_mut()
    {
        *last = f.binary(BinOp::Min, values, *last);
    }
    others.remove(s.leading_spatial());
    let row = product_of(f, &others);
    let row = f.binary(BinOp::Max, row, one);
    let rows = f.binary(BinOp::FloorDiv, values, row);
    f.binary(BinOp::Max, rows, one)
}

/// Creates the buffer of partial results. Its dims are the extents of the axes.
fn partial_results(f: &mut PrimFunc, s: &Stage, axes: &[Axis]) -> Buffer {
    let dtype = f.buffer(store_target(s).0).dtype;
    let shape: Vec<Expr> = axes.iter().map(|a| a.extent).collect();
    f.add_buffer(BufferData {
        name: "partial".into(),
        dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Global,
    })
}

/// Returns the initial value of a piece: the identity of the reduction operator, such as 0 for a sum.
fn identity_value(f: &mut PrimFunc, s: &Stage, r: &Reduction) -> Expr {
    let dtype = f.buffer(store_target(s).0).dtype;
    match (r.op, &s.init) {
        // Adding to -0.0 keeps every value, including the sign of a zero.
        (BinOp::Add, _) if dtype.is_float() => f.const_of(-0.0, dtype),
        (BinOp::Add, _) => f.const_of(0.0, dtype),
        (BinOp::Mul, _) => f.const_of(1.0, dtype),
        (_, Some(Init::Value(start))) => *start,
        _ => unreachable!("only reductions with an init value are split into pieces"),
    }
}
