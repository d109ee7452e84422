//! Converters of Microsoft's normalizations that include operations before the normalization: skip connections, biases and
//! embeddings.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use super::op;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::OnnxOp;

pub(super) static OPS: &[OnnxOp] = &[
    op("EmbedLayerNormalization", embed_layer_norm),
    op("SimplifiedLayerNormalization", simplified_layer_norm),
    // ONNX Runtime defines this operator in ONNX's own domain.
    OnnxOp { domain: "", name: "SimplifiedLayerNormalization", convert: simplified_layer_norm },
    op("SkipLayerNormalization", |n| skip_layer_norm(n, false)),
    op("SkipSimplifiedLayerNormalization", |n| skip_layer_norm(n, true)),
];

fn epsilon(n: &Node<'_, '_>, default: f64) -> Result<f64, Problem> {
    Ok(n.attrs().float("epsilon")?.unwrap_or(default))
}

/// Emits layer normalization over the last axis, with an optional bias `beta`.
fn layer_norm(
    n: &mut Node<'_, '_>,
    x: Expr,
    gamma: Expr,
    beta: Option<Expr>,
    eps: f64,
) -> ExprResult {
    let dtype = n.dtype(gamma)?;
    let beta = match beta {
        Some(beta) => beta,
        None => {
            let (dims, zero) = (n.dims(gamma)?, n.scalar_as(0.0, dtype)?);
            n.full(&dims, zero)?
        }
    };
    let attrs =
        Attrs::default().with("axes", AttrValue::ints([-1])).with("epsilon", AttrValue::float(eps));
    n.op_with("relax.nn.layer_norm", &[x, gamma, beta], attrs)
}

fn rms_norm(n: &mut Node<'_, '_>, x: Expr, gamma: Expr, axes: &[i64], eps: f64) -> ExprResult {
    let attrs = Attrs::default()
        .with("axes", AttrValue::ints(axes.iter().copied()))
        .with("epsilon", AttrValue::float(eps));
    n.op_with("relax.nn.rms_norm", &[x, gamma], attrs)
}

fn skip_layer_norm(n: &mut Node<'_, '_>, simplified: bool) -> ConvertResult {
    let eps = epsilon(n, 1e-12)?;
    let [x, skip, gamma] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let (beta, bias) = match simplified {
        true => (None, n.optional_tensor(3)?),
        false => (n.optional_tensor(3)?, n.optional_tensor(4)?),
    };
    let mut sum = n.op("relax.add", &[x, skip])?;
    if let Some(bias) = bias {
        sum = n.op("relax.add", &[sum, bias])?;
    }
    let y = match simplified {
        true => rms_norm(n, sum, gamma, &[-1], eps)?,
        false => layer_norm(n, sum, gamma, beta, eps)?,
    };
    check_no_statistics(n)?;
    Ok(vec![y.into(), Value::Absent, Value::Absent, sum.into()])
}

/// Rejects a node whose outputs for the mean or the inverse standard deviation are used. Only training needs these outputs.
fn check_no_statistics(n: &Node<'_, '_>) -> Result<(), Problem> {
    match n.proto.output.iter().skip(1).take(2).any(|o| !o.is_empty()) {
        true => Err(Problem::unsupported(
            "the mean and the inverse standard deviation (the second and the third output) are not supported",
        )
        .with_help("remove the second and the third output from the node")),
        false => Ok(()),
    }
}

fn simplified_layer_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let eps = epsilon(n, 1e-5)?;
    let (x, gamma) = (n.tensor(0)?, n.tensor(1)?);
    let rank = n.rank(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(-1), rank)?;
    let axes: Vec<i64> = (axis as i64..rank as i64).collect();
    if n.proto.output.get(1).is_some_and(|o| !o.is_empty()) {
        return Err(Problem::unsupported(
            "the inverse standard deviation (the second output) is not supported",
        )
        .with_help("remove the second output from the node"));
    }
    Ok(vec![rms_norm(n, x, gamma, &axes, eps)?.into()])
}

/// Converts `EmbedLayerNormalization`: layer normalization of the sum of word, position and segment embeddings.
fn embed_layer_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let eps = epsilon(n, 1e-12)?;
    let (ids, words, positions) = (n.tensor(0)?, n.tensor(2)?, n.tensor(3)?);
    let dims = n.dims_with_min_rank(ids, 1)?;
    let length = *dims
        .get(1)
        .ok_or_else(|| Problem::invalid("input_ids (input 0) must have 2 dims, but has 1"))?;
    let indices = match n.optional_tensor(8)? {
        Some(indices) => indices,
        None => n.iota(length)?,
    };
    let word = n.take(words, ids, 0)?;
    let position = n.take(positions, indices, 0)?;
    let mut sum = n.op("relax.add", &[word, position])?;
    if let (Some(segments), Some(table)) = (n.optional_tensor(1)?, n.optional_tensor(4)?) {
        let segment = n.take(table, segments, 0)?;
        sum = n.op("relax.add", &[sum, segment])?;
    }
    let (gamma, beta) = (n.tensor(5)?, n.optional_tensor(6)?);
    let y = layer_norm(n, sum, gamma, beta, eps)?;
    let counts = match n.optional_tensor(7)? {
        Some(mask) => {
            let dtype = n.dtype(mask)?;
            let one = n.scalar_as(1.0, dtype)?;
            let ones = n.op("relax.equal", &[mask, one])?;
            let ones = n.cast(ones, DType::Int32)?;
            n.op_with("relax.sum", &[ones], crate::node::ints_attr("axis", 1))?
        }
        None => {
            let zero = n.scalar(0i32)?;
            n.full(&dims[..1], zero)?
        }
    };
    Ok(vec![y.into(), counts.into(), sum.into()])
}
