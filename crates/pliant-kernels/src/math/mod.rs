//! Elementary functions as sequences of simple operations, for scalars and for vectors of any
//! width.
//!
//! Code generators implement [`MathOps`] with their own values, and [`crate::vector_math`]
//! implements it with the vectors of each instruction set. Both use the same sequences and
//! constants (`polynomial_coefficients`), so their results are equal, except on machines without
//! fused multiply-add. A test measures the errors, which `docs/reference/numerics.md` lists: at
//! most 2 ulp in float32 and 2.3 in float64 with fused multiply-add. Every function returns NaN for
//! NaN.
//!
//! | module | owns |
//! |---|---|
//! | `polynomial_coefficients` | the coefficients, for float32 and for float64 |
//! | `exp` | `exp`, `sinh`, `cosh`, `tanh`, `sigmoid`, `silu` |
//! | `log` | `log`, `log1p`, `asinh`, `acosh`, `atanh` |
//! | `trig` | `sin`, `cos`, `tan`, for arguments up to [`Real::TRIG_LIMIT`] |
//! | `inverse_trig` | `asin`, `acos`, `atan`, `atan2` |
//! | `erf` | `erf` |
//! | `gelu` | `gelu` |
//! | `min_max` | `maximum`, `minimum` |
//! | `pow` | `pow` of float32, in float64 |
//! | `accuracy_tests` | the test that measures the errors |

#[cfg(test)]
mod accuracy_tests;
mod erf;
mod exp;
mod gelu;
mod inverse_trig;
mod log;
mod min_max;
mod polynomial_coefficients;
mod pow;
mod trig;

pub use erf::erf;
pub use exp::{cosh, exp, exp_within, sigmoid, silu, sinh, tanh};
pub use gelu::gelu;
pub use inverse_trig::{acos, asin, atan, atan2};
pub use log::{acosh, asinh, atanh, log, log1p};
pub use min_max::{maximum, minimum};
pub use polynomial_coefficients::Real;
pub use pow::{MAX_FINITE_BOUND, MIN_POSITIVE_BOUND, pow, pow_positive_finite};
pub use trig::{cos, sin, tan};

/// The operations from which elementary functions are built. The operations work on floats of one
/// type, and on integers with the same number of lanes and bits.
pub trait MathOps {
    /// The float type on which the operations work.
    type Real: Real;
    /// A float or integer value, scalar or vector.
    type V: Clone;

