//! Sine, cosine and tangent.

use super::{MathOps, Real, abs, horner, negated, with_sign};

/// Reduces an angle: returns the multiple of pi/2 nearest to the angle (as an integer in the low
/// bits), the reduced angle of magnitude at most pi/4, and the rounding error of the reduced angle.
#[inline(always)]
fn reduce_angle<B: MathOps>(b: &mut B, x: &B::V) -> (B::V, B::V, B::V) {
    let (two_over_pi, magic) = (b.f(std::f64::consts::FRAC_2_PI), b.f(B::Real::ROUND));
    let t = b.fma(x, &two_over_pi, &magic);
    let n = b.sub(&t, &magic);
    // The parts of pi/2 have so few bits that their products with n, and the first two differences, are exact.
    let [first, second, third, last] = B::Real::MINUS_HALF_PI.map(|part| b.f(part));
    let r = b.fma(&n, &first, x);
    let r = b.fma(&n, &second, &r);
    let high = b.fma(&n, &third, &r);
    let error = b.sub(&r, &high);
    let error = b.fma(&n, &third, &error);
    let rest = b.fma(&n, &last, &error);
    let reduced = b.add(&high, &rest);
    let error = b.sub(&high, &reduced);
    let error = b.add(&error, &rest);
    // The sums lose the sign of a zero.
    let (magnitude, min_normal) = (abs(b, x), b.f(B::Real::MIN_POSITIVE));
    let reduced = b.select_lt(&magnitude, &min_normal, x, &reduced);
    let (tb, mb) = (b.bits(&t), b.i(B::Real::ROUND_BITS));
    (b.isub(&tb, &mb), reduced, error)
}

/// Returns `even` or `odd`, depending on the lowest bit of the integer `n`.
#[inline(always)]
fn by_parity<B: MathOps>(b: &mut B, n: &B::V, even: &B::V, odd: &B::V) -> B::V {
    let one = b.i(1);
    let bit = b.iand(n, &one);
    // The bit becomes the exponent bit of 2.
    let bit = b.ishl(&bit, B::Real::BITS - 2);
    let (bit, half) = (b.float_of_bits(&bit), b.f(0.5));
    b.select_lt(&half, &bit, odd, even)
}

/// Returns the sine of the angle `n * pi/2 + r + error`.
#[inline(always)]
fn sine<B: MathOps>(b: &mut B, n: &B::V, r: &B::V, error: &B::V) -> B::V {
    let square = b.mul(r, r);
    let p = horner(b, &square, B::Real::SIN);
    let p = b.mul(&p, &square);
    let correction = b.fma(&p, r, error);
    let s = b.add(r, &correction);
    let s = with_sign(b, &s, r);
    let p = horner(b, &square, B::Real::COS);
    let (half, one) = (b.f(-0.5), b.f(1.0));
    let p = b.fma(&p, &square, &half);
    let c = b.fma(&p, &square, &one);
    let y = by_parity(b, n, &s, &c);
    let two = b.i(2);
    let sign = b.iand(n, &two);
    let sign = b.ishl(&sign, B::Real::BITS - 2);
    let bits = b.bits(&y);
    let bits = b.iadd(&bits, &sign);
    b.float_of_bits(&bits)
}

/// Sine, for arguments up to [`Real::TRIG_LIMIT`].
#[inline(always)]
pub fn sin<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, error) = reduce_angle(b, x);
    sine(b, &n, &r, &error)
}

/// Cosine, for arguments up to [`Real::TRIG_LIMIT`].
#[inline(always)]
pub fn cos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, error) = reduce_angle(b, x);
    let one = b.i(1);
    let n = b.iadd(&n, &one);
    sine(b, &n, &r, &error)
}

/// Tangent, for arguments up to [`Real::TRIG_LIMIT`]. For odd multiples of pi/2, the result is a
/// negated inverse, corrected for the rounding error of the reduced angle's tangent.
#[inline(always)]
pub fn tan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, error) = reduce_angle(b, x);
    let square = b.mul(&r, &r);
    let p = horner(b, &square, B::Real::TAN);
    let p = b.mul(&p, &square);
    let correction = b.fma(&p, &r, &error);
    let t = b.add(&r, &correction);
    let t = with_sign(b, &t, &r);
    let error = b.sub(&r, &t);
    let error = b.add(&error, &correction);
    let one = b.f(1.0);
    let inverse = b.div(&one, &t);
    // -1 / (t + error) = -1 / t + error / t^2.
    let inverse_square = b.mul(&inverse, &inverse);
    let inverse = negated(b, &inverse);
    let inverse = b.fma(&inverse_square, &error, &inverse);
    by_parity(b, &n, &t, &inverse)
}
