//! The exponential and what is made of it.

use super::{MathOps, ROUND, abs, horner, keep_nan, odd, with_sign};

/// `e^x`: two-constant reduction, degree 7, two-step scaling that reaches infinity and the subnormals.
pub fn exp<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (hi, lo) = (b.f(89.0), b.f(-104.0));
    let x = b.min2(&hi, x);
    let x = b.max2(&lo, &x);
    let (log2e, magic) = (b.f(std::f32::consts::LOG2_E), b.f(ROUND));
    let t = b.fma(&x, &log2e, &magic);
    let n = b.sub(&t, &magic);
    let (c1, c2) = (b.f(-0.693_359_4), b.f(2.121_944_4e-4));
    let r = b.fma(&n, &c1, &x);
    let r = b.fma(&n, &c2, &r);
    let p = horner(
        b,
        &r,
        &[1.976_424_5e-4, 1.393_234_2e-3, 8.333_543e-3, 4.166_649_3e-2, 1.666_666_6e-1, 0.5],
    );
    let r2 = b.mul(&r, &r);
    let y = b.fma(&p, &r2, &r);
    let one = b.f(1.0);
    let y = b.add(&y, &one);
    // The integer is in the low bits of `t`; half of it scales first so that neither factor leaves the normal range.
    let (tb, mb) = (b.bits(&t), b.i(ROUND.to_bits() as i32));
    let n = b.isub(&tb, &mb);
    let half = b.isar(&n, 1);
    let rest = b.isub(&n, &half);
    let bias = b.i(127);
    let mut y = y;
    for part in [half, rest] {
        let e = b.iadd(&part, &bias);
        let e = b.ishl(&e, 23);
        let scale = b.float_of_bits(&e);
        y = b.mul(&y, &scale);
    }
    y
}

/// `e^|x| / 2` and `e^-|x| / 2`, where neither overflows before the hyperbolic functions do.
fn halves<B: MathOps>(b: &mut B, size: &B::V) -> (B::V, B::V) {
    // e^(|x| - ln 2), with what the subtraction loses put back as a factor.
    let (half, quarter, limit) = (b.f(0.5), b.f(0.25), b.f(88.0));
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
pub fn sinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let large = b.sub(&up, &down);
    let large = with_sign(b, &large, x);
    let small = odd(b, x, &[2.782_213_2e-6, 1.984_289_6e-4, 8.333_31e-3, 1.666_666_7e-1]);
    let one = b.f(1.0);
    let y = b.select_lt(&size, &one, &small, &large);
    keep_nan(b, x, &y)
}

/// Hyperbolic cosine.
pub fn cosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let y = b.add(&up, &down);
    keep_nan(b, x, &y)
}

/// Hyperbolic tangent: a polynomial near 0, else by the exponential.
pub fn tanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let small = odd(
        b,
        x,
        &[2.152_867_4e-3, -8.190_17e-3, 2.170_694e-2, -5.394_818e-2, 1.333_322e-1, -3.333_333e-1],
    );
    let (one, two, limit) = (b.f(1.0), b.f(2.0), b.f(0.625));
    let twice = b.add(&size, &size);
    let e = exp(b, &twice);
    let d = b.add(&e, &one);
    let q = b.div(&two, &d);
    let large = b.sub(&one, &q);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&size, &limit, &small, &large);
    keep_nan(b, x, &y)
}

/// Logistic function, by the exponential that does not overflow.
pub fn sigmoid<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one) = (b.f(0.0), b.f(1.0));
    let size = abs(b, x);
    let minus = b.sub(&zero, &size);
    let e = exp(b, &minus);
    let d = b.add(&one, &e);
    let over = b.select_lt(x, &zero, &e, &one);
    let y = b.div(&over, &d);
    keep_nan(b, x, &y)
}
