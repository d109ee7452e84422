//! The Gaussian error linear unit, `x` times the normal distribution function of `x`.
//!
//! `x * (1 + erf(x / sqrt(2))) / 2` cancels below 0, where `1 + erf` is small. Beyond 3/4 the sequence computes what the
//! tail of the distribution takes away, `a * P(X > a)` of `a = |x|`, as an exponential times a function that hardly
//! changes (`GELU_TAIL`), with the rounding of the square undone.

use super::exp::{Times, times_exp};
use super::{MathOps, Real, abs, horner, negated};

/// `x` times the normal distribution function of `x`; -0 of minus infinity.
#[inline(always)]
pub fn gelu<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (zero, half, limit) = (b.f(0.0), b.f(0.5), b.f(0.75));
    // Near 0: 1/2 and an odd function.
    let square = b.mul(x, x);
    let p = horner(b, &square, B::Real::GELU_NEAR);
    let near = b.fma(&p, x, &half);
    let near = b.mul(&near, x);
    // The tail; `min2` gives its second operand for NaN, which `size` is then.
    let most = b.f(B::Real::GELU_ZERO);
    let a = b.min2(&most, &size);
    let square = b.mul(&a, &a);
    let lost = lost_by_square(b, &a, &square);
    let minus_half = b.f(-0.5);
    let (power, lost) = (b.mul(&square, &minus_half), b.mul(&lost, &minus_half));
    let middle = b.f(B::Real::GELU_MIDDLE);
    let (above, below) = (b.sub(&a, &middle), b.add(&a, &middle));
    let t = b.div(&above, &below);
    let p = horner(b, &t, B::Real::GELU_TAIL);
    let (c, rest) = B::Real::GELU_CENTRE;
    let (c, rest) = (b.f(c), b.f(rest));
    let varying = b.fma(&p, &t, &rest);
    let m = b.add(&c, &varying);
    let varying = b.fma(&lost, &m, &varying);
    let m = b.add(&c, &varying);
    let taken = b.sub(&m, &c);
    let rest = b.sub(&varying, &taken);
    let tail = times_exp(b, &power, &Times { m: &m, rest: &rest });
    // `x - tail` above 0, `-tail` below.
    let whole = b.select_lt(x, &zero, &zero, &size);
    let far = b.sub(&whole, &tail);
    let minus_tail = negated(b, &tail);
    let far = b.select_lt(x, &zero, &minus_tail, &far);
    let y = b.select_lt(&size, &limit, &near, &far);
    b.keep_nan(x, &y)
}

/// What the rounded square of a number lacks, without a fused multiply-add: the products of its halves are exact.
#[inline(always)]
fn lost_by_square<B: MathOps>(b: &mut B, a: &B::V, square: &B::V) -> B::V {
    let (bits, mask) = (b.bits(a), b.i(-1 << (B::Real::MANTISSA / 2 + 1)));
    let high = b.iand(&bits, &mask);
    let high = b.float_of_bits(&high);
    let low = b.sub(a, &high);
    let (main, mixed, rest) = (b.mul(&high, &high), b.mul(&high, &low), b.mul(&low, &low));
    let (main, mixed) = (b.sub(&main, square), b.add(&mixed, &mixed));
    let sum = b.add(&main, &mixed);
    b.add(&sum, &rest)
}
