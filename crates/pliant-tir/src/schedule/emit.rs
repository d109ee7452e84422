//! The loops of one stage: fused and vectorized axes, scalar tails.

use std::ops::Range;

use pliant_ir::tir::visit::{for_each_expr, for_each_operand};
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

use super::group::{divide, product, row_loop, serial};
use super::plain::scalar_nest;
use super::reductions::{reduction, strips};
use super::stage::{Axis, Body, Init, Stage, is_var};
use super::{partial, split, tiled, tiles, transposed};
use crate::guards;
use crate::inline::cost;
use crate::vectorize::{divides_in_vectors, is_division};
use crate::walk::{for_each_value, uses_any};

/// The minimum number of operations that is worth a thread: those of a microsecond.
pub fn grain() -> i64 {
    pliant_machine::Machine::host().rates.generated as i64
}
/// Work units per operation of an element that is computed as a scalar.
const SCALAR_COST: i64 = 6;
/// A reduction along an axis known to be shorter than this is not vectorized along it.
const LEAST_LANES: i64 = 4;
/// A reduction along an axis known to be shorter than this is vectorized over results if these are adjacent. The length is two
/// vectors of 16 lanes: with fewer, the reduction of the lanes costs more than the rest.
const LONG_REDUCTION: i64 = 32;

/// The size in bytes of a vector of generated code.
const CHUNK_BYTES: usize = 16;

/// How an access depends on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Along {
    /// Not at all.
    Never,
    /// Adjacent values of the axis access adjacent elements in memory.
    Contiguous,
    /// Adjacent values of the axis access elements at a constant distance.
    Strided,
    /// In some other way.
    Other,
}

/// Whether a dim has size 1 and its index does not use `v`, so that it does not affect contiguity.
fn is_unit(f: &PrimFunc, buffer: Buffer, indices: &[Expr], dim: usize, v: Var) -> bool {
    f.as_int(f.buffer(buffer).shape[dim]) == Some(1) && !uses_any(f, indices[dim], &|x| x == v)
}

/// Whether the indices delinearize a position `x` of a fused axis over whole dims, where `x` grows by 1 with `v`: `x // b // a`,
/// `x // b % a`, `x % b`.
fn taken_apart(f: &PrimFunc, buffer: Buffer, indices: &[Expr], v: Var) -> bool {
    let shape = &f.buffer(buffer).shape;
    // The dividend and the divisor of the quotient that the current index must equal, or be a remainder of; `None` for `x` itself.
    let mut rest: Option<(Expr, Expr)> = None;
    let continues = |e: Expr, rest: Option<(Expr, Expr)>| match rest {
        None => step(f, e, v) == Some(1),
        Some((whole, dim)) => {
            matches!(f.expr(e), ExprData::Binary(BinOp::FloorDiv, x, d) if *x == whole && *d == dim)
        }
    };
    for at in (0..indices.len()).rev() {
        if is_unit(f, buffer, indices, at, v) {
            continue;
        }
        if continues(indices[at], rest) {
            return indices[..at].iter().all(|&i| !uses_any(f, i, &|x| x == v));
        }
        match f.expr(indices[at]) {
            ExprData::Binary(BinOp::FloorMod, x, d) if *d == shape[at] && continues(*x, rest) => {
                rest = Some((*x, *d));
            }
            _ => return false,
        }
    }
    false
}

/// How a buffer access moves with an axis.
pub(super) fn along(f: &PrimFunc, buffer: Buffer, indices: &[Expr], v: Var) -> Along {
    let uses = |e: Expr| uses_any(f, e, &|x| x == v);
    let dense = f.buffer(buffer).strides.is_empty();
    let unit = |at: &usize| dense && is_unit(f, buffer, indices, *at, v);
    let trailing = (0..indices.len()).rev().take_while(unit).count();
    let indices = &indices[..indices.len() - trailing];
    let Some((&last, front)) = indices.split_last() else { return Along::Never };
    if dense && taken_apart(f, buffer, indices, v) {
        return Along::Contiguous;
    }
    if front.iter().any(|&i| uses(i)) || !dense && indices.iter().any(|&i| uses(i)) {
        return Along::Other;
    }
    match step(f, last, v) {
        Some(0) => Along::Never,
        Some(1) => Along::Contiguous,
        Some(_) => Along::Strided,
        None => Along::Other,
    }
}

