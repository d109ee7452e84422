//! The logarithm, and the inverse hyperbolic functions made of it.

use super::{MathOps, abs, horner, keep_nan, odd, with_sign};

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

/// `log(u + rest)` where `rest` is too small to show in `u`.
fn log_of_sum<B: MathOps>(b: &mut B, u: &B::V, rest: &B::V) -> B::V {
    let y = log(b, u);
    let more = b.div(rest, u);
    // What is lost says nothing where the sum is 0, negative or infinite.
    let (zero, top) = (b.f(0.0), b.f(f32::MAX));
    let more = b.select_lt(&top, u, &zero, &more);
    let more = b.select_lt(&zero, u, &more, &zero);
    b.add(&y, &more)
}

/// `log(1 + x)`.
pub fn log1p<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let one = b.f(1.0);
    let u = b.add(x, &one);
    // The exact difference between 1 + x and u, whichever of 1 and x is larger.
    let back = b.sub(&u, x);
    let from_one = b.sub(&one, &back);
    let rest = b.sub(&u, &one);
    let from_x = b.sub(x, &rest);
    let lost = b.select_lt(&one, x, &from_one, &from_x);
    let y = log_of_sum(b, &u, &lost);
    let y = keep_nan(b, x, &y);
    // A sum of 1 says nothing: log(1 + x) is x.
    let (size, tiny) = (abs(b, x), b.f(1e-8));
    b.select_lt(&size, &tiny, x, &y)
}

/// Inverse hyperbolic sine.
pub fn asinh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd(
        b,
        x,
        &[
            -9.195_793e-3,
            1.712_121_3e-2,
            -2.267_036_2e-2,
            3.046_077_1e-2,
            -4.465_095_3e-2,
            7.500_035e-2,
            -1.666_666_7e-1,
        ],
    );
    let size = abs(b, x);
    // Beyond, 1 is nothing beside the square, which would overflow.
    let (huge, one, half, ln2) = (b.f(1e9), b.f(1.0), b.f(0.5), b.f(std::f32::consts::LN_2));
    let a = b.min2(&size, &huge);
    let s = b.mul(&a, &a);
    let minus = b.f(-1.0);
    let low = {
        let ms = b.mul(&s, &minus);
        b.fma(&a, &a, &ms)
    };
    let t = b.add(&s, &one);
    let back = b.sub(&t, &s);
    let lost_one = b.sub(&one, &back);
    let rest = b.sub(&t, &one);
    let lost_s = b.sub(&s, &rest);
    let lost = b.select_lt(&one, &s, &lost_one, &lost_s);
    let low = b.add(&low, &lost);
    let (sum, rest) = plus_root(b, &a, &t, &low);
    let mid = log_of_sum(b, &sum, &rest);
    let large = log(b, &size);
    let large = b.add(&large, &ln2);
    let y = b.select_lt(&size, &huge, &mid, &large);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&size, &half, &small, &y);
    keep_nan(b, x, &y)
}

/// `a + sqrt(t + low)` and what its rounding loses.
fn plus_root<B: MathOps>(b: &mut B, a: &B::V, t: &B::V, low: &B::V) -> (B::V, B::V) {
    let root = b.sqrt(t);
    let minus = {
        let zero = b.f(0.0);
        b.sub(&zero, &root)
    };
    let lost = b.fma(&minus, &root, t);
    let lost = b.add(&lost, low);
    let twice = b.add(&root, &root);
    let tiny = b.f(f32::MIN_POSITIVE);
    let twice = b.max2(&twice, &tiny);
    let lost = b.div(&lost, &twice);
    let sum = b.add(a, &root);
    // Either may be the larger one.
    let back = b.sub(&sum, &root);
    let of_a = b.sub(a, &back);
    let back = b.sub(&sum, a);
    let of_root = b.sub(&root, &back);
    let rounding = b.select_lt(a, &root, &of_a, &of_root);
    let rest = b.add(&rounding, &lost);
    (sum, rest)
}

/// Inverse hyperbolic cosine; NaN below 1.
pub fn acosh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let (one, two, huge, ln2) = (b.f(1.0), b.f(2.0), b.f(1e9), b.f(std::f32::consts::LN_2));
    let near = b.min2(x, &huge);
    // cosh(y) = 1 + t, so y = log(1 + t + sqrt(t^2 + 2 t)).
    let t = b.sub(&near, &one);
    let twice = b.mul(&t, &two);
    let q = b.fma(&t, &t, &twice);
    let zero = b.f(0.0);
    let q = b.max2(&q, &zero);
    let (u, rest) = plus_root(b, &t, &q, &zero);
    let y = log1p(b, &u);
    let sum = b.add(&u, &one);
    let more = b.div(&rest, &sum);
    let y = b.add(&y, &more);
    let large = log(b, x);
    let large = b.add(&large, &ln2);
    let y = b.select_lt(x, &huge, &y, &large);
    let nan = b.f(f32::NAN);
    let y = b.select_lt(x, &one, &nan, &y);
    keep_nan(b, x, &y)
}

/// Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.
pub fn atanh<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
    let small = odd(
        b,
        x,
        &[
            1.851_436_8e-1,
            1.695_746e-2,
            1.052_451_6e-1,
            1.092_939_8e-1,
            1.429_781_8e-1,
            1.999_962_2e-1,
            3.333_333_4e-1,
        ],
    );
    let (size, one, half) = (abs(b, x), b.f(1.0), b.f(0.5));
    let twice = b.add(&size, &size);
    let gap = b.sub(&one, &size);
    let q = b.div(&twice, &gap);
    let y = log1p(b, &q);
    let y = b.mul(&y, &half);
    let y = with_sign(b, &y, x);
    let y = b.select_lt(&size, &half, &small, &y);
    let nan = b.f(f32::NAN);
    let y = b.select_lt(&one, &size, &nan, &y);
    keep_nan(b, x, &y)
}
