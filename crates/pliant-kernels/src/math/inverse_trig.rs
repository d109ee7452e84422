//! Inverse trigonometric functions.

use super::{MathOps, Real, abs, horner, with_sign};

/// Returns `count * pi/2 - (part + rest)`, with few roundings.
#[inline(always)]
fn half_pis_minus<B: MathOps>(b: &mut B, count: f64, part: &B::V, rest: &B::V) -> B::V {
    let (high, low) = B::Real::HALF_PI;
    let (high, low) = (b.f(high * count), b.f(low * count));
    let small = b.sub(&low, rest);
    let small = b.sub(&small, part);
    b.add(&high, &small)
}

/// Returns a reduced argument `s` and `asin(s) - s`. For magnitudes up to 1/2, `s` is the
/// magnitude. For larger ones, where the derivative of `asin` is unbounded, `s` is `sqrt((1 - |x|)
/// / 2)`, so that `asin(|x|) = pi/2 - 2 asin(s)`.
#[inline(always)]
fn asin_parts<B: MathOps>(b: &mut B, magnitude: &B::V) -> (B::V, B::V) {
    let (one, half) = (b.f(1.0), b.f(0.5));
    let square = b.mul(magnitude, magnitude);
    let one_minus = b.sub(&one, magnitude);
    let one_minus = b.mul(&one_minus, &half);
    let root = b.sqrt(&one_minus);
    let z = b.select_lt(magnitude, &half, &square, &one_minus);
    let s = b.select_lt(magnitude, &half, magnitude, &root);
    let p = horner(b, &z, B::Real::ASIN);
    let p = b.mul(&p, &z);
    let correction = b.mul(&p, &s);
    (s, correction)
}

/// Inverse sine; NaN outside of -1 to 1.
#[inline(always)]
pub fn asin<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (magnitude, half) = (abs(b, x), b.f(0.5));
    let (s, correction) = asin_parts(b, &magnitude);
    let small = b.add(&s, &correction);
    let (s, correction) = (b.add(&s, &s), b.add(&correction, &correction));
    let large = half_pis_minus(b, 1.0, &s, &correction);
    let y = b.select_lt(&magnitude, &half, &small, &large);
    let y = with_sign(b, &y, x);
    b.keep_nan(x, &y)
}

/// Inverse cosine; NaN outside of -1 to 1.
#[inline(always)]
pub fn acos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (magnitude, half, zero) = (abs(b, x), b.f(0.5), b.f(0.0));
    let (s, correction) = asin_parts(b, &magnitude);
    let signed = with_sign(b, &correction, x);
    let middle = half_pis_minus(b, 1.0, x, &signed);
    let (s, correction) = (b.add(&s, &s), b.add(&correction, &correction));
    let right = b.add(&s, &correction);
    let left = half_pis_minus(b, 2.0, &s, &correction);
    let large = b.select_lt(x, &zero, &left, &right);
    let y = b.select_lt(&magnitude, &half, &middle, &large);
    b.keep_nan(x, &y)
}

/// Returns `atan(r) - r` for `r` from 0 to 1.
#[inline(always)]
fn atan_correction<B: MathOps>(b: &mut B, r: &B::V) -> B::V {
    let square = b.mul(r, r);
    let p = horner(b, &square, B::Real::ATAN);
    let p = b.mul(&p, &square);
    b.mul(&p, r)
}

/// Inverse tangent of `x`, in radians.
#[inline(always)]
pub fn atan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (magnitude, one) = (abs(b, x), b.f(1.0));
    let inverse = b.div(&one, &magnitude);
    let r = b.select_lt(&one, &magnitude, &inverse, &magnitude);
    let correction = atan_correction(b, &r);
    let small = b.add(&r, &correction);
    let large = half_pis_minus(b, 1.0, &r, &correction);
    let y = b.select_lt(&one, &magnitude, &large, &small);
    let y = with_sign(b, &y, x);
    b.keep_nan(x, &y)
}

/// Returns the angle of the point `(x, y)`, in radians. Respects the signs of zeros.
#[inline(always)]
pub fn atan2<B: MathOps>(b: &mut B, y: &B::V, x: &B::V) -> B::V {
    let (ay, ax) = (abs(b, y), abs(b, x));
    let smaller = b.select_lt(&ax, &ay, &ax, &ay);
    let larger = b.select_lt(&ax, &ay, &ay, &ax);
    let (zero, one, top) = (b.f(0.0), b.f(1.0), b.f(B::Real::MAX));
    let r = b.div(&smaller, &larger);
    // The ratio of two zeros is 0, that of two infinities is 1.
    let r = b.select_lt(&zero, &larger, &r, &zero);
    let r = b.select_lt(&top, &smaller, &one, &r);
    let correction = atan_correction(b, &r);
    let shallow = b.add(&r, &correction);
    let steep = half_pis_minus(b, 1.0, &r, &correction);
    // For negative x: pi minus the angle, or pi/2 plus the angle if it is steep.
    let left_shallow = half_pis_minus(b, 2.0, &r, &correction);
    let (high, low) = B::Real::HALF_PI;
    let (high, low) = (b.f(high), b.f(low));
    let left_steep = b.add(&low, &correction);
    let left_steep = b.add(&left_steep, &r);
    let left_steep = b.add(&high, &left_steep);
    // -0 counts as negative.
    let sign = with_sign(b, &one, x);
    let right = b.select_lt(&ax, &ay, &steep, &shallow);
    let left = b.select_lt(&ax, &ay, &left_steep, &left_shallow);
    let angle = b.select_lt(&sign, &zero, &left, &right);
    let angle = with_sign(b, &angle, y);
    let angle = b.keep_nan(y, &angle);
    b.keep_nan(x, &angle)
}
