//! Tests operators for detection and recurrent layers at small sizes. The Python tests compare more
//! of these operators with explicit loops.

use pliant_interp::Value;
use pliant_ir::{AttrValue, Attrs, DType};

use super::expected_arrays::*;
use super::gather_and_scatter::{expect_tuple, refuse};
use super::operator_call_harness::*;

const I32: DType = DType::Int32;

fn none() -> Attrs {
    Attrs::default()
}

fn nd(shape: &[i64], data: &[f64]) -> Nd {
    Nd { shape: shape.to_vec(), data: data.to_vec() }
}

/// Returns three boxes as rows (class, score, four corner coordinates). The second box overlaps
/// half of the first.
fn boxes() -> Nd {
    nd(&[1, 3, 6], &[0., 0.5, 0., 0., 2., 2., 0., 0.9, 0., 0., 2., 1., 1., 0.1, 0., 0., 2., 2.])
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// Tests a recurrent layer of one input and one hidden unit on the input sequence 1, 2, 3, against the reference `step(x, h, c)`.
/// All weights are 1, and there is no bias. `cells` is set if the layer also returns the cell state.
fn layer(op: &'static str, gates: i64, step: impl Fn(f64, &mut f64, &mut f64), cells: bool) {
    let x = nd(&[3, 1, 1], &[1.0, 2.0, 3.0]);
    let ones = |shape: &[i64]| Nd::new(shape, |_| 1.0).f32();
    let args = [x.f32(), ones(&[1, gates, 1]), ones(&[1, gates, 1])];
    for direction in ["forward", "reverse"] {
        let (mut h, mut c, mut y) = (0.0, 0.0, vec![0.0; 3]);
        for k in 0..3 {
            let t = if direction == "forward" { k } else { 2 - k };
            step(x.data[t], &mut h, &mut c);
            y[t] = h;
        }
        let mut want = vec![nd(&[3, 1, 1, 1], &y), nd(&[1, 1, 1], &[h])];
        if cells {
            want.push(nd(&[1, 1, 1], &[c]));
        }
        let with = attrs(&[("direction", AttrValue::str(direction))]);
        expect_tuple(op, &args, &with, &want, CLOSE);
    }
    let with = attrs(&[("direction", AttrValue::str("both"))]);
    refuse(op, &args, &with, "direction must be one of");
    let with = attrs(&[("activations", AttrValue::List(vec![AttrValue::str("Gelu")]))]);
    refuse(op, &args, &with, if gates == 1 { "activations contains" } else { "must be a list of" });
    let bad = [args[0].clone(), ones(&[1, gates, 2]), args[2].clone()];
    let error = call(op, &bad, &none(), false).unwrap_err();
    assert!(error.contains("w must be of shape"), "{error}");
}

pub const VISION: &[Case] = &[
    ("relax.vision.get_valid_counts", || {
        let x = boxes();
        let mut rows = x.clone();
        rows.data[12..].fill(-1.0);
        let want = [nd(&[1], &[2.0]), rows, nd(&[1, 3], &[0.0, 1.0, -1.0])];
        let with = attrs(&[("score_threshold", AttrValue::float(0.2))]);
        expect_tuple("relax.vision.get_valid_counts", &[x.f32()], &with, &want, CLOSE);
        let with = attrs(&[("score_index", int(6))]);
        let error = call("relax.vision.get_valid_counts", &[x.f32()], &with, false).unwrap_err();
        assert!(error.contains("score_index is 6, which is out of range"), "{error}");
    }),
    ("relax.vision.non_max_suppression", || {
        let (x, count) = (boxes(), nd(&[1], &[3.0]).value(I32));
        let at = nd(&[1, 3], &[10.0, 11.0, 12.0]).value(I32);
        let want = [nd(&[1, 3], &[11.0, 12.0, -1.0]), nd(&[1, 1], &[2.0])];
        let with = attrs(&[("iou_threshold", AttrValue::float(0.5))]);
        let args = [x.f32(), count, at.clone()];
        expect_tuple("relax.vision.non_max_suppression", &args, &with, &want, 0.0);
        let many = nd(&[1], &[4.0]).value(I32);
        refuse("relax.vision.non_max_suppression", &[x.f32(), many, at], &with, "valid_count 4");
    }),
    ("relax.vision.all_class_non_max_suppression", || {
        let corners = nd(&[1, 3, 4], &[0., 0., 2., 2., 0., 0., 2., 1., 5., 5., 6., 6.]);
        let scores = nd(&[1, 1, 3], &[0.5, 0.9, 0.6]);
        let number = |v: f64, dtype| Nd::new(&[], |_| v).value(dtype);
        let args =
            [corners.f32(), scores.f32(), number(2.0, I64), number(0.4, F32), number(0.2, F32)];
        let rows = [0., 0., 1., 0., 0., 2., -1., -1., -1.];
        let want = [nd(&[3, 3], &rows), nd(&[1], &[2.0])];
        let got =
            call("relax.vision.all_class_non_max_suppression", &args, &none(), false).unwrap();
        for (field, want) in got.as_tuple().unwrap().iter().zip(&want) {
            compare(field, want, 0.0, &|| "all_class_non_max_suppression".into());
        }
    }),
    ("relax.vision.multibox_transform_loc", || {
        let args = [
            nd(&[1, 2, 1], &[0.0, 0.0]).f32(),
            nd(&[1, 4], &[0.5, 0.0, 0.0, 0.0]).f32(),
            nd(&[1, 1, 4], &[0.0, 0.0, 2.0, 4.0]).f32(),
        ];
        let want = [nd(&[1, 1, 4], &[0.0, 1.0, 4.0, 3.0]), nd(&[1, 2, 1], &[0.5, 0.5])];
        let got = call("relax.vision.multibox_transform_loc", &args, &none(), false).unwrap();
        for (field, want) in got.as_tuple().unwrap().iter().zip(&want) {
            compare(field, want, CLOSE, &|| "multibox_transform_loc".into());
        }
    }),
    ("relax.vision.roi_align", || {
        let x = Nd::new(&[1, 1, 4, 4], |i| (i[2] * 4 + i[3]) as f64);
        let rois = nd(&[1, 5], &[0.0, 0.0, 0.0, 2.0, 2.0]);
        let with = attrs(&[
            ("pooled_size", AttrValue::ints([2, 2])),
            ("spatial_scale", AttrValue::float(1.0)),
            ("sample_ratio", int(1)),
        ]);
        let want = Nd::new(&[1, 1, 2, 2], |i| 4.0 * (i[2] as f64 + 0.5) + i[3] as f64 + 0.5);
        let got = call("relax.vision.roi_align", &[x.f32(), rois.f32()], &with, false).unwrap();
        compare(&got, &want, CLOSE, &|| "roi_align".into());
        let far = nd(&[1, 5], &[1.0, 0.0, 0.0, 2.0, 2.0]);
        let error =
            call("relax.vision.roi_align", &[x.f32(), far.f32()], &with, false).unwrap_err();
        assert!(error.contains("of rois is out of range for axis 0 of size 1"), "{error}");
    }),
    ("relax.vision.roi_pool", || {
        let x = Nd::new(&[1, 1, 4, 4], |i| (i[2] * 4 + i[3]) as f64);
        let rois = nd(&[1, 5], &[0.0, 0.0, 0.0, 3.0, 3.0]);
        let with = attrs(&[
            ("pooled_size", AttrValue::ints([2, 2])),
            ("spatial_scale", AttrValue::float(1.0)),
        ]);
        let want = Nd::new(&[1, 1, 2, 2], |i| (8 * i[2] + 2 * i[3] + 5) as f64);
        let got = call("relax.vision.roi_pool", &[x.f32(), rois.f32()], &with, false).unwrap();
        compare(&got, &want, 0.0, &|| "roi_pool".into());
    }),
];

pub const RECURRENT: &[Case] = &[
    ("relax.nn.lstm", || {
        let step = |x: f64, h: &mut f64, c: &mut f64| {
            let s = x + *h;
            *c = sigmoid(s) * *c + sigmoid(s) * s.tanh();
            *h = sigmoid(s) * c.tanh();
        };
        layer("relax.nn.lstm", 4, step, true);
        let x = Nd::sample(&[2, 1, 1], 1).f32();
        let w = Nd::sample(&[1, 4, 1], 1).f32();
        let b = Nd::sample(&[1, 8], 1).f32();
        let lens = nd(&[1], &[3.0]).value(I64);
        refuse("relax.nn.lstm", &[x, w.clone(), w, b, lens], &none(), "sequence length 3");
    }),
    ("relax.nn.gru", || {
        let step = |x: f64, h: &mut f64, _: &mut f64| {
            let gate = sigmoid(x + *h);
            *h = (1.0 - gate) * (x + gate * *h).tanh() + gate * *h;
        };
        layer("relax.nn.gru", 3, step, false);
    }),
    ("relax.nn.rnn", || layer("relax.nn.rnn", 1, |x, h, _| *h = (x + *h).tanh(), false)),
];

/// Tests that all recurrent operators reject tuples as operands.
#[test]
fn recurrent_layers_reject_operands_that_are_not_tensors() {
    let unit = Value::tuple(vec![]);
    for op in ["relax.nn.lstm", "relax.nn.gru", "relax.nn.rnn"] {
        let args = [unit.clone(), unit.clone(), unit.clone()];
        refuse(op, &args, &none(), "must be a tensor");
    }
}