/// Whether adjacent values of an axis access adjacent elements in memory.
pub(super) fn along_axis(f: &PrimFunc, buffer: Buffer, indices: &[Expr], v: Var) -> bool {
    along(f, buffer, indices, v) == Along::Contiguous
}

/// How much an index grows if `v` grows by 1, if this is a constant.
pub(super) fn step(f: &PrimFunc, e: Expr, v: Var) -> Option<i64> {
    match *f.expr(e) {
        ExprData::Var(x) => Some(i64::from(x == v)),
        ExprData::Binary(BinOp::Add, a, b) => step(f, a, v)?.checked_add(step(f, b, v)?),
        ExprData::Binary(BinOp::Sub, a, b) => step(f, a, v)?.checked_sub(step(f, b, v)?),
        ExprData::Binary(BinOp::Mul, a, b) => match (f.as_int(a), f.as_int(b)) {
            (Some(k), _) => step(f, b, v)?.checked_mul(k),
            (_, Some(k)) => step(f, a, v)?.checked_mul(k),
            _ => (!uses_any(f, e, &|x| x == v)).then_some(0),
        },
        _ => (!uses_any(f, e, &|x| x == v)).then_some(0),
    }
}

/// Whether an expression can be vectorized over `v`. With `gathers`, it may load elements at arbitrary positions, one by one, if
/// vectors can compute their indices.
pub(super) fn vectorizable(f: &PrimFunc, e: Expr, v: Var, gathers: bool) -> bool {
    let mut ok = true;
    let uses = |e: Expr| uses_any(f, e, &|x| x == v);
    for_each_value(f, e, |e| match f.expr(e) {
        ExprData::Load(b, indices) => {
            let near = along(f, *b, indices, v) != Along::Other;
            let place = |&i: &Expr| f.expr_ty(i) == Ty::I64 && vectorizable(f, i, v, true);
            ok &= near || gathers && indices.iter().all(place);
        }
        ExprData::Call(Intrin::IfThenElse, args, _) => ok &= !uses(args[0]),
        ExprData::Call(
            Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel | Intrin::AddressOf,
            ..,
        ) => ok = false,
        ExprData::Binary(op, a, b) => {
            ok &= !is_division(*op) || divides_in_vectors(f, *op, *a, *b) || !uses(e);
        }
        _ => {}
    });
    ok
}

/// The axis over which a stage is vectorized, by position.
pub fn vector_axis(f: &PrimFunc, s: &Stage) -> Option<usize> {
    let Body::Store { buffer, indices, value } = &s.body else { return None };
    let last = s.axes.len().checked_sub(1)?;
    let tiled = !s.reduces() && tiles::applies(f, (*buffer, indices, *value), s.axes[last].var);
    let free = |v: Var| !guards::depend_on(f, &s.guards, v);
    if !s.reduces() {
        let v = s.axes[last].var;
        let fits =
            along_axis(f, *buffer, indices, v) && (tiled || vectorizable(f, *value, v, true));
        return (fits && free(v)).then_some(last);
    }
    let r = s.reduction(f)?;
    if s.axes[s.leading_spatial()..].iter().any(|a| !a.reduce) {
        return None;
    }
    let inner = s.axes[last];
    let over_inner = |least: i64| {
        let fills_vectors = f.as_int(inner.extent).is_none_or(|n| n >= least);
        inner.reduce
            && fills_vectors
            && free(inner.var)
            && vectorizable(f, r.value, inner.var, false)
    };
    let over_results = |spatial: usize| {
        let v = s.axes[spatial].var;
        let init = match s.init {
            Some(Init::Value(e)) => vectorizable(f, e, v, false),
            _ => true,
        };
        let side_by_side = along(f, *buffer, indices, v) == Along::Contiguous;
        side_by_side && vectorizable(f, r.value, v, false) && init && free(v)
    };
    // A vector over a short reduction is mostly empty, and its lanes are reduced for each result.
    let spatial = s.leading_spatial().checked_sub(1);
    match spatial.filter(|&a| over_results(a)) {
        Some(a) => Some(if over_inner(LONG_REDUCTION) { last } else { a }),
        None => over_inner(LEAST_LANES).then_some(last),
    }
}

