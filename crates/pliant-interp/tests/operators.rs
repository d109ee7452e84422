//! The value of every operator, against plain formulas, at sizes 0, 1, 2, 3 and 7. Each call is made twice: with
//! constant dims, and with a symbol for every size other than 1.

mod common;

use std::collections::BTreeMap;

use common::numbers;
use pliant_interp::{NoPacked, Value, run};
use pliant_ir::op::Op;
use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Sym};
use pliant_ops::registry;
use pliant_tensor::{Tensor, bf16, f16};

const SIZES: [i64; 5] = [0, 1, 2, 3, 7];

// ---- numbers in an array ----

/// A plain array of numbers.
#[derive(Clone, Debug)]
struct Nd {
    shape: Vec<i64>,
    data: Vec<f64>,
}

impl Nd {
    fn new(shape: &[i64], mut f: impl FnMut(&[i64]) -> f64) -> Nd {
        let count: i64 = shape.iter().product();
        let data = (0..count).map(|i| f(&unravel(i, shape))).collect();
        Nd { shape: shape.to_vec(), data }
    }

    /// Multiples of a half between -3 and 3, 0 among them.
    fn sample(shape: &[i64], seed: i64) -> Nd {
        let mut i = seed * 5;
        Nd::new(shape, |_| {
            i += 7;
            (i % 13 - 6) as f64 / 2.0
        })
    }

    fn map(&self, f: impl Fn(f64) -> f64) -> Nd {
        Nd { shape: self.shape.clone(), data: self.data.iter().map(|&v| f(v)).collect() }
    }

    /// The element at indices, which may have more dims; dims of size 1 stretch.
    fn at(&self, i: &[i64]) -> f64 {
        let i = &i[i.len() - self.shape.len()..];
        let fold = |p, (&i, &d): (&i64, &i64)| if d == 1 { p } else { p * d + i };
        self.data[i.iter().zip(&self.shape).fold(0, fold) as usize]
    }

    fn value(&self, dtype: DType) -> Value {
        let bytes: Vec<u8> = self.data.iter().flat_map(|&v| bytes(v, dtype)).collect();
        Tensor::from_bytes(&self.shape, dtype, &bytes).unwrap().into()
    }

    fn f32(&self) -> Value {
        self.value(DType::Float32)
    }
}

fn bytes(v: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(v != 0.0)],
        DType::Int32 => (v as i32).to_ne_bytes().to_vec(),
        DType::Int64 => (v as i64).to_ne_bytes().to_vec(),
        DType::UInt8 => vec![v as u8],
        DType::Float16 => f16::from_f64(v).to_ne_bytes().to_vec(),
        DType::BFloat16 => bf16::from_f64(v).to_ne_bytes().to_vec(),
        DType::Float32 => (v as f32).to_ne_bytes().to_vec(),
        DType::Float64 => v.to_ne_bytes().to_vec(),
        other => panic!("no test uses {other}"),
    }
}

fn unravel(mut i: i64, shape: &[i64]) -> Vec<i64> {
    let mut out = vec![0; shape.len()];
    for (o, d) in out.iter_mut().zip(shape).rev() {
        *o = i % d;
        i /= d;
    }
    out
}

fn broadcast(a: &[i64], b: &[i64]) -> Vec<i64> {
    let rank = a.len().max(b.len());
    let dim = |s: &[i64], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank).map(|i| if dim(a, i) == 1 { dim(b, i) } else { dim(a, i) }).collect()
}

// ---- calls ----

/// `op(args, attrs)` in a function of its own.
fn call(op: &'static str, args: &[Value], attrs: &Attrs, symbolic: bool) -> Result<Value, String> {
    let mut build = Build {
        fb: FunctionBuilder::new(registry()),
        syms: BTreeMap::new(),
        symbolic,
        // Strides and axes are constants.
        symbolic_shapes: symbolic && op != "relax.strided_slice",
        inputs: Vec::new(),
    };
    let operands: Vec<Expr> = args.iter().map(|a| build.operand(a)).collect();
    let mut fb = build.fb;
    let call = fb.call_op(Op(op), &operands, attrs.clone(), &[]).map_err(|e| e.to_string())?;
    let result = fb.emit(call);
    let result = fb.func_mut().var_expr(result);
    let mut module = IRModule::new();
    module.insert("main", fb.finish(result, None, false));
    run(&module, "main", &build.inputs, &NoPacked).map_err(|e| e.to_string())
}

