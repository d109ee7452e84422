//! Weights of the four neighbours in cubic interpolation.

use pliant_ir::DType;

use crate::te::{self, Expr};

/// The weights of the four neighbours of a position for cubic interpolation. The position lies between the second and the
/// third neighbour, at distance `t` (0 to 1) from the second. `alpha` is the coefficient of the cubic kernel (Keys, 1981).
pub fn weights(t: &Expr, alpha: f64, dtype: DType) -> [Expr; 4] {
    let c = |v: f64| te::const_of(v, dtype);
    let near = |d: &Expr| ((d * c(alpha + 2.0) - c(alpha + 3.0)) * d) * d + c(1.0);
    let far =
        |d: &Expr| ((d * c(alpha) - c(5.0 * alpha)) * d + c(8.0 * alpha)) * d - c(4.0 * alpha);
    let (one, two) = (c(1.0), c(2.0));
    [far(&(t + &one)), near(t), near(&(&one - t)), far(&(two - t))]
}
