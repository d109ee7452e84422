//! The exponential and what is made of it.

use super::{MathOps, Real, abs, horner, negated, odd, with_sign};

/// `e^r - 1` of a small `r`, in parts: `r` itself, and what there is besides, `p * square`.
pub(super) struct Small<V> {
    r: V,
    p: V,
    square: V,
}

impl<V> Small<V> {
    /// `e^r - 1`, rounded once.
    #[inline(always)]
    fn sum<B: MathOps<V = V>>(&self, b: &mut B) -> V {
        b.fma(&self.p, &self.square, &self.r)
    }

    /// `e^r`, rounded once: what is lost when 1 takes up `r` goes to the rest.
    #[inline(always)]
    fn above_one<B: MathOps<V = V>>(&self, b: &mut B) -> V {
        let one = b.f(1.0);
        let high = b.add(&one, &self.r);
        let taken = b.sub(&high, &one);
        let lost = b.sub(&self.r, &taken);
        let low = b.fma(&self.p, &self.square, &lost);
        b.add(&high, &low)
    }
}

/// What is made of `e^r - 1` before it is scaled. This is no closure: one that the compiler does not care to inline is compiled
/// without the instructions of its caller, and each of its operations becomes a call.
pub(super) trait Finish<B: MathOps> {
    /// The value.
    fn finish(&self, b: &mut B, small: &Small<B::V>) -> B::V;
}

/// `e^r`.
struct Whole;

impl<B: MathOps> Finish<B> for Whole {
    #[inline(always)]
    fn finish(&self, b: &mut B, small: &Small<B::V>) -> B::V {
        small.above_one(b)
    }
}

/// `e^r / 2`.
struct Half;

impl<B: MathOps> Finish<B> for Half {
    #[inline(always)]
    fn finish(&self, b: &mut B, small: &Small<B::V>) -> B::V {
        let half = b.f(0.5);
        let y = small.above_one(b);
        b.mul(&y, &half)
    }
}

/// `e^r`, rounded twice.
struct Quick;

impl<B: MathOps> Finish<B> for Quick {
    #[inline(always)]
    fn finish(&self, b: &mut B, small: &Small<B::V>) -> B::V {
        let one = b.f(1.0);
        let y = small.sum(b);
        b.add(&y, &one)
    }
}

/// `(m + rest) * e^r` for a small `rest`, rounded once.
pub(super) struct Times<'a, V> {
    pub m: &'a V,
    pub rest: &'a V,
}

impl<B: MathOps> Finish<B> for Times<'_, B::V> {
    #[inline(always)]
    fn finish(&self, b: &mut B, small: &Small<B::V>) -> B::V {
        let high = b.fma(self.m, &small.r, self.m);
        let taken = b.sub(self.m, &high);
        let lost = b.fma(self.m, &small.r, &taken);
        let more = b.mul(&small.p, &small.square);
        let low = b.fma(self.m, &more, &lost);
        let low = b.fma(self.rest, &small.r, &low);
        let low = b.add(self.rest, &low);
        b.add(&high, &low)
    }
}

/// `e^x`: reduction by two constants, a polynomial, and scaling that reaches infinity and the subnormals.
#[inline(always)]
pub fn exp<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    times_exp(b, x, &Whole)
}

/// `m * e^x` for `m` near 1, with fewer roundings than the product of both: `of` gives the product of `m` and `e^r` for a
/// small `r`.
#[inline(always)]
pub(super) fn times_exp<B: MathOps>(b: &mut B, x: &B::V, of: &impl Finish<B>) -> B::V {
    let (lo, hi) = B::Real::EXP_RANGE;
    let (zero, lo, hi) = (b.f(0.0), b.f(lo), b.f(hi));
    let x = b.min2(&hi, x);
    // What is 0 is not computed: products on the way to numbers below the normal ones cost a hundred cycles each, and masks are
    // full of them.
    let kept = b.select_lt(&x, &lo, &zero, &x);
    let y = times_exp_within(b, &kept, of);
    b.select_lt(&x, &lo, &zero, &y)
}

