//! Tests control flow, checks, allocation, cancellation and errors of compiled loop functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::loop_function_harness::*;
use pliant_ir::tir::{
    BinOp, BufferData, ExprData, ForKind, Intrin, NewOperand, PrimFunc, Scope, Stmt, StmtData, Ty,
};
use pliant_tensor::DType;

#[test]
fn while_if_and_let() {
    // C[i] = the number of Collatz steps from A[i].
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], DType::Int64);
    let c = param(&mut f, "C", &[n], DType::Int64);
    let one = f.int(1);
    let x = f.add_buffer(BufferData {
        name: "x".into(),
        dtype: DType::Int64,
        shape: vec![one],
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Local,
    });
    let (zero, two, three) = (f.int(0), f.int(2), f.int(3));
    let i = f.size_var("i");
    let ie = f.var_expr(i);
    let start = f.load(a, &[ie]);
    let s1 = f.store(x, &[zero], start);
    let s2 = f.store(c, &[ie], zero);
    let cur = f.load(x, &[zero]);
    let cond = f.binary(BinOp::Gt, cur, one);
    let half = f.size_var("half");
    let half_e = f.var_expr(half);
    let rest = f.binary(BinOp::FloorMod, cur, two);
    let even = f.binary(BinOp::Eq, rest, zero);
    let then = f.store(x, &[zero], half_e);
    let half_value = f.binary(BinOp::FloorDiv, cur, two);
    let then = f.add_stmt(StmtData::Let(half, half_value, then));
    let odd = f.mul(cur, three);
    let odd = f.add(odd, one);
    let other = f.store(x, &[zero], odd);
    let step = f.add_stmt(StmtData::If(even, then, Some(other)));
    let count = f.load(c, &[ie]);
    let count = f.add(count, one);
    let count = f.store(c, &[ie], count);
    let body = f.seq(vec![step, count]);
    let walk = f.add_stmt(StmtData::While(cond, body));
    let body = f.seq(vec![s1, s2, walk]);
    let body = f.add_stmt(StmtData::Alloc(x, body));
    f.body = f.add_stmt(StmtData::For {
        var: i,
        min: zero,
        extent: n,
        kind: ForKind::Parallel,
        body,
        annotations: Vec::new(),
    });
    let k = build(&f);
    let steps = |mut x: i64| {
        let mut n = 0;
        while x > 1 {
            x = if x % 2 == 0 { x / 2 } else { 3 * x + 1 };
            n += 1;
        }
        n
    };
    for n in SIZES {
        let a: Vec<i64> = (0..n as i64).collect();
        run_serially_and_on_team(|rt| {
            let mut c = vec![-1i64; n];
            k.call(vec![tensor(&a, &[n]), output(&mut c, &[n])], rt).unwrap();
            assert_eq!(c, a.iter().map(|&x| steps(x)).collect::<Vec<_>>());
        });
    }
}

/// Wraps a statement in a serial loop.
fn serial(f: &mut PrimFunc, extent: i64, body: Stmt) -> Stmt {
    let (var, min, extent) = (f.size_var("i"), f.int(0), f.int(extent));
    let (kind, annotations) = (ForKind::Serial, Vec::new());
    f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations })
}

/// Builds an endless or very long loop. Kinds: 0 is `while True`, 1 is a serial loop of 2^62 iterations, 2 and 3 are
/// nests of two and three loops that accumulate in a register, 4 is a nest of twenty short loops.
fn long_running(kind: usize) -> PrimFunc {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], DType::Float32);
    let (zero, one) = (f.int(0), f.int(1));
    let x = f.load(a, &[zero]);
    let body = f.store(a, &[zero], x);
    if kind == 0 {
        let yes = f.add_expr(ExprData::Int(1, Ty::BOOL));
        f.body = f.add_stmt(StmtData::While(yes, body));
        return f;
    }
    if kind == 1 {
        f.body = serial(&mut f, 1 << 62, body);
        return f;
    }
    let sum = f.add_buffer(BufferData {
        name: "sum".into(),
        dtype: DType::Float32,
        shape: vec![one],
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Local,
    });
    let old = f.load(sum, &[zero]);
    let new = f.add(old, x);
    let mut nest = f.store(sum, &[zero], new);
    if kind == 3 {
        nest = serial(&mut f, 8, nest);
    }
    if kind == 4 {
        nest = (0..20).fold(nest, |nest, _| serial(&mut f, 16, nest));
    } else {
        nest = serial(&mut f, 1 << 62, nest);
    }
    nest = serial(&mut f, 2, nest);
    let result = f.store(a, &[zero], old);
    let both = f.seq(vec![nest, result]);
    f.body = f.add_stmt(StmtData::Alloc(sum, both));
    f
}

