//! Tests each rule of the verifier with a program that violates it and one that does not.

use crate::test_op_registry::{TestOps, matmul};
use pliant_diag::{Diagnostic, error_codes};
use pliant_ir::attr_values::FuncAttrs;
use pliant_ir::op::{CALL_TIR, Op, WHILE_LOOP};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, FuncData, FunctionBuilder, Type, TypeData, Var,
};
use pliant_ir::tir::{self, BinOp, ForKind, Intrin, PrimFunc, StmtData, Ty, VarTy};
use pliant_ir::verify::verify_module;
use pliant_ir::{AttrValue, Attrs, DType, IRModule};

fn codes(list: &[Diagnostic]) -> Vec<&str> {
    list.iter().map(|d| d.code).collect()
}

/// A graph function `f(x: R.Tensor((n, 4)))` under construction.
struct Fixture {
    b: FunctionBuilder<'static>,
    x: Expr,
    ty: Type,
}

impl Fixture {
    fn new() -> Self {
        let mut b = FunctionBuilder::new(&TestOps);
        let f = b.func_mut();
        let n = f.fresh_sym("n");
        let dims = vec![f.syms.var(n), f.syms.int(4)];
        let ty = f.intern(TypeData::tensor(dims, DType::Float32));
        let x = b.param("x", ty);
        let x = b.func_mut().var_expr(x);
        Fixture { b, x, ty }
    }

    fn op(&mut self, name: &'static str, args: &[Expr]) -> Expr {
        self.b.func_mut().call(Callee::Op(Op::new(name)), args, Attrs::default(), &[], self.ty)
    }

    fn emit(&mut self, e: Expr) -> Expr {
        let v = self.b.emit(e);
        self.b.func_mut().var_expr(v)
    }

    fn exp(&mut self) -> Expr {
        let e = self.op("relax.exp", &[self.x]);
        self.emit(e)
    }

    fn finish(self, result: Expr) -> Vec<String> {
        self.check(result, true, |_| {})
    }

    fn check(
        self,
        result: Expr,
        pure: bool,
        change: impl FnOnce(&mut pliant_ir::relax::Function),
    ) -> Vec<String> {
        let mut f = self.b.finish(result, None, pure);
        change(&mut f);
        let mut m = IRModule::new();
        m.insert("main", f);
        m.insert("matmul", matmul());
        codes(&verify_module(&m, &TestOps)).into_iter().map(String::from).collect()
    }
}

#[test]
fn a_valid_graph_function_has_no_violations() {
    let mut t = Fixture::new();
    t.b.begin_dataflow().unwrap();
    let y = t.exp();
    let z = t.op("relax.add", &[t.x, y]);
    let out = t.b.emit_output(z);
    t.b.end_dataflow();
    let out = t.b.func_mut().var_expr(out);
    assert!(t.finish(out).is_empty());
}

#[test]
fn nested_calls_violate_a_normal_form() {
    let mut t = Fixture::new();
    let inner = t.op("relax.exp", &[t.x]);
    let outer = t.op("relax.exp", &[inner]);
    let y = t.emit(outer);
    assert_eq!(t.finish(y), [error_codes::PL0202]);
}

#[test]
fn variables_are_defined_once_and_used_in_their_scopes() {
    let mut t = Fixture::new();
    t.b.begin_dataflow().unwrap();
    let y = t.exp();
    t.b.end_dataflow();
    assert_eq!(t.finish(y), [error_codes::PL0205]);

    let mut t = Fixture::new();
    let (y, z) = (t.exp(), t.exp());
    let result = t.op("relax.add", &[y, z]);
    let result = t.emit(result);
    let codes = t.check(result, true, |f| {
        let b = f.seq(f.body()).blocks[0];
        f.block_mut(b).bindings.swap(1, 2);
    });
    assert_eq!(codes, [error_codes::PL0203]);

    let mut t = Fixture::new();
    let y = t.exp();
    let codes = t.check(y, true, |f| {
        let b = f.seq(f.body()).blocks[0];
        let first = f.block(b).bindings[0];
        f.block_mut(b).bindings.push(first);
    });
    assert_eq!(codes, [error_codes::PL0204]);

    let mut t = Fixture::new();
    let y = t.exp();
    let codes = t.check(y, true, |f| {
        let b = f.seq(f.body()).blocks[0];
        let body = f.body();
        f.seq_mut(body).blocks.push(b);
    });
    assert_eq!(codes, [error_codes::PL0221]);
}

