//! Converters of quantization, dequantization, and matmuls of quantized tensors.
//!
//! Models in QDQ form have float operators between `DequantizeLinear` and `QuantizeLinear`. The converters emit casts, zero
//! points and scales around the float operator. The offload rules `integer_matmul` and `integer_conv` of the crate `pliant-opt`
//! then rewrite it to integers.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType};
use pliant_ops::shared_operator_rules::wide_float;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::proto::tensor_proto::DataType;
use crate::subbyte_types;

pub(super) static OPS: &[OnnxOp] = &[
    op("DequantizeLinear", dequantize),
    op("DynamicQuantizeLinear", dynamic_quantize),
    op("MatMulInteger", matmul_integer),
    op("QLinearMatMul", qlinear_matmul),
    op("QuantizeLinear", quantize),
];

/// The smallest and the largest number that an integer dtype can represent, as floats.
pub(super) fn integer_range(dtype: DType) -> Result<(f64, f64), Problem> {
    Ok(match dtype {
        DType::Int8 => (-128.0, 127.0),
        DType::UInt8 => (0.0, 255.0),
        DType::Int16 => (-32768.0, 32767.0),
        DType::UInt16 => (0.0, 65535.0),
        DType::Int32 => (-2_147_483_648.0, 2_147_483_647.0),
        other => {
            return Err(Problem::unsupported(format!(
                "quantization to {other} is not supported; int8, uint8, int16, uint16 and int32 are"
            )));
        }
    })
}

/// Rounds to the nearest integer (ties to even), adds a zero point, and saturates to the range of a dtype.
pub(super) fn round_and_saturate(
    n: &mut Node<'_, '_>,
    x: Expr,
    zero_point: Option<Expr>,
    dtype: DType,
    (low, high): (f64, f64),
) -> ExprResult {
    let wide = n.dtype(x)?;
    let mut y = n.op("relax.round", &[x])?;
    // In a 16-bit float, the sum with the zero point may not be representable.
    let wide = wide_float(wide);
    y = n.cast(y, wide)?;
    if let Some(zero) = zero_point {
        let zero = n.cast(zero, wide)?;
        y = n.op("relax.add", &[y, zero])?;
    }
    let (low, high) = (n.scalar_as(low, wide)?, n.scalar_as(high, wide)?);
    let y = n.op("relax.maximum", &[y, low])?;
    let y = n.op("relax.minimum", &[y, high])?;
    n.cast(y, dtype)
}

/// Broadcasts a scale or zero point to the shape of `x`. The parameter is per tensor, per channel along `axis`, or per block of
/// `block` elements.
pub(super) fn broadcast_quant_param(
    n: &mut Node<'_, '_>,
    param: Expr,
    x: Expr,
    axis: i64,
    block: i64,
) -> ExprResult {
    if block < 0 {
        let text = format!("attribute 'block_size' must not be negative, but is {block}");
        return Err(Problem::attribute(text));
    }
    let dims = n.dims(x)?;
    let param_dims = n.dims(param)?;
    let one = n.func().syms.int(1);
    match param_dims.len() {
        0 => Ok(param),
        1 if param_dims[0] == one => n.reshape_to_scalar(param),
        1 if block == 0 => {
            let axis = n.axis(axis, dims.len())?;
            let text = "the scale or zero point has {} elements, but the quantized axis has {}";
            n.require_equal(param_dims[0], dims[axis], text)?;
            n.reshape_along(param, axis, dims.len())
        }
        rank if block == 0 => {
            // Each dim must be 1 or that of the quantized tensor, so that the shape of the result does not change.
            let Some(lead) = dims.len().checked_sub(rank) else {
                let what = n.tensor_label(param, "an input");
                return Err(Problem::invalid(format!(
                    "{what} (a scale or zero point) has {rank} dims, but the quantized tensor has only {}",
                    dims.len()
                )));
            };
            for (&param_dims, &dim) in param_dims.iter().zip(&dims[lead..]) {
                n.require_broadcastable(param_dims, dim, "the scale or zero point")?;
            }
            Ok(param)
        }
        rank => {
            if rank != dims.len() {
                let what = n.tensor_label(param, "an input");
                return Err(Problem::invalid(format!(
                    "with 'block_size', {what} (a scale or zero point) must have the rank of the quantized tensor, {}, but has \
                     rank {rank}",
                    dims.len()
                )));
            }
            let axis = n.axis(axis, rank)?;
            for (k, (&param_dims, &dim)) in param_dims.iter().zip(&dims).enumerate() {
                let by = n.func().syms.int(if k == axis { block } else { 1 });
                let want = n.func().syms.ceildiv(dim, by);
                n.require_equal(
                    param_dims,
                    want,
                    "with 'block_size', a dim of the scale or zero point is {}, but must be {}",
                )?;
            }
            let block_size = n.func().syms.int(block);
            let known = |n: &mut Node<'_, '_>, d: Sym| n.func().syms.as_int(d).is_some();
            let scale_product = known(n, param_dims[axis]) && known(n, dims[axis]);
            if scale_product || n.func().syms.mul(param_dims[axis], block_size) == dims[axis] {
                return repeat_and_truncate(n, param, block_size, axis, dims[axis]);
            }
            let positions = n.iota(dims[axis])?;
            let size = n.scalar(block)?;
            let positions = n.op("relax.floor_divide", &[positions, size])?;
            n.take(param, positions, axis)
        }
    }
}

