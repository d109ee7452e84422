//! Code generation for binary operators: arithmetic, comparisons and logical operators.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pliant_ir::tir::{BinOp, Expr, Ty};
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen, internal};
use crate::value_representations::{ExprValue, chunk_type, fills_chunks, scalar_type};

/// The message of an integer division by zero. Its prefix marks the error as a `ZeroDivisionError`.
pub const DIV_ZERO: &str = "ZeroDivisionError: integer division by zero";

/// Whether the result of an operator on 16-bit floats, computed in float32, is already exact in the
/// 16-bit type.
fn needs_no_rounding(op: BinOp) -> bool {
    op.is_predicate() || matches!(op, BinOp::Min | BinOp::Max)
}

/// Returns Cranelift's condition code for a comparison of floats; `None` for operators that are not comparisons.
fn float_cc(op: BinOp) -> Option<FloatCC> {
    Some(match op {
        BinOp::Eq => FloatCC::Equal,
        BinOp::Ne => FloatCC::NotEqual,
        BinOp::Lt => FloatCC::LessThan,
        BinOp::Le => FloatCC::LessThanOrEqual,
        BinOp::Gt => FloatCC::GreaterThan,
        BinOp::Ge => FloatCC::GreaterThanOrEqual,
        _ => return None,
    })
}