#[test]
fn symbols_are_defined_before_their_use() {
    let mut t = Fixture::new();
    let f = t.b.func_mut();
    let m = f.fresh_sym("m");
    let m = f.syms.var(m);
    let shape = f.shape(&[m]);
    let y = t.emit(shape);
    assert_eq!(t.finish(y), [error_codes::PL0209]);

    let mut t = Fixture::new();
    let f = t.b.func_mut();
    let m = f.fresh_sym("m");
    let dims = vec![f.syms.var(m), f.syms.int(4)];
    let ty = f.intern(TypeData::tensor(dims, DType::Float32));
    let v = t.b.match_cast(t.x, ty, "y");
    let v = t.b.func_mut().var_expr(v);
    let y = t.op("relax.exp", &[v]);
    let y = t.emit(y);
    assert!(t.finish(y).is_empty());

    let mut t = Fixture::new();
    let ty = t.b.func_mut().intern(TypeData::tensor_rank(3, DType::Float32));
    let v = t.b.match_cast(t.x, ty, "y");
    let v = t.b.func_mut().var_expr(v);
    assert_eq!(t.finish(v), [error_codes::PL0216]);
}

#[test]
fn calls_with_side_effects_require_an_impure_context() {
    let mut t = Fixture::new();
    t.b.begin_dataflow().unwrap();
    let e = t.op("relax.print", &[t.x]);
    t.emit(e);
    t.b.end_dataflow();
    let x = t.x;
    assert_eq!(t.check(x, false, |_| {}), [error_codes::PL0207]);

    for (pure, force, expected) in
        [(true, false, vec![error_codes::PL0208]), (false, false, vec![]), (true, true, vec![])]
    {
        let mut t = Fixture::new();
        let any = t.b.func_mut().intern(TypeData::Any);
        let callee = t.b.func_mut().extern_func("print");
        let e = t.b.call_func(callee, &[t.x], &[any], any);
        t.emit(e);
        let x = t.x;
        let codes = t.check(x, pure, |f| {
            if force {
                f.attrs.insert("relax.force_pure".into(), pliant_ir::AttrValue::Bool(true));
            }
        });
        assert_eq!(codes, expected);
    }
}

#[test]
fn values_fit_their_declared_types() {
    let mut t = Fixture::new();
    let scalar = t.b.func_mut().intern(TypeData::tensor_rank(1, DType::Float32));
    let e = t.op("relax.exp", &[t.x]);
    let v = t.b.emit_typed(e, "y", scalar);
    let v = t.b.func_mut().var_expr(v);
    assert_eq!(t.finish(v), [error_codes::PL0213]);

    let mut t = Fixture::new();
    let y = t.exp();
    let bad = t.b.func_mut().intern(TypeData::tensor_unknown(DType::Int32));
    let codes = t.check(y, true, |f| {
        let root = f.root();
        f.func_mut(root).ret_ty = bad;
    });
    assert_eq!(codes, [error_codes::PL0214]);

    let mut t = Fixture::new();
    let e = t.op("relax.nothing", &[t.x]);
    let y = t.emit(e);
    assert_eq!(t.finish(y), [error_codes::PL0208, error_codes::PL0219]);

    let mut t = Fixture::new();
    let e = t.op("relax.add", &[t.x]);
    let y = t.emit(e);
    assert_eq!(t.finish(y), [error_codes::PL0219]);
}

fn branch(t: &mut Fixture) -> Var {
    t.b.begin_seq();
    let then_seq = t.b.end_seq(t.x);
    t.b.begin_seq();
    let else_seq = t.b.end_seq(t.x);
    let e = t.b.func_mut().add_expr(ExprData::If { cond: t.x, then_seq, else_seq }, t.ty);
    t.b.emit(e)
}

