//! Operators of the domain `com.microsoft`, as ONNX Runtime's exporters and optimisers emit them.

mod attention;
mod dense;
mod fused;
mod grouped;
mod norm;
mod quantized;

use super::OnnxOp;
use crate::node::{Converted, Node};

/// The tables of the files of this group.
pub(super) const GROUPS: &[&[OnnxOp]] =
    &[attention::OPS, dense::OPS, fused::OPS, grouped::OPS, norm::OPS, quantized::OPS];

/// An operator of the domain.
const fn op(name: &'static str, convert: fn(&mut Node<'_, '_>) -> Converted) -> OnnxOp {
    OnnxOp { domain: "com.microsoft", name, convert }
}
