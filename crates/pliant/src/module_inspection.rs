//! Inspection of programs: prints modules, verifies them, and prints the text of any stage of a compilation.

use pliant_diag::Severity;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::{IRModule, verify::verify_module};

use crate::compile::{compile, pass_context};
use crate::compile_options::{CompileOptions, Target};
use crate::error::Error;
use crate::loop_codegen;
use crate::pass_registry::find_pass;

/// Prints a module as script, including its constants, so that the text parses back.
///
/// # Examples
/// ```
/// use pliant::{parse, print};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let text = print(&module);
/// assert!(text.contains("R.add(x, x)"));
/// let again = parse("printed.py", &text).map_err(|(error, _)| error)?.module;
/// assert_eq!(print(&again), text);
/// # Ok(())
/// # }
/// ```
pub fn print(module: &IRModule) -> String {
    text(module, true)
}

fn text(module: &IRModule, constants: bool) -> String {
    let options = PrintOptions { show_meta: constants, ..PrintOptions::default() };
    print_module(module, pliant_ops::registry(), &options)
}

/// Checks that a module is well-formed.
///
/// # Examples
/// ```
/// use pliant::verify;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @R.function
///     def helper(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///         return R.exp(x)
///
///     @R.function
///     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///         cls = Module
///         y = cls.helper(x)
///         return y
/// "#;
/// let mut module = pliant::parse("exp.py", script).map_err(|(error, _)| error)?.module;
/// verify(&module)?;
/// module.functions.shift_remove("helper");
/// let error = verify(&module).expect_err("main calls a missing function");
/// assert!(error.to_string().contains("helper"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error with all problems.
pub fn verify(module: &IRModule) -> Result<(), Error> {
    let mut findings = verify_module(module, pliant_ops::registry());
    findings.retain(|d| d.severity == Severity::Error);
    if findings.is_empty() {
        return Ok(());
    }
    Err(Error::Compile(pliant_diag::Error::User(findings)))
}

/// Returns the text of a stage of the default compilation. `stage` is `input`, the name of a pass
/// (the module after that pass), `loops` (the lowered loop functions) or `bytecode`. Without
/// `constants`, large constants are omitted, so the text does not parse back.
///
/// # Examples
/// ```
/// use pliant::stage_text;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// assert!(!stage_text(module.clone(), "input", true)?.contains("call_tir"));
/// assert!(stage_text(module.clone(), "LegalizeOps", true)?.contains("call_tir"));
/// assert!(stage_text(module, "bytecode", true)?.contains("main"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error for an unknown stage, or else the errors of [`compile`].
pub fn stage_text(module: IRModule, stage: &str, constants: bool) -> Result<String, Error> {
    let options = CompileOptions::default();
    match stage {
        "input" => return Ok(text(&module, constants)),
        "bytecode" => return Ok(compile(module, &options)?.executable().as_text()),
        _ => {}
    }
    let ctx = pass_context(&options);
    let pipeline = pliant_opt::pipeline("default")
        .ok_or_else(|| Error::internal("stages", "there is no default pipeline"))?;
    let wanted = match (stage, find_pass(stage)) {
        ("loops", _) => None,
        (_, Ok(pass)) => Some(pass.name().to_string()),
        (_, Err(_)) => {
            let help = "the stages are input, loops, bytecode and the passes that `pliant opt --list` shows";
            return Err(Error::option(format!("there is no compilation stage '{stage}'"), help));
        }
    };
    let mut module = module;
    for pass in pipeline.passes() {
        module = pass.apply_as_step(module, &ctx)?;
        if wanted.as_deref() == Some(pass.name()) {
            return Ok(text(&module, constants));
        }
    }
    match wanted {
        None => {
            let backend = loop_codegen::backend(Target::Auto.first_tier()?);
            Ok(text(&loop_codegen::lower(&module, &ctx, &*backend)?, constants))
        }
        Some(name) => Err(Error::option(
            format!("the pass '{name}' is not part of the default compilation"),
            "`pliant opt --passes=...` runs passes in any order",
        )),
    }
}
