//! Converters of operators of the domain `com.microsoft`, which ONNX Runtime's exporters and optimizers generate.

mod attention;
mod fused_activation;
mod fused_normalization;
mod gelu_and_matmul;
mod group_query_attention;
mod quantized_ops;

use super::OnnxOp;
use crate::node::{ConvertResult, Node};

/// The operator tables of the files of this module.
pub(super) const GROUPS: &[&[OnnxOp]] = &[
    attention::OPS,
    gelu_and_matmul::OPS,
    fused_activation::OPS,
    group_query_attention::OPS,
    fused_normalization::OPS,
    quantized_ops::OPS,
];

/// Creates the table entry for an operator of the domain `com.microsoft`.
const fn op(name: &'static str, convert: fn(&mut Node<'_, '_>) -> ConvertResult) -> OnnxOp {
    OnnxOp { domain: "com.microsoft", name, convert }
}