struct Build {
    fb: FunctionBuilder<'static>,
    syms: BTreeMap<i64, Sym>,
    symbolic: bool,
    symbolic_shapes: bool,
    inputs: Vec<Value>,
}

impl Build {
    /// Sizes that a tensor before has become its symbol.
    fn dim(&mut self, d: i64, define: bool) -> Sym {
        let func = self.fb.func_mut();
        if self.symbolic && d != 1 {
            if let Some(&s) = self.syms.get(&d) {
                return s;
            }
            if define {
                let v = func.fresh_sym(&format!("n{d}"));
                let s = func.syms.var(v);
                self.syms.insert(d, s);
                return s;
            }
        }
        func.syms.int(d)
    }

    fn operand(&mut self, value: &Value) -> Expr {
        match value {
            Value::Tensor(t) => {
                let dims: Vec<Sym> = t.shape().iter().map(|&d| self.dim(d, true)).collect();
                let ty = self.fb.func_mut().intern(TypeData::tensor(dims, t.dtype()));
                let var = self.fb.param("x", ty);
                self.inputs.push(value.clone());
                self.fb.func_mut().var_expr(var)
            }
            Value::Shape(dims) => {
                let size = |b: &mut Self, d: i64| {
                    if d < 2 || !b.symbolic_shapes { b.constant(d) } else { b.dim(d, false) }
                };
                let dims: Vec<Sym> = dims.iter().map(|&d| size(self, d)).collect();
                self.fb.func_mut().shape(&dims)
            }
            Value::Tuple(items) => {
                let items: Vec<Expr> = items.iter().map(|i| self.operand(i)).collect();
                self.fb.func_mut().tuple(&items)
            }
            Value::Int(v) => {
                let v = self.constant(*v);
                self.fb.func_mut().int_value(v, DType::Int64)
            }
            Value::Float(v) => self.fb.func_mut().float_value(*v, DType::Float32),
            other => panic!("no test has {other:?} as an operand"),
        }
    }

    fn constant(&mut self, v: i64) -> Sym {
        self.fb.func_mut().syms.int(v)
    }
}

fn attrs(list: &[(&str, AttrValue)]) -> Attrs {
    list.iter().fold(Attrs::default(), |a, (k, v)| a.with(k, v.clone()))
}

fn int(v: i64) -> AttrValue {
    AttrValue::Int(v)
}

/// Calls an operator both ways and compares with what it should be, to `tolerance`.
fn expect(op: &'static str, args: &[Value], with: &Attrs, want: &Nd, dtype: DType, tolerance: f64) {
    for symbolic in [false, true] {
        let text = || format!("{op}{args:?} {with:?} symbolic={symbolic}");
        let got = call(op, args, with, symbolic).unwrap_or_else(|e| panic!("{}: {e}", text()));
        assert_eq!(got.as_tensor().map(Tensor::dtype), Some(dtype), "{}", text());
        compare(&got, want, tolerance, &text);
    }
}

fn compare(got: &Value, want: &Nd, tolerance: f64, text: &dyn Fn() -> String) {
    let (shape, data) = numbers(got);
    assert_eq!(shape, want.shape, "{}", text());
    for (i, (g, w)) in data.iter().zip(&want.data).enumerate() {
        let close =
            g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(close, "{}: element {i} is {g}, not {w}", text());
    }
}

const F32: DType = DType::Float32;
const I64: DType = DType::Int64;
const BOOL: DType = DType::Bool;
/// The float32 tolerance of functions that are not exact.
const CLOSE: f64 = 2e-6;

fn shapes() -> impl Iterator<Item = Vec<i64>> {
    SIZES.into_iter().flat_map(|n| [vec![n], vec![n, 3], vec![2, n]]).chain([vec![]])
}

// ---- the cases ----

