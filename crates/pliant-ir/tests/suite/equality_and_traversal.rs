//! Tests of structural equality, hashing, copies, traversals and the type lattice.

use crate::test_op_registry::{TestOps, matmul};
use pliant_ir::op::Op;
use pliant_ir::relax::type_lattice::{derive_call_ty, erase, is_subtype, lca, type_syms};
use pliant_ir::relax::visit::{
    Uses, bindings, copy_function, defined_syms, free_syms, free_vars, post_order,
};
use pliant_ir::relax::{Callee, ExprData, Function, FunctionBuilder, TypeData};
use pliant_ir::structural_equality::{
    equal_functions, equal_prim_funcs, structural_equal, structural_hash,
};
use pliant_ir::tir::visit::{copy_prim_func, substitute};
use pliant_ir::tir::{StmtData, Ty, VarTy};
use pliant_ir::{Attrs, DType, IRModule};
use pliant_sym::Proof;
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

/// Creates the function `f(x: (n, m)) { g(y: (m, k)) = y; if c: exp(x) else: x; match_cast ... }`.
/// Tests compare variants with other names or another constant.
fn sample(names: [&str; 3], constant: f32) -> Function {
    let mut b = FunctionBuilder::new(&TestOps);
    let f = b.func_mut();
    let [n, m, k] = names.map(|name| f.fresh_sym(name));
    let [n, m, k] = [n, m, k].map(|v| f.syms.var(v));
    let nm = f.syms.mul(n, m);
    let ty = f.intern(TypeData::tensor(vec![n, m], DType::Float32));
    let flag = f.intern(TypeData::tensor(vec![], DType::Bool));
    let flat = f.intern(TypeData::tensor(vec![nm], DType::Float32));
    let (c, x) = (b.param("c", flag), b.param(names[0], ty));
    b.begin_func();
    let inner = b.func_mut().intern(TypeData::tensor(vec![m, k], DType::Float32));
    let y = b.param("y", inner);
    let y = b.func_mut().var_expr(y);
    let g = b.end_func(y, None, true);
    b.emit_named(g, "g");
    let f = b.func_mut();
    let (c, x) = (f.var_expr(c), f.var_expr(x));
    let exp = f.call(Callee::Op(Op::new("relax.exp")), &[x], Attrs::default(), &[], ty);
    b.begin_seq();
    let e = b.emit(exp);
    let e = b.func_mut().var_expr(e);
    let then_seq = b.end_seq(e);
    b.begin_seq();
    let else_seq = b.end_seq(x);
    let v = b.func_mut().add_expr(ExprData::If { cond: c, then_seq, else_seq }, ty);
    b.emit_named(v, names[1]);
    b.begin_dataflow().unwrap();
    let value = b.func_mut().constant(Tensor::scalar(constant).unwrap());
    let v = b.emit_output(value);
    b.end_dataflow();
    let v = b.func_mut().var_expr(v);
    let r = b.match_cast(v, flat, "r");
    let r = b.func_mut().var_expr(r);
    let t = b.func_mut().tuple(&[r, x]);
    b.finish(t, None, true)
}

#[test]
fn equality_and_hashes_ignore_names() {
    let (a, b) = (sample(["n", "m", "k"], 1.0), sample(["p", "q", "r"], 1.0));
    equal_functions(&a, &b).unwrap();
    let d = equal_functions(&a, &sample(["n", "m", "k"], 2.0)).unwrap_err();
    assert!(d.to_string().starts_with("binding of 'gv1': the constant differs"), "{d}");
    let module = |f: &Function| {
        let mut m = IRModule::new();
        m.insert("f", f.clone());
        m.insert("matmul", matmul());
        m
    };
    let (a, b) = (module(&a), module(&b));
    structural_equal(&a, &b).unwrap();
    assert_eq!(structural_hash(&a), structural_hash(&b));
    let mut fewer = a.clone();
    fewer.remove("matmul");
    assert!(structural_equal(&a, &fewer).is_err());
    assert!(structural_equal(&fewer, &a).is_err());
    assert_ne!(structural_hash(&a), structural_hash(&fewer));
}

