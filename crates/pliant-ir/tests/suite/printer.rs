//! Tests the printer of graph functions and loop functions.

use crate::test_op_registry::{TestOps, matmul};
use pliant_ir::op::{CALL_TIR, NoOps, Op};
use pliant_ir::print::{PrintOptions, print_function, print_module, print_prim_func};
use pliant_ir::relax::{Callee, FunctionBuilder, TypeData};
use pliant_ir::tir::{self, BinOp, ForKind, PrimFunc, StmtData, Ty, VarTy};
use pliant_ir::{AttrValue, Attrs, DType, IRModule};
use pliant_tensor::Tensor;

fn plain() -> PrintOptions {
    PrintOptions { header: false, ..PrintOptions::default() }
}

const MATMUL: &str = r#"@T.prim_func(private=True)
def matmul(var_A: T.handle, var_B: T.handle, var_C: T.handle):
    T.func_attr({"tir.noalias": True})
    m = T.int64()
    n = T.int64()
    A = T.match_buffer(var_A, (m, 8), "float32")
    B = T.match_buffer(var_B, (8, n), "float32")
    C = T.match_buffer(var_C, (m, n), "float32")
    for i, j, k in T.grid(m, n, 8):
        with T.block("matmul"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0.0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
"#;

#[test]
fn a_reduction_block_is_printed_as_script() {
    assert_eq!(print_prim_func("matmul", &matmul(), &plain()), MATMUL);
}

#[test]
fn lowered_loop_statements_are_printed_as_script() {
    let mut f = PrimFunc::new();
    let n = f.add_var("n", VarTy::Value(Ty::I64));
    f.params.push(n);
    let n = f.var_expr(n);
    let four = f.int(4);
    let a = f.compact_buffer("A", vec![four], DType::Int32);
    f.add_buffer_param("A_handle", a);
    let (i1, i2) = (f.size_var("i"), f.size_var("i"));
    let (e1, e2) = (f.var_expr(i1), f.var_expr(i2));
    let c = f.add_expr(tir::ExprData::Int(3, Ty::scalar(DType::Int32)));
    let s1 = f.store(a, &[e1], c);
    let one = f.int(1);
    let minus = f.binary(BinOp::Sub, n, one);
    let body = |f: &mut PrimFunc, var, min, extent, kind, body| {
        f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations: vec![] })
    };
    let l1 = body(&mut f, i1, one, minus, ForKind::Serial, s1);
    let idx = f.binary(BinOp::FloorMod, e2, four);
    let load = f.load(a, &[idx]);
    let twice = f.add(load, load);
    let neg = f.int(-1);
    let lo = f.binary(BinOp::Max, e2, neg);
    let paren = f.binary(BinOp::Sub, lo, minus);
    let x = f.size_var("x");
    let xe = f.var_expr(x);
    let lt = f.binary(BinOp::Lt, xe, n);
    let s2 = f.store(a, &[e2], twice);
    let guarded = f.add_stmt(StmtData::If(lt, s2, None));
    let tmp = f.compact_buffer("A", vec![n], DType::Float32);
    f.buffer_mut(tmp).scope = tir::Scope::Local;
    let alloc = f.add_stmt(StmtData::Alloc(tmp, guarded));
    let let_ = f.add_stmt(StmtData::Let(x, paren, alloc));
    let l2 = body(&mut f, i2, n, n, ForKind::Parallel, let_);
    f.body = f.seq(vec![l1, l2]);
    let text = print_prim_func("f", &f, &plain());
    let expected = r#"@T.prim_func