/// The element type of a quantized tensor.
enum QuantizedType {
    Plain(DType),
    Narrow(DataType),
}

/// The element type of the result of a quantization: the type of the zero point, else the type in an attribute, else uint8.
fn quantized_type(n: &mut Node<'_, '_>) -> Result<QuantizedType, Problem> {
    if let Some((narrow, _)) = n.narrow_tensor(2)? {
        return Ok(QuantizedType::Narrow(narrow));
    }
    if let Some(zero) = n.optional_tensor(2)? {
        return n.dtype(zero).map(QuantizedType::Plain);
    }
    let Some(code) = n.attrs().int("output_dtype")?.filter(|&code| code != 0) else {
        return Ok(QuantizedType::Plain(DType::UInt8));
    };
    if let Some(narrow) = subbyte_types::narrow_type(code) {
        return Ok(QuantizedType::Narrow(narrow));
    }
    crate::initializer_tensors::checked_dtype(code).map(QuantizedType::Plain)
}

pub(super) fn quantize(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    let block = n.attrs().int("block_size")?.unwrap_or(0);
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    let target = quantized_type(n)?;
    let wide = match n.attrs().int("precision")?.filter(|&code| code != 0) {
        Some(code) => crate::initializer_tensors::checked_dtype(code)?,
        None => n.dtype(scale)?,
    };
    let scale = broadcast_quant_param(n, scale, x, axis, block)?;
    let (wider, scale) = (n.cast(x, wide)?, n.cast(scale, wide)?);
    let y = n.op("relax.divide", &[wider, scale])?;
    // The zero point of a float type is 0.
    if let QuantizedType::Narrow(ty) = target
        && subbyte_types::is_narrow_float(ty)
    {
        let saturate = n.attrs().int("saturate")?.unwrap_or(1) != 0;
        let codes = subbyte_types::encode(n, ty, y, saturate)?;
        return Ok(vec![Value::Narrow(ty, Box::new(codes.into()))]);
    }
    let zero = match n.optional_tensor(2)? {
        Some(zero) => Some(broadcast_quant_param(n, zero, x, axis, block)?),
        None => None,
    };
    match target {
        QuantizedType::Plain(dtype) => {
            let bounds = integer_range(dtype)?;
            Ok(vec![round_and_saturate(n, y, zero, dtype, bounds)?.into()])
        }
        QuantizedType::Narrow(ty) => {
            let (bits, signed) = subbyte_types::integer_bits(ty).unwrap_or((8, true));
            let (low, high, storage) = match signed {
                true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1, DType::Int8),
                false => (0, (1i64 << bits) - 1, DType::UInt8),
            };
            let y = round_and_saturate(n, y, zero, storage, (low as f64, high as f64))?;
            Ok(vec![Value::Narrow(ty, Box::new(y.into()))])
        }
    }
}

