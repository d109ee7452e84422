//! Tests index arithmetic that overflows 64 or 32 bits. The result must be an error or correct, and no access may be
//! out of bounds.

use crate::loop_function_harness::*;
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData, Ty, VarTy,
};
use pliant_tensor::DType;

const LENGTH: usize = 8;
/// Integers that are extreme as indices: 2**40, -2**40, and values that overflow 64 bits if doubled or incremented.
const EXTREME_VALUES: [i64; 10] = [
    1 << 40,
    -(1 << 40),
    i64::MAX,
    i64::MIN,
    1 << 62,
    -(1 << 62),
    i64::MAX - 3,
    (1 << 62) + 1,
    i64::MIN + 1,
    1 << 41,
];

/// A function under construction with the parameters `A` (a float32 buffer of 8 elements), `I` (an int64 buffer of one
/// element) and the scalar `x`.
struct Program {
    f: PrimFunc,
    a: Buffer,
    x: Expr,
    /// The only element of `I`, as an expression.
    loaded: Expr,
}

/// Compiles the function with the body that `make` returns.
fn program(make: impl FnOnce(&mut Program) -> Stmt) -> CompiledFunction {
    let mut f = PrimFunc::new();
    let (one, eight) = (f.int(1), f.int(LENGTH as i64));
    let a = param(&mut f, "A", &[eight], DType::Float32);
    let i = param(&mut f, "I", &[one], DType::Int64);
    let x = f.size_var("x");
    f.params.push(x);
    let x = f.var_expr(x);
    let zero = f.int(0);
    let loaded = f.load(i, &[zero]);
    let mut p = Program { f, a, x, loaded };
    p.f.body = make(&mut p);
    build(&p.f)
}

/// Runs a function with the scalar `x` and with `loaded` as the element of `I`. Returns the elements of `A`.
fn run(k: &CompiledFunction, x: i64, loaded: i64) -> Result<Vec<f32>, String> {
    let mut a = vec![0f32; LENGTH];
    k.run(vec![output(&mut a, &[LENGTH]), tensor(&[loaded], &[1]), int(x)])?;
    Ok(a)
}

/// Runs a function with all pairs of extreme values for the scalar `x` and the element of `I`, and
/// asserts that it writes nothing to `A`.
fn check_extreme_values(k: &CompiledFunction) {
    for v in EXTREME_VALUES {
        if let Ok(a) = run(k, v, v) {
            assert_eq!(a, [0.0; LENGTH], "{v}");
        }
        // Only the loaded number is extreme; `x` is at its limit.
        if let Ok(a) = run(k, 1 << 40, v) {
            assert_eq!(a, [0.0; LENGTH], "{v}");
        }
    }
}

/// Returns the statement `A[index] = 1`, for the buffer `A` of the function.
fn set(p: &mut Program, index: Expr) -> Stmt {
    let one = p.f.const_of(1.0, DType::Float32);
    p.f.store(p.a, &[index], one)
}

fn when(p: &mut Program, condition: Expr, then: Stmt) -> Stmt {
    p.f.add_stmt(StmtData::If(condition, then, None))
}

fn le(p: &mut Program, a: Expr, b: i64) -> Expr {
    let b = p.f.int(b);
    p.f.binary(BinOp::Le, a, b)
}

#[test]
fn conditions_that_wrap_do_not_replace_checks() {
    // if 0 <= x and x + 1 <= 5: A[x] = 1
    let k = program(|p| {
        let (zero, one) = (p.f.int(0), p.f.int(1));
        let next = p.f.add(p.x, one);
        let (low, high) = (p.f.binary(BinOp::Le, zero, p.x), le(p, next, 5));
        let both = p.f.binary(BinOp::And, low, high);
        let s = set(p, p.x);
        when(p, both, s)
    });
    assert_eq!(run(&k, 4, 0).unwrap()[4], 1.0);
    assert_eq!(
        run(&k, i64::MAX, 0).unwrap_err(),
        "argument 2 ('x') is not in the range -2**40 to 2**40"
    );
    check_extreme_values(&k);
    // The same with a number from memory, which has no limits. So the access is checked.
    let k = program(|p| {
        let (zero, one) = (p.f.int(0), p.f.int(1));
        let y = p.f.size_var("y");
        let ye = p.f.var_expr(y);
        let next = p.f.add(ye, one);
        let (low, high) = (p.f.binary(BinOp::Le, zero, ye), le(p, next, 5));
        let both = p.f.binary(BinOp::And, low, high);
        let s = set(p, ye);
        let s = when(p, both, s);
        p.f.add_stmt(StmtData::Let(y, p.loaded, s))
    });
    assert_eq!(run(&k, 0, 4).unwrap()[4], 1.0);
    let error = run(&k, 0, i64::MAX).unwrap_err();
    assert_eq!(error, "index out of bounds: dim 0 of 'A' has 8 elements");
    check_extreme_values(&k);
}