#[test]
fn functions_with_swapped_symbols_are_different() {
    let make = |swap: bool| {
        let mut b = FunctionBuilder::new(&TestOps);
        let f = b.func_mut();
        let (n, m) = (f.fresh_sym("n"), f.fresh_sym("m"));
        let (n, m) = (f.syms.var(n), f.syms.var(m));
        let ty = f.intern(TypeData::tensor(vec![n, m], DType::Float32));
        let x = b.param("x", ty);
        let f = b.func_mut();
        let dims = if swap { [m, n] } else { [n, m] };
        let shape = f.shape(&dims);
        let _ = x;
        b.finish(shape, None, true)
    };
    equal_functions(&make(false), &make(false)).unwrap();
    assert!(equal_functions(&make(false), &make(true)).is_err());
}

#[test]
fn copies_are_equal_and_contain_no_dead_expressions() {
    let mut f = sample(["n", "m", "k"], 1.0);
    for _ in 0..100 {
        f.str_value("dead");
    }
    let copy = copy_function(&f);
    equal_functions(&f, &copy).unwrap();
    assert!(copy.num_exprs() < f.num_exprs() - 90);
    let p = matmul();
    let copy = copy_prim_func(&p);
    equal_prim_funcs(&p, &copy).unwrap();
}

#[test]
fn differences_of_loop_functions_are_reported_with_their_paths() {
    let a = matmul();
    let mut b = matmul();
    let four = b.int(4);
    let buffer = b.buffer_map[0];
    b.buffer_mut(buffer).shape[1] = four;
    let d = equal_prim_funcs(&a, &b).unwrap_err();
    assert_eq!(
        d.to_string(),
        "parameter 0 / buffer 'A' / dim 1: the expression differs: 8 on the left, 4 on the right"
    );
    let mut b = matmul();
    let mut s = b.body;
    while let StmtData::For { body, .. } = b.stmt(s) {
        s = *body;
    }
    b.body = s;
    let d = equal_prim_funcs(&a, &b).unwrap_err();
    assert_eq!(
        d.to_string(),
        "body: the statement differs: a loop on the left, a block on the right"
    );
}

#[test]
fn traversals_visit_bindings_in_order_and_count_uses() {
    let f = sample(["n", "m", "k"], 1.0);
    let names: Vec<String> =
        bindings(&f).iter().map(|(_, b)| f.var(b.var).name.to_string()).collect();
    assert_eq!(names, ["g", "m", "gv", "gv1", "r"]);
    let uses = Uses::of(&f);
    let x = f.params()[1];
    assert_eq!(uses.count(x), 3);
    let users: Vec<&str> = uses.users(x).iter().map(|&v| &*f.var(v).name).collect();
    assert_eq!(users, ["gv"]);
    assert!(free_vars(&f, f.root()).is_empty());
    assert_eq!(defined_syms(&f, f.root()).len(), 3);
    assert!(free_syms(&f, f.root()).is_empty());
    let mut seen = 0;
    post_order(&f, |_| seen += 1);
    assert!(seen >= 9);
}

#[test]
fn subtyping_and_least_common_supertypes_of_tensor_types() {
    let mut f = Function::empty();
    let (n, m) = (f.fresh_sym("n"), f.fresh_sym("m"));
    let (n, m) = (f.syms.var(n), f.syms.var(m));
    let one = f.syms.int(1);
    let (n1, four) = (f.syms.add(n, one), f.syms.int(4));
    let mut tensor = |dims: &[pliant_ir::Sym]| f.intern(TypeData::tensor(dims, DType::Float32));
    let (a, b, c, d, e) = (
        tensor(&[n, four]),
        tensor(&[n1, four]),
        tensor(&[m, four]),
        tensor(&[n]),
        tensor(&[n, m]),
    );
    let rank = f.intern(TypeData::tensor_rank(2, DType::Float32));
    let any = f.intern(TypeData::Any);
    let shape = f.intern(TypeData::shape([n, four]));
    assert_eq!(is_subtype(&mut f, a, a), Proof::Yes);
    assert_eq!(is_subtype(&mut f, a, rank), Proof::Yes);
    assert_eq!(is_subtype(&mut f, rank, a), Proof::Unknown);
    assert_eq!(is_subtype(&mut f, a, b), Proof::No);
    assert_eq!(is_subtype(&mut f, a, c), Proof::Unknown);
    assert_eq!(is_subtype(&mut f, a, d), Proof::No);
    assert_eq!(is_subtype(&mut f, a, any), Proof::Yes);
    assert_eq!(is_subtype(&mut f, any, a), Proof::Unknown);
    assert_eq!(is_subtype(&mut f, a, shape), Proof::No);
    assert_eq!(lca(&mut f, a, c), rank);
    assert_eq!(lca(&mut f, a, shape), any);
    let n_var = type_syms(&f, d)[0];
    assert_eq!(erase(&mut f, e, &|v| v == n_var), rank);
    assert_eq!(erase(&mut f, a, &|v| v == n_var), a);
}

