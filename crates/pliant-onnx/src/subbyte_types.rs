//! Narrow element types, which the IR lacks: integers of 2 and 4 bits, and floats of 4 and 8 bits.
//! A tensor of a narrow type is stored in another dtype. Integers are stored as int8 or uint8 of
//! the same value, floats as their bit patterns in uint8. Data movement operators work on the
//! storage directly.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_tensor::Tensor;

use crate::import_error::Problem;
use crate::node::{ExprResult, Node};
use crate::proto::tensor_proto::DataType;

/// The format of an ONNX float type of 4 or 8 bits. A bit pattern of such a float consists of sign, exponent and mantissa.
struct FloatFormat {
    bits: u32,
    mantissa: u32,
    bias: i32,
    /// The bit pattern of the largest finite number of the float type.
    largest: u8,
    /// The bit pattern of NaN; `None` if the float type has no NaN.
    nan: Option<u8>,
    /// Whether the bit pattern of minus zero represents NaN.
    no_minus_zero: bool,
}

/// The format of a float type of 4 or 8 bits with a sign; `None` for other types.
fn float_format(ty: DataType) -> Option<FloatFormat> {
    let of = |bits, mantissa, bias, largest, nan, no_minus_zero| {
        Some(FloatFormat { bits, mantissa, bias, largest, nan, no_minus_zero })
    };
    match ty {
        DataType::Float8e4m3fn => of(8, 3, 7, 0x7e, Some(0x7f), false),
        DataType::Float8e4m3fnuz => of(8, 3, 8, 0x7f, Some(0x80), true),
        DataType::Float8e5m2 => of(8, 2, 15, 0x7b, Some(0x7e), false),
        DataType::Float8e5m2fnuz => of(8, 2, 16, 0x7f, Some(0x80), true),
        DataType::Float4e2m1 => of(4, 1, 1, 7, None, false),
        _ => None,
    }
}

/// The narrow type (an integer of 2 or 4 bits, or a float of 4 or 8 bits) with the given ONNX code; `None` for all other types.
pub(crate) fn narrow_type(code: i64) -> Option<DataType> {
    let ty = DataType::try_from(i32::try_from(code).ok()?).ok()?;
    (integer_bits(ty).is_some() || is_narrow_float(ty)).then_some(ty)
}

/// The name of a narrow type in the Python package `ml_dtypes`; `None` for all other types.
pub(crate) fn ml_dtypes_name(ty: DataType) -> Option<&'static str> {
    Some(match ty {
        DataType::Int4 => "int4",
        DataType::Uint4 => "uint4",
        DataType::Int2 => "int2",
        DataType::Uint2 => "uint2",
        DataType::Float8e4m3fn => "float8_e4m3fn",
        DataType::Float8e4m3fnuz => "float8_e4m3fnuz",
        DataType::Float8e5m2 => "float8_e5m2",
        DataType::Float8e5m2fnuz => "float8_e5m2fnuz",
        DataType::Float8e8m0 => "float8_e8m0fnu",
        DataType::Float4e2m1 => "float4_e2m1fn",
        _ => return None,
    })
}

/// The number of bits of an integer type of 2 or 4 bits, and whether it is signed; `None` for other types.
pub(crate) fn integer_bits(ty: DataType) -> Option<(u32, bool)> {
    match ty {
        DataType::Int4 => Some((4, true)),
        DataType::Uint4 => Some((4, false)),
        DataType::Int2 => Some((2, true)),
        DataType::Uint2 => Some((2, false)),
        _ => None,
    }
}

/// Whether a type is a float type of 4 or 8 bits.
pub(crate) fn is_narrow_float(ty: DataType) -> bool {
    ty == DataType::Float8e8m0 || float_format(ty).is_some()
}

