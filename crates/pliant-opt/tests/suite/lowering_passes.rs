//! Tests the results of the lowering passes for a program that is built by hand.

use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::{FunctionBuilder, TypeData};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{Attrs, DType, IRModule};
use pliant_pass::{PassContext, PassError};

fn context() -> PassContext {
    PassContext::new(pliant_ops::registry())
}

/// Creates a loop function with one input and one output of `n` elements. Its body does not matter for the tests.
fn copy_prim_func() -> PrimFunc {
    let mut f = PrimFunc::new();
    let n = f.size_var("n");
    let n = f.var_expr(n);
    let a = f.compact_buffer("A", vec![n], DType::Float32);
    let b = f.compact_buffer("B", vec![n], DType::Float32);
    f.add_buffer_param("var_A", a);
    f.add_buffer_param("var_B", b);
    let zero = f.int(0);
    let value = f.load(a, &[zero]);
    f.body = f.store(b, &[zero], value);
    f.private = true;
    f
}

/// Creates a module with `main(x: (n, m), y: (n * m,))`, which copies `y` `copies` times with `call_tir`.
fn module(copies: usize) -> IRModule {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let n = b.func_mut().fresh_sym("n");
    let m = b.func_mut().fresh_sym("m");
    let (n, m) = (b.func().syms.var(n), b.func().syms.var(m));
    let product = b.func_mut().syms.mul(n, m);
    let x_ty = b.func_mut().intern(TypeData::tensor(vec![n, m], DType::Float32));
    let y_ty = b.func_mut().intern(TypeData::tensor(vec![product], DType::Float32));
    b.param("x", x_ty);
    let y = b.param("y", y_ty);
    let mut last = b.func_mut().var_expr(y);
    b.begin_dataflow().expect("no block is open");
    for i in 0..copies {
        let any = b.func_mut().intern(TypeData::Any);
        let ty = TypeData::Callable { params: None, ret: any, pure: true };
        let ty = b.func_mut().intern(ty);
        let callee = b.func_mut().global("copy", ty);
        let inputs = b.func_mut().tuple(&[last]);
        let call = b.call_op(CALL_TIR, &[callee, inputs], Attrs::default(), &[y_ty]);
        let var = b.emit(call.expect("call_tir has a type"));
        last = b.func_mut().var_expr(var);
        if i + 1 == copies {
            b.mark_output(var);
        }
    }
    b.end_dataflow();
    let main = b.finish(last, None, true);
    let mut module = IRModule::new();
    module.insert("copy", copy_prim_func());
    module.insert("main", main);
    module
}

fn text(module: &IRModule) -> String {
    pliant_pass::module_text::module_text(module, pliant_ops::registry())
}

fn run(names: &[&str], module: IRModule) -> IRModule {
    names.iter().fold(module, |m, name| {
        let pass = (pliant_opt::passes::find(name).expect("the pass exists").make)();
        pass.apply(m, &context()).unwrap_or_else(|e| panic!("{name}: {e}"))
    })
}

/// The number of occurrences of `what` in a text.
fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn outputs_are_allocated_before_the_call() {
    let t = text(&run(&["CallTIRRewrite"], module(2)));
    assert!(!t.contains("R.dataflow()") && !t.contains("R.call_tir("), "{t}");
    let lines: Vec<&str> = t.lines().map(str::trim).filter(|l| l.contains("lv")).collect();
    assert_eq!(
        lines,
        [
            "lv: R.Tensor((m * n,), dtype=\"float32\") = R.builtin.alloc_tensor(R.shape([m * n]), \
             R.dtype(\"float32\"), R.prim_value(0))",
            "_: R.Tuple = cls.copy(y, lv)",
            "lv1: R.Tensor((m * n,), dtype=\"float32\") = R.builtin.alloc_tensor(R.shape([m * n]), \
             R.dtype(\"float32\"), R.prim_value(0))",
            "_1: R.Tuple = cls.copy(lv, lv1)",
            "return lv1",
        ]
    );
}

#[test]
fn intermediate_tensors_share_storage_and_the_result_does_not() {
    let planned = run(&["CallTIRRewrite", "StaticPlanBlockMemory"], module(8));
    let t = text(&planned);
    // Two storages alternate. LowerAllocTensor allocates the result.
    assert_eq!(count(&t, "R.memory.alloc_storage("), 2, "{t}");
    assert_eq!(count(&t, "R.memory.alloc_tensor("), 7, "{t}");
    assert_eq!(count(&t, "R.builtin.alloc_tensor("), 1, "{t}");
    let t = text(&run(&["LowerAllocTensor"], planned));
    assert_eq!(count(&t, "R.memory.alloc_storage("), 3, "{t}");
    assert_eq!(count(&t, "R.builtin.alloc_tensor("), 0, "{t}");
}

#[test]
fn values_except_the_result_are_killed_once_after_their_last_use() {
    let passes = ["CallTIRRewrite", "LowerAllocTensor", "KillAfterLastUse", "KillAfterLastUse"];
    let t = text(&run(&passes, module(3)));
    assert_eq!(count(&t, "R.memory.kill_tensor(lv)"), 1, "{t}");
    assert_eq!(count(&t, "R.memory.kill_tensor(lv1)"), 1, "{t}");
    assert_eq!(count(&t, "R.memory.kill_tensor(lv2)"), 0, "{t}");
    assert_eq!(count(&t, "R.memory.kill_storage("), 3, "{t}");
    let last_use = t.find("cls.copy(lv, lv1)").expect("the second copy is there");
    let kill = t.find("R.memory.kill_tensor(lv)").expect("lv is killed");
    let next = t.find("cls.copy(lv1, lv2)").expect("the third copy is there");
    assert!(last_use < kill && kill < next, "{t}");
}

#[test]
fn an_output_of_unknown_shape_is_a_user_error() {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let ty = b.func_mut().intern(TypeData::tensor_rank(1, DType::Float32));
    let x = b.param("x", ty);
    let x = b.func_mut().var_expr(x);
    let any = b.func_mut().intern(TypeData::Any);
    let callee_ty = TypeData::Callable { params: None, ret: any, pure: true };
    let callee_ty = b.func_mut().intern(callee_ty);
    let callee = b.func_mut().global("copy", callee_ty);
    let inputs = b.func_mut().tuple(&[x]);
    let call = b.call_op(CALL_TIR, &[callee, inputs], Attrs::default(), &[ty]).expect("a type");
    let y = b.emit(call);
    let y = b.func_mut().var_expr(y);
    let mut module = IRModule::new();
    module.insert("copy", copy_prim_func());
    module.insert("main", b.finish(y, None, true));
    let pass = (pliant_opt::passes::find("CallTIRRewrite").expect("the pass exists").make)();
    match pass.apply(module, &context()) {
        Err(PassError::User(problems)) => {
            assert_eq!(problems[0].function.as_deref(), Some("main"));
            assert!(problems[0].message.contains("has an unknown shape"), "{}", problems[0]);
        }
        other => panic!("a user error is expected, not {other:?}"),
    }
}

#[test]
fn unreachable_private_functions_are_removed() {
    let mut m = module(1);
    m.insert("unused", copy_prim_func());
    let m = run(&["EliminateUnused"], m);
    assert_eq!(m.functions.keys().map(|k| &**k).collect::<Vec<_>>(), ["copy", "main"]);
}
