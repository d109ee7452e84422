//! Evaluates expressions of loop functions.

use pliant_ir::DType;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, Ty};

use super::LoopFrame;
use super::scalar_arithmetic::{Val, binary, cast, malformed, map_lanes, round, wrap};
use super::statements::ints;
use crate::interp_error::Result;

impl LoopFrame<'_, '_, '_> {
    /// Evaluates an expression of a statement. First discards the memoized values of shared subexpressions, because the memory that
    /// they read may have changed since the last statement.
    pub(super) fn eval(&mut self, e: Expr) -> Result<Val> {
        self.memo.clear();
        self.expr(e)
    }

    /// Evaluates an expression. A shared subexpression is evaluated once and memoized.
    pub(super) fn expr(&mut self, e: Expr) -> Result<Val> {
        if !self.shared[e] {
            return self.compute(e);
        }
        if let Some(value) = self.memo.get(&e) {
            return Ok(value.clone());
        }
        let value = self.compute(e)?;
        self.memo.insert(e, value.clone());
        Ok(value)
    }

    fn compute(&mut self, e: Expr) -> Result<Val> {
        let f = self.f;
        match f.expr(e) {
            ExprData::Int(v, ty) => Ok(splat(Val::Int(wrap(*v, ty.dtype)), *ty)),
            ExprData::Float(bits, ty) => {
                Ok(splat(Val::Float(round(f64::from_bits(*bits), ty.dtype)), *ty))
            }
            ExprData::Str(s) => Ok(Val::Str(s.clone())),
            ExprData::Var(v) => self.vars.get(v).cloned().ok_or_else(|| {
                malformed(&format!("variable '{}' is used outside of its scope", f.var(*v).name))
            }),
            ExprData::Cast(to, a) => {
                let (from, to) = (f.expr_ty(*a).dtype, to.dtype);
                let a = self.operand(*a)?;
                map_lanes(&[a], &mut |v| cast(&v[0], from, to))
            }
            ExprData::Binary(op, a, b) => self.binary(*op, *a, *b),
            ExprData::Not(a) => {
                let a = self.operand(*a)?;
                map_lanes(&[a], &mut |v| Ok(Val::Int(i64::from(v[0].int()? == 0))))
            }
            ExprData::Select(c, a, b) => self.select(*c, *a, *b),
            ExprData::Load(buffer, indices) => self.load(*buffer, indices),
            ExprData::Ramp(base, stride, lanes) => {
                let dtype = f.expr_ty(*base).dtype;
                let (base, stride) = (self.operand(*base)?.int()?, self.operand(*stride)?.int()?);
                let lane = |i: i64| wrap(base.wrapping_add(stride.wrapping_mul(i)), dtype);
                Ok(Val::Vector((0..i64::from(*lanes)).map(|i| Val::Int(lane(i))).collect()))
            }
            ExprData::Broadcast(a, lanes) => {
                let a = self.operand(*a)?;
                Ok(Val::Vector(vec![a; usize::from(*lanes)].into()))
            }
            ExprData::Call(Intrin::IfThenElse, args, _) => {
                let [c, a, b] = args[..] else {
                    return Err(malformed("T.if_then_else does not have 3 operands"));
                };
                self.select(c, a, b)
            }
            ExprData::Call(intrin, args, _) => self.intrin(*intrin, args, f.expr_ty(e)),
        }
    }

    /// Evaluates an operand of an expression, after checking that the stack is not exhausted.
    pub(super) fn operand(&mut self, e: Expr) -> Result<Val> {
        match self.f.expr(e) {
            ExprData::Int(..) | ExprData::Float(..) | ExprData::Var(_) => self.compute(e),
            _ => {
                self.interp.check_stack()?;
                self.expr(e)
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: Expr, b: Expr) -> Result<Val> {
        let (ta, tb) = (self.f.expr_ty(a), self.f.expr_ty(b));
        if ta.dtype != tb.dtype {
            return Err(malformed(&format!(
                "the operands of {op:?} must have the same type, but have {ta} and {tb}"
            )));
        }
        let a = self.operand(a)?;
        // Short-circuit evaluation, because the first operand may guard the second one.
        if let (BinOp::And | BinOp::Or, Val::Int(v)) = (op, &a)
            && (*v != 0) == (op == BinOp::Or)
        {
            return Ok(Val::Int(i64::from(op == BinOp::Or)));
        }
        let b = self.operand(b)?;
        if let (Val::Int(_) | Val::Float(_), Val::Int(_) | Val::Float(_)) = (&a, &b) {
            return binary(op, &a, &b, ta.dtype);
        }
        map_lanes(&[a, b], &mut |v| binary(op, &v[0], &v[1], ta.dtype))
    }

    /// Evaluates a `T.Select`. If the condition is a scalar, only the selected alternative is evaluated.
    fn select(&mut self, c: Expr, a: Expr, b: Expr) -> Result<Val> {
        let c = self.operand(c)?;
        if let Val::Int(v) = c {
            return self.operand(if v != 0 { a } else { b });
        }
        let args = [c, self.operand(a)?, self.operand(b)?];
        map_lanes(&args, &mut |v| Ok(v[if v[0].is_true()? { 1 } else { 2 }].clone()))
    }

    fn load(&mut self, buffer: Buffer, indices: &[Expr]) -> Result<Val> {
        let mut list = Vec::with_capacity(indices.len());
        for &i in indices {
            list.push(self.operand(i)?);
        }
        let view = self.view(buffer)?;
        let Some(lanes) = list.iter().find_map(Val::lanes) else {
            return view.read(view.position(&ints(&list)?)?);
        };
        let mut out = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let at: Result<Vec<i64>> = list.iter().map(|i| i.lane(lane)?.int()).collect();
            out.push(view.read(view.position(&at?)?)?);
        }
        Ok(Val::Vector(out.into()))
    }
}

/// Converts a scalar to a value of type `ty`. If `ty` is a vector type, all lanes get the value of the scalar.
fn splat(value: Val, ty: Ty) -> Val {
    if ty.lanes == 1 { value } else { Val::Vector(vec![value; usize::from(ty.lanes)].into()) }
}

/// Reduces a vector to a scalar by applying a binary operator to its lanes in order. A scalar is returned unchanged.
pub(super) fn reduce(op: BinOp, v: &Val, dtype: DType) -> Result<Val> {
    let Val::Vector(lanes) = v else { return Ok(v.clone()) };
    let mut lanes = lanes.iter().cloned();
    let first = lanes.next().ok_or_else(|| malformed("a vector without lanes"))?;
    lanes.try_fold(first, |acc, lane| binary(op, &acc, &lane, dtype))
}
