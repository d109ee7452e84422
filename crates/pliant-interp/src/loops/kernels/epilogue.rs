//! Epilogues that kernels apply to their results before they write them.

use pliant_ir::DType;
use pliant_kernel_api::{AttrType, Call};

use super::super::scalar::round;
use super::super::view::View;
use super::Args;
use crate::error::Result;

/// Applies the activation to a result.
pub(super) fn activated(call: &Call, x: f64) -> f64 {
    let number = |name: &str| call.float(name);
    let clip = |x: f64| if x.is_nan() { x } else { x.max(number("low")).min(number("high")) };
    let line = || clip(number("slope") * x + number("offset"));
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    let AttrType::Choice(names) = call.kernel.attr("activation").map_or(AttrType::Bool, |a| a.0.ty)
    else {
        return x;
    };
    match names[call.int("activation") as usize] {
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

/// The factors and the bias for sums of 8-bit products that are converted to float32.
pub(super) struct Scales<'a> {
    rows: Option<&'a View>,
    columns: Option<&'a View>,
    bias: Option<&'a View>,
}

impl<'a> Scales<'a> {
    /// The operands with these names.
    pub fn of(args: &'a Args, rows: &str, columns: &str) -> Scales<'a> {
        Scales { rows: args.view(rows), columns: args.view(columns), bias: args.view("bias") }
    }

    /// The result for a sum; `row` and `column` are the indices of its factors and bias.
    pub fn value(&self, call: &Call, sum: i32, row: &[i64], column: i64) -> Result<f64> {
        let mut x = round(f64::from(sum), DType::Float32);
        for (factors, at) in [(self.rows, row), (self.columns, &[column])] {
            if let Some(factors) = factors {
                x = round(x * factors.float(at)?, DType::Float32);
            }
        }
        if let Some(bias) = self.bias {
            x = round(x + bias.float(&[column])?, DType::Float32);
        }
        Ok(round(activated(call, x), DType::Float32))
    }
}