def f(n: T.int64, A: T.Buffer((4,), "int32")):
    for i in range(1, n):
        A[i] = T.int32(3)
    for i in T.parallel(n, n + n):
        x: T.int64 = T.max(i, -1) - (n - 1)
        A1 = T.alloc_buffer((n,), "float32", scope="local")
        if x < n:
            A[i] = A[i % 4] + A[i % 4]
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_module_with_functions_of_both_levels_is_printed() {
    let ops = NoOps;
    let mut b = FunctionBuilder::new(&ops);
    let (m, n, k) = {
        let f = b.func_mut();
        (f.fresh_sym("m"), f.fresh_sym("n"), f.fresh_sym("k"))
    };
    let f = b.func_mut();
    let (m, n, k) = (f.syms.var(m), f.syms.var(n), f.syms.var(k));
    let eight = f.syms.int(8);
    let x_ty = f.intern(TypeData::tensor(vec![m, eight], DType::Float32));
    let w_ty = f.intern(TypeData::tensor(vec![eight, n], DType::Float32));
    let (x, w) = (b.param("x", x_ty), b.param("w", w_ty));
    b.begin_dataflow().unwrap();
    let f = b.func_mut();
    let (x, w) = (f.var_expr(x), f.var_expr(w));
    let y_ty = f.intern(TypeData::tensor(vec![m, n], DType::Float32));
    let any = f.intern(TypeData::Any);
    let callee = f.global("matmul", any);
    let args = f.tuple(&[x, w]);
    let call = f.call(Callee::Op(CALL_TIR), &[callee, args], Attrs::default(), &[y_ty], y_ty);
    let y = b.emit(call);
    let f = b.func_mut();
    let ye = f.var_expr(y);
    let attrs =
        Attrs::default().with("axis", AttrValue::Int(-1)).with("keepdims", AttrValue::Bool(true));
    let call = f.call(Callee::Op(Op::new("relax.nn.softmax")), &[ye], attrs, &[], y_ty);
    let z = b.emit_output(call);
    b.end_dataflow();
    let f = b.func_mut();
    let one = f.syms.int(1);
    let sum = f.syms.add(k, one);
    let dims = vec![k, sum];
    let cast = f.intern(TypeData::tensor(dims, DType::Float32));
    let ze = f.var_expr(z);
    let c = b.match_cast(ze, cast, "lv");
    let f = b.func_mut();
    let big = f.constant(Tensor::zeros(&[600], DType::Float32).unwrap());
    let small = f.constant(Tensor::scalar(2i64).unwrap());
    let ce = f.var_expr(c);
    let packed = f.extern_func("vm.print");
    let call = b.call_func(packed, &[ce, big, small], &[any], any);
    b.emit(call);
    let mut func = b.finish(ce, None, false);
    func.attrs.insert("relax.force_pure".into(), AttrValue::Bool(true));
    let mut module = IRModule::new();
    module.insert("matmul", matmul());
    module.insert("main", func);
    let expected_main = r#"
    @R.function(pure=False)
    def main(x: R.Tensor(("m", 8), dtype="float32"), w: R.Tensor((8, "n"), dtype="float32")) -> R.Tensor(("k", "k + 1"), dtype="float32"):
        m = T.int64()
        n = T.int64()
        k = T.int64()
        R.func_attr({"relax.force_pure": True})
        cls = Module
        with R.dataflow():
            lv: R.Tensor((m, n), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((m, n), dtype="float32"))
            gv: R.Tensor((m, n), dtype="float32") = R.nn.softmax(lv, axis=-1, keepdims=True)
            R.output(gv)
        lv1: R.Tensor((k, k + 1), dtype="float32") = R.match_cast(gv, R.Tensor((k, k + 1), dtype="float32"))
        gv1: R.Object = R.call_packed("vm.print", lv1, metadata["relax.expr.Constant"][0], R.const(2, "int64"), sinfo_args=(R.Object,))
        return lv1
"#;
    let matmul: String = MATMUL.lines().map(|l| format!("    {l}\n")).collect();
    let expected = format!("@I.ir_module\nclass Module:\n{matmul}{expected_main}");
    let short = print_module(&module, &TestOps, &plain());
    assert!(short.contains("R.nn.softmax(lv, keepdims=True)"), "{short}");
    let text = print_module(&module, &ops, &plain());
    let (_, body) = text.split_once("\n\n").unwrap();
    assert_eq!(body, expected);
    let full = print_module(&module, &ops, &PrintOptions::complete());
    let data = "A".repeat(600 * 4 / 3 * 4);
    let head = format!(
        "{}\nmetadata = {{\n    \"relax.expr.Constant\": [\n        I.tensor((600,), \"float32\", \"{data}\"),\n    ]\n}}\n\n",
        pliant_ir::print::HEADER
    );
    assert_eq!(full, format!("{head}{expected}"));
}

