//! Converters of ONNX Runtime's quantized operators. Each operator is converted to dequantization, a float32 operator and
//! requantization, which later passes fuse.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use super::op;
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::OnnxOp;
use crate::ops::nn::recurrent::layer_of_operands;
use crate::ops::quantization::{
    broadcast_quant_param, dequantize, dynamic_quantize, integer_range, quantize,
    round_and_saturate, subtract_zero_point,
};

pub(super) static OPS: &[OnnxOp] = &[
    op("DequantizeLinear", dequantize),
    op("DynamicQuantizeLSTM", dynamic_quantize_lstm),
    op("DynamicQuantizeMatMul", dynamic_quantize_matmul),
    op("MatMulIntegerToFloat", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let (a_scale, b_scale) = (n.tensor(2)?, n.tensor(3)?);
        let zeros = [n.optional_tensor(4)?, n.optional_tensor(5)?];
        let bias = n.optional_tensor(6)?;
        Ok(vec![dequantized_matmul(n, [a, b], [a_scale, b_scale], zeros, bias)?.into()])
    }),
    op("QGemm", qgemm),
    op("QLinearAdd", |n| quantized_binary(n, "relax.add")),
    op("QLinearConcat", qlinear_concat),
    op("QLinearGlobalAveragePool", qlinear_global_average_pool),
    op("QLinearLeakyRelu", qlinear_leaky_relu),
    op("QLinearMul", |n| quantized_binary(n, "relax.multiply")),
    op("QLinearSigmoid", |n| {
        let x = dequantize_input(n, 0)?;
        let y = n.op("relax.sigmoid", &[x])?;
        Ok(vec![quantize_result(n, y, 3)?.into()])
    }),
    op("QuantizeLinear", quantize),
];

/// Dequantizes input `i` to float32. The two inputs after it are its scale and zero point.
fn dequantize_input(n: &mut Node<'_, '_>, i: usize) -> ExprResult {
    let (x, scale, zero) = (n.tensor(i)?, n.tensor(i + 1)?, n.optional_tensor(i + 2)?);
    let zero = match zero {
        Some(zero) => Some(n.reshape_to_scalar(zero)?),
        None => None,
    };
    let wide = subtract_zero_point(n, x, zero, -1)?;
    let wide = n.cast(wide, DType::Float32)?;
    let scale = n.reshape_to_scalar(scale)?;
    n.op("relax.multiply", &[wide, scale])
}

/// Quantizes a result. Input `i` is the scale of the result, and the input after it is the zero point.
fn quantize_result(n: &mut Node<'_, '_>, y: Expr, i: usize) -> ExprResult {
    let (scale, zero) = (n.tensor(i)?, n.optional_tensor(i + 1)?);
    let scale = n.reshape_to_scalar(scale)?;
    let y = n.op("relax.divide", &[y, scale])?;
    let (dtype, zero) = match zero {
        Some(zero) => (n.dtype(zero)?, Some(n.reshape_to_scalar(zero)?)),
        None => (DType::UInt8, None),
    };
    let bounds = integer_range(dtype)?;
    round_and_saturate(n, y, zero, dtype, bounds)
}

/// Converts a quantized binary operator: dequantizes both operands, applies the operator `op`, and quantizes the result.
fn quantized_binary(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    let (a, b) = (dequantize_input(n, 0)?, dequantize_input(n, 3)?);
    let y = n.op(op, &[a, b])?;
    Ok(vec![quantize_result(n, y, 6)?.into()])
}

fn qlinear_leaky_relu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(0.01);
    let x = dequantize_input(n, 0)?;
    let (alpha, zero) = (n.scalar_as(alpha, DType::Float32)?, n.scalar_as(0.0, DType::Float32)?);
    let below = n.op("relax.less", &[x, zero])?;
    let less = n.op("relax.multiply", &[x, alpha])?;
    let y = n.op("relax.where", &[below, less, x])?;
    Ok(vec![quantize_result(n, y, 3)?.into()])
}

/// Converts `QLinearConcat`. Its first two inputs are the scale and zero point of the result. Then come the parts, each with its
/// scale and zero point.
fn qlinear_concat(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?;
    let axis = axis.ok_or_else(|| Problem::attribute("attribute 'axis' is missing"))?;
    if n.len() < 5 || !(n.len() - 2).is_multiple_of(3) {
        return Err(Problem::invalid(format!(
            "the node must have 2 inputs (the scale and zero point of the result), and 3 more for each concatenated tensor (the \
             tensor, its scale and its zero point), but has {} inputs",
            n.len()
        )));
    }
    let mut parts = Vec::new();
    for i in (2..n.len()).step_by(3) {
        parts.push(requantize_input(n, i, 0)?);
    }
    Ok(vec![n.concat(&parts, axis)?.into()])
}

/// Converts input `i` to the scale and zero point of the result, which are input `result` and the input after it. If these equal
/// the scale and zero point of the input, the integers do not change.
fn requantize_input(n: &mut Node<'_, '_>, i: usize, result: usize) -> ExprResult {
    let scale = |i: usize| n.const_floats(i).filter(|s| s.len() == 1).map(|s| s[0]);
    let (from, to) = (scale(i + 1), scale(result));
    // Products and quotients by other scales may overflow or lose bits.
    let is_exact = from.is_some_and(|s| (1e-30..1e30).contains(&s));
    let zero = |i: usize| n.constant(i).map(|t| t.dtype()).zip(n.const_ints(i));
    let (zero_from, zero_to) = (zero(i + 2), zero(result + 1));
    if is_exact && from == to && zero_from.is_some() && zero_from == zero_to {
        return n.tensor(i);
    }
    let x = dequantize_input(n, i)?;
    quantize_result(n, x, result)
}