/// The number of lanes for a value: fewer if functions need many registers or elements are wide, but enough for a whole vector of
/// the narrowest elements.
pub(super) fn lanes(f: &PrimFunc, value: Expr) -> i64 {
    let (mut narrowest, mut widest) = (CHUNK_BYTES, 1);
    let mut element = |dtype: DType| {
        // Bools are masks, as wide as the values that they are combined with.
        if !dtype.is_bool() {
            (narrowest, widest) = (narrowest.min(dtype.size()), widest.max(dtype.size()));
        }
    };
    element(f.expr_ty(value).dtype);
    for_each_expr(f, value, |e| match f.expr(e) {
        ExprData::Load(b, _) => element(f.buffer(*b).dtype),
        ExprData::Cast(to, _) => element(to.dtype),
        _ => {}
    });
    let base = match widest {
        1 => return 64,
        8 => 8,
        _ => 16,
    };
    let base = if cost(f, value) >= 16 { base / 2 } else { base };
    base.max((CHUNK_BYTES / narrowest) as i64)
}

/// Estimated work of all points of a stage.
pub fn work(f: &mut PrimFunc, s: &Stage) -> Expr {
    let each = match &s.body {
        Body::Store { value, .. } => {
            let operations = tiles::effort(f, *value) + 2;
            if vector_axis(f, s).is_some() { operations } else { operations * SCALAR_COST }
        }
        Body::Other(_) => 8 * SCALAR_COST,
    };
    let extents: Vec<Expr> = s.axes.iter().map(|a| a.extent).collect();
    let points = product(f, &extents);
    let each = f.int(each);
    f.mul(points, each)
}

/// Emits a stage without a reduction by itself: adjacent axes are fused, leading axes are rows, and the last one is a vectorized
/// loop.
pub fn spatial(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let s = without_unit_axes(f, s);
    let s = with_fused_axes(f, &s);
    if s.axes.len() == 1 && vector_axis(f, &s).is_some() && s.guards.is_empty() {
        return flat(f, &s);
    }
    if let Some(blocks) = transposed::emit(f, &s) {
        return blocks;
    }
    // The last axis keeps its own loop, vectorized or not, so that positions are split by division once per row.
    let own = vector_axis(f, &s).is_some() || s.axes.len() > 1;
    let own = split::own_axes(f, &s).max(usize::from(own));
    let rows = s.axes.len() - own;
    rows_and_inner(f, &s, rows)
}

/// The stage without its unit axes. With a trailing unit axis, the loop over rows would be the innermost one.
fn without_unit_axes(f: &mut PrimFunc, s: &Stage) -> Stage {
    let (unit, rest): (Vec<Axis>, Vec<Axis>) =
        s.axes.iter().partition(|a| f.as_int(a.extent) == Some(1));
    if unit.is_empty() {
        return s.clone();
    }
    let zero = f.int(0);
    let map = unit.iter().map(|a| (a.var, zero)).collect();
    Stage { axes: rest, ..s.substituted(f, &map) }
}

/// Emits a stage that shares no row loop with others.
pub fn standalone(f: &mut PrimFunc, s: &Stage) -> Stmt {
    partial::or_whole(f, s, |f| whole(f, s))
}

fn whole(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let rows = s.leading_spatial();
    if rows == 0 {
        return inner(f, s);
    }
    match vector_axis(f, s) {
        // A reduction over rows whose results are columns: the parallel loop runs over strips of columns.
        Some(a) if a + 1 == rows && a == 0 => strips(f, s),
        Some(a) if a < rows => rows_and_inner(f, s, a),
        _ => rows_and_inner(f, s, rows),
    }
}

