//! Inverse trigonometric functions.

use super::{MathOps, abs, horner, keep_nan, with_sign};

/// pi/2 in two parts: the float nearest to it, and what that lacks.
const QUARTER: (f32, f32) = (std::f32::consts::FRAC_PI_2, -4.371_139e-8);

/// `asin(x) = x + x^3 * p(x^2)`, up to 1/2.
const ASIN: [f32; 6] =
    [3.770_211e-2, 1.431_217_4e-2, 3.183_952_3e-2, 4.451_335e-2, 7.500_522e-2, 1.666_666e-1];

/// `atan(x) = x + x^3 * p(x^2)`, up to 1.
const ATAN: [f32; 9] = [
    -1.790_405_8e-3,
    1.089_969_65e-2,
    -3.114_893_7e-2,
    5.792_723e-2,
    -8.401_582e-2,
    1.095_150_6e-1,
    -1.426_410_2e-1,
    1.999_853_4e-1,
    -3.333_33e-1,
];

/// `whole - part` where `whole` is a number of quarter turns.
fn quarters_minus<B: MathOps>(b: &mut B, quarters: f32, part: &B::V, rest: &B::V) -> B::V {
    let (high, low) = (b.f(QUARTER.0 * quarters), b.f(QUARTER.1 * quarters));
    let small = b.sub(&low, rest);
    let small = b.sub(&small, part);
    b.add(&high, &small)
}

/// The root of `(1 - |x|) / 2` and `asin` of it, less it: for `|x|` from 1/2 on, where `asin` has no slope.
fn from_one<B: MathOps>(b: &mut B, size: &B::V) -> (B::V, B::V) {
    let (one, half) = (b.f(1.0), b.f(0.5));
    let z = b.sub(&one, size);
    let z = b.mul(&z, &half);
    let s = b.sqrt(&z);
    let p = horner(b, &z, &ASIN);
    let p = b.mul(&p, &z);
    let more = b.mul(&p, &s);
    (s, more)
}

/// Inverse sine; NaN beyond -1 and 1.
pub fn asin<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, half) = (abs(b, x), b.f(0.5));
    let square = b.mul(x, x);
    let p = horner(b, &square, &ASIN);
    let p = b.mul(&p, &square);
    let small = b.fma(&p, x, x);
    let (s, more) = from_one(b, &size);
    let (s, more) = (b.add(&s, &s), b.add(&more, &more));
    let large = quarters_minus(b, 1.0, &s, &more);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&size, &half, &small, &large);
    keep_nan(b, x, &y)
}

/// Inverse cosine; NaN beyond -1 and 1.
pub fn acos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, half, zero) = (abs(b, x), b.f(0.5), b.f(0.0));
    let square = b.mul(x, x);
    let p = horner(b, &square, &ASIN);
    let p = b.mul(&p, &square);
    let more = b.mul(&p, x);
    let middle = quarters_minus(b, 1.0, x, &more);
    let (s, more) = from_one(b, &size);
    let (s, more) = (b.add(&s, &s), b.add(&more, &more));
    let right = b.add(&s, &more);
    let left = quarters_minus(b, 2.0, &s, &more);
    let large = b.select_lt(x, &zero, &left, &right);
    let y = b.select_lt(&size, &half, &middle, &large);
    keep_nan(b, x, &y)
}

/// `atan` of numbers from 0 to 1, less the number.
fn atan_more<B: MathOps>(b: &mut B, r: &B::V) -> B::V {
    let square = b.mul(r, r);
    let p = horner(b, &square, &ATAN);
    let p = b.mul(&p, &square);
    b.mul(&p, r)
}

/// Inverse tangent.
pub fn atan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (size, one) = (abs(b, x), b.f(1.0));
    let inverse = b.div(&one, &size);
    let r = b.select_lt(&one, &size, &inverse, &size);
    let more = atan_more(b, &r);
    let near = b.add(&r, &more);
    let far = quarters_minus(b, 1.0, &r, &more);
    let y = b.select_lt(&one, &size, &far, &near);
    let y = with_sign(b, &y, x);
    keep_nan(b, x, &y)
}

/// The angle of the point `(x, y)`, with the signs of zeros heeded.
pub fn atan2<B: MathOps>(b: &mut B, y: &B::V, x: &B::V) -> B::V {
    let (ay, ax) = (abs(b, y), abs(b, x));
    let less = b.select_lt(&ax, &ay, &ax, &ay);
    let more = b.select_lt(&ax, &ay, &ay, &ax);
    let (zero, one, top) = (b.f(0.0), b.f(1.0), b.f(f32::MAX));
    let r = b.div(&less, &more);
    // 0 / 0 is on the axis, infinity / infinity on the diagonal.
    let r = b.select_lt(&zero, &more, &r, &zero);
    let r = b.select_lt(&top, &less, &one, &r);
    let rest = atan_more(b, &r);
    let near = b.add(&r, &rest);
    let steep = quarters_minus(b, 1.0, &r, &rest);
    // Left of the axis: half a turn less, or a quarter turn more where it is steep.
    let behind = quarters_minus(b, 2.0, &r, &rest);
    let (high, low) = (b.f(QUARTER.0), b.f(QUARTER.1));
    let past = b.add(&low, &rest);
    let past = b.add(&past, &r);
    let past = b.add(&high, &past);
    // The sign bit of x as 0 or -1.
    let sign = b.bits(x);
    let sign = b.isar(&sign, 31);
    let sign = b.int_to_float(&sign);
    let right = b.select_lt(&ax, &ay, &steep, &near);
    let left = b.select_lt(&ax, &ay, &past, &behind);
    let angle = b.select_lt(&sign, &zero, &left, &right);
    let angle = with_sign(b, &angle, y);
    let angle = keep_nan(b, y, &angle);
    keep_nan(b, x, &angle)
}