fn qlinear_global_average_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let last = n.attrs().int("channels_last")?.unwrap_or(0) != 0;
    let x = dequantize_input(n, 0)?;
    let rank = n.rank(x)? as i64;
    let axes = if last { 1..rank - 1 } else { 2..rank };
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints(axes))
        .with("keepdims", AttrValue::Bool(true));
    let y = n.op_with("relax.mean", &[x], attrs)?;
    Ok(vec![quantize_result(n, y, 3)?.into()])
}

/// Emits the matrix product of two quantized matrices, as float32.
fn dequantized_matmul(
    n: &mut Node<'_, '_>,
    [a, b]: [Expr; 2],
    [a_scale, b_scale]: [Expr; 2],
    [a_zero, b_zero]: [Option<Expr>; 2],
    bias: Option<Expr>,
) -> ExprResult {
    let (left, right) =
        (subtract_zero_point(n, a, a_zero, -2)?, subtract_zero_point(n, b, b_zero, -1)?);
    let sum = n.op("relax.matmul", &[left, right])?;
    let a_scale = broadcast_quant_param(n, a_scale, a, -2, 0)?;
    let b_scale = broadcast_quant_param(n, b_scale, b, -1, 0)?;
    let factor = n.op("relax.multiply", &[a_scale, b_scale])?;
    let y = n.cast(sum, DType::Float32)?;
    let y = n.op("relax.multiply", &[y, factor])?;
    match bias {
        Some(bias) => n.op("relax.add", &[y, bias]),
        None => Ok(y),
    }
}

fn dynamic_quantize_matmul(n: &mut Node<'_, '_>) -> ConvertResult {
    let (b, b_scale) = (n.tensor(1)?, n.tensor(2)?);
    let (b_zero, bias) = (n.optional_tensor(3)?, n.optional_tensor(4)?);
    let is_fractional = dynamic_quantize(n)?;
    let mut result = Vec::with_capacity(3);
    for part in &is_fractional {
        result.push(n.materialize(part)?);
    }
    let [a, a_scale, a_zero] = result[..] else {
        return Err(Problem::internal(
            "the converter of DynamicQuantizeMatMul",
            "the quantization of input 0 did not result in a tensor, a scale and a zero point",
        ));
    };
    let y = dequantized_matmul(n, [a, b], [a_scale, b_scale], [Some(a_zero), b_zero], bias)?;
    Ok(vec![y.into()])
}

/// Converts `DynamicQuantizeLSTM` to an LSTM with dequantized weights. ONNX Runtime also quantizes the inputs and the state of each
/// step, so its results are less exact.
fn dynamic_quantize_lstm(n: &mut Node<'_, '_>) -> ConvertResult {
    let mut args = vec![n.tensor(0)?, transposed_weights(n, 1, 8)?, transposed_weights(n, 2, 10)?];
    for i in 3..8 {
        args.push(n.tensor_or_null(i)?);
    }
    layer_of_operands(n, "relax.nn.lstm", &args, Some("input_forget"))
}

/// Dequantizes the weights (directions, rows, gates) of a recurrent layer and transposes them to (directions, gates, rows). Input
/// `i` contains the weights, and input `scale` and the one after it contain the scales and zero points: one for each direction, or
/// one for each direction and gate.
fn transposed_weights(n: &mut Node<'_, '_>, i: usize, scale: usize) -> ExprResult {
    let w = n.tensor(i)?;
    let mut w = n.cast(w, DType::Float32)?;
    for (input, op) in [(scale + 1, "relax.subtract"), (scale, "relax.multiply")] {
        let parameter = n.tensor(input)?;
        let axes = match n.rank(parameter)? {
            1 => 1..3,
            _ => 1..2,
        };
        let axes = Attrs::default().with("axis", AttrValue::ints(axes));
        let parameter = n.cast(parameter, DType::Float32)?;
        let parameter = n.op_with("relax.expand_dims", &[parameter], axes)?;
        w = n.op(op, &[w, parameter])?;
    }
    n.permute(w, &[0, 2, 1])
}

/// Converts `QGemm`. Its bias is int32 and scaled by the product of both input scales. Without an output scale, the result is
/// float32.
fn qgemm(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let mut operands = [n.tensor(0)?, n.tensor(3)?];
    for (operand, name) in operands.iter_mut().zip(["transA", "transB"]) {
        if n.attrs().int(name)?.unwrap_or(0) != 0 {
            *operand = n.permute(*operand, &[1, 0])?;
        }
    }
    let (a_scale, b_scale) = (n.tensor(1)?, n.tensor(4)?);
    let zeros = [n.optional_tensor(2)?, n.optional_tensor(5)?];
    let left = subtract_zero_point(n, operands[0], zeros[0], -2)?;
    let right = subtract_zero_point(n, operands[1], zeros[1], -1)?;
    let mut sum = n.op("relax.matmul", &[left, right])?;
    if let Some(bias) = n.optional_tensor(6)? {
        sum = n.op("relax.add", &[sum, bias])?;
    }
    let (a_scale, b_scale) =
        (n.reshape_to_scalar(a_scale)?, broadcast_quant_param(n, b_scale, operands[1], -1, 0)?);
    let factor = n.op("relax.multiply", &[a_scale, b_scale])?;
    let alpha = n.scalar_as(alpha, DType::Float32)?;
    let factor = n.op("relax.multiply", &[factor, alpha])?;
    let y = n.cast(sum, DType::Float32)?;
    let y = n.op("relax.multiply", &[y, factor])?;
    Ok(vec![if n.has_input(7) { quantize_result(n, y, 7)? } else { y }.into()])
}