/// `e^x` for arguments within [`Real::EXP_RANGE`], and NaN; up to half an ulp worse than [`exp`], and three operations less.
#[inline(always)]
pub fn exp_within<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    times_exp_within(b, x, &Quick)
}

/// `e^x` where this is a normal number, rounded twice. The result for NaN is undefined.
#[inline(always)]
pub(super) fn exp_normal<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (y, n, t) = unscaled_exp(b, x, &Quick);
    b.scale_normal(&y, &n, &t)
}

/// [`times_exp`] for arguments within [`Real::EXP_RANGE`], and NaN.
#[inline(always)]
fn times_exp_within<B: MathOps>(b: &mut B, x: &B::V, of: &impl Finish<B>) -> B::V {
    let (y, n, t) = unscaled_exp(b, x, of);
    b.scale(&y, &n, &t)
}

/// `m * e^x` without its power of two: the number near `m`, and the operands of [`MathOps::scale`].
#[inline(always)]
fn unscaled_exp<B: MathOps>(b: &mut B, x: &B::V, of: &impl Finish<B>) -> (B::V, B::V, B::V) {
    let (log2e, magic) = (b.f(std::f64::consts::LOG2_E), b.f(B::Real::ROUND));
    let t = b.fma(x, &log2e, &magic);
    let n = b.sub(&t, &magic);
    let (c1, c2) = B::Real::LN2;
    let (c1, c2) = (b.f(-c1), b.f(-c2));
    let r = b.fma(&n, &c1, x);
    let r = b.fma(&n, &c2, &r);
    let p = horner(b, &r, B::Real::EXP);
    let square = b.mul(&r, &r);
    (of.finish(b, &Small { r, p, square }), n, t)
}

/// `e^|x| / 2` and `e^-|x| / 2`: halved before it is scaled, the first reaches infinity where the hyperbolic functions do.
#[inline(always)]
fn halves<B: MathOps>(b: &mut B, size: &B::V) -> (B::V, B::V) {
    let quarter = b.f(0.25);
    let up = times_exp(b, size, &Half);
    let down = b.div(&quarter, &up);
    (up, down)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let large = b.sub(&up, &down);
    let large = with_sign(b, &large, x);
    let small = odd(b, x, B::Real::SINH);
    let one = b.f(1.0);
    let y = b.select_lt(&size, &one, &small, &large);
    b.keep_nan(x, &y)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let (up, down) = halves(b, &size);
    let y = b.add(&up, &down);
    b.keep_nan(x, &y)
}

/// Hyperbolic tangent: a polynomial near 0, else by the exponential.
#[inline(always)]
pub fn tanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let size = abs(b, x);
    let small = odd(b, x, B::Real::TANH);
    let (one, two, limit) = (b.f(1.0), b.f(2.0), b.f(0.625));
    // `min2` gives its second operand for NaN.
    let most = b.f(B::Real::TANH_ONE);
    let size = b.min2(&size, &most);
    let twice = b.add(&size, &size);
    let e = exp_normal(b, &twice);
    let d = b.add(&e, &one);
    let q = b.div(&two, &d);
    let large = b.sub(&one, &q);
    let large = with_sign(b, &large, x);
    let y = b.select_lt(&size, &limit, &small, &large);
    b.keep_nan(x, &y)
}

/// Logistic function, by the exponential that does not overflow. What the denominator and the quotient round away is put
/// back, with the inverse of the denominator that the quotient tells.
#[inline(always)]
pub fn sigmoid<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one) = (b.f(0.0), b.f(1.0));
    let size = abs(b, x);
    let minus = b.sub(&zero, &size);
    let e = exp(b, &minus);
    let d = b.add(&one, &e);
    let taken = b.sub(&d, &one);
    let lost = b.sub(&e, &taken);
    let over = b.select_lt(x, &zero, &e, &one);
    let y = b.div(&over, &d);
    let rest = b.sub(&one, &y);
    let inverse = b.select_lt(x, &zero, &rest, &y);
    let minus = negated(b, &y);
    let missing = b.fma(&minus, &d, &over);
    let missing = b.fma(&minus, &lost, &missing);
    let y = b.fma(&missing, &inverse, &y);
    b.keep_nan(x, &y)
}