#[test]
fn conditions_on_wrapped_let_values_do_not_replace_checks() {
    // if 0 <= y * 2 and y * 2 <= 4: A[y]; z = y + 1; if 0 <= z and z <= 5: A[y]
    for scale in [true, false] {
        let k = program(|p| {
            let (zero, two, one) = (p.f.int(0), p.f.int(2), p.f.int(1));
            let (y, z) = (p.f.size_var("y"), p.f.size_var("z"));
            let (ye, ze) = (p.f.var_expr(y), p.f.var_expr(z));
            let value = if scale { p.f.mul(ye, two) } else { p.f.add(ye, one) };
            let (low, high) = (p.f.binary(BinOp::Le, zero, ze), le(p, ze, 4));
            let both = p.f.binary(BinOp::And, low, high);
            let s = set(p, ye);
            let s = when(p, both, s);
            let s = p.f.add_stmt(StmtData::Let(z, value, s));
            p.f.add_stmt(StmtData::Let(y, p.loaded, s))
        });
        assert_eq!(run(&k, 0, 2).unwrap()[2], 1.0);
        for v in [1 << 62, -(1 << 62), i64::MIN, i64::MAX] {
            let _ = run(&k, 0, v);
        }
        check_extreme_values(&k);
    }
}

#[test]
fn selects_with_wrapped_conditions_are_checked() {
    // A[0] = Select(y + 1 <= 5, A[y], 0)
    for lazy in [true, false] {
        let k = program(|p| {
            let (zero, one) = (p.f.int(0), p.f.int(1));
            let y = p.f.size_var("y");
            let ye = p.f.var_expr(y);
            let next = p.f.add(ye, one);
            let (low, high) = (p.f.binary(BinOp::Le, zero, ye), le(p, next, 5));
            let both = p.f.binary(BinOp::And, low, high);
            let (element, other) = (p.f.load(p.a, &[ye]), p.f.const_of(0.0, DType::Float32));
            let value = if lazy {
                p.f.call(Intrin::IfThenElse, &[both, element, other])
            } else {
                p.f.add_expr(ExprData::Select(both, element, other))
            };
            let s = p.f.store(p.a, &[zero], value);
            p.f.add_stmt(StmtData::Let(y, p.loaded, s))
        });
        run(&k, 0, 3).unwrap();
        run(&k, 0, 100).unwrap();
        check_extreme_values(&k);
    }
}

#[test]
fn loops_whose_end_wraps_are_errors() {
    for kind in [ForKind::Serial, ForKind::Parallel] {
        for loaded in [true, false] {
            // for i in range(y, y + 4): A[i] = 1
            let k = program(|p| {
                let four = p.f.int(4);
                let i = p.f.size_var("i");
                let ie = p.f.var_expr(i);
                let body = set(p, ie);
                let (y, x) = (p.f.size_var("y"), p.x);
                let min = p.f.var_expr(y);
                let value = if loaded { p.loaded } else { x };
                let annotations = Vec::new();
                let extent = four;
                let s = StmtData::For { var: i, min, extent, kind, body, annotations };
                let s = p.f.add_stmt(s);
                p.f.add_stmt(StmtData::Let(y, value, s))
            });
            assert_eq!(run(&k, 2, 2).unwrap()[2..6], [1.0; 4]);
            run(&k, 6, 6).unwrap_err();
            for v in EXTREME_VALUES {
                run(&k, v, v).unwrap_err();
            }
        }
    }
}

#[test]
fn allocations_whose_size_wraps_are_errors() {
    // T of (y * 4) elements; T[5] = 1 (and A[0] = T[5]).
    let k = program(|p| {
        let (zero, four, five) = (p.f.int(0), p.f.int(4), p.f.int(5));
        let y = p.f.size_var("y");
        let ye = p.f.var_expr(y);
        let dim = p.f.mul(ye, four);
        let t = p.f.compact_buffer("T", vec![dim], DType::Float32);
        let one = p.f.const_of(1.0, DType::Float32);
        let (s, back) = (p.f.store(t, &[five], one), p.f.load(t, &[five]));
        let back = p.f.store(p.a, &[zero], back);
        let i = p.f.size_var("i");
        let ie = p.f.var_expr(i);
        let body = p.f.store(t, &[ie], one);
        let fill = p.f.add_stmt(StmtData::For {
            var: i,
            min: zero,
            extent: dim,
            kind: ForKind::Serial,
            body,
            annotations: Vec::new(),
        });
        let body = p.f.seq(vec![fill, s, back]);
        let s = p.f.add_stmt(StmtData::Alloc(t, body));
        p.f.add_stmt(StmtData::Let(y, p.loaded, s))
    });
    assert_eq!(run(&k, 0, 2).unwrap()[0], 1.0);
    assert!(run(&k, 0, 1).unwrap_err().starts_with("index out of bounds"));
    for v in [1 << 62, (1 << 62) + 1, i64::MAX, i64::MIN] {
        let error = run(&k, 0, v).unwrap_err();
        assert_eq!(error, "the size of the buffer 'T' overflows 64 bits");
    }
    let error = run(&k, 0, 1 << 40).unwrap_err();
    assert_eq!(error, "a dim of the buffer 'T' is larger than 2**40");
}

