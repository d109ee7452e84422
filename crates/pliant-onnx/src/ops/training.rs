//! Optimiser steps of the domain `ai.onnx.preview.training`.

use pliant_ir::DType;
use pliant_ir::relax::Expr;

use super::OnnxOp;
use crate::error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::value::Value;

const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) static OPS: &[OnnxOp] = &[
    OnnxOp { domain: DOMAIN, name: "Adagrad", convert: |n| optimizer_steps(n, 3, adagrad) },
    OnnxOp { domain: DOMAIN, name: "Adam", convert: |n| optimizer_steps(n, 4, adam) },
    OnnxOp { domain: DOMAIN, name: "Momentum", convert: |n| optimizer_steps(n, 3, momentum) },
];

type OptimizerStep = fn(&mut Node<'_, '_>, Expr, Expr, &[Expr]) -> Result<Vec<Expr>, Problem>;

/// The step for each tensor. Inputs are the learning rate, the number of updates, then all tensors,
/// all gradients and all states. Outputs are all new tensors, then all new states.
fn optimizer_steps(n: &mut Node<'_, '_>, kinds: usize, step: OptimizerStep) -> ConvertResult {
    let count = n.len().saturating_sub(2) / kinds;
    if count == 0 || n.len() != 2 + kinds * count {
        return Err(Problem::invalid(format!("it takes 2 inputs and {kinds} for each tensor")));
    }
    let (rate, turn) = (n.tensor(0)?, n.tensor(1)?);
    let (rate, turn) = (n.to_scalar(rate)?, n.to_scalar(turn)?);
    let mut outputs = vec![Value::Absent; (kinds - 1) * count];
    for i in 0..count {
        let mut own = Vec::with_capacity(kinds);
        for kind in 0..kinds {
            own.push(n.tensor(2 + kind * count + i)?);
        }
        for (kind, new) in step(n, rate, turn, &own)?.into_iter().enumerate() {
            outputs[kind * count + i] = new.into();
        }
    }
    Ok(outputs)
}

fn float_attr(n: &mut Node<'_, '_>, name: &str, otherwise: f64) -> ExprResult {
    let value = n.attrs().float(name)?.unwrap_or(otherwise);
    n.scalar_as(value, DType::Float32)
}

/// `gradient + norm_coefficient * x`.
fn regularized_gradient(n: &mut Node<'_, '_>, x: Expr, gradient: Expr) -> ExprResult {
    let norm = float_attr(n, "norm_coefficient", 0.0)?;
    let pull = n.op("relax.multiply", &[norm, x])?;
    n.op("relax.add", &[pull, gradient])
}

/// `a * x + b * y`.
fn weighted_sum(n: &mut Node<'_, '_>, (a, x): (Expr, Expr), (b, y): (Expr, Expr)) -> ExprResult {
    let (x, y) = (n.op("relax.multiply", &[a, x])?, n.op("relax.multiply", &[b, y])?);
    n.op("relax.add", &[x, y])
}

fn adagrad(
    n: &mut Node<'_, '_>,
    rate: Expr,
    turn: Expr,
    own: &[Expr],
) -> Result<Vec<Expr>, Problem> {
    let (decay, eps) = (float_attr(n, "decay_factor", 0.0)?, float_attr(n, "epsilon", 1e-6)?);
    let (one, turn) = (n.scalar_as(1.0, DType::Float32)?, n.cast(turn, DType::Float32)?);
    let decay = n.op("relax.multiply", &[turn, decay])?;
    let decay = n.op("relax.add", &[decay, one])?;
    let rate = n.op("relax.divide", &[rate, decay])?;
    let pull = regularized_gradient(n, own[0], own[1])?;
    let square = n.op("relax.multiply", &[pull, pull])?;
    let sum = n.op("relax.add", &[own[2], square])?;
    let root = n.op("relax.sqrt", &[sum])?;
    let root = n.op("relax.add", &[root, eps])?;
    let step = n.op("relax.multiply", &[rate, pull])?;
    let step = n.op("relax.divide", &[step, root])?;
    Ok(vec![n.op("relax.subtract", &[own[0], step])?, sum])
}

fn momentum(
    n: &mut Node<'_, '_>,
    rate: Expr,
    turn: Expr,
    own: &[Expr],
) -> Result<Vec<Expr>, Problem> {
    let nesterov = n.attrs().choice("mode", &["standard", "nesterov"])? == "nesterov";
    let (alpha, beta) = (float_attr(n, "alpha", 0.9)?, float_attr(n, "beta", 1.0)?);
    let pull = regularized_gradient(n, own[0], own[1])?;
    // The first update uses the full gradient.
    let (one, none) = (n.scalar_as(1.0, DType::Float32)?, n.scalar(0i64)?);
    let later = n.op("relax.greater", &[turn, none])?;
    let share = n.op("relax.where", &[later, beta, one])?;
    let speed = weighted_sum(n, (alpha, own[2]), (share, pull))?;
    let step = if nesterov { weighted_sum(n, (one, pull), (alpha, speed))? } else { speed };
    let step = n.op("relax.multiply", &[rate, step])?;
    Ok(vec![n.op("relax.subtract", &[own[0], step])?, speed])
}

fn adam(n: &mut Node<'_, '_>, rate: Expr, turn: Expr, own: &[Expr]) -> Result<Vec<Expr>, Problem> {
    let [alpha, beta] = [float_attr(n, "alpha", 0.9)?, float_attr(n, "beta", 0.999)?];
    let (eps, after) =
        (float_attr(n, "epsilon", 1e-6)?, float_attr(n, "norm_coefficient_post", 0.0)?);
    let one = n.scalar_as(1.0, DType::Float32)?;
    let pull = regularized_gradient(n, own[0], own[1])?;
    let square = n.op("relax.multiply", &[pull, pull])?;
    let rest = |n: &mut Node<'_, '_>, x: Expr| n.op("relax.subtract", &[one, x]);
    let (not_alpha, not_beta): (Expr, Expr) = (rest(n, alpha)?, rest(n, beta)?);
    let speed = weighted_sum(n, (alpha, own[2]), (not_alpha, pull))?;
    let spread = weighted_sum(n, (beta, own[3]), (not_beta, square))?;
    let root = n.op("relax.sqrt", &[spread])?;
    let root = n.op("relax.add", &[root, eps])?;
    // Correct the bias of the first updates.
    let none = n.scalar(0i64)?;
    let later = n.op("relax.greater", &[turn, none])?;
    let power = n.cast(turn, DType::Float32)?;
    let (a, b) = (n.op("relax.power", &[alpha, power])?, n.op("relax.power", &[beta, power])?);
    let (a, b): (Expr, Expr) = (rest(n, a)?, rest(n, b)?);
    let b = n.op("relax.sqrt", &[b])?;
    let corrected = n.op("relax.multiply", &[rate, b])?;
    let corrected = n.op("relax.divide", &[corrected, a])?;
    let rate = n.op("relax.where", &[later, corrected, rate])?;
    let step = n.op("relax.divide", &[speed, root])?;
    let step = n.op("relax.multiply", &[rate, step])?;
    let x = n.op("relax.subtract", &[own[0], step])?;
    let keep: Expr = rest(n, after)?;
    Ok(vec![n.op("relax.multiply", &[keep, x])?, speed, spread])
}
