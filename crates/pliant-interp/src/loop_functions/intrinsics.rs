//! Evaluates calls of intrinsics. Intrinsics are computed in float64 or 64-bit integers, and the
//! result is rounded or wrapped to the data type.

use std::sync::Arc;

use pliant_ir::DType;
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, Ty};

use super::LoopFrame;
use super::buffer_view::{View, decode, encode};
use super::expressions::reduce;
use super::scalar_arithmetic::{Val, cast, malformed, map_lanes, round, unsupported, wrap};
use super::statements::ints;
use crate::Value;
use crate::builtins::element;
use crate::interp_error::Result;
use crate::interpreter::packed_error;

impl LoopFrame<'_, '_, '_> {
    pub(super) fn intrin(&mut self, intrin: Intrin, args: &[Expr], ty: Ty) -> Result<Val> {
        if intrin.arity().is_some_and(|n| n != args.len()) {
            return Err(malformed(&format!(
                "T.{intrin} cannot be called with {} operands",
                args.len()
            )));
        }
        match intrin {
            Intrin::AddressOf => return self.address_of(args[0]),
            Intrin::CallExtern => return self.call_extern(args, ty),
            Intrin::CallPacked => return self.call_packed(args, ty),
            Intrin::CallKernel => return self.call_kernel(args),
            Intrin::Explain if !args.is_empty() => return self.operand(args[0]),
            _ => {}
        }
        let from = args.first().map_or(ty.dtype, |&a| self.f.expr_ty(a).dtype);
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            values.push(self.operand(a)?);
        }
        let fold = match intrin {
            Intrin::VectorSum => Some(BinOp::Add),
            Intrin::VectorMax => Some(BinOp::Max),
            Intrin::VectorMin => Some(BinOp::Min),
            _ => None,
        };
        if let Some(op) = fold {
            return cast(&reduce(op, &values[0], from)?, from, ty.dtype);
        }
        map_lanes(&values, &mut |v| match intrin {
            Intrin::Reinterpret => reinterpret(&v[0], from, ty.dtype),
            Intrin::IsNan | Intrin::IsInf | Intrin::IsFinite => classify(intrin, &v[0], from),
            _ if ty.dtype.is_float() => {
                let floats: Result<Vec<f64>> = v.iter().map(Val::float).collect();
                let result = float_intrin(intrin, &floats?).ok_or_else(|| {
                    unsupported(format!(
                        "the interpreter does not support T.{intrin} of operands of type {ty}"
                    ))
                })?;
                Ok(Val::Float(round(result, ty.dtype)))
            }
            _ => {
                let result = int_intrin(intrin, &ints(v)?, ty.dtype).ok_or_else(|| {
                    unsupported(format!(
                        "the interpreter does not support T.{intrin} of operands of type {ty}"
                    ))
                })?;
                Ok(Val::Int(wrap(result, ty.dtype)))
            }
        })
    }

    fn address_of(&mut self, e: Expr) -> Result<Val> {
        let ExprData::Load(buffer, indices) = self.f.expr(e) else {
            return Err(malformed("the operand of T.address_of is not a buffer element"));
        };
        let mut list = Vec::with_capacity(indices.len());
        for &i in indices {
            list.push(self.operand(i)?);
        }
        let view = self.view(*buffer)?;
        let address = view.address(&ints(&list)?);
        Ok(Val::Address(view, address))
    }

    /// Calls a packed function, and converts its result to the given type.
    fn call_packed(&mut self, args: &[Expr], ty: Ty) -> Result<Val> {
        let (name, value) = self.packed_value(args)?;
        let element = match &value {
            Value::Tensor(t) if t.numel() == 1 => &element(t)?,
            other => other,
        };
        match element {
            Value::Float(v) if ty.dtype.is_float() => Ok(Val::Float(round(*v, ty.dtype))),
            Value::Int(v) if ty.dtype.is_float() => Ok(Val::Float(round(*v as f64, ty.dtype))),
            Value::Bool(v) if ty.dtype.is_float() => Ok(Val::Float(f64::from(u8::from(*v)))),
            Value::Int(v) => Ok(Val::Int(wrap(*v, ty.dtype))),
            Value::Bool(v) => Ok(Val::Int(i64::from(*v))),
            _ => {
                let wanted = if ty.dtype.is_float() { "a number" } else { "an integer" };
                let actual = value.describe();
                let text = format!(
                    "the loop function expects {wanted}, but the packed function returned {actual}"
                );
                Err(packed_error(&name, &text))
            }
        }
    }

    /// Calls a packed function, and returns its name and its result. The address of the first element of a buffer is passed as a
    /// tensor.
    pub(super) fn packed_value(&mut self, args: &[Expr]) -> Result<(Arc<str>, Value)> {
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            let dtype = self.f.expr_ty(a).dtype;
            values.push(match self.operand(a)? {
                Val::Int(v) if dtype.is_bool() => Value::Bool(v != 0),
                Val::Int(v) => Value::Int(v),
                Val::Float(v) => Value::Float(v),
                Val::Str(s) => Value::Str(s),
                Val::Tensor(t) => Value::Tensor(t),
                Val::Address(view, 0) => Value::Tensor(View::tensor(&view).clone()),
                _ => {
                    return Err(unsupported(
                        "an argument of T.call_packed is a vector or the address of an element other than the first; pass \
                         scalars or whole buffers",
                    ));
                }
            });
        }
        let Some((Value::Str(name), rest)) = values.split_first() else {
            return Err(malformed("the first argument of T.call_packed is not a name"));
        };
        Ok((name.clone(), self.interp.call_packed(name, rest)?))
    }
}

