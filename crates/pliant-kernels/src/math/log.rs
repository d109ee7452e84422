//! The logarithm and the inverse hyperbolic functions.

use super::{MathOps, Real, abs, horner, odd_polynomial, with_sign};

/// Natural logarithm; `-inf` at 0, NaN for negative numbers.
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
    let y = special_cases(b, x, &y);
    b.keep_nan(x, &y)
}

/// Replaces the logarithm `y` for special arguments `x`: infinity for infinity, `-inf` for 0, NaN for negative numbers.
#[inline(always)]
fn special_cases<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let (inf, minus, nan) = (b.f(f64::INFINITY), b.f(f64::NEG_INFINITY), b.f(f64::NAN));
    let zero = b.f(0.0);
    let y = b.select_lt(x, &inf, y, x);
    let y = b.select_lt(&zero, x, &y, &minus);
    b.select_lt(x, &zero, &nan, &y)
}

/// Returns `log(x + rest) + shift * ln 2` for a positive, normal and finite `x`, and a `rest` below the precision of `x`. An absent
/// `rest` or `shift` counts as 0.
#[inline(always)]
fn log_of<B: MathOps>(b: &mut B, x: &B::V, rest: Option<&B::V>, shift: Option<&B::V>) -> B::V {
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    let bits = b.bits(x);
    let offset = b.i(B::Real::ONE_BITS - B::Real::SQRT_HALF_BITS);
    let ix = b.iadd(&bits, &offset);
    let e = b.ishr(&ix, B::Real::MANTISSA);
    let mask = b.i((1 << B::Real::MANTISSA) - 1);
    let m = b.iand(&ix, &mask);
    let root = b.i(B::Real::SQRT_HALF_BITS);
    let m = b.iadd(&m, &root);
    let m = b.float_of_bits(&m);
    // Convert the integer to float: add it to the low bits of `ROUND`, and subtract `ROUND`.
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
        // The factor 2^-e that scales x to m.
        let twice = b.i(2 * B::Real::BIAS);
        let scale = b.isub(&twice, &e);
        let scale = b.ishl(&scale, B::Real::MANTISSA);
        let scale = b.float_of_bits(&scale);
        // For the largest exponents, the bits would be those of a negative number.
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

/// Returns `1 + x` and its rounding error, for any `x` (two-sum).
#[inline(always)]
fn one_plus<B: MathOps>(b: &mut B, x: &B::V) -> (B::V, B::V) {
    let one = b.f(1.0);
    let u = b.add(x, &one);
    let recovered = b.sub(&u, x);
    let from_one = b.sub(&one, &recovered);
    let rest = b.sub(&u, &one);
    let from_x = b.sub(x, &rest);
    (u, b.select_lt(&one, x, &from_one, &from_x))
}

/// Returns `log(1 + x)`, also accurate for small `x`.
#[inline(always)]
pub fn log1p<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (u, error) = one_plus(b, x);
    let y = log_of(b, &u, Some(&error), None);
    let y = special_cases(b, &u, &y);
    // The sign of a zero is kept.
    let (magnitude, tiny) = (abs(b, x), b.f(B::Real::MIN_POSITIVE));
    let y = b.select_lt(&magnitude, &tiny, x, &y);
    b.keep_nan(x, &y)
}

/// The limit up to which the inverse hyperbolic functions compute the square of the argument. For
/// larger arguments, the square may overflow, and 1 is negligible compared with it.
const HUGE: f64 = 1e9;

/// Inverse hyperbolic sine of `x`.
#[inline(always)]
pub fn asinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd_polynomial(b, x, B::Real::ASINH);
    let magnitude = abs(b, x);
    let (huge, half, zero) = (b.f(HUGE), b.f(0.5), b.f(0.0));
    let a = b.min2(&magnitude, &huge);
    let s = b.mul(&a, &a);
    let minus = b.sub(&zero, &s);
    let low = b.fma(&a, &a, &minus);
    let (t, error) = one_plus(b, &s);
    let low = b.add(&low, &error);
    let (sum, rest) = add_sqrt(b, &a, &t, &low);
    let y = log_or_log_twice(b, &magnitude, &sum, &rest);
    let inf = b.f(f64::INFINITY);
    let y = b.select_lt(&magnitude, &inf, &y, &magnitude);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&magnitude, &half, &small, &y);
    b.keep_nan(x, &y)
}

