//! The error function.

use super::{MathOps, abs, exp, horner, keep_nan, with_sign};

/// Error function: a polynomial up to 1; beyond, 1 less the exponential of one.
pub fn erf<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let square = b.mul(x, x);
    let p = horner(
        b,
        &square,
        &[
            7.806_903e-5,
            -7.997_853e-4,
            5.187_162e-3,
            -2.685_334_7e-2,
            1.128_357_9e-1,
            -3.761_262_6e-1,
            1.283_791_7e-1,
        ],
    );
    let small = b.fma(&p, x, x);
    // From 4 on the error function rounds to 1.
    let (four, one) = (b.f(4.0), b.f(1.0));
    let t = b.min2(&size, &four);
    let q = horner(
        b,
        &t,
        &[
            2.170_054_4e-5,
            -4.414_967_6e-4,
            4.205_361_5e-3,
            -2.521_045_7e-2,
            1.084_221_8e-1,
            6.332_164e-1,
            1.295_803e-1,
            -1.884_659_4e-4,
        ],
    );
    let q = b.add(&q, &t);
    let zero = b.f(0.0);
    let q = b.sub(&zero, &q);
    let e = exp(b, &q);
    let large = b.sub(&one, &e);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&size, &one, &small, &large);
    keep_nan(b, x, &y)
}
