//! Tests that every stage of the compilation processes long chains of operators without recursion over bindings and in linear
//! time. With a quadratic algorithm, the test would not finish in time.

use pliant_ir::relax::{FunctionBuilder, TypeData};
use pliant_ir::{Attrs, DType, IRModule, Op};
use pliant_pass::PassContext;

/// Creates a function that computes `x + x + x + ...` with `length` additions for `x` of shape `(n, 4)`.
fn chain(length: usize) -> IRModule {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let n = b.func_mut().fresh_sym("n");
    let n = b.func().syms.var(n);
    let four = b.func_mut().syms.int(4);
    let ty = b.func_mut().intern(TypeData::tensor(vec![n, four], DType::Float32));
    let x = b.param("x", ty);
    let x = b.func_mut().var_expr(x);
    let add = Op::new("relax.add");
    b.begin_dataflow().expect("no block is open");
    let mut last = x;
    for i in 0..length {
        let call = b.call_op(add, &[last, x], Attrs::default(), &[]).expect("add has a type");
        let var = b.emit(call);
        last = b.func_mut().var_expr(var);
        if i + 1 == length {
            b.mark_output(var);
        }
    }
    b.end_dataflow();
    let mut module = IRModule::new();
    module.insert("main", b.finish(last, None, true));
    module
}

#[test]
fn long_chains_pass_every_stage() {
    let ctx = PassContext::new(pliant_ops::registry());
    let pipeline = pliant_opt::pipeline("default").expect("the default pipeline exists");
    let mut module = chain(40_000);
    for pass in pipeline.passes() {
        module = pass.run(module, &ctx).expect("the pass takes the chain");
    }
    // Equal operators and equal groups of operators share their loop function.
    let kernels: Vec<&str> = module.prim_funcs().map(|(name, _)| &**name).collect();
    let sums = kernels.iter().filter(|n| n.contains("add")).count();
    assert!((1..=2).contains(&sums), "{kernels:?}");
}
