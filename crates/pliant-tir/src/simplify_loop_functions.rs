//! Simplify: folds constants, normalizes integer arithmetic if the normal form is smaller, and removes dead code.

use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var, VarTy,
};
use pliant_sym::SymArena;
use rustc_hash::FxHashMap;

use crate::check_bounds;
use crate::lowering_error::LowerError;
use crate::overflow_analysis::{Interval, OverflowAnalysis, SIZE_LIMIT};
use crate::statement_traversal::{ExprRewriter, for_each_stmt, map_stmts, substitute};

/// Simplifies all expressions and statements of a function.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    let overflow = variable_ranges(f, body);
    let body = simplify_exprs(f, &overflow, body);
    f.body = map_stmts(f, body, &mut |f, s| simplify_stmt(f, &overflow, s));
    Ok(())
}

/// Simplifies the expressions of a statement and its descendants.
fn simplify_exprs(f: &mut PrimFunc, overflow: &OverflowAnalysis, s: Stmt) -> Stmt {
    let mut simplifier = IntegerSimplifier::new(overflow);
    map_stmts(f, s, &mut |f, s| {
        let mut changed = false;
        let mut map = |f: &mut PrimFunc, e: Expr| {
            let new = simplifier.simplify_expr(f, e);
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

/// Simplifies int64 arithmetic by converting it to symbolic integers, which have a normal form.
struct IntegerSimplifier<'a> {
    arena: SymArena,
    bridge: SymBridge,
    /// The overflow analysis, which finds arithmetic that cannot overflow.
    overflow: &'a OverflowAnalysis,
    /// Maps each processed expression to its simplified form; `None` if it could not be simplified. Many statements share
    /// expressions.
    memo: FxHashMap<Expr, Option<Expr>>,
}

impl<'a> IntegerSimplifier<'a> {
    fn new(overflow: &'a OverflowAnalysis) -> Self {
        let (arena, bridge) = (SymArena::default(), SymBridge::default());
        IntegerSimplifier { arena, bridge, overflow, memo: FxHashMap::default() }
    }

    /// Simplifies an expression and all its subexpressions.
    fn simplify_expr(&mut self, f: &mut PrimFunc, e: Expr) -> Expr {
        let mut rule = |f: &mut PrimFunc, e: Expr| self.simplify_node(f, e);
        ExprRewriter::new(&mut rule).expr(f, e)
    }

    /// Simplifies an expression whose operands have already been simplified; `None` if it cannot be simplified.
    fn simplify_node(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        if let Some(&known) = self.memo.get(&e) {
            return known;
        }
        let folded = fold(f, e).unwrap_or(e);
        let smaller = self.smaller_normal_form(f, folded).unwrap_or(folded);
        let simpler = (smaller != e).then_some(smaller);
        self.memo.insert(e, simpler);
        simpler
    }

    /// Returns the normal form of an int64 expression, if it is smaller and has the same machine value.
    ///
    /// The machine value is the same if neither form can overflow, or if both are sums and products of exact operands, because
    /// both then wrap around modulo 2**64. This must also be checked for indices: a checked index may fit 64 bits although its
    /// normal form overflows.
    fn smaller_normal_form(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        if !matches!(f.expr(e), ExprData::Binary(..)) || f.expr_ty(e) != Ty::I64 {
            return None;
        }
        let sym = self.bridge.to_sym(f, &mut self.arena, e)?;
        let new = self.bridge.to_expr(&self.arena, f, sym);
        // A condition in integer arithmetic is 0 or 1.
        let new = match f.expr_ty(new) {
            Ty::I64 => new,
            _ => f.add_expr(ExprData::Cast(Ty::I64, new)),
        };
        if node_count(f, new) >= node_count(f, e) {
            return None;
        }
        let [old, facts] = [e, new].map(|e| self.overflow.fact(f, e, &|_| None));
        ((old.exact && facts.exact) || (old.congruent && facts.congruent)).then_some(new)
    }
}

/// Returns an overflow analysis that knows the ranges of the function's variables. Sizes and bounded parameters have limits,
/// which the function checks on entry. The ranges of loop variables follow from the loop bounds, and those of `let` variables
/// from their values.
fn variable_ranges(f: &PrimFunc, s: Stmt) -> OverflowAnalysis {
    let mut overflow = OverflowAnalysis::default();
    let unbounded = check_bounds::recorded_unbounded_params(f);
    for (i, &p) in f.params.iter().enumerate() {
        if f.var(p).ty == VarTy::Value(Ty::I64) && !unbounded.contains(&i) {
            overflow.assume_range(p, Interval::new(-SIZE_LIMIT, SIZE_LIMIT));
        }
    }
    for &b in f.buffer_map.values() {
        f.buffer(b).shape.iter().for_each(|&d| overflow.assume_dim(f, d));
        f.buffer(b).strides.iter().for_each(|&s| overflow.assume_stride(f, s));
    }
    for_each_stmt(f, s, &mut |_, data| match *data {
        StmtData::For { var, min, extent, .. } => {
            let [low, iterations] = [min, extent].map(|e| overflow.fact(f, e, &|_| None).range);
            let end = Interval { lo: low.lo + iterations.lo, hi: low.hi + iterations.hi };
            // If the end of the range wraps around, so may the loop variable.
            if let VarTy::Value(ty) = f.var(var).ty
                && Interval::of_type(ty.dtype).contains(end)
            {
                overflow.assume_range(var, Interval { lo: low.lo, hi: low.lo.max(end.hi - 1) });
            }
        }
        StmtData::Let(var, value, _) => {
            let range = overflow.fact(f, value, &|_| None).range;
            overflow.assume_range(var, range);
        }
        _ => {}
    });
    overflow
}

/// Returns the number of distinct subexpressions of an expression, including itself.
fn node_count(f: &PrimFunc, e: Expr) -> usize {
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

/// Folds an operator whose operands are constants, or one of whose operands is a neutral element (`x + 0`, `x * 1`). Returns
/// `None` if it cannot be folded. Float arithmetic is not folded, because it is not exact.
pub(crate) fn fold(f: &mut PrimFunc, e: Expr) -> Option<Expr> {
    match f.expr(e).clone() {
        ExprData::Binary(op, a, b) => fold_binary(f, op, a, b),
        ExprData::Not(a) => f.as_int(a).map(|v| bool_const(f, v == 0)),
        ExprData::Select(c, a, b) => f.as_int(c).map(|v| if v != 0 { a } else { b }),
        ExprData::Cast(ty, a) if f.expr_ty(a) == ty => Some(a),
        ExprData::Call(pliant_ir::tir::Intrin::IfThenElse, args, _) => {
            f.as_int(args[0]).map(|v| if v != 0 { args[1] } else { args[2] })
        }
        _ => None,
    }
}

fn bool_const(f: &mut PrimFunc, v: bool) -> Expr {
    f.add_expr(ExprData::Int(i64::from(v), Ty::BOOL))
}

/// Folds a binary operator on conditions or int64 operands; `None` if it cannot be folded.
fn fold_binary(f: &mut PrimFunc, op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
    let ty = f.expr_ty(a);
    match op {
        BinOp::And | BinOp::Or => {
            // The value of one operand that determines the result.
            let absorbing = op == BinOp::Or;
            return match (f.as_int(a), f.as_int(b)) {
                (Some(v), _) => Some(if (v != 0) == absorbing { a } else { b }),
                (_, Some(v)) => Some(if (v != 0) == absorbing { b } else { a }),
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
        BinOp::Eq => return Some(bool_const(f, x == y)),
        BinOp::Ne => return Some(bool_const(f, x != y)),
        BinOp::Lt => return Some(bool_const(f, x < y)),
        BinOp::Le => return Some(bool_const(f, x <= y)),
        BinOp::Gt => return Some(bool_const(f, x > y)),
        BinOp::Ge => return Some(bool_const(f, x >= y)),
        _ => return None,
    };
    Some(f.int(value))
}

/// Simplifies a statement whose nested statements have already been simplified: flattens sequences, and removes dead
/// branches, assertions that always hold, empty loops, loops with one iteration, and `let`s of trivial values. Returns
/// `None` if nothing changes.
fn simplify_stmt(f: &mut PrimFunc, overflow: &OverflowAnalysis, s: Stmt) -> Option<Stmt> {
    let empty_stmt = |f: &mut PrimFunc| Some(f.add_stmt(StmtData::Seq(Vec::new())));
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
            0 => other.map_or_else(|| empty_stmt(f), Some),
            _ => Some(then),
        },
        StmtData::Assert(c, _, body) if f.as_int(bare_condition(f, c)).is_some_and(|v| v != 0) => {
            Some(body)
        }
        StmtData::For { extent, .. } if f.as_int(extent).is_some_and(|n| n <= 0) => empty_stmt(f),
        StmtData::For { body, .. } if is_empty(f, body) => empty_stmt(f),
        StmtData::For {
            var,
            min,
            extent,
            kind: ForKind::Serial | ForKind::Vectorized,
            body,
            ..
        } if f.as_int(extent) == Some(1) => Some(replace_var(f, overflow, var, min, body)),
        StmtData::Let(var, value, body) if is_trivial(f, value) => {
            Some(replace_var(f, overflow, var, value, body))
        }
        _ => None,
    }
}

/// Returns the condition of an assertion. If the expression also contains operands of the error message (`Intrin::Explain`), drops
/// them.
pub(crate) fn bare_condition(f: &PrimFunc, e: Expr) -> Expr {
    match f.expr(e) {
        ExprData::Call(Intrin::Explain, args, _) => args.first().copied().unwrap_or(e),
        _ => e,
    }
}

fn is_empty(f: &PrimFunc, s: Stmt) -> bool {
    matches!(f.stmt(s), StmtData::Seq(list) if list.is_empty())
}

fn is_trivial(f: &PrimFunc, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::Int(..) | ExprData::Float(..) | ExprData::Var(_))
}

/// Replaces the variable `var` by `value` in a statement, and simplifies the statement again.
fn replace_var(
    f: &mut PrimFunc,
    overflow: &OverflowAnalysis,
    var: Var,
    value: Expr,
    body: Stmt,
) -> Stmt {
    let body = substitute(f, body, &FxHashMap::from_iter([(var, value)]));
    let body = simplify_exprs(f, overflow, body);
    map_stmts(f, body, &mut |f, s| simplify_stmt(f, overflow, s))
}
