//! Operators of neural networks: convolutions, poolings, normalisations, activations, resizing.

mod activation;
mod conv;
mod norm;
mod pad;
mod pool;
mod window;

use super::OnnxOp;

/// The tables of the files of this group.
pub(super) const GROUPS: &[&[OnnxOp]] =
    &[activation::OPS, conv::OPS, norm::OPS, pad::OPS, pool::OPS];
