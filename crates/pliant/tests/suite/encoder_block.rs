//! Tests a small encoder block against a scalar reference, at many shapes with one compilation.

use crate::test_helpers::{model, run, tensor};

const SCRIPT: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("b", "s", 8), dtype="float32"), w: R.Tensor((8, 8), dtype="float32"), gamma: R.Tensor((8,), dtype="float32"), beta: R.Tensor((8,), dtype="float32")) -> R.Tensor(("b", "s", 8), dtype="float32"):
        b = T.int64()
        s = T.int64()
        with R.dataflow():
            q = R.matmul(x, w)
            k = R.permute_dims(q, axes=[0, 2, 1])
            scores = R.matmul(q, k)
            scaled = R.multiply(scores, R.const(0.25, "float32"))
            p = R.nn.softmax(scaled, axis=-1)
            o = R.matmul(p, q)
            r = R.add(o, x)
            gv = R.nn.layer_norm(r, gamma, beta, axes=[-1], epsilon=1e-5)
            R.output(gv)
        return gv
"#;

/// Computes the result of the encoder block for one batch entry `x` of shape `[s, 8]`, with scalar
/// loops.
fn reference(x: &[f64], w: &[f64], s: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &dyn Fn(usize) -> f64| -> f64 {
        a.iter().enumerate().map(|(i, v)| v * b(i)).sum()
    };
    let rows: Vec<&[f64]> = x.chunks(8).collect();
    let q: Vec<Vec<f64>> =
        rows.iter().map(|r| (0..8).map(|j| dot(r, &|i| w[i * 8 + j])).collect()).collect();
    let mut out = Vec::with_capacity(s * 8);
    for i in 0..s {
        let scores: Vec<f64> = (0..s).map(|j| 0.25 * dot(&q[i], &|l| q[j][l])).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exps: Vec<f64> = scores.iter().map(|v| (v - top).exp()).collect();
        let total: f64 = exps.iter().sum();
        let row: Vec<f64> = (0..8)
            .map(|c| (0..s).map(|j| exps[j] / total * q[j][c]).sum::<f64>() + rows[i][c])
            .collect();
        let mean = row.iter().sum::<f64>() / 8.0;
        let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 8.0;
        let scale = 1.0 / (var + 1e-5).sqrt();
        out.extend(
            row.iter()
                .enumerate()
                .map(|(c, v)| (v - mean) * scale * (1.0 + c as f64 / 8.0) + c as f64 / 4.0),
        );
    }
    out
}

#[test]
fn an_encoder_block_agrees_with_the_reference_at_every_shape() {
    let m = model(SCRIPT);
    let sine_wave =
        |n: usize, k: f32| -> Vec<f32> { (0..n).map(|i| (i as f32 * k).sin()).collect() };
    let to_f64 = |v: &[f32]| -> Vec<f64> { v.iter().map(|&x| f64::from(x)).collect() };
    let w = sine_wave(64, 0.7);
    let gamma: Vec<f32> = (0..8).map(|c| 1.0 + c as f32 / 8.0).collect();
    let beta: Vec<f32> = (0..8).map(|c| c as f32 / 4.0).collect();
    for (b, s) in [(0, 3), (2, 0), (1, 1), (2, 3), (3, 7), (1, 33), (4, 16), (2, 65)] {
        let x = sine_wave(b * s * 8, 0.37);
        let shape = [b as i64, s as i64, 8];
        let args =
            [tensor(&shape, &x), tensor(&[8, 8], &w), tensor(&[8], &gamma), tensor(&[8], &beta)];
        let (got_shape, got) = run(&m, &args);
        assert_eq!(got_shape, shape);
        let expected: Vec<f64> =
            to_f64(&x).chunks((s * 8).max(1)).flat_map(|x| reference(x, &to_f64(&w), s)).collect();
        assert_eq!(got.len(), expected.len());
        for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
            assert!((f64::from(*g) - e).abs() < 1e-4, "b={b} s={s} at {i}: {g} instead of {e}");
        }
    }
    assert_eq!(m.stats().compilations, 1);
}
