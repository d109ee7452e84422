//! The larger and the smaller of two numbers.

use super::MathOps;

/// The larger of both; NaN where one is, and the positive one of two zeros.
#[inline(always)]
pub fn maximum<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    // Each order gives its second operand for zeros and NaN; what both have in common is the positive zero.
    let (one, other) = (b.max2(x, y), b.max2(y, x));
    let (one, other) = (b.bits(&one), b.bits(&other));
    let common = b.iand(&one, &other);
    let common = b.float_of_bits(&common);
    let z = b.keep_nan(x, &common);
    b.keep_nan(y, &z)
}

/// The smaller of both; NaN where one is, and the negative one of two zeros.
#[inline(always)]
pub fn minimum<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let (one, other) = (b.min2(x, y), b.min2(y, x));
    let (one, other) = (b.bits(&one), b.bits(&other));
    let joined = b.ior(&one, &other);
    let joined = b.float_of_bits(&joined);
    let z = b.keep_nan(x, &joined);
    b.keep_nan(y, &z)
}
