//! The values of expressions in loop functions, and arithmetic on them. Operations are computed in
//! 64-bit integers and float64, and each result is rounded or wrapped to the data type.

use std::rc::Rc;
use std::sync::Arc;

use pliant_ir::DType;
use pliant_ir::tir::BinOp;
use pliant_tensor::{
    Tensor, round_to_bf16, round_to_f16, round_to_odd_f64, round_to_odd_f64_unsigned,
};

use super::buffer_view::View;
use crate::InterpError;
use crate::interp_error::{ErrorKind, Result};

/// The value of an expression in a loop function.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// An integer or bool. A uint64 is represented by its bits; other types by their value.
    Int(i64),
    /// A float that its data type represents exactly.
    Float(f64),
    /// A vector, as the values of its lanes.
    Vector(Rc<[Val]>),
    /// A string, such as the name of a packed function.
    Str(Arc<str>),
    /// The address of a buffer element; see [`View::address`].
    Address(Rc<View>, i64),
    /// A tensor, as an argument of packed functions.
    Tensor(Tensor),
}

impl Val {
    /// Returns the value of an integer or bool (0 or 1). Fails for floats, vectors and other kinds of values.
    pub fn int(&self) -> Result<i64> {
        match self {
            Val::Int(v) => Ok(*v),
            other => Err(malformed(&format!("expected an integer, found {other:?}"))),
        }
    }

    /// Returns whether an integer or bool is nonzero. Fails for floats, vectors and other kinds of values.
    pub fn is_true(&self) -> Result<bool> {
        self.int().map(|v| v != 0)
    }

    /// Returns the value of a float. Fails for integers, vectors and other kinds of values.
    pub fn float(&self) -> Result<f64> {
        match self {
            Val::Float(v) => Ok(*v),
            other => Err(malformed(&format!("expected a float, found {other:?}"))),
        }
    }

    /// Returns lane `i`. A scalar counts as a vector of equal lanes.
    pub fn lane(&self, i: usize) -> Result<Val> {
        match self {
            Val::Vector(lanes) => lanes
                .get(i)
                .cloned()
                .ok_or_else(|| malformed("the operands have different numbers of lanes")),
            scalar => Ok(scalar.clone()),
        }
    }

    /// The number of lanes; `None` for scalars.
    pub fn lanes(&self) -> Option<usize> {
        match self {
            Val::Vector(lanes) => Some(lanes.len()),
            _ => None,
        }
    }
}

pub(crate) fn malformed(text: &str) -> InterpError {
    InterpError::unsupported(format!("malformed loop function: {text}"))
}

pub(crate) fn unsupported(text: impl Into<String>) -> InterpError {
    InterpError::unsupported(text)
}

/// Applies an operation lane by lane to vectors, or once to scalars.
pub(crate) fn map_lanes(args: &[Val], f: &mut dyn FnMut(&[Val]) -> Result<Val>) -> Result<Val> {
    let Some(lanes) = args.iter().find_map(Val::lanes) else { return f(args) };
    let mut out = Vec::with_capacity(lanes);
    for i in 0..lanes {
        let lane: Result<Vec<Val>> = args.iter().map(|a| a.lane(i)).collect();
        out.push(f(&lane?)?);
    }
    if args.iter().any(|a| a.lanes().is_some_and(|n| n != lanes)) {
        return Err(malformed("the operands have different numbers of lanes"));
    }
    Ok(Val::Vector(out.into()))
}

/// Wraps an integer to the range of a data type.
pub(crate) fn wrap(v: i64, dtype: DType) -> i64 {
    match dtype {
        DType::Bool => i64::from(v != 0),
        DType::Int8 => i64::from(v as i8),
        DType::Int16 => i64::from(v as i16),
        DType::Int32 => i64::from(v as i32),
        DType::UInt8 => i64::from(v as u8),
        DType::UInt16 => i64::from(v as u16),
        DType::UInt32 => i64::from(v as u32),
        _ => v,
    }
}

/// Rounds a float to the precision of a data type.
pub(crate) fn round(v: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => round_to_f16(v).to_f64(),
        DType::BFloat16 => round_to_bf16(v).to_f64(),
        DType::Float32 => f64::from(v as f32),
        _ => v,
    }
}

