//! Tests transposes, alone and fused with elementwise operations, at sizes around the size of a
//! transpose block.

use half::f16;
use pliant_ir::tir::{Expr, Intrin, PrimFunc};
use pliant_tensor::DType;

use crate::loop_function_harness::*;

const EXTENTS: [usize; 9] = [0, 1, 3, 8, 15, 16, 17, 64, 131];

/// Compiles a function that computes `C[b, i, j] = value(A[b, j, i], B[b, i, j])`.
fn transposing(
    dtype: DType,
    value: impl Fn(&mut PrimFunc, Expr, Expr) -> Expr,
) -> CompiledFunction {
    let mut f = PrimFunc::new();
    let [k, n, m] = ["k", "n", "m"].map(|name| size(&mut f, name));
    let a = param(&mut f, "A", &[k, m, n], dtype);
    let b = param(&mut f, "B", &[k, n, m], dtype);
    let c = param(&mut f, "C", &[k, n, m], dtype);
    f.body = stage(&mut f, "C", &[(k, S), (n, S), (m, S)], |f, v| {
        let (x, y) = (f.load(a, &[v[0], v[2], v[1]]), f.load(b, v));
        let value = value(f, x, y);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    build(&f)
}

/// Runs a compiled transpose at all pairs of extents, and compares its output with that of the elementwise function
/// `expected`. Element `i` of input `A` is `element(i)`, and element `i` of input `B` is `element(i + 7)`.
fn check<T: Elem>(
    k: &CompiledFunction,
    element: impl Fn(usize) -> T,
    expected: impl Fn(T, T) -> T,
) {
    for (n, m) in EXTENTS.into_iter().flat_map(|n| EXTENTS.map(|m| (n, m))) {
        for batch in [1, 3] {
            let all = batch * n * m;
            let (a, b): (Vec<T>, Vec<T>) =
                ((0..all).map(&element).collect(), (0..all).map(|i| element(i + 7)).collect());
            run_serially_and_on_team(|rt| {
                let mut c = vec![T::default(); all];
                let (first, second) = (tensor(&a, &[batch, m, n]), tensor(&b, &[batch, n, m]));
                k.call(vec![first, second, output(&mut c, &[batch, n, m])], rt).unwrap();
                for (at, &got) in c.iter().enumerate() {
                    let (plane, i, j) = (at / (n * m), at / m % n, at % m);
                    let x = a[plane * n * m + j * n + i];
                    assert_eq!(got, expected(x, b[at]), "[{plane}, {i}, {j}] of {n} x {m}");
                }
            });
        }
    }
}

#[test]
fn transposes_of_every_width() {
    check(&transposing(DType::Float32, |_, x, _| x), |i| i as f32, |x, _| x);
    check(&transposing(DType::UInt8, |_, x, _| x), |i| i as u8, |x, _| x);
    check(&transposing(DType::Int64, |_, x, _| x), |i| i as i64, |x, _| x);
    let half = |i: usize| f16::from_f32((i % 1000) as f32);
    check(&transposing(DType::Float16, |_, x, _| x), half, |x, _| x);
}

#[test]
fn transposes_with_arithmetic_and_functions() {
    check(&transposing(DType::Float32, |f, x, y| f.add(x, y)), |i| i as f32, |x, y| x + y);
    let k = transposing(DType::Float32, |f, x, y| {
        let x = f.call(Intrin::Abs, &[x]);
        let e = f.call(Intrin::Exp, &[x]);
        let zero = f.const_of(0.0, DType::Float32);
        let product = f.mul(e, zero);
        f.add(product, y)
    });
    check(&k, |i| (i % 5) as f32, |_, y| y);
    let half = |i: usize| f16::from_f32((i % 100) as f32);
    check(&transposing(DType::Float16, |f, x, y| f.add(x, y)), half, |x, y| {
        f16::from_f32(x.to_f32() + y.to_f32())
    });
}
