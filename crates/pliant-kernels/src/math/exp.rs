//! The exponential and what is made of it.

use super::{MathOps, Real, abs, horner, odd, with_sign};

/// `e^x`: reduction by two constants, a polynomial, and scaling that reaches infinity and the subnormals.
#[inline(always)]
pub fn exp<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let one = b.f(1.0);
    times_exp(b, x, |b, y| b.add(y, &one))
}

/// `m * e^x` for `m` near 1, with one rounding less than the product of both: `of` gives `m + m * y` for a small `y`.
#[inline(always)]
pub(super) fn times_exp<B: MathOps>(
    b: &mut B,
    x: &B::V,
    of: impl FnOnce(&mut B, &B::V) -> B::V,
) -> B::V {
    let (lo, hi) = B::Real::EXP_RANGE;
    let (lo, hi) = (b.f(lo), b.f(hi));
    let x = b.min2(&hi, x);
    let x = b.max2(&lo, &x);
    times_exp_within(b, &x, of)
}

/// `e^x` for arguments within [`Real::EXP_RANGE`], and NaN.
#[inline(always)]
pub fn exp_within<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let one = b.f(1.0);
    times_exp_within(b, x, |b, y| b.add(y, &one))
}

/// [`times_exp`] for arguments within [`Real::EXP_RANGE`], and NaN.
#[inline(always)]
fn times_exp_within<B: MathOps>(
    b: &mut B,
    x: &B::V,
    of: impl FnOnce(&mut B, &B::V) -> B::V,
) -> B::V {
    let (log2e, magic) = (b.f(std::f64::consts::LOG2_E), b.f(B::Real::ROUND));
    let t = b.fma(x, &log2e, &magic);
    let n = b.sub(&t, &magic);
    let (c1, c2) = B::Real::LN2;
    let (c1, c2) = (b.f(-c1), b.f(-c2));
    let r = b.fma(&n, &c1, x);
    let r = b.fma(&n, &c2, &r);
    let p = horner(b, &r, B::Real::EXP);
    let r2 = b.mul(&r, &r);
    let y = b.fma(&p, &r2, &r);
    let y = of(b, &y);
    b.scale(&y, &n, &t)
}

/// `e^|x| / 2` and `e^-|x| / 2`, where neither overflows before the hyperbolic functions do.
#[inline(always)]
fn halves<B: MathOps>(b: &mut B, size: &B::V) -> (B::V, B::V) {
    // Beyond the safe range, the square of the root's exponential.
    let (half, quarter, limit) = (b.f(0.5), b.f(0.25), b.f(B::Real::EXP_SAFE));
    let root = b.mul(size, &half);
    let arg = b.select_lt(&limit, size, &root, size);
    let e = exp(b, &arg);
    let scaled = b.mul(&e, &half);
    let one = b.f(1.0);
    let other = b.select_lt(&limit, size, &e, &one);
    let up = b.mul(&scaled, &other);
    let down = b.div(&quarter, &up);
    (up, down)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let large = b.sub(&up, &down);
    let large = with_sign(b, &large, x);
    let small = odd(b, x, B::Real::SINH);
    let one = b.f(1.0);
    let y = b.select_lt(&size, &one, &small, &large);
    b.keep_nan(x, &y)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let y = b.add(&up, &down);
    b.keep_nan(x, &y)
}

/// Hyperbolic tangent: a polynomial near 0, else by the exponential.
#[inline(always)]
pub fn tanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let small = odd(b, x, B::Real::TANH);
    let (one, two, limit) = (b.f(1.0), b.f(2.0), b.f(0.625));
    let twice = b.add(&size, &size);
    let e = exp(b, &twice);
    let d = b.add(&e, &one);
    let q = b.div(&two, &d);
    let large = b.sub(&one, &q);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&size, &limit, &small, &large);
    b.keep_nan(x, &y)
}

/// Logistic function, by the exponential that does not overflow.
#[inline(always)]
pub fn sigmoid<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one) = (b.f(0.0), b.f(1.0));
    let size = abs(b, x);
    let minus = b.sub(&zero, &size);
    let e = exp(b, &minus);
    let d = b.add(&one, &e);
    let over = b.select_lt(x, &zero, &e, &one);
    let y = b.div(&over, &d);
    b.keep_nan(x, &y)
}
