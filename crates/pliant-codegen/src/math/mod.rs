//! Elementary functions of float32 as sequences of simple operations, for scalars and vectors alike.
//!
//! A backend implements [`MathOps`] with its own values; the sequences are the same for all, and so are the results (up
//! to whether the machine has a fused multiply-add). Errors are measured by a test and listed in `docs/numerics.md`: at
//! most 2 ulp with fused multiply-add. Every function returns NaN for NaN.
//!
//! | module | owns |
//! |---|---|
//! | `exp` | `exp`, `sinh`, `cosh`, `tanh`, `sigmoid` |
//! | `log` | `log`, `log1p`, `asinh`, `acosh`, `atanh` |
//! | `trig` | `sin`, `cos`, `tan`, for arguments that are not huge ([`TRIG_LIMIT`]) |
//! | `arc` | `asin`, `acos`, `atan`, `atan2` |
//! | `erf` | `erf` |
//! | `measure` | the test that measures all of them |

mod arc;
mod erf;
mod exp;
mod log;
#[cfg(test)]
mod measure;
mod trig;

pub use arc::{acos, asin, atan, atan2};
pub use erf::erf;
pub use exp::{cosh, exp, sigmoid, sinh, tanh};
pub use log::{acosh, asinh, atanh, log, log1p};
pub use trig::{TRIG_LIMIT, cos, sin, tan};

/// The operations on float32 values (and int32 values of as many lanes) that the sequences need.
pub trait MathOps {
    /// A float or integer value, scalar or vector.
    type V: Clone;

    /// A float constant.
    fn f(&mut self, value: f32) -> Self::V;
    /// An int32 constant.
    fn i(&mut self, value: i32) -> Self::V;
    /// Float sum.
    fn add(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Float difference.
    fn sub(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Float product.
    fn mul(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Float quotient.
    fn div(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Square root.
    fn sqrt(&mut self, a: &Self::V) -> Self::V;
    /// `a * b + c`, fused where the machine does that fast.
    fn fma(&mut self, a: &Self::V, b: &Self::V, c: &Self::V) -> Self::V;
    /// `a < b ? a : b`: the second operand where one is NaN.
    fn min2(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// `a > b ? a : b`: the second operand where one is NaN.
    fn max2(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// `a < b ? x : y` over floats `a` and `b`.
    fn select_lt(&mut self, a: &Self::V, b: &Self::V, x: &Self::V, y: &Self::V) -> Self::V;
    /// The bits of floats as integers.
    fn bits(&mut self, a: &Self::V) -> Self::V;
    /// The floats of bits.
    fn float_of_bits(&mut self, a: &Self::V) -> Self::V;
    /// Integer sum, wrapping.
    fn iadd(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Integer difference, wrapping.
    fn isub(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Bitwise and.
    fn iand(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Bitwise or.
    fn ior(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Shift left by a constant.
    fn ishl(&mut self, a: &Self::V, by: u8) -> Self::V;
    /// Arithmetic shift right by a constant.
    fn isar(&mut self, a: &Self::V, by: u8) -> Self::V;
    /// Integers to floats.
    fn int_to_float(&mut self, a: &Self::V) -> Self::V;
}

/// Adding and subtracting this rounds a float of magnitude below 2^22 to an integer, and leaves
/// that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// The polynomial with these coefficients, that of the highest power first.
fn horner<B: MathOps>(b: &mut B, x: &B::V, coefficients: &[f32]) -> B::V {
    let mut acc = b.f(coefficients[0]);
    for &c in &coefficients[1..] {
        let c = b.f(c);
        acc = b.fma(&acc, x, &c);
    }
    acc
}

/// `x + x^3 * p(x^2)`: an odd function near 0.
fn odd<B: MathOps>(b: &mut B, x: &B::V, coefficients: &[f32]) -> B::V {
    let square = b.mul(x, x);
    let p = horner(b, &square, coefficients);
    let p = b.mul(&p, &square);
    let y = b.fma(&p, x, x);
    // Where x is a zero, a negative product would take its sign away.
    with_sign(b, &y, x)
}

/// The absolute value.
fn abs<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (bits, mask) = (b.bits(x), b.i(0x7fff_ffff));
    let bits = b.iand(&bits, &mask);
    b.float_of_bits(&bits)
}

/// `y` with the sign of `x`, where it has that or none.
fn with_sign<B: MathOps>(b: &mut B, y: &B::V, x: &B::V) -> B::V {
    let (bits, mask) = (b.bits(x), b.i(i32::MIN));
    let sign = b.iand(&bits, &mask);
    let y = b.bits(y);
    let y = b.ior(&y, &sign);
    b.float_of_bits(&y)
}

/// `-x`.
fn negated<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (bits, sign) = (b.bits(x), b.i(i32::MIN));
    let bits = b.iadd(&bits, &sign);
    b.float_of_bits(&bits)
}

/// `y`, but NaN where `x` is.
fn keep_nan<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let inf = b.f(f32::INFINITY);
    let below = b.select_lt(x, &inf, y, x);
    // `x < inf` fails for NaN and for infinity; only there does `y` differ from what `below` has.
    let top = b.f(f32::MAX);
    b.select_lt(&top, x, y, &below)
}
