//! Tests loop functions with blocks (TIR before lowering), compiled through all passes. Compares
//! results with Rust code at many sizes, on one and two threads.

use crate::loop_function_harness::*;
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_tensor::DType;

/// Compiles a function that computes `C[i] = value(A[i], B[i])`.
fn elementwise(
    dtype: DType,
    value: impl Fn(&mut PrimFunc, Expr, Expr) -> Expr,
) -> CompiledFunction {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], dtype);
    let b = param(&mut f, "B", &[n], dtype);
    let one = f.int(1);
    let probe = f.load(a, &[one]);
    let probe = value(&mut f, probe, probe);
    let out = f.expr_ty(probe).dtype;
    let c = param(&mut f, "C", &[n], out);
    let s = stage(&mut f, "C", &[(n, S)], |f, v| {
        let (x, y) = (f.load(a, &[v[0]]), f.load(b, &[v[0]]));
        let value = value(f, x, y);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    f.body = s;
    build(&f)
}

#[test]
fn adds_at_every_size() {
    let k = elementwise(DType::Float32, |f, x, y| f.add(x, y));
    for n in SIZES.into_iter().chain([100_000]) {
        let (a, b) = (random_floats(n, 1), random_floats(n, 2));
        let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; n];
            k.call(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])], rt).unwrap();
            assert_eq!(c, want);
        });
    }
}

macro_rules! each_type {
    ($($name:ident: $t:ty, $make:expr, $sum:expr;)*) => { $(
        #[test]
        fn $name() {
            let k = elementwise(<$t as Elem>::DTYPE, |f, x, y| f.add(x, y));
            for n in SIZES {
                let a: Vec<$t> = (0..n).map(|i| $make(i)).collect();
                let b: Vec<$t> = (0..n).map(|i| $make(i * 7 + 3)).collect();
                let mut c = vec![<$t>::default(); n];
                k.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
                let want: Vec<$t> = a.iter().zip(&b).map(|(&x, &y)| $sum(x, y)).collect();
                assert_eq!(c, want);
            }
        }
    )* };
}
each_type! {
    adds_i8: i8, |i: usize| i as i8, i8::wrapping_add;
    adds_i16: i16, |i: usize| i as i16, i16::wrapping_add;
    adds_i32: i32, |i: usize| i as i32, i32::wrapping_add;
    adds_i64: i64, |i: usize| i as i64, i64::wrapping_add;
    adds_u8: u8, |i: usize| i as u8, u8::wrapping_add;
    adds_u16: u16, |i: usize| i as u16, u16::wrapping_add;
    adds_u32: u32, |i: usize| i as u32, u32::wrapping_add;
    adds_u64: u64, |i: usize| i as u64, u64::wrapping_add;
    adds_f64: f64, |i: usize| i as f64 * 0.1, |x: f64, y: f64| x + y;
    adds_f16: half::f16, |i: usize| half::f16::from_f32(i as f32 * 0.37), |x: half::f16, y: half::f16| {
        half::f16::from_f32(x.to_f32() + y.to_f32())
    };
    adds_bf16: half::bf16, |i: usize| half::bf16::from_f32(i as f32 * 0.37), |x: half::bf16, y: half::bf16| {
        half::bf16::from_f32(x.to_f32() + y.to_f32())
    };
}

#[test]
fn compares_and_selects() {
    let k = elementwise(DType::Float32, |f, x, y| f.binary(BinOp::Lt, x, y));
    let k2 = elementwise(DType::Float32, |f, x, y| {
        let c = f.binary(BinOp::Lt, x, y);
        let one = f.const_of(2.5, DType::Float32);
        let sum = f.add(x, one);
        f.add_expr(ExprData::Select(c, sum, y))
    });
    let k3 = elementwise(DType::Float32, |f, x, y| f.binary(BinOp::Max, x, y));
    for n in SIZES {
        let (mut a, b) = (random_floats(n, 1), random_floats(n, 2));
        if n > 5 {
            a[5] = f32::NAN;
        }
        let mut c = vec![false; n];
        k.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
        assert_eq!(c, a.iter().zip(&b).map(|(x, y)| x < y).collect::<Vec<_>>());
        let mut c = vec![0f32; n];
        k2.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
        let want: Vec<f32> =
            a.iter().zip(&b).map(|(&x, &y)| if x < y { x + 2.5 } else { y }).collect();
        assert_eq!(c, want);
        k3.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
        let max = |x: f32, y: f32| if x.is_nan() { x } else { x.max(y) };
        let want: Vec<f32> = a.iter().zip(&b).map(|(&x, &y)| max(x, y)).collect();
        assert_close(&c, &want, 0.0, "max");
    }
}

