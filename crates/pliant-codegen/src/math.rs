//! Elementary functions of float32 as sequences of simple operations, for scalars and vectors alike.
//!
//! A backend implements [`MathOps`] with its own values; the sequences are the same for all, and
//! so are the results (up to whether
//! the machine has a fused multiply-add). Maximum errors over all finite inputs, with fused
//! multiply-add: `exp` 1 ulp,
//! `log` 1 ulp, `tanh` 5 ulp, `erf` 8 ulp (absolute 4.4e-7), `sigmoid` 2.5 ulp. Every function returns NaN for NaN.

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

fn horner<B: MathOps>(b: &mut B, x: &B::V, coefficients: &[f32]) -> B::V {
    let mut acc = b.f(coefficients[0]);
    for &c in &coefficients[1..] {
        let c = b.f(c);
        acc = b.fma(&acc, x, &c);
    }
    acc
}

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
        &[1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5],
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

/// Natural logarithm; `-inf` at 0, NaN below.
pub fn log<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    // Subnormals are scaled up first.
    let (tiny, up, one, zero) = (b.f(f32::MIN_POSITIVE), b.f(8_388_608.0), b.f(1.0), b.f(0.0));
    let factor = b.select_lt(x, &tiny, &up, &one);
    let scaled = b.mul(x, &factor);
    let minus23 = b.f(-23.0);
    let shift = b.select_lt(x, &tiny, &minus23, &zero);
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    let bits = b.bits(&scaled);
    let offset = b.i(0x3f80_0000 - 0x3f35_04f3);
    let ix = b.iadd(&bits, &offset);
    let e = b.isar(&ix, 23);
    let bias = b.i(127);
    let e = b.isub(&e, &bias);
    let mask = b.i(0x007f_ffff);
    let m = b.iand(&ix, &mask);
    let base = b.i(0x3f35_04f3);
    let m = b.iadd(&m, &base);
    let m = b.float_of_bits(&m);
    let ef = b.int_to_float(&e);
    let ef = b.add(&ef, &shift);
    let f = b.sub(&m, &one);
    let p = horner(
        b,
        &f,
        &[
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let z = b.mul(&f, &f);
    let p = b.mul(&p, &f);
    let p = b.mul(&p, &z);
    let c2 = b.f(-2.121_944_4e-4);
    let p = b.fma(&ef, &c2, &p);
    let mhalf = b.f(-0.5);
    let p = b.fma(&z, &mhalf, &p);
    let y = b.add(&f, &p);
    let c1 = b.f(0.693_359_4);
    let y = b.fma(&ef, &c1, &y);
    // Special values: +inf and NaN pass through, 0 gives -inf, negative gives NaN.
    let (inf, minf, nan) = (b.f(f32::INFINITY), b.f(f32::NEG_INFINITY), b.f(f32::NAN));
    let y = b.select_lt(x, &inf, &y, x);
    let y = b.select_lt(&zero, x, &y, &minf);
    let y = b.select_lt(x, &zero, &nan, &y);
    keep_nan(b, x, &y)
}

/// `y`, but NaN where `x` is.
fn keep_nan<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
    let inf = b.f(f32::INFINITY);
    let below = b.select_lt(x, &inf, y, x);
    // `x < inf` fails for NaN and for infinity; only there does `y` differ from what `below` has.
    let top = b.f(f32::MAX);
    b.select_lt(&top, x, y, &below)
}

/// Hyperbolic tangent: rational 13/6, clamped where it rounds to 1.
pub fn tanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (hi, lo) = (b.f(7.905_311), b.f(-7.905_311));
    let c = b.min2(&hi, x);
    let c = b.max2(&lo, &c);
    let x2 = b.mul(&c, &c);
    let p = horner(
        b,
        &x2,
        &[
            -2.760_768_5e-16,
            2.000_188e-13,
            -8.604_672e-11,
            5.122_297e-8,
            1.485_722_4e-5,
            6.372_619e-4,
            4.893_525e-3,
        ],
    );
    let p = b.mul(&p, &c);
    let q = horner(b, &x2, &[1.198_258_4e-6, 1.185_347e-4, 2.268_434_6e-3, 4.893_525e-3]);
    let y = b.div(&p, &q);
    // Tiny inputs are their own tangent, to the last bit.
    let small = b.f(4e-4 * 4e-4);
    let y = b.select_lt(&x2, &small, &c, &y);
    // From here on the tangent rounds to 1.
    let (top, bottom, one, minus) = (b.f(9.010_914), b.f(-9.010_914), b.f(1.0), b.f(-1.0));
    let y = b.select_lt(&top, x, &one, &y);
    b.select_lt(x, &bottom, &minus, &y)
}

/// Error function: rational 13/8, clamped where it rounds to 1.
pub fn erf<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (hi, lo) = (b.f(4.0), b.f(-4.0));
    let c = b.min2(&hi, x);
    let c = b.max2(&lo, &c);
    let x2 = b.mul(&c, &c);
    let p = horner(
        b,
        &x2,
        &[
            -2.726_142_3e-10,
            2.770_681_4e-8,
            -2.101_024e-6,
            -5.692_506_4e-5,
            -7.349_906_3e-4,
            -2.954_6e-3,
            -1.609_603_3e-2,
        ],
    );
    let p = b.mul(&p, &c);
    let q = horner(
        b,
        &x2,
        &[-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2],
    );
    b.div(&p, &q)
}

