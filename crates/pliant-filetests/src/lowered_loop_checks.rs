//! Checks of lowered loop functions: after each pass of the default loop pipeline, the loop functions of the tests are well-formed
//! and print as script that parses back to the same module.

use std::path::Path;
use std::sync::Arc;

use pliant_diag::{Diagnostic, SourceFile, SourceMap};
use pliant_ir::tir::PrimFunc;
use pliant_ir::verify::verify_module;
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::{PassContext, Sequential};
use pliant_script::NoHost;

use crate::run_test::round_trip;
use crate::{Case, collect};

/// The result of lowering the loop functions of all tests in a folder.
#[derive(Debug, Default)]
pub struct Lowered {
    /// The number of lowered loop functions.
    pub functions: usize,
    /// The script of the lowered functions.
    pub text: String,
    /// Descriptions of the failures, each with the file of its test.
    pub failed: Vec<String>,
}

/// Lowers the loop functions of every test that is a valid module, including the loop functions to which legalization lowers its
/// operators. Verifies, prints and parses the result of each pass.
///
/// # Errors
/// If a folder or file cannot be read.
pub fn lower_all(root: &Path) -> std::io::Result<Lowered> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let mut out = Lowered::default();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let Some(module) = module(&file, &text) else { continue };
        match lower(&module) {
            Ok((n, text)) => {
                out.functions += n;
                out.text.push_str(&text);
            }
            Err(message) => out.failed.push(format!("{}: {message}", file.display())),
        }
    }
    Ok(out)
}

/// Returns the module of a test with its operators legalized; `None` if the test has expected
/// errors or a pass fails.
fn module(file: &Path, text: &str) -> Option<IRModule> {
    let case = Case::parse(file, text).ok()?;
    let mut sources = SourceMap::new();
    let (name, text) = (case.name.as_str().into(), case.script.as_str().into());
    let file = sources.add(SourceFile { name, text, first_line: 1, dedent: 0 });
    let ops = pliant_ops::registry();
    let (parsed, diagnostics) = pliant_script::parse(&case.script, file, &NoHost, ops);
    let module = parsed.map(pliant_script::Parsed::into_module)?;
    if diagnostics.iter().chain(&verify_module(&module, ops)).any(Diagnostic::is_error) {
        return None;
    }
    let pass = (pliant_opt::passes::find("LegalizeOps")?.make)();
    Sequential::new("lowered", vec![pass]).run_each(module, &PassContext::new(ops)).ok()
}

/// Lowers the loop functions of a module and checks them after each pass. Returns the number of
/// functions and their script.
fn lower(module: &IRModule) -> Result<(usize, String), String> {
    let mut stages: Vec<(&'static str, IRModule)> =
        pliant_tir::PASSES.iter().map(|p| (p.name, IRModule::new())).collect();
    for (name, f) in module.prim_funcs() {
        let mut stage_index = 0;
        let mut observe = |_: &'static str, f: &PrimFunc| {
            stages[stage_index].1.insert(name.clone(), BaseFunc::Prim(Arc::new(f.clone())));
            stage_index += 1;
        };
        pliant_tir::lower_observed(f, &mut observe)
            .map_err(|e| format!("loop function '{name}': {e}"))?;
    }
    let mut text = String::new();
    for (pass, stage) in &stages {
        let diagnostics = verify_module(stage, pliant_ops::registry());
        if let Some(d) = diagnostics.iter().find(|d| d.is_error()) {
            return Err(format!("the loop functions are not well-formed after {pass}: {d}"));
        }
        text = round_trip(stage).map_err(|e| format!("after {pass}: {e}"))?;
    }
    Ok((module.prim_funcs().count(), text))
}
