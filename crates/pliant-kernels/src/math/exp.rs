//! The exponential, hyperbolic and logistic functions.

use super::{MathOps, Real, abs, horner, negated, odd_polynomial, with_sign};

/// The value `e^r - 1` for a small `r`, stored as the numbers `r`, `p` and `square` of the sum `r + p * square`.
pub(super) struct ExpM1<V> {
    r: V,
    p: V,
    square: V,
}

impl<V> ExpM1<V> {
    /// Returns `e^r - 1`, rounded once.
    #[inline(always)]
    fn value<B: MathOps<V = V>>(&self, b: &mut B) -> V {
        b.fma(&self.p, &self.square, &self.r)
    }

    /// Returns `e^r`, rounded once. The rounding error of `1 + r` is added to `p * square` before
    /// the last addition.
    #[inline(always)]
    fn plus_one<B: MathOps<V = V>>(&self, b: &mut B) -> V {
        let one = b.f(1.0);
        let high = b.add(&one, &self.r);
        let rounded = b.sub(&high, &one);
        let error = b.sub(&self.r, &rounded);
        let low = b.fma(&self.p, &self.square, &error);
        b.add(&high, &low)
    }
}

/// A computation of a function such as `e^r` from `e^r - 1`, before the result is scaled by a power
/// of 2. It is a trait instead of a closure, because a closure that is not inlined lacks the target
/// features of its caller, and each vector operation would be a call.
pub(super) trait FromExpM1<B: MathOps> {
    /// Returns the value of the function, such as `e^r`, computed from `exp_m1`, which represents `e^r - 1`.
    fn compute(&self, b: &mut B, exp_m1: &ExpM1<B::V>) -> B::V;
}

/// Computes `e^r` from `e^r - 1`.
struct Exp;

impl<B: MathOps> FromExpM1<B> for Exp {
    #[inline(always)]
    fn compute(&self, b: &mut B, exp_m1: &ExpM1<B::V>) -> B::V {
        exp_m1.plus_one(b)
    }
}

/// Computes `e^r / 2` from `e^r - 1`.
struct HalfExp;

impl<B: MathOps> FromExpM1<B> for HalfExp {
    #[inline(always)]
    fn compute(&self, b: &mut B, exp_m1: &ExpM1<B::V>) -> B::V {
        let half = b.f(0.5);
        let y = exp_m1.plus_one(b);
        b.mul(&y, &half)
    }
}

/// Computes `e^r` from `e^r - 1` with two roundings, which takes fewer operations than [`Exp`].
struct ExpRoundedTwice;

impl<B: MathOps> FromExpM1<B> for ExpRoundedTwice {
    #[inline(always)]
    fn compute(&self, b: &mut B, exp_m1: &ExpM1<B::V>) -> B::V {
        let one = b.f(1.0);
        let y = exp_m1.value(b);
        b.add(&y, &one)
    }
}

/// Computes `(m + rest) * e^r` from `e^r - 1`, rounded once. The factor is the sum of `m` and a small number `rest`, which is below
/// the precision of `m`.
pub(super) struct ScaledExp<'a, V> {
    pub m: &'a V,
    pub rest: &'a V,
}

impl<B: MathOps> FromExpM1<B> for ScaledExp<'_, B::V> {
    #[inline(always)]
    fn compute(&self, b: &mut B, exp_m1: &ExpM1<B::V>) -> B::V {
        let high = b.fma(self.m, &exp_m1.r, self.m);
        let rounded = b.sub(self.m, &high);
        let error = b.fma(self.m, &exp_m1.r, &rounded);
        let more = b.mul(&exp_m1.p, &exp_m1.square);
        let low = b.fma(self.m, &more, &error);
        let low = b.fma(self.rest, &exp_m1.r, &low);
        let low = b.add(self.rest, &low);
        b.add(&high, &low)
    }
}

/// Returns `e^x`: range reduction with a two-part ln 2, a polynomial, and scaling that handles overflow and subnormal
/// results.
#[inline(always)]
pub fn exp<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    times_exp(b, x, &Exp)
}

/// Returns `m * e^x` for a factor `m` near 1. `result` computes `m * e^r` for the reduced argument
/// `r`, which takes fewer roundings than a product of `m` and `exp(x)`.
#[inline(always)]
pub(super) fn times_exp<B: MathOps>(b: &mut B, x: &B::V, result: &impl FromExpM1<B>) -> B::V {
    let (lo, hi) = B::Real::EXP_RANGE;
    let (zero, lo, hi) = (b.f(0.0), b.f(lo), b.f(hi));
    let x = b.min2(&hi, x);
    // Results that are 0 are computed from 0: a product with a subnormal result takes about a hundred cycles, and
    // masked scores have many of them.
    let in_range = b.select_lt(&x, &lo, &zero, &x);
    let y = times_exp_within(b, &in_range, result);
    b.select_lt(&x, &lo, &zero, &y)
}

/// Returns `e^x` for arguments within [`Real::EXP_RANGE`], and NaN for NaN. The error is up to half
/// an ulp larger than that of [`exp`], but this function needs three operations fewer.
#[inline(always)]
pub fn exp_within<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    times_exp_within(b, x, &ExpRoundedTwice)
}

/// Returns `e^x`, rounded twice, for arguments whose exponential is a normal number. The result for
/// NaN is unspecified.
#[inline(always)]
pub(super) fn exp_normal<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (y, n, t) = unscaled_exp(b, x, &ExpRoundedTwice);
    b.scale_normal(&y, &n, &t)
}

