//! Tests gather and scatter operators, whose indices are tensor operands, and operators that
//! rearrange elements.

use pliant_interp::Value;
use pliant_ir::{AttrValue, Attrs, DType};

use super::expected_arrays::*;
use super::operator_call_harness::*;

const I32: DType = DType::Int32;

fn none() -> Attrs {
    Attrs::default()
}

fn axis(v: i64) -> Attrs {
    attrs(&[("axis", int(v))])
}

/// Returns an array of the given shape whose elements are indices between -2 and 1.
fn places(shape: &[i64]) -> Nd {
    let mut k = 0;
    Nd::new(shape, |_| {
        k += 3;
        f64::from(k % 4 - 2)
    })
}

fn wrap(v: f64, size: i64) -> i64 {
    (v as i64).rem_euclid(size)
}

/// Checks that a call returns a tuple with the expected fields, up to `tolerance`.
pub fn expect_tuple(op: &'static str, args: &[Value], with: &Attrs, want: &[Nd], tolerance: f64) {
    for symbolic in [false, true] {
        let got = call(op, args, with, symbolic).unwrap_or_else(|e| panic!("{op}: {e}"));
        let fields = got.as_tuple().expect("a tuple");
        assert_eq!(fields.len(), want.len());
        for (field, want) in fields.iter().zip(want) {
            compare(field, want, tolerance, &|| format!("{op} symbolic={symbolic}"));
        }
    }
}

/// Checks that a call fails, during interpretation or before, with a message that contains `part`.
pub fn refuse(op: &'static str, args: &[Value], with: &Attrs, part: &str) {
    for symbolic in [false, true] {
        let error = call(op, args, with, symbolic).expect_err(op);
        assert!(error.contains(part), "{op}: {error}");
    }
}

fn scatter(op: &'static str) {
    for n in SIZES {
        let (x, at, u) = (Nd::sample(&[3, 2], 1), places(&[n, 2]), Nd::sample(&[n, 2], 2));
        for reduction in ["update", "add", "mul", "min", "max", "mean"] {
            let mut want = x.clone();
            let mut counts = x.map(|_| 1.0);
            for i in 0..n {
                for j in 0..2 {
                    let k = (wrap(at.at(&[i, j]), 3) * 2 + j) as usize;
                    let (old, new) = (want.data[k], u.at(&[i, j]));
                    counts.data[k] += 1.0;
                    want.data[k] = match reduction {
                        "update" => new,
                        "mul" => old * new,
                        "min" => old.min(new),
                        "max" => old.max(new),
                        _ => old + new,
                    };
                }
            }
            if reduction == "mean" {
                want.data.iter_mut().zip(&counts.data).for_each(|(v, c)| *v /= c);
            }
            let with = attrs(&[("reduction", AttrValue::str(reduction))]);
            let args = [x.f32(), at.value(I64), u.f32()];
            expect(op, &args, &with, &want, F32, CLOSE);
        }
    }
    let bad = [
        Nd::sample(&[2, 1], 1).f32(),
        Nd::new(&[1, 1], |_| 7.0).value(I64),
        Nd::sample(&[1, 1], 1).f32(),
    ];
    refuse(op, &bad, &none(), "index 7 is out of range for axis 0 of size 2");
}

