//! Loop splitting: cuts the last axis of a stage where a condition changes along it (concatenation, padding, triangles), where it
//! is split by division (tiling, repetition), and where it is short. In each part the value is plain, so that vectors can compute
//! it and no element costs a branch or a division.

use pliant_ir::tir::visit::{for_each_expr, for_each_operand};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty, Var, VarTy};
use rustc_hash::{FxHashMap, FxHashSet};

use super::emit::{Along, along, guarded_once, nest, part, point, step};
use super::group::serial;
use super::stage::{Axis, Body, Stage, is_var};
use crate::check_bounds::listed_unbounded;
use crate::fit::{Fit, Interval, SIZE_LIMIT};
use crate::guards;
use crate::simplify::fold;
use crate::walk::{ExprRewriter, for_each_stmt, uses_any};

/// Maximum number of parts of one axis.
const MAX_PARTS: usize = 8;
/// Maximum magnitude of axes for which a comparison is decided per part: sums of several axes and sizes then fit 64 bits.
const AXIS_LIMIT: i64 = 1 << 50;
/// Maximum size of a last axis or divisor that is unrolled.
const SHORT: i64 = 8;

/// A comparison that changes along an axis: it holds before `cut`, or from there on.
#[derive(Clone, Copy, Debug)]
struct Atom {
    condition: Expr,
    cut: Cut,
}

/// The position at which a comparison changes.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: Expr,
    /// Whether the comparison holds before `at`.
    before: bool,
    /// For an equality, the comparison that it becomes from `at` on.
    rest: Option<BinOp>,
}

/// The number of trailing axes whose loops [`emit`] makes; 0 if the stage needs no cut.
pub(super) fn own_axes(f: &mut PrimFunc, s: &Stage) -> usize {
    let Some(v) = last(f, s) else { return 0 };
    let Body::Store { value, .. } = s.body else { return 0 };
    let atom = atom(f, value, v).is_some();
    if atom && s.axes.len() > 1 && is_short(f, s.axes[s.axes.len() - 1].extent) {
        return 2;
    }
    usize::from(atom || divisor(f, value, v).is_some())
}

/// The loops of a stage that is cut; `None` if [`own_axes`] is 0.
pub(super) fn emit(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    let own = own_axes(f, s);
    let front = s.axes.len().checked_sub(own).filter(|_| own > 0)?;
    let mut inner = folded(f, s);
    let outer: Vec<Axis> = inner.axes.drain(..front).collect();
    if own == 2 {
        let body = written_out(f, &inner);
        return Some(nest(f, &outer, body));
    }
    // The split points may depend on variables that guards bind, so the guards are in front of all parts.
    let mut bare = inner.clone();
    bare.guards.clear();
    let body = parts(f, &bare, &mut { MAX_PARTS });
    let body = guarded_once(f, &inner, inner.axes[0].extent, body);
    Some(nest(f, &outer, body))
}

/// The variable of a stage's last axis, if the stage may be cut along it.
fn last(f: &PrimFunc, s: &Stage) -> Option<Var> {
    let v = s.axes.last()?.var;
    let guarded = guards::depend_on(f, &s.guards, v);
    (!s.reduces() && s.init.is_none() && !guarded).then_some(v)
}

fn is_short(f: &PrimFunc, e: Expr) -> bool {
    f.as_int(e).is_some_and(|n| (1..=SHORT).contains(&n))
}

/// Whether an expression depends on variables alone.
fn pure(f: &PrimFunc, e: Expr) -> bool {
    let mut ok = true;
    for_each_expr(f, e, |e| ok &= !matches!(f.expr(e), ExprData::Load(..) | ExprData::Call(..)));
    ok
}

/// The first comparison that decides a conditional and changes once along the axis.
fn atom(f: &mut PrimFunc, value: Expr, v: Var) -> Option<Atom> {
    let mut conditions = Vec::new();
    for_each_expr(f, value, |e| match f.expr(e) {
        ExprData::Select(c, ..) => conditions.push(*c),
        ExprData::Call(Intrin::IfThenElse, args, _) => conditions.push(args[0]),
        _ => {}
    });
    while let Some(c) = conditions.pop() {
        match *f.expr(c) {
            ExprData::Not(a) => conditions.push(a),
            ExprData::Binary(BinOp::And | BinOp::Or, a, b) => conditions.extend([b, a]),
            ExprData::Binary(op, a, b) => {
                if let Some(cut) = cut(f, op, a, b, v) {
                    return Some(Atom { condition: c, cut });
                }
            }
            _ => {}
        }
    }
    None
}

