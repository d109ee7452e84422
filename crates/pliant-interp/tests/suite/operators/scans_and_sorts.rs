//! Tests cumulative operators, sorting, einsum, quantization and Fourier transforms.

use pliant_interp::Value;
use pliant_ir::{AttrValue, Attrs, DType};

use super::expected_arrays::*;
use super::gather_and_scatter::{expect_tuple, refuse};
use super::operator_call_harness::*;

fn none() -> Attrs {
    Attrs::default()
}

fn yes(key: &'static str) -> (&'static str, AttrValue) {
    (key, AttrValue::Bool(true))
}

/// Returns the positions of a row's elements in stable sorted order, with NaN last.
fn order(row: &[f64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..row.len()).collect();
    places.sort_by(|&a, &b| {
        let (a, b) = (row[a], row[b]);
        let values = a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()));
        if descending && !a.is_nan() && !b.is_nan() { values.reverse() } else { values }
    });
    places
}

/// Returns `n` rows of numbers, among them equal numbers and a NaN.
fn ties(n: i64) -> Nd {
    Nd::new(&[2, n], |i| if i[1] == 2 { f64::NAN } else { ((i[1] * 5 + i[0]) % 4) as f64 })
}

fn rows(x: &Nd, f: impl Fn(&[f64]) -> Vec<f64>) -> Nd {
    let n = x.shape[1] as usize;
    let data: Vec<f64> = (0..2).flat_map(|r| f(&x.data[r * n..(r + 1) * n])).collect();
    Nd { shape: vec![2, data.len() as i64 / 2], data }
}

fn scan(op: &'static str, first: f64, f: fn(f64, f64) -> f64) {
    for n in SIZES {
        let x = Nd::sample(&[2, n], 1);
        for exclusive in [false, true] {
            let want = rows(&x, |row| {
                let mut total = first;
                row.iter()
                    .map(|&v| {
                        let before = total;
                        total = f(total, v);
                        if exclusive { before } else { total }
                    })
                    .collect()
            });
            let with = attrs(&[("axis", int(1)), ("exclusive", AttrValue::Bool(exclusive))]);
            expect(op, &[x.f32()], &with, &want, F32, CLOSE);
        }
    }
    refuse(op, &[Nd::sample(&[2], 1).value(BOOL)], &none(), "bool");
}

