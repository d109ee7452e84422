//! Tests vector math functions (`pliant_vec_*`, on contiguous elements), which generated loops call
//! on tiles: chains, reductions, 16-bit results and branches, at sizes around the tile size.

use crate::loop_function_harness::*;
use half::{bf16, f16};
use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc, Ty};
use pliant_kernel_api::vector_math_functions::{VECTOR_MATH_FUNCTIONS, VectorMathFunction};
use pliant_kernels::extern_fn;
use pliant_tensor::DType;

/// Returns array sizes around one tile, around two tiles, and around many tiles.
fn sizes() -> impl Iterator<Item = usize> {
    SIZES.into_iter().chain([511, 512, 513, 1025, 20_011])
}

#[test]
fn every_vector_math_function_is_linked() {
    for VectorMathFunction { symbol, .. } in VECTOR_MATH_FUNCTIONS {
        let f = extern_fn(symbol).unwrap_or_else(|| panic!("no symbol {symbol}"));
        assert!(f.runtime && f.from_script(), "{symbol}");
    }
}

/// Compiles a function that computes `C[i] = value(A[i], B[i])`. Returns the function, and the
/// number of library function calls in its lowered form.
fn elementwise(
    dtype: DType,
    value: impl Fn(&mut PrimFunc, Expr, Expr) -> Expr,
) -> (CompiledFunction, usize) {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], dtype);
    let b = param(&mut f, "B", &[n], dtype);
    let one = f.int(1);
    let probe = f.load(a, &[one]);
    let probe = value(&mut f, probe, probe);
    let out = f.expr_ty(probe).dtype;
    let c = param(&mut f, "C", &[n], out);
    f.body = stage(&mut f, "C", &[(n, S)], |f, v| {
        let (x, y) = (f.load(a, &[v[0]]), f.load(b, &[v[0]]));
        let value = value(f, x, y);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    (build(&f), count_extern_calls(&f))
}

/// Returns the number of calls of library functions in a lowered function.
fn count_extern_calls(f: &PrimFunc) -> usize {
    let lowered = pliant_tir::lower(f).expect("the test's function can be lowered");
    let mut n = 0;
    pliant_tir::statement_traversal::for_each_stmt(&lowered, lowered.body, &mut |_, data| {
        pliant_tir::statement_traversal::direct_exprs(data, |e| {
            n += usize::from(matches!(lowered.expr(e), ExprData::Call(Intrin::CallExtern, ..)));
        });
    });
    n
}

#[test]
fn nested_function_calls() {
    // log(1 + exp(x)) * tanh(y) + atan2(x, y)
    let (k, calls) = elementwise(DType::Float32, |f, x, y| {
        let (one, e) = (f.const_of(1.0, DType::Float32), f.call(Intrin::Exp, &[x]));
        let sum = f.add(one, e);
        let (log, tanh) = (f.call(Intrin::Log, &[sum]), f.call(Intrin::Tanh, &[y]));
        let (product, angle) = (f.mul(log, tanh), f.call(Intrin::Atan2, &[x, y]));
        f.add(product, angle)
    });
    assert_eq!(calls, 4);
    for n in sizes() {
        let (a, b) = (random_floats(n, 1), random_floats(n, 2));
        let want: Vec<f32> =
            a.iter().zip(&b).map(|(x, y)| (1.0 + x.exp()).ln() * y.tanh() + x.atan2(*y)).collect();
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; n];
            k.call(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])], rt).unwrap();
            assert_close(&c, &want, 1e-6, "chain");
        });
    }
}

#[test]
fn a_single_function_call_works_in_place() {
    let (k, calls) = elementwise(DType::Float64, |f, x, _| f.call(Intrin::Exp, &[x]));
    assert_eq!(calls, 1);
    for n in sizes() {
        let a: Vec<f64> = random_floats(n, 1).iter().map(|&x| f64::from(x) * 30.0).collect();
        run_serially_and_on_team(|rt| {
            let mut c = a.clone();
            let operand = tensor(&c, &[n]);
            k.call(vec![operand, tensor(&a, &[n]), output(&mut c, &[n])], rt).unwrap();
            for (x, y) in a.iter().zip(&c) {
                assert!((x.exp() - y).abs() <= x.exp() * 5e-16, "exp({x}) is {y}");
            }
        });
    }
}

