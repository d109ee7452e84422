//! Measures every sequence against float64 functions, over all exponents, and keeps the table of `docs/numerics.md`
//! current: `PLIANT_BLESS=1` writes it.

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
    fn sqrt(&mut self, a: &f32) -> f32 {
        a.sqrt()
    }
    fn fma(&mut self, a: &f32, b: &f32, c: &f32) -> f32 {
        // Rounded once: the product is exact in float64, and its sum is rounded to odd before it is rounded again.
        let (p, c) = (f64::from(*a) * f64::from(*b), f64::from(*c));
        let sum = p + c;
        let back = sum - p;
        let lost = (p - (sum - back)) + (c - back);
        let even = sum.to_bits() & 1 == 0;
        if even && lost != 0.0 && sum.is_finite() {
            let up = (lost > 0.0) == (sum > 0.0);
            let bits = if up { sum.to_bits() + 1 } else { sum.to_bits() - 1 };
            return f64::from_bits(bits) as f32;
        }
        sum as f32
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

/// A sequence of one argument, what it should yield, and up to which argument it is used.
struct Row {
    name: &'static str,
    got: fn(f32) -> f32,
    want: fn(f64) -> f64,
    limit: f32,
}

macro_rules! rows {
    ($($name:ident = $want:expr $(, up to $limit:expr)?;)*) => {
        &[$(Row {
            name: stringify!($name),
            got: |x| $name(&mut Host, &x),
            want: $want,
            limit: [$($limit,)? f32::INFINITY][0],
        },)*]
    };
}

const ROWS: &[Row] = rows! {
    exp = f64::exp;
    log = f64::ln;
    log1p = f64::ln_1p;
    sigmoid = |x| 1.0 / (1.0 + (-x).exp());
    sinh = f64::sinh;
    cosh = f64::cosh;
    tanh = f64::tanh;
    asinh = libm::asinh;
    acosh = |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    atanh = libm::atanh;
    sin = f64::sin, up to TRIG_LIMIT;
    cos = f64::cos, up to TRIG_LIMIT;
    tan = f64::tan, up to TRIG_LIMIT;
    asin = f64::asin;
    acos = f64::acos;
    atan = f64::atan;
    erf = libm::erf;
};

/// The distance from the true value in units of the last place of a float32 of that size; infinite where one is NaN
/// or infinite and the other is not.
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got == rounded || (got.is_nan() && rounded.is_nan()) {
        return (f64::from(got) - want).abs() / unit(want).max(f64::MIN_POSITIVE)
            * f64::from(got.is_finite());
    }
    // Beyond the largest float, one that is infinite is as good as the largest.
    if !got.is_finite() && rounded.abs() < f32::MAX {
        return f64::INFINITY;
    }
    let got = if got.is_infinite() {
        f64::from(f32::MAX) * f64::from(got.signum())
    } else {
        f64::from(got)
    };
    (got - want).abs() / unit(want)
}

/// The last place of a float32 of that size.
fn unit(want: f64) -> f64 {
    let size = want.abs().clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
    let exponent = (size.to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent - 23)
}