/// Logistic function.
pub fn sigmoid<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (zero, one) = (b.f(0.0), b.f(1.0));
    let minus = b.sub(&zero, x);
    let e = exp(b, &minus);
    let d = b.add(&one, &e);
    b.div(&one, &d)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scalars computed on the spot; integers travel as bits.
    struct Host;

    impl MathOps for Host {
        type V = f32;

        fn f(&mut self, value: f32) -> f32 {
            value
        }
        fn i(&mut self, value: i32) -> f32 {
            f32::from_bits(value as u32)
        }
        fn add(&mut self, a: &f32, b: &f32) -> f32 {
            a + b
        }
        fn sub(&mut self, a: &f32, b: &f32) -> f32 {
            a - b
        }
        fn mul(&mut self, a: &f32, b: &f32) -> f32 {
            a * b
        }
        fn div(&mut self, a: &f32, b: &f32) -> f32 {
            a / b
        }
        fn fma(&mut self, a: &f32, b: &f32, c: &f32) -> f32 {
            a.mul_add(*b, *c)
        }
        fn min2(&mut self, a: &f32, b: &f32) -> f32 {
            if a < b { *a } else { *b }
        }
        fn max2(&mut self, a: &f32, b: &f32) -> f32 {
            if a > b { *a } else { *b }
        }
        fn select_lt(&mut self, a: &f32, b: &f32, x: &f32, y: &f32) -> f32 {
            if a < b { *x } else { *y }
        }
        fn bits(&mut self, a: &f32) -> f32 {
            *a
        }
        fn float_of_bits(&mut self, a: &f32) -> f32 {
            *a
        }
        fn iadd(&mut self, a: &f32, b: &f32) -> f32 {
            f32::from_bits(a.to_bits().wrapping_add(b.to_bits()))
        }
        fn isub(&mut self, a: &f32, b: &f32) -> f32 {
            f32::from_bits(a.to_bits().wrapping_sub(b.to_bits()))
        }
        fn iand(&mut self, a: &f32, b: &f32) -> f32 {
            f32::from_bits(a.to_bits() & b.to_bits())
        }
        fn ior(&mut self, a: &f32, b: &f32) -> f32 {
            f32::from_bits(a.to_bits() | b.to_bits())
        }
        fn ishl(&mut self, a: &f32, by: u8) -> f32 {
            f32::from_bits(a.to_bits() << by)
        }
        fn isar(&mut self, a: &f32, by: u8) -> f32 {
            f32::from_bits(((a.to_bits() as i32) >> by) as u32)
        }
        fn int_to_float(&mut self, a: &f32) -> f32 {
            a.to_bits() as i32 as f32
        }
    }

    fn ulps(got: f32, want: f64) -> f64 {
        let want32 = want as f32;
        if got == want32 || (got.is_nan() && want32.is_nan()) {
            return 0.0;
        }
        let up = f32::from_bits(want32.abs().to_bits() + 1);
        (f64::from(got) - want).abs() / f64::from(up - want32.abs())
    }

    fn worst(range: (f32, f32), got: impl Fn(f32) -> f32, want: impl Fn(f64) -> f64) -> f64 {
        let steps = 40_000;
        (0..=steps)
            .map(|i| range.0 + (range.1 - range.0) * i as f32 / steps as f32)
            .map(|x| ulps(got(x), want(f64::from(x))))
            .fold(0.0, f64::max)
    }

    #[test]
    fn errors_stay_within_the_promise() {
        assert!(worst((-87.0, 88.7), |x| exp(&mut Host, &x), f64::exp) < 1.2);
        assert!(worst((-103.9, -87.0), |x| exp(&mut Host, &x), f64::exp) < 1.6);
        assert!(worst((1e-6, 4.0), |x| log(&mut Host, &x), f64::ln) < 1.2);
        assert!(worst((1e-40, 1e-38), |x| log(&mut Host, &x), f64::ln) < 1.2);
        assert!(worst((4.0, 1e30), |x| log(&mut Host, &x), f64::ln) < 1.2);
        assert!(worst((-12.0, 12.0), |x| tanh(&mut Host, &x), f64::tanh) < 6.0);
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        assert!(worst((-80.0, 80.0), |x| sigmoid(&mut Host, &x), logistic) < 3.0);
    }

    #[test]
    fn erf_at_known_points() {
        for (x, want) in [
            (0.0f32, 0.0f64),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.5, 0.999_999_256_901_627_7),
            (9.0, 1.0),
        ] {
            assert!((f64::from(erf(&mut Host, &x)) - want).abs() < 5e-7, "erf({x})");
            assert_eq!(erf(&mut Host, &-x), -erf(&mut Host, &x));
        }
    }

    #[test]
    fn special_values() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!(exp(&mut Host, &inf), inf);
        assert_eq!(exp(&mut Host, &-inf), 0.0);
        assert_eq!(exp(&mut Host, &0.0), 1.0);
        assert_eq!(log(&mut Host, &0.0), -inf);
        assert_eq!(log(&mut Host, &inf), inf);
        assert_eq!(log(&mut Host, &1.0), 0.0);
        assert!(log(&mut Host, &-1.0).is_nan() && log(&mut Host, &-inf).is_nan());
        assert_eq!(tanh(&mut Host, &inf), 1.0);
        assert_eq!(tanh(&mut Host, &-inf), -1.0);
        assert_eq!(sigmoid(&mut Host, &-inf), 0.0);
        assert_eq!(sigmoid(&mut Host, &inf), 1.0);
        for f in [exp::<Host>, log::<Host>, tanh::<Host>, erf::<Host>, sigmoid::<Host>] {
            assert!(f(&mut Host, &nan).is_nan());
        }
    }
}