#[test]
fn long_running_loops_can_be_cancelled() {
    for kind in 0..5 {
        let k = build(&long_running(kind));
        let flag = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(30));
                flag.store(true, Ordering::Relaxed);
            });
            let mut a = [1f32];
            let error = k.call(vec![output(&mut a, &[1])], &runtime(None, &flag)).unwrap_err();
            assert_eq!(error, format!("status {}", pliant_exec::abi::STATUS_CANCELLED));
        });
    }
}

#[test]
fn asserts_and_conditional_loads() {
    // C[i] = A[i - 1] if i > 0 else 0, and A[0] must be positive.
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], DType::Float32);
    let c = param(&mut f, "C", &[n], DType::Float32);
    let (zero, one) = (f.int(0), f.int(1));
    let s = stage(&mut f, "C", &[(n, S)], |f, v| {
        let i = f.binary(BinOp::Sub, v[0], one);
        let x = f.load(a, &[i]);
        let pos = f.binary(BinOp::Gt, v[0], zero);
        let fz = f.const_of(0.0, DType::Float32);
        // A select reads both sides, so CheckBounds must make it lazy.
        let value = f.add_expr(ExprData::Select(pos, x, fz));
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    let first = f.load(a, &[zero]);
    let fz = f.const_of(0.0, DType::Float32);
    let good = f.binary(BinOp::Gt, first, fz);
    f.body = f.add_stmt(StmtData::Assert(good, Arc::from("A must start above 0"), s));
    let k = build(&f);
    let a = [1f32, 2.0, 3.0];
    let mut c = [9f32; 3];
    k.run(vec![tensor(&a, &[3]), output(&mut c, &[3])]).unwrap();
    assert_eq!(c, [0.0, 1.0, 2.0]);
    let a = [-1f32, 2.0, 3.0];
    let error = k.run(vec![tensor(&a, &[3]), output(&mut c, &[3])]).unwrap_err();
    assert_eq!(error, "A must start above 0");
    // The condition of the assertion reads A[0], which an empty A does not have.
    let empty: [f32; 0] = [];
    let mut none: [f32; 0] = [];
    let error = k.run(vec![tensor(&empty, &[0]), output(&mut none, &[0])]).unwrap_err();
    assert_eq!(error, "index out of bounds: dim 0 of 'A' has n elements");
}

#[test]
fn out_of_bounds_stores_are_errors() {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let c = param(&mut f, "C", &[n], DType::Float32);
    let m = f.size_var("m");
    f.params.push(m);
    let m = f.var_expr(m);
    f.body = stage(&mut f, "C", &[(m, S)], |f, v| {
        let value = f.const_of(1.5, DType::Float32);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    let k = build(&f);
    let mut c = vec![0f32; 40];
    k.run(vec![output(&mut c, &[40]), int(40)]).unwrap();
    assert!(c.iter().all(|&x| x == 1.5));
    k.run(vec![output(&mut c, &[40]), int(-3)]).unwrap();
    let error = k.run(vec![output(&mut c, &[40]), int(41)]).unwrap_err();
    assert_eq!(error, "index out of bounds: dim 0 of 'C' has n elements");
}

#[test]
fn workspaces_of_dynamic_size() {
    // T = exp(A), which is not inlined, because it is read backwards; C[i] = T[n - 1 - i] + T[i].
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], DType::Float32);
    let c = param(&mut f, "C", &[n], DType::Float32);
    let t = f.compact_buffer("T", vec![n], DType::Float32);
    let one = f.int(1);
    let s1 = stage(&mut f, "T", &[(n, S)], |f, v| {
        let x = f.load(a, v);
        let value = f.call(Intrin::Exp, &[x]);
        StageWrite { buffer: t, indices: v.to_vec(), init: None, value }
    });
    let s2 = stage(&mut f, "C", &[(n, S)], |f, v| {
        let last = f.binary(BinOp::Sub, n, one);
        let back = f.binary(BinOp::Sub, last, v[0]);
        let (x, y) = (f.load(t, &[back]), f.load(t, v));
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value: f.add(x, y) }
    });
    root(&mut f, vec![t], vec![s1, s2]);
    let k = build(&f);
    for n in SIZES {
        let a = random_floats(n, 4);
        run_serially_and_on_team(|rt| {
            let mut c = vec![0f32; n];
            k.call(vec![tensor(&a, &[n]), output(&mut c, &[n])], rt).unwrap();
            let want: Vec<f32> = (0..n).map(|i| a[n - 1 - i].exp() + a[i].exp()).collect();
            assert_close(&c, &want, 1e-6, "mirror");
        });
    }
}

