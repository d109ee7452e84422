//! Tests bytecode generation: registers, calls, and unsupported input.

use crate::test_helpers::parse;
use pliant::vm_codegen::{CodegenInputs, codegen};
use pliant::{CompileOptions, Executable, IRModule};
use pliant_pass::PassError;

/// Creates a module that adds `x` to itself `length` times in a row.
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
        sources: None,
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
    // Two storages alternate, and the result has its own.
    let with_storage = text.matches("call  vm.builtin.alloc_tensor_with_storage").count();
    assert_eq!(text.matches("call  vm.builtin.alloc_storage").count() + with_storage, 3, "{text}");
}

/// Returns the instructions of the function `name` in a bytecode listing.
fn body<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!("@{name}:")).unwrap_or_else(|| panic!("{name}: {text}"));
    text[start..].split("\n\n").next().unwrap_or_default()
}

#[test]
fn loops_release_dead_values_and_omit_redundant_checks() {
    let ctx = pliant::pass_context(&CompileOptions::default());
    let source = r#"
@I.ir_module
class Module:
    @R.function
    def dead(x: R.Tensor(("n",), "float32"), turns: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        acc = x
        for i in R.range(turns):
            acc = R.add(acc, x)
        return acc

    @R.function
    def read(x: R.Tensor(("n",), "float32"), turns: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        acc = x
        for i in R.range(turns):
            acc = R.add(acc, acc)
        return R.add(acc, x)

    @R.function
    def count(turns: R.Prim("int64")) -> R.Prim("int64"):
        acc = R.prim_value(0)
        for i in R.range(turns):
            acc = R.prim_value(7)
        return acc
"#;
    let module = pliant::transform(parse(source), &["default"], &ctx).unwrap();
    let exe = generate(&module).unwrap();
    let text = exe.as_text();
    let kill = "call  vm.builtin.kill_object in: %0 ";
    // The initial state is released before the first iteration.
    let (before, after) = body(&text, "dead").split_once("\n  if ").unwrap();
    assert!(before.contains(kill), "{text}");
    // Each iteration releases its storage and its sum. After the loop, the state and the captured
    // values of the loop functions are released.
    assert_eq!(after.matches("vm.builtin.kill_object").count(), 7, "{text}");
    assert!(!body(&text, "read").contains(kill), "{text}");
    // An iteration calls no function, creates no tuple, and omits checks that types prove.
    let (_, iteration) = body(&text, "count").split_once("  if ").unwrap();
    let (iteration, _) = iteration.split_once("  goto").unwrap();
    let calls: Vec<&str> =
        iteration.lines().filter_map(|line| line.split_whitespace().nth(1)).skip(1).collect();
    assert_eq!(calls, ["vm.builtin.compute_prim_value", "vm.builtin.copy"], "{text}");
    for function in ["count_cond", "count_body", "read_body"] {
        assert!(!text.contains(&format!("@{function}")), "{text}");
    }
    assert!(!body(&text, "read").contains("check_tensor_info in: %7"), "{text}");
}

#[test]
fn unlowered_operators_are_reported() {
    let error = generate(&chain(1)).expect_err("R.add is left");
    assert!(error.to_string().contains("operator relax.add was not lowered"), "{error}");
}