pub const INDEXED: &[Case] = &[
    ("relax.gather_elements", || {
        for n in SIZES {
            let (x, at) = (Nd::sample(&[3, 2], 1), places(&[n, 2]));
            let want = Nd::new(&[n, 2], |i| x.at(&[wrap(at.at(i), 3), i[1]]));
            let args = [x.f32(), at.value(I64)];
            expect("relax.gather_elements", &args, &axis(0), &want, F32, 0.0);
        }
        let args = [Nd::sample(&[3], 1).f32(), Nd::new(&[1], |_| -4.0).value(I32)];
        refuse(
            "relax.gather_elements",
            &args,
            &none(),
            "index -4 is out of range for axis 0 of size 3",
        );
        let args = [Nd::sample(&[3], 1).f32(), places(&[2, 2]).value(I64)];
        refuse("relax.gather_elements", &args, &none(), "as many dims");
        let args = [Nd::sample(&[3], 1).f32(), Nd::sample(&[3], 1).f32()];
        refuse("relax.gather_elements", &args, &none(), "must be a tensor of integers");
        refuse("relax.gather_elements", &args[..1], &none(), "missing");
    }),
    ("relax.gather_nd", || {
        for n in SIZES {
            let (x, at) = (Nd::sample(&[3, 2, 2], 1), places(&[n, 2]));
            let want = Nd::new(&[n, 2], |i| {
                x.at(&[wrap(at.at(&[i[0], 0]), 3), wrap(at.at(&[i[0], 1]), 2), i[1]])
            });
            // The length of an index tuple is a constant.
            let got = call("relax.gather_nd", &[x.f32(), at.value(I64)], &none(), false).unwrap();
            compare(&got, &want, 0.0, &|| "gather_nd".into());
        }
        let args = [Nd::sample(&[3], 1).f32(), places(&[2, 2]).value(I64)];
        let error = call("relax.gather_nd", &args, &none(), false).unwrap_err();
        assert!(error.contains("the last dim of indices is"), "{error}");
    }),
    ("relax.index_tensor", || {
        for n in SIZES {
            let (x, a, b) = (Nd::sample(&[3, 2, 2], 1), places(&[n, 1]), places(&[3]));
            let want = Nd::new(&[n, 3, 2], |i| {
                x.at(&[wrap(a.at(&[i[0], 0]), 3), wrap(b.at(&[i[1]]), 2), i[2]])
            });
            let args = [x.f32(), Value::tuple(vec![a.value(I64), b.value(I64)])];
            expect("relax.index_tensor", &args, &none(), &want, F32, 0.0);
        }
        let args =
            [Nd::sample(&[2], 1).f32(), Value::tuple(vec![Nd::new(&[1], |_| 2.0).value(I64)])];
        refuse(
            "relax.index_tensor",
            &args,
            &none(),
            "index 2 is out of range for axis 0 of size 2",
        );
    }),
    ("relax.bucketize", || {
        for n in SIZES {
            let (x, bounds) = (Nd::sample(&[n, 2], 1), Nd::new(&[n], |i| i[0] as f64 / 2.0 - 1.0));
            for right in [false, true] {
                let before = |b: f64, v: f64| if right { b <= v } else { b < v };
                let want = x.map(|v| bounds.data.iter().filter(|&&b| before(b, v)).count() as f64);
                let with = attrs(&[("right", AttrValue::Bool(right))]);
                expect("relax.bucketize", &[x.f32(), bounds.f32()], &with, &want, I64, 0.0);
            }
        }
    }),
    ("relax.scatter_elements", || scatter("relax.scatter_elements")),
    ("relax.scatter_nd", || {
        for n in SIZES {
            let (x, at, u) = (Nd::sample(&[3, 2], 1), places(&[n, 1]), Nd::sample(&[n, 2], 2));
            let mut want = x.clone();
            for i in 0..n {
                for j in 0..2 {
                    want.data[(wrap(at.at(&[i, 0]), 3) * 2 + j) as usize] += u.at(&[i, j]);
                }
            }
            let with = attrs(&[("reduction", AttrValue::str("add"))]);
            let args = [x.f32(), at.value(I64), u.f32()];
            let got = call("relax.scatter_nd", &args, &with, false).unwrap();
            compare(&got, &want, CLOSE, &|| "scatter_nd".into());
        }
        let args =
            [Nd::sample(&[3], 1).f32(), places(&[2, 1]).value(I64), Nd::sample(&[3], 1).f32()];
        let error = call("relax.scatter_nd", &args, &none(), false).unwrap_err();
        assert!(error.contains("updates must be of shape (2)"), "{error}");
    }),
    ("relax.index_put", || {
        for n in SIZES {
            let (x, at, v) = (Nd::sample(&[3, 2], 1), places(&[n]), Nd::sample(&[2], 2));
            for accumulate in [false, true] {
                let mut want = x.clone();
                for i in 0..n {
                    for j in 0..2 {
                        let k = (wrap(at.at(&[i]), 3) * 2 + j) as usize;
                        let old = if accumulate { want.data[k] } else { 0.0 };
                        want.data[k] = old + v.at(&[j]);
                    }
                }
                let with = attrs(&[("accumulate", AttrValue::Bool(accumulate))]);
                let args = [x.f32(), Value::tuple(vec![at.value(I64)]), v.f32()];
                expect("relax.index_put", &args, &with, &want, F32, CLOSE);
            }
        }
    }),
    ("relax.slice_scatter", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 2], 1);
            let len = (n.min(6) - 1).max(0);
            let src = Nd::sample(&[(len + 1) / 2, 2], 2);
            let want = Nd::new(&[n, 2], |i| {
                let (k, inside) = (i[0] - 1, i[0] >= 1 && i[0] < 6);
                if inside && k % 2 == 0 { src.at(&[k / 2, i[1]]) } else { x.at(i) }
            });
            let bounds = [1, 6, 2].map(Value::Int);
            let args = [&[x.f32(), src.f32()][..], &bounds].concat();
            expect("relax.slice_scatter", &args, &axis(0), &want, F32, 0.0);
        }
        let bounds = [0, 3, 0].map(Value::Int);
        let args = [&[Nd::sample(&[3], 1).f32(), Nd::sample(&[3], 1).f32()][..], &bounds].concat();
        refuse("relax.slice_scatter", &args, &axis(0), "step must be a constant above 0");
    }),
    ("relax.dynamic_strided_slice", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1);
            let list = |v: [i64; 2]| Nd::new(&[2], |i| v[i[0] as usize] as f64).value(I64);
            let args = [x.f32(), list([1, -1]), list([9, -9]), list([2, -1])];
            let want = Nd::new(&[n / 2, 3], |i| x.at(&[1 + 2 * i[0], 2 - i[1]]));
            expect("relax.dynamic_strided_slice", &args, &none(), &want, F32, 0.0);
            let args = [x.f32(), list([0, 0]), list([9, 9]), list([1, 0])];
            refuse("relax.dynamic_strided_slice", &args, &none(), "stride of dim 1 is 0");
        }
    }),
];