fn reinterpret(v: &Val, from: DType, to: DType) -> Result<Val> {
    if from.size() != to.size() {
        return Err(malformed(&format!(
            "{from} cannot be reinterpreted as {to}, which has another size"
        )));
    }
    Ok(decode(encode(v, from)?, to))
}

fn classify(intrin: Intrin, v: &Val, dtype: DType) -> Result<Val> {
    let v = if dtype.is_float() { v.float()? } else { 0.0 };
    let holds = match intrin {
        Intrin::IsNan => v.is_nan(),
        Intrin::IsInf => v.is_infinite(),
        _ => v.is_finite(),
    };
    Ok(Val::Int(i64::from(holds)))
}

/// Computes an intrinsic on floats; `None` if the intrinsic is not defined for floats.
pub(super) fn float_intrin(intrin: Intrin, v: &[f64]) -> Option<f64> {
    use Intrin::*;
    let x = v[0];
    Some(match intrin {
        Exp => x.exp(),
        Exp2 => x.exp2(),
        Log => x.ln(),
        Log2 => x.log2(),
        Log10 => x.log10(),
        Log1p => x.ln_1p(),
        Sqrt => x.sqrt(),
        Rsqrt => 1.0 / x.sqrt(),
        Pow => x.powf(v[1]),
        Sin => x.sin(),
        Cos => x.cos(),
        Tan => x.tan(),
        Sinh => x.sinh(),
        Cosh => x.cosh(),
        Tanh => x.tanh(),
        Asin => x.asin(),
        Acos => x.acos(),
        Atan => x.atan(),
        Asinh => libm::asinh(x),
        Acosh if x < 1.0 => f64::NAN,
        Acosh => libm::acosh(x),
        Atanh => libm::atanh(x),
        Atan2 => x.atan2(v[1]),
        Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Erf => libm::erf(x),
        Gelu if x == f64::NEG_INFINITY => -0.0,
        Gelu => x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Abs => x.abs(),
        Floor => x.floor(),
        Ceil => x.ceil(),
        Trunc => x.trunc(),
        Round | Nearbyint => x.round_ties_even(),
        Fma => x.mul_add(v[1], v[2]),
        Fmod => x % v[1],
        Likely => x,
        _ => return None,
    })
}

/// Computes an intrinsic on integers; `None` if the intrinsic is not defined for integers.
fn int_intrin(intrin: Intrin, v: &[i64], dtype: DType) -> Option<i64> {
    use Intrin::*;
    let bits = i64::from(dtype.bits());
    let x = v[0];
    // The bits of the value, without sign extension.
    let raw = (x as u64) & (u64::MAX >> (64 - bits));
    Some(match intrin {
        Abs if dtype.is_int() => x.wrapping_abs(),
        Abs | Floor | Ceil | Trunc | Round | Nearbyint | Likely => x,
        Fma => x.wrapping_mul(v[1]).wrapping_add(v[2]),
        Popcount => i64::from(raw.count_ones()),
        Clz => i64::from(raw.leading_zeros()) - (64 - bits),
        BitwiseAnd => x & v[1],
        BitwiseOr => x | v[1],
        BitwiseXor => x ^ v[1],
        BitwiseNot if dtype.is_bool() => i64::from(x == 0),
        BitwiseNot => !x,
        // A shift by the number of bits or more shifts all bits out.
        ShiftLeft if !(0..bits).contains(&v[1]) => 0,
        ShiftLeft => x << v[1],
        ShiftRight if !(0..bits).contains(&v[1]) => {
            if dtype.is_int() && x < 0 {
                -1
            } else {
                0
            }
        }
        ShiftRight if dtype.is_int() => x >> v[1],
        ShiftRight => (raw >> v[1]) as i64,
        _ => return None,
    })
}