fn rows_and_inner(f: &mut PrimFunc, s: &Stage, rows: usize) -> Stmt {
    if rows == 0 {
        return inner(f, s);
    }
    let (vars, extents): (Vec<Var>, Vec<Expr>) =
        s.axes[..rows].iter().map(|a| (a.var, a.extent)).unzip();
    let mut rest = s.clone();
    rest.axes.drain(..rows);
    let work = work(f, &rest);
    let body = inner(f, &rest);
    row_loop(f, &vars, &extents, work, body, &[])
}

/// The stage with adjacent axes of the same kind fused wherever its accesses allow it.
pub(super) fn with_fused_axes(f: &mut PrimFunc, s: &Stage) -> Stage {
    let runs = fusable(f, s);
    fuse(f, s, &runs)
}

/// The stage with adjacent reduction axes fused, so that a reduction over the pixels of an image has one long contiguous loop.
/// Spatial axes stay, since groups of stages share them.
pub(super) fn with_fused_reductions(f: &mut PrimFunc, s: &Stage) -> Stage {
    if s.reduction(f).is_none() {
        return s.clone();
    }
    let reduces = |run: &Range<usize>| s.axes[run.start].reduce;
    let runs: Vec<Range<usize>> = fusable(f, s)
        .into_iter()
        .flat_map(|run| if reduces(&run) { vec![run] } else { run.map(|k| k..k + 1).collect() })
        .collect();
    fuse(f, s, &runs)
}

/// The runs of axes that can be fused into one: they are all spatial or all reduced, and in every access they are adjacent, in
/// order, over whole dims, or absent.
fn fusable(f: &PrimFunc, s: &Stage) -> Vec<Range<usize>> {
    let whole = 0..s.axes.len();
    let Body::Store { buffer, indices, value } = &s.body else {
        return whole.map(|k| k..k + 1).collect();
    };
    let mut accesses = vec![(*buffer, indices.clone())];
    for_each_expr(f, *value, |e| {
        if let ExprData::Load(b, i) = f.expr(e) {
            accesses.push((*b, i.clone()));
        }
    });
    // Axes that are used outside of indices, or in guards, keep their own loops.
    let bare = |v: Var| guards::depend_on(f, &s.guards, v) || appears_bare(f, *value, v);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for k in whole {
        match runs.last_mut() {
            Some(run)
                if s.axes[k - 1].reduce == s.axes[k].reduce
                    && !bare(s.axes[k - 1].var)
                    && !bare(s.axes[k].var)
                    && accesses
                        .iter()
                        .all(|(buf, i)| neighbours(f, *buf, i, s.axes[k - 1], s.axes[k])) =>
            {
                run.end = k + 1;
            }
            _ => runs.push(k..k + 1),
        }
    }
    runs
}

fn neighbours(f: &PrimFunc, buffer: Buffer, indices: &[Expr], a: Axis, b: Axis) -> bool {
    let data = f.buffer(buffer);
    let at = |v: Var| -> Vec<usize> {
        (0..indices.len()).filter(|&i| uses_any(f, indices[i], &|x| x == v)).collect()
    };
    match (&at(a.var)[..], &at(b.var)[..]) {
        ([], []) => true,
        ([i], [j]) => {
            let adjacent = *j > *i && data.shape[i + 1..*j].iter().all(|&d| f.as_int(d) == Some(1));
            adjacent
                && is_var(f, indices[*i], a.var)
                && is_var(f, indices[*j], b.var)
                && data.strides.is_empty()
                && data.shape[*j] == b.extent
        }
        _ => false,
    }
}

/// Whether a variable is used in an expression other than through the indices of loads.
fn appears_bare(f: &PrimFunc, e: Expr, v: Var) -> bool {
    let (mut stack, mut seen) = (vec![e], FxHashSet::default());
    while let Some(e) = stack.pop() {
        match f.expr(e) {
            _ if !seen.insert(e) => {}
            ExprData::Var(x) if *x == v => return true,
            ExprData::Load(..) => {}
            data => for_each_operand(data, |a| stack.push(a)),
        }
    }
    false
}