/// The cut of `a op b` along `v`; `None` if there is none, or if its arithmetic may overflow.
fn cut(f: &mut PrimFunc, op: BinOp, a: Expr, b: Expr, v: Var) -> Option<Cut> {
    if f.expr_ty(a) != Ty::I64 || !pure(f, a) || !pure(f, b) {
        return None;
    }
    let slope = step(f, a, v)?.checked_sub(step(f, b, v)?)?;
    let (zero, one) = (f.int(0), f.int(1));
    let at_zero = FxHashMap::from_iter([(v, zero)]);
    let (first, second) = (a, b);
    let [a, b] = [a, b].map(|e| crate::walk::substitute_expr(f, e, &at_zero));
    // Either `v + a - b` or `a - b - v` is compared with 0.
    let (at, op) = match slope {
        1 => (f.binary(BinOp::Sub, b, a), op),
        -1 => (f.binary(BinOp::Sub, a, b), mirrored(op)),
        _ => return None,
    };
    let next = f.add(at, one);
    let wide = wide_variables(f)?;
    if ![first, second, next].iter().all(|&e| fits(f, e, &wide)) {
        return None;
    }
    let rest = (op == BinOp::Eq).then_some(if slope == 1 { BinOp::Le } else { BinOp::Ge });
    let (at, before) = match op {
        BinOp::Lt => (at, true),
        BinOp::Le => (next, true),
        BinOp::Ge | BinOp::Eq => (at, false),
        BinOp::Gt => (next, false),
        _ => return None,
    };
    Some(Cut { at: fold(f, at).unwrap_or(at), before, rest })
}

/// Whether the arithmetic of an expression cannot overflow if all variables but the wide ones are within [`AXIS_LIMIT`].
fn fits(f: &PrimFunc, e: Expr, wide: &FxHashSet<Var>) -> bool {
    let size = Interval::new(-AXIS_LIMIT, AXIS_LIMIT);
    let within =
        |v: Var| (f.var(v).ty == VarTy::Value(Ty::I64) && !wide.contains(&v)).then_some(size);
    Fit::default().fact(f, e, &within).exact
}

/// The parameters and lets that may be beyond [`AXIS_LIMIT`], such as values from memory; `None` if a loop or an axis may be. All
/// other variables are axes of the function, or run over parts of one.
fn wide_variables(f: &PrimFunc) -> Option<FxHashSet<Var>> {
    let size = Interval::new(-AXIS_LIMIT, AXIS_LIMIT);
    let free = listed_unbounded(f);
    let free = free.iter().filter_map(|&i| f.params.get(i).copied());
    let mut wide: FxHashSet<Var> = free.collect();
    let mut fit = Fit::default();
    for &p in f.params.iter().filter(|p| f.var(**p).ty == VarTy::Value(Ty::I64)) {
        if !wide.contains(&p) {
            fit.bound(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
        }
    }
    for &b in f.buffer_map.values() {
        let data = f.buffer(b);
        data.shape.iter().for_each(|&d| fit.dim(f, d));
        data.strides.iter().for_each(|&s| fit.stride(f, s));
    }
    let mut short = true;
    let mut axis = |fit: &mut Fit, var: Var, min: Expr, extent: Expr| {
        let [min, extent] = [min, extent].map(|e| fit.fact(f, e, &|_| None));
        let end = Interval { lo: min.range.lo, hi: min.range.hi + extent.range.hi.max(0) };
        short &= min.exact && extent.exact && size.holds(end);
        fit.bound(var, size);
    };
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::For { var, min, extent, .. } => axis(&mut fit, *var, *min, *extent),
        StmtData::Block(b) => {
            b.iters.iter().for_each(|i| axis(&mut fit, i.var, i.min, i.extent));
        }
        StmtData::Let(var, value, _) => {
            if size.holds(fit.fact(f, *value, &|_| None).range) {
                fit.bound(*var, size);
            } else {
                wide.insert(*var);
            }
        }
        _ => {}
    });
    short.then_some(wide)
}

