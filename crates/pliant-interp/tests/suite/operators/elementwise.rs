//! Tests elementwise operators with one and two operands.

use pliant_ir::{AttrValue, Attrs, DType};
use pliant_tensor::f16;

use super::expected_arrays::*;
use super::operator_call_harness::*;

/// Computes the error function by its Taylor series, as the expected result.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for k in 1..200 {
        term *= -x * x / f64::from(k);
        sum += term / f64::from(2 * k + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

fn unary(op: &'static str, f: fn(f64) -> f64, positive: bool) {
    for (k, shape) in shapes().enumerate() {
        let mut x = Nd::sample(&shape, k as i64);
        if positive {
            x = x.map(|v| v.abs() + 0.5);
        }
        expect(op, &[x.f32()], &Attrs::default(), &x.map(f), F32, CLOSE);
        let want = x.map(|v| f16::from_f64(f(v)).to_f64());
        expect(op, &[x.value(DType::Float16)], &Attrs::default(), &want, DType::Float16, 4e-3);
    }
}

fn unary_int(op: &'static str, f: fn(f64) -> f64) {
    for shape in shapes() {
        let x = Nd::sample(&shape, 2).map(f64::trunc);
        expect(op, &[x.value(I64)], &Attrs::default(), &x.map(f), I64, 0.0);
    }
}

pub const UNARY: &[Case] = &[
    ("relax.abs", || {
        unary("relax.abs", f64::abs, false);
        unary_int("relax.abs", f64::abs);
    }),
    ("relax.negative", || {
        unary("relax.negative", |x| -x, false);
        unary_int("relax.negative", |x| -x);
    }),
    ("relax.square", || {
        unary("relax.square", |x| x * x, false);
        unary_int("relax.square", |x| x * x);
    }),
    ("relax.sign", || {
        unary("relax.sign", |x| if x == 0.0 { 0.0 } else { x.signum() }, false);
        unary_int("relax.sign", |x| if x == 0.0 { 0.0 } else { x.signum() });
    }),
    ("relax.floor", || {
        unary("relax.floor", f64::floor, false);
        unary_int("relax.floor", |x| x);
    }),
    ("relax.ceil", || unary("relax.ceil", f64::ceil, false)),
    ("relax.trunc", || unary("relax.trunc", f64::trunc, false)),
    ("relax.round", || unary("relax.round", f64::round_ties_even, false)),
    ("relax.exp", || unary("relax.exp", f64::exp, false)),
    ("relax.log", || unary("relax.log", f64::ln, true)),
    ("relax.sqrt", || unary("relax.sqrt", f64::sqrt, true)),
    ("relax.rsqrt", || unary("relax.rsqrt", |x| 1.0 / x.sqrt(), true)),
    ("relax.sin", || unary("relax.sin", f64::sin, false)),
    ("relax.cos", || unary("relax.cos", f64::cos, false)),
    ("relax.tanh", || unary("relax.tanh", f64::tanh, false)),
    ("relax.erf", || unary("relax.erf", erf, false)),
    ("relax.sigmoid", || unary("relax.sigmoid", |x| 1.0 / (1.0 + (-x).exp()), false)),
    ("relax.nn.relu", || {
        unary("relax.nn.relu", |x| x.max(0.0), false);
        unary_int("relax.nn.relu", |x| x.max(0.0));
    }),
    ("relax.nn.gelu", || unary("relax.nn.gelu", |x| x * 0.5 * (1.0 + erf(x / 2f64.sqrt())), false)),
    ("relax.nn.gelu_tanh", || unary("relax.nn.gelu_tanh", gelu_tanh, false)),
    ("relax.nn.silu", || unary("relax.nn.silu", |x| x / (1.0 + (-x).exp()), false)),
    ("relax.logical_not", || {
        for shape in shapes() {
            let x = Nd::sample(&shape, 1);
            let want = x.map(|v| f64::from(v == 0.0));
            for dtype in [BOOL, F32, I64] {
                let x = if dtype == I64 { x.map(|v| v * 2.0) } else { x.clone() };
                expect("relax.logical_not", &[x.value(dtype)], &Attrs::default(), &want, BOOL, 0.0);
            }
        }
    }),
    ("relax.astype", || {
        let to = |d: DType| attrs(&[("dtype", AttrValue::DType(d))]);
        for shape in shapes() {
            let x = Nd::sample(&shape, 1);
            expect("relax.astype", &[x.f32()], &to(I64), &x.map(f64::trunc), I64, 0.0);
            expect(
                "relax.astype",
                &[x.f32()],
                &to(DType::UInt8),
                &x.map(|v| v.max(0.0).trunc()),
                DType::UInt8,
                0.0,
            );
            expect(
                "relax.astype",
                &[x.f32()],
                &to(BOOL),
                &x.map(|v| f64::from(v != 0.0)),
                BOOL,
                0.0,
            );
            let whole = x.map(f64::trunc);
            expect("relax.astype", &[whole.value(I64)], &to(F32), &whole, F32, 0.0);
        }
    }),
];

/// Returns pairs of shapes that can be broadcast to each other.
fn pairs() -> impl Iterator<Item = (Vec<i64>, Vec<i64>)> {
    SIZES.into_iter().flat_map(|n| {
        [
            (vec![n], vec![n]),
            (vec![n, 3], vec![3]),
            (vec![n, 3], vec![1, 3]),
            (vec![n, 1], vec![1, 7]),
            (vec![], vec![n]),
            (vec![2, n], vec![2, 1]),
        ]
    })
}

fn binary_of(op: &'static str, f: fn(f64, f64) -> f64, dtype: DType, out: DType, divisor: bool) {
    for (k, (a, b)) in pairs().enumerate() {
        let whole = |v: f64| if dtype.is_float() { v } else { v * 2.0 };
        let x = Nd::sample(&a, k as i64).map(whole);
        let mut y = Nd::sample(&b, k as i64 + 3).map(whole);
        if divisor {
            y = y.map(|v| if v == 0.0 { 2.0 } else { v });
        }
        let want = Nd::new(&broadcast(&a, &b), |i| f(x.at(i), y.at(i)));
        let args = [x.value(dtype), y.value(dtype)];
        expect(
            op,
            &args,
            &Attrs::default(),
            &want,
            out,
            if dtype.is_float() { CLOSE } else { 0.0 },
        );
    }
}

fn arithmetic(op: &'static str, f: fn(f64, f64) -> f64) {
    binary_of(op, f, F32, F32, false);
    binary_of(op, f, I64, I64, false);
    binary_of(op, f, DType::Int32, DType::Int32, false);
}

fn division(op: &'static str, float: fn(f64, f64) -> f64, integer: fn(f64, f64) -> f64) {
    binary_of(op, float, F32, F32, true);
    binary_of(op, integer, I64, I64, true);
}

fn comparison(op: &'static str, f: fn(f64, f64) -> bool) {
    for dtype in [F32, I64] {
        for (k, (a, b)) in pairs().enumerate() {
            let whole = |v: f64| if dtype.is_float() { v } else { v * 2.0 };
            let x = Nd::sample(&a, k as i64).map(whole);
            let y = Nd::sample(&b, k as i64 + 1).map(whole);
            let want = Nd::new(&broadcast(&a, &b), |i| f64::from(f(x.at(i), y.at(i))));
            expect(op, &[x.value(dtype), y.value(dtype)], &Attrs::default(), &want, BOOL, 0.0);
        }
    }
}

fn floor_mod(a: f64, b: f64) -> f64 {
    a - (a / b).floor() * b
}

pub const BINARY: &[Case] = &[
    ("relax.add", || arithmetic("relax.add", |a, b| a + b)),
    ("relax.subtract", || arithmetic("relax.subtract", |a, b| a - b)),
    ("relax.multiply", || arithmetic("relax.multiply", |a, b| a * b)),
    ("relax.maximum", || arithmetic("relax.maximum", f64::max)),
    ("relax.minimum", || arithmetic("relax.minimum", f64::min)),
    ("relax.divide", || division("relax.divide", |a, b| a / b, |a, b| (a / b).trunc())),
    ("relax.floor_divide", || {
        division("relax.floor_divide", |a, b| (a / b).floor(), |a, b| (a / b).floor());
    }),
    ("relax.mod", || division("relax.mod", floor_mod, floor_mod)),
    ("relax.floor_mod", || division("relax.floor_mod", floor_mod, floor_mod)),
    ("relax.power", || {
        for (k, (a, b)) in pairs().enumerate() {
            let x = Nd::sample(&a, k as i64).map(|v| v.abs() + 0.5);
            let y = Nd::sample(&b, k as i64 + 3);
            let want = Nd::new(&broadcast(&a, &b), |i| x.at(i).powf(y.at(i)));
            expect("relax.power", &[x.f32(), y.f32()], &Attrs::default(), &want, F32, CLOSE);
        }
    }),
    ("relax.equal", || comparison("relax.equal", |a, b| a == b)),
    ("relax.not_equal", || comparison("relax.not_equal", |a, b| a != b)),
    ("relax.less", || comparison("relax.less", |a, b| a < b)),
    ("relax.less_equal", || comparison("relax.less_equal", |a, b| a <= b)),
    ("relax.greater", || comparison("relax.greater", |a, b| a > b)),
    ("relax.greater_equal", || comparison("relax.greater_equal", |a, b| a >= b)),
    ("relax.logical_and", || logical("relax.logical_and", |a, b| a && b)),
    ("relax.logical_or", || logical("relax.logical_or", |a, b| a || b)),
];

fn logical(op: &'static str, f: fn(bool, bool) -> bool) {
    for (k, (a, b)) in pairs().enumerate() {
        let bit = |v: f64| f64::from(v > 0.0);
        let x = Nd::sample(&a, k as i64).map(bit);
        let y = Nd::sample(&b, k as i64 + 1).map(bit);
        let want = Nd::new(&broadcast(&a, &b), |i| f64::from(f(x.at(i) != 0.0, y.at(i) != 0.0)));
        expect(op, &[x.value(BOOL), y.value(BOOL)], &Attrs::default(), &want, BOOL, 0.0);
    }
}
