//! Combines the constant factors of attention scores into one factor.

use pliant_ir::Op;
use pliant_ir::relax::{Expr, ExprData};
use pliant_pass::pattern::RewriteCx;

use super::half_precision_casts::{before_widening, is_float};
use crate::common::matmul_and_conv_operands::{defining_operands, same_type};

const MULTIPLY: Op = Op::new("relax.multiply");
const DIVIDE: Op = Op::new("relax.divide");

/// Returns the value of a float constant with one element; `None` for other expressions.
pub(super) fn scalar_value(cx: &RewriteCx<'_>, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = cx.func.expr(cx.value(e)) else { return None };
    let tensor = cx.func.const_tensor(*c);
    let has_one_element = is_float(cx.func, e) && tensor.shape().iter().all(|&d| d == 1);
    if has_one_element { tensor.to_f64_vec().ok()?.first().copied() } else { None }
}

/// Removes multiplications and divisions by constants from an expression, and multiplies `scale` by these factors. Returns the
/// remaining expression.
pub(super) fn strip_factors(cx: &RewriteCx<'_>, e: Expr, scale: &mut f64) -> Expr {
    let mut e = e;
    // Each iteration continues with an operand of the value, so the loop ends.
    loop {
        let inner_value = before_widening(cx, e);
        let operand_and_factor = match (
            defining_operands(cx, inner_value, MULTIPLY),
            defining_operands(cx, inner_value, DIVIDE),
        ) {
            (Some(args), _) => match (scalar_value(cx, args[0]), scalar_value(cx, args[1])) {
                (_, Some(factor)) => Some((args[0], factor)),
                (Some(factor), _) => Some((args[1], factor)),
                _ => None,
            },
            (_, Some(args)) => scalar_value(cx, args[1]).map(|by| (args[0], 1.0 / by)),
            _ => None,
        };
        match operand_and_factor {
            Some((inner, factor)) if same_type(cx.func, inner, inner_value) => {
                match combine_factors(*scale, factor) {
                    Some(combine_factors) => (*scale, e) = (combine_factors, inner),
                    None => return e,
                }
            }
            _ => return e,
        }
    }
}

/// Multiplies two factors. `None` if the result is not a normal float32 number, because scores may be in range if the factors are
/// applied separately. 0 is combined only with 1 and with itself, because the scores may be infinite.
pub(super) fn combine_factors(scale: f64, factor: f64) -> Option<f64> {
    let combine_factors = scale * factor;
    let is_exact = factor == 1.0 || scale == 1.0 && factor == 0.0;
    (is_exact || (combine_factors as f32).is_normal() || scale == 0.0 && factor == 0.0)
        .then_some(combine_factors)
}
