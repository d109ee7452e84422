//! Operators of the domain `com.microsoft`, which ONNX Runtime's exporters and optimisers generate.

mod activation_matmul;
mod attention;
mod fused_activation;
mod group_query_attention;
mod norm;
mod quantized;

use super::OnnxOp;
use crate::node::{ConvertResult, Node};

/// The operator tables of this module's files.
pub(super) const GROUPS: &[&[OnnxOp]] = &[
    attention::OPS,
    activation_matmul::OPS,
    fused_activation::OPS,
    group_query_attention::OPS,
    norm::OPS,
    quantized::OPS,
];

/// An operator of the domain.
const fn op(name: &'static str, convert: fn(&mut Node<'_, '_>) -> ConvertResult) -> OnnxOp {
    OnnxOp { domain: "com.microsoft", name, convert }
}