type Case = (&'static str, fn());

/// By its series.
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

const UNARY: &[Case] = &[
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

/// Pairs of shapes that broadcast.
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

const BINARY: &[Case] = &[
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

fn filled(op: &'static str, like: bool, v: Option<f64>) {
    for shape in shapes() {
        let x = Nd::sample(&shape, 1);
        let value = v.unwrap_or(2.5);
        let mut args = vec![if like { x.f32() } else { Value::shape(&shape) }];
        if v.is_none() {
            args.push(Nd::new(&[], |_| 2.5).f32());
        }
        expect(op, &args, &Attrs::default(), &x.map(|_| value), F32, 0.0);
        let with = attrs(&[("dtype", AttrValue::DType(I64))]);
        expect(op, &args, &with, &x.map(|_| value.trunc()), I64, 0.0);
    }
}

fn triangle(op: &'static str, keep: fn(i64, i64, i64) -> bool) {
    for n in SIZES {
        for k in [-2, 0, 1] {
            let x = Nd::sample(&[2, n, 3], n);
            let want = Nd::new(&x.shape, |i| if keep(i[1], i[2], k) { x.at(i) } else { 0.0 });
            expect(op, &[x.f32()], &attrs(&[("k", int(k))]), &want, F32, 0.0);
        }
    }
}

const CREATE: &[Case] = &[
    ("relax.full", || filled("relax.full", false, None)),
    ("relax.zeros", || filled("relax.zeros", false, Some(0.0))),
    ("relax.ones", || filled("relax.ones", false, Some(1.0))),
    ("relax.full_like", || filled("relax.full_like", true, None)),
    ("relax.zeros_like", || filled("relax.zeros_like", true, Some(0.0))),
    ("relax.ones_like", || filled("relax.ones_like", true, Some(1.0))),
    ("relax.arange", || {
        for n in SIZES {
            for (start, step) in [(0, 1), (-2, 3), (5, -2)] {
                let len = ((n - start + step - step.signum()) / step).max(0);
                let want = Nd::new(&[len], |i| (start + step * i[0]) as f64);
                let args = [Value::Int(start), Value::Int(n), Value::Int(step)];
                expect("relax.arange", &args, &Attrs::default(), &want, I64, 0.0);
                let with = attrs(&[("dtype", AttrValue::DType(F32))]);
                expect("relax.arange", &args, &with, &want, F32, 0.0);
            }
            let want = Nd::new(&[n], |i| i[0] as f64);
            expect("relax.arange", &[Value::Int(n)], &Attrs::default(), &want, I64, 0.0);
        }
        let args = [Value::Float(0.5), Value::Float(2.0), Value::Float(0.5)];
        let want = Nd::new(&[3], |i| 0.5 + 0.5 * i[0] as f64);
        expect("relax.arange", &args, &Attrs::default(), &want, F32, 0.0);
    }),
    ("relax.tril", || triangle("relax.tril", |r, c, k| c <= r + k)),
    ("relax.triu", || triangle("relax.triu", |r, c, k| c >= r + k)),
];

const INDEX: &[Case] = &[
    ("relax.where", || {
        for n in SIZES {
            let c = Nd::sample(&[n, 1], 1).map(|v| f64::from(v > 0.0));
            let (x, y) = (Nd::sample(&[n, 3], 2), Nd::sample(&[3], 3));
            let want = Nd::new(&[n, 3], |i| if c.at(i) != 0.0 { x.at(i) } else { y.at(i) });
            expect(
                "relax.where",
                &[c.value(BOOL), x.f32(), y.f32()],
                &Attrs::default(),
                &want,
                F32,
                0.0,
            );
        }
    }),
    ("relax.take", || {
        for n in SIZES {
            let x = Nd::sample(&[3, 4, 2], 1);
            let at = Nd::new(&[n], |i| ((i[0] * 5) % 7 - 3) as f64);
            for (axis, size) in [(0usize, 3i64), (1, 4), (2, 2)] {
                let mut shape = x.shape.clone();
                shape[axis] = n;
                for mode in ["fast", "wrap", "clip"] {
                    let at = if mode == "fast" {
                        at.map(|v| v.rem_euclid(2.0 * size as f64) - size as f64)
                    } else {
                        at.clone()
                    };
                    let want = Nd::new(&shape, |i| {
                        let (mut i, v) = (i.to_vec(), at.data[i[axis] as usize] as i64);
                        i[axis] =
                            if mode == "clip" { v.clamp(0, size - 1) } else { v.rem_euclid(size) };
                        x.at(&i)
                    });
                    let with = attrs(&[("axis", int(axis as i64)), ("mode", AttrValue::str(mode))]);
                    expect("relax.take", &[x.f32(), at.value(I64)], &with, &want, F32, 0.0);
                }
            }
            // Indices of any rank.
            let at = Nd::new(&[n, 2], |i| (i[1] * 2) as f64);
            let want = Nd::new(&[n, 2, 4, 2], |i| x.at(&[i[1] * 2, i[2], i[3]]));
            let with = attrs(&[("axis", int(0))]);
            expect("relax.take", &[x.f32(), at.value(DType::Int32)], &with, &want, F32, 0.0);
        }
        let bad = Nd::new(&[1], |_| 5.0).value(I64);
        let error = call("relax.take", &[Nd::sample(&[3], 1).f32(), bad], &Attrs::default(), true);
        assert!(error.unwrap_err().contains("out of range"));
    }),
    ("relax.strided_slice", || {
        for n in SIZES {
            for (begin, end, step) in [
                (0, 2, 1),
                (1, 100, 2),
                (-2, i64::MAX, 1),
                (5, 0, 1),
                (-1, -100, -1),
                (6, 1, -2),
                (2, 2, 1),
            ] {
                let x = Nd::sample(&[2, n], n);
                let picked = python_slice(n, begin, end, step);
                let want =
                    Nd::new(&[2, picked.len() as i64], |i| x.at(&[i[0], picked[i[1] as usize]]));
                let list = |v: i64| Value::shape(&[v]);
                let args = [x.f32(), list(1), list(begin), list(end), list(step)];
                expect("relax.strided_slice", &args, &Attrs::default(), &want, F32, 0.0);
            }
        }
    }),
];

/// The indices of `range(n)[begin:end:step]`.
fn python_slice(n: i64, begin: i64, end: i64, step: i64) -> Vec<i64> {
    let fix = |v: i64| {
        let v = if v < 0 { v + n } else { v };
        if step > 0 { v.clamp(0, n) } else { v.clamp(-1, n - 1) }
    };
    let (mut i, end) = (fix(begin), fix(end));
    let mut out = Vec::new();
    while (step > 0 && i < end) || (step < 0 && i > end) {
        out.push(i);
        i += step;
    }
    out
}

fn matmul(a: &Nd, b: &Nd) -> Nd {
    let (x, y) = (a.shape.len(), b.shape.len());
    let k = a.shape[x - 1];
    let batch = broadcast(&a.shape[..x.saturating_sub(2)], &b.shape[..y.saturating_sub(2)]);
    let mut shape = batch.clone();
    shape.extend((x > 1).then(|| a.shape[x - 2]));
    shape.extend((y > 1).then(|| b.shape[y - 1]));
    Nd::new(&shape, |i| {
        let (lead, rest) = i.split_at(batch.len());
        let sum = (0..k).map(|p| {
            let left = if x > 1 { [lead, &[rest[0], p]].concat() } else { vec![p] };
            let right = if y > 1 { [lead, &[p, rest[rest.len() - 1]]].concat() } else { vec![p] };
            a.at(&left) * b.at(&right)
        });
        sum.sum()
    })
}

const LINEAR_ALGEBRA: &[Case] = &[
    ("relax.matmul", || {
        for n in SIZES {
            for (a, b) in [
                (vec![n, 3], vec![3, 2]),
                (vec![2, n], vec![n, 3]),
                (vec![3, 2], vec![2, n]),
                (vec![n], vec![n]),
                (vec![n], vec![n, 2]),
                (vec![2, n], vec![n]),
                (vec![n, 2, 3], vec![3, 2]),
                (vec![n, 1, 2, 3], vec![7, 3, 2]),
            ] {
                let (a, b) = (Nd::sample(&a, 1), Nd::sample(&b, 2));
                let want = matmul(&a, &b);
                expect("relax.matmul", &[a.f32(), b.f32()], &Attrs::default(), &want, F32, CLOSE);
                let half = [a.value(DType::Float16), b.value(DType::Float16)];
                expect("relax.matmul", &half, &Attrs::default(), &want, DType::Float16, 2e-3);
                let with = attrs(&[("out_dtype", AttrValue::DType(F32))]);
                expect("relax.matmul", &half, &with, &want, F32, CLOSE);
            }
        }
    }),
    ("relax.linear", || {
        for n in SIZES {
            let (x, w, b) =
                (Nd::sample(&[2, n, 3], 1), Nd::sample(&[4, 3], 2), Nd::sample(&[4], 3));
            let product = Nd::new(&[2, n, 4], |i| {
                (0..3).map(|k| x.at(&[i[0], i[1], k]) * w.at(&[i[2], k])).sum()
            });
            let args = [x.f32(), w.f32(), b.f32()];
            expect("relax.linear", &args[..2], &Attrs::default(), &product, F32, CLOSE);
            let want = Nd::new(&product.shape, |i| product.at(i) + b.at(i));
            expect("relax.linear", &args, &Attrs::default(), &want, F32, CLOSE);
        }
    }),
    ("relax.outer", || {
        for n in SIZES {
            let (a, b) = (Nd::sample(&[n], 1), Nd::sample(&[3], 2));
            let want = Nd::new(&[n, 3], |i| a.at(&i[..1]) * b.at(&i[1..]));
            expect("relax.outer", &[a.f32(), b.f32()], &Attrs::default(), &want, F32, 0.0);
        }
    }),
];

fn viewed(op: &'static str, x: &Nd, extra: &[Value], with: &Attrs, shape: &[i64]) {
    let want = Nd { shape: shape.to_vec(), data: x.data.clone() };
    let args: Vec<Value> = [x.f32()].into_iter().chain(extra.iter().cloned()).collect();
    expect(op, &args, with, &want, F32, 0.0);
}

const MANIPULATE: &[Case] = &[
    ("relax.reshape", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 6], n);
            let none = Attrs::default();
            viewed("relax.reshape", &x, &[Value::shape(&[-1, 3])], &none, &[n * 2, 3]);
            viewed("relax.reshape", &x, &[Value::shape(&[0, 2, 3])], &none, &[n, 2, 3]);
            viewed("relax.reshape", &x, &[Value::shape(&[-1])], &none, &[n * 6]);
        }
        viewed(
            "relax.reshape",
            &Nd::sample(&[1, 1], 1),
            &[Value::shape(&[])],
            &Attrs::default(),
            &[],
        );
        let bad = [Nd::sample(&[3, 2], 1).f32(), Value::shape(&[4])];
        assert!(call("relax.reshape", &bad, &Attrs::default(), true).is_err());
    }),
    ("relax.flatten", || {
        for shape in shapes() {
            let x = Nd::sample(&shape, 1);
            viewed("relax.flatten", &x, &[], &Attrs::default(), &[x.data.len() as i64]);
        }
    }),
    ("relax.expand_dims", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1);
            viewed("relax.expand_dims", &x, &[], &attrs(&[("axis", int(1))]), &[n, 1, 3]);
            let with = attrs(&[("axis", AttrValue::ints([0, -1]))]);
            viewed("relax.expand_dims", &x, &[], &with, &[1, n, 3, 1]);
        }
    }),
    ("relax.squeeze", || {
        for n in SIZES {
            let x = Nd::sample(&[1, n, 1, 3], 1);
            let with = attrs(&[("axis", AttrValue::ints([0, 2]))]);
            viewed("relax.squeeze", &x, &[], &with, &[n, 3]);
            let kept: &[i64] = if n == 1 { &[3] } else { &[n, 3] };
            viewed("relax.squeeze", &x, &[], &Attrs::default(), kept);
        }
    }),
    ("relax.permute_dims", || {
        for n in SIZES {
            let x = Nd::sample(&[2, n, 3], 1);
            let want = Nd::new(&[3, 2, n], |i| x.at(&[i[1], i[2], i[0]]));
            let with = attrs(&[("axes", AttrValue::ints([2, 0, 1]))]);
            expect("relax.permute_dims", &[x.f32()], &with, &want, F32, 0.0);
            let want = Nd::new(&[3, n, 2], |i| x.at(&[i[2], i[1], i[0]]));
            expect("relax.permute_dims", &[x.f32()], &Attrs::default(), &want, F32, 0.0);
        }
    }),
    ("relax.broadcast_to", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 1], 1);
            let want = Nd::new(&[2, n, 3], |i| x.at(i));
            for symbolic in [false, true] {
                // A 0 in a shape is a size here.
                let args = [x.f32(), Value::shape(&[2, n, 3])];
                let got = call("relax.broadcast_to", &args, &Attrs::default(), symbolic && n > 1);
                compare(&got.unwrap(), &want, 0.0, &|| format!("broadcast_to {n}"));
            }
        }
    }),
    ("relax.concat", || {
        for n in SIZES {
            let (a, b, c) =
                (Nd::sample(&[2, n], 1), Nd::sample(&[2, 3], 2), Nd::sample(&[2, n], 3));
            let parts = Value::tuple([a.f32(), b.f32(), c.f32()]);
            let want = Nd::new(&[2, 2 * n + 3], |i| match i[1] {
                k if k < n => a.at(i),
                k if k < n + 3 => b.at(&[i[0], k - n]),
                k => c.at(&[i[0], k - n - 3]),
            });
            expect("relax.concat", &[parts], &attrs(&[("axis", int(-1))]), &want, F32, 0.0);
        }
    }),
    ("relax.split", || {
        for n in SIZES {
            let x = Nd::sample(&[2, n * 3], 1);
            let with = attrs(&[("indices_or_sections", int(3)), ("axis", int(1))]);
            let starts = [0, n, 2 * n, 3 * n];
            split(&x, &with, &starts);
            let with = attrs(&[("indices_or_sections", AttrValue::ints([1, 4])), ("axis", int(1))]);
            let len = 3 * n;
            split(&x, &with, &[0, 1.min(len), 4.min(len), len]);
        }
    }),
    ("relax.repeat", || {
        for n in SIZES {
            let x = Nd::sample(&[2, n], 1);
            let want = Nd::new(&[2, n * 3], |i| x.at(&[i[0], i[1] / 3]));
            let with = attrs(&[("repeats", int(3)), ("axis", int(1))]);
            expect("relax.repeat", &[x.f32()], &with, &want, F32, 0.0);
            let want = Nd::new(&[n * 4], |i| x.data[(i[0] / 2) as usize]);
            expect("relax.repeat", &[x.f32()], &attrs(&[("repeats", int(2))]), &want, F32, 0.0);
        }
    }),
    ("relax.tile", || {
        for n in SIZES {
            let x = Nd::sample(&[2, n], 1);
            let want = Nd::new(&[2, 2, n * 3], |i| x.at(&[i[1], i[2] % n]));
            let with = attrs(&[("repeats", AttrValue::ints([2, 1, 3]))]);
            expect("relax.tile", &[x.f32()], &with, &want, F32, 0.0);
        }
    }),
];

