//! Tests that the graph passes process long chains of bindings and of functions on a small stack and in linear time. With a
//! quadratic algorithm, the test would not finish in time. `--nocapture` prints the time of each pass.

#![expect(clippy::print_stdout, reason = "times are for whoever asks with --nocapture")]

use std::time::Instant;

use pliant_ir::relax::{Callee, Expr, FunctionBuilder, Type, TypeData};
use pliant_ir::verify::verify_module;
use pliant_ir::{Attrs, DType, IRModule, Op};
use pliant_pass::{ModulePass, PassContext};
use pliant_tensor::Tensor;

const ADD: Op = Op::new("relax.add");

fn builder() -> (FunctionBuilder<'static>, Type, Expr) {
    let mut b = FunctionBuilder::new(pliant_ops::registry());
    let n = b.func_mut().fresh_sym("n");
    let n = b.func().syms.var(n);
    let four = b.func_mut().syms.int(4);
    let ty = b.func_mut().intern(TypeData::tensor(vec![n, four], DType::Float32));
    let x = b.param("x", ty);
    let x = b.func_mut().var_expr(x);
    (b, ty, x)
}

/// Creates a long function of additions, renamings, tuples, field accesses, duplicate additions, reshapes, and additions of
/// constants.
fn mixed_bindings(steps: usize) -> IRModule {
    let (mut b, ty, x) = builder();
    let one = b.func_mut().constant(Tensor::from_slice(&[], &[1.0f32]).expect("one element"));
    b.begin_dataflow().expect("no block is open");
    let (mut last, mut constant) = (x, one);
    for _ in 0..steps {
        let add = |b: &mut FunctionBuilder<'static>, x: Expr, y: Expr| {
            let call = b.call_op(ADD, &[x, y], Attrs::default(), &[]).expect("add has a type");
            let v = b.emit(call);
            b.func_mut().var_expr(v)
        };
        let sum = add(&mut b, last, x);
        let again = add(&mut b, last, x);
        let tuple = b.func_mut().tuple(&[sum, again]);
        let tuple = b.emit(tuple);
        let tuple = b.func_mut().var_expr(tuple);
        let field = b.func_mut().tuple_get_item(tuple, 1);
        let field = b.emit(field);
        let field = b.func_mut().var_expr(field);
        let alias = b.emit(field);
        let alias = b.func_mut().var_expr(alias);
        let dims = b.func().types.get(ty).dims().expect("the shape is known").to_vec();
        let shape = b.func_mut().shape(&dims);
        let reshape = b.call_op(Op::new("relax.reshape"), &[alias, shape], Attrs::default(), &[]);
        let reshaped = b.emit(reshape.expect("reshape has a type"));
        last = b.func_mut().var_expr(reshaped);
        constant = add(&mut b, constant, one);
    }
    let call = b.call_op(ADD, &[last, constant], Attrs::default(), &[]).expect("add has a type");
    let out = b.emit_output(call);
    b.end_dataflow();
    let out = b.func_mut().var_expr(out);
    let mut module = IRModule::new();
    module.insert("main", b.finish(out, None, true));
    module
}

/// Creates a module with a chain of calls: `f0` calls `f1`, `f1` calls `f2`, and so on. Each function has a tuple parameter and
/// an unread parameter.
fn call_chain(depth: usize) -> IRModule {
    let mut module = IRModule::new();
    for i in (0..depth).rev() {
        let (mut b, ty, x) = builder();
        let pair = b.func_mut().intern(TypeData::Tuple([ty, ty].into()));
        if i > 0 {
            b.param("t", pair);
            b.param("unused", ty);
        }
        let call = b.call_op(ADD, &[x, x], Attrs::default(), &[]).expect("add has a type");
        let sum = b.emit(call);
        let mut out = b.func_mut().var_expr(sum);
        if i + 1 < depth {
            let params = [ty, pair, ty].into();
            let sig = TypeData::Callable { params: Some(params), ret: ty, pure: true };
            let sig = b.func_mut().intern(sig);
            let callee = b.func_mut().global(&format!("f{}", i + 1), sig);
            let tuple = b.func_mut().tuple(&[x, x]);
            let args = [out, tuple, x];
            let call = b.func_mut().call(Callee::Expr(callee), &args, Attrs::default(), &[], ty);
            let result = b.emit(call);
            out = b.func_mut().var_expr(result);
        }
        let mut f = b.finish(out, None, true);
        f.private = i > 0;
        module.insert(format!("f{i}"), f);
    }
    module
}

/// Returns the module with dataflow blocks turned into plain blocks.
fn without_dataflow(module: IRModule, ctx: &PassContext) -> IRModule {
    pass("ToNonDataflow").run(module, ctx).expect("the pass takes the chain")
}

fn pass(name: &str) -> Box<dyn ModulePass> {
    (pliant_opt::passes::find(name).expect("the pass is in the table").make)()
}

const PASSES: &[&str] = &[
    "Normalize",
    "CanonicalizeBindings",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "FoldConstant",
    "RemoveRedundantReshape",
    "ConvertToDataflow",
    "TopologicalSort",
    "InlinePrivateFunctions",
    "RemoveUnusedParameters",
    "RemoveUnusedOutputs",
    "ExpandTupleArguments",
    "LiftTransformParams",
    "BundleModelParams",
    "NormalizeGlobalVar",
];

#[test]
fn long_chains_pass_on_a_small_stack() {
    let run = || {
        let ctx = PassContext::new(pliant_ops::registry());
        let modules = [
            ("mixed", mixed_bindings(7_000)),
            ("plain", without_dataflow(mixed_bindings(2_000), &ctx)),
            ("calls", call_chain(1_000)),
            ("empty", mixed_bindings(0)),
            ("one function", call_chain(1)),
        ];
        for (what, module) in &modules {
            for name in PASSES {
                let begin = Instant::now();
                let made = pass(name).run(module.clone(), &ctx).expect("the pass takes the chain");
                println!("{what:>12} {name:>24} {:>10.1?}", begin.elapsed());
                let wrong = verify_module(&made, pliant_ops::registry());
                let wrong = wrong.iter().find(|d| d.is_error());
                assert!(wrong.is_none(), "{name} of {what}: {}", wrong.expect("just seen"));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    thread.spawn(run).expect("a thread starts").join().expect("the passes end");
}