/// Converts a scalar. From float to integer, it truncates and saturates, and NaN becomes 0. To bool, it tests whether the value is
/// not 0.
pub(crate) fn cast(v: &Val, from: DType, to: DType) -> Result<Val> {
    Ok(match (from.is_float(), to.is_float()) {
        (true, true) => Val::Float(round(v.float()?, to)),
        (true, false) => Val::Int(float_to_int(v.float()?, to)),
        (false, true) => Val::Float(int_to_float(v.int()?, from, to)),
        (false, false) => Val::Int(wrap(v.int()?, to)),
    })
}

fn float_to_int(v: f64, to: DType) -> i64 {
    match to {
        DType::Bool => i64::from(v != 0.0),
        DType::Int8 => i64::from(v as i8),
        DType::Int16 => i64::from(v as i16),
        DType::Int32 => i64::from(v as i32),
        DType::UInt8 => i64::from(v as u8),
        DType::UInt16 => i64::from(v as u16),
        DType::UInt32 => i64::from(v as u32),
        DType::UInt64 => v as u64 as i64,
        _ => v as i64,
    }
}

fn int_to_float(v: i64, from: DType, to: DType) -> f64 {
    // Large integers are not converted through float64, which would round them twice.
    match (to, from == DType::UInt64) {
        (DType::Float32, false) => f64::from(v as f32),
        (DType::Float32, true) => f64::from(v as u64 as f32),
        (DType::BFloat16, false) => round(round_to_odd_f64(v), to),
        (DType::BFloat16, true) => round(round_to_odd_f64_unsigned(v as u64), to),
        (_, false) => round(v as f64, to),
        (_, true) => round(v as u64 as f64, to),
    }
}

/// Applies a binary operator to two scalars of the same data type.
pub(crate) fn binary(op: BinOp, a: &Val, b: &Val, dtype: DType) -> Result<Val> {
    if dtype.is_float() {
        return float_binary(op, a.float()?, b.float()?, dtype);
    }
    let (a, b) = (a.int()?, b.int()?);
    if let Some(holds) = int_predicate(op, a, b, dtype) {
        return Ok(Val::Int(i64::from(holds)));
    }
    let less = if dtype == DType::UInt64 { (a as u64) < b as u64 } else { a < b };
    let v = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Min => {
            if less {
                a
            } else {
                b
            }
        }
        BinOp::Max => {
            if less {
                b
            } else {
                a
            }
        }
        _ if b == 0 => {
            return Err(InterpError::new(ErrorKind::DivideByZero, "integer division by zero"));
        }
        BinOp::Div | BinOp::FloorDiv if dtype.is_uint() => (a as u64 / b as u64) as i64,
        BinOp::Mod | BinOp::FloorMod if dtype.is_uint() => (a as u64 % b as u64) as i64,
        BinOp::Div => a.wrapping_div(b),
        BinOp::Mod => a.wrapping_rem(b),
        BinOp::FloorDiv => {
            let (q, r) = (a.wrapping_div(b), a.wrapping_rem(b));
            if r != 0 && (r < 0) != (b < 0) { q - 1 } else { q }
        }
        BinOp::FloorMod => {
            let r = a.wrapping_rem(b);
            if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
        }
        other => return Err(malformed(&format!("operator {other:?} is not defined for {dtype}"))),
    };
    Ok(Val::Int(wrap(v, dtype)))
}

fn int_predicate(op: BinOp, a: i64, b: i64, dtype: DType) -> Option<bool> {
    let order = if dtype == DType::UInt64 { (a as u64).cmp(&(b as u64)) } else { a.cmp(&b) };
    Some(match op {
        BinOp::Eq => order.is_eq(),
        BinOp::Ne => order.is_ne(),
        BinOp::Lt => order.is_lt(),
        BinOp::Le => order.is_le(),
        BinOp::Gt => order.is_gt(),
        BinOp::Ge => order.is_ge(),
        BinOp::And => a != 0 && b != 0,
        BinOp::Or => a != 0 || b != 0,
        _ => return None,
    })
}

fn float_binary(op: BinOp, a: f64, b: f64, dtype: DType) -> Result<Val> {
    let holds = match op {
        BinOp::Eq => Some(a == b),
        BinOp::Ne => Some(a != b),
        BinOp::Lt => Some(a < b),
        BinOp::Le => Some(a <= b),
        BinOp::Gt => Some(a > b),
        BinOp::Ge => Some(a >= b),
        _ => None,
    };
    if let Some(holds) = holds {
        return Ok(Val::Int(i64::from(holds)));
    }
    let v = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div => a / b,
        BinOp::Mod => a % b,
        BinOp::FloorDiv => round(a / b, dtype).floor(),
        BinOp::FloorMod => {
            let r = a % b;
            if r * b < 0.0 { r + b } else { r }
        }
        BinOp::Min => minimum(a, b),
        BinOp::Max => -minimum(-a, -b),
        other => return Err(malformed(&format!("operator {other:?} is not defined for {dtype}"))),
    };
    Ok(Val::Float(round(v, dtype)))
}