fn split(x: &Nd, with: &Attrs, cuts: &[i64]) {
    for symbolic in [false, true] {
        let got = call("relax.split", &[x.f32()], with, symbolic).unwrap();
        let parts = got.as_tuple().unwrap();
        assert_eq!(parts.len(), cuts.len() - 1);
        for (part, cut) in parts.iter().zip(cuts.windows(2)) {
            let want = Nd::new(&[2, cut[1] - cut[0]], |i| x.at(&[i[0], i[1] + cut[0]]));
            compare(part, &want, 0.0, &|| format!("split {:?} {with:?}", x.shape));
        }
    }
}

/// The rows of `x` along the axis: all elements with the other indices of `i`.
fn row(x: &Nd, axis: usize, i: &[i64]) -> Vec<f64> {
    (0..x.shape[axis])
        .map(|k| {
            let mut at = i.to_vec();
            at[axis] = k;
            x.at(&at)
        })
        .collect()
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn variance(v: &[f64]) -> f64 {
    let m = mean(v);
    mean(&v.iter().map(|x| (x - m) * (x - m)).collect::<Vec<_>>())
}

fn softmax(op: &'static str, f: fn(f64) -> f64) {
    for n in SIZES {
        for (shape, axis) in [([n, 3], 1usize), ([2, n], 1), ([n, 2], 0)] {
            let x = Nd::sample(&shape, n);
            let want = Nd::new(&shape, |i| {
                let all: f64 = row(&x, axis, i).iter().map(|v| v.exp()).sum();
                f(x.at(i).exp() / all)
            });
            let with = attrs(&[("axis", int(axis as i64))]);
            expect(op, &[x.f32()], &with, &want, F32, 4e-6);
        }
    }
}

const NN: &[Case] = &[
    ("relax.nn.softmax", || softmax("relax.nn.softmax", |v| v)),
    ("relax.nn.log_softmax", || softmax("relax.nn.log_softmax", f64::ln)),
    ("relax.nn.layer_norm", || {
        for n in SIZES {
            for k in [1, 3, 7] {
                let (x, g, b) =
                    (Nd::sample(&[2, n, k], 1), Nd::sample(&[k], 2), Nd::sample(&[k], 3));
                let want = Nd::new(&x.shape, |i| {
                    let r = row(&x, 2, i);
                    let y = (x.at(i) - mean(&r)) / (variance(&r) + 1e-3).sqrt();
                    y * g.at(&i[2..]) + b.at(&i[2..])
                });
                let with =
                    attrs(&[("axes", AttrValue::ints([-1])), ("epsilon", AttrValue::float(1e-3))]);
                expect(
                    "relax.nn.layer_norm",
                    &[x.f32(), g.f32(), b.f32()],
                    &with,
                    &want,
                    F32,
                    1e-5,
                );
            }
        }
    }),
    ("relax.nn.rms_norm", || {
        for n in SIZES {
            let (x, w) = (Nd::sample(&[n, 3], 1), Nd::sample(&[3], 2));
            let want = Nd::new(&x.shape, |i| {
                let squares: Vec<f64> = row(&x, 1, i).iter().map(|v| v * v).collect();
                x.at(i) / (mean(&squares) + 1e-5).sqrt() * w.at(&i[1..])
            });
            let with = attrs(&[("axes", AttrValue::ints([1]))]);
            expect("relax.nn.rms_norm", &[x.f32(), w.f32()], &with, &want, F32, 1e-5);
        }
    }),
];

/// A reduction over each axis and over all, with and without the dims kept.
fn reduction(op: &'static str, f: fn(&[f64]) -> f64, out: DType, empty: bool) {
    for n in SIZES.into_iter().filter(|&n| n > 0 || empty) {
        let x = Nd::sample(&[2, n, 3], n);
        for axis in 0..3usize {
            for keep in [false, true] {
                let mut kept = x.shape.clone();
                kept[axis] = 1;
                let mut want = Nd::new(&kept, |i| f(&row(&x, axis, i)));
                if !keep {
                    want.shape.remove(axis);
                }
                let with =
                    attrs(&[("axis", int(axis as i64)), ("keepdims", AttrValue::Bool(keep))]);
                expect(op, &[x.f32()], &with, &want, out, 1e-5);
            }
        }
        let all = Nd { shape: vec![], data: vec![f(&x.data)] };
        expect(op, &[x.f32()], &Attrs::default(), &all, out, 1e-5);
    }
}

fn best(v: &[f64], better: fn(f64, f64) -> bool) -> f64 {
    let mut at = 0;
    for (i, &x) in v.iter().enumerate() {
        if better(x, v[at]) {
            at = i;
        }
    }
    at as f64
}

const STATISTICAL: &[Case] = &[
    ("relax.sum", || reduction("relax.sum", |v| v.iter().sum(), F32, true)),
    ("relax.prod", || reduction("relax.prod", |v| v.iter().product(), F32, true)),
    ("relax.max", || {
        reduction("relax.max", |v| v.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)), F32, true);
        nan("relax.max");
    }),
    ("relax.min", || {
        reduction("relax.min", |v| v.iter().fold(f64::INFINITY, |a, &b| a.min(b)), F32, true);
        nan("relax.min");
    }),
    ("relax.mean", || reduction("relax.mean", mean, F32, true)),
    ("relax.variance", || reduction("relax.variance", variance, F32, true)),
    ("relax.std", || reduction("relax.std", |v| variance(v).sqrt(), F32, true)),
    ("relax.argmax", || reduction("relax.argmax", |v| best(v, |a, b| a > b), I64, false)),
    ("relax.argmin", || reduction("relax.argmin", |v| best(v, |a, b| a < b), I64, false)),
];

