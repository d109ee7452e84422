//! VectorizeLoop: replaces each loop of the kind `vectorized` by its body with vector operations, if every operation in it has an
//! efficient vector form. Otherwise the loop becomes serial. Accesses must have one linear index.
//!
//! The extent of the loop must be constant: it is the number of lanes. Earlier passes have separated the tail, the last iterations
//! of the original loop, which do not fill a vector. The default schedule emits loops for the tail
//! (`schedule/emit_stage_loops.rs`); in functions that a user has scheduled, `partition_loops` splits it off.

use pliant_ir::tir::{BinOp, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, Var};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use crate::access_guards::reads_memory;
use crate::lowered_form_verifier::MAX_LANES;
use crate::lowering_error::LowerError;
use crate::statement_traversal::{
    calls_functions, direct_exprs, for_each_stmt, map_stmts, uses_any,
};

/// Vectorizes the loops of the kind `vectorized` where possible, and makes the others serial.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::For { var, min, extent, kind: ForKind::Vectorized, body, annotations } =
            f.stmt(s).clone()
        else {
            return None;
        };
        let lanes =
            f.as_int(extent).and_then(|n| u16::try_from(n).ok()).filter(|&n| n <= MAX_LANES);
        if let Some(lanes) = lanes.filter(|&n| n > 1 && !has_calls(f, body)) {
            let mut v = Vectorizer { var, min, lanes, memo: FxHashMap::default() };
            if let Some(s) = v.stmt(f, body) {
                return Some(s);
            }
        }
        let kind = ForKind::Serial;
        Some(f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations }))
    });
    Ok(())
}

/// Whether an operator is a division or a remainder.
pub(crate) fn is_division(op: BinOp) -> bool {
    matches!(op, BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod)
}

/// Whether a division has an efficient vector form. Float divisions have one. Int32 divisions by a non-constant have one, too:
/// they are computed in float64. Int32 divisions by a constant become scalar multiplications, which are faster.
pub(crate) fn divides_in_vectors(f: &PrimFunc, op: BinOp, a: Expr, b: Expr) -> bool {
    let dtype = f.expr_ty(a).dtype;
    op == BinOp::Div && (dtype.is_float() || dtype == DType::Int32 && f.as_int(b).is_none())
}

/// Whether a loop body calls a packed function, a linked function or a kernel, which must run once per iteration.
fn has_calls(f: &PrimFunc, body: Stmt) -> bool {
    let mut found = false;
    for_each_stmt(f, body, &mut |_, data| direct_exprs(data, |e| found |= calls_functions(f, e)));
    found
}

/// Vectorizes the body of one loop. Each iteration becomes a lane.
struct Vectorizer {
    /// The variable of the loop that is vectorized.
    var: Var,
    min: Expr,
    /// The number of iterations of the loop, which is the number of lanes.
    lanes: u16,
    /// Maps each processed expression to its vector form; `None` for expressions without one.
    memo: FxHashMap<Expr, Option<Expr>>,
}

impl Vectorizer {
    fn uses(&self, f: &PrimFunc, e: Expr) -> bool {
        uses_any(f, e, &|v| v == self.var)
    }

    /// Vectorizes a statement; `None` if it has no vector form.
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Option<Stmt> {
        match f.stmt(s).clone() {
            StmtData::Seq(list) => {
                let list: Option<Vec<Stmt>> = list.into_iter().map(|s| self.stmt(f, s)).collect();
                list.map(|l| f.add_stmt(StmtData::Seq(l)))
            }
            // All lanes have the same condition. A condition that reads memory may change between iterations.
            StmtData::If(condition, then, None)
                if !self.uses(f, condition) && !reads_memory(f, condition) =>
            {
                let then = self.stmt(f, then)?;
                Some(f.add_stmt(StmtData::If(condition, then, None)))
            }
            StmtData::Store { buffer, indices, value } => {
                let [index] = *indices else { return None };
                let index = self.expr(f, index)?;
                let contiguous =
                    matches!(f.expr(index), ExprData::Ramp(_, s, _) if f.as_int(*s) == Some(1));
                if !contiguous {
                    return None;
                }
                let value = self.expr(f, value)?;
                let value = match f.expr_ty(value).lanes {
                    1 => f.add_expr(ExprData::Broadcast(value, self.lanes)),
                    _ => value,
                };
                Some(f.store(buffer, &[index], value))
            }
            _ => None,
        }
    }

    /// Vectorizes an expression; `None` if it has no efficient vector form. Expressions that do not depend on the loop
    /// variable stay scalar.
    fn expr(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        if let Some(&known) = self.memo.get(&e) {
            return known;
        }
        let new = if self.uses(f, e) { self.vector_expr(f, e) } else { Some(e) };
        self.memo.insert(e, new);
        new
    }