/// The stage with each of these runs of axes fused.
fn fuse(f: &mut PrimFunc, s: &Stage, runs: &[Range<usize>]) -> Stage {
    let (mut axes, mut map) = (Vec::with_capacity(runs.len()), FxHashMap::default());
    for run in runs {
        let [outer, inner @ ..] = &s.axes[run.clone()] else { continue };
        if inner.is_empty() {
            axes.push(*outer);
            continue;
        }
        let fused = f.size_var("fused");
        let mut rest = f.var_expr(fused);
        for a in inner.iter().rev() {
            map.insert(a.var, divide(f, BinOp::FloorMod, rest, a.extent));
            rest = divide(f, BinOp::FloorDiv, rest, a.extent);
        }
        map.insert(outer.var, rest);
        let extents: Vec<Expr> = s.axes[run.clone()].iter().map(|a| a.extent).collect();
        axes.push(Axis { var: fused, extent: product(f, &extents), reduce: outer.reduce });
    }
    if map.is_empty() {
        return s.clone();
    }
    Stage { axes, ..s.substituted(f, &map) }
}

/// One fused axis: parallel chunks of constant size, each vectorized.
fn flat(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let axis = s.axes[0];
    let Body::Store { value, .. } = s.body else { unreachable!("only stores are vectorized") };
    let each = tiles::effort(f, value) + 2;
    let chunk = (grain() / each).clamp(64, 65_536) / 64 * 64;
    if f.as_int(axis.extent).is_some_and(|n| n <= chunk) {
        return inner(f, s);
    }
    let size = f.int(chunk);
    let (v, first) = (f.size_var("chunk"), f.size_var("first"));
    let (ve, fe) = (f.var_expr(v), f.var_expr(first));
    let left = f.binary(BinOp::Sub, axis.extent, fe);
    let turns = f.binary(BinOp::Min, size, left);
    let map = |f: &mut PrimFunc, i: Expr| f.add(fe, i);
    let body = strip_mine(f, s, axis.var, turns, &map);
    let start = f.mul(ve, size);
    let body = f.add_stmt(StmtData::Let(first, start, body));
    let up = f.int(chunk - 1);
    let up = f.add(axis.extent, up);
    let extent = f.binary(BinOp::FloorDiv, up, size);
    let (min, kind) = (f.int(0), ForKind::Parallel);
    f.add_stmt(StmtData::For { var: v, min, extent, kind, body, annotations: Vec::new() })
}

/// All loops of a stage, on the calling thread.
pub fn inner(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let vector = vector_axis(f, s);
    if let (true, Some(r)) = (s.reduces(), s.reduction(f)) {
        return reduction(f, s, &r, vector);
    }
    if let Some(cut) = split::emit(f, s) {
        return cut;
    }
    part(f, s)
}

/// The loops of a stage that is not a reduction and is not cut into parts.
pub(super) fn part(f: &mut PrimFunc, s: &Stage) -> Stmt {
    match vector_axis(f, s) {
        Some(last) => {
            let axis = s.axes[last];
            let body = strip_mine(f, s, axis.var, axis.extent, &|_, i| i);
            nest(f, &s.axes[..last], body)
        }
        None => scalar_nest(f, s),
    }
}

pub(super) fn point(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let body = match &s.body {
        Body::Store { buffer, indices, value } => f.store(*buffer, indices, *value),
        Body::Other(s) => *s,
    };
    guards::wrap(f, &s.guards, body)
}

/// Hoists the guards in front of loops over an axis that they do not depend on. They run only if the loops have an
/// iteration.
pub(super) fn guarded_once(f: &mut PrimFunc, s: &Stage, extent: Expr, body: Stmt) -> Stmt {
    if s.guards.is_empty() {
        return body;
    }
    let zero = f.int(0);
    let some = f.binary(BinOp::Lt, zero, extent);
    let body = guards::wrap(f, &s.guards, body);
    f.add_stmt(StmtData::If(some, body, None))
}

