//! Simplify: folds constants, normalizes integer arithmetic if that makes it smaller, and removes code that never runs.

use pliant_ir::tir::sym::SymBridge;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var, VarTy,
};
use pliant_sym::SymArena;
use rustc_hash::FxHashMap;

use crate::check_bounds;
use crate::error::LowerError;
use crate::fit::{Fit, Interval, SIZE_LIMIT};
use crate::walk::{ExprRewriter, for_each_stmt, map_stmts, substitute};

/// Simplifies the whole function.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    let fit = bounds(f, body);
    let body = expressions(f, &fit, body);
    f.body = map_stmts(f, body, &mut |f, s| statement(f, &fit, s));
    Ok(())
}

/// Simplifies the expressions below a statement.
fn expressions(f: &mut PrimFunc, fit: &Fit, s: Stmt) -> Stmt {
    let mut integers = Integers::new(fit);
    map_stmts(f, s, &mut |f, s| {
        let mut changed = false;
        let mut map = |f: &mut PrimFunc, e: Expr| {
            let new = integers.rewritten(f, e);
            changed |= new != e;
            new
        };
        let new = match f.stmt(s).clone() {
            StmtData::Store { buffer, indices, value } => {
                let value = map(f, value);
                let indices = indices.iter().map(|&i| map(f, i)).collect();
                StmtData::Store { buffer, indices, value }
            }
            StmtData::Assert(c, message, body) => StmtData::Assert(map(f, c), message, body),
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let (min, extent) = (map(f, min), map(f, extent));
                StmtData::For { var, min, extent, kind, body, annotations }
            }
            StmtData::While(c, body) => StmtData::While(map(f, c), body),
            StmtData::If(c, then, other) => StmtData::If(map(f, c), then, other),
            StmtData::Let(var, bound, body) => StmtData::Let(var, map(f, bound), body),
            StmtData::Evaluate(e) => StmtData::Evaluate(map(f, e)),
            StmtData::Block(mut b) => {
                for iter in &mut b.iters {
                    (iter.min, iter.extent) = (map(f, iter.min), map(f, iter.extent));
                    iter.binding = map(f, iter.binding);
                }
                b.predicate = b.predicate.map(|p| map(f, p));
                StmtData::Block(b)
            }
            data @ (StmtData::Seq(_) | StmtData::Alloc(..)) => data,
        };
        changed.then(|| f.add_stmt(new))
    })
}

/// Simplifies int64 arithmetic as symbolic integers.
struct Integers<'a> {
    arena: SymArena,
    bridge: SymBridge,
    /// Which arithmetic cannot overflow.
    fit: &'a Fit,
    /// The results by expression, since many statements share expressions.
    done: FxHashMap<Expr, Option<Expr>>,
}

impl<'a> Integers<'a> {
    fn new(fit: &'a Fit) -> Self {
        let (arena, bridge) = (SymArena::default(), SymBridge::default());
        Integers { arena, bridge, fit, done: FxHashMap::default() }
    }

    /// Simplifies an expression with all its subexpressions.
    fn rewritten(&mut self, f: &mut PrimFunc, e: Expr) -> Expr {
        let mut rule = |f: &mut PrimFunc, e: Expr| self.simpler(f, e);
        ExprRewriter::new(&mut rule).expr(f, e)
    }

    /// A simpler form of an expression whose operands are simplified, if there is one.
    fn simpler(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        if let Some(&known) = self.done.get(&e) {
            return known;
        }
        let folded = fold(f, e).unwrap_or(e);
        let smaller = self.normal(f, folded).unwrap_or(folded);
        let simpler = (smaller != e).then_some(smaller);
        self.done.insert(e, simpler);
        simpler
    }

