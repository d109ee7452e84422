//! Code generation for binary operators: arithmetic, comparisons and logical operators.

use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use pliant_ir::tir::{BinOp, Expr, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, internal};
use crate::values::Value;

/// Whether the result of an operator on 16-bit floats, computed in float32, is already exact in the
/// 16-bit type.
fn needs_no_rounding(op: BinOp) -> bool {
    op.is_predicate() || matches!(op, BinOp::Min | BinOp::Max)
}

/// Returns LLVM's predicate for a comparison of floats; `None` for operators that are not comparisons.
fn float_predicate(op: BinOp) -> Option<FloatPredicate> {
    Some(match op {
        BinOp::Eq => FloatPredicate::OEQ,
        BinOp::Ne => FloatPredicate::UNE,
        BinOp::Lt => FloatPredicate::OLT,
        BinOp::Le => FloatPredicate::OLE,
        BinOp::Gt => FloatPredicate::OGT,
        BinOp::Ge => FloatPredicate::OGE,
        _ => return None,
    })
}

/// Returns LLVM's predicate for a comparison of integers; `None` for operators that are not comparisons.
fn int_predicate(op: BinOp, signed: bool) -> Option<IntPredicate> {
    Some(match (op, signed) {
        (BinOp::Eq, _) => IntPredicate::EQ,
        (BinOp::Ne, _) => IntPredicate::NE,
        (BinOp::Lt, true) => IntPredicate::SLT,
        (BinOp::Le, true) => IntPredicate::SLE,
        (BinOp::Gt, true) => IntPredicate::SGT,
        (BinOp::Ge, true) => IntPredicate::SGE,
        (BinOp::Lt, false) => IntPredicate::ULT,
        (BinOp::Le, false) => IntPredicate::ULE,
        (BinOp::Gt, false) => IntPredicate::UGT,
        (BinOp::Ge, false) => IntPredicate::UGE,
        _ => return None,
    })
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Generates code for the binary operator `op` on scalars or vectors. `ty` is the type of the
    /// result.
    pub fn binary(&mut self, op: BinOp, a: Expr, b: Expr, ty: Ty) -> Gen<Value<'ctx>> {
        let f = self.f;
        let (ta, tb) = (f.expr_ty(a), f.expr_ty(b));
        if ta.dtype != tb.dtype {
            return internal(format!(
                "the operands of the operator {op:?} have different types: {ta} and {tb}"
            ));
        }
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        let (a, b) = (self.splat(a, ty.lanes)?, self.splat(b, ty.lanes)?);
        let v = self.apply(op, a, b, ta.with_lanes(ty.lanes))?;
        if needs_no_rounding(op) { Ok(v) } else { self.round_to_type(v, ta.dtype) }
    }

    /// Generates code that applies an operator to the values `a` and `b` of type `ty`. For float16 and bfloat16, the result is a
    /// float32 that the caller must still round to the 16-bit type.
    pub fn apply(&mut self, op: BinOp, a: Value<'ctx>, b: Value<'ctx>, ty: Ty) -> Gen<Value<'ctx>> {
        match ty.dtype.is_float() {
            true => self.float_op(op, a, b, ty),
            false => self.int_op(op, a, b, ty),
        }
    }

    fn int_op(&mut self, op: BinOp, a: Value<'ctx>, b: Value<'ctx>, ty: Ty) -> Gen<Value<'ctx>> {
        let signed = ty.dtype.is_int();
        if let Some(predicate) = int_predicate(op, signed) {
            return self.icmp(predicate, a, b);
        }
        match op {
            BinOp::Add => self.op(InstructionOpcode::Add, a, b),
            BinOp::Sub => self.op(InstructionOpcode::Sub, a, b),
            BinOp::Mul => self.op(InstructionOpcode::Mul, a, b),
            BinOp::And => self.op(InstructionOpcode::And, a, b),
            BinOp::Or => self.op(InstructionOpcode::Or, a, b),
            BinOp::Min if signed => self.same_type_intrinsic("llvm.smin", &[a, b]),
            BinOp::Max if signed => self.same_type_intrinsic("llvm.smax", &[a, b]),
            BinOp::Min => self.same_type_intrinsic("llvm.umin", &[a, b]),
            BinOp::Max => self.same_type_intrinsic("llvm.umax", &[a, b]),
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod => {
                self.int_division(op, a, b, signed)
            }
            other => internal(format!(
                "the operator {other:?} is not defined on operands of type {}",
                ty.dtype
            )),
        }
    }

    /// Generates code for an operator on floats, whose values are float32 or float64 in registers.
    fn float_op(&mut self, op: BinOp, a: Value<'ctx>, b: Value<'ctx>, ty: Ty) -> Gen<Value<'ctx>> {
        if let Some(predicate) = float_predicate(op) {
            return self.fcmp(predicate, a, b);
        }
        match op {
            BinOp::Add => self.op(InstructionOpcode::FAdd, a, b),
            BinOp::Sub => self.op(InstructionOpcode::FSub, a, b),
            BinOp::Mul => self.op(InstructionOpcode::FMul, a, b),
            BinOp::Div => self.op(InstructionOpcode::FDiv, a, b),
            BinOp::Min => self.same_type_intrinsic("llvm.minimum", &[a, b]),
            BinOp::Max => self.same_type_intrinsic("llvm.maximum", &[a, b]),
            BinOp::FloorDiv => {
                let q = self.op(InstructionOpcode::FDiv, a, b)?;
                self.same_type_intrinsic("llvm.floor", &[q])
            }
            BinOp::Mod | BinOp::FloorMod => {
                let name = match ty.dtype {
                    DType::Float64 => "pliant_fmod_f64",
                    _ => "pliant_fmod_f32",
                };
                let r = self.map_lanes(&[a, b], ty.lanes, |g, l| g.call_linked(name, l))?;
                if op == BinOp::Mod {
                    return Ok(r);
                }
                // The remainder of floor division has the sign of the divisor.
                let zero = self.float_of_type(0.0, r.get_type());
                let product = self.op(InstructionOpcode::FMul, r, b)?;
                let signs_differ = self.fcmp(FloatPredicate::OLT, product, zero)?;
                let adjusted = self.op(InstructionOpcode::FAdd, r, b)?;
                self.select(signs_differ, adjusted, r)
            }
            other => internal(format!("the operator {other:?} is not defined on float operands")),
        }
    }
}