/// Returns Cranelift's condition code for a comparison of integers; `None` for operators that are not comparisons.
fn int_cc(op: BinOp, signed: bool) -> Option<IntCC> {
    Some(match (op, signed) {
        (BinOp::Eq, _) => IntCC::Equal,
        (BinOp::Ne, _) => IntCC::NotEqual,
        (BinOp::Lt, true) => IntCC::SignedLessThan,
        (BinOp::Le, true) => IntCC::SignedLessThanOrEqual,
        (BinOp::Gt, true) => IntCC::SignedGreaterThan,
        (BinOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (BinOp::Lt, false) => IntCC::UnsignedLessThan,
        (BinOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (BinOp::Gt, false) => IntCC::UnsignedGreaterThan,
        (BinOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}

impl FuncGen<'_, '_> {
    /// Generates code for the binary operator `op` on scalars or vectors. `ty` is the type of the
    /// result.
    pub fn binary(&mut self, op: BinOp, a: Expr, b: Expr, ty: Ty) -> Gen<ExprValue> {
        let f = self.f;
        let (ta, tb) = (f.expr_ty(a), f.expr_ty(b));
        let operand_ty = ta.with_lanes(ty.lanes);
        if ta.dtype != tb.dtype {
            return internal(format!(
                "the operands of the operator {op:?} have different types: {ta} and {tb}"
            ));
        }
        if operand_ty.dtype.is_integer()
            && let Some(v) = self.divide_by_power_of_two(op, a, b, operand_ty)?
        {
            return Ok(v);
        }
        let (va, vb) = (self.expr(a)?, self.expr(b)?);
        if ty.lanes > 1
            && operand_ty.dtype.is_bool()
            && let Some(v) = self.mask_op(op, &va, &vb, ty.lanes)
        {
            return Ok(v);
        }
        if ty.lanes > 1
            && fills_chunks(operand_ty)
            && let Some(v) = self.chunk_binary(op, &va, &vb, operand_ty)
        {
            return if needs_no_rounding(op) { Ok(v) } else { self.round_to_type(v, operand_ty) };
        }
        let args = [(va, ta), (vb, tb)];
        let v =
            self.try_map_lanes(&args, ty, |g, l| g.scalar_op(op, l[0], l[1], operand_ty.dtype))?;
        if needs_no_rounding(op) { Ok(v) } else { self.round_to_type(v, operand_ty) }
    }

    /// Generates code that rounds the float32 result of an operation on 16-bit floats to their type. Returns values of other types
    /// unchanged.
    pub fn round_to_type(&mut self, v: ExprValue, ty: Ty) -> Gen<ExprValue> {
        let round: fn(&mut Self, Value) -> Value = match ty.dtype {
            DType::Float16 => Self::round_f16,
            DType::BFloat16 => Self::round_bf16,
            _ => return Ok(v),
        };
        Ok(match v {
            ExprValue::Chunks(chunks) => {
                ExprValue::Chunks(chunks.iter().map(|&c| round(self, c)).collect())
            }
            v => self.map_lanes(&[(v, ty)], ty, |g, l| round(g, l[0])),
        })
    }

    /// Computes `and`, `or`, `!=` or `==` of two bool vectors in mask form ([`ExprValue::Mask`]); one operand may be a scalar. If
    /// the masks differ in element width, the result has the smaller width. Returns `None` for other operands and operators.
    pub fn mask_op(
        &mut self,
        op: BinOp,
        a: &ExprValue,
        b: &ExprValue,
        lanes: u16,
    ) -> Option<ExprValue> {
        let bits = match (a, b) {
            (ExprValue::Mask(x, _), ExprValue::Mask(y, _)) => *x.min(y),
            (ExprValue::Mask(x, _), ExprValue::Scalar(_))
            | (ExprValue::Scalar(_), ExprValue::Mask(x, _)) => *x,
            _ => return None,
        };
        let (x, y) = (self.mask(a, lanes, bits.into()), self.mask(b, lanes, bits.into()));
        let chunk_op = |g: &mut Self, x: Value, y: Value| {
            Some(match op {
                BinOp::And => g.b.ins().band(x, y),
                BinOp::Or => g.b.ins().bor(x, y),
                BinOp::Ne => g.b.ins().bxor(x, y),
                BinOp::Eq => {
                    let differ = g.b.ins().bxor(x, y);
                    g.b.ins().bnot(differ)
                }
                _ => return None,
            })
        };
        let chunks: Option<Rc<[Value]>> =
            (0..x.len()).map(|i| chunk_op(self, x[i], y[i])).collect();
        Some(ExprValue::Mask(bits, chunks?))
    }

    /// Generates code for a binary operator on vectors in 128-bit chunks. Returns `None` if the machine has no instruction for it.
    fn chunk_binary(
        &mut self,
        op: BinOp,
        a: &ExprValue,
        b: &ExprValue,
        ty: Ty,
    ) -> Option<ExprValue> {
        let (x, y) = (self.chunks(a, ty), self.chunks(b, ty));
        let machine_type = chunk_type(ty.dtype);
        let bits = scalar_type(ty.dtype).bits();
        let map_chunks =
            |g: &mut Self, op: &dyn Fn(&mut Self, Value, Value) -> Value| -> Rc<[Value]> {
                (0..x.len()).map(|i| op(g, x[i], y[i])).collect()
            };
        if machine_type.lane_type().is_float() {
            if let Some(cc) = float_cc(op) {
                return Some(ExprValue::Mask(
                    bits as u8,
                    map_chunks(self, &|g, x, y| g.b.ins().fcmp(cc, x, y)),
                ));
            }
            let chunk_op: &dyn Fn(&mut Self, Value, Value) -> Value = match op {
                BinOp::Add => &|g, x, y| g.b.ins().fadd(x, y),
                BinOp::Sub => &|g, x, y| g.b.ins().fsub(x, y),
                BinOp::Mul => &|g, x, y| g.b.ins().fmul(x, y),
                BinOp::Div => &|g, x, y| g.b.ins().fdiv(x, y),
                BinOp::Min => &|g, x, y| g.float_min(x, y),
                BinOp::Max => &|g, x, y| g.float_max(x, y),
                _ => return None,
            };
            return Some(ExprValue::Chunks(map_chunks(self, chunk_op)));
        }
        let signed = ty.dtype.is_int();
        if (op, ty.dtype) == (BinOp::Div, DType::Int32) {
            return Some(ExprValue::Chunks(self.divide_int32(&x, &y)));
        }
        if let Some(cc) = int_cc(op, signed) {
            // There is no machine instruction for unsigned comparison of 64-bit lanes.
            if bits == 64 && !signed && !matches!(op, BinOp::Eq | BinOp::Ne) {
                return None;
            }
            return Some(ExprValue::Mask(
                bits as u8,
                map_chunks(self, &|g, x, y| g.b.ins().icmp(cc, x, y)),
            ));
        }
        let chunk_op: &dyn Fn(&mut Self, Value, Value) -> Value = match op {
            BinOp::Add => &|g, x, y| g.b.ins().iadd(x, y),
            BinOp::Sub => &|g, x, y| g.b.ins().isub(x, y),
            BinOp::Mul if bits > 8 => &|g, x, y| g.b.ins().imul(x, y),
            BinOp::Mul => &|g, x, y| g.multiply_bytes(x, y),
            BinOp::Min | BinOp::Max if bits < 64 => match (op, signed) {
                (BinOp::Min, true) => &|g, x, y| g.b.ins().smin(x, y),
                (BinOp::Min, false) => &|g, x, y| g.b.ins().umin(x, y),
                (_, true) => &|g, x, y| g.b.ins().smax(x, y),
                (_, false) => &|g, x, y| g.b.ins().umax(x, y),
            },
            BinOp::Min | BinOp::Max if signed => {
                let cc =
                    if op == BinOp::Min { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
                return Some(ExprValue::Chunks(map_chunks(self, &|g, x, y| {
                    let first = g.b.ins().icmp(cc, x, y);
                    g.b.ins().bitselect(first, x, y)
                })));
            }
            _ => return None,
        };
        Some(ExprValue::Chunks(map_chunks(self, chunk_op)))
    }

    /// Multiplies two 128-bit chunks of 8-bit integers lane by lane. Computes in 16-bit lanes, because the machine has no
    /// instruction that multiplies bytes.
    fn multiply_bytes(&mut self, x: Value, y: Value) -> Value {
        let (a, b) = (self.b.ins().uwiden_low(x), self.b.ins().uwiden_low(y));
        let low = self.b.ins().imul(a, b);
        let (a, b) = (self.b.ins().uwiden_high(x), self.b.ins().uwiden_high(y));
        let high = self.b.ins().imul(a, b);
        self.truncate_pair(low, high)
    }

    /// Returns `a < b ? x : y` for each lane of 128-bit chunks. Cranelift emits a single x86 minimum or maximum instruction if
    /// `x` and `y` are `a` and `b` in either order.
    fn select_less(&mut self, a: Value, b: Value, x: Value, y: Value) -> Value {
        let ty = self.b.func.dfg.value_type(a);
        let less = self.b.ins().fcmp(FloatCC::LessThan, a, b);
        let less = self.bitcast_chunk(less, ty);
        self.b.ins().bitselect(less, x, y)
    }

    /// Returns the elementwise minimum of two 128-bit chunks of floats; NaN where either operand is NaN.
    ///
    /// The x86 minimum instruction returns its second operand if either operand is NaN or both are zeros. The function therefore
    /// emits it twice, with both operand orders, and combines the results by a bitwise or. This keeps NaNs and the sign of a
    /// negative zero. Unlike Cranelift's `fmin`, it does not canonicalize NaNs.
    pub fn float_min(&mut self, a: Value, b: Value) -> Value {
        if !self.unit.x86 {
            return self.b.ins().fmin(a, b);
        }
        let (x, y) = (self.select_less(a, b, a, b), self.select_less(b, a, b, a));
        self.bitwise_op(x, y, |g, x, y| g.b.ins().bor(x, y))
    }

    /// Returns the elementwise maximum of two 128-bit chunks of floats; NaN where either operand is NaN.
    ///
    /// As in [`FuncGen::float_min`], the x86 instruction is emitted with both operand orders. A bitwise and of the two results
    /// selects the positive zero if the zeros differ in sign. The bitwise and can destroy NaNs, so a bitwise or with the mask of
    /// NaN lanes restores them.
    pub fn float_max(&mut self, a: Value, b: Value) -> Value {
        if !self.unit.x86 {
            return self.b.ins().fmax(a, b);
        }
        let (x, y) = (self.select_less(b, a, a, b), self.select_less(a, b, b, a));
        let nan = self.b.ins().fcmp(FloatCC::Unordered, a, b);
        self.bitwise_op(x, y, |g, x, y| {
            let common = g.b.ins().band(x, y);
            g.b.ins().bor(common, nan)
        })
    }

    /// Applies a bitwise operation to the bits of two 128-bit chunks of floats.
    fn bitwise_op(
        &mut self,
        x: Value,
        y: Value,
        op: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let float = self.b.func.dfg.value_type(x);
        let int = float.as_int();
        let (x, y) = (self.bitcast_chunk(x, int), self.bitcast_chunk(y, int));
        let joined = op(self, x, y);
        self.bitcast_chunk(joined, float)
    }

    /// Generates code that applies an operator to the scalars `a` and `b`. For float16 and bfloat16, the result is a float32 that
    /// the caller must still round to the 16-bit type.
    pub fn scalar_op(&mut self, op: BinOp, a: Value, b: Value, dtype: DType) -> Gen<Value> {
        if dtype.is_float() {
            return self.float_op(op, a, b);
        }
        let signed = dtype.is_int();
        if let Some(cc) = int_cc(op, signed) {
            return Ok(self.b.ins().icmp(cc, a, b));
        }
        Ok(match op {
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Sub => self.b.ins().isub(a, b),
            BinOp::Mul => self.b.ins().imul(a, b),
            BinOp::And => self.b.ins().band(a, b),
            BinOp::Or => self.b.ins().bor(a, b),
            BinOp::Min if signed => self.b.ins().smin(a, b),
            BinOp::Max if signed => self.b.ins().smax(a, b),
            BinOp::Min => self.b.ins().umin(a, b),
            BinOp::Max => self.b.ins().umax(a, b),
            BinOp::Div | BinOp::Mod | BinOp::FloorDiv | BinOp::FloorMod => {
                self.int_division(op, a, b, signed)
            }
            other => {
                return internal(format!(
                    "the operator {other:?} is not defined on operands of type {dtype}"
                ));
            }
        })
    }

    /// Generates code for an operator on float32 or float64 scalars.
    fn float_op(&mut self, op: BinOp, a: Value, b: Value) -> Gen<Value> {
        if let Some(cc) = float_cc(op) {
            return Ok(self.b.ins().fcmp(cc, a, b));
        }
        Ok(match op {
            BinOp::Add => self.b.ins().fadd(a, b),
            BinOp::Sub => self.b.ins().fsub(a, b),
            BinOp::Mul => self.b.ins().fmul(a, b),
            BinOp::Div => self.b.ins().fdiv(a, b),
            BinOp::Min => self.b.ins().fmin(a, b),
            BinOp::Max => self.b.ins().fmax(a, b),
            BinOp::FloorDiv => {
                let q = self.b.ins().fdiv(a, b);
                self.b.ins().floor(q)
            }
            BinOp::Mod | BinOp::FloorMod => {
                let wide = self.b.func.dfg.value_type(a) == types::F64;
                let name = if wide { "pliant_fmod_f64" } else { "pliant_fmod_f32" };
                let r = self.call_linked(name, &[a, b])?;
                if op == BinOp::Mod {
                    return Ok(r);
                }
                // The remainder of floor division has the sign of the divisor.
                let zero =
                    if wide { self.b.ins().f64const(0.0) } else { self.b.ins().f32const(0.0) };
                let product = self.b.ins().fmul(r, b);
                let signs_differ = self.b.ins().fcmp(FloatCC::LessThan, product, zero);
                let adjusted = self.b.ins().fadd(r, b);
                self.b.ins().select(signs_differ, adjusted, r)
            }
            other => {
                return internal(format!(
                    "the operator {other:?} is not defined on float operands"
                ));
            }
        })
    }

    /// Emits a division of scalar integers that never traps. At run time, a zero divisor fails the loop function, and the quotient
    /// of the smallest integer and -1 wraps.
    fn int_division(&mut self, op: BinOp, a: Value, b: Value, signed: bool) -> Value {
        let by_zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        self.shape_error_if(by_zero, DIV_ZERO);
        let wants_quotient = matches!(op, BinOp::Div | BinOp::FloorDiv);
        if !signed {
            return if wants_quotient { self.b.ins().udiv(a, b) } else { self.b.ins().urem(a, b) };
        }
        // The smallest integer divided by -1 would trap, so -1 is replaced by 1 and the quotient is negated.
        let by_minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let ty = self.b.func.dfg.value_type(b);
        let one = self.b.ins().iconst(ty, 1);
        let safe = self.b.ins().select(by_minus_one, one, b);
        let q = self.b.ins().sdiv(a, safe);
        let negated = self.b.ins().ineg(q);
        let q = self.b.ins().select(by_minus_one, negated, q);
        if op == BinOp::Div {
            return q;
        }
        let product = self.b.ins().imul(q, b);
        let r = self.b.ins().isub(a, product);
        if op == BinOp::Mod {
            return r;
        }
        // To round down: if the remainder is nonzero and differs from the divisor in sign, the quotient is decremented,
        // and the divisor is added to the remainder.
        let zero = self.b.ins().iconst(ty, 0);
        let is_nonzero = self.b.ins().icmp_imm_s(IntCC::NotEqual, r, 0);
        let signs = self.b.ins().bxor(r, b);
        let signs_differ = self.b.ins().icmp(IntCC::SignedLessThan, signs, zero);
        let adjust = self.b.ins().band(is_nonzero, signs_differ);
        if wants_quotient {
            let rounded_down = self.b.ins().iadd_imm_s(q, -1);
            self.b.ins().select(adjust, rounded_down, q)
        } else {
            let adjusted = self.b.ins().iadd(r, b);
            self.b.ins().select(adjust, adjusted, r)
        }
    }

    /// Computes the floor division or the remainder of a scalar by a constant power of two, with a
    /// shift or a bit mask. Returns `None` for other operands and operators.
    fn divide_by_power_of_two(
        &mut self,
        op: BinOp,
        a: Expr,
        b: Expr,
        ty: Ty,
    ) -> Gen<Option<ExprValue>> {
        let Some(c) = self.f.as_int(b) else { return Ok(None) };
        if ty.lanes != 1 || c <= 0 || !(c as u64).is_power_of_two() {
            return Ok(None);
        }
        let shift = i64::from(c.trailing_zeros());
        Ok(match op {
            BinOp::FloorDiv => {
                let a = self.scalar(a)?;
                let signed = ty.dtype.is_int();
                Some(ExprValue::Scalar(if signed {
                    self.b.ins().sshr_imm_s(a, shift)
                } else {
                    self.b.ins().ushr_imm_s(a, shift)
                }))
            }
            BinOp::FloorMod => {
                let a = self.scalar(a)?;
                Some(ExprValue::Scalar(self.b.ins().band_imm_s(a, c - 1)))
            }
            _ => None,
        })
    }
}