/// Returns the minimum. It is NaN if either operand is NaN, and -0 is less than +0.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: BinOp, a: i64, b: i64, dtype: DType) -> i64 {
        binary(op, &Val::Int(a), &Val::Int(b), dtype).unwrap().int().unwrap()
    }

    fn float(op: BinOp, a: f64, b: f64, dtype: DType) -> f64 {
        binary(op, &Val::Float(a), &Val::Float(b), dtype).unwrap().float().unwrap()
    }

    #[test]
    fn integer_arithmetic_wraps_around() {
        assert_eq!(int(BinOp::Add, 127, 1, DType::Int8), -128);
        assert_eq!(int(BinOp::Mul, 200, 2, DType::UInt8), 144);
        assert_eq!(int(BinOp::Sub, 0, 1, DType::UInt32), u32::MAX.into());
        assert_eq!(int(BinOp::Add, i64::MAX, 1, DType::Int64), i64::MIN);
        assert_eq!(int(BinOp::Div, i64::MIN, -1, DType::Int64), i64::MIN);
        assert_eq!(int(BinOp::Max, -1, 1, DType::UInt64), -1);
        assert_eq!(int(BinOp::Lt, -1, 1, DType::UInt64), 0);
    }

    #[test]
    fn divisions_round_towards_zero_or_down() {
        for (a, b) in [(7i64, 2i64), (-7, 2), (7, -2), (-7, -2), (6, -3), (0, 5)] {
            assert_eq!(int(BinOp::Div, a, b, DType::Int32), a / b);
            assert_eq!(int(BinOp::Mod, a, b, DType::Int32), a % b);
            let floor = (a as f64 / b as f64).floor() as i64;
            assert_eq!(int(BinOp::FloorDiv, a, b, DType::Int32), floor);
            assert_eq!(int(BinOp::FloorMod, a, b, DType::Int32), a - floor * b);
            assert_eq!(
                float(BinOp::FloorMod, a as f64, b as f64, DType::Float32),
                (a - floor * b) as f64
            );
        }
        let zero = binary(BinOp::FloorMod, &Val::Int(1), &Val::Int(0), DType::Int64);
        assert_eq!(zero.unwrap_err().kind, ErrorKind::DivideByZero);
    }

    #[test]
    fn floats_are_rounded_to_their_type() {
        assert_eq!(float(BinOp::Add, 2048.0, 1.0, DType::Float16), 2048.0);
        assert_eq!(float(BinOp::Add, 256.0, 1.0, DType::BFloat16), 256.0);
        let third = float(BinOp::Div, 1.0, 3.0, DType::Float32);
        assert_eq!(third, f64::from(1.0f32 / 3.0));
        assert!(float(BinOp::Max, f64::NAN, 1.0, DType::Float32).is_nan());
        assert!(float(BinOp::Min, 1.0, f64::NAN, DType::Float32).is_nan());
        assert!(float(BinOp::Min, 0.0, -0.0, DType::Float32).is_sign_negative());
        assert!(float(BinOp::Max, 0.0, -0.0, DType::Float32).is_sign_positive());
    }

    #[test]
    fn conversions_from_float_saturate() {
        let to = |v: f64, d| cast(&Val::Float(v), DType::Float64, d).unwrap().int().unwrap();
        assert_eq!(to(300.0, DType::Int8), 127);
        assert_eq!(to(-1.5, DType::UInt8), 0);
        assert_eq!(to(-1.9, DType::Int32), -1);
        assert_eq!(to(f64::NAN, DType::Int64), 0);
        assert_eq!(to(1e30, DType::UInt64) as u64, u64::MAX);
        assert_eq!(to(0.5, DType::Bool), 1);
        let big = (1i64 << 54) + (1 << 30) + 1;
        let f = cast(&Val::Int(big), DType::Int64, DType::Float32).unwrap().float().unwrap();
        assert_eq!(f, f64::from(big as f32));
    }
}
