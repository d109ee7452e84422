//! Tests broadcasting of symbolic sizes that may be 1: whether a dim is stretched is decided at run
//! time.

use pliant::{CompileOptions, ExecMode, Model, Value};

use crate::test_helpers::{fails, iota, model, parse, read, run};

const SIZES: [i64; 6] = [0, 1, 2, 3, 8, 33];

/// Returns the broadcast size of two sizes; `None` if they are incompatible.
fn broadcast_size(n: i64, m: i64) -> Option<i64> {
    match (n, m) {
        _ if n == m => Some(n),
        (1, m) => Some(m),
        (n, 1) => Some(n),
        _ => None,
    }
}

/// Returns element `i` of an [`iota`] of size `n` after broadcasting.
fn element(n: i64, i: i64) -> f32 {
    if n == 1 { 0.0 } else { i as f32 }
}

const CHAIN: &str = r#"
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32"), z: R.Tensor(("k",), "float32")) -> R.Object:
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(a, z)
        c = R.subtract(R.exp(R.negative(b)), x)
        R.output(a, b, c)
    return (a, b, c)
"#;

#[test]
fn operator_chains_broadcast_unit_sizes_at_run_time() {
    for exec_mode in [ExecMode::Bytecode, ExecMode::Compiled] {
        let options = CompileOptions { exec_mode, ..CompileOptions::default() };
        let m = Model::compile(parse(CHAIN), &options).unwrap_or_else(|e| panic!("{e}"));
        for (n, k) in SIZES.into_iter().flat_map(|n| SIZES.map(|k| (n, k))) {
            for l in [n, k, 1, 5] {
                let args = [iota(&[n]), iota(&[k]), iota(&[l])];
                let Some(size) = broadcast_size(n, k).and_then(|s| broadcast_size(s, l)) else {
                    let message = fails(&m, &args);
                    assert!(message.contains("cannot be broadcast together"), "{message}");
                    continue;
                };
                let out = m.run("main", &args).unwrap_or_else(|e| panic!("{n} {k} {l}: {e}"));
                let [a, b, c] = out.as_tuple().expect("a tuple") else { panic!("{out:?}") };
                let inner = broadcast_size(n, k).unwrap_or(0);
                let sum = |i: i64| element(n, i) + element(k, i);
                let sums: Vec<f32> = (0..inner).map(sum).collect();
                assert_eq!(read(a), (vec![inner], sums), "{n} {k} {l}");
                let product = |i: i64| (if inner == 1 { sum(0) } else { sum(i) }) * element(l, i);
                let products: Vec<f32> = (0..size).map(product).collect();
                assert_eq!(read(b), (vec![size], products), "{n} {k} {l}");
                let (shape, got) = read(c);
                assert_eq!(shape, [size]);
                for (i, got) in got.into_iter().enumerate() {
                    let want = (-product(i as i64)).exp() - element(n, i as i64);
                    assert!((got - want).abs() < 1e-5, "{n} {k} {l}: {got} is not {want}");
                }
            }
        }
    }
}

#[test]
fn batches_of_matrix_products_broadcast() {
    let m = model(
        r#"
@R.function
def main(x: R.Tensor(("b", "c", 2, 3), "float32"), y: R.Tensor(("d", 3, 4), "float32")) -> R.Object:
    return R.matmul(x, y)
"#,
    );
    let product = |x: &[f32], y: &[f32]| -> Vec<f32> {
        let cell = |i: usize, j: usize| (0..3).map(|k| x[i * 3 + k] * y[k * 4 + j]).sum();
        (0..8).map(|at| cell(at / 4, at % 4)).collect()
    };
    for b in [0, 1, 2] {
        for (c, d) in [(0, 0), (1, 1), (1, 3), (3, 1), (3, 3), (0, 1), (1, 0)] {
            let (x, y) = (iota(&[b, c, 2, 3]), iota(&[d, 3, 4]));
            let (got, xs, ys) = (run(&m, &[x.clone(), y.clone()]), read(&x).1, read(&y).1);
            let size = broadcast_size(c, d).expect("they fit");
            let mut want = Vec::new();
            for at in 0..b * size {
                let (i, j) = (at / size * c + if c == 1 { 0 } else { at % size }, at % size);
                let j = if d == 1 { 0 } else { j };
                let (i, j) = (i as usize, j as usize);
                want.extend(product(&xs[i * 6..][..6], &ys[j * 12..][..12]));
            }
            assert_eq!(got, (vec![b, size, 2, 4], want), "b={b} c={c} d={d}");
        }
        let message = fails(&m, &[iota(&[b, 2, 2, 3]), iota(&[3, 3, 4])]);
        assert!(message.contains("relax.matmul: dims c and d (axis -3)"), "{message}");
    }
}

#[test]
fn errors_name_the_sizes_and_the_operands() {
    let m = model(
        r#"
@R.function
def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m", 2), "float32")) -> R.Object:
    return R.add(x, y)
"#,
    );
    let message = fails(&m, &[iota(&[3, 2]), iota(&[4, 2])]);
    let want = "relax.add: dims n and m (axis -2) cannot be broadcast together: x1 is R.Tensor((n, 2), \
                dtype=\"float32\"), x2 is R.Tensor((m, 2), dtype=\"float32\")";
    assert!(message.contains(want), "{message}");
}

#[test]
fn many_symbols_in_one_dim() {
    let params: Vec<String> =
        (0..100).map(|i| format!("x{i}: R.Tensor((\"n{i}\",), \"float32\")")).collect();
    let mut body = String::from("    y = x0\n");
    (1..100).for_each(|i| body += &format!("    y = R.add(y, x{i})\n"));
    let m = model(&format!(
        "@R.function\ndef main({}) -> R.Object:\n{body}    return y\n",
        params.join(", ")
    ));
    let args: Vec<Value> = (0..100).map(|i| iota(&[if i % 3 == 0 { 4 } else { 1 }])).collect();
    assert_eq!(run(&m, &args), (vec![4], vec![0.0, 34.0, 68.0, 102.0]));
}