/// The equivalent comparison with exchanged operands.
fn mirrored(op: BinOp) -> BinOp {
    match op {
        BinOp::Lt => BinOp::Gt,
        BinOp::Le => BinOp::Ge,
        BinOp::Ge => BinOp::Le,
        BinOp::Gt => BinOp::Lt,
        other => other,
    }
}

/// The first divisor by which the axis is split.
fn divisor(f: &PrimFunc, value: Expr, v: Var) -> Option<Expr> {
    let divisor_of = |e: Expr| match *f.expr(e) {
        ExprData::Binary(BinOp::FloorDiv | BinOp::FloorMod, x, d)
            if is_var(f, x, v)
                && f.expr_ty(x) == Ty::I64
                && !uses_any(f, d, &|x| x == v)
                && pure(f, d) =>
        {
            Some(d)
        }
        _ => None,
    };
    let (mut stack, mut seen, mut found) = (vec![value], FxHashSet::default(), None);
    while let Some(e) = stack.pop() {
        // The indices of a contiguous load, which delinearize a fused axis, become one offset.
        let contiguous =
            matches!(f.expr(e), ExprData::Load(b, i) if along(f, *b, i, v) == Along::Contiguous);
        if !seen.insert(e) || contiguous {
            continue;
        }
        found = divisor_of(e).or(found);
        for_each_operand(f.expr(e), |a| stack.push(a));
    }
    // Powers of two cost only a shift and a mask, but prevent vectorization all the same.
    found.filter(|&d| f.as_int(d).is_none_or(|d| d > 1))
}

/// The stage with expressions replaced in its value and indices, and constants folded.
fn rewritten(
    f: &mut PrimFunc,
    s: &Stage,
    rule: &dyn Fn(&mut PrimFunc, Expr) -> Option<Expr>,
) -> Stage {
    let mut s = s.clone();
    let mut folded = |f: &mut PrimFunc, e: Expr| match rule(f, e) {
        Some(new) => Some(new),
        None => fold(f, e),
    };
    let mut rewriter = ExprRewriter::new(&mut folded);
    if let Body::Store { indices, value, .. } = &mut s.body {
        *value = rewriter.expr(f, *value);
        for i in indices {
            *i = rewriter.expr(f, *i);
        }
    }
    s
}

/// The stage with constants folded.
fn folded(f: &mut PrimFunc, s: &Stage) -> Stage {
    rewritten(f, s, &|_, _| None)
}

/// The stage under the assumption that a comparison holds, or that it does not. An equality that may still hold becomes
/// `Cut::rest`.
fn decided(f: &mut PrimFunc, s: &Stage, atom: Atom, holds: bool) -> Stage {
    rewritten(f, s, &|f, e| {
        if e != atom.condition {
            return None;
        }
        match (f.expr(e), atom.cut.rest.filter(|_| holds)) {
            (&ExprData::Binary(_, a, b), Some(rest)) => Some(f.binary(rest, a, b)),
            _ => Some(f.add_expr(ExprData::Int(i64::from(holds), Ty::BOOL))),
        }
    })
}

/// The loops over the only axis of a stage, in parts.
fn parts(f: &mut PrimFunc, s: &Stage, left: &mut usize) -> Stmt {
    let Body::Store { value, .. } = s.body else { return part(f, s) };
    let axis = s.axes[0];
    if let Some(atom) = atom(f, value, axis.var).filter(|_| *left > 1) {
        *left -= 1;
        return halves(f, s, atom, left);
    }
    match divisor(f, value, axis.var) {
        Some(d) => taken_apart(f, s, d, left),
        None => part(f, s),
    }
}

/// The parts before and after the position at which a comparison changes.
fn halves(f: &mut PrimFunc, s: &Stage, atom: Atom, left: &mut usize) -> Stmt {
    let axis = s.axes[0];
    let zero = f.int(0);
    let from = f.binary(BinOp::Max, atom.cut.at, zero);
    let from = f.binary(BinOp::Min, from, axis.extent);
    let from = f.binary(BinOp::Max, from, zero);
    let from = ExprRewriter::new(&mut |f, e| fold(f, e)).expr(f, from);
    let var = f.size_var("cut");
    let cut = if f.as_int(from).is_some() { from } else { f.var_expr(var) };

    let mut low = decided(f, s, atom, atom.cut.before);
    low.axes[0].extent = cut;
    let low = parts(f, &low, left);

    let high = decided(f, s, atom, !atom.cut.before);
    let high = shifted(f, &high, cut);
    let high = parts(f, &high, left);
    let body = f.add_stmt(StmtData::Seq(vec![low, high]));
    if cut == from { body } else { f.add_stmt(StmtData::Let(var, from, body)) }
}

