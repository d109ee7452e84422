//! Tests that measure the errors of all elementary functions, over all exponents, and compare the
//! errors with the table in `docs/reference/numerics.md`. With `PLIANT_BLESS=1`, write the table
//! instead.

mod gelu_values;
mod hardest_arguments;

use std::marker::PhantomData;

use super::*;

/// A scalar implementation of [`MathOps`], on which the tests evaluate elementary functions.
/// Integers are stored as the bit patterns of floats.
struct Host<T>(PhantomData<T>);

/// A float type with a fused multiply-add.
trait Fused: Copy {
    fn fused(a: Self, b: Self, c: Self) -> Self;
}

impl Fused for f32 {
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        // The product is exact in float64. The sum is rounded to odd, so that rounding it again gives the same result
        // as rounding once.
        let (p, c) = (f64::from(a) * f64::from(b), f64::from(c));
        let sum = p + c;
        let recovered = sum - p;
        let error = (p - (sum - recovered)) + (c - recovered);
        let even = sum.to_bits() & 1 == 0;
        if even && error != 0.0 && sum.is_finite() {
            let up = (error > 0.0) == (sum > 0.0);
            let bits = if up { sum.to_bits() + 1 } else { sum.to_bits() - 1 };
            return f64::from_bits(bits) as f32;
        }
        sum as f32
    }
}