pub(super) fn nest(f: &mut PrimFunc, axes: &[Axis], body: Stmt) -> Stmt {
    axes.iter().rev().fold(body, |body, a| serial(f, a.var, a.extent, body))
}

/// Loops that cover `0..extent` of a vectorized axis: wide vectors, then narrow ones, then scalars. `map` turns a position into the
/// axis' value. Guards do not depend on the axis and are hoisted.
pub(super) fn strip_mine(
    f: &mut PrimFunc,
    s: &Stage,
    axis: Var,
    extent: Expr,
    map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
) -> Stmt {
    let Body::Store { buffer, indices, value } = &s.body else {
        unreachable!("only stores are vectorized")
    };
    let (buffer, indices, value) = (*buffer, indices, *value);
    if let Some(tiles) = tiles::plan(f, (buffer, indices, value), axis, extent) {
        let body = tiled::store(f, (buffer, indices), &tiles, (axis, extent), map);
        return guarded_once(f, s, extent, body);
    }
    let widths = widths(lanes(f, value));
    let body = serial_strips(f, extent, &widths, &mut |f, at| {
        let at = map(f, at);
        let s = s.substituted(f, &FxHashMap::from_iter([(axis, at)]));
        let Body::Store { buffer, indices, value } = s.body else { unreachable!("it was a store") };
        f.store(buffer, &indices, value)
    });
    guarded_once(f, s, extent, body)
}

/// Vector widths in falling order, the last being 1.
pub(super) fn widths(wide: i64) -> Vec<i64> {
    match wide {
        17.. => vec![wide, 16, 4, 1],
        8.. => vec![wide, 4, 1],
        _ => vec![wide, 1],
    }
}

/// Loops that cover `0..extent` with vectors of falling widths. `body` gets the first position and, for vectors, the lane variable;
/// `around` wraps the vector in further loops.
pub(super) fn strips_of(
    f: &mut PrimFunc,
    extent: Expr,
    widths: &[i64],
    body: &mut dyn FnMut(&mut PrimFunc, Expr, Option<Var>) -> Stmt,
    around: &mut dyn FnMut(&mut PrimFunc, Stmt) -> Stmt,
) -> Stmt {
    let mut out = Vec::new();
    let mut done = f.int(0);
    let mut left = extent;
    for &w in widths {
        let width = f.int(w);
        let turns = f.binary(BinOp::FloorDiv, left, width);
        let strip = f.size_var(if w == 1 { "tail" } else { "strip" });
        let strip_e = f.var_expr(strip);
        let at = f.mul(strip_e, width);
        let at = f.add(done, at);
        let s = if w == 1 {
            body(f, at, None)
        } else {
            let lane = f.size_var("lane");
            let s = body(f, at, Some(lane));
            vector_loop(f, lane, width, s)
        };
        let s = around(f, s);
        out.push(serial(f, strip, turns, s));
        let covered = f.mul(turns, width);
        done = f.add(done, covered);
        left = f.binary(BinOp::FloorMod, left, width);
        if f.as_int(extent).is_some_and(|n| n % w == 0) {
            break;
        }
    }
    f.seq(out)
}

/// [`strips_of`] with the same body for every width, which gets only the position.
pub(super) fn serial_strips(
    f: &mut PrimFunc,
    extent: Expr,
    widths: &[i64],
    body: &mut dyn FnMut(&mut PrimFunc, Expr) -> Stmt,
) -> Stmt {
    let mut at_lane = |f: &mut PrimFunc, at: Expr, lane: Option<Var>| {
        let at = match lane {
            Some(l) => {
                let l = f.var_expr(l);
                f.add(at, l)
            }
            None => at,
        };
        body(f, at)
    };
    strips_of(f, extent, widths, &mut at_lane, &mut |_, s| s)
}

/// A loop over the lanes of a vector.
pub(super) fn vector_loop(f: &mut PrimFunc, lane: Var, width: Expr, body: Stmt) -> Stmt {
    let (min, kind) = (f.int(0), ForKind::Vectorized);
    f.add_stmt(StmtData::For { var: lane, min, extent: width, kind, body, annotations: Vec::new() })
}
