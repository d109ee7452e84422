//! The Gaussian error linear unit: `x` times the normal distribution function of `x`.
//!
//! `x * (1 + erf(x / sqrt(2))) / 2` suffers from cancellation for negative `x`, where `1 + erf` is
//! small. For magnitudes above 3/4, the implementation computes the tail `a * P(X > a)` of `a =
//! |x|` as an exponential times a smooth function (`GELU_TAIL`). The implementation also corrects
//! the rounding error of `x^2` in the exponent.

use super::exp::{ScaledExp, times_exp};
use super::{MathOps, Real, abs, horner, negated};

/// GELU: `x` times the normal distribution function of `x`. The result is -0 for minus infinity.
#[inline(always)]
pub fn gelu<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let magnitude = abs(b, x);
    let (zero, half, limit) = (b.f(0.0), b.f(0.5), b.f(0.75));
    // Near 0, the distribution function is 1/2 plus an odd function.
    let square = b.mul(x, x);
    let p = horner(b, &square, B::Real::GELU_NEAR);
    let small = b.fma(&p, x, &half);
    let small = b.mul(&small, x);
    // The tail. `min2` returns its second operand if that is NaN.
    let zero_from = b.f(B::Real::GELU_ZERO);
    let a = b.min2(&zero_from, &magnitude);
    let square = b.mul(&a, &a);
    let square_rounding = square_error(b, &a, &square);
    let minus_half = b.f(-0.5);
    let (power, square_rounding) =
        (b.mul(&square, &minus_half), b.mul(&square_rounding, &minus_half));
    let middle = b.f(B::Real::GELU_MIDDLE);
    let (above, below) = (b.sub(&a, &middle), b.add(&a, &middle));
    let t = b.div(&above, &below);
    let p = horner(b, &t, B::Real::GELU_TAIL);
    let (c, rest) = B::Real::GELU_CENTRE;
    let (c, rest) = (b.f(c), b.f(rest));
    let offset = b.fma(&p, &t, &rest);
    let m = b.add(&c, &offset);
    let offset = b.fma(&square_rounding, &m, &offset);
    let m = b.add(&c, &offset);
    let rounded = b.sub(&m, &c);
    let rest = b.sub(&offset, &rounded);
    let tail = times_exp(b, &power, &ScaledExp { m: &m, rest: &rest });
    // `x - tail` for positive x, `-tail` for negative x.
    let linear = b.select_lt(x, &zero, &zero, &magnitude);
    let large = b.sub(&linear, &tail);
    let minus_tail = negated(b, &tail);
    let large = b.select_lt(x, &zero, &minus_tail, &large);
    let y = b.select_lt(&magnitude, &limit, &small, &large);
    b.keep_nan(x, &y)
}

/// Returns the rounding error of `square`, the rounded square of `a`. No fused multiply-add is needed, because the
/// products of the halves of `a` are exact.
#[inline(always)]
fn square_error<B: MathOps>(b: &mut B, a: &B::V, square: &B::V) -> B::V {
    let (bits, mask) = (b.bits(a), b.i(-1 << (B::Real::MANTISSA / 2 + 1)));
    let high = b.iand(&bits, &mask);
    let high = b.float_of_bits(&high);
    let low = b.sub(a, &high);
    let (main, mixed, rest) = (b.mul(&high, &high), b.mul(&high, &low), b.mul(&low, &low));
    let (main, mixed) = (b.sub(&main, square), b.add(&mixed, &mixed));
    let sum = b.add(&main, &mixed);
    b.add(&sum, &rest)
}
