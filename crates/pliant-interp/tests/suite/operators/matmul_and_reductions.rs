//! Tests matrix products, normalizations and reductions.

use pliant_ir::{AttrValue, Attrs, DType};

use super::expected_arrays::*;
use super::operator_call_harness::*;

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

pub const LINEAR_ALGEBRA: &[Case] = &[
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

/// Returns the elements of `x` along an axis. `i` contains the indices of the other axes.
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

pub const NN: &[Case] = &[
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

/// Tests a reduction over each axis and over all axes, with and without keeping the reduced dims. `empty` is set if the operator
/// accepts an axis of size 0.
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

pub const STATISTICAL: &[Case] = &[
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
