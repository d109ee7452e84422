//! Tests loop functions that are built in lowered form, compared with Rust loops.

use crate::loop_function_harness::{SIZES, compile, output, tensor};
use pliant_ir::tir::{BinOp, Expr, ExprData, ForKind, PrimFunc, StmtData};
use pliant_tensor::DType;

/// Builds a function that computes `C[i] = op(A[i], B[i])` for `n` elements.
fn elementwise(dtype: DType, op: BinOp) -> PrimFunc {
    let mut f = PrimFunc::new();
    let n = f.size_var("n");
    let n = f.var_expr(n);
    let a = f.compact_buffer("A", vec![n], dtype);
    let b = f.compact_buffer("B", vec![n], dtype);
    let out = if op.is_predicate() { DType::Bool } else { dtype };
    let c = f.compact_buffer("C", vec![n], out);
    for (name, buf) in [("a", a), ("b", b), ("c", c)] {
        f.add_buffer_param(name, buf);
    }
    let i = f.size_var("i");
    let ie = f.var_expr(i);
    let (x, y) = (f.load(a, &[ie]), f.load(b, &[ie]));
    let value = f.binary(op, x, y);
    let body = f.store(c, &[ie], value);
    let zero = f.int(0);
    f.body = for_loop(&mut f, i, zero, n, body);
    f
}

fn for_loop(
    f: &mut PrimFunc,
    var: pliant_ir::tir::Var,
    min: Expr,
    extent: Expr,
    body: pliant_ir::tir::Stmt,
) -> pliant_ir::tir::Stmt {
    let kind = ForKind::Serial;
    f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations: Vec::new() })
}

#[test]
fn adds_floats_at_every_size() {
    let k = compile(&elementwise(DType::Float32, BinOp::Add)).unwrap();
    for n in SIZES {
        let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let b: Vec<f32> = (0..n).map(|i| 3.0 - i as f32).collect();
        let mut c = vec![0f32; n];
        k.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
        let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        assert_eq!(c, want);
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let k = compile(&elementwise(DType::Float32, BinOp::Add)).unwrap();
    let (a, b, mut c) = ([1f32; 3], [1f32; 4], [0f32; 3]);
    let error = k.run(vec![tensor(&a, &[3]), tensor(&b, &[4]), output(&mut c, &[3])]).unwrap_err();
    assert_eq!(error, "argument 1 ('B'): dim 0 is not n");
    let d = [1f64; 3];
    let error = k.run(vec![tensor(&d, &[3]), tensor(&b, &[4]), output(&mut c, &[3])]).unwrap_err();
    assert_eq!(error, "argument 0 ('A') does not have element type float32");
    let error =
        k.run(vec![tensor(&a, &[1, 3]), tensor(&b, &[4]), output(&mut c, &[3])]).unwrap_err();
    assert_eq!(error, "argument 0 ('A') does not have rank 1");
}

#[test]
fn integer_division_never_traps() {
    for (op, want) in [
        (BinOp::Div, [-3i32, 3, i32::MIN, -2]),
        (BinOp::Mod, [-1, -1, 0, 1]),
        (BinOp::FloorDiv, [-4, 3, i32::MIN, -3]),
        (BinOp::FloorMod, [1, -1, 0, -2]),
    ] {
        let k = compile(&elementwise(DType::Int32, op)).unwrap();
        let (a, b, mut c) = ([-7, -7, i32::MIN, 7], [2, -2, -1, -3], [0; 4]);
        k.run(vec![tensor(&a, &[4]), tensor(&b, &[4]), output(&mut c, &[4])]).unwrap();
        assert_eq!(c, want, "{op:?}");
        let zero = [1, 1, 0, 1];
        let error =
            k.run(vec![tensor(&a, &[4]), tensor(&zero, &[4]), output(&mut c, &[4])]).unwrap_err();
        assert_eq!(error, "integer division by zero");
    }
}

#[test]
fn an_undefined_size_is_unsupported() {
    let mut f = elementwise(DType::Float32, BinOp::Add);
    let m = f.size_var("m");
    let m = f.var_expr(m);
    let zero = f.int(0);
    let i = f.size_var("j");
    let body = f.add_stmt(StmtData::Seq(Vec::new()));
    f.body = for_loop(&mut f, i, zero, m, body);
    let error = compile(&f).err().unwrap().to_string();
    assert!(error.contains("'m' is not defined"), "{error}");
    assert!(matches!(f.expr(m), ExprData::Var(_)));
}
