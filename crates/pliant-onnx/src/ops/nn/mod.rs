//! Converters of neural network operators: convolutions, poolings, normalisations, activations, attention and images.

mod activation;
pub(super) mod attention;
pub(super) mod conv;
mod image;
mod linear_attention;
mod loss;
mod norm;
pub(super) mod pad;
mod pool;
mod recurrent;
mod resize;
mod window;

use super::OnnxOp;

/// The operator tables of the files of this module.
pub(super) const GROUPS: &[&[OnnxOp]] = &[
    activation::OPS,
    attention::OPS,
    conv::OPS,
    image::OPS,
    linear_attention::OPS,
    loss::OPS,
    norm::OPS,
    pad::OPS,
    pool::OPS,
    recurrent::OPS,
    resize::OPS,
];
