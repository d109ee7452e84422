//! Converters of ONNX's activation functions, including softmax.

use pliant_ir::DType;
use pliant_ir::relax::Expr;

use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("Celu", celu),
    op("Elu", |n| elu(n, 1.0)),
    op("Gelu", gelu),
    op("HardSigmoid", hard_sigmoid),
    op("HardSwish", hard_swish),
    op("Hardmax", hardmax),
    op("LeakyRelu", leaky_relu),
    op("LogSoftmax", |n| softmax(n, "relax.nn.log_softmax")),
    op("Mish", mish),
    op("PRelu", prelu),
    op("Relu", relu),
    op("Selu", selu),
    op("Shrink", shrink),
    op("Softmax", |n| softmax(n, "relax.nn.softmax")),
    op("Softplus", |n| {
        let x = n.tensor(0)?;
        Ok(vec![softplus(n, x)?.into()])
    }),
    op("Softsign", softsign),
    op("SwiGLU", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let a = swish(n, a)?;
        Ok(vec![n.op("relax.multiply", &[a, b])?.into()])
    }),
    op("Swish", |n| {
        let x = n.tensor(0)?;
        Ok(vec![swish(n, x)?.into()])
    }),
    op("ThresholdedRelu", thresholded_relu),
];

fn relu(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    Ok(vec![n.op("relax.nn.relu", &[x])?.into()])
}

/// Creates a scalar constant with the dtype of the tensor `like`.
fn constant_like(n: &mut Node<'_, '_>, like: Expr, value: f64) -> ExprResult {
    let dtype = n.dtype(like)?;
    n.scalar_as(value, dtype)
}

/// Emits the selection of `then` where `x` is positive, and of `other` elsewhere.
fn where_positive(n: &mut Node<'_, '_>, x: Expr, then: Expr, other: Expr) -> ExprResult {
    let zero = constant_like(n, x, 0.0)?;
    let positive = n.op("relax.greater", &[x, zero])?;
    n.op("relax.where", &[positive, then, other])
}

fn leaky_relu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(0.01);
    let x = n.tensor(0)?;
    let slope = constant_like(n, x, alpha)?;
    let scaled = n.op_unidirectional("relax.multiply", x, slope, "the slope")?;
    let zero = constant_like(n, x, 0.0)?;
    let negative = n.op("relax.less", &[x, zero])?;
    Ok(vec![n.op("relax.where", &[negative, scaled, x])?.into()])
}

fn prelu(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, slope) = (n.tensor(0)?, n.tensor(1)?);
    let scaled = n.op_unidirectional("relax.multiply", x, slope, "the slope (input 1)")?;
    let zero = constant_like(n, x, 0.0)?;
    let negative = n.op("relax.less", &[x, zero])?;
    Ok(vec![n.op("relax.where", &[negative, scaled, x])?.into()])
}

/// Converts `Elu`: `gamma * alpha * (exp(x) - 1)` for negative `x`, and `gamma * x` otherwise.
fn elu(n: &mut Node<'_, '_>, gamma: f64) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let x = n.tensor(0)?;
    Ok(vec![scaled_exponential(n, x, alpha, gamma)?.into()])
}

/// Emits `gamma * alpha * (exp(x) - 1)` for negative `x`, and `gamma * x` otherwise.
fn scaled_exponential(n: &mut Node<'_, '_>, x: Expr, alpha: f64, gamma: f64) -> ExprResult {
    let [one, alpha] = [constant_like(n, x, 1.0)?, constant_like(n, x, alpha)?];
    let power = n.op("relax.exp", &[x])?;
    let below = n.op("relax.subtract", &[power, one])?;
    let below = n.op("relax.multiply", &[below, alpha])?;
    let y = where_positive(n, x, x, below)?;
    if gamma == 1.0 {
        return Ok(y);
    }
    let gamma = constant_like(n, x, gamma)?;
    n.op("relax.multiply", &[y, gamma])
}

fn selu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.673_263_2);
    let gamma = n.attrs().float("gamma")?.unwrap_or(1.050_701);
    let x = n.tensor(0)?;
    Ok(vec![scaled_exponential(n, x, alpha, gamma)?.into()])
}