#[test]
fn reduction_of_function_results() {
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let a = param(&mut f, "A", &[n, m], DType::Float32);
    let c = param(&mut f, "C", &[n], DType::Float32);
    f.body = stage(&mut f, "C", &[(n, S), (m, R)], |f, v| {
        let (x, old) = (f.load(a, v), f.load(c, &v[..1]));
        let (zero, e) = (f.const_of(3.0, DType::Float32), f.call(Intrin::Exp, &[x]));
        StageWrite { buffer: c, indices: vec![v[0]], init: Some(zero), value: f.add(old, e) }
    });
    assert_eq!(count_extern_calls(&f), 1);
    let k = build(&f);
    for (n, m) in [(0, 3), (1, 0), (3, 1), (5, 511), (2, 512), (3, 1300), (40, 65)] {
        let a = random_floats(n * m, 3);
        let sum = |i: usize| a[i * m..(i + 1) * m].iter().map(|x| f64::from(*x).exp()).sum::<f64>();
        let want: Vec<f32> = (0..n).map(|i| (3.0 + sum(i)) as f32).collect();
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; n];
            k.call(vec![tensor(&a, &[n, m]), output(&mut c, &[n])], rt).unwrap();
            assert_close(&c, &want, 2e-6, "sum of exponentials");
        });
    }
}

#[test]
fn results_of_16_bits() {
    for dtype in [DType::Float16, DType::BFloat16] {
        let (k, calls) = elementwise(DType::Float32, |f, x, _| {
            let e = f.call(Intrin::Sin, &[x]);
            f.cast(e, Ty::scalar(dtype))
        });
        assert_eq!(calls, 2);
        for n in sizes() {
            let a = random_floats(n, 7);
            run_serially_and_on_team(|rt| {
                let (x, y) = (tensor(&a, &[n]), tensor(&a, &[n]));
                if dtype == DType::Float16 {
                    let mut c = vec![f16::default(); n];
                    k.call(vec![x, y, output(&mut c, &[n])], rt).unwrap();
                    let near = |x: f32, y: f16| (x.sin() - y.to_f32()).abs() <= 5e-4;
                    assert!(a.iter().zip(&c).all(|(&x, &y)| near(x, y)), "{n}");
                } else {
                    let mut c = vec![bf16::default(); n];
                    k.call(vec![x, y, output(&mut c, &[n])], rt).unwrap();
                    let near = |x: f32, y: bf16| (x.sin() - y.to_f32()).abs() <= 4e-3;
                    assert!(a.iter().zip(&c).all(|(&x, &y)| near(x, y)), "{n}");
                }
            });
        }
    }
}

#[test]
fn bool_results_and_calls_in_branches() {
    let (k, calls) = elementwise(DType::Float32, |f, x, y| {
        let (e, l) = (f.call(Intrin::Exp, &[x]), f.call(Intrin::Cosh, &[y]));
        f.binary(BinOp::Lt, e, l)
    });
    assert_eq!(calls, 2);
    for n in sizes() {
        let (a, b) = (random_floats(n, 1), random_floats(n, 2));
        let want: Vec<bool> = a.iter().zip(&b).map(|(x, y)| x.exp() < y.cosh()).collect();
        let mut c = vec![false; n];
        k.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
        let wrong = c.iter().zip(&want).filter(|(a, b)| a != b).count();
        assert!(wrong * 1000 <= n, "{wrong} of {n}");
    }
    // A call in a branch that may not be taken is not replaced by a vector math function.
    let (_, calls) = elementwise(DType::Float32, |f, x, y| {
        let (zero, e) = (f.const_of(0.0, DType::Float32), f.call(Intrin::Exp, &[y]));
        let positive = f.binary(BinOp::Lt, zero, x);
        f.call(Intrin::IfThenElse, &[positive, e, zero])
    });
    assert_eq!(calls, 0);
}