/// Returns `log(sum + rest)`, or `log(2 x)` if `x` is at least [`HUGE`].
#[inline(always)]
fn log_or_log_twice<B: MathOps>(b: &mut B, x: &B::V, sum: &B::V, rest: &B::V) -> B::V {
    let (huge, zero, one) = (b.f(HUGE), b.f(0.0), b.f(1.0));
    let arg = b.select_lt(x, &huge, sum, x);
    let rest = b.select_lt(x, &huge, rest, &zero);
    let shift = b.select_lt(x, &huge, &zero, &one);
    log_of(b, &arg, Some(&rest), Some(&shift))
}

/// Returns `a + sqrt(t + low)` and its rounding error.
#[inline(always)]
fn add_sqrt<B: MathOps>(b: &mut B, a: &B::V, t: &B::V, low: &B::V) -> (B::V, B::V) {
    let root = b.sqrt(t);
    let zero = b.f(0.0);
    let minus = b.sub(&zero, &root);
    let error = b.fma(&minus, &root, t);
    let error = b.add(&error, low);
    // Divide by twice the root. An approximate inverse suffices for such a small number.
    let (inverse, bits, half) = (b.i(B::Real::INVERSE_BITS), b.bits(&root), b.f(0.5));
    let inverse = b.isub(&inverse, &bits);
    let inverse = b.float_of_bits(&inverse);
    let inverse = b.mul(&inverse, &half);
    let error = b.mul(&error, &inverse);
    let sum = b.add(a, &root);
    // Either operand may be the larger one.
    let recovered = b.sub(&sum, &root);
    let of_a = b.sub(a, &recovered);
    let recovered = b.sub(&sum, a);
    let of_root = b.sub(&root, &recovered);
    let rounding = b.select_lt(a, &root, &of_a, &of_root);
    let rest = b.add(&rounding, &error);
    (sum, rest)
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (one, huge, zero) = (b.f(1.0), b.f(HUGE), b.f(0.0));
    let bounded = b.min2(x, &huge);
    // cosh(y) = 1 + t, so y = log(1 + t + sqrt(t^2 + 2 t)).
    let t = b.sub(&bounded, &one);
    let twice = b.add(&t, &t);
    let q = b.fma(&t, &t, &twice);
    let q = b.max2(&q, &zero);
    let (u, rest) = add_sqrt(b, &t, &q, &zero);
    let (sum, error) = one_plus(b, &u);
    let rest = b.add(&rest, &error);
    let y = log_or_log_twice(b, x, &sum, &rest);
    let (inf, nan) = (b.f(f64::INFINITY), b.f(f64::NAN));
    let y = b.select_lt(x, &inf, &y, x);
    let y = b.select_lt(x, &one, &nan, &y);
    b.keep_nan(x, &y)
}

/// Inverse hyperbolic tangent; infinite at -1 and 1, NaN outside.
#[inline(always)]
pub fn atanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd_polynomial(b, x, B::Real::ATANH);
    let (magnitude, one, half) = (abs(b, x), b.f(1.0), b.f(0.5));
    let twice = b.add(&magnitude, &magnitude);
    let one_minus = b.sub(&one, &magnitude);
    let q = b.div(&twice, &one_minus);
    let (u, error) = one_plus(b, &q);
    let y = log_of(b, &u, Some(&error), None);
    let inf = b.f(f64::INFINITY);
    let y = b.select_lt(&q, &inf, &y, &inf);
    let y = b.mul(&y, &half);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&magnitude, &half, &small, &y);
    let nan = b.f(f64::NAN);
    let y = b.select_lt(&one, &magnitude, &nan, &y);
    b.keep_nan(x, &y)
}
