//! The code generator for the machine: registers, calls, and what it refuses.

mod common;

use common::parse;
use pliant::vm_codegen::{CodegenInputs, codegen};
use pliant::{CompileOptions, Executable, IRModule};
use pliant_pass::PassError;

/// A chain of additions of `x` to itself.
fn chain(length: usize) -> IRModule {
    let mut body = String::from(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        v0: R.Tensor((n, 4), dtype="float32") = R.add(x, x)
"#,
    );
    for i in 1..length {
        body.push_str(&format!(
            "        v{i}: R.Tensor((n, 4), dtype=\"float32\") = R.add(v{}, x)\n",
            i - 1
        ));
    }
    body.push_str(&format!("        return v{}\n", length - 1));
    parse(&body)
}

fn generate(module: &IRModule) -> Result<Executable, PassError> {
    let inputs = CodegenInputs {
        kernel_info: &|_| None,
        type_text: &pliant_ir::print::type_text,
        kernels: Vec::new(),
        metadata: vec![("target".into(), "none".into())],
    };
    codegen(module, inputs, &pliant::pass_context(&CompileOptions::default()))
}

#[test]
fn registers_are_reused_and_sizes_computed_once() {
    let ctx = pliant::pass_context(&CompileOptions::default());
    let module = pliant::transform(chain(40), &["default"], &ctx).unwrap();
    let exe = generate(&module).unwrap();
    let text = exe.as_text();
    let main = exe.vm_function("main").unwrap();
    assert_eq!(main.params[0].name, "x");
    assert!(main.num_regs <= 12, "{text}");
    assert_eq!(exe.metadata().get("target").map(String::as_str), Some("none"));
    assert_eq!(text.matches("call  add ").count(), 40, "{text}");
    assert_eq!(text.matches("call  shape_func_main_0").count(), 1, "{text}");
    // Two storages take turns, and the result has its own.
    assert_eq!(text.matches("call  vm.builtin.alloc_storage").count(), 3, "{text}");
}

#[test]
fn what_is_not_lowered_is_reported() {
    let error = generate(&chain(1)).expect_err("R.add is left");
    assert!(error.to_string().contains("operator relax.add is left"), "{error}");
}