/// Arguments of every exponent and both signs, `per` for each, the ends among them.
fn arguments(per: u32) -> impl Iterator<Item = f32> {
    (0..=255u32).flat_map(move |exponent| {
        (0..per).flat_map(move |k| {
            // The middle ones are spread over the mantissas by the golden ratio.
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

/// The arguments nearest to multiples of pi/2, where most digits of the angle cancel.
fn hard_angles() -> impl Iterator<Item = f32> {
    (1..5200).flat_map(|k| {
        let near = (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32;
        [near.to_bits() - 1, near.to_bits(), near.to_bits() + 1].map(f32::from_bits)
    })
}

/// The largest error of a row, and the argument where it is.
fn worst(row: &Row, arguments: impl Iterator<Item = f32>) -> (f64, f32) {
    arguments
        .filter(|x| x.abs() <= row.limit || x.is_nan())
        .map(|x| (ulps((row.got)(x), (row.want)(f64::from(x))), x))
        .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
}

/// Pairs of arguments over all exponents.
fn pairs() -> impl Iterator<Item = (f32, f32)> {
    let all: Vec<f32> = arguments(3).collect();
    let near: Vec<f32> = (0..2000).map(|k| 0.05 + k as f32 * 0.007).collect();
    let coarse: Vec<(f32, f32)> =
        all.iter().step_by(3).flat_map(|&y| all.iter().step_by(7).map(move |&x| (y, x))).collect();
    let fine = near.clone().into_iter().flat_map(move |y| {
        near.clone().into_iter().step_by(13).flat_map(move |x| [(y, x), (y, -x), (-y, x), (-y, -x)])
    });
    coarse.into_iter().chain(fine.step_by(3))
}

#[test]
fn errors_are_as_listed() {
    let mut table = String::from("| function | largest error, ulp | at |\n|---|---|---|\n");
    let mut wrong = Vec::new();
    let mut line = |name: &str, error: f64, at: String| {
        if error > 2.0 {
            wrong.push(format!("{name}: {error} ulp at {at}"));
        }
        let shown = (error * 10.0).ceil() / 10.0;
        table.push_str(&format!("| `{name}` | {shown:.1} | {at} |\n"));
    };
    for row in ROWS {
        let (mut error, mut at) = worst(row, arguments(400));
        if row.limit.is_finite() {
            let hard = worst(row, hard_angles());
            if hard.0 > error {
                (error, at) = hard;
            }
        }
        line(row.name, error, format!("{at:e}"));
    }
    let (error, (y, x)) = pairs()
        .map(|(y, x)| (ulps(atan2(&mut Host, &y, &x), f64::from(y).atan2(f64::from(x))), (y, x)))
        .fold((0.0, (0.0, 0.0)), |a, b| if b.0 > a.0 { b } else { a });
    line("atan2", error, format!("{y:e}, {x:e}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_document(&table);
}

/// Compares the table of the page with what was measured, or writes it.
fn check_document(table: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/numerics.md");
    let text = std::fs::read_to_string(path).expect("docs/numerics.md");
    let (begin, end) = ("<!-- measured -->\n", "<!-- end of measured -->");
    let start = text.find(begin).expect("the table's start") + begin.len();
    let stop = text.find(end).expect("the table's end");
    if std::env::var_os("PLIANT_BLESS").is_some() {
        let new = format!("{}{table}{}", &text[..start], &text[stop..]);
        std::fs::write(path, new).expect("docs/numerics.md can be written");
        return;
    }
    assert_eq!(&text[start..stop], table, "PLIANT_BLESS=1 writes the table of docs/numerics.md");
}

#[test]
#[ignore = "all four billion arguments of seventeen functions take hours"]
fn errors_over_all_arguments() {
    for row in ROWS {
        let (error, at) = worst(row, (0..=u32::MAX).map(f32::from_bits));
        assert!(error <= 2.0, "{}: {error} ulp at {at:e}", row.name);
    }
}

#[test]
fn signs_of_zero_are_kept() {
    let odd = [sinh::<Host>, tanh::<Host>, asinh::<Host>, atanh::<Host>, sin::<Host>, tan::<Host>];
    for f in odd.into_iter().chain([asin::<Host>, atan::<Host>, erf::<Host>, log1p::<Host>]) {
        for zero in [0.0f32, -0.0] {
            assert_eq!(f(&mut Host, &zero).to_bits(), zero.to_bits());
        }
    }
    for (y, x, want) in [
        (0.0f32, 0.0f32, 0.0f64),
        (-0.0, 0.0, -0.0),
        (0.0, -0.0, std::f64::consts::PI),
        (-0.0, -1.0, -std::f64::consts::PI),
        (f32::INFINITY, f32::NEG_INFINITY, 0.75 * std::f64::consts::PI),
        (-1.0, f32::INFINITY, -0.0),
    ] {
        let got = atan2(&mut Host, &y, &x);
        assert_eq!(got.to_bits(), (want as f32).to_bits(), "atan2({y}, {x}) is {got}");
    }
}
