//! Every stage takes time linear in the program: a chain of operators of twice the length takes about twice as long.

use std::time::{Duration, Instant};

use pliant_ir::relax::{FunctionBuilder, TypeData};
use pliant_ir::{Attrs, DType, IRModule, Op};
use pliant_pass::PassContext;

/// `x + x + x + ...` over `(n, 4)`.
fn chain(length: usize) -> IRModule {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let n = b.func_mut().fresh_sym("n");
    let n = b.func().syms.var(n);
    let four = b.func_mut().syms.int(4);
    let ty = b.func_mut().intern(TypeData::tensor(vec![n, four], DType::Float32));
    let x = b.param("x", ty);
    let x = b.func_mut().var_expr(x);
    let add = Op("relax.add");
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

/// How long each pass takes on a chain of that length.
fn times(length: usize) -> Vec<(String, Duration)> {
    let ctx = PassContext::new(pliant_ops::registry());
    let pipeline = pliant_opt::pipeline("default").expect("the default pipeline exists");
    let start = Instant::now();
    let mut module = chain(length);
    let mut out = vec![("build".to_string(), start.elapsed())];
    for pass in pipeline.passes() {
        let start = Instant::now();
        module = pass.run(module, &ctx).expect("the pass takes the chain");
        out.push((pass.name().to_string(), start.elapsed()));
    }
    assert_eq!(module.prim_funcs().filter(|(n, _)| n.starts_with("add")).count(), 1);
    out
}

#[test]
fn stages_are_linear() {
    times(100);
    let (small, large) = (times(5_000), times(40_000));
    for ((name, a), (_, b)) in small.iter().zip(&large) {
        eprintln!("{name:<24}{a:>12.2?}{b:>12.2?}");
        // Eight times the work in at most 24 times the time, with room for a busy machine.
        let limit = *a * 24 + Duration::from_millis(100);
        assert!(*b < limit, "{name}: {a:?} for 5,000 bindings, {b:?} for 40,000");
    }
}