    /// The normal form of an int64 expression, if it is smaller.
    ///
    /// It has the same machine value if neither form can overflow, or if both are sums and products of parts that cannot overflow,
    /// because these wrap around alike. Indices are no exception: a checked index may fit 64 bits while its normal form does not.
    fn normal(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        if !matches!(f.expr(e), ExprData::Binary(..)) || f.expr_ty(e) != Ty::I64 {
            return None;
        }
        let sym = self.bridge.to_sym(f, &mut self.arena, e)?;
        let new = self.bridge.to_expr(&self.arena, f, sym);
        // A condition counts as 0 or 1 in integer arithmetic.
        let new = match f.expr_ty(new) {
            Ty::I64 => new,
            _ => f.add_expr(ExprData::Cast(Ty::I64, new)),
        };
        if size(f, new) >= size(f, e) {
            return None;
        }
        let [old, facts] = [e, new].map(|e| self.fit.fact(f, e, &|_| None));
        ((old.exact && facts.exact) || (old.ring && facts.ring)).then_some(new)
    }
}

/// The bounds of a function's variables. Sizes, and parameters that reach sizes, are within the limit that the entry of the loop
/// function checks. Loop variables and lets are in the ranges of their bounds and values.
fn bounds(f: &PrimFunc, s: Stmt) -> Fit {
    let mut fit = Fit::default();
    let free = check_bounds::listed_unbounded(f);
    for (i, &p) in f.params.iter().enumerate() {
        if f.var(p).ty == VarTy::Value(Ty::I64) && !free.contains(&i) {
            fit.bound(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
        }
    }
    for &b in f.buffer_map.values() {
        f.buffer(b).shape.iter().for_each(|&d| fit.dim(f, d));
        f.buffer(b).strides.iter().for_each(|&s| fit.stride(f, s));
    }
    for_each_stmt(f, s, &mut |_, data| match *data {
        StmtData::For { var, min, extent, .. } => {
            let [low, turns] = [min, extent].map(|e| fit.fact(f, e, &|_| None).range);
            let end = Interval { lo: low.lo + turns.lo, hi: low.hi + turns.hi };
            // If the end of the range wraps around, so may the loop variable.
            if let VarTy::Value(ty) = f.var(var).ty
                && Interval::of_type(ty.dtype).holds(end)
            {
                fit.bound(var, Interval { lo: low.lo, hi: low.lo.max(end.hi - 1) });
            }
        }
        StmtData::Let(var, value, _) => {
            let range = fit.fact(f, value, &|_| None).range;
            fit.bound(var, range);
        }
        _ => {}
    });
    fit
}

fn size(f: &PrimFunc, e: Expr) -> usize {
    let mut n = 0;
    for_each_expr(f, e, |_| n += 1);
    n
}

fn is_zero(f: &PrimFunc, e: Expr) -> bool {
    f.as_int(e) == Some(0)
}

fn is_one(f: &PrimFunc, e: Expr) -> bool {
    f.as_int(e) == Some(1)
}

/// One step of constant folding. Float arithmetic is not folded, since it is not exact.
pub(crate) fn fold(f: &mut PrimFunc, e: Expr) -> Option<Expr> {
    match f.expr(e).clone() {
        ExprData::Binary(op, a, b) => binary(f, op, a, b),
        ExprData::Not(a) => f.as_int(a).map(|v| boolean(f, v == 0)),
        ExprData::Select(c, a, b) => f.as_int(c).map(|v| if v != 0 { a } else { b }),
        ExprData::Cast(ty, a) if f.expr_ty(a) == ty => Some(a),
        ExprData::Call(pliant_ir::tir::Intrin::IfThenElse, args, _) => {
            f.as_int(args[0]).map(|v| if v != 0 { args[1] } else { args[2] })
        }
        _ => None,
    }
}

fn boolean(f: &mut PrimFunc, v: bool) -> Expr {
    f.add_expr(ExprData::Int(i64::from(v), Ty::BOOL))
}

fn binary(f: &mut PrimFunc, op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
    let ty = f.expr_ty(a);
    match op {
        BinOp::And | BinOp::Or => {
            let stop = i64::from(op == BinOp::Or);
            return match (f.as_int(a), f.as_int(b)) {
                (Some(v), _) => Some(if (v != 0) == (stop != 0) { a } else { b }),
                (_, Some(v)) => Some(if (v != 0) == (stop != 0) { b } else { a }),
                _ => None,
            };
        }
        _ if ty != Ty::I64 || f.expr_ty(b) != Ty::I64 => return None,
        BinOp::Add if is_zero(f, a) => return Some(b),
        BinOp::Add | BinOp::Sub if is_zero(f, b) => return Some(a),
        BinOp::Mul if is_one(f, a) || is_zero(f, b) => return Some(b),
        BinOp::Mul | BinOp::FloorDiv | BinOp::Div if is_one(f, b) => return Some(a),
        BinOp::Mul if is_zero(f, a) => return Some(a),
        BinOp::FloorMod | BinOp::Mod if is_one(f, b) => return Some(f.int(0)),
        BinOp::Min | BinOp::Max if a == b => return Some(a),
        _ => {}
    }
    let (x, y) = (f.as_int(a)?, f.as_int(b)?);
    let value = match op {
        BinOp::Add => x.checked_add(y)?,
        BinOp::Sub => x.checked_sub(y)?,
        BinOp::Mul => x.checked_mul(y)?,
        BinOp::Div => x.checked_div(y)?,
        BinOp::Mod => x.checked_rem(y)?,
        BinOp::FloorDiv if y > 0 => x.div_euclid(y),
        BinOp::FloorMod if y > 0 => x.rem_euclid(y),
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::Eq => return Some(boolean(f, x == y)),
        BinOp::Ne => return Some(boolean(f, x != y)),
        BinOp::Lt => return Some(boolean(f, x < y)),
        BinOp::Le => return Some(boolean(f, x <= y)),
        BinOp::Gt => return Some(boolean(f, x > y)),
        BinOp::Ge => return Some(boolean(f, x >= y)),
        _ => return None,
    };
    Some(f.int(value))
}

fn statement(f: &mut PrimFunc, fit: &Fit, s: Stmt) -> Option<Stmt> {
    let empty = |f: &mut PrimFunc| Some(f.add_stmt(StmtData::Seq(Vec::new())));
    match f.stmt(s).clone() {
        StmtData::Seq(list) => {
            let mut flat = Vec::new();
            for &s in &list {
                match f.stmt(s) {
                    StmtData::Seq(inner) => flat.extend_from_slice(inner),
                    _ => flat.push(s),
                }
            }
            (flat != list || flat.len() == 1).then(|| f.seq(flat))
        }
        StmtData::If(c, then, other) => match f.as_int(c)? {
            0 => other.map_or_else(|| empty(f), Some),
            _ => Some(then),
        },
        StmtData::Assert(c, _, body) if f.as_int(condition(f, c)).is_some_and(|v| v != 0) => {
            Some(body)
        }
        StmtData::For { extent, .. } if f.as_int(extent).is_some_and(|n| n <= 0) => empty(f),
        StmtData::For { body, .. } if is_empty(f, body) => empty(f),
        StmtData::For {
            var,
            min,
            extent,
            kind: ForKind::Serial | ForKind::Vectorized,
            body,
            ..
        } if f.as_int(extent) == Some(1) => Some(replace(f, fit, var, min, body)),
        StmtData::Let(var, value, body) if trivial(f, value) => {
            Some(replace(f, fit, var, value, body))
        }
        _ => None,
    }
}

/// The condition of an assertion, without the operands of its message.
fn condition(f: &PrimFunc, e: Expr) -> Expr {
    match f.expr(e) {
        ExprData::Call(Intrin::Explain, args, _) => args.first().copied().unwrap_or(e),
        _ => e,
    }
}

fn is_empty(f: &PrimFunc, s: Stmt) -> bool {
    matches!(f.stmt(s), StmtData::Seq(list) if list.is_empty())
}

fn trivial(f: &PrimFunc, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::Int(..) | ExprData::Float(..) | ExprData::Var(_))
}

/// The body with a variable replaced, simplified again.
fn replace(f: &mut PrimFunc, fit: &Fit, var: Var, value: Expr, body: Stmt) -> Stmt {
    let body = substitute(f, body, &FxHashMap::from_iter([(var, value)]));
    let body = expressions(f, fit, body);
    map_stmts(f, body, &mut |f, s| statement(f, fit, s))
}
