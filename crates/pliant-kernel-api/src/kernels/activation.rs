//! The activation that kernels apply to their results: attributes and reference.

use crate::{Attr, AttrDefault, AttrType, Call};

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

/// The activation of a result.
pub(super) fn activated(call: &Call, x: f64) -> f64 {
    let number = |name: &str| call.float(name);
    let clip = |x: f64| if x.is_nan() { x } else { x.max(number("low")).min(number("high")) };
    let line = || clip(number("slope") * x + number("offset"));
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    match NAMES[call.int("activation") as usize] {
        "relu" if x.is_nan() => x,
        "relu" => x.max(0.0),
        "clip" => clip(x),
        "gelu" => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
        "gelu_tanh" => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
        "silu" => x * sigmoid,
        "sigmoid" => sigmoid,
        "tanh" => x.tanh(),
        "hard_swish" => x * line(),
        "hard_sigmoid" => line(),
        "leaky_relu" if x < 0.0 => number("slope") * x,
        _ => x,
    }
}