#[test]
fn elementary_functions_match_rust() {
    type Reference = fn(f32) -> f32;
    let cases: [(Intrin, Reference, f32); 14] = [
        (Intrin::Exp, |x| x.exp(), 2e-7),
        (Intrin::Log, |x| x.ln(), 2e-7),
        (Intrin::Tanh, |x| x.tanh(), 5e-7),
        (Intrin::Erf, libm_erf, 1e-6),
        (Intrin::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 4e-7),
        (Intrin::Sqrt, |x| x.sqrt(), 0.0),
        (Intrin::Rsqrt, |x| 1.0 / x.sqrt(), 0.0),
        (Intrin::Sin, |x| x.sin(), 2e-7),
        (Intrin::Cos, |x| x.cos(), 2e-7),
        (Intrin::Floor, |x| x.floor(), 0.0),
        (Intrin::Ceil, |x| x.ceil(), 0.0),
        (Intrin::Round, |x| x.round_ties_even(), 0.0),
        (Intrin::Trunc, |x| x.trunc(), 0.0),
        (Intrin::Abs, |x| x.abs(), 0.0),
    ];
    for (intrin, reference, tolerance) in cases {
        let k = elementwise(DType::Float32, |f, x, _| f.call(intrin, &[x]));
        for n in SIZES {
            let a: Vec<f32> = random_floats(n, 3).iter().map(|x| x * 6.0).collect();
            let mut c = vec![0f32; n];
            k.run(vec![tensor(&a, &[n]), tensor(&a, &[n]), output(&mut c, &[n])]).unwrap();
            let want: Vec<f32> = a.iter().map(|&x| reference(x)).collect();
            assert_close(&c, &want, tolerance, intrin.name());
        }
    }
}

fn libm_erf(x: f32) -> f32 {
    pliant_kernels::scalar_math::erf_f64(f64::from(x)) as f32
}

#[test]
fn casts_saturate() {
    let k = elementwise(DType::Float32, |f, x, _| f.cast(x, Ty::scalar(DType::Int8)));
    let a = [300.0f32, -300.0, 1.9, -1.9, f32::NAN, 0.0, 127.4, f32::INFINITY, -0.5];
    let mut c = vec![0i8; 9];
    k.run(vec![tensor(&a, &[9]), tensor(&a, &[9]), output(&mut c, &[9])]).unwrap();
    assert_eq!(c, a.map(|x| x as i8));
    let k = elementwise(DType::Float32, |f, x, _| f.cast(x, Ty::scalar(DType::Int32)));
    let a: Vec<f32> = random_floats(33, 4).iter().map(|x| x * 4e9).collect();
    let mut c = vec![0i32; 33];
    k.run(vec![tensor(&a, &[33]), tensor(&a, &[33]), output(&mut c, &[33])]).unwrap();
    assert_eq!(c, a.iter().map(|&x| x as i32).collect::<Vec<_>>());
    let k = elementwise(DType::Int64, |f, x, _| f.cast(x, Ty::scalar(DType::Float32)));
    let a: Vec<i64> = (0..33).map(|i| i * i * 1_000_003 - 77).collect();
    let mut c = vec![0f32; 33];
    k.run(vec![tensor(&a, &[33]), tensor(&a, &[33]), output(&mut c, &[33])]).unwrap();
    assert_eq!(c, a.iter().map(|&x| x as f32).collect::<Vec<_>>());
}