#[test]
fn branches_require_bool_conditions_and_no_dataflow_block() {
    let mut t = Fixture::new();
    let v = branch(&mut t);
    let v = t.b.func_mut().var_expr(v);
    assert_eq!(t.finish(v), [error_codes::PL0215]);

    let mut t = Fixture::new();
    t.b.begin_dataflow().unwrap();
    let v = branch(&mut t);
    t.b.mark_output(v);
    t.b.end_dataflow();
    let v = t.b.func_mut().var_expr(v);
    assert_eq!(t.finish(v), [error_codes::PL0206, error_codes::PL0215]);
}

#[test]
fn deeply_nested_functions_are_rejected_without_a_crash() {
    let mut t = Fixture::new();
    let func = t.b.func_mut();
    let mut body = func.body();
    for _ in 0..100_000 {
        let x = t.x;
        let f = t.b.func_mut();
        let id = f.add_func(FuncData {
            params: vec![],
            body,
            ret_ty: t.ty,
            pure: true,
            attrs: FuncAttrs::default(),
        });
        let e = f.add_expr(ExprData::Func(id), t.ty);
        let v = f.add_var("g", t.ty, false, pliant_ir::Span::NONE);
        let b = f.add_block(BlockData { dataflow: false, bindings: vec![Binding::bind(v, e)] });
        body = f.add_seq(pliant_ir::relax::SeqData { blocks: vec![b], result: x });
    }
    let x = t.x;
    let reported = t.check(x, true, |f| {
        let root = f.root();
        f.func_mut(root).body = body;
    });
    assert_eq!(reported, [error_codes::PL0220]);
}

#[test]
fn calls_of_global_functions_fit_their_parameters() {
    let call = |name: &str, rank: usize, inputs: usize| {
        let mut t = Fixture::new();
        let f = t.b.func_mut();
        let any = f.intern(TypeData::Any);
        let callee = f.global(name, any);
        let args = f.tuple(&vec![t.x; inputs]);
        let out = f.intern(TypeData::tensor_rank(rank as u32, DType::Float32));
        let e = f.call(Callee::Op(CALL_TIR), &[callee, args], Attrs::default(), &[out], out);
        let v = t.emit(e);
        t.finish(v)
    };
    assert_eq!(call("absent", 2, 2), [error_codes::PL0210]);
    assert_eq!(call("matmul", 2, 1), [error_codes::PL0218]);
    // x is (n, 4), but the product requires (m, 8) and (8, n).
    assert_eq!(call("matmul", 2, 2), [error_codes::PL0218]);
    assert_eq!(call("matmul", 3, 2), [error_codes::PL0218, error_codes::PL0218]);
    assert_eq!(call("main", 2, 2), [error_codes::PL0218]);

    let mut t = Fixture::new();
    let f = t.b.func_mut();
    let any = f.intern(TypeData::Any);
    let callee = f.global("main", any);
    let wide = f.tuple(&[t.x]);
    let e = t.b.call_func(callee, &[t.x, t.x], &[], any);
    t.emit(e);
    let callee = t.b.func_mut().global("main", any);
    let e = t.b.call_func(callee, &[wide], &[], any);
    t.emit(e);
    let x = t.x;
    assert_eq!(t.finish(x), [error_codes::PL0211, error_codes::PL0212]);
}

fn tir_codes(f: PrimFunc) -> Vec<&'static str> {
    tir::verify::verify_prim_func(&f).iter().map(|d| d.code).collect()
}

/// Creates the loop function `f(n, A: (4,) float32)` with the body that a callback creates.
fn with_body(
    body: impl FnOnce(&mut PrimFunc, tir::Expr, tir::Buffer) -> tir::Stmt,
) -> Vec<&'static str> {
    let mut f = PrimFunc::new();
    let n = f.size_var("n");
    f.params.push(n);
    let n = f.var_expr(n);
    let four = f.int(4);
    let a = f.compact_buffer("A", vec![four], DType::Float32);
    f.add_buffer_param("A", a);
    f.body = body(&mut f, n, a);
    tir_codes(f)
}