/// Converts `DequantizeLinear`. The result has the dtype in `output_dtype`, else the dtype of the scale.
pub(super) fn dequantize(n: &mut Node<'_, '_>) -> ConvertResult {
    let y = dequantize_wide(n)?;
    let dtype = match n.attrs().int("output_dtype")?.filter(|&code| code != 0) {
        Some(code) => crate::initializer_tensors::checked_dtype(code)?,
        None => {
            let scale = n.tensor(1)?;
            n.dtype(scale)?
        }
    };
    Ok(vec![n.cast(y, dtype)?.into()])
}

/// Emits the input minus the zero point, times the scale. The multiplication is done at least in
/// float32, because a 16-bit integer may overflow float16.
fn dequantize_wide(n: &mut Node<'_, '_>) -> ExprResult {
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    let block = n.attrs().int("block_size")?.unwrap_or(0);
    let scale = n.tensor(1)?;
    let wide = wide_float(n.dtype(scale)?);
    let scale = n.cast(scale, wide)?;
    if let Some((ty, codes)) = n.narrow_tensor(0)?
        && subbyte_types::is_narrow_float(ty)
    {
        let scale = broadcast_quant_param(n, scale, codes, axis, block)?;
        let x = subbyte_types::decode_floats(n, ty, codes)?;
        let x = n.cast(x, wide)?;
        return n.op("relax.multiply", &[x, scale]);
    }
    let x = n.tensor(0)?;
    let scale = broadcast_quant_param(n, scale, x, axis, block)?;
    let mut y = n.cast(x, DType::Int32)?;
    if let Some(zero) = n.optional_tensor(2)? {
        let zero = broadcast_quant_param(n, zero, x, axis, block)?;
        let zero = n.cast(zero, DType::Int32)?;
        y = n.op("relax.subtract", &[y, zero])?;
    }
    let y = n.cast(y, wide)?;
    n.op("relax.multiply", &[y, scale])
}

/// Converts `DynamicQuantizeLinear`: computes the scale and zero point for uint8 from the range of the elements, which is extended
/// to include 0.
pub(super) fn dynamic_quantize(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let (zero, max) = (n.scalar_as(0.0, DType::Float32)?, n.scalar_as(255.0, DType::Float32)?);
    let (low, high) = (n.op("relax.min", &[x])?, n.op("relax.max", &[x])?);
    let (low, high) = (n.op("relax.minimum", &[low, zero])?, n.op("relax.maximum", &[high, zero])?);
    let range_size = n.op("relax.subtract", &[high, low])?;
    let scale = n.op("relax.divide", &[range_size, max])?;
    let (is_zero, one) = (n.op("relax.equal", &[scale, zero])?, n.scalar_as(1.0, DType::Float32)?);
    let divisor = n.op("relax.where", &[is_zero, one, scale])?;
    let zero_point = n.op("relax.divide", &[low, divisor])?;
    let zero_point = n.op("relax.negative", &[zero_point])?;
    let zero_point = round_and_saturate(n, zero_point, None, DType::UInt8, (0.0, 255.0))?;
    let y = n.op("relax.divide", &[x, divisor])?;
    let y = round_and_saturate(n, y, Some(zero_point), DType::UInt8, (0.0, 255.0))?;
    Ok(vec![y.into(), divisor.into(), zero_point.into()])
}

/// Subtracts the zero point from an operand of a matrix product, in int32. The zero point is a
/// scalar, or a vector with one element per row or column.
pub(super) fn subtract_zero_point(
    n: &mut Node<'_, '_>,
    x: Expr,
    zero: Option<Expr>,
    axis_from_end: i64,
) -> ExprResult {
    let wide = n.cast(x, DType::Int32)?;
    let Some(zero) = zero else { return Ok(wide) };
    let zero = n.cast(zero, DType::Int32)?;
    let zero = broadcast_quant_param(n, zero, x, axis_from_end, 0)?;
    n.op("relax.subtract", &[wide, zero])
}

fn matmul_integer(n: &mut Node<'_, '_>) -> ConvertResult {
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let (zero_a, zero_b) = (n.optional_tensor(2)?, n.optional_tensor(3)?);
    let (a, b) = (subtract_zero_point(n, a, zero_a, -2)?, subtract_zero_point(n, b, zero_b, -1)?);
    Ok(vec![n.op("relax.matmul", &[a, b])?.into()])
}

