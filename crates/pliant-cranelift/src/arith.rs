//! Two-operand operators.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pliant_ir::tir::{BinOp, Expr, Ty};
use pliant_tensor::DType;

use crate::function::{FuncGen, Gen, internal};
use crate::value::{V, chunk, clif, packable};

/// The message of an integer division by zero.
pub const DIV_ZERO: &str = "ZeroDivisionError: integer division by zero";

/// Whether results never need rounding to the type of the operands.
fn exact(op: BinOp) -> bool {
    op.is_predicate() || matches!(op, BinOp::Min | BinOp::Max)
}

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
    pub fn binary(&mut self, op: BinOp, a: Expr, b: Expr, ty: Ty) -> Gen<V> {
        let f = self.f;
        let (ta, tb) = (f.expr_ty(a), f.expr_ty(b));
        let operand = ta.with_lanes(ty.lanes);
        if ta.dtype != tb.dtype {
            return internal(format!("operands of types {ta} and {tb}"));
        }
        if operand.dtype.is_integer()
            && let Some(v) = self.by_constant(op, a, b, operand)?
        {
            return Ok(v);
        }
        let (va, vb) = (self.expr(a)?, self.expr(b)?);
        if ty.lanes > 1
            && operand.dtype.is_bool()
            && let Some(v) = self.connect_masks(op, &va, &vb, ty.lanes)
        {
            return Ok(v);
        }
        if ty.lanes > 1
            && packable(operand)
            && let Some(v) = self.packed(op, &va, &vb, operand)
        {
            return if exact(op) { Ok(v) } else { self.narrow(v, operand) };
        }
        let args = [(va, ta), (vb, tb)];
        let v = self.try_map_lanes(&args, ty, |g, l| g.scalar_op(op, l[0], l[1], operand.dtype))?;
        if exact(op) { Ok(v) } else { self.narrow(v, operand) }
    }

    /// Rounds the result of an operation on narrow floats to their type.
    pub fn narrow(&mut self, v: V, ty: Ty) -> Gen<V> {
        let round: fn(&mut Self, Value) -> Value = match ty.dtype {
            DType::Float16 => Self::round_f16,
            DType::BFloat16 => Self::round_bf16,
            _ => return Ok(v),
        };
        Ok(match v {
            V::X(chunks) => V::X(chunks.iter().map(|&c| round(self, c)).collect()),
            v => self.map_lanes(&[(v, ty)], ty, |g, l| round(g, l[0])),
        })
    }

    /// A logical operator on vectors of bools, if at least one is a mask and the other is a mask or a scalar. The result has the
    /// narrower of the masks' elements.
    pub fn connect_masks(&mut self, op: BinOp, a: &V, b: &V, lanes: u16) -> Option<V> {
        let bits = match (a, b) {
            (V::M(x, _), V::M(y, _)) => *x.min(y),
            (V::M(x, _), V::S(_)) | (V::S(_), V::M(x, _)) => *x,
            _ => return None,
        };
        let (x, y) = (self.mask(a, lanes, bits.into()), self.mask(b, lanes, bits.into()));
        let one = |g: &mut Self, x: Value, y: Value| {
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
        let chunks: Option<Rc<[Value]>> = (0..x.len()).map(|i| one(self, x[i], y[i])).collect();
        Some(V::M(bits, chunks?))
    }

    /// An operator on chunks; `None` if the machine has no such instruction.
    fn packed(&mut self, op: BinOp, a: &V, b: &V, ty: Ty) -> Option<V> {
        let (x, y) = (self.chunks(a, ty), self.chunks(b, ty));
        let machine = chunk(ty.dtype);
        let bits = clif(ty.dtype).bits();
        let each = |g: &mut Self, one: &dyn Fn(&mut Self, Value, Value) -> Value| -> Rc<[Value]> {
            (0..x.len()).map(|i| one(g, x[i], y[i])).collect()
        };
        if machine.lane_type().is_float() {
            if let Some(cc) = float_cc(op) {
                return Some(V::M(bits as u8, each(self, &|g, x, y| g.b.ins().fcmp(cc, x, y))));
            }
            let one: &dyn Fn(&mut Self, Value, Value) -> Value = match op {
                BinOp::Add => &|g, x, y| g.b.ins().fadd(x, y),
                BinOp::Sub => &|g, x, y| g.b.ins().fsub(x, y),
                BinOp::Mul => &|g, x, y| g.b.ins().fmul(x, y),
                BinOp::Div => &|g, x, y| g.b.ins().fdiv(x, y),
                BinOp::Min => &|g, x, y| g.lesser(x, y),
                BinOp::Max => &|g, x, y| g.greater(x, y),
                _ => return None,
            };
            return Some(V::X(each(self, one)));
        }
        let signed = ty.dtype.is_int();
        if (op, ty.dtype) == (BinOp::Div, DType::Int32) {
            return Some(V::X(self.divide_int32(&x, &y)));
        }
        if let Some(cc) = int_cc(op, signed) {
            // The machine has no unsigned comparison of 64-bit lanes.
            if bits == 64 && !signed && !matches!(op, BinOp::Eq | BinOp::Ne) {
                return None;
            }
            return Some(V::M(bits as u8, each(self, &|g, x, y| g.b.ins().icmp(cc, x, y))));
        }
        let one: &dyn Fn(&mut Self, Value, Value) -> Value = match op {
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
                return Some(V::X(each(self, &|g, x, y| {
                    let first = g.b.ins().icmp(cc, x, y);
                    g.b.ins().bitselect(first, x, y)
                })));
            }
            _ => return None,
        };
        Some(V::X(each(self, one)))
    }

    /// Multiplies bytes as 16-bit elements, because the machine has no instruction that multiplies bytes.
    fn multiply_bytes(&mut self, x: Value, y: Value) -> Value {
        let (a, b) = (self.b.ins().uwiden_low(x), self.b.ins().uwiden_low(y));
        let low = self.b.ins().imul(a, b);
        let (a, b) = (self.b.ins().uwiden_high(x), self.b.ins().uwiden_high(y));
        let high = self.b.ins().imul(a, b);
        self.truncated(low, high)
    }

    /// `a < b ? x : y` of chunks. If `x` and `y` are `a` and `b` in either order, this is one instruction of x86.
    fn pick_less(&mut self, a: Value, b: Value, x: Value, y: Value) -> Value {
        let ty = self.b.func.dfg.value_type(a);
        let less = self.b.ins().fcmp(FloatCC::LessThan, a, b);
        let less = self.recast(less, ty);
        self.b.ins().bitselect(less, x, y)
    }

    /// The elementwise minimum of two chunks of floats, NaN where either is NaN. On x86 it does not canonicalize NaNs as `fmin`
    /// does. The x86 instruction returns its second operand where either is NaN and where both are zeros. So the bitwise or of both
    /// operand orders has every bit of a NaN, and the sign of a negative zero.
    pub fn lesser(&mut self, a: Value, b: Value) -> Value {
        if !self.unit.x86 {
            return self.b.ins().fmin(a, b);
        }
        let (x, y) = (self.pick_less(a, b, a, b), self.pick_less(b, a, b, a));
        self.join(x, y, |g, x, y| g.b.ins().bor(x, y))
    }

    /// The elementwise maximum of two chunks of floats, NaN where either is NaN, as [`FuncGen::lesser`]. The bitwise and of both
    /// operand orders is the positive zero where zeros differ in sign. It loses NaNs, which are put back.
    pub fn greater(&mut self, a: Value, b: Value) -> Value {
        if !self.unit.x86 {
            return self.b.ins().fmax(a, b);
        }
        let (x, y) = (self.pick_less(b, a, a, b), self.pick_less(a, b, b, a));
        let nan = self.b.ins().fcmp(FloatCC::Unordered, a, b);
        self.join(x, y, |g, x, y| {
            let common = g.b.ins().band(x, y);
            g.b.ins().bor(common, nan)
        })
    }

    /// Applies a bitwise operation to two chunks of floats.
    fn join(
        &mut self,
        x: Value,
        y: Value,
        op: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let float = self.b.func.dfg.value_type(x);
        let int = float.as_int();
        let (x, y) = (self.recast(x, int), self.recast(y, int));
        let joined = op(self, x, y);
        self.recast(joined, float)
    }

    /// An operator on scalars. float16 and bfloat16 results are not yet rounded.
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
            other => return internal(format!("operator {other:?} on {dtype}")),
        })
    }

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
                // The remainder takes the divisor's sign.
                let zero =
                    if wide { self.b.ins().f64const(0.0) } else { self.b.ins().f32const(0.0) };
                let product = self.b.ins().fmul(r, b);
                let opposite = self.b.ins().fcmp(FloatCC::LessThan, product, zero);
                let moved = self.b.ins().fadd(r, b);
                self.b.ins().select(opposite, moved, r)
            }
            other => return internal(format!("operator {other:?} on floats")),
        })
    }

    /// Division of integers that never traps: a zero divisor fails the loop function, and the only overflow wraps.
    fn int_division(&mut self, op: BinOp, a: Value, b: Value, signed: bool) -> Value {
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        self.check_not(zero, DIV_ZERO);
        let quotient = matches!(op, BinOp::Div | BinOp::FloorDiv);
        if !signed {
            return if quotient { self.b.ins().udiv(a, b) } else { self.b.ins().urem(a, b) };
        }
        // The smallest integer divided by -1 would trap, so -1 is replaced by 1 and the quotient is negated.
        let minus = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let ty = self.b.func.dfg.value_type(b);
        let one = self.b.ins().iconst(ty, 1);
        let safe = self.b.ins().select(minus, one, b);
        let q = self.b.ins().sdiv(a, safe);
        let negated = self.b.ins().ineg(q);
        let q = self.b.ins().select(minus, negated, q);
        if op == BinOp::Div {
            return q;
        }
        let back = self.b.ins().imul(q, b);
        let r = self.b.ins().isub(a, back);
        if op == BinOp::Mod {
            return r;
        }
        // Rounding down: where the remainder and the divisor differ in sign, the quotient is one less, and the divisor is added to
        // the remainder.
        let zero = self.b.ins().iconst(ty, 0);
        let nonzero = self.b.ins().icmp_imm_s(IntCC::NotEqual, r, 0);
        let signs = self.b.ins().bxor(r, b);
        let differ = self.b.ins().icmp(IntCC::SignedLessThan, signs, zero);
        let adjust = self.b.ins().band(nonzero, differ);
        if quotient {
            let less = self.b.ins().iadd_imm_s(q, -1);
            self.b.ins().select(adjust, less, q)
        } else {
            let more = self.b.ins().iadd(r, b);
            self.b.ins().select(adjust, more, r)
        }
    }

    /// Floor division and remainder of scalars by a constant power of two: a shift and a mask.
    fn by_constant(&mut self, op: BinOp, a: Expr, b: Expr, ty: Ty) -> Gen<Option<V>> {
        let Some(c) = self.f.as_int(b) else { return Ok(None) };
        if ty.lanes != 1 || c <= 0 || !(c as u64).is_power_of_two() {
            return Ok(None);
        }
        let shift = i64::from(c.trailing_zeros());
        Ok(match op {
            BinOp::FloorDiv => {
                let a = self.scalar(a)?;
                let signed = ty.dtype.is_int();
                Some(V::S(if signed {
                    self.b.ins().sshr_imm_s(a, shift)
                } else {
                    self.b.ins().ushr_imm_s(a, shift)
                }))
            }
            BinOp::FloorMod => {
                let a = self.scalar(a)?;
                Some(V::S(self.b.ins().band_imm_s(a, c - 1)))
            }
            _ => None,
        })
    }
}