#[test]
fn a_valid_loop_function_has_no_violations() {
    assert!(tir_codes(matmul()).is_empty());
}

#[test]
fn loop_variables_and_buffers_are_used_in_their_scopes() {
    let stray = with_body(|f, n, a| {
        let i = f.size_var("i");
        let i = f.var_expr(i);
        let one = f.const_of(1.0, DType::Float32);
        let _ = n;
        f.store(a, &[i], one)
    });
    assert_eq!(stray, [error_codes::PL0301]);
    let twice = with_body(|f, n, a| {
        let i = f.size_var("i");
        let (e, one, zero) = (f.var_expr(i), f.const_of(1.0, DType::Float32), f.int(0));
        let mut s = f.store(a, &[e], one);
        for _ in 0..2 {
            s = f.add_stmt(StmtData::For {
                var: i,
                min: zero,
                extent: n,
                kind: ForKind::Vectorized,
                body: s,
                annotations: vec![],
            });
        }
        s
    });
    assert_eq!(twice, [error_codes::PL0311, error_codes::PL0311, error_codes::PL0302]);
    let dead = with_body(|f, n, a| {
        let b = f.compact_buffer("B", vec![n], DType::Float32);
        let v = f.load(b, &[n]);
        f.store(a, &[n], v)
    });
    assert_eq!(dead, [error_codes::PL0303]);
}

#[test]
fn accesses_and_operands_of_loop_functions_have_matching_types() {
    let rank = with_body(|f, n, a| {
        let v = f.load(a, &[n, n]);
        f.store(a, &[n], v)
    });
    assert_eq!(rank, [error_codes::PL0304]);
    let linear = |flat: bool, indices: usize| {
        tir_codes({
            let mut f = PrimFunc::new();
            let four = f.int(4);
            let a = f.compact_buffer("A", vec![four, four], DType::Float32);
            f.add_buffer_param("a", a);
            let (zero, value) = (f.int(0), f.const_of(1.0, DType::Float32));
            f.body = f.store(a, &vec![zero; indices], value);
            f.attrs.insert(pliant_ir::tir::func::FLAT.into(), AttrValue::Bool(flat));
            f
        })
    };
    assert_eq!(linear(true, 1), [""; 0]);
    assert_eq!(linear(false, 2), [""; 0]);
    assert_eq!(linear(true, 2), [error_codes::PL0304]);
    assert_eq!(linear(false, 1), [error_codes::PL0304]);
    let store = with_body(|f, n, a| f.store(a, &[n], n));
    assert_eq!(store, [error_codes::PL0307]);
    let mixed = with_body(|f, n, a| {
        let v = f.load(a, &[n]);
        let v = f.binary(BinOp::Add, v, n);
        f.store(a, &[n], v)
    });
    assert_eq!(mixed, [error_codes::PL0306]);
    let cond = with_body(|f, n, _| {
        let nothing = f.add_stmt(StmtData::Seq(vec![]));
        f.add_stmt(StmtData::If(n, nothing, None))
    });
    assert_eq!(cond, [error_codes::PL0305]);
    let intrin = with_body(|f, n, _| {
        let e = f.call(Intrin::Exp, &[n]);
        f.add_stmt(StmtData::Evaluate(e))
    });
    assert_eq!(intrin, [error_codes::PL0308]);
    let constant = with_body(|f, _, _| {
        let e = f.add_expr(tir::ExprData::Int(300, Ty::scalar(DType::UInt8)));
        f.add_stmt(StmtData::Evaluate(e))
    });
    assert_eq!(constant, [error_codes::PL0317]);
    let bound = with_body(|f, n, _| {
        let x = f.add_var("x", VarTy::Value(Ty::BOOL));
        let nothing = f.add_stmt(StmtData::Seq(vec![]));
        f.add_stmt(StmtData::Let(x, n, nothing))
    });
    assert_eq!(bound, [error_codes::PL0313]);
    let text = with_body(|f, _, _| {
        let e = f.add_expr(tir::ExprData::Str("s".into()));
        f.add_stmt(StmtData::Evaluate(e))
    });
    assert_eq!(text, [error_codes::PL0315]);
}

