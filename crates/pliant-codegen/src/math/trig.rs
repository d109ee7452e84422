//! Sine, cosine and tangent.

use super::{MathOps, ROUND, horner, negated, odd, with_sign};

/// The largest argument whose distance from a multiple of pi/2 these sequences find: beyond, a backend calls the
/// platform's function.
pub const TRIG_LIMIT: f32 = 8192.0;

/// The number of quarter turns (as an integer, in the low bits), what is left of the angle, at most pi/4, and what is
/// lost of that.
fn reduced<B: MathOps>(b: &mut B, x: &B::V) -> (B::V, B::V, B::V) {
    let (per_turn, magic) = (b.f(std::f32::consts::FRAC_2_PI), b.f(ROUND));
    let t = b.fma(x, &per_turn, &magic);
    let n = b.sub(&t, &magic);
    // pi/2 in parts of few enough bits that their products with n are exact.
    let mut r = x.clone();
    for part in [-1.570_312_5, -4.837_513e-4, -7.549_533_6e-8] {
        let part = b.f(part);
        r = b.fma(&n, &part, &r);
    }
    let last = b.f(-2.563_344e-12);
    let left = b.fma(&n, &last, &r);
    let lost = b.sub(&r, &left);
    let lost = b.fma(&n, &last, &lost);
    let (tb, mb) = (b.bits(&t), b.i(ROUND.to_bits() as i32));
    (b.isub(&tb, &mb), left, lost)
}

/// `even` or `odd`, by the lowest bit of an integer.
fn by_parity<B: MathOps>(b: &mut B, n: &B::V, even: &B::V, odd: &B::V) -> B::V {
    let one = b.i(1);
    let bit = b.iand(n, &one);
    let (bit, half) = (b.int_to_float(&bit), b.f(0.5));
    b.select_lt(&half, &bit, odd, even)
}

/// The sine of an angle of `n` quarter turns and `r`.
fn sine<B: MathOps>(b: &mut B, n: &B::V, r: &B::V) -> B::V {
    let s = odd(b, r, &[2.833_043_7e-6, -1.985_309e-4, 8.333_379e-3, -1.666_666_7e-1]);
    let square = b.mul(r, r);
    let p = horner(b, &square, &[2.443_256_2e-5, -1.388_731_1e-3, 4.166_664_6e-2]);
    let (half, one) = (b.f(-0.5), b.f(1.0));
    let p = b.fma(&p, &square, &half);
    let c = b.fma(&p, &square, &one);
    let y = by_parity(b, n, &s, &c);
    let two = b.i(2);
    let sign = b.iand(n, &two);
    let sign = b.ishl(&sign, 30);
    let bits = b.bits(&y);
    let bits = b.iadd(&bits, &sign);
    b.float_of_bits(&bits)
}

/// Sine, for arguments up to [`TRIG_LIMIT`].
pub fn sin<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, _) = reduced(b, x);
    sine(b, &n, &r)
}

/// Cosine, for arguments up to [`TRIG_LIMIT`].
pub fn cos<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, _) = reduced(b, x);
    let one = b.i(1);
    let n = b.iadd(&n, &one);
    sine(b, &n, &r)
}

/// Tangent, for arguments up to [`TRIG_LIMIT`]. What the sum rounds away is put back into its inverse.
pub fn tan<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (n, r, lost) = reduced(b, x);
    let square = b.mul(&r, &r);
    let p = horner(
        b,
        &square,
        &[
            4.372_341_6e-3,
            9.882_983e-5,
            1.082_709_9e-2,
            2.128_629_4e-2,
            5.405_890_6e-2,
            1.333_267_5e-1,
            3.333_335e-1,
        ],
    );
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
