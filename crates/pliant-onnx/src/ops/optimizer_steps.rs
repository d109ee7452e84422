//! Converters of optimizer steps: operators of the domain `ai.onnx.preview.training`.

use pliant_ir::DType;
use pliant_ir::relax::Expr;

use super::OnnxOp;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node};

const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) static OPS: &[OnnxOp] = &[
    OnnxOp { domain: DOMAIN, name: "Adagrad", convert: |n| optimizer_steps(n, 3, adagrad) },
    OnnxOp { domain: DOMAIN, name: "Adam", convert: |n| optimizer_steps(n, 4, adam) },
    OnnxOp { domain: DOMAIN, name: "Momentum", convert: |n| optimizer_steps(n, 3, momentum) },
];

type OptimizerStep = fn(&mut Node<'_, '_>, Expr, Expr, &[Expr]) -> Result<Vec<Expr>, Problem>;

/// Emits the optimizer step for each tensor. The inputs are the learning rate, the number of updates so far, then all tensors, all
/// gradients and all optimizer states. The outputs are all new tensors, then all new states.
fn optimizer_steps(
    n: &mut Node<'_, '_>,
    tensors_per_step: usize,
    step: OptimizerStep,
) -> ConvertResult {
    let count = n.len().saturating_sub(2) / tensors_per_step;
    if count == 0 || n.len() != 2 + tensors_per_step * count {
        return Err(Problem::invalid(format!(
            "the node must have 2 inputs, and {tensors_per_step} more for each optimized tensor, but has {} inputs",
            n.len()
        )));
    }
    let (rate, update_count) = (n.tensor(0)?, n.tensor(1)?);
    let (rate, update_count) = (n.reshape_to_scalar(rate)?, n.reshape_to_scalar(update_count)?);
    let mut outputs = vec![Value::Absent; (tensors_per_step - 1) * count];
    for i in 0..count {
        let mut tensors = Vec::with_capacity(tensors_per_step);
        for kind in 0..tensors_per_step {
            tensors.push(n.tensor(2 + kind * count + i)?);
        }
        for (kind, new) in step(n, rate, update_count, &tensors)?.into_iter().enumerate() {
            outputs[kind * count + i] = new.into();
        }
    }
    Ok(outputs)
}

/// Creates a scalar from a float attribute.
fn float_attr(n: &mut Node<'_, '_>, name: &str, default: f64) -> ExprResult {
    let value = n.attrs().float(name)?.unwrap_or(default);
    n.scalar_as(value, DType::Float32)
}

/// Emits `gradient + norm_coefficient * x`.
fn regularized_gradient(n: &mut Node<'_, '_>, x: Expr, gradient: Expr) -> ExprResult {
    let norm = float_attr(n, "norm_coefficient", 0.0)?;
    let decay_term = n.op("relax.multiply", &[norm, x])?;
    n.op("relax.add", &[decay_term, gradient])
}

/// Emits `a * x + b * y`.
fn weighted_sum(n: &mut Node<'_, '_>, (a, x): (Expr, Expr), (b, y): (Expr, Expr)) -> ExprResult {
    let (x, y) = (n.op("relax.multiply", &[a, x])?, n.op("relax.multiply", &[b, y])?);
    n.op("relax.add", &[x, y])
}

fn adagrad(
    n: &mut Node<'_, '_>,
    rate: Expr,
    update_count: Expr,
    tensors: &[Expr],
) -> Result<Vec<Expr>, Problem> {
    let (decay, eps) = (float_attr(n, "decay_factor", 0.0)?, float_attr(n, "epsilon", 1e-6)?);
    let (one, update_count) =
        (n.scalar_as(1.0, DType::Float32)?, n.cast(update_count, DType::Float32)?);
    let decay = n.op("relax.multiply", &[update_count, decay])?;
    let decay = n.op("relax.add", &[decay, one])?;
    let rate = n.op("relax.divide", &[rate, decay])?;
    let gradient = regularized_gradient(n, tensors[0], tensors[1])?;
    let square = n.op("relax.multiply", &[gradient, gradient])?;
    let sum = n.op("relax.add", &[tensors[2], square])?;
    let root = n.op("relax.sqrt", &[sum])?;
    let root = n.op("relax.add", &[root, eps])?;
    let step = n.op("relax.multiply", &[rate, gradient])?;
    let step = n.op("relax.divide", &[step, root])?;
    Ok(vec![n.op("relax.subtract", &[tensors[0], step])?, sum])
}