/// Returns `m * e^x` for a factor `m` near 1 ([`times_exp`]), for arguments within [`Real::EXP_RANGE`], and NaN for NaN.
#[inline(always)]
fn times_exp_within<B: MathOps>(b: &mut B, x: &B::V, result: &impl FromExpM1<B>) -> B::V {
    let (y, n, t) = unscaled_exp(b, x, result);
    b.scale(&y, &n, &t)
}

/// Returns `m * e^x` before the scaling by a power of 2: the mantissa, which is near `m`, and the
/// operands `n` and `t` of [`MathOps::scale`].
#[inline(always)]
fn unscaled_exp<B: MathOps>(b: &mut B, x: &B::V, result: &impl FromExpM1<B>) -> (B::V, B::V, B::V) {
    let (log2e, magic) = (b.f(std::f64::consts::LOG2_E), b.f(B::Real::ROUND));
    let t = b.fma(x, &log2e, &magic);
    let n = b.sub(&t, &magic);
    let (c1, c2) = B::Real::LN2;
    let (c1, c2) = (b.f(-c1), b.f(-c2));
    let r = b.fma(&n, &c1, x);
    let r = b.fma(&n, &c2, &r);
    let p = horner(b, &r, B::Real::EXP);
    let square = b.mul(&r, &r);
    (result.compute(b, &ExpM1 { r, p, square }), n, t)
}

/// Returns `x * sigmoid(x)` with an error of a few ulp; 0 for `x` below -87, where the exact result
/// is less than 1.5e-36 in magnitude. Unlike the product of `x` and [`sigmoid`], this function does
/// not correct the rounding errors of the exponential and of the denominator. The correction would
/// double the number of operations.
#[inline(always)]
pub fn silu<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one, lowest) = (b.f(0.0), b.f(1.0), b.f(-87.0));
    let (bits, sign) = (b.bits(x), b.i(B::Real::SIGN));
    let minus = b.ior(&bits, &sign);
    let minus = b.float_of_bits(&minus);
    // `max2` returns its second operand for NaN.
    let minus = b.max2(&minus, &lowest);
    let e = exp_normal(b, &minus);
    let denominator = b.add(&one, &e);
    let numerator = b.select_lt(x, &zero, &e, &one);
    let gate = b.div(&numerator, &denominator);
    let gate = b.select_lt(x, &lowest, &zero, &gate);
    b.mul(x, &gate)
}

/// Returns `e^|x| / 2` and `e^-|x| / 2`. The first value is halved before the scaling by a power of
/// 2, so that it overflows only if the hyperbolic functions overflow.
#[inline(always)]
fn half_exps<B: MathOps>(b: &mut B, magnitude: &B::V) -> (B::V, B::V) {
    let quarter = b.f(0.25);
    let half_exp = times_exp(b, magnitude, &HalfExp);
    let half_inverse = b.div(&quarter, &half_exp);
    (half_exp, half_inverse)
}

/// Hyperbolic sine of `x`.
#[inline(always)]
pub fn sinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let magnitude = abs(b, x);
    let (half_exp, half_inverse) = half_exps(b, &magnitude);
    let large = b.sub(&half_exp, &half_inverse);
    let large = with_sign(b, &large, x);
    let small = odd_polynomial(b, x, B::Real::SINH);
    let one = b.f(1.0);
    let y = b.select_lt(&magnitude, &one, &small, &large);
    b.keep_nan(x, &y)
}

/// Hyperbolic cosine of `x`.
#[inline(always)]
pub fn cosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let magnitude = abs(b, x);
    let (half_exp, half_inverse) = half_exps(b, &magnitude);
    let y = b.add(&half_exp, &half_inverse);
    b.keep_nan(x, &y)
}

/// Hyperbolic tangent: a polynomial near 0, otherwise computed from the exponential.
#[inline(always)]
pub fn tanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let magnitude = abs(b, x);
    let small = odd_polynomial(b, x, B::Real::TANH);
    let (one, two, limit) = (b.f(1.0), b.f(2.0), b.f(0.625));
    // `min2` returns its second operand for NaN.
    let saturation = b.f(B::Real::TANH_ONE);
    let magnitude = b.min2(&magnitude, &saturation);
    let twice = b.add(&magnitude, &magnitude);
    let e = exp_normal(b, &twice);
    let denominator = b.add(&e, &one);
    let q = b.div(&two, &denominator);
    let large = b.sub(&one, &q);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&magnitude, &limit, &small, &large);
    b.keep_nan(x, &y)
}

/// Logistic function, computed from `e^-|x|`, which does not overflow. One Newton step corrects the rounding errors of the
/// denominator and the quotient. The step needs no second division: the inverse of the denominator is the quotient itself for
/// `x >= 0`, and 1 minus the quotient for `x < 0`.
#[inline(always)]
pub fn sigmoid<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one) = (b.f(0.0), b.f(1.0));
    let magnitude = abs(b, x);
    let minus = b.sub(&zero, &magnitude);
    let e = exp(b, &minus);
    let denominator = b.add(&one, &e);
    let rounded = b.sub(&denominator, &one);
    let error = b.sub(&e, &rounded);
    let numerator = b.select_lt(x, &zero, &e, &one);
    let y = b.div(&numerator, &denominator);
    let rest = b.sub(&one, &y);
    let inverse = b.select_lt(x, &zero, &rest, &y);
    let minus = negated(b, &y);
    let residual = b.fma(&minus, &denominator, &numerator);
    let residual = b.fma(&minus, &error, &residual);
    let y = b.fma(&residual, &inverse, &y);
    b.keep_nan(x, &y)
}
