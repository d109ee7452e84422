//! What kernels compute of their results before they write them.

use pliant_ir::DType;
use pliant_kernel_api::Call;

use super::super::scalar::round;
use super::super::view::View;
use super::Args;
use crate::error::Result;

/// The activation of a result.
pub(super) fn activated(call: &Call, x: f64) -> f64 {
    match call.int("activation") {
        0 => x,
        _ if x.is_nan() => x,
        1 => x.max(0.0),
        _ => x.max(call.float("low")).min(call.float("high")),
    }
}

/// The factors and the bias of sums of 8-bit products that become float32.
pub(super) struct Scales<'a> {
    rows: Option<&'a View>,
    columns: Option<&'a View>,
    bias: Option<&'a View>,
}

impl<'a> Scales<'a> {
    /// The operands of these names.
    pub fn of(args: &'a Args, rows: &str, columns: &str) -> Scales<'a> {
        Scales { rows: args.view(rows), columns: args.view(columns), bias: args.view("bias") }
    }

    /// The result of a sum, whose factor and bias are at these indices.
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
