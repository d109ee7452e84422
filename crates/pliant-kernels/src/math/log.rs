//! The logarithm, and the inverse hyperbolic functions made of it.

use super::{MathOps, Real, abs, horner, odd, with_sign};

/// Natural logarithm; `-inf` at 0, NaN below.
#[inline(always)]
pub fn log<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    // Subnormals are scaled up first.
    let (tiny, one, zero) = (b.f(B::Real::MIN_POSITIVE), b.f(1.0), b.f(0.0));
    let digits = B::Real::MANTISSA;
    let (up, down) = (b.f((1u64 << digits) as f64), b.f(-f64::from(digits)));
    let factor = b.select_lt(x, &tiny, &up, &one);
    let scaled = b.mul(x, &factor);
    let shift = b.select_lt(x, &tiny, &down, &zero);
    let y = log_of(b, &scaled, None, Some(&shift));
    let y = ends(b, x, &y);
    b.keep_nan(x, &y)
}

/// A logarithm at the ends of its range: infinity has itself, 0 has `-inf`, less has NaN.
#[inline(always)]
fn ends<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let (inf, minus, nan) = (b.f(f64::INFINITY), b.f(f64::NEG_INFINITY), b.f(f64::NAN));
    let zero = b.f(0.0);
    let y = b.select_lt(x, &inf, y, x);
    let y = b.select_lt(&zero, x, &y, &minus);
    b.select_lt(x, &zero, &nan, &y)
}

/// `log(x + rest) + shift * ln 2` of a positive, normal and finite `x`, where `rest` is too small to show in `x`.
#[inline(always)]
fn log_of<B: MathOps>(b: &mut B, x: &B::V, rest: Option<&B::V>, shift: Option<&B::V>) -> B::V {
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    let bits = b.bits(x);
    let offset = b.i(B::Real::ONE_BITS - B::Real::ROOT_BITS);
    let ix = b.iadd(&bits, &offset);
    let e = b.ishr(&ix, B::Real::MANTISSA);
    let mask = b.i((1 << B::Real::MANTISSA) - 1);
    let m = b.iand(&ix, &mask);
    let root = b.i(B::Real::ROOT_BITS);
    let m = b.iadd(&m, &root);
    let m = b.float_of_bits(&m);
    // The integer becomes a float by way of its place in the low bits of one.
    let (unbias, magic) = (b.i(B::Real::ROUND_BITS - B::Real::BIAS), b.f(B::Real::ROUND));
    let ef = b.iadd(&e, &unbias);
    let ef = b.float_of_bits(&ef);
    let mut ef = b.sub(&ef, &magic);
    if let Some(shift) = shift {
        ef = b.add(&ef, shift);
    }
    let one = b.f(1.0);
    let mut f = b.sub(&m, &one);
    if let Some(rest) = rest {
        // 2^-e, by which x has become m.
        let twice = b.i(2 * B::Real::BIAS);
        let scale = b.isub(&twice, &e);
        let scale = b.ishl(&scale, B::Real::MANTISSA);
        let scale = b.float_of_bits(&scale);
        // Beyond the largest power of 2 it would be negative.
        let zero = b.f(0.0);
        let scale = b.max2(&scale, &zero);
        f = b.fma(rest, &scale, &f);
    }
    let p = horner(b, &f, B::Real::LOG);
    let z = b.mul(&f, &f);
    let p = b.mul(&p, &f);
    let p = b.mul(&p, &z);
    let (high, low) = B::Real::LN2;
    let (high, low) = (b.f(high), b.f(low));
    let p = b.fma(&ef, &low, &p);
    let half = b.f(-0.5);
    let p = b.fma(&z, &half, &p);
    let y = b.add(&f, &p);
    b.fma(&ef, &high, &y)
}

/// `1 + x`, and what its rounding loses, whichever of 1 and `x` is larger.
#[inline(always)]
fn one_plus<B: MathOps>(b: &mut B, x: &B::V) -> (B::V, B::V) {
    let one = b.f(1.0);
    let u = b.add(x, &one);
    let back = b.sub(&u, x);
    let from_one = b.sub(&one, &back);
    let rest = b.sub(&u, &one);
    let from_x = b.sub(x, &rest);
    (u, b.select_lt(&one, x, &from_one, &from_x))
}

/// `log(1 + x)`.
#[inline(always)]
pub fn log1p<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (u, lost) = one_plus(b, x);
    let y = log_of(b, &u, Some(&lost), None);
    let y = ends(b, &u, &y);
    // Of a zero, the sign is kept.
    let (size, tiny) = (abs(b, x), b.f(B::Real::MIN_POSITIVE));
    let y = b.select_lt(&size, &tiny, x, &y);
    b.keep_nan(x, &y)
}