#[test]
fn branches_and_local_functions_are_printed() {
    let ops = NoOps;
    let mut b = FunctionBuilder::new(&ops);
    let n = b.func_mut().fresh_sym("x");
    let f = b.func_mut();
    let n = f.syms.var(n);
    let ty = f.intern(TypeData::tensor(vec![n], DType::Float32));
    let cond_ty = f.intern(TypeData::tensor(vec![], DType::Bool));
    let (c, x) = (b.param("c", cond_ty), b.param("x", ty));
    b.begin_func();
    let m = b.func_mut().fresh_sym("m");
    let f = b.func_mut();
    let m = f.syms.var(m);
    let pair = f.intern(TypeData::tensor(vec![m, n], DType::Float32));
    let y = b.param("y", pair);
    let ye = b.func_mut().var_expr(y);
    let local = b.end_func(ye, None, true);
    let g = b.emit_named(local, "inner");
    let f = b.func_mut();
    let (ce, xe) = (f.var_expr(c), f.var_expr(x));
    let call = Op::new("relax.exp");
    let exp = f.call(Callee::Op(call), &[xe], Attrs::default(), &[], ty);
    b.begin_seq();
    let t = b.emit(exp);
    let te = b.func_mut().var_expr(t);
    let then_seq = b.end_seq(te);
    b.begin_seq();
    let else_seq = b.end_seq(xe);
    let f = b.func_mut();
    let cond = f.add_expr(pliant_ir::relax::ExprData::If { cond: ce, then_seq, else_seq }, ty);
    let r = b.emit_named(cond, "for");
    let f = b.func_mut();
    let (re, ge) = (f.var_expr(r), f.var_expr(g));
    let result = f.tuple(&[re, ge]);
    let unknown = f.intern(TypeData::Any);
    let func = b.finish(result, Some(unknown), true);
    let expected = r#"@R.function
def f(c: R.Tensor((), dtype="bool"), x1: R.Tensor(("x",), dtype="float32")) -> R.Object:
    x = T.int64()
    @R.function
    def inner(y: R.Tensor(("m", x), dtype="float32")) -> R.Tensor(("m", x), dtype="float32"):
        m = T.int64()
        return y
    if c:
        gv: R.Tensor((x,), dtype="float32") = R.exp(x1)
        for1: R.Tensor((x,), dtype="float32") = gv
    else:
        for1: R.Tensor((x,), dtype="float32") = x1
    return (for1, inner)
"#;
    assert_eq!(print_function("f", &func, &ops, &plain()), expected);
}

#[test]
fn long_chains_print_in_linear_time() {
    let ops = NoOps;
    let mut b = FunctionBuilder::new(&ops);
    let f = b.func_mut();
    let n = f.fresh_sym("n");
    let n = f.syms.var(n);
    let ty = f.intern(TypeData::tensor(vec![n], DType::Float32));
    let x = b.param("x", ty);
    let mut e = b.func_mut().var_expr(x);
    for _ in 0..200_000 {
        let f = b.func_mut();
        let call = f.call(Callee::Op(Op::new("relax.exp")), &[e], Attrs::default(), &[], ty);
        let v = b.emit_named(call, "lv");
        e = b.func_mut().var_expr(v);
    }
    let func = b.finish(e, None, true);
    let start = std::time::Instant::now();
    let text = print_function("f", &func, &ops, &plain());
    assert_eq!(text.lines().count(), 200_000 + 4);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());

    let mut f = PrimFunc::new();
    let one = f.int(1);
    let b = f.compact_buffer("A", vec![one], DType::Int64);
    f.add_buffer_param("A", b);
    let zero = f.int(0);
    let mut sum = f.load(b, &[zero]);
    for _ in 0..100_000 {
        sum = f.add(sum, one);
    }
    let mut stmt = f.store(b, &[zero], sum);
    for _ in 0..100_000 {
        let v = f.size_var("x");
        stmt = f.add_stmt(StmtData::Let(v, one, stmt));
    }
    f.body = stmt;
    assert_eq!(print_prim_func("f", &f, &plain()).lines().count(), 100_003);
}