#[test]
fn call_types_substitute_the_symbols_of_arguments() {
    // callee(x: (n, m), s: Shape([n + 1])) -> (n * m, k) with k unknown
    let mut b = FunctionBuilder::new(&TestOps);
    let f = b.func_mut();
    let [n, m, k] = ["n", "m", "k"].map(|name| f.fresh_sym(name)).map(|v| f.syms.var(v));
    let one = f.syms.int(1);
    let (nm, n1) = (f.syms.mul(n, m), f.syms.add(n, one));
    let x = f.intern(TypeData::tensor(vec![n, m], DType::Float32));
    let s = f.intern(TypeData::shape([n1]));
    let flat = f.intern(TypeData::tensor(vec![nm], DType::Float32));
    let lost = f.intern(TypeData::tensor(vec![nm, k], DType::Float32));
    let ret = f.intern(TypeData::Tuple(Box::new([flat, lost])));
    b.param("x", x);
    b.param("s", s);
    let unit = b.func_mut().tuple(&[]);
    let callee = b.finish(unit, Some(ret), true);

    let mut f = Function::empty();
    let p = f.fresh_sym("p");
    let p = f.syms.var(p);
    let (three, four) = (f.syms.int(3), f.syms.int(4));
    let arg = f.intern(TypeData::tensor(vec![p, three], DType::Float32));
    let p1 = {
        let one = f.syms.int(1);
        f.syms.add(p, one)
    };
    let (good, bad) = (f.intern(TypeData::shape([p1])), f.intern(TypeData::shape([p])));
    let ret = derive_call_ty(&mut f, &callee, &[arg, good]).unwrap();
    let text = pliant_ir::print::type_text(&f, ret);
    assert_eq!(
        text,
        r#"R.Tuple(R.Tensor((p * 3,), dtype="float32"), R.Tensor(dtype="float32", ndim=2))"#
    );
    let e = derive_call_ty(&mut f, &callee, &[arg, bad]).unwrap_err();
    assert_eq!(
        e.message,
        "dim 0 of argument 1 (parameter 's') has size p, but the parameter declares the size n + 1 = p + 1"
    );
    let ints = f.intern(TypeData::tensor(vec![p, four], DType::Int32));
    let e = derive_call_ty(&mut f, &callee, &[ints, good]).unwrap_err();
    assert!(
        e.message.contains("does not fit the parameter's type R.Tensor((n, m), dtype=\"float32\")"),
        "{}",
        e.message
    );
    assert!(derive_call_ty(&mut f, &callee, &[arg]).is_err());
}

#[test]
fn substituting_a_size_changes_loop_extents() {
    let mut f = matmul();
    let m = f.buffer(f.buffer_map[0]).shape[0];
    let pliant_ir::tir::ExprData::Var(m) = *f.expr(m) else { panic!("m is a variable") };
    let seven = f.int(7);
    let map: FxHashMap<_, _> = [(m, seven)].into_iter().collect();
    let body = f.body;
    let new = substitute(&mut f, body, &map);
    let StmtData::For { extent, .. } = f.stmt(new) else { panic!("the outer loop stays") };
    assert_eq!(*extent, seven);
    let unused = f.add_var("q", VarTy::Value(Ty::I64));
    let map: FxHashMap<_, _> = [(unused, seven)].into_iter().collect();
    let before = f.body;
    f.body = substitute(&mut f, before, &map);
    equal_prim_funcs(&f, &matmul()).unwrap();
}
