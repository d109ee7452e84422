//! The attributes of kernels that apply an activation to their results.

use crate::{Attr, AttrDefault, AttrType};

/// The activations, in the order of their numbers in `pliant_kernels::epilogue::Activation`.
const NAMES: &[&str] = &[
    "none",
    "relu",
    "clip",
    "gelu",
    "gelu_tanh",
    "silu",
    "sigmoid",
    "tanh",
    "hard_swish",
    "hard_sigmoid",
    "leaky_relu",
];

/// The activation.
pub(super) const KIND: Attr = Attr {
    name: "activation",
    ty: AttrType::Choice(NAMES),
    default: AttrDefault::Number(0),
    doc: "the function applied to the results; `clip` limits them to `low` and `high`, `hard_sigmoid` limits \
          `slope * x + offset`, `hard_swish` is `x` times that, and `leaky_relu` multiplies negative values by `slope`",
};
/// The lower limit.
pub(super) const LOW: Attr = number("low", 0.0, "the lower limit of the activation");
/// The upper limit.
pub(super) const HIGH: Attr = number("high", 0.0, "the upper limit of the activation");
/// The slope.
pub(super) const SLOPE: Attr = number("slope", 1.0, "the slope of the activation");
/// The offset.
pub(super) const OFFSET: Attr = number("offset", 0.0, "the offset of the activation");

const fn number(name: &'static str, default: f64, doc: &'static str) -> Attr {
    Attr { name, ty: AttrType::Float, default: AttrDefault::Float(default), doc }
}