/// Whether an operator only moves elements, without computing with them.
pub(crate) fn is_data_movement(operator: &str) -> bool {
    const DATA_MOVEMENT_OPERATORS: &[&str] = &[
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Reshape",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    ];
    DATA_MOVEMENT_OPERATORS.binary_search(&operator).is_ok()
}

impl FloatFormat {
    /// The number that the bit pattern `code` of this float format represents.
    fn decode(&self, code: u8) -> f32 {
        let sign = 1u8 << (self.bits - 1);
        if self.nan == Some(code) {
            return f32::NAN;
        }
        let (size, negative) = (code & (sign - 1), code & sign != 0);
        if size > self.largest {
            // In formats with infinity, the bit pattern of infinity follows that of the largest number.
            let infinite = self.mantissa == 2 && size == self.largest + 1;
            return match (infinite, negative) {
                (true, false) => f32::INFINITY,
                (true, true) => f32::NEG_INFINITY,
                _ => f32::NAN,
            };
        }
        let fraction =
            f32::from(size & ((1 << self.mantissa) - 1)) / (1u32 << self.mantissa) as f32;
        let exponent = i32::from(size >> self.mantissa);
        let number = match exponent {
            0 => fraction * 2f32.powi(1 - self.bias),
            e => (1.0 + fraction) * 2f32.powi(e - self.bias),
        };
        if negative { -number } else { number }
    }
}

fn float_vector(n: &mut Node<'_, '_>, values: &[f32]) -> ExprResult {
    let tensor = Tensor::from_slice(&[values.len() as i64], values);
    let tensor = tensor.map_err(|e| Problem::invalid(e.to_string()))?;
    Ok(n.importer.constant(&tensor))
}

/// Emits the conversion of bit patterns of a float type of 4 or 8 bits to float32.
pub(crate) fn decode_floats(n: &mut Node<'_, '_>, ty: DataType, codes: Expr) -> ExprResult {
    let values: Vec<f32> = match float_format(ty) {
        Some(format) => (0..=u8::MAX >> (8 - format.bits)).map(|c| format.decode(c)).collect(),
        None => (0..=u8::MAX)
            .map(|c| if c == u8::MAX { f32::NAN } else { 2f64.powi(i32::from(c) - 127) as f32 })
            .collect(),
    };
    let table = float_vector(n, &values)?;
    let codes = n.cast(codes, DType::Int32)?;
    n.take(table, codes, 0)
}

/// Emits the conversion of numbers to the dtype in which the narrow type `ty` is stored: int8 or uint8 for an integer of 2 or 4
/// bits, and uint8 bit patterns for a float of 4 or 8 bits. `saturate` states for floats with a sign whether a number out of range
/// becomes the largest finite number.
pub(crate) fn encode(n: &mut Node<'_, '_>, ty: DataType, x: Expr, saturate: bool) -> ExprResult {
    if let Some((bits, signed)) = integer_bits(ty) {
        return wrap_integers(n, x, bits, signed);
    }
    let x = n.cast(x, DType::Float32)?;
    match float_format(ty) {
        Some(format) => encode_floats(n, &format, x, saturate),
        None => encode_exponents(n, x, saturate),
    }
}

/// Emits integers with only the lowest `bits` bits, interpreted as signed or unsigned.
fn wrap_integers(n: &mut Node<'_, '_>, x: Expr, bits: u32, signed: bool) -> ExprResult {
    let to = if signed { DType::Int8 } else { DType::UInt8 };
    let x = n.cast(x, DType::Int32)?;
    let half = n.scalar(if signed { 1i32 << (bits - 1) } else { 0 })?;
    let all = n.scalar(1i32 << bits)?;
    let y = n.op("relax.add", &[x, half])?;
    let y = n.op("relax.floor_mod", &[y, all])?;
    let y = n.op("relax.subtract", &[y, half])?;
    n.cast(y, to)
}

/// Emits for each element the number of thresholds below it, as int32. With `right`, also counts the thresholds that equal the
/// element.
fn count_thresholds(n: &mut Node<'_, '_>, x: Expr, thresholds: &[f32], right: bool) -> ExprResult {
    let thresholds = float_vector(n, thresholds)?;
    let attrs = Attrs::default()
        .with("out_int32", AttrValue::Bool(true))
        .with("right", AttrValue::Bool(right));
    n.op_with("relax.bucketize", &[x, thresholds], attrs)
}

/// Emits the rounding of float32 numbers to the nearest bit patterns of a format, ties to even.
///
/// Method: half of the last bit that remains is added to the bits of a float32 number without sign. Then the mantissa bits that the
/// format lacks are shifted out, and the difference of the exponent biases is subtracted. Numbers below the smallest normal number
/// of the format are added to a power of two whose last bit is the spacing of these numbers; the last bits of the sum are their bit
/// pattern.
fn encode_floats(
    n: &mut Node<'_, '_>,
    format: &FloatFormat,
    x: Expr,
    saturate: bool,
) -> ExprResult {
    let bits = n.bitcast(x, DType::Int32)?;
    let magnitude = op_with_constant(n, "relax.bitwise_and", bits, i32::MAX)?;
    let rounded = rounded_magnitude(n, format, magnitude)?;
    // A format without infinity and NaN always saturates. In others, one of them follows the largest number.
    let saturate = saturate || format.nan.is_none();
    let last = i32::from(format.largest) + i32::from(!saturate);
    let mut code = op_with_constant(n, "relax.minimum", rounded, last)?;
    let sign_bit = 1i32 << (format.bits - 1);
    let sign = op_with_constant(n, "relax.right_shift", bits, 32 - format.bits as i32)?;
    let mut sign = op_with_constant(n, "relax.bitwise_and", sign, sign_bit)?;
    if format.no_minus_zero {
        let nonzero = op_with_constant(n, "relax.greater", code, 0)?;
        let zero = n.scalar(0i32)?;
        sign = n.op("relax.where", &[nonzero, sign, zero])?;
    }
    code = n.op("relax.bitwise_or", &[code, sign])?;
    // Bits above those of infinity represent NaN.
    let mut unrepresentable =
        op_with_constant(n, "relax.greater", magnitude, f32::INFINITY.to_bits() as i32)?;
    if format.no_minus_zero && !saturate {
        let beyond = op_with_constant(n, "relax.greater", rounded, i32::from(format.largest))?;
        unrepresentable = n.op("relax.logical_or", &[unrepresentable, beyond])?;
    }
    // A format without NaN represents it as minus zero.
    let nan = n.scalar(format.nan.map_or(sign_bit, i32::from))?;
    code = n.op("relax.where", &[unrepresentable, nan, code])?;
    n.cast(code, DType::UInt8)
}

/// Emits the rounding of magnitudes to bit patterns of a format, which are not clamped to the largest number. `magnitude` contains
/// the bits of float32 numbers without sign.
fn rounded_magnitude(n: &mut Node<'_, '_>, format: &FloatFormat, magnitude: Expr) -> ExprResult {
    let mantissa = f32::MANTISSA_DIGITS as i32 - 1;
    let shift = mantissa - format.mantissa as i32;
    let shifted = op_with_constant(n, "relax.right_shift", magnitude, shift)?;
    let odd = op_with_constant(n, "relax.bitwise_and", shifted, 1)?;
    let half = op_with_constant(n, "relax.add", magnitude, (1 << (shift - 1)) - 1)?;
    let sum = n.op("relax.add", &[half, odd])?;
    let rounded = op_with_constant(n, "relax.right_shift", sum, shift)?;
    let exponent_change = (f32::MAX_EXP - 1 - format.bias) << format.mantissa;
    let normal = op_with_constant(n, "relax.subtract", rounded, exponent_change)?;
    // The spacing of the numbers without leading one is 2^(1 - bias - mantissa bits).
    let power = 2f32.powi(1 - format.bias - format.mantissa as i32 + mantissa);
    let number = n.bitcast(magnitude, DType::Float32)?;
    let power_operand = n.scalar_as(f64::from(power), DType::Float32)?;
    let sum = n.op("relax.add", &[number, power_operand])?;
    let sum = n.bitcast(sum, DType::Int32)?;
    let subnormal = op_with_constant(n, "relax.subtract", sum, power.to_bits() as i32)?;
    let smallest_normal = 2f32.powi(1 - format.bias).to_bits() as i32;
    let is_subnormal = op_with_constant(n, "relax.less", magnitude, smallest_normal)?;
    n.op("relax.where", &[is_subnormal, subnormal, normal])
}

/// Emits an operator with a constant int32 as its second operand.
fn op_with_constant(n: &mut Node<'_, '_>, operator: &str, x: Expr, constant: i32) -> ExprResult {
    let constant = n.scalar(constant)?;
    n.op(operator, &[x, constant])
}

/// Emits the conversion to float8e8m0, which has only an exponent. The attribute `round_mode` determines the rounding. Without
/// `saturate`, numbers that round up to 2^128 become NaN, the bit pattern after that of the largest number.
fn encode_exponents(n: &mut Node<'_, '_>, x: Expr, saturate: bool) -> ExprResult {
    let mode = n.attrs().choice("round_mode", &["up", "down", "nearest"])?;
    let power = |c: i32, factor: f64| (2f64.powi(c - 127) * factor) as f32;
    let codes = if saturate { 254 } else { 255 };
    let (thresholds, right): (Vec<f32>, bool) = match mode {
        "up" => ((0..codes).map(|c| power(c, 1.0)).collect(), false),
        "down" => ((1..255).map(|c| power(c, 1.0)).collect(), true),
        _ => ((0..codes).map(|c| power(c, 1.5)).collect(), true),
    };
    let size = n.op("relax.abs", &[x])?;
    let code = count_thresholds(n, size, &thresholds, right)?;
    let (nan, inf) = (n.op("relax.isnan", &[x])?, n.op("relax.isinf", &[x])?);
    let unrepresentable = n.op("relax.logical_or", &[nan, inf])?;
    let nan_code = n.scalar(255i32)?;
    let code = n.op("relax.where", &[unrepresentable, nan_code, code])?;
    n.cast(code, DType::UInt8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_bit_patterns_as_specified() {
        let value = |ty, code| float_format(ty).map(|f| f.decode(code));
        assert_eq!(value(DataType::Float8e4m3fn, 0x7e), Some(448.0));
        assert_eq!(value(DataType::Float8e4m3fnuz, 0x7f), Some(240.0));
        assert_eq!(value(DataType::Float8e5m2, 0x7b), Some(57344.0));
        assert_eq!(value(DataType::Float8e5m2, 0xfc), Some(f32::NEG_INFINITY));
        assert_eq!(value(DataType::Float8e5m2fnuz, 0x7f), Some(57344.0));
        assert_eq!(value(DataType::Float4e2m1, 0xf), Some(-6.0));
        assert_eq!(value(DataType::Float4e2m1, 1), Some(0.5));
        assert!(value(DataType::Float8e4m3fnuz, 0x80).is_some_and(f32::is_nan));
    }

    #[test]
    fn lists_data_movement_operators_in_sorted_order() {
        assert!(
            is_data_movement("Concat")
                && is_data_movement("Unsqueeze")
                && is_data_movement("Reshape")
                && !is_data_movement("Add")
        );
    }
}
