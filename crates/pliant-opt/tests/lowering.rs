//! The lowering passes on a hand-built program: what each stage looks like, and that the end is valid bytecode.

use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::{Function, FunctionBuilder, TypeData};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{Attrs, DType, IRModule};
use pliant_opt::pipelines::MINIMUM;
use pliant_opt::vm_codegen::{CodegenInputs, codegen};
use pliant_pass::{ModulePass, PassContext};

fn context() -> PassContext {
    PassContext::new(pliant_ops::registry())
}

/// A loop function `B = A` over vectors of `n` elements (its body does not matter here).
fn copy_kernel() -> PrimFunc {
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

/// `main(x: (n, m), y: (n * m,))`: copies `y` three times through `call_tir`.
fn module() -> IRModule {
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
    for i in 0..3 {
        let any = b.func_mut().intern(TypeData::Any);
        let ty = TypeData::Callable { params: None, ret: any, pure: true };
        let ty = b.func_mut().intern(ty);
        let callee = b.func_mut().global("copy", ty);
        let inputs = b.func_mut().tuple(&[last]);
        let call = b.call_op(CALL_TIR, &[callee, inputs], Attrs::default(), &[y_ty]);
        let var = b.emit(call.expect("call_tir has a type"));
        last = b.func_mut().var_expr(var);
        if i == 2 {
            b.mark_output(var);
        }
    }
    b.end_dataflow();
    let main = b.finish(last, None, true);
    let mut module = IRModule::new();
    module.insert("copy", copy_kernel());
    module.insert("main", main);
    module
}

fn text(module: &IRModule) -> String {
    pliant_pass::text::module_text(module, pliant_ops::registry())
}

fn run(names: &[&str], module: IRModule) -> IRModule {
    names.iter().fold(module, |m, name| {
        let pass = (pliant_opt::passes::find(name).expect("the pass exists").make)();
        pass.apply(m, &context()).unwrap_or_else(|e| panic!("{name}: {e}"))
    })
}

fn main_of(module: &IRModule) -> &Function {
    module.get("main").and_then(|f| f.as_relax()).expect("main is a graph function")
}

#[test]
fn every_stage_prints_and_the_end_is_bytecode() {
    let mut m = module();
    for name in MINIMUM {
        m = run(&[name], m);
        eprintln!("# {name}\n{}", text(&m));
    }
    let inputs = CodegenInputs {
        kernel_info: &|_| None,
        type_text: &pliant_ir::print::type_text,
        kernels: Vec::new(),
        metadata: Vec::new(),
    };
    let exe = codegen(&m, inputs, &context()).expect("the lowered module is bytecode");
    eprintln!("{}", exe.as_text());
    let main = exe.vm_function("main").expect("main is bytecode");
    assert_eq!(main.params.len(), 2);
    let _ = main_of(&m);
}