/// Converts `Celu`: `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
fn celu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let x = n.tensor(0)?;
    let [one, alpha] = [constant_like(n, x, 1.0)?, constant_like(n, x, alpha)?];
    let share = n.op("relax.divide", &[x, alpha])?;
    let power = n.op("relax.exp", &[share])?;
    let below = n.op("relax.subtract", &[power, one])?;
    let below = n.op("relax.multiply", &[below, alpha])?;
    Ok(vec![where_positive(n, x, x, below)?.into()])
}

fn gelu(n: &mut Node<'_, '_>) -> ConvertResult {
    let tanh = n.attrs().choice("approximate", &["none", "tanh"])? == "tanh";
    let x = n.tensor(0)?;
    Ok(vec![n.op(if tanh { "relax.nn.gelu_tanh" } else { "relax.nn.gelu" }, &[x])?.into()])
}

/// Emits a linear function clamped to `0 .. 1`: `max(0, min(1, alpha * x + beta))`.
fn clamped_line(n: &mut Node<'_, '_>, x: Expr, alpha: f64, beta: f64) -> ExprResult {
    let [alpha, beta, zero, one] = [alpha, beta, 0.0, 1.0].map(|v| constant_like(n, x, v));
    let y = n.op("relax.multiply", &[x, alpha?])?;
    let y = n.op("relax.add", &[y, beta?])?;
    let y = n.op("relax.maximum", &[y, zero?])?;
    n.op("relax.minimum", &[y, one?])
}

fn hard_sigmoid(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(0.2);
    let beta = n.attrs().float("beta")?.unwrap_or(0.5);
    let x = n.tensor(0)?;
    Ok(vec![clamped_line(n, x, alpha, beta)?.into()])
}

fn hard_swish(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let gate = clamped_line(n, x, 1.0 / 6.0, 0.5)?;
    Ok(vec![n.op("relax.multiply", &[x, gate])?.into()])
}

/// Emits `log(1 + exp(x))`. For `x` above 40, the result equals `x` in float64.
fn softplus(n: &mut Node<'_, '_>, x: Expr) -> ExprResult {
    let attrs = pliant_ir::Attrs::default().with("threshold", pliant_ir::AttrValue::float(40.0));
    n.op_with("relax.nn.softplus", &[x], attrs)
}

fn mish(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let soft = softplus(n, x)?;
    let gate = n.op("relax.tanh", &[soft])?;
    Ok(vec![n.op("relax.multiply", &[x, gate])?.into()])
}

fn softsign(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let one = constant_like(n, x, 1.0)?;
    let size = n.op("relax.abs", &[x])?;
    let below = n.op("relax.add", &[size, one])?;
    Ok(vec![n.op("relax.divide", &[x, below])?.into()])
}

/// Emits `x * sigmoid(alpha * x)`.
fn swish(n: &mut Node<'_, '_>, x: Expr) -> ExprResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let alpha = constant_like(n, x, alpha)?;
    let scaled = n.op("relax.multiply", &[x, alpha])?;
    let gate = n.op("relax.sigmoid", &[scaled])?;
    n.op("relax.multiply", &[x, gate])
}

fn thresholded_relu(n: &mut Node<'_, '_>) -> ConvertResult {
    let alpha = n.attrs().float("alpha")?.unwrap_or(1.0);
    let x = n.tensor(0)?;
    let [bound, zero] = [constant_like(n, x, alpha)?, constant_like(n, x, 0.0)?];
    let above = n.op("relax.greater", &[x, bound])?;
    Ok(vec![n.op("relax.where", &[above, x, zero])?.into()])
}

/// Converts `Shrink`: `x + bias` for `x < -lambd`, `x - bias` for `x > lambd`, else 0.
fn shrink(n: &mut Node<'_, '_>) -> ConvertResult {
    let lambd = n.attrs().float("lambd")?.unwrap_or(0.5);
    let bias = n.attrs().float("bias")?.unwrap_or(0.0);
    let input = n.tensor(0)?;
    let input_dtype = n.dtype(input)?;
    // For integers, the final result is truncated.
    let x = if input_dtype.is_integer() { n.cast(input, DType::Float64)? } else { input };
    let [low, high, bias, zero] = [-lambd, lambd, bias, 0.0].map(|v| constant_like(n, x, v));
    let (bias, zero) = (bias?, zero?);
    let (below, above) = (n.op("relax.less", &[x, low?])?, n.op("relax.greater", &[x, high?])?);
    let (up, down) = (n.op("relax.add", &[x, bias])?, n.op("relax.subtract", &[x, bias])?);
    let inner = n.op("relax.where", &[above, down, zero])?;
    let y = n.op("relax.where", &[below, up, inner])?;
    Ok(vec![n.cast(y, input_dtype)?.into()])
}