impl Fused for f64 {
    fn fused(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

macro_rules! host {
    ($float:ty, $int:ty) => {
        impl MathOps for Host<$float> {
            type Real = $float;
            type V = $float;

            fn f(&mut self, value: f64) -> $float {
                value as $float
            }
            fn i(&mut self, value: i64) -> $float {
                <$float>::from_bits(value as $int)
            }
            fn add(&mut self, a: &$float, b: &$float) -> $float {
                a + b
            }
            fn sub(&mut self, a: &$float, b: &$float) -> $float {
                a - b
            }
            fn mul(&mut self, a: &$float, b: &$float) -> $float {
                a * b
            }
            fn div(&mut self, a: &$float, b: &$float) -> $float {
                a / b
            }
            fn sqrt(&mut self, a: &$float) -> $float {
                a.sqrt()
            }
            fn fma(&mut self, a: &$float, b: &$float, c: &$float) -> $float {
                <$float>::fused(*a, *b, *c)
            }
            fn select_lt(&mut self, a: &$float, b: &$float, x: &$float, y: &$float) -> $float {
                if a < b { *x } else { *y }
            }
            fn keep_nan(&mut self, x: &$float, y: &$float) -> $float {
                if x.is_nan() { *x } else { *y }
            }
            fn bits(&mut self, a: &$float) -> $float {
                *a
            }
            fn float_of_bits(&mut self, a: &$float) -> $float {
                *a
            }
            fn iadd(&mut self, a: &$float, b: &$float) -> $float {
                <$float>::from_bits(a.to_bits().wrapping_add(b.to_bits()))
            }
            fn isub(&mut self, a: &$float, b: &$float) -> $float {
                <$float>::from_bits(a.to_bits().wrapping_sub(b.to_bits()))
            }
            fn iand(&mut self, a: &$float, b: &$float) -> $float {
                <$float>::from_bits(a.to_bits() & b.to_bits())
            }
            fn ior(&mut self, a: &$float, b: &$float) -> $float {
                <$float>::from_bits(a.to_bits() | b.to_bits())
            }
            fn ishl(&mut self, a: &$float, by: u8) -> $float {
                <$float>::from_bits(a.to_bits() << by)
            }
            fn ishr(&mut self, a: &$float, by: u8) -> $float {
                <$float>::from_bits(a.to_bits() >> by)
            }
        }
    };
}

host!(f32, u32);
host!(f64, u64);

/// A measured function of one argument: the implementations in float32 and float64, the reference
/// function, the float32 argument of the largest error that `errors_over_all_arguments` found, and
/// whether arguments are limited to [`Real::TRIG_LIMIT`].
struct MeasuredFn {
    name: &'static str,
    single: fn(f32) -> f32,
    double: fn(f64) -> f64,
    expected: fn(f64) -> f64,
    hardest: f32,
    limited: bool,
}

macro_rules! rows {
    ($($name:ident = $expected:expr, $hardest:literal $(, $limited:literal)?;)*) => {
        &[$(MeasuredFn {
            name: stringify!($name),
            single: |x| $name(&mut Host::<f32>(PhantomData), &x),
            double: |x| $name(&mut Host::<f64>(PhantomData), &x),
            expected: $expected,
            hardest: $hardest,
            limited: [$($limited,)? false][0],
        },)*]
    };
}

const FUNCTIONS: &[MeasuredFn] = rows! {
    exp = libm::exp, -8.771184e1;
    log = libm::log, 1.413642;
    log1p = libm::log1p, 4.1455957e-1;
    sigmoid = logistic, -4.846455;
    sinh = libm::sinh, 1.433658;
    cosh = libm::cosh, 5.2657785;
    tanh = libm::tanh, 6.2535214e-1;
    asinh = libm::asinh, 5.079159e-1;
    acosh = |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 1.0311122;
    atanh = libm::atanh, 6.970132e-1;
    sin = libm::sin, 4.8404077e3, true;
    cos = libm::cos, 3.9258246, true;
    tan = libm::tan, 2.3585181, true;
    asin = libm::asin, 5.2282375e-1;
    acos = libm::acos, 5.4451734e-1;
    atan = libm::atan, 1.0745708;
    erf = libm::erf, 1.0621638;
    gelu = crate::scalar_math::gelu, -0.67168385;
};

/// Reference implementation of the logistic function. The only intermediate rounding is the
/// rounding of the exponential.
fn logistic(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    let d = 1.0 + e;
    let error = e - (d - 1.0);
    let over = if x < 0.0 { e } else { 1.0 };
    let y = over / d;
    y + (y.mul_add(-d, over) - y * error) / d
}

/// Returns the error of `got` in float32 ulp; infinite if exactly one of the two values is NaN or
/// infinite.
fn ulps(got: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if got == rounded || (got.is_nan() && rounded.is_nan()) {
        return (f64::from(got) - expected).abs() / unit(expected).max(f64::MIN_POSITIVE)
            * f64::from(got.is_finite());
    }
    // Beyond the largest float, infinity counts as the largest float.
    if !got.is_finite() && rounded.abs() < f32::MAX {
        return f64::INFINITY;
    }
    let got = if got.is_infinite() {
        f64::from(f32::MAX) * f64::from(got.signum())
    } else {
        f64::from(got)
    };
    (got - expected).abs() / unit(expected)
}

/// Returns the distance between adjacent float32 numbers (one ulp) near the value `expected`.
fn unit(expected: f64) -> f64 {
    let size = expected.abs().clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
    let exponent = (size.to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent - 23)
}

/// Returns float32 arguments of every exponent and both signs: `per` mantissas for each exponent,
/// including the smallest and the largest.
fn arguments(per: u32) -> impl Iterator<Item = f32> {
    (0..=255u32).flat_map(move |exponent| {
        (0..per).flat_map(move |k| {
            // The golden ratio distributes the other mantissas evenly.
            let mantissa = match k {
                0 => 0,
                1 => 0x7f_ffff,
                _ => k.wrapping_mul(0x9e37_79b9) >> 9,
            };
            let bits = exponent << 23 | mantissa;
            [f32::from_bits(bits), f32::from_bits(bits | 1 << 31)]
        })
    })
}

/// Returns the float32 arguments nearest to multiples of pi/2, for which range reduction cancels
/// the most digits.
fn hard_angles() -> impl Iterator<Item = f32> {
    (1..5200).flat_map(|k| {
        let multiple = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
        [multiple.to_bits() - 1, multiple.to_bits(), multiple.to_bits() + 1].map(f32::from_bits)
    })
}

/// Returns the largest of the given pairs of error and argument. If all errors are 0, returns 0 and the argument `zero`.
fn worst<X: Copy>(errors: impl Iterator<Item = (f64, X)>, zero: X) -> (f64, X) {
    errors.fold((0.0, zero), |a, b| if b.0 > a.0 { b } else { a })
}

/// Returns the largest error, in ulp, of the float32 implementation of a function at the given arguments, and the argument with
/// this error.
fn worst_single(row: &MeasuredFn, arguments: impl Iterator<Item = f32>) -> (f64, f32) {
    let used = |x: &f32| !row.limited || f64::from(x.abs()) <= f32::TRIG_LIMIT || x.is_nan();
    let errors =
        arguments.filter(used).map(|x| (ulps((row.single)(x), (row.expected)(x.into())), x));
    worst(errors, 0.0)
}

/// Returns the error of `got` in float64 ulp; 0 if both values are NaN.
fn ulps_double(got: f64, expected: f64) -> f64 {
    if got == expected || (got.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let size = expected.abs().max(f64::MIN_POSITIVE);
    let unit = f64::from_bits(size.to_bits() & 0x7ff0_0000_0000_0000) * f64::EPSILON;
    let error = (got - expected).abs() / unit;
    if error.is_nan() { f64::INFINITY } else { error }
}

/// Returns the largest error of a function in float64 and its argument, among the function's
/// hardest arguments. The exact function values are known with twice the precision of float64.
fn hardest_double(row: &MeasuredFn) -> (f64, f64) {
    let known = hardest_arguments::HARDEST.iter().find(|(name, _)| *name == row.name);
    let (_, known) = known.expect("every function has a list of hardest arguments");
    let error = |&(x, y, error_of_y): &hardest_arguments::HardestArgument| {
        let unit = f64::from_bits(y.abs().max(f64::MIN_POSITIVE).to_bits() & 0x7ff0_0000_0000_0000);
        ((((row.double)(x) - y) - error_of_y) / (unit * f64::EPSILON)).abs()
    };
    worst(known.iter().map(|k| (error(k), k.0)), 0.0)
}

/// Returns the largest error, in ulp, of the float64 implementation of a function, and the argument with this error. The reference
/// is the crate `libm`, which is the same on every machine; for GELU, the reference is a list of values.
fn worst_double(row: &MeasuredFn) -> (f64, f64) {
    if row.name == "gelu" {
        let errors = gelu_values::GELU.iter().map(|&(x, y)| (ulps_double((row.double)(x), y), x));
        return worst(errors, 0.0);
    }
    let arguments = (0..2047u64).flat_map(|exponent| {
        (0..40u64).flat_map(move |k| {
            let mantissa = k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
            let bits = exponent << 52 | mantissa;
            [f64::from_bits(bits), f64::from_bits(bits | 1 << 63)]
        })
    });
    let ordinary = (0..200_000).map(|k| f64::from(k - 100_000) * 7.3e-5 + 1e-7);
    let ends = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0];
    let used = |x: &f64| !row.limited || x.abs() <= f64::TRIG_LIMIT || x.is_nan();
    let errors = arguments.chain(ordinary).chain(ends).filter(used);
    worst(errors.map(|x| (ulps_double((row.double)(x), (row.expected)(x)), x)), 0.0)
}

/// Returns pairs of float32 arguments that cover all exponents.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let all: Vec<f32> = arguments(3).collect();
    let ordinary: Vec<f32> = (0..2000).map(|k| 0.05 + k as f32 * 0.007).collect();
    let coarse: Vec<(f32, f32)> =
        all.iter().step_by(3).flat_map(|&y| all.iter().step_by(7).map(move |&x| (y, x))).collect();
    let fine = ordinary.clone().into_iter().flat_map(move |y| {
        ordinary
            .clone()
            .into_iter()
            .step_by(13)
            .flat_map(move |x| [(y, x), (y, -x), (-y, x), (-y, -x)])
    });
    coarse.into_iter().chain(fine.step_by(3))
}

/// A function of two arguments: its name, the function in float32, and the reference in float64.
type Pair = (&'static str, fn(f32, f32) -> f32, fn(f64, f64) -> f64);

const PAIRS: [Pair; 2] = [
    ("atan2", |y, x| atan2(&mut Host::<f32>(PhantomData), &y, &x), libm::atan2),
    ("pow", |x, y| pow(&mut Host::<f64>(PhantomData), &x.into(), &y.into()) as f32, libm::pow),
];

#[test]
fn errors_match_the_documentation() {
    let head =
        "| function | float32: largest error, ulp | at | float64: largest error, ulp | at |\n";
    let mut table = format!("{head}|---|---|---|---|---|\n");
    let mut exceeded = Vec::new();
    let mut check_limit = |name: &str, error: f64, limit: f64| {
        if error > limit {
            exceeded.push(format!("{name}: the error of {error} ulp exceeds the limit"));
        }
        (error * 10.0).ceil() / 10.0
    };
    for row in FUNCTIONS {
        let (mut error, mut at) = worst_single(row, arguments(400).chain([row.hardest]));
        if row.limited {
            let hard = worst_single(row, hard_angles());
            if hard.0 > error {
                (error, at) = hard;
            }
        }
        let error = check_limit(row.name, error, 2.0);
        let (error64, at64) = hardest_double(row);
        let error64 = check_limit(row.name, error64, 2.3);
        // The results of libm have errors of up to 1 ulp.
        let (from_libm, where_) = worst_double(row);
        check_limit(
            &format!("{} of float64, from libm's, at {where_:e}", row.name),
            from_libm,
            3.0,
        );
        table.push_str(&format!(
            "| `{}` | {error:.1} | {at:e} | {error64:.1} | {at64:e} |\n",
            row.name
        ));
    }
    for (name, got, expected) in PAIRS {
        let errors = pairs().map(|(a, b)| (ulps(got(a, b), expected(a.into(), b.into())), (a, b)));
        let (error, (a, b)) = worst(errors, (0.0, 0.0));
        let error = check_limit(name, error, 2.0);
        table.push_str(&format!("| `{name}` | {error:.1} | {a:e}, {b:e} | | |\n"));
    }
    assert!(exceeded.is_empty(), "{}\n{table}", exceeded.join("\n"));
    check_document(&table);
}

/// Compares the table in the documentation with the measured errors. If `PLIANT_BLESS` is set,
/// writes the table instead.
fn check_document(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/numerics.md");
    let text = std::fs::read_to_string(path).expect("docs/reference/numerics.md");
    let (begin, end) = ("<!-- measured -->\n", "<!-- end of measured -->");
    let start = text.find(begin).expect("the page contains the start of the table") + begin.len();
    let stop = text.find(end).expect("the page contains the end of the table");
    if std::env::var_os("PLIANT_BLESS").is_some() {
        let new = format!("{}{table}{}", &text[..start], &text[stop..]);
        std::fs::write(path, new).expect("the file docs/reference/numerics.md can be written");
        return;
    }
    assert_eq!(
        &text[start..stop],
        table,
        "the table in docs/reference/numerics.md differs from the measured errors; PLIANT_BLESS=1 updates it"
    );
}

/// Returns every float32 of magnitude 2^-30 to 2^14, and every 61st of the other float32 numbers,
/// for which the tested functions behave like a power, are linear, or are constant.
fn nearly_all() -> impl Iterator<Item = f32> {
    let dense = ((127 - 30) << 23)..((127 + 14) << 23);
    let sparse = (0..dense.start).chain(dense.end..1 << 31).step_by(61);
    dense.chain(sparse).flat_map(|bits: u32| [bits, bits | 1 << 31]).map(f32::from_bits)
}

#[test]
#[ignore = "takes half an hour in a release build; the other test measures samples and the worst arguments found"]
fn errors_over_all_arguments() {
    let above: Vec<String> = FUNCTIONS
        .iter()
        .map(|row| (row.name, worst_single(row, nearly_all())))
        .filter(|(_, (error, _))| *error > 2.0)
        .map(|(name, (error, at))| {
            format!("{name}: the error of {error} ulp at {at:e} exceeds the limit")
        })
        .collect();
    assert!(above.is_empty(), "{above:?}");
}

#[test]
fn signs_of_zero_are_kept() {
    for name in
        ["sinh", "tanh", "asinh", "atanh", "sin", "tan", "asin", "atan", "erf", "gelu", "log1p"]
    {
        let row = FUNCTIONS
            .iter()
            .find(|row| row.name == name)
            .expect("the table has a row for the function");
        for zero in [0.0f32, -0.0] {
            assert_eq!((row.single)(zero).to_bits(), zero.to_bits(), "{name}");
            let zero = f64::from(zero);
            assert_eq!((row.double)(zero).to_bits(), zero.to_bits(), "{name}");
        }
    }
    for (y, x, expected) in [
        (0.0f32, 0.0f32, 0.0f64),
        (-0.0, 0.0, -0.0),
        (0.0, -0.0, std::f64::consts::PI),
        (-0.0, -1.0, -std::f64::consts::PI),
        (f32::INFINITY, f32::NEG_INFINITY, 0.75 * std::f64::consts::PI),
        (-1.0, f32::INFINITY, -0.0),
    ] {
        let got = (PAIRS[0].1)(y, x);
        assert_eq!(got.to_bits(), (expected as f32).to_bits(), "atan2({y}, {x}) is {got}");
    }
}

#[test]
fn special_powers_are_those_of_the_platform() {
    let ends =
        [0.0f32, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, 1e30, -1e30, 1e-30, -1e-30];
    let more = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE / 8.0,
        f32::MAX,
        16_777_215.0,
    ];
    let all: Vec<f32> = ends.into_iter().chain(more).collect();
    for &x in &all {
        for &y in &all {
            let (got, expected) = ((PAIRS[1].1)(x, y), f64::from(x).powf(y.into()) as f32);
            let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
            assert!(
                same || ulps(got, expected.into()) <= 1.0
                    && expected.is_finite()
                    && expected != 0.0,
                "{x}^{y} is {got}, expected {expected}"
            );
        }
    }
}

#[test]
fn silu_is_accurate_down_to_its_cutoff() {
    let silu_of = |x: f32| silu(&mut Host::<f32>(PhantomData), &x);
    let exact = |x: f64| x / (1.0 + (-x).exp());
    for x in arguments(40).filter(|x| !x.is_nan() && *x >= -86.0 && x.is_finite()) {
        let error = ulps(silu_of(x), exact(x.into()));
        assert!(error <= 4.0, "silu({x:e}): the error of {error} ulp exceeds the limit");
    }
    // The product of minus infinity and 0, as for the product with the sigmoid.
    assert!(silu_of(f32::NAN).is_nan() && silu_of(f32::NEG_INFINITY).is_nan());
    assert_eq!(silu_of(f32::INFINITY), f32::INFINITY);
    for x in [-88.0, -1e30] {
        assert_eq!(silu_of(x), 0.0, "silu({x:e})");
    }
}
