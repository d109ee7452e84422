//! The error function.

use super::exp::exp_normal;
use super::{MathOps, Real, abs, horner, with_sign};

/// Returns the error function of `x`. Up to magnitude 1, it is approximated by a polynomial; for
/// larger arguments, by 1 minus the exponential of a polynomial.
#[inline(always)]
pub fn erf<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let magnitude = abs(b, x);
    let square = b.mul(x, x);
    let p = horner(b, &square, B::Real::ERF);
    let small = b.fma(&p, x, x);
    let (limit, one, zero) = (b.f(B::Real::ERF_ONE), b.f(1.0), b.f(0.0));
    let t = b.min2(&magnitude, &limit);
    let q = horner(b, &t, B::Real::ERFC);
    let q = b.add(&q, &t);
    let q = b.sub(&zero, &q);
    let e = exp_normal(b, &q);
    let large = b.sub(&one, &e);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&magnitude, &one, &small, &large);
    b.keep_nan(x, &y)
}