#[test]
fn a_size_that_overflows_is_an_error() {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let c = param(&mut f, "C", &[n], DType::Float32);
    let m = f.size_var("m");
    f.params.push(m);
    let m = f.var_expr(m);
    let t = f.compact_buffer("T", vec![m, m], DType::Float32);
    let zero = f.int(0);
    let one = f.const_of(1.0, DType::Float32);
    let x = f.store(t, &[zero, zero], one);
    let y = f.load(t, &[zero, zero]);
    let y = f.store(c, &[zero], y);
    let body = f.seq(vec![x, y]);
    f.body = f.add_stmt(StmtData::Alloc(t, body));
    let k = build(&f);
    let mut c = [0f32];
    k.run(vec![output(&mut c, &[1]), int(7)]).unwrap();
    assert_eq!(c, [1.0]);
    let error = k.run(vec![output(&mut c, &[1]), int(1 << 40)]).unwrap_err();
    assert_eq!(error, "the size of the buffer 'T' overflows 64 bits");
    let error = k.run(vec![output(&mut c, &[1]), int(-1)]).unwrap_err();
    assert_eq!(error, "a dim of the buffer 'T' is negative");
    let error = k.run(vec![output(&mut c, &[1]), int(1 << 29)]).unwrap_err();
    assert_eq!(error, format!("status {}", pliant_exec::abi::STATUS_NO_MEMORY));
}

#[test]
fn scalar_parameters_of_every_kind() {
    let mut f = PrimFunc::new();
    let one = f.int(1);
    let c = param(&mut f, "C", &[one], DType::Float64);
    let kinds = [
        DType::Bool,
        DType::Int8,
        DType::UInt16,
        DType::Int64,
        DType::Float32,
        DType::Float16,
        DType::Float64,
    ];
    let zero = f.int(0);
    let mut sum = f.const_of(0.0, DType::Float64);
    for (i, d) in kinds.into_iter().enumerate() {
        let v = f.add_var(format!("p{i}"), pliant_ir::tir::VarTy::Value(d.into()));
        f.params.push(v);
        let v = f.var_expr(v);
        let v = f.cast(v, Ty::scalar(DType::Float64));
        sum = f.add(sum, v);
    }
    f.body = f.store(c, &[zero], sum);
    let k = build(&f);
    let mut c = [0f64];
    let args = vec![
        output(&mut c, &[1]),
        int(1),
        int(-5),
        int(60_000),
        int(1 << 40),
        float(0.5),
        float(0.25),
        float(0.125),
    ];
    k.run(args).unwrap();
    assert_eq!(c, [1.0 - 5.0 + 60_000.0 + (1u64 << 40) as f64 + 0.875]);
}

