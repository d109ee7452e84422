//! Recognizes left operands of matmuls that are dequantized from 8-bit integers.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType};
use pliant_tensor::Tensor;

use super::{CAST, DEQUANTIZE, MULTIPLY, SUBTRACT};
use crate::offload::dequantized::{
    MAX_ZERO_POINT, OperandMatcher, has_one_element, is_scalar_or_per_row, to_f64_numbers,
};

/// The integers, zero point and scale from which a left operand is dequantized.
pub(in crate::offload::rules) struct QuantizedLeft {
    /// The int8 or uint8 tensor of the integers.
    pub x: Expr,
    /// The zero point that is subtracted from the integers; `None` if it is 0.
    pub zero: Option<ZeroPoint>,
    /// The float32 scale by which the integers minus the zero point are multiplied.
    pub scale: Expr,
    /// Whether the elements of a scale or zero point of rank 1 belong to the rows of the operand. Otherwise, they belong to its
    /// columns.
    pub has_row_vectors: bool,
    /// Maximum possible magnitude of an integer minus its zero point.
    pub max_magnitude: i64,
}

/// The zero point of a quantized operand.
pub(in crate::offload::rules) enum ZeroPoint {
    /// An int32 constant zero point.
    Constant(Tensor),
    /// A zero point that is a non-constant tensor of 8-bit integers.
    NonConstant(Expr),
}

/// Returns (minimum, maximum) of an 8-bit integer type; `None` for other types.
fn byte_range(dtype: Option<DType>) -> Option<(i64, i64)> {
    match dtype? {
        DType::Int8 => Some((-128, 127)),
        DType::UInt8 => Some((0, 255)),
        _ => None,
    }
}

impl QuantizedLeft {
    /// Recognizes an operand that is dequantized from 8-bit integers in a supported way; `None` for other operands.
    pub fn of(matcher: &OperandMatcher<'_>, e: Expr) -> Option<QuantizedLeft> {
        let func = matcher.func;
        if func.ty(e).dtype() != Some(DType::Float32) {
            return None;
        }
        let (x, zero, scale, has_row_vectors) =
            from_dequantize(matcher, e).or_else(|| from_arithmetic(matcher, e))?;
        let (low, high) = byte_range(func.ty(x).dtype())?;
        let fits = |p: Expr| match func.ty(p).dims()? {
            [along] if !has_one_element(func, p) => {
                (has_row_vectors && func.ty(x).dims()?.first() == Some(along)).then_some(())
            }
            _ => is_scalar_or_per_row(func, p, x).then_some(()),
        };
        fits(scale)?;
        let ((least, largest), zero) = match zero {
            None => ((0, 0), None),
            Some(zero) => {
                fits(zero)?;
                zero_point(matcher, zero)?
            }
        };
        let is_valid = func.ty(scale).dtype() == Some(DType::Float32)
            && func.ty(x).dims() == func.ty(e).dims()
            && matcher.constant(scale).is_none_or(stays_finite);
        let max_magnitude = (high - least).max(largest - low);
        is_valid.then_some(QuantizedLeft { x, zero, scale, has_row_vectors, max_magnitude })
    }
}

/// The parts of a dequantized operand: (integers, zero point, scale, whether vectors have one element for each row).
type LeftParts = (Expr, Option<Expr>, Expr, bool);

/// Returns the parts of an operand that is the result of `R.dequantize`; `None` for other operands.
fn from_dequantize(matcher: &OperandMatcher<'_>, e: Expr) -> Option<LeftParts> {
    let (args, attrs) = matcher.call(e, DEQUANTIZE)?;
    let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
    let rank = matcher.func.ty(args[0]).dims()?.len();
    Some((args[0], Some(args[2]), args[1], rank == 2 && matches!(axis, 0 | -2)))
}

/// Returns the parts of an operand that is dequantized by a cast, minus a zero point, times a scale; `None` for other operands.
fn from_arithmetic(matcher: &OperandMatcher<'_>, e: Expr) -> Option<LeftParts> {
    let func = matcher.func;
    let has_dtype = |e: Expr, dtype: DType| func.ty(e).dtype() == Some(dtype);
    let (args, _) = matcher.call(e, MULTIPLY)?;
    let sides = [(args[0], args[1]), (args[1], args[0])];
    sides.into_iter().find_map(|(quantized, scale)| {
        let mut x =
            matcher.call(quantized, CAST).filter(|_| has_dtype(quantized, DType::Float32))?.0[0];
        let mut zero = None;
        if let Some((args, _)) = matcher.call(x, SUBTRACT).filter(|_| has_dtype(x, DType::Int32)) {
            (x, zero) = (args[0], Some(args[1]));
        }
        if has_dtype(x, DType::Int32) {
            x = matcher.call(x, CAST)?.0[0];
        } else if zero.is_some() {
            return None;
        }
        Some((x, zero, scale, false))
    })
}

/// Returns (range of the values of a zero point, zero point), where the zero point is `None` if it is 0.
fn zero_point(matcher: &OperandMatcher<'_>, zero: Expr) -> Option<((i64, i64), Option<ZeroPoint>)> {
    let func = matcher.func;
    if let Some(tensor) = matcher.constant(zero) {
        let all = to_f64_numbers(tensor)?;
        let is_integral = all.iter().all(|x| x.fract() == 0.0 && x.abs() <= MAX_ZERO_POINT);
        let integers = if is_integral {
            all.iter().map(|&x| x as i32).collect::<Vec<_>>()
        } else {
            return None;
        };
        let least = i64::from(*integers.iter().min()?);
        let largest = i64::from(*integers.iter().max()?);
        if (least, largest) == (0, 0) {
            return Some(((0, 0), None));
        }
        let tensor = Tensor::from_slice(tensor.shape(), &integers).ok()?;
        return Some(((least, largest), Some(ZeroPoint::Constant(tensor))));
    }
    let non_constant = |e: Expr| {
        byte_range(func.ty(e).dtype())
            .map(|byte_range| (byte_range, Some(ZeroPoint::NonConstant(e))))
    };
    // A cast to a wider type keeps the value.
    non_constant(zero).or_else(|| {
        let is_int32 = func.ty(zero).dtype() == Some(DType::Int32);
        matcher.call(zero, CAST).filter(|_| is_int32).and_then(|(args, _)| non_constant(args[0]))
    })
}

/// Whether every 32-bit integer multiplied by any element of the scale `t` is in the range of float32.
fn stays_finite(t: &Tensor) -> bool {
    let max_scale = f64::from(f32::MAX) / f64::from(1u32 << 31);
    to_f64_numbers(t).is_some_and(|all| all.iter().all(|x| x.abs() <= max_scale))
}