/// Beyond, 1 is nothing beside the square, which may overflow.
const HUGE: f64 = 1e9;

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd(b, x, B::Real::ASINH);
    let size = abs(b, x);
    let (huge, half, zero) = (b.f(HUGE), b.f(0.5), b.f(0.0));
    let a = b.min2(&size, &huge);
    let s = b.mul(&a, &a);
    let minus = b.sub(&zero, &s);
    let low = b.fma(&a, &a, &minus);
    let (t, lost) = one_plus(b, &s);
    let low = b.add(&low, &lost);
    let (sum, rest) = plus_root(b, &a, &t, &low);
    let y = log_or_large(b, &size, &sum, &rest);
    let inf = b.f(f64::INFINITY);
    let y = b.select_lt(&size, &inf, &y, &size);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&size, &half, &small, &y);
    b.keep_nan(x, &y)
}

/// `log(sum + rest)`, or `log(2 x)` where `x` is huge.
#[inline(always)]
fn log_or_large<B: MathOps>(b: &mut B, x: &B::V, sum: &B::V, rest: &B::V) -> B::V {
    let (huge, zero, one) = (b.f(HUGE), b.f(0.0), b.f(1.0));
    let arg = b.select_lt(x, &huge, sum, x);
    let rest = b.select_lt(x, &huge, rest, &zero);
    let shift = b.select_lt(x, &huge, &zero, &one);
    log_of(b, &arg, Some(&rest), Some(&shift))
}

/// `a + sqrt(t + low)` and what its rounding loses.
#[inline(always)]
fn plus_root<B: MathOps>(b: &mut B, a: &B::V, t: &B::V, low: &B::V) -> (B::V, B::V) {
    let root = b.sqrt(t);
    let zero = b.f(0.0);
    let minus = b.sub(&zero, &root);
    let lost = b.fma(&minus, &root, t);
    let lost = b.add(&lost, low);
    // Over twice the root: of so small a number, the first digit will do.
    let (inverse, bits, half) = (b.i(B::Real::INVERSE_BITS), b.bits(&root), b.f(0.5));
    let inverse = b.isub(&inverse, &bits);
    let inverse = b.float_of_bits(&inverse);
    let inverse = b.mul(&inverse, &half);
    let lost = b.mul(&lost, &inverse);
    let sum = b.add(a, &root);
    // Either may be the larger one.
    let back = b.sub(&sum, &root);
    let of_a = b.sub(a, &back);
    let back = b.sub(&sum, a);
    let of_root = b.sub(&root, &back);
    let rounding = b.select_lt(a, &root, &of_a, &of_root);
    let rest = b.add(&rounding, &lost);
    (sum, rest)
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (one, huge, zero) = (b.f(1.0), b.f(HUGE), b.f(0.0));
    let near = b.min2(x, &huge);
    // cosh(y) = 1 + t, so y = log(1 + t + sqrt(t^2 + 2 t)).
    let t = b.sub(&near, &one);
    let twice = b.add(&t, &t);
    let q = b.fma(&t, &t, &twice);
    let q = b.max2(&q, &zero);
    let (u, rest) = plus_root(b, &t, &q, &zero);
    let (sum, lost) = one_plus(b, &u);
    let rest = b.add(&rest, &lost);
    let y = log_or_large(b, x, &sum, &rest);
    let (inf, nan) = (b.f(f64::INFINITY), b.f(f64::NAN));
    let y = b.select_lt(x, &inf, &y, x);
    let y = b.select_lt(x, &one, &nan, &y);
    b.keep_nan(x, &y)
}

/// Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.
#[inline(always)]
pub fn atanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd(b, x, B::Real::ATANH);
    let (size, one, half) = (abs(b, x), b.f(1.0), b.f(0.5));
    let twice = b.add(&size, &size);
    let gap = b.sub(&one, &size);
    let q = b.div(&twice, &gap);
    let (u, lost) = one_plus(b, &q);
    let y = log_of(b, &u, Some(&lost), None);
    let inf = b.f(f64::INFINITY);
    let y = b.select_lt(&q, &inf, &y, &inf);
    let y = b.mul(&y, &half);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&size, &half, &small, &y);
    let nan = b.f(f64::NAN);
    let y = b.select_lt(&one, &size, &nan, &y);
    b.keep_nan(x, &y)
}