/// The stage from position `from` of its axis on, counted from there.
fn shifted(f: &mut PrimFunc, s: &Stage, from: Expr) -> Stage {
    let axis = s.axes[0];
    let var = f.size_var("rest");
    let v = f.var_expr(var);
    let place = f.add(from, v);
    let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, place)]));
    let mut s = folded(f, &s);
    let extent = f.binary(BinOp::Sub, axis.extent, from);
    let extent = fold(f, extent).unwrap_or(extent);
    s.axes[0] = Axis { var, extent, ..axis };
    s
}

/// The stage with its axis as `outer * d + inner`.
fn apart(f: &mut PrimFunc, s: &Stage, d: Expr, outer: Expr, inner: Expr) -> Stage {
    let axis = s.axes[0];
    let s = rewritten(f, s, &|f, e| match *f.expr(e) {
        ExprData::Binary(BinOp::FloorDiv, x, y) if y == d && is_var(f, x, axis.var) => Some(outer),
        ExprData::Binary(BinOp::FloorMod, x, y) if y == d && is_var(f, x, axis.var) => Some(inner),
        _ => None,
    });
    let start = f.mul(outer, d);
    let place = f.add(start, inner);
    let s = s.substituted(f, &FxHashMap::from_iter([(axis.var, place)]));
    folded(f, &s)
}

/// Splits the axis into runs of `d` positions: a loop over runs around a loop over their positions, which is unrolled if runs are
/// short.
fn taken_apart(f: &mut PrimFunc, s: &Stage, d: Expr, left: &mut usize) -> Stmt {
    let axis = s.axes[0];
    let run = f.size_var("run");
    let run_e = f.var_expr(run);
    if is_short(f, d) {
        let whole = f.binary(BinOp::FloorDiv, axis.extent, d);
        let n = f.as_int(d).unwrap_or(0);
        let points: Vec<Stmt> = (0..n)
            .map(|k| {
                let k = f.int(k);
                let s = apart(f, s, d, run_e, k);
                point(f, &s)
            })
            .collect();
        let body = f.seq(points);
        let runs = serial(f, run, whole, body);
        let tail = f.size_var("tail");
        let tail_e = f.var_expr(tail);
        let rest = apart(f, s, d, whole, tail_e);
        let rest = point(f, &rest);
        let count = f.binary(BinOp::FloorMod, axis.extent, d);
        let rest = serial(f, tail, count, rest);
        return f.add_stmt(StmtData::Seq(vec![runs, rest]));
    }
    let (zero, one) = (f.int(0), f.int(1));
    // The divisor may be any int64, so nothing is added to it.
    let last = f.binary(BinOp::Sub, axis.extent, one);
    let runs = f.binary(BinOp::FloorDiv, last, d);
    let runs = f.add(runs, one);
    let place = f.size_var("place");
    let place_e = f.var_expr(place);
    let mut inner = apart(f, s, d, run_e, place_e);
    let start = f.mul(run_e, d);
    let rest = f.binary(BinOp::Sub, axis.extent, start);
    let extent = f.binary(BinOp::Min, d, rest);
    let extent = f.binary(BinOp::Max, extent, zero);
    inner.axes[0] = Axis { var: place, extent, ..axis };
    let body = parts(f, &inner, left);
    let runs = serial(f, run, runs, body);
    // A divisor below 1 makes no runs; then each element is computed with divisions.
    let each = part(f, s);
    let some = f.binary(BinOp::Lt, zero, d);
    f.add_stmt(StmtData::If(some, runs, Some(each)))
}

/// Unrolls the last of two axes inside a loop over the first one.
fn written_out(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let (outer, short) = (s.axes[0], s.axes[1]);
    let n = f.as_int(short.extent).unwrap_or(0);
    let points: Vec<Stmt> = (0..n)
        .map(|k| {
            let k = f.int(k);
            let s = s.substituted(f, &FxHashMap::from_iter([(short.var, k)]));
            let s = folded(f, &s);
            point(f, &s)
        })
        .collect();
    let body = f.seq(points);
    nest(f, &[outer], body)
}
