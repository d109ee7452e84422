//! Tests operators that create, select and move elements.

use pliant_interp::Value;
use pliant_ir::{AttrValue, Attrs, DType};

use super::expected_arrays::*;
use super::operator_call_harness::*;

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

pub const CREATE: &[Case] = &[
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

pub const INDEX: &[Case] = &[
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

/// Returns the elements of Python's `range(n)[begin:end:step]`.
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

fn viewed(op: &'static str, x: &Nd, extra: &[Value], with: &Attrs, shape: &[i64]) {
    let want = Nd { shape: shape.to_vec(), data: x.data.clone() };
    let args: Vec<Value> = [x.f32()].into_iter().chain(extra.iter().cloned()).collect();
    expect(op, &args, with, &want, F32, 0.0);
}

pub const MANIPULATE: &[Case] = &[
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
                // Here, a 0 in a shape is a size.
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