#[test]
fn broadcasts_and_fuses_two_outputs() {
    // C[i, j] = A[i, j] + B[j]; D[i, j] = A[i, j] * A[i, j]
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let a = param(&mut f, "A", &[n, m], DType::Float32);
    let b = param(&mut f, "B", &[m], DType::Float32);
    let c = param(&mut f, "C", &[n, m], DType::Float32);
    let d = param(&mut f, "D", &[n, m], DType::Float32);
    let axes = [(n, S), (m, S)];
    let s1 = stage(&mut f, "C", &axes, |f, v| {
        let (x, y) = (f.load(a, v), f.load(b, &[v[1]]));
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value: f.add(x, y) }
    });
    let s2 = stage(&mut f, "D", &axes, |f, v| {
        let x = f.load(a, v);
        StageWrite { buffer: d, indices: v.to_vec(), init: None, value: f.mul(x, x) }
    });
    root(&mut f, Vec::new(), vec![s1, s2]);
    let k = build(&f);
    for (n, m) in [(0, 5), (5, 0), (1, 1), (1, 1000), (1000, 1), (3, 17), (64, 33), (300, 300)] {
        let (a, b) = (random_floats(n * m, 1), random_floats(m, 2));
        run_serially_and_on_team(|rt| {
            let (mut c, mut d) = (vec![0f32; n * m], vec![0f32; n * m]);
            let args = vec![
                tensor(&a, &[n, m]),
                tensor(&b, &[m]),
                output(&mut c, &[n, m]),
                output(&mut d, &[n, m]),
            ];
            k.call(args, rt).unwrap();
            for i in 0..n * m {
                assert_eq!(c[i], a[i] + b[i % m]);
                assert_eq!(d[i], a[i] * a[i]);
            }
        });
    }
}