fn nan(op: &'static str) {
    let x = Nd::new(&[3], |i| if i[0] == 1 { f64::NAN } else { 1.0 });
    let want = Nd::new(&[], |_| f64::NAN);
    expect(op, &[x.f32()], &Attrs::default(), &want, F32, 0.0);
}

const SET: &[Case] = &[
    ("relax.unique", || {
        for n in SIZES {
            let x = Nd::new(&[n], |i| ((i[0] * 3) % 4) as f64);
            let mut sorted = x.data.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.dedup();
            let want = Nd { shape: vec![sorted.len() as i64], data: sorted.clone() };
            expect("relax.unique", &[x.f32()], &Attrs::default(), &want, F32, 0.0);
            let with = ["return_index", "return_inverse", "return_counts"];
            let with = with.map(|k| (k, AttrValue::Bool(true)));
            let got = call("relax.unique", &[x.f32()], &attrs(&with), true).unwrap();
            let fields: Vec<Vec<f64>> = got.as_tuple().unwrap().iter().map(common::flat).collect();
            let place = |v: f64| sorted.iter().position(|&s| s == v).unwrap() as f64;
            let first = |v: &f64| x.data.iter().position(|d| d == v).unwrap() as f64;
            let count = |v: &f64| x.data.iter().filter(|d| *d == v).count() as f64;
            assert_eq!(fields[1], sorted.iter().map(first).collect::<Vec<_>>());
            assert_eq!(fields[2], x.data.iter().map(|&v| place(v)).collect::<Vec<_>>());
            assert_eq!(fields[3], sorted.iter().map(count).collect::<Vec<_>>());
        }
        let rows = Nd { shape: vec![3, 2], data: vec![2.0, 1.0, 0.0, 5.0, 2.0, 1.0] };
        let want = Nd { shape: vec![2, 2], data: vec![0.0, 5.0, 2.0, 1.0] };
        expect("relax.unique", &[rows.f32()], &attrs(&[("axis", int(0))]), &want, F32, 0.0);
    }),
    ("relax.nonzero", || {
        for n in SIZES {
            let x = Nd::new(&[n, 3], |i| ((i[0] + i[1]) % 2) as f64);
            let hits: Vec<Vec<i64>> =
                (0..n * 3).map(|i| unravel(i, &x.shape)).filter(|i| x.at(i) != 0.0).collect();
            let want =
                Nd::new(&[2, hits.len() as i64], |i| hits[i[1] as usize][i[0] as usize] as f64);
            expect("relax.nonzero", &[x.f32()], &Attrs::default(), &want, I64, 0.0);
        }
    }),
];