#[test]
fn sizes_of_loop_functions_are_defined_by_parameters() {
    let mut f = PrimFunc::new();
    let n = f.size_var("n");
    let n = f.var_expr(n);
    let two = f.int(2);
    let double = f.mul(n, two);
    let a = f.compact_buffer("A", vec![double], DType::Float32);
    f.add_buffer_param("A", a);
    assert_eq!(tir_codes(f.clone()), [error_codes::PL0309]);
    let b = f.compact_buffer("B", vec![n], DType::Float32);
    f.add_buffer_param("B", b);
    assert!(tir_codes(f).is_empty());
}

#[test]
fn deeply_nested_statements_are_rejected_without_a_crash() {
    let deep = with_body(|f, n, a| {
        let v = f.load(a, &[n]);
        let mut s = f.store(a, &[n], v);
        for _ in 0..100_000 {
            let x = f.size_var("x");
            s = f.add_stmt(StmtData::Let(x, n, s));
        }
        s
    });
    assert_eq!(deep, [error_codes::PL0312]);
}

/// Creates a local function with parameters of the given types. The callback `result` creates the
/// function's result from its parameters.
fn local(
    t: &mut Fixture,
    params: &[Type],
    result: impl FnOnce(&mut Fixture, &[Expr]) -> Expr,
) -> Expr {
    t.b.begin_func();
    let vars: Vec<Var> = params.iter().map(|&ty| t.b.param("s", ty)).collect();
    let exprs: Vec<Expr> = vars.into_iter().map(|v| t.b.func_mut().var_expr(v)).collect();
    let result = result(t, &exprs);
    let func = t.b.end_func(result, None, true);
    t.emit(func)
}

/// The error codes that the verifier reports for a `while_loop`. The callback creates the operands
/// of the loop from the tensor `x` and other values.
fn loop_codes(operands: impl FnOnce(&mut Fixture, [Expr; 2]) -> Vec<Expr>) -> Vec<String> {
    let mut t = Fixture::new();
    let ty = t.ty;
    let cond = local(&mut t, &[ty], |t, _| {
        let yes = t.b.func_mut().syms.int(1);
        t.b.func_mut().int_value(yes, DType::Bool)
    });
    let body = local(&mut t, &[ty], |_, params| params[0]);
    let operands = operands(&mut t, [cond, body]);
    let e = t.b.func_mut().call(Callee::Op(WHILE_LOOP), &operands, Attrs::default(), &[], ty);
    let y = t.emit(e);
    t.finish(y)
}

#[test]
fn condition_body_and_state_of_a_while_loop_fit_each_other() {
    assert!(loop_codes(|t, [cond, body]| vec![cond, body, t.x]).is_empty());
    let wrong = [error_codes::PL0225];
    // Not a function; a wrong number of states; a condition that does not return bool.
    assert_eq!(
        loop_codes(|t, [cond, _]| vec![cond, t.x, t.x]),
        [error_codes::PL0208, error_codes::PL0225],
        "a value that is not a function may have side effects"
    );
    assert_eq!(loop_codes(|t, [cond, body]| vec![cond, body, t.x, t.x]), wrong);
    assert_eq!(loop_codes(|t, [_, body]| vec![body, body, t.x]), wrong);
    // A state that the body does not accept, and a result that cannot be the next state.
    let flat = |t: &mut Fixture| {
        let f = t.b.func_mut();
        let two = f.syms.int(2);
        f.intern(TypeData::tensor(vec![two], DType::Float32))
    };
    let takes_flat = |t: &mut Fixture, [cond, _]: [Expr; 2]| {
        let ty = flat(t);
        let body = local(t, &[ty], |_, params| params[0]);
        vec![cond, body, t.x]
    };
    assert_eq!(loop_codes(takes_flat), wrong);
    let gives_unit = |t: &mut Fixture, [cond, _]: [Expr; 2]| {
        let ty = t.ty;
        let body = local(t, &[ty], |t, _| t.b.func_mut().tuple(&[]));
        vec![cond, body, t.x]
    };
    assert_eq!(loop_codes(gives_unit), wrong);
}