#[test]
fn sizes_of_allocations_must_not_depend_on_memory() {
    let mut f = PrimFunc::new();
    let (zero, one) = (f.int(0), f.int(1));
    let i = param(&mut f, "I", &[one], DType::Int64);
    let dim = f.load(i, &[zero]);
    let t = f.compact_buffer("T", vec![dim], DType::Float32);
    let value = f.const_of(1.0, DType::Float32);
    let s = f.store(t, &[zero], value);
    f.body = f.add_stmt(StmtData::Alloc(t, s));
    let error = pliant_tir::lower(&f).unwrap_err().to_string();
    assert!(error.contains("the size I[0] of the buffer 'T' is read from memory"), "{error}");
}

#[test]
fn dims_of_parameters_that_wrap_are_errors() {
    // B: (n * m * k) with n, m, k scalars whose product wraps to 0; B[i] = 1 for i in range(n * m * k).
    let mut f = PrimFunc::new();
    let sizes = ["n", "m", "k"].map(|s| f.size_var(s));
    let [n, m, k] = sizes.map(|v| f.var_expr(v));
    let nm = f.mul(n, m);
    let all = f.mul(nm, k);
    let b = param(&mut f, "B", &[all], DType::Float32);
    f.params.extend(sizes);
    let i = f.size_var("i");
    let ie = f.var_expr(i);
    let value = f.const_of(1.0, DType::Float32);
    let body = f.store(b, &[ie], value);
    let zero = f.int(0);
    f.body = f.add_stmt(StmtData::For {
        var: i,
        min: zero,
        extent: n,
        kind: ForKind::Serial,
        body,
        annotations: Vec::new(),
    });
    let kernel = build(&f);
    let mut b = [0f32; 24];
    kernel.run(vec![output(&mut b, &[24]), int(2), int(3), int(4)]).unwrap();
    assert_eq!(b[..3], [1.0, 1.0, 0.0]);
    let big = 1 << 30;
    let mut none: [f32; 0] = [];
    let error =
        kernel.run(vec![output(&mut none, &[0]), int(big), int(big), int(big)]).unwrap_err();
    assert_eq!(error, "argument 0 ('B'): dim 0 is not n * m * k");
}

#[test]
fn int32_arithmetic_wraps_at_32_bits() {
    // j = int32(y); if 0 <= j and j + 1 <= 5: A[j] = 1, in 32 bits.
    let k = program(|p| {
        let i32 = Ty::scalar(DType::Int32);
        let j = p.f.add_var("j", VarTy::Value(i32));
        let je = p.f.var_expr(j);
        let [zero, one, five] = [0, 1, 5].map(|v| p.f.add_expr(ExprData::Int(v, i32)));
        let next = p.f.add(je, one);
        let (low, high) = (p.f.binary(BinOp::Le, zero, je), p.f.binary(BinOp::Le, next, five));
        let both = p.f.binary(BinOp::And, low, high);
        let s = set(p, je);
        let s = when(p, both, s);
        let value = p.f.cast(p.loaded, i32);
        p.f.add_stmt(StmtData::Let(j, value, s))
    });
    assert_eq!(run(&k, 0, 4).unwrap()[4], 1.0);
    let error = run(&k, 0, i64::from(i32::MAX)).unwrap_err();
    assert_eq!(error, "index out of bounds: dim 0 of 'A' has 8 elements");
}

#[test]
fn strides_are_applied_once_and_rejected_for_allocations() {
    let mut f = PrimFunc::new();
    let (n, s) = (size(&mut f, "n"), size(&mut f, "s"));
    let b = f.compact_buffer("B", vec![n], DType::Float32);
    let mut data = f.buffer(b).clone();
    data.strides = vec![s];
    let b = f.add_buffer(data.clone());
    f.add_buffer_param("var_B", b);
    let i = f.size_var("i");
    let ie = f.var_expr(i);
    let value = f.const_of(1.0, DType::Float32);
    let body = f.store(b, &[ie], value);
    let min = f.int(0);
    let annotations = Vec::new();
    let kind = ForKind::Serial;
    f.body = f.add_stmt(StmtData::For { var: i, min, extent: n, kind, body, annotations });
    let lowered = pliant_tir::lower(&f).unwrap();
    for k in [build(&f), build(&lowered)] {
        let mut out = [0f32; 5];
        k.run(vec![output(&mut out, &[5])]).unwrap();
        assert_eq!(out, [1.0; 5]);
    }
    // Strides of an allocated buffer.
    let mut f = PrimFunc::new();
    let (four, far, three) = (f.int(4), f.int(100_000_000), f.int(3));
    data.shape = vec![four];
    data.strides = vec![far];
    let b = f.add_buffer(data);
    let value = f.const_of(1.0, DType::Float32);
    let s = f.store(b, &[three], value);
    f.body = f.add_stmt(StmtData::Alloc(b, s));
    let error = pliant_tir::lower(&f).unwrap_err().to_string();
    assert!(error.contains("the allocated buffer 'B' has strides or an offset"), "{error}");
    let errors = pliant_ir::tir::verify::verify_prim_func(&f);
    assert!(errors.iter().any(|d| format!("{d:?}").contains("PL0303")), "{errors:?}");
}
