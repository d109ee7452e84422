//! Partial reductions: the reduction of many values to few results is cut into pieces along its first and last reduction axes. The
//! pieces run in parallel and write partial results, which a second reduction combines. Pieces depend on sizes and not on the
//! number of threads, so neither do results.

use pliant_ir::tir::{BinOp, Buffer, BufferData, Expr, PrimFunc, Scope, Stmt, StmtData, Var};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit::{grain, inner, vector_axis};
use super::group::{product, row_loop};
use super::reductions::target;
use super::stage::{Axis, Body, Init, Reduction, Stage};

/// The number of results from which on strips of results are enough work for all threads.
const MANY_RESULTS: i64 = 1024;
/// Minimum number of pieces. With fewer, a second reduction does not pay.
const LEAST_PIECES: i64 = 4;

/// The number of values of a piece: about 16 microseconds.
fn piece_values() -> i64 {
    16 * grain()
}

/// A reduction axis that is cut.
struct Cut {
    /// The number of the piece.
    piece: Axis,
    /// The position in the piece.
    within: Axis,
    /// The size of a piece.
    size: Expr,
}

impl Cut {
    fn of(f: &mut PrimFunc, axis: Axis, size: Expr) -> Cut {
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
        Cut { piece, within, size }
    }

    /// The position on the axis.
    fn position(&self, f: &mut PrimFunc) -> Expr {
        let [piece, within] = [self.piece.var, self.within.var].map(|v| f.var_expr(v));
        let first = f.mul(piece, self.size);
        f.add(first, within)
    }
}

/// `whole`, which emits the stage, or the stage in pieces if it reduces many values to few results.
pub(super) fn or_whole(
    f: &mut PrimFunc,
    s: &Stage,
    whole: impl FnOnce(&mut PrimFunc) -> Stmt,
) -> Stmt {
    let Some(r) = s.reduction(f).filter(|r| is_cut(f, s, r)) else { return whole(f) };
    let whole = whole(f);
    let extents: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    let (values, least) = (product(f, &extents), f.int(LEAST_PIECES * piece_values()));
    let mut large = f.binary(BinOp::Le, least, values);
    if s.leading_spatial() > 0 {
        let many = f.int(MANY_RESULTS);
        let few = f.binary(BinOp::Lt, s.axes[0].extent, many);
        large = f.binary(BinOp::And, large, few);
    }
    let pieces = in_pieces(f, s, &r);
    f.add_stmt(StmtData::If(large, pieces, Some(whole)))
}

/// Whether a stage can be cut, and is large enough for some sizes.
fn is_cut(f: &PrimFunc, s: &Stage, r: &Reduction) -> bool {
    let spatial = s.leading_spatial();
    let dtype = f.buffer(target(s).0).dtype;
    // Partial sums of 16 bits would lose digits.
    let rounds = matches!(dtype, DType::Float16 | DType::BFloat16)
        && !matches!(r.op, BinOp::Min | BinOp::Max);
    let columns = spatial == 0 || (spatial == 1 && vector_axis(f, s) == Some(0));
    let values = s.axes.iter().try_fold(1i64, |n, a| Some(n.saturating_mul(f.as_int(a.extent)?)));
    let large = values.is_none_or(|n| n >= LEAST_PIECES * piece_values());
    let ordered = s.axes[spatial..].iter().all(|a| a.reduce);
    let plain = s.guards.is_empty() && matches!(s.init, Some(Init::Value(_)));
    let many = spatial == 1 && f.as_int(s.axes[0].extent).is_some_and(|n| n >= MANY_RESULTS);
    columns && ordered && plain && large && !many && !rounds
}