fn momentum(
    n: &mut Node<'_, '_>,
    rate: Expr,
    update_count: Expr,
    tensors: &[Expr],
) -> Result<Vec<Expr>, Problem> {
    let nesterov = n.attrs().choice("mode", &["standard", "nesterov"])? == "nesterov";
    let (alpha, beta) = (float_attr(n, "alpha", 0.9)?, float_attr(n, "beta", 1.0)?);
    let gradient = regularized_gradient(n, tensors[0], tensors[1])?;
    // The first update uses the full gradient.
    let (one, zero) = (n.scalar_as(1.0, DType::Float32)?, n.scalar(0i64)?);
    let not_first = n.op("relax.greater", &[update_count, zero])?;
    let gradient_weight = n.op("relax.where", &[not_first, beta, one])?;
    let velocity = weighted_sum(n, (alpha, tensors[2]), (gradient_weight, gradient))?;
    let step =
        if nesterov { weighted_sum(n, (one, gradient), (alpha, velocity))? } else { velocity };
    let step = n.op("relax.multiply", &[rate, step])?;
    Ok(vec![n.op("relax.subtract", &[tensors[0], step])?, velocity])
}

fn adam(
    n: &mut Node<'_, '_>,
    rate: Expr,
    update_count: Expr,
    tensors: &[Expr],
) -> Result<Vec<Expr>, Problem> {
    let [alpha, beta] = [float_attr(n, "alpha", 0.9)?, float_attr(n, "beta", 0.999)?];
    let (eps, after) =
        (float_attr(n, "epsilon", 1e-6)?, float_attr(n, "norm_coefficient_post", 0.0)?);
    let one = n.scalar_as(1.0, DType::Float32)?;
    let gradient = regularized_gradient(n, tensors[0], tensors[1])?;
    let square = n.op("relax.multiply", &[gradient, gradient])?;
    let one_minus = |n: &mut Node<'_, '_>, x: Expr| n.op("relax.subtract", &[one, x]);
    let (not_alpha, not_beta): (Expr, Expr) = (one_minus(n, alpha)?, one_minus(n, beta)?);
    let velocity = weighted_sum(n, (alpha, tensors[2]), (not_alpha, gradient))?;
    let second_moment = weighted_sum(n, (beta, tensors[3]), (not_beta, square))?;
    let root = n.op("relax.sqrt", &[second_moment])?;
    let root = n.op("relax.add", &[root, eps])?;
    // Correct the bias of the first updates towards 0.
    let zero = n.scalar(0i64)?;
    let not_first = n.op("relax.greater", &[update_count, zero])?;
    let power = n.cast(update_count, DType::Float32)?;
    let (a, b) = (n.op("relax.power", &[alpha, power])?, n.op("relax.power", &[beta, power])?);
    let (a, b): (Expr, Expr) = (one_minus(n, a)?, one_minus(n, b)?);
    let b = n.op("relax.sqrt", &[b])?;
    let corrected = n.op("relax.multiply", &[rate, b])?;
    let corrected = n.op("relax.divide", &[corrected, a])?;
    let rate = n.op("relax.where", &[not_first, corrected, rate])?;
    let step = n.op("relax.divide", &[velocity, root])?;
    let step = n.op("relax.multiply", &[rate, step])?;
    let x = n.op("relax.subtract", &[tensors[0], step])?;
    let keep: Expr = one_minus(n, after)?;
    Ok(vec![n.op("relax.multiply", &[keep, x])?, velocity, second_moment])
}