pub const REARRANGE: &[Case] = &[
    ("relax.flip", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1);
            let want = Nd::new(&[n, 3], |i| x.at(&[n - 1 - i[0], i[1]]));
            expect("relax.flip", &[x.f32()], &axis(0), &want, F32, 0.0);
        }
        refuse("relax.flip", &[Nd::sample(&[2], 1).f32()], &axis(1), "out of range");
    }),
    ("relax.stack", || {
        for n in SIZES {
            let (x, y) = (Nd::sample(&[n, 3], 1), Nd::sample(&[n, 3], 2));
            let want = Nd::new(&[n, 2, 3], |i| {
                if i[1] == 0 { x.at(&[i[0], i[2]]) } else { y.at(&[i[0], i[2]]) }
            });
            let args = [Value::tuple(vec![x.f32(), y.f32()])];
            expect("relax.stack", &args, &axis(1), &want, F32, 0.0);
        }
        let message = "tensors must contain at least one tensor";
        refuse("relax.stack", &[Value::tuple(vec![])], &none(), message);
    }),
    ("relax.meshgrid", || {
        for n in SIZES {
            let (x, y) = (Nd::sample(&[n], 1), Nd::sample(&[3], 2));
            let args = [Value::tuple(vec![x.f32(), y.f32()])];
            let want = [Nd::new(&[n, 3], |i| x.at(&i[..1])), Nd::new(&[n, 3], |i| y.at(&i[1..]))];
            expect_tuple("relax.meshgrid", &args, &none(), &want, 0.0);
            let want = [Nd::new(&[3, n], |i| x.at(&i[1..])), Nd::new(&[3, n], |i| y.at(&i[..1]))];
            let with = attrs(&[("indexing", AttrValue::str("xy"))]);
            expect_tuple("relax.meshgrid", &args, &with, &want, 0.0);
        }
    }),
    ("relax.reverse_sequence", || {
        for n in SIZES {
            let (x, lens) = (Nd::sample(&[n, 3], 1), Nd::new(&[n], |i| (i[0] % 4) as f64));
            let want = Nd::new(&[n, 3], |i| {
                let len = i[0] % 4;
                x.at(&[i[0], if i[1] < len { len - 1 - i[1] } else { i[1] }])
            });
            let args = [x.f32(), lens.value(I64)];
            expect("relax.reverse_sequence", &args, &none(), &want, F32, 0.0);
        }
        let args = [Nd::sample(&[1, 3], 1).f32(), Nd::new(&[1], |_| 4.0).value(I64)];
        refuse("relax.reverse_sequence", &args, &none(), "the length 4 is out of range");
    }),
    ("relax.collapse_sum_to", || {
        for n in SIZES {
            let x = Nd::sample(&[2, n, 3], 1);
            let want = Nd::new(&[n, 1], |i| (0..6).map(|k| x.at(&[k / 3, i[0], k % 3])).sum());
            let args = [x.f32(), Value::shape(&[n, 1])];
            let got = call("relax.collapse_sum_to", &args, &none(), false).unwrap();
            compare(&got, &want, CLOSE, &|| "collapse_sum_to".into());
        }
        let args = [Nd::sample(&[3], 1).f32(), Value::shape(&[2])];
        let error = call("relax.collapse_sum_to", &args, &none(), false).unwrap_err();
        assert!(error.contains("cannot be summed to size"), "{error}");
    }),
    ("relax.collapse_sum_like", || {
        for n in SIZES {
            let (x, like) = (Nd::sample(&[n, 3], 1), Nd::sample(&[n, 1], 1));
            let want = Nd::new(&[n, 1], |i| (0..3).map(|k| x.at(&[i[0], k])).sum());
            let args = [x.f32(), like.f32()];
            expect("relax.collapse_sum_like", &args, &none(), &want, F32, CLOSE);
        }
    }),
    ("relax.one_hot", || {
        for n in SIZES {
            let at = Nd::new(&[n], |i| (i[0] - 1) as f64);
            let want = Nd::new(&[n, 4], |i| if i[0] - 1 == i[1] { 2.0 } else { -1.0 });
            let args = [at.value(I64), Value::Float(2.0), Value::Float(-1.0)];
            expect("relax.one_hot", &args, &attrs(&[("depth", int(4))]), &want, F32, 0.0);
            refuse("relax.one_hot", &args, &attrs(&[("depth", int(-1))]), "must not be negative");
        }
    }),
    ("relax.eye", || {
        for n in SIZES {
            let want = Nd::new(&[n, 3], |i| f64::from(i[1] == i[0] + 1));
            expect("relax.eye", &[n, 3, 1].map(Value::Int), &none(), &want, F32, 0.0);
        }
        refuse("relax.eye", &[Value::Int(-1)], &none(), "must not be negative");
    }),
    ("relax.eye_like", || {
        for n in SIZES {
            let want = Nd::new(&[n, 2], |i| f64::from(i[1] == i[0]));
            expect("relax.eye_like", &[Nd::sample(&[n, 2], 1).f32()], &none(), &want, F32, 0.0);
        }
        refuse("relax.eye_like", &[Nd::sample(&[2], 1).f32()], &none(), "2 dims");
    }),
    ("relax.hamming_window", || {
        for n in SIZES {
            let turn = std::f64::consts::TAU / n.max(1) as f64;
            let want = Nd::new(&[n], |i| 0.54 - 0.46 * (turn * i[0] as f64).cos());
            expect("relax.hamming_window", &[Value::Int(n)], &none(), &want, F32, CLOSE);
        }
    }),
    ("relax.layout_transform", || {
        for n in SIZES {
            let x = Nd::sample(&[n, 3], 1);
            let want = Nd::new(&[2, n, 2], |i| {
                let column = i[0] * 2 + i[2];
                if column < 3 { x.at(&[i[1], column]) } else { 9.0 }
            });
            let with = attrs(&[
                ("index_map", AttrValue::str("lambda i, j: (j // 2, i, j % 2)")),
                ("pad_value", AttrValue::float(9.0)),
            ]);
            let got = call("relax.layout_transform", &[x.f32()], &with, false).unwrap();
            compare(&got, &want, 0.0, &|| "layout_transform".into());
        }
        for text in [
            "i",
            "lambda i: i",
            "lambda i, j: ()",
            "lambda i, j: (i / j)",
            "lambda i, i: i",
            "lambda i, j: i // j",
        ] {
            let with = attrs(&[("index_map", AttrValue::str(text))]);
            refuse("relax.layout_transform", &[Nd::sample(&[2, 2], 1).f32()], &with, "index_map");
        }
    }),
];
