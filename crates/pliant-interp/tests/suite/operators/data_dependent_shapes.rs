//! Tests operators that take sizes as operands, and operators whose result shape depends on the
//! values of operands.

use pliant_interp::Value;
use pliant_ir::{AttrValue, Attrs};

use super::expected_arrays::*;
use super::operator_call_harness::*;

pub const SET: &[Case] = &[
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
            let fields: Vec<Vec<f64>> = got
                .as_tuple()
                .unwrap()
                .iter()
                .map(crate::script_and_tensor_helpers::flat)
                .collect();
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

pub const BASE: &[Case] = &[
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