    /// Vectorizes an expression that depends on the loop variable; `None` if it has no efficient vector form.
    fn vector_expr(&mut self, f: &mut PrimFunc, e: Expr) -> Option<Expr> {
        let lanes = self.lanes;
        match f.expr(e).clone() {
            ExprData::Var(_) => {
                let one = f.int(1);
                let one = f.cast(one, f.expr_ty(e));
                Some(f.add_expr(ExprData::Ramp(self.min, one, lanes)))
            }
            ExprData::Cast(ty, a) => {
                let a = self.expr(f, a)?;
                Some(f.add_expr(ExprData::Cast(ty.with_lanes(lanes), a)))
            }
            ExprData::Binary(op, a, b) => {
                let (a, b) = (self.expr(f, a)?, self.expr(f, b)?);
                self.binary(f, op, a, b)
            }
            ExprData::Not(a) => {
                let a = self.expr(f, a)?;
                Some(f.add_expr(ExprData::Not(a)))
            }
            ExprData::Select(c, a, b) => {
                let (c, a, b) = (self.expr(f, c)?, self.expr(f, a)?, self.expr(f, b)?);
                let (a, b) = (self.broadcast(f, a), self.broadcast(f, b));
                Some(f.add_expr(ExprData::Select(c, a, b)))
            }
            ExprData::Load(buffer, indices) => {
                let [index] = *indices else { return None };
                let index = self.expr(f, index)?;
                Some(f.load(buffer, &[index]))
            }
            ExprData::Call(intrin, args, ty) => self.call(f, intrin, &args, ty),
            _ => None,
        }
    }

    fn call(&mut self, f: &mut PrimFunc, intrin: Intrin, args: &[Expr], ty: Ty) -> Option<Expr> {
        use Intrin::*;
        match intrin {
            CallExtern | CallPacked | CallKernel | AddressOf | VectorSum | VectorMax
            | VectorMin => {
                return None;
            }
            IfThenElse if self.uses(f, args[0]) => return None,
            _ => {}
        }
        let mut new = Vec::with_capacity(args.len());
        for (i, &a) in args.iter().enumerate() {
            let v = self.expr(f, a)?;
            let is_condition = intrin == IfThenElse && i == 0;
            new.push(match f.expr_ty(v).lanes {
                1 if !is_condition => f.add_expr(ExprData::Broadcast(v, self.lanes)),
                _ => v,
            });
        }
        let ty = if intrin == Reinterpret { ty.with_lanes(self.lanes) } else { ty };
        Some(f.add_expr(ExprData::Call(intrin, new.into(), ty)))
    }

    fn binary(&mut self, f: &mut PrimFunc, op: BinOp, a: Expr, b: Expr) -> Option<Expr> {
        let ty = f.expr_ty(a);
        let (ra, rb) = (ramp(f, a), ramp(f, b));
        let is_int64 = ty.dtype == DType::Int64;
        match (op, ra, rb) {
            (BinOp::Add, Some((base, stride)), None) if is_int64 && f.expr_ty(b).lanes == 1 => {
                let base = add_folded(f, base, b);
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            (BinOp::Add, None, Some((base, stride))) if is_int64 && f.expr_ty(a).lanes == 1 => {
                let base = add_folded(f, a, base);
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            (BinOp::Mul, None, Some((base, stride))) if is_int64 && f.expr_ty(a).lanes == 1 => {
                let (base, stride) = (multiply_folded(f, base, a), multiply_folded(f, stride, a));
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            (BinOp::Sub, Some((base, stride)), None) if is_int64 && f.expr_ty(b).lanes == 1 => {
                let base = f.binary(BinOp::Sub, base, b);
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            (BinOp::Sub, None, Some((base, stride))) if is_int64 && f.expr_ty(a).lanes == 1 => {
                let (base, minus) = (f.binary(BinOp::Sub, a, base), f.int(-1));
                let stride = multiply_folded(f, stride, minus);
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            (BinOp::Mul, Some((base, stride)), None) if is_int64 && f.expr_ty(b).lanes == 1 => {
                let (base, stride) = (multiply_folded(f, base, b), multiply_folded(f, stride, b));
                return Some(f.add_expr(ExprData::Ramp(base, stride, self.lanes)));
            }
            _ => {}
        }
        if is_division(op) && !divides_in_vectors(f, op, a, b) {
            return None;
        }
        let (a, b) = (self.broadcast(f, a), self.broadcast(f, b));
        Some(f.binary(op, a, b))
    }

    /// Broadcasts a scalar to all lanes. Returns vectors unchanged.
    fn broadcast(&self, f: &mut PrimFunc, e: Expr) -> Expr {
        match f.expr_ty(e).lanes {
            1 => f.add_expr(ExprData::Broadcast(e, self.lanes)),
            _ => e,
        }
    }
}

/// Returns `a + b` without additions of 0.
fn add_folded(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        _ => f.add(a, b),
    }
}

/// Returns `a * b` without multiplications by 1. The product of two constants is a constant.
fn multiply_folded(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(x), Some(y)) if x.checked_mul(y).is_some() => f.int(x * y),
        (_, Some(1)) => a,
        (Some(1), _) => b,
        _ => f.mul(a, b),
    }
}

/// Returns the base and the stride of a ramp; `None` for other expressions.
fn ramp(f: &PrimFunc, e: Expr) -> Option<(Expr, Expr)> {
    match f.expr(e) {
        ExprData::Ramp(base, stride, _) => Some((*base, *stride)),
        _ => None,
    }
}