    /// Returns a float constant, rounded to the type.
    fn f(&mut self, value: f64) -> Self::V;
    /// Returns an integer constant: the low bits of `value`.
    fn i(&mut self, value: i64) -> Self::V;
    /// Returns the sum of two floats.
    fn add(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the difference of two floats.
    fn sub(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the product of two floats.
    fn mul(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the quotient of two floats.
    fn div(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the square root of a float.
    fn sqrt(&mut self, a: &Self::V) -> Self::V;
    /// Returns `a * b + c`, fused if the machine has such an instruction.
    fn fma(&mut self, a: &Self::V, b: &Self::V, c: &Self::V) -> Self::V;
    /// Returns `a < b ? x : y` for floats `a` and `b`.
    fn select_lt(&mut self, a: &Self::V, b: &Self::V, x: &Self::V, y: &Self::V) -> Self::V;
    /// Returns `y`, or NaN if `x` is NaN.
    fn keep_nan(&mut self, x: &Self::V, y: &Self::V) -> Self::V;
    /// Returns the bits of a float as an integer.
    fn bits(&mut self, a: &Self::V) -> Self::V;
    /// Returns the float whose bits are the integer `a`.
    fn float_of_bits(&mut self, a: &Self::V) -> Self::V;
    /// Returns the sum of two integers; wraps on overflow.
    fn iadd(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the difference of two integers; wraps on overflow.
    fn isub(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the bitwise and of two integers.
    fn iand(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Returns the bitwise or of two integers.
    fn ior(&mut self, a: &Self::V, b: &Self::V) -> Self::V;
    /// Shifts an integer left by a constant number of bits.
    fn ishl(&mut self, a: &Self::V, by: u8) -> Self::V;
    /// Shifts an unsigned integer right by a constant number of bits.
    fn ishr(&mut self, a: &Self::V, by: u8) -> Self::V;

    /// Returns `a < b ? a : b`: the second operand if one of them is NaN.
    #[inline(always)]
    fn min2(&mut self, a: &Self::V, b: &Self::V) -> Self::V {
        self.select_lt(a, b, a, b)
    }

    /// Returns `a > b ? a : b`: the second operand if one of them is NaN.
    #[inline(always)]
    fn max2(&mut self, a: &Self::V, b: &Self::V) -> Self::V {
        self.select_lt(b, a, a, b)
    }

    /// Returns `y * 2^n` for `y` near 1, including overflow and subnormal results. `t` is `n +
    /// ROUND` ([`Real::ROUND`]), whose low bits are the integer `n`.
    #[inline(always)]
    fn scale(&mut self, y: &Self::V, n: &Self::V, t: &Self::V) -> Self::V {
        scale_by_parts(self, y, n, t)
    }

    /// Returns `y * 2^n` for `y` near 1 if the result is a normal number. Other results are unspecified, also for NaN.
    /// `t` is `n + ROUND` ([`Real::ROUND`]).
    #[inline(always)]
    fn scale_normal(&mut self, y: &Self::V, _n: &Self::V, t: &Self::V) -> Self::V {
        add_to_exponent(self, y, t)
    }
}

/// Returns `y * 2^n` by adding `n` to the exponent, for a finite `y` and a normal result. `t` is `n + ROUND`
/// ([`Real::ROUND`]); the left shift to the exponent drops the bits of `ROUND`.
#[inline(always)]
pub fn add_to_exponent<B: MathOps + ?Sized>(b: &mut B, y: &B::V, t: &B::V) -> B::V {
    let (bits, n) = (b.bits(y), b.bits(t));
    let exponent = b.ishl(&n, B::Real::MANTISSA);
    let bits = b.iadd(&bits, &exponent);
    b.float_of_bits(&bits)
}

/// Implements [`MathOps::scale`] (`y * 2^n`) for machines without an instruction for this
/// operation.
#[inline(always)]
pub fn scale_by_parts<B: MathOps + ?Sized>(b: &mut B, y: &B::V, n: &B::V, t: &B::V) -> B::V {
    // Scale by 2^(n/2) first, so that both factors are normal numbers.
    let (half, magic) = (b.f(0.5), b.f(B::Real::ROUND));
    let h = b.fma(n, &half, &magic);
    let (h, whole) = (b.bits(&h), b.bits(t));
    let rest = b.isub(&whole, &h);
    let one = b.i(B::Real::ONE_BITS);
    // The shifts drop the bits of `Real::ROUND`.
    let mut y = y.clone();
    for part in [h, rest] {
        let e = b.ishl(&part, B::Real::MANTISSA);
        let e = b.iadd(&e, &one);
        let factor = b.float_of_bits(&e);
        y = b.mul(&y, &factor);
    }
    y
}

/// Evaluates the polynomial with these coefficients, highest power first, by Horner's method.
#[inline(always)]
fn horner<B: MathOps>(b: &mut B, x: &B::V, coefficients: &[f64]) -> B::V {
    let mut acc = b.f(coefficients[0]);
    for &c in &coefficients[1..] {
        let c = b.f(c);
        acc = b.fma(&acc, x, &c);
    }
    acc
}

/// Returns `x + x^3 * p(x^2)`, where `p` is the polynomial with these coefficients. This approximates an odd function near 0.
#[inline(always)]
fn odd_polynomial<B: MathOps>(b: &mut B, x: &B::V, coefficients: &[f64]) -> B::V {
    let square = b.mul(x, x);
    let p = horner(b, &square, coefficients);
    let p = b.mul(&p, &square);
    let y = b.fma(&p, x, x);
    // Keep the sign of a zero, which the sum with a negative product would lose.
    with_sign(b, &y, x)
}

/// Returns the absolute value of `x`.
#[inline(always)]
fn abs<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (bits, mask) = (b.bits(x), b.i(!B::Real::SIGN));
    let bits = b.iand(&bits, &mask);
    b.float_of_bits(&bits)
}

/// Returns `y` with the sign of `x`. `y` must be non-negative or have the sign of `x` already.
#[inline(always)]
fn with_sign<B: MathOps>(b: &mut B, y: &B::V, x: &B::V) -> B::V {
    let (bits, mask) = (b.bits(x), b.i(B::Real::SIGN));
    let sign = b.iand(&bits, &mask);
    let y = b.bits(y);
    let y = b.ior(&y, &sign);
    b.float_of_bits(&y)
}

/// Returns `-x` for a float `x`.
#[inline(always)]
fn negated<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (bits, sign) = (b.bits(x), b.i(B::Real::SIGN));
    let bits = b.iadd(&bits, &sign);
    b.float_of_bits(&bits)
}
