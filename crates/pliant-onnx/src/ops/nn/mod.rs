//! Converters of neural network operators: convolutions, poolings, normalizations, activations, attention and images.

mod activation;
pub(super) mod attention;
pub(super) mod conv;
mod image_ops;
mod linear_attention;
mod loss;
mod normalization;
pub(super) mod pad;
mod pooling;
pub(super) mod recurrent;
mod resize;
mod sliding_window;

use super::OnnxOp;

/// The operator tables of the files of this module.
pub(super) const GROUPS: &[&[OnnxOp]] = &[
    activation::OPS,
    attention::OPS,
    conv::OPS,
    image_ops::OPS,
    linear_attention::OPS,
    loss::OPS,
    normalization::OPS,
    pad::OPS,
    pooling::OPS,
    recurrent::OPS,
    resize::OPS,
];