const BASE: &[Case] = &[
    ("relax.shape_of", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1).f32();
            let got = call("relax.shape_of", &[x], &Attrs::default(), true).unwrap();
            assert_eq!(got.as_shape(), Some(&[n, 3][..]));
        }
    }),
    ("relax.tensor_to_shape", || {
        let x = Nd::new(&[2], |i| (i[0] + 4) as f64).value(I64);
        let got = call("relax.tensor_to_shape", &[x], &Attrs::default(), false).unwrap();
        assert_eq!(got.as_shape(), Some(&[4, 5][..]));
    }),
    ("relax.shape_to_tensor", || {
        let want = Nd { shape: vec![3], data: vec![4.0, 0.0, 9.0] };
        expect(
            "relax.shape_to_tensor",
            &[Value::shape(&[4, 0, 9])],
            &Attrs::default(),
            &want,
            I64,
            0.0,
        );
    }),
    ("relax.size", || {
        for shape in shapes() {
            let want = Nd { shape: vec![], data: vec![shape.iter().product::<i64>() as f64] };
            expect(
                "relax.size",
                &[Nd::sample(&shape, 1).f32()],
                &Attrs::default(),
                &want,
                I64,
                0.0,
            );
        }
    }),
];

/// Operators that are calls or effects: the tests of graph functions run them.
const NO_VALUE: &[&str] = &[
    "relax.call_tir",
    "relax.call_tir_inplace",
    "relax.call_dps_packed",
    "relax.call_pure_packed",
    "relax.call_inplace_packed",
    "relax.call_builtin_with_ctx",
    "relax.make_closure",
    "relax.invoke_closure",
    "relax.invoke_pure_closure",
    "relax.null_value",
    "relax.print",
    "relax.assert_op",
    "relax.builtin.alloc_tensor",
    "relax.memory.alloc_storage",
    "relax.memory.alloc_tensor",
    "relax.memory.kill_storage",
    "relax.memory.kill_tensor",
    "relax.vm.alloc_storage",
    "relax.vm.alloc_tensor",
    "relax.vm.kill_object",
    "relax.vm.call_tir_dyn",
];

fn all(cases: &[Case]) {
    let mut failed = Vec::new();
    for (op, case) in cases {
        if std::panic::catch_unwind(case).is_err() {
            failed.push(*op);
        }
    }
    assert!(failed.is_empty(), "wrong: {}", failed.join(", "));
}

macro_rules! groups {
    ($($test:ident = $cases:ident;)*) => {
        $(
            #[test]
            fn $test() {
                all($cases);
            }
        )*

        #[test]
        fn every_operator_has_a_case() {
            let known: Vec<&str> = [$($cases),*].concat().iter().map(|c| c.0).collect();
            let missing: Vec<&str> = registry()
                .decls()
                .map(|d| d.name)
                .filter(|n| !known.contains(n) && !NO_VALUE.contains(n))
                .collect();
            assert!(missing.is_empty(), "without a case: {}", missing.join(", "));
        }
    };
}

groups! {
    base_operators = BASE;
    unary_operators = UNARY;
    binary_operators = BINARY;
    create_operators = CREATE;
    index_operators = INDEX;
    linear_algebra_operators = LINEAR_ALGEBRA;
    manipulate_operators = MANIPULATE;
    nn_operators = NN;
    set_operators = SET;
    statistical_operators = STATISTICAL;
}