pub const ORDERED: &[Case] = &[
    ("relax.cumsum", || scan("relax.cumsum", 0.0, |a, b| a + b)),
    ("relax.cumprod", || scan("relax.cumprod", 1.0, |a, b| a * b)),
    ("relax.sort", || {
        for n in SIZES {
            let x = ties(n);
            for descending in [false, true] {
                let want = rows(&x, |r| order(r, descending).into_iter().map(|k| r[k]).collect());
                let with = attrs(&[("descending", AttrValue::Bool(descending))]);
                expect("relax.sort", &[x.f32()], &with, &want, F32, 0.0);
            }
        }
        refuse(
            "relax.sort",
            &[Nd::sample(&[2], 1).f32()],
            &attrs(&[("axis", int(2))]),
            "out of range",
        );
    }),
    ("relax.argsort", || {
        for n in SIZES {
            let x = ties(n);
            for descending in [false, true] {
                let want =
                    rows(&x, |r| order(r, descending).into_iter().map(|k| k as f64).collect());
                let with = attrs(&[("descending", AttrValue::Bool(descending))]);
                expect("relax.argsort", &[x.f32()], &with, &want, DType::Int32, 0.0);
            }
        }
    }),
    ("relax.topk", || {
        for n in [2, 3, 7] {
            let x = ties(n);
            let pick = |r: &[f64]| order(r, true)[..2].to_vec();
            let values = rows(&x, |r| pick(r).into_iter().map(|k| r[k]).collect());
            let places = rows(&x, |r| pick(r).into_iter().map(|k| k as f64).collect());
            expect_tuple(
                "relax.topk",
                &[x.f32()],
                &attrs(&[("k", int(2))]),
                &[values, places],
                0.0,
            );
        }
        refuse("relax.topk", &[ties(3).f32()], &attrs(&[("k", int(-1))]), "must not be negative");
        refuse(
            "relax.topk",
            &[ties(3).f32()],
            &attrs(&[("k", int(4))]),
            "k is 4, but must be at most the size of axis 1",
        );
    }),
    ("relax.median", || {
        for n in [1, 2, 3, 7] {
            let x = Nd::sample(&[2, n], 1);
            let middle = |r: &[f64]| order(r, false)[(r.len() - 1) / 2];
            let mut values = rows(&x, |r| vec![r[middle(r)]]);
            let mut places = rows(&x, |r| vec![middle(r) as f64]);
            (values.shape, places.shape) = (vec![2], vec![2]);
            let with = attrs(&[("axis", int(1))]);
            expect_tuple("relax.median", &[x.f32()], &with, &[values, places], 0.0);
            let all = Nd {
                shape: vec![],
                data: vec![x.data[order(&x.data, false)[(x.data.len() - 1) / 2]]],
            };
            expect("relax.median", &[x.f32()], &none(), &all, F32, 0.0);
        }
        refuse("relax.median", &[Nd::sample(&[0], 1).f32()], &none(), "the reduced axis is empty");
    }),
    ("relax.einsum", || {
        for n in SIZES {
            let (x, y) = (Nd::sample(&[2, n], 1), Nd::sample(&[n, 3], 2));
            let want =
                Nd::new(&[3, 2], |i| (0..n).map(|k| x.at(&[i[1], k]) * y.at(&[k, i[0]])).sum());
            let with = attrs(&[("subscripts", AttrValue::str("ij,jk->ki"))]);
            let args = [Value::tuple(vec![x.f32(), y.f32()])];
            expect("relax.einsum", &args, &with, &want, F32, CLOSE);
        }
        let one = [Value::tuple(vec![Nd::sample(&[2, 3], 1).f32()])];
        for (text, part) in [
            ("i", "does not fit the rank"),
            ("ij->k", "in no operand"),
            ("ij->ii", "contains label 'i' more than once"),
            ("ij,jk", "terms for 2 operands"),
            ("i1", "labels must be ASCII letters"),
            ("......", "contains the ellipsis \"...\" more than once"),
        ] {
            refuse("relax.einsum", &one, &attrs(&[("subscripts", AttrValue::str(text))]), part);
        }
        let error =
            call("relax.einsum", &one, &attrs(&[("subscripts", AttrValue::str("ii"))]), false);
        assert!(error.unwrap_err().contains("but has the sizes 2 and 3"));
    }),
    ("relax.quantize", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1).map(|v| v * 100.0);
            let want = x.map(|v| ((v / 0.5).round_ties_even() + 3.0).clamp(-128.0, 127.0));
            let number = |v: f64, dtype| Nd::new(&[], |_| v).value(dtype);
            let args = [x.f32(), number(0.5, F32), number(3.0, DType::Int32)];
            expect("relax.quantize", &args, &none(), &want, DType::Int8, 0.0);
        }
    }),
    ("relax.dequantize", || {
        for n in SIZES {
            let x = Nd::new(&[n, 3], |i| (i[0] * 7 + i[1]) as f64);
            let want = Nd::new(&[n, 3], |i| (x.at(i) - i[1] as f64) * 0.5);
            let (scale, zero) = (Nd::new(&[3], |_| 0.5), Nd::new(&[3], |i| i[0] as f64));
            let args = [x.value(DType::Int32), scale.f32(), zero.value(DType::Int32)];
            expect("relax.dequantize", &args, &none(), &want, F32, 0.0);
        }
    }),
    ("relax.multinomial_from_uniform", || {
        for n in SIZES {
            let p = Nd::new(&[2, 4], |_| 0.25);
            let u = Nd::new(&[n, 1], |i| (i[0] % 5) as f64 / 4.0);
            let want = Nd::new(&[n, 1], |i| (i[0] % 5).min(3) as f64);
            let args = [p.f32(), u.f32(), Nd::new(&[n, 1], |i| (i[0] % 2) as f64).value(I64)];
            expect("relax.multinomial_from_uniform", &args, &none(), &want, I64, 0.0);
        }
    }),
    ("relax.signal.dft", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 1], 1);
            let angle = |i: &[i64], j: i64| std::f64::consts::TAU * (i[0] * j) as f64 / n as f64;
            let want = Nd::new(&[n, 2], |i| {
                let part = |a: f64| if i[1] == 0 { a.cos() } else { -a.sin() };
                (0..n).map(|j| x.at(&[j, 0]) * part(angle(i, j))).sum()
            });
            let got = call("relax.signal.dft", &[x.f32()], &none(), false).unwrap();
            compare(&got, &want, 1e-5, &|| "dft".into());
        }
        let args = [Nd::sample(&[4, 2], 1).f32()];
        let with = attrs(&[yes("inverse"), yes("onesided")]);
        let error = call("relax.signal.dft", &args, &with, false).unwrap_err();
        assert!(error.contains("not supported"), "{error}");
    }),
    ("relax.signal.stft", || {
        let (x, w) = (Nd::sample(&[2, 9, 1], 1), Nd::sample(&[4], 2));
        let want = Nd::new(&[2, 3, 3, 2], |i| {
            let angle = |j: i64| std::f64::consts::TAU * (i[2] * j) as f64 / 4.0;
            let part = |a: f64| if i[3] == 0 { a.cos() } else { -a.sin() };
            (0..4).map(|j| x.at(&[i[0], i[1] * 2 + j, 0]) * w.at(&[j]) * part(angle(j))).sum()
        });
        let args = [x.f32(), Value::Int(2), w.f32()];
        let got = call("relax.signal.stft", &args, &none(), false).unwrap();
        compare(&got, &want, 1e-5, &|| "stft".into());
        refuse("relax.signal.stft", &[x.f32(), Value::Int(0), w.f32()], &none(), "above 0");
    }),
];