fn softmax(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    along_axis_or_flattened(n, &mut |n, x, axis| n.op_with(op, &[x], ints_attr("axis", axis)))
}

/// Emits a function that works along one axis, such as softmax. Before opset 13, all axes from
/// `axis` on are flattened to one axis.
fn along_axis_or_flattened(
    n: &mut Node<'_, '_>,
    make: &mut dyn FnMut(&mut Node<'_, '_>, Expr, i64) -> ExprResult,
) -> ConvertResult {
    let x = n.tensor(0)?;
    if n.opset >= 13 {
        let axis = n.attrs().int("axis")?.unwrap_or(-1);
        return Ok(vec![make(n, x, axis)?.into()]);
    }
    let dims = n.dims(x)?;
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    let at = n.axis(axis, dims.len())?;
    let syms = &mut n.func().syms;
    let (rows, columns) =
        (syms.product(dims[..at].iter().copied()), syms.product(dims[at..].iter().copied()));
    let flat = n.reshape(x, &[rows, columns])?;
    let y = make(n, flat, 1)?;
    Ok(vec![n.reshape(y, &dims)?.into()])
}

/// Converts `Hardmax`: 1 at the first maximum along an axis, else 0.
fn hardmax(n: &mut Node<'_, '_>) -> ConvertResult {
    along_axis_or_flattened(n, &mut one_hot_maximum)
}

/// Emits a tensor that is 1 at the first maximum along `axis`, else 0. The axis may be empty.
fn one_hot_maximum(n: &mut Node<'_, '_>, x: Expr, axis: i64) -> ExprResult {
    let dims = n.dims(x)?;
    let axis = n.axis(axis, dims.len())?;
    let one = n.func().syms.int(1);
    if pliant_ops::size_proofs::at_most(n.func(), one, dims[axis]) == Some(true) {
        return one_hot_argmax(n, x, axis);
    }
    // An empty axis has no maximum.
    if n.func().syms.as_int(dims[axis]) == Some(0) {
        return Ok(x);
    }
    let (size, zero) = (n.size_scalar(dims[axis])?, n.scalar(0i64)?);
    let empty = n.op("relax.equal", &[size, zero])?;
    let result = n.if_else(empty, |_| Ok(x), |n| one_hot_argmax(n, x, axis))?;
    let dims: Vec<_> = dims.into_iter().map(Some).collect();
    n.with_dims(result, &dims)
}

/// Emits a tensor that is 1 at the first maximum along `axis`, else 0. The axis must not be empty.
fn one_hot_argmax(n: &mut Node<'_, '_>, x: Expr, axis: usize) -> ExprResult {
    let dims = n.dims(x)?;
    let attrs = ints_attr("axis", axis as i64).with("keepdims", pliant_ir::AttrValue::Bool(true));
    let position = n.op_with("relax.argmax", &[x], attrs)?;
    let one = n.func().syms.int(1);
    let zero = n.func().syms.int(0);
    let bounds: Vec<Expr> = [zero, dims[axis], one]
        .iter()
        .map(|&b| n.func().int_value(b, pliant_ir::DType::Int64))
        .collect();
    let attrs = pliant_ir::Attrs::default()
        .with("dtype", pliant_ir::AttrValue::DType(pliant_ir::DType::Int64));
    let positions = n.op_with("relax.arange", &bounds, attrs)?;
    let mut shape = vec![one; dims.len()];
    shape[axis] = dims[axis];
    let positions = n.reshape(positions, &shape)?;
    let hit = n.op("relax.equal", &[position, positions])?;
    let dtype = n.dtype(x)?;
    n.cast(hit, dtype)
}