#[test]
fn deep_expressions_do_not_exhaust_the_stack() {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], DType::Float32);
    let c = param(&mut f, "C", &[n], DType::Float32);
    f.body = stage(&mut f, "C", &[(n, S)], |f, v| {
        let x = f.load(a, v);
        let mut value = x;
        for i in 0..1500 {
            value = if i % 2 == 0 { f.add(value, x) } else { f.binary(BinOp::Sub, value, x) };
        }
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    let k = build(&f);
    let (a, mut c) = (random_floats(100, 1), vec![0f32; 100]);
    k.run(vec![tensor(&a, &[100]), output(&mut c, &[100])]).unwrap();
    assert_close(&c, &a, 1e-3, "deep");
}

/// Builds a loop function that calls the kernel `matmul`. Its left operand A has `rows` rows, which start `row_stride` elements
/// apart.
fn direct_matmul(rows: i64, row_stride: i64) -> PrimFunc {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n, n], DType::Float32);
    let c = param(&mut f, "C", &[n, n], DType::Float32);
    let (zero, one) = (f.int(0), f.int(1));
    let (m, stride) = (f.int(rows), f.int(row_stride));
    let strides = vec![zero, stride, one];
    let view = |buffer, dims: [pliant_ir::tir::Expr; 3]| {
        let (dims, strides) = (dims.to_vec(), strides.clone());
        Some(NewOperand::View { buffer, offset: zero, dims, strides })
    };
    let operands = [view(a, [one, m, n]), view(a, [one, n, n]), view(c, [one, m, n])];
    let call = f.call_kernel(&pliant_kernel_api::kernels::matmul::KERNEL, &operands, &[zero]);
    f.body = f.add_stmt(StmtData::Evaluate(call));
    f
}

#[test]
fn direct_kernel_calls_with_out_of_bounds_views_are_errors() {
    let a = [1f32, 2.0, 3.0, 4.0];
    let mut c = [0f32; 4];
    let k = build(&direct_matmul(2, 2));
    k.run(vec![tensor(&a, &[2, 2]), output(&mut c, &[2, 2])]).unwrap();
    assert_eq!(c, [7.0, 10.0, 15.0, 22.0]);
    for (rows, stride) in [(3, 2), (2, 3), (2, -2), (-1, 2), (1 << 40, 1 << 40)] {
        let k = build(&direct_matmul(rows, stride));
        let error = k.run(vec![tensor(&a, &[2, 2]), output(&mut c, &[2, 2])]).unwrap_err();
        assert_eq!(error, format!("status {}", pliant_exec::abi::STATUS_BAD_ARGUMENTS));
    }
}

#[test]
fn extern_calls_reject_integers_as_addresses_and_unlinked_functions() {
    let compile_call = |name: &str, args: &[i64]| {
        let mut f = PrimFunc::new();
        let name = f.add_expr(ExprData::Str(name.into()));
        let mut all = vec![name];
        all.extend(args.iter().map(|&a| f.int(a)));
        let call = f.add_expr(ExprData::Call(Intrin::CallExtern, all.into(), Ty::I64));
        f.body = f.add_stmt(StmtData::Evaluate(call));
        let lowered = pliant_tir::lower(&f).unwrap();
        compile(&lowered).map(drop).unwrap_err().to_string()
    };
    let name = "pliant_vec_exp_f32";
    let error = compile_call(name, &[4096, 4096, 1]);
    let want = format!(
        "argument 0 of the function '{name}' must be an address; pass T.address_of of an element"
    );
    assert!(error.contains(&want), "{error}");
    for (name, args) in [("pliant_check_tensor", &[4096, 1, 0, 0][..]), ("system", &[0])] {
        let error = compile_call(name, args);
        let want = format!(
            "the function '{name}' called by T.call_extern is not linked; register it in the Rust program with \
             pliant::register_symbol"
        );
        assert!(error.contains(&want), "{error}");
    }
}

#[test]
fn many_allocations_and_deep_nests_do_not_exhaust_the_stack() {
    let mut f = PrimFunc::new();
    let one = f.int(1);
    let c = param(&mut f, "C", &[one], DType::Float32);
    let (zero, dim) = (f.int(0), f.int(4000));
    let value = f.const_of(1.0, DType::Float32);
    let mut body = f.store(c, &[zero], value);
    for i in 0..300 {
        let t = f.compact_buffer(format!("T{i}"), vec![dim], DType::Float32);
        let address = f.store(t, &[zero], value);
        let read = f.load(t, &[zero]);
        let read = f.store(c, &[zero], read);
        let seq = f.add_stmt(StmtData::Seq(vec![address, read, body]));
        body = f.add_stmt(StmtData::Alloc(t, seq));
    }
    f.body = body;
    let k = build(&f);
    let mut c = [0f32];
    k.run(vec![output(&mut c, &[1])]).unwrap();
    assert_eq!(c, [1.0]);
}
