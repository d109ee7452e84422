//! Powers of float32, computed in float64.

use super::{MathOps, Real, abs, horner, with_sign};

/// Coefficients of `(log(1 + f) - f + f^2 / 2) / f^3`, for `1 + f` from `sqrt(1/2)` to `sqrt(2)`, with the precision
/// that float32 powers need.
const LOG: &[f64] = &[
    0.055_550_945_560_644_93,
    -0.097_276_593_897_608_98,
    0.098_045_643_860_970_82,
    -0.099_315_531_379_480_22,
    0.110_482_503_771_573_95,
    -0.124_999_277_171_860_18,
    0.142_878_860_999_825_02,
    -0.166_667_198_060_746_6,
    0.199_999_737_278_963_75,
    -0.249_999_994_987_083,
    0.333_333_333_848_037_54,
];

/// Returns `x^y` for float32 numbers, computed in float64. The caller rounds the result to float32.
/// Special values are those of IEEE 754 and NumPy.
#[inline(always)]
pub fn pow<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let (zero, one, big) = (b.f(0.0), b.f(1.0), b.f(1e300));
    let magnitude = abs(b, x);
    let log = log_of(b, &magnitude);
    // The logarithms of 0 and infinity become numbers far below or above all others.
    let (min, max) = (b.f(1e-60), b.f(f64::from(f32::MAX)));
    let (low, high) = (b.f(-1e300), b.f(1e300));
    let log = b.select_lt(&magnitude, &min, &low, &log);
    let log = b.select_lt(&max, &magnitude, &high, &log);
    let exponent_magnitude = abs(b, y);
    // Bound the exponent, so that an infinite exponent times the logarithm 0 of 1 is 0 instead of NaN.
    let (bounded, minus) = (b.min2(y, &big), b.f(-1e300));
    let bounded = b.max2(&bounded, &minus);
    let power = b.mul(&bounded, &log);
    let value = exp_of(b, &power);
    // The power of a negative number is negative if the exponent is odd, and NaN if the exponent is not an integer.
    let even = b.f((1u64 << 30) as f64);
    let n = b.min2(&exponent_magnitude, &even);
    let half = b.f(0.5);
    let halved = b.mul(&n, &half);
    let (fractional, odd) = (fraction(b, &n), fraction(b, &halved));
    let signed = with_sign(b, &value, x);
    let signed = b.select_lt(&zero, &fractional, &value, &signed);
    let value = b.select_lt(&zero, &odd, &signed, &value);
    let (nan, largest) = (b.f(f64::NAN), b.f(f64::from(f32::MAX)));
    let negative_base = b.select_lt(&zero, &fractional, &nan, &value);
    let negative_base = b.select_lt(&largest, &magnitude, &value, &negative_base);
    let value = b.select_lt(x, &zero, &negative_base, &value);
    let value = b.keep_nan(x, &value);
    let value = b.keep_nan(y, &value);
    // x^0 is 1 for all x including NaN, and 1^y is 1 for all y.
    let epsilon = b.f(1e-60);
    let from_one = b.sub(x, &one);
    let from_one = abs(b, &from_one);
    let value = b.select_lt(&from_one, &epsilon, &one, &value);
    b.select_lt(&exponent_magnitude, &epsilon, &one, &value)
}

/// Returns the distance of `n`, a number from 0 to 2^31, from the nearest integer.
#[inline(always)]
fn fraction<B: MathOps<Real = f64>>(b: &mut B, n: &B::V) -> B::V {
    let magic = b.f(f64::ROUND);
    let whole = b.add(n, &magic);
    let whole = b.sub(&whole, &magic);
    let rest = b.sub(n, &whole);
    abs(b, &rest)
}

/// Returns `x^y` for positive, finite `x` and finite `y`. Also returns a check value, which is
/// between [`MIN_POSITIVE_BOUND`] and [`MAX_FINITE_BOUND`] if and only if the operands satisfy
/// these conditions.
#[inline(always)]
pub fn pow_positive_finite<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> (B::V, B::V) {
    let log = log_of(b, x);
    let power = b.mul(y, &log);
    // The difference of a number and itself is NaN if it is not finite.
    let (from_x, from_y) = (b.sub(x, x), b.sub(y, y));
    let (sum, above) = (b.add(&from_x, &from_y), b.f(2.0 * MAX_FINITE_BOUND));
    let check = b.add(&sum, x);
    // NaN becomes a number above the bound.
    let check = b.min2(&check, &above);
    (exp_of(b, &power), check)
}

/// A lower bound of all positive float32 numbers, including subnormals.
pub const MIN_POSITIVE_BOUND: f64 = 1e-46;
/// The largest finite float32.
pub const MAX_FINITE_BOUND: f64 = f32::MAX as f64;

/// Returns the logarithm of a positive, finite float32 number.
#[inline(always)]
fn log_of<B: MathOps<Real = f64>>(b: &mut B, x: &B::V) -> B::V {
    let bits = b.bits(x);
    let offset = b.i(f64::ONE_BITS - f64::SQRT_HALF_BITS);
    let ix = b.iadd(&bits, &offset);
    let e = b.ishr(&ix, f64::MANTISSA);
    let (mask, root) = (b.i((1 << f64::MANTISSA) - 1), b.i(f64::SQRT_HALF_BITS));
    let m = b.iand(&ix, &mask);
    let m = b.iadd(&m, &root);
    let m = b.float_of_bits(&m);
    let (unbias, magic) = (b.i(f64::ROUND_BITS - f64::BIAS), b.f(f64::ROUND));
    let e = b.iadd(&e, &unbias);
    let e = b.float_of_bits(&e);
    let e = b.sub(&e, &magic);
    let one = b.f(1.0);
    let f = b.sub(&m, &one);
    let (p, z) = (horner(b, &f, LOG), b.mul(&f, &f));
    let half = b.f(-0.5);
    let p = b.fma(&p, &f, &half);
    let p = b.fma(&p, &z, &f);
    let ln2 = b.f(std::f64::consts::LN_2);
    b.fma(&e, &ln2, &p)
}

/// Returns `e^x` with the precision that float32 needs.
#[inline(always)]
fn exp_of<B: MathOps<Real = f64>>(b: &mut B, x: &B::V) -> B::V {
    let (lo, hi) = (b.f(-110.0), b.f(95.0));
    let x = b.min2(x, &hi);
    let x = b.max2(&x, &lo);
    let (log2e, magic) = (b.f(std::f64::consts::LOG2_E), b.f(f64::ROUND));
    let t = b.fma(&x, &log2e, &magic);
    let n = b.sub(&t, &magic);
    let ln2 = b.f(-std::f64::consts::LN_2);
    let r = b.fma(&n, &ln2, &x);
    let (p, r2, one) = (horner(b, &r, f32::EXP), b.mul(&r, &r), b.f(1.0));
    let y = b.fma(&p, &r2, &r);
    let y = b.add(&y, &one);
    b.scale(&y, &n, &t)
}
