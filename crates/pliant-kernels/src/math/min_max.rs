//! Maximum and minimum of two numbers, as in IEEE 754-2019.

use super::MathOps;

/// Returns the maximum of two numbers; NaN if either is NaN, and +0 for zeros of different signs.
#[inline(always)]
pub fn maximum<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    // `max2` returns its second operand for two zeros. The bitwise and of both orders is +0.
    let (one, other) = (b.max2(x, y), b.max2(y, x));
    let (one, other) = (b.bits(&one), b.bits(&other));
    let common = b.iand(&one, &other);
    let common = b.float_of_bits(&common);
    let z = b.keep_nan(x, &common);
    b.keep_nan(y, &z)
}

/// Returns the minimum of two numbers; NaN if either is NaN, and -0 for zeros of different signs.
#[inline(always)]
pub fn minimum<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let (one, other) = (b.min2(x, y), b.min2(y, x));
    let (one, other) = (b.bits(&one), b.bits(&other));
    let joined = b.ior(&one, &other);
    let joined = b.float_of_bits(&joined);
    let z = b.keep_nan(x, &joined);
    b.keep_nan(y, &z)
}
