//! Inverse trigonometric functions.

use super::{MathOps, Real, abs, horner, with_sign};

/// `whole - part` where `whole` is a number of quarter turns.
#[inline(always)]
fn quarters_minus<B: MathOps>(b: &mut B, quarters: f64, part: &B::V, rest: &B::V) -> B::V {
    let (high, low) = B::Real::QUARTER;
    let (high, low) = (b.f(high * quarters), b.f(low * quarters));
    let small = b.sub(&low, rest);
    let small = b.sub(&small, part);
    b.add(&high, &small)
}

/// What the inverse sine is made of: up to 1/2 the size and `asin` of it, less it. From there on, where `asin` has no slope,
/// the root of `(1 - |x|) / 2` and the same of that.
#[inline(always)]
fn asin_parts<B: MathOps>(b: &mut B, size: &B::V) -> (B::V, B::V) {
    let (one, half) = (b.f(1.0), b.f(0.5));
    let square = b.mul(size, size);
    let gap = b.sub(&one, size);
    let gap = b.mul(&gap, &half);
    let root = b.sqrt(&gap);
    let z = b.select_lt(size, &half, &square, &gap);
    let s = b.select_lt(size, &half, size, &root);
    let p = horner(b, &z, B::Real::ASIN);
    let p = b.mul(&p, &z);
    let more = b.mul(&p, &s);
    (s, more)
}

/// Inverse sine; NaN beyond -1 and 1.
#[inline(always)]
pub fn asin<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, half) = (abs(b, x), b.f(0.5));
    let (s, more) = asin_parts(b, &size);
    let small = b.add(&s, &more);
    let (s, more) = (b.add(&s, &s), b.add(&more, &more));
    let large = quarters_minus(b, 1.0, &s, &more);
    let y = b.select_lt(&size, &half, &small, &large);
    let y = with_sign(b, &y, x);
    b.keep_nan(x, &y)
}

/// Inverse cosine; NaN beyond -1 and 1.
#[inline(always)]
pub fn acos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, half, zero) = (abs(b, x), b.f(0.5), b.f(0.0));
    let (s, more) = asin_parts(b, &size);
    let signed = with_sign(b, &more, x);
    let middle = quarters_minus(b, 1.0, x, &signed);
    let (s, more) = (b.add(&s, &s), b.add(&more, &more));
    let right = b.add(&s, &more);
    let left = quarters_minus(b, 2.0, &s, &more);
    let large = b.select_lt(x, &zero, &left, &right);
    let y = b.select_lt(&size, &half, &middle, &large);
    b.keep_nan(x, &y)
}

/// `atan` of numbers from 0 to 1, less the number.
#[inline(always)]
fn atan_more<B: MathOps>(b: &mut B, r: &B::V) -> B::V {
    let square = b.mul(r, r);
    let p = horner(b, &square, B::Real::ATAN);
    let p = b.mul(&p, &square);
    b.mul(&p, r)
}

/// Inverse tangent.
#[inline(always)]
pub fn atan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, one) = (abs(b, x), b.f(1.0));
    let inverse = b.div(&one, &size);
    let r = b.select_lt(&one, &size, &inverse, &size);
    let more = atan_more(b, &r);
    let near = b.add(&r, &more);
    let far = quarters_minus(b, 1.0, &r, &more);
    let y = b.select_lt(&one, &size, &far, &near);
    let y = with_sign(b, &y, x);
    b.keep_nan(x, &y)
}

/// The angle of the point `(x, y)`, with the signs of zeros heeded.
#[inline(always)]
pub fn atan2<B: MathOps>(b: &mut B, y: &B::V, x: &B::V) -> B::V {
    let (ay, ax) = (abs(b, y), abs(b, x));
    let less = b.select_lt(&ax, &ay, &ax, &ay);
    let more = b.select_lt(&ax, &ay, &ay, &ax);
    let (zero, one, top) = (b.f(0.0), b.f(1.0), b.f(B::Real::MAX));
    let r = b.div(&less, &more);
    // 0 / 0 is on the axis, infinity / infinity on the diagonal.
    let r = b.select_lt(&zero, &more, &r, &zero);
    let r = b.select_lt(&top, &less, &one, &r);
    let rest = atan_more(b, &r);
    let near = b.add(&r, &rest);
    let steep = quarters_minus(b, 1.0, &r, &rest);
    // Left of the axis: half a turn less, or a quarter turn more where it is steep.
    let behind = quarters_minus(b, 2.0, &r, &rest);
    let (high, low) = B::Real::QUARTER;
    let (high, low) = (b.f(high), b.f(low));
    let past = b.add(&low, &rest);
    let past = b.add(&past, &r);
    let past = b.add(&high, &past);
    // Zeros have signs too.
    let sign = with_sign(b, &one, x);
    let right = b.select_lt(&ax, &ay, &steep, &near);
    let left = b.select_lt(&ax, &ay, &past, &behind);
    let angle = b.select_lt(&sign, &zero, &left, &right);
    let angle = with_sign(b, &angle, y);
    let angle = b.keep_nan(y, &angle);
    b.keep_nan(x, &angle)
}