#[test]
fn transposes() {
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let a = param(&mut f, "A", &[n, m], DType::Float32);
    let c = param(&mut f, "C", &[m, n], DType::Float32);
    f.body = stage(&mut f, "C", &[(m, S), (n, S)], |f, v| {
        let value = f.load(a, &[v[1], v[0]]);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    let k = build(&f);
    for (n, m) in [(0, 3), (1, 1), (7, 33), (64, 17), (1, 1000)] {
        let a = random_floats(n * m, 1);
        let mut c = vec![0f32; n * m];
        k.run(vec![tensor(&a, &[n, m]), output(&mut c, &[m, n])]).unwrap();
        for i in 0..n {
            for j in 0..m {
                assert_eq!(c[j * n + i], a[i * m + j]);
            }
        }
    }
}

#[test]
fn multiplies_matrices() {
    for transpose in [false, true] {
        let mut f = PrimFunc::new();
        let (n, m, k) = (size(&mut f, "n"), size(&mut f, "m"), size(&mut f, "k"));
        let a = param(&mut f, "A", &[n, k], DType::Float32);
        let b = param(&mut f, "B", &if transpose { [m, k] } else { [k, m] }, DType::Float32);
        let c = param(&mut f, "C", &[n, m], DType::Float32);
        f.body = stage(&mut f, "C", &[(n, S), (m, S), (k, R)], |f, v| {
            let x = f.load(a, &[v[0], v[2]]);
            let y = f.load(b, &if transpose { [v[1], v[2]] } else { [v[2], v[1]] });
            let p = f.mul(x, y);
            let old = f.load(c, &v[..2]);
            let init = Some(f.const_of(0.0, DType::Float32));
            StageWrite { buffer: c, indices: v[..2].to_vec(), init, value: f.add(old, p) }
        });
        let kernel = build(&f);
        for (n, m, k) in [
            (0, 3, 3),
            (3, 3, 0),
            (1, 1, 1),
            (1, 64, 33),
            (2, 100, 17),
            (7, 8, 33),
            (64, 64, 64),
            (129, 200, 77),
        ] {
            let (a, b) = (random_floats(n * k, 1), random_floats(k * m, 2));
            let mut want = vec![0f32; n * m];
            for i in 0..n {
                for j in 0..m {
                    want[i * m + j] = (0..k)
                        .map(|p| a[i * k + p] * if transpose { b[j * k + p] } else { b[p * m + j] })
                        .sum();
                }
            }
            run_serially_and_on_team(|rt| {
                let mut c = vec![7f32; n * m];
                let bs = if transpose { [m, k] } else { [k, m] };
                let args = vec![tensor(&a, &[n, k]), tensor(&b, &bs), output(&mut c, &[n, m])];
                kernel.call(args, rt).unwrap();
                assert_close(&c, &want, 1e-4, "matmul");
            });
        }
    }
}

#[test]
fn multiplies_batches_of_strided_heads() {
    // scores[b, h, i, j] = sum_d Q[b, i, h, d] * K[b, j, h, d]
    let mut f = PrimFunc::new();
    let (nb, ns) = (size(&mut f, "b"), size(&mut f, "s"));
    let (nh, nd) = (f.int(3), f.int(8));
    let q = param(&mut f, "Q", &[nb, ns, nh, nd], DType::Float32);
    let k = param(&mut f, "K", &[nb, ns, nh, nd], DType::Float32);
    let c = param(&mut f, "C", &[nb, nh, ns, ns], DType::Float32);
    f.body = stage(&mut f, "C", &[(nb, S), (nh, S), (ns, S), (ns, S), (nd, R)], |f, v| {
        let x = f.load(q, &[v[0], v[2], v[1], v[4]]);
        let y = f.load(k, &[v[0], v[3], v[1], v[4]]);
        let p = f.mul(x, y);
        let old = f.load(c, &v[..4]);
        let init = Some(f.const_of(0.0, DType::Float32));
        StageWrite { buffer: c, indices: v[..4].to_vec(), init, value: f.add(old, p) }
    });
    let mut g = f.clone();
    assert!(matches!(
        pliant_tir::schedule::loop_nest_stages::parse_stage(&mut g, f.body)
            .map(|s| pliant_tir::schedule::gemm::is_matmul(&mut g, &s)),
        Some(true)
    ));
    let kernel = build(&f);
    for (b, s) in [(0, 4), (1, 0), (1, 1), (2, 7), (3, 33)] {
        let (qv, kv) = (random_floats(b * s * 24, 1), random_floats(b * s * 24, 2));
        run_serially_and_on_team(|rt| {
            let mut cv = vec![7f32; b * 3 * s * s];
            let args = vec![
                tensor(&qv, &[b, s, 3, 8]),
                tensor(&kv, &[b, s, 3, 8]),
                output(&mut cv, &[b, 3, s, s]),
            ];
            kernel.call(args, rt).unwrap();
            for x in 0..b {
                for h in 0..3 {
                    for i in 0..s {
                        for j in 0..s {
                            let at =
                                |t: &[f32], p: usize, d: usize| t[((x * s + p) * 3 + h) * 8 + d];
                            let want: f32 = (0..8).map(|d| at(&qv, i, d) * at(&kv, j, d)).sum();
                            let got = cv[((x * 3 + h) * s + i) * s + j];
                            assert!((got - want).abs() < 1e-5);
                        }
                    }
                }
            }
        });
    }
}

/// Builds softmax over the last axis, in four stages.
fn softmax() -> PrimFunc {
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let d = DType::Float32;
    let a = param(&mut f, "A", &[n, m], d);
    let c = param(&mut f, "C", &[n, m], d);
    let top = f.compact_buffer("top", vec![n], d);
    let e = f.compact_buffer("e", vec![n, m], d);
    let sum = f.compact_buffer("sum", vec![n], d);
    let s1 = stage(&mut f, "top", &[(n, S), (m, R)], |f, v| {
        let (x, old) = (f.load(a, v), f.load(top, &v[..1]));
        let init = Some(f.const_of(f64::from(f32::MIN), d));
        StageWrite { buffer: top, indices: vec![v[0]], init, value: f.binary(BinOp::Max, old, x) }
    });
    let s2 = stage(&mut f, "e", &[(n, S), (m, S)], |f, v| {
        let (x, t) = (f.load(a, v), f.load(top, &v[..1]));
        let x = f.binary(BinOp::Sub, x, t);
        StageWrite { buffer: e, indices: v.to_vec(), init: None, value: f.call(Intrin::Exp, &[x]) }
    });
    let s3 = stage(&mut f, "sum", &[(n, S), (m, R)], |f, v| {
        let (x, old) = (f.load(e, v), f.load(sum, &v[..1]));
        let init = Some(f.const_of(0.0, d));
        StageWrite { buffer: sum, indices: vec![v[0]], init, value: f.add(old, x) }
    });
    let s4 = stage(&mut f, "C", &[(n, S), (m, S)], |f, v| {
        let (x, s) = (f.load(e, v), f.load(sum, &v[..1]));
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value: f.binary(BinOp::Div, x, s) }
    });
    root(&mut f, vec![top, e, sum], vec![s1, s2, s3, s4]);
    f
}

#[test]
fn softmax_of_rows() {
    let k = build(&softmax());
    for n in SIZES {
        for m in [1, 3, 8, 17, 64, 1000] {
            if n * m > 70_000 {
                continue;
            }
            let a: Vec<f32> = random_floats(n * m, 5).iter().map(|x| x * 9.0).collect();
            let mut want = Vec::new();
            for row in a.chunks(m) {
                let top = row.iter().copied().fold(f32::MIN, f32::max);
                let e: Vec<f32> = row.iter().map(|x| (x - top).exp()).collect();
                let sum: f32 = e.iter().sum();
                want.extend(e.iter().map(|x| x / sum));
            }
            run_serially_and_on_team(|rt| {
                let mut c = vec![0f32; n * m];
                k.call(vec![tensor(&a, &[n, m]), output(&mut c, &[n, m])], rt).unwrap();
                assert_close(&c, &want, 2e-6, "softmax");
            });
        }
    }
}

#[test]
fn reduces_rows_columns_and_both() {
    for op in [BinOp::Add, BinOp::Max, BinOp::Min, BinOp::Mul] {
        let build_one = |kind: usize| {
            let mut f = PrimFunc::new();
            let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
            let d = DType::Float32;
            let a = param(&mut f, "A", &[n, m], d);
            let shape: Vec<Expr> = [vec![n], vec![m], vec![]][kind].clone();
            let c = param(&mut f, "C", &shape, d);
            let start = match op {
                BinOp::Add => 0.0,
                BinOp::Mul => 1.0,
                BinOp::Max => -100.0,
                _ => 100.0,
            };
            let axes =
                [vec![(n, S), (m, R)], vec![(m, S), (n, R)], vec![(n, R), (m, R)]][kind].clone();
            f.body = stage(&mut f, "C", &axes, |f, v| {
                let at = if kind == 1 { [v[1], v[0]] } else { [v[0], v[1]] };
                let x = f.load(a, &at);
                let indices = if kind == 2 { vec![] } else { vec![v[0]] };
                let old = f.load(c, &indices);
                let init = Some(f.const_of(start, d));
                StageWrite { buffer: c, indices, init, value: f.binary(op, old, x) }
            });
            (build(&f), start as f32)
        };
        for kind in 0..3 {
            let (k, start) = build_one(kind);
            for (n, m) in [(0, 3), (3, 0), (1, 1), (3, 17), (17, 3), (33, 64), (5, 1000), (1000, 7)]
            {
                let a = random_floats(n * m, 8);
                let out = [n, m, 1][kind];
                let mut want = vec![start; out];
                for i in 0..n {
                    for j in 0..m {
                        let w = &mut want[[i, j, 0][kind]];
                        let x = a[i * m + j];
                        *w = match op {
                            BinOp::Add => *w + x,
                            BinOp::Mul => *w * x,
                            BinOp::Max => w.max(x),
                            _ => w.min(x),
                        };
                    }
                }
                run_serially_and_on_team(|rt| {
                    let mut c = vec![9f32; out];
                    let shape: &[usize] = if kind == 2 { &[] } else { &[out] };
                    k.call(vec![tensor(&a, &[n, m]), output(&mut c, shape)], rt).unwrap();
                    assert_close(&c, &want, 2e-5, "reduction");
                });
            }
        }
    }
}

#[test]
fn gathers_and_reports_out_of_bounds_indices() {
    let mut f = PrimFunc::new();
    let (n, v, m) = (size(&mut f, "n"), size(&mut f, "v"), size(&mut f, "m"));
    let table = param(&mut f, "T", &[v, m], DType::Float32);
    let idx = param(&mut f, "I", &[n], DType::Int64);
    let c = param(&mut f, "C", &[n, m], DType::Float32);
    f.body = stage(&mut f, "C", &[(n, S), (m, S)], |f, x| {
        let i = f.load(idx, &[x[0]]);
        let value = f.load(table, &[i, x[1]]);
        StageWrite { buffer: c, indices: x.to_vec(), init: None, value }
    });
    let k = build(&f);
    for (n, v, m) in [(0, 1, 3), (1, 1, 1), (7, 5, 17), (500, 30, 64)] {
        let table = random_floats(v * m, 1);
        let mut idx: Vec<i64> = (0..n).map(|i| (i * 7 % v) as i64).collect();
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; n * m];
            let args = vec![tensor(&table, &[v, m]), tensor(&idx, &[n]), output(&mut c, &[n, m])];
            k.call(args, rt).unwrap();
            for i in 0..n {
                let row = idx[i] as usize * m;
                assert_eq!(c[i * m..(i + 1) * m], table[row..row + m]);
            }
        });
        for bad in [-1, v as i64, i64::MIN, i64::MAX] {
            if n == 0 {
                continue;
            }
            idx[n - 1] = bad;
            run_serially_and_on_team(|rt| {
                let mut c = vec![0f32; n * m];
                let args =
                    vec![tensor(&table, &[v, m]), tensor(&idx, &[n]), output(&mut c, &[n, m])];
                let error = k.call(args, rt).unwrap_err();
                assert_eq!(error, "index out of bounds: dim 0 of 'T' has v elements");
            });
        }
    }
}