/// The stage in pieces.
fn in_pieces(f: &mut PrimFunc, s: &Stage, r: &Reduction) -> Stmt {
    let spatial = s.leading_spatial();
    // The number of rows in a piece.
    let rows = f.size_var("piece_rows");
    let cuts = cuts(f, s, rows);
    let mut map = FxHashMap::default();
    for (axis, cut) in &cuts {
        let position = cut.position(f);
        map.insert(axis.var, position);
    }
    let value = crate::walk::substitute_expr(f, r.value, &map);
    let pieces: Vec<Axis> = cuts.iter().map(|(_, cut)| cut.piece).collect();
    let within = s.axes[spatial..].iter().map(|axis| {
        let cut = cuts.iter().find(|(own, _)| own.var == axis.var);
        cut.map_or(*axis, |(_, cut)| cut.within)
    });
    let within: Vec<Axis> = within.collect();
    let results = &s.axes[..spatial];

    let partial = partial_results(f, s, &[&pieces[..], results].concat());
    let index: Vec<Expr> = pieces.iter().chain(results).map(|a| f.var_expr(a.var)).collect();
    let one_piece = Reduction { op: r.op, value };
    let axes = [&pieces[..], results, &within].concat();
    let start = identity(f, s, r);
    let first = reduction(f, s, &one_piece, (partial, index.clone().into()), axes, start);
    let first = one_piece_each(f, &first, pieces.len());

    let all_pieces = Reduction { op: r.op, value: f.load(partial, &index) };
    let pieces = pieces.iter().map(|a| Axis { reduce: true, ..*a });
    let axes: Vec<Axis> = results.iter().copied().chain(pieces).collect();
    let start = super::reductions::start(f, s);
    let second = reduction(f, s, &all_pieces, target(s), axes, start);
    let second = inner(f, &second);

    let body = f.add_stmt(StmtData::Seq(vec![first, second]));
    let body = f.add_stmt(StmtData::Alloc(partial, body));
    let size = rows_of_piece(f, s);
    f.add_stmt(StmtData::Let(rows, size, body))
}

/// A parallel loop whose iterations compute one piece each.
fn one_piece_each(f: &mut PrimFunc, s: &Stage, pieces: usize) -> Stmt {
    let (vars, extents): (Vec<Var>, Vec<Expr>) =
        s.axes[..pieces].iter().map(|a| (a.var, a.extent)).unzip();
    let mut rest = s.clone();
    rest.axes.drain(..pieces);
    let (work, body) = (f.int(grain()), inner(f, &rest));
    row_loop(f, &vars, &extents, work, body, &[])
}

/// A stage that reduces into an element of a buffer, starting with `start`.
fn reduction(
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

/// The first reduction axis, cut into pieces of `rows`. If it has rows along further axes and there is one result, the last axis is
/// cut too, since rows may be long.
fn cuts(f: &mut PrimFunc, s: &Stage, rows: Var) -> Vec<(Axis, Cut)> {
    let (first, last) = (s.axes[s.leading_spatial()], s.axes[s.axes.len() - 1]);
    let rows = f.var_expr(rows);
    let mut cuts = vec![(first, Cut::of(f, first, rows))];
    if cuts_rows(s) {
        let values = f.int(piece_values());
        cuts.push((last, Cut::of(f, last, values)));
    }
    cuts
}

fn cuts_rows(s: &Stage) -> bool {
    s.leading_spatial() == 0 && s.axes.len() > 1
}

/// The number of values of the first reduction axis in a piece.
fn rows_of_piece(f: &mut PrimFunc, s: &Stage) -> Expr {
    let (one, values) = (f.int(1), f.int(piece_values()));
    let mut others: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    if cuts_rows(s)
        && let Some(last) = others.last_mut()
    {
        *last = f.binary(BinOp::Min, values, *last);
    }
    others.remove(s.leading_spatial());
    let row = product(f, &others);
    let row = f.binary(BinOp::Max, row, one);
    let rows = f.binary(BinOp::FloorDiv, values, row);
    f.binary(BinOp::Max, rows, one)
}

/// The buffer of partial results, with the extents of the axes as dims.
fn partial_results(f: &mut PrimFunc, s: &Stage, axes: &[Axis]) -> Buffer {
    let dtype = f.buffer(target(s).0).dtype;
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

/// The value that a piece starts with, which does not change the result.
fn identity(f: &mut PrimFunc, s: &Stage, r: &Reduction) -> Expr {
    let dtype = f.buffer(target(s).0).dtype;
    match (r.op, &s.init) {
        // Adding to -0.0 keeps every value, including the sign of a zero.
        (BinOp::Add, _) if dtype.is_float() => f.const_of(-0.0, dtype),
        (BinOp::Add, _) => f.const_of(0.0, dtype),
        (BinOp::Mul, _) => f.const_of(1.0, dtype),
        (_, Some(Init::Value(start))) => *start,
        _ => unreachable!("a reduction that is cut has an init value"),
    }
}
