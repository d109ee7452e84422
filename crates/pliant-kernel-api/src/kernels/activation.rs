//! The activation function that convolutions and matmuls apply to their results: its attributes and
//! its reference implementation.

use crate::{Attr, AttrDefault, AttrType, Call};

/// The names of the activation functions, in the order of their numbers in
/// `pliant_kernels::epilogue::Activation`.
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

/// The attribute `activation`, which selects the activation function.
pub(super) const KIND: Attr = Attr::new(
    "activation",
    AttrType::Choice(NAMES),
    AttrDefault::Number(0),
    "the function applied to the results; `clip` is `min(max(x, low), high)`, `hard_sigmoid` is the clip of \
          `slope * x + offset`, `hard_swish` is `x` times that, and `leaky_relu` multiplies negative values by `slope`",
);
/// The attribute `low`: the lower limit of activation functions that clip.
pub(super) const LOW: Attr =
    float_attr("low", 0.0, "the lower limit of `clip`, `hard_sigmoid` and `hard_swish`");
/// The attribute `high`: the upper limit of activation functions that clip.
pub(super) const HIGH: Attr =
    float_attr("high", 0.0, "the upper limit of `clip`, `hard_sigmoid` and `hard_swish`");
/// The attribute `slope`: the slope of activation functions such as leaky ReLU.
pub(super) const SLOPE: Attr =
    float_attr("slope", 1.0, "the slope of `hard_sigmoid`, `hard_swish` and `leaky_relu`");
/// The attribute `offset`: the constant term of activation functions such as hard sigmoid.
pub(super) const OFFSET: Attr =
    float_attr("offset", 0.0, "the offset of `hard_sigmoid` and `hard_swish`");

/// Declares a float attribute with the default `default` and the description `doc`.
const fn float_attr(name: &'static str, default: f64, doc: &'static str) -> Attr {
    Attr::new(name, AttrType::Float, AttrDefault::Float(default), doc)
}

/// Applies the activation function of a call to the value `x`.
pub(super) fn apply(call: &Call, x: f64) -> f64 {
    let number = |name: &str| call.float(name);
    let clip = |x: f64| if x.is_nan() { x } else { x.max(number("low")).min(number("high")) };
    let clipped_line = || clip(number("slope") * x + number("offset"));
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    match NAMES[call.int("activation") as usize] {
        "relu" if x.is_nan() => x,
        "relu" => x.max(0.0),
        "clip" => clip(x),
        "gelu" => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
        "gelu_tanh" => {
            let argument = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + argument.tanh())
        }
        "silu" => x * sigmoid,
        "sigmoid" => sigmoid,
        "tanh" => x.tanh(),
        "hard_swish" => x * clipped_line(),
        "hard_sigmoid" => clipped_line(),
        "leaky_relu" if x < 0.0 => number("slope") * x,
        _ => x,
    }
}