#[test]
fn layer_norm_and_gelu_over_three_axes() {
    let mut f = PrimFunc::new();
    let (b, s, h) = (size(&mut f, "b"), size(&mut f, "s"), size(&mut f, "h"));
    let d = DType::Float32;
    let a = param(&mut f, "A", &[b, s, h], d);
    let gamma = param(&mut f, "G", &[h], d);
    let c = param(&mut f, "C", &[b, s, h], d);
    let sum = f.compact_buffer("sum", vec![b, s], d);
    let mean = f.compact_buffer("mean", vec![b, s], d);
    let square = f.compact_buffer("square", vec![b, s], d);
    let normal = f.compact_buffer("normal", vec![b, s, h], d);
    let zero = f.const_of(0.0, d);
    let count = f.cast(h, Ty::scalar(d));
    let (rows, all) = ([(b, S), (s, S)], [(b, S), (s, S), (h, S)]);
    let reduce = [(b, S), (s, S), (h, R)];
    let s1 = stage(&mut f, "sum", &reduce, |f, v| {
        let (x, old) = (f.load(a, v), f.load(sum, &v[..2]));
        StageWrite { buffer: sum, indices: v[..2].to_vec(), init: Some(zero), value: f.add(old, x) }
    });
    let s2 = stage(&mut f, "mean", &rows, |f, v| {
        let x = f.load(sum, v);
        StageWrite {
            buffer: mean,
            indices: v.to_vec(),
            init: None,
            value: f.binary(BinOp::Div, x, count),
        }
    });
    let s3 = stage(&mut f, "square", &reduce, |f, v| {
        let (x, m, old) = (f.load(a, v), f.load(mean, &v[..2]), f.load(square, &v[..2]));
        let x = f.binary(BinOp::Sub, x, m);
        let x = f.mul(x, x);
        StageWrite {
            buffer: square,
            indices: v[..2].to_vec(),
            init: Some(zero),
            value: f.add(old, x),
        }
    });
    let s4 = stage(&mut f, "normal", &all, |f, v| {
        let (x, m, q) = (f.load(a, v), f.load(mean, &v[..2]), f.load(square, &v[..2]));
        let x = f.binary(BinOp::Sub, x, m);
        let var = f.binary(BinOp::Div, q, count);
        let eps = f.const_of(1e-5, d);
        let var = f.add(var, eps);
        let scale = f.call(Intrin::Rsqrt, &[var]);
        let x = f.mul(x, scale);
        let g = f.load(gamma, &v[2..]);
        StageWrite { buffer: normal, indices: v.to_vec(), init: None, value: f.mul(x, g) }
    });
    let s5 = stage(&mut f, "C", &all, |f, v| {
        let x = f.load(normal, v);
        let (r, half, one) = (f.const_of(0.5f64.sqrt(), d), f.const_of(0.5, d), f.const_of(1.0, d));
        let e = f.mul(x, r);
        let e = f.call(Intrin::Erf, &[e]);
        let e = f.add(e, one);
        let x = f.mul(x, half);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value: f.mul(x, e) }
    });
    root(&mut f, vec![sum, mean, square, normal], vec![s1, s2, s3, s4, s5]);
    let k = build(&f);
    for (b, s, h) in [(0, 1, 4), (2, 0, 4), (1, 1, 1), (2, 3, 17), (1, 7, 384), (5, 40, 33)] {
        let (a, g) = (random_floats(b * s * h, 1), random_floats(h, 2));
        let mut want = Vec::new();
        for row in a.chunks(h) {
            let mean = row.iter().sum::<f32>() / h as f32;
            let var = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / h as f32;
            want.extend(row.iter().zip(&g).map(|(x, g)| {
                let x = (x - mean) / (var + 1e-5).sqrt() * g;
                x * 0.5 * (1.0 + libm_erf(x * 0.5f32.sqrt()))
            }));
        }
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; b * s * h];
            let args = vec![tensor(&a, &[b, s, h]), tensor(&g, &[h]), output(&mut c, &[b, s, h])];
            k.call(args, rt).unwrap();
            assert_close(&c, &want, 3e-6, "layer norm");
        });
    }
}
