//! Sine, cosine and tangent.

use super::{MathOps, Real, abs, horner, negated, with_sign};

/// The number of quarter turns (as an integer, in the low bits), what is left of the angle, at most pi/4, and what is
/// lost of that.
#[inline(always)]
fn reduced<B: MathOps>(b: &mut B, x: &B::V) -> (B::V, B::V, B::V) {
    let (per_turn, magic) = (b.f(std::f64::consts::FRAC_2_PI), b.f(B::Real::ROUND));
    let t = b.fma(x, &per_turn, &magic);
    let n = b.sub(&t, &magic);
    // pi/2 in parts of few enough bits that their products with n, and the first two differences, are exact.
    let [first, second, third, last] = B::Real::QUARTERS.map(|part| b.f(part));
    let r = b.fma(&n, &first, x);
    let r = b.fma(&n, &second, &r);
    let near = b.fma(&n, &third, &r);
    let lost = b.sub(&r, &near);
    let lost = b.fma(&n, &third, &lost);
    let rest = b.fma(&n, &last, &lost);
    let left = b.add(&near, &rest);
    let lost = b.sub(&near, &left);
    let lost = b.add(&lost, &rest);
    // The sums take the sign of a zero away.
    let (size, least) = (abs(b, x), b.f(B::Real::MIN_POSITIVE));
    let left = b.select_lt(&size, &least, x, &left);
    let (tb, mb) = (b.bits(&t), b.i(B::Real::ROUND_BITS));
    (b.isub(&tb, &mb), left, lost)
}

/// `even` or `odd`, by the lowest bit of an integer.
#[inline(always)]
fn by_parity<B: MathOps>(b: &mut B, n: &B::V, even: &B::V, odd: &B::V) -> B::V {
    let one = b.i(1);
    let bit = b.iand(n, &one);
    // The bit becomes the exponent of 2.
    let bit = b.ishl(&bit, B::Real::BITS - 2);
    let (bit, half) = (b.float_of_bits(&bit), b.f(0.5));
    b.select_lt(&half, &bit, odd, even)
}

/// The sine of an angle of `n` quarter turns and `r`, of which `lost` is missing.
#[inline(always)]
fn sine<B: MathOps>(b: &mut B, n: &B::V, r: &B::V, lost: &B::V) -> B::V {
    let square = b.mul(r, r);
    let p = horner(b, &square, B::Real::SIN);
    let p = b.mul(&p, &square);
    let more = b.fma(&p, r, lost);
    let s = b.add(r, &more);
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
    let (n, r, lost) = reduced(b, x);
    sine(b, &n, &r, &lost)
}

/// Cosine, for arguments up to [`Real::TRIG_LIMIT`].
#[inline(always)]
pub fn cos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, lost) = reduced(b, x);
    let one = b.i(1);
    let n = b.iadd(&n, &one);
    sine(b, &n, &r, &lost)
}

/// Tangent, for arguments up to [`Real::TRIG_LIMIT`]. What the sum rounds away is put back into its inverse.
#[inline(always)]
pub fn tan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, lost) = reduced(b, x);
    let square = b.mul(&r, &r);
    let p = horner(b, &square, B::Real::TAN);
    let p = b.mul(&p, &square);
    let more = b.fma(&p, &r, &lost);
    let t = b.add(&r, &more);
    let t = with_sign(b, &t, &r);
    let lost = b.sub(&r, &t);
    let lost = b.add(&lost, &more);
    let one = b.f(1.0);
    let inverse = b.div(&one, &t);
    // -1 / (t + lost) = -1 / t + lost / t^2.
    let back = b.mul(&inverse, &inverse);
    let inverse = negated(b, &inverse);
    let inverse = b.fma(&back, &lost, &inverse);
    by_parity(b, &n, &t, &inverse)
}
