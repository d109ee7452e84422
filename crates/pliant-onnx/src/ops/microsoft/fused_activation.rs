//! Converters of `FusedConv` and `FusedGemm`: a convolution or matrix product with a fused activation.

use pliant_ir::relax::Expr;

use super::op;
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::OnnxOp;
use crate::ops::clip::{clip_to_bounds, constant_bound};
use crate::ops::matmul::gemm;
use crate::ops::nn::conv::conv;

pub(super) static OPS: &[OnnxOp] = &[
    op("FusedConv", |n| {
        let y = first_output(n, conv)?;
        // The residual is added before the activation.
        let y = match n.optional_tensor(3)? {
            Some(z) => n.op("relax.add", &[y, z])?,
            None => y,
        };
        let params = n.attrs().floats("activation_params")?.unwrap_or_default();
        let params: Vec<Option<f64>> = params.iter().map(|&v| Some(f64::from(v))).collect();
        Ok(vec![apply_activation(n, y, &params)?.into()])
    }),
    op("FusedGemm", |n| {
        let y = first_output(n, gemm)?;
        let attrs = n.attrs();
        let params = [attrs.float("activation_alpha")?, attrs.float("activation_beta")?];
        Ok(vec![apply_activation(n, y, &params)?.into()])
    }),
];

/// Runs the converter of another operator on the node, and returns its first output.
fn first_output(
    n: &mut Node<'_, '_>,
    convert: fn(&mut Node<'_, '_>) -> ConvertResult,
) -> ExprResult {
    let outputs = convert(n)?;
    let first = outputs.first().ok_or_else(|| {
        Problem::internal(
            "the converter of fused activations",
            "the conversion of the node without its activation has no output",
        )
    })?;
    n.materialize(first)
}

/// Applies the activation function that the node names. `params` are the parameters of the function, by position.
fn apply_activation(n: &mut Node<'_, '_>, y: Expr, params: &[Option<f64>]) -> ExprResult {
    let name = n.attrs().str("activation")?.unwrap_or("");
    let dtype = n.dtype(y)?;
    let param = |i: usize, default: f64| params.get(i).copied().flatten().unwrap_or(default);
    let number = |n: &mut Node<'_, '_>, value: f64| n.scalar_as(value, dtype);
    match name {
        "" | "None" => Ok(y),
        "Relu" => n.op("relax.nn.relu", &[y]),
        "Sigmoid" => n.op("relax.sigmoid", &[y]),
        "Tanh" => n.op("relax.tanh", &[y]),
        "LeakyRelu" => {
            let (alpha, zero) = (number(n, param(0, 0.01))?, number(n, 0.0)?);
            let below = n.op("relax.less", &[y, zero])?;
            let less = n.op("relax.multiply", &[y, alpha])?;
            n.op("relax.where", &[below, less, y])
        }
        "Clip" | "HardSigmoid" => {
            let (mut y, mut low, mut high) = (y, param(0, f64::NAN), param(1, f64::NAN));
            if name == "HardSigmoid" {
                let (alpha, beta) = (number(n, param(0, 0.2))?, number(n, param(1, 0.5))?);
                y = n.op("relax.multiply", &[y, alpha])?;
                y = n.op("relax.add", &[y, beta])?;
                (low, high) = (0.0, 1.0);
            }
            let (low, high) = (constant_bound(n, y, low)?, constant_bound(n, y, high)?);
            clip_to_bounds(n, y, low, high)
        }
        other => {
            let text = format!("the value '{other}' of attribute 'activation' is not supported");
            Err(Problem::unsupported(text))
        }
    }
}