/// The factor that requantizes the result of a matrix product, as float32: the product of the two
/// input scales divided by the output scale.
fn requantization_factor(n: &mut Node<'_, '_>, scales: [Expr; 3]) -> ExprResult {
    let mut wide = Vec::with_capacity(3);
    for scale in scales {
        wide.push(n.cast(scale, DType::Float32)?);
    }
    let scale_product = n.op("relax.multiply", &[wide[0], wide[1]])?;
    n.op("relax.divide", &[scale_product, wide[2]])
}

fn qlinear_matmul(n: &mut Node<'_, '_>) -> ConvertResult {
    let inputs = n.tensors()?;
    let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = inputs.as_slice() else {
        let text = format!("the node must have 8 inputs, but has {}", inputs.len());
        return Err(Problem::invalid(text));
    };
    let dtype = n.dtype(*y_zero)?;
    let left = subtract_zero_point(n, *a, Some(*a_zero), -2)?;
    let right = subtract_zero_point(n, *b, Some(*b_zero), -1)?;
    let sum = n.op("relax.matmul", &[left, right])?;
    let a_scale = broadcast_quant_param(n, *a_scale, *a, -2, 0)?;
    let b_scale = broadcast_quant_param(n, *b_scale, *b, -1, 0)?;
    let (y_scale, y_zero) = (
        broadcast_quant_param(n, *y_scale, sum, -1, 0)?,
        broadcast_quant_param(n, *y_zero, sum, -1, 0)?,
    );
    let factor = requantization_factor(n, [a_scale, b_scale, y_scale])?;
    let y = n.cast(sum, DType::Float32)?;
    let y = n.op("relax.multiply", &[y, factor])?;
    let bounds = integer_range(dtype)?;
    Ok(vec![round_and_saturate(n, y, Some(y_zero), dtype, bounds)?.into()])
}

/// Requantizes the int32 result of a convolution. `scales` contains the scales of the input, of the
/// weight (per channel or per tensor), and of the result.
pub(super) fn requantize_conv(
    n: &mut Node<'_, '_>,
    sum: Expr,
    scales: [Expr; 3],
    zero: Expr,
) -> ExprResult {
    let dtype = n.dtype(zero)?;
    let one = n.func().syms.int(1);
    let w_scale = match n.dims(scales[1])?.as_slice() {
        [channels] if *channels != one => {
            let rank = n.rank(sum)?;
            n.reshape_along(scales[1], 1, rank)?
        }
        _ => n.reshape_to_scalar(scales[1])?,
    };
    let (x_scale, y_scale) = (n.reshape_to_scalar(scales[0])?, n.reshape_to_scalar(scales[2])?);
    let factor = requantization_factor(n, [x_scale, w_scale, y_scale])?;
    let y = n.cast(sum, DType::Float32)?;
    let y = n.op("relax.multiply", &[y, factor])?;
    let zero = n.reshape_to_scalar(zero)?;
    let bounds = integer_range(dtype)?;
    round_and_saturate(n, y, Some(zero), dtype, bounds)
}

/// Repeats each element `count` times along an axis and keeps the first `end` elements of the result: `0 0 1 1 2`.
pub(super) fn repeat_and_truncate(
    n: &mut Node<'_, '_>,
    x: Expr,
    count: Sym,
    axis: usize,
    end: Sym,
) -> ExprResult {
    let y = repeat_along(n, x, count, axis)?;
    if n.dims(y)?[axis] == end {
        return Ok(y);
    }
    let zero = n.func().syms.int(0);
    n.slice_axis(y, axis, zero, end)
}

/// Repeats each element `count` times along an axis: `0 0 1 1 2 2`.
pub(super) fn repeat_along(n: &mut Node<'_, '_>, x: Expr, count: Sym, axis: usize) -> ExprResult {
    if let Some(count) = n.func().syms.as_int(count) {
        let attrs = ints_attr("repeats", count).with("axis", AttrValue::Int(axis as i64));
        return n.op_with("relax.repeat", &[x], attrs);
    }
    let dims = n.dims(x)?;
    let whole = n.func().syms.mul(dims[axis], count);
    let positions = n.iota(whole)?;
    let count = n.size_scalar(count)?;
    let positions = n.op("relax.floor_divide", &[positions, count])?;
    n.take(x, positions, axis)
}
