//! Runs a file test in the parser, the verifier, the passes and the interpreter.

use std::sync::Arc;

use pliant_diag::{Diagnostic, SourceFile, SourceMap, Span, render_all};
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::structural_equality::structural_equal;
use pliant_ir::verify::verify_module;
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::{PassContext, PassError, Sequential};
use pliant_script::NoHost;

use crate::test_case::{Case, ExpectedError, TestKind};
use crate::{compare_compiled, interpret_modules};

/// Runs a file test. Returns the output, which the caller compares with the expectation.
pub(crate) fn check(case: &Case) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let (name, text) = (case.name.as_str().into(), case.script.as_str().into());
    let file = sources.add(SourceFile { name, text, first_line: 1, dedent: 0 });
    let ops = pliant_ops::registry();
    let (parsed, mut diagnostics) = pliant_script::parse(&case.script, file, &NoHost, ops);
    let module = parsed.map(pliant_script::Parsed::into_module);
    if let Some(module) = &module {
        diagnostics.extend(verify_module(module, ops));
    }
    let Some(module) = module.filter(|_| !diagnostics.iter().any(Diagnostic::is_error)) else {
        return match_errors(case, &diagnostics, &sources).map(|()| String::new());
    };
    match &case.kind {
        TestKind::Verify if case.errors.is_empty() => Ok(String::new()),
        TestKind::Verify => {
            Err("the script was accepted, but the test expects that it is rejected".into())
        }
        TestKind::Print => {
            no_errors_expected(case)?;
            if case.execute {
                compare_compiled::compare(&module, case.compile_error.as_deref())?;
            }
            round_trip(&module)
        }
        TestKind::Run => {
            no_errors_expected(case)?;
            let text = interpret_modules::digest(&module)?;
            if case.execute {
                compare_compiled::compare(&module, case.compile_error.as_deref())?;
            }
            Ok(text)
        }
        TestKind::Opt(passes) => check_passes(case, module, passes, &sources),
    }
}

fn no_errors_expected(case: &Case) -> Result<(), String> {
    if case.errors.is_empty() {
        Ok(())
    } else {
        Err("the script was accepted, but the test expects that it is rejected".into())
    }
}

fn print(module: &IRModule) -> String {
    print_module(module, pliant_ops::registry(), &PrintOptions::complete())
}

/// Prints a module as script. Checks that the text parses back to an equal module, which prints the
/// same text.
pub(crate) fn round_trip(module: &IRModule) -> Result<String, String> {
    let text = print(module);
    let reparsed =
        pliant_script::parse_module(&text, pliant_ops::registry()).map_err(|diagnostics| {
            let list: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
            format!("the printed module does not parse: {}\n{text}", list.join("\n"))
        })?;
    structural_equal(module, &reparsed).map_err(|d| {
        format!("the printed module parses back to a different module: {d}\n{text}")
    })?;
    let second = print(&reparsed);
    if second != text {
        let diff = crate::difference(&text, &second);
        return Err(format!(
            "the printed module changes when it is parsed and printed again, {diff}"
        ));
    }
    Ok(text)
}

/// Runs passes on a module, checks the resulting module, and compares its results with those of the
/// input module. Returns the text of the resulting module.
fn check_passes(
    case: &Case,
    before: IRModule,
    passes: &[String],
    sources: &SourceMap,
) -> Result<String, String> {
    let after = match run_passes(before.clone(), passes) {
        Ok(module) => module,
        Err(error) => {
            return match_errors(case, &pass_errors(error)?, sources).map(|()| String::new());
        }
    };
    if !case.errors.is_empty() {
        return Err("the passes succeeded, but the test expects that they fail".into());
    }
    let diagnostics = verify_module(&after, pliant_ops::registry());
    if diagnostics.iter().any(Diagnostic::is_error) {
        let list: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
        return Err(format!(
            "the result of the passes is not well-formed:\n{}\n{}",
            list.join("\n"),
            print(&after)
        ));
    }
    let text = round_trip(&after)?;
    if case.execute {
        interpret_modules::compare(&before, &after)?;
        compare_compiled::compare(&before, case.compile_error.as_deref())?;
    }
    Ok(text)
}

/// Runs the named passes. Module passes run on the module, loop function passes on each of its loop
/// functions.
fn run_passes(mut module: IRModule, passes: &[String]) -> Result<IRModule, PassError> {
    let ctx = PassContext::new(pliant_ops::registry());
    for name in passes {
        if let Some(info) = pliant_opt::passes::find(name) {
            module = Sequential::new("filetest", vec![(info.make)()]).run_each(module, &ctx)?;
            continue;
        }
        let Some(pass) = pliant_tir::lowering_pipeline::pass(name) else {
            return Err(PassError::internal(format!("there is no pass '{name}'")));
        };
        for func in module.functions.values_mut() {
            if let BaseFunc::Prim(f) = func {
                let f = Arc::make_mut(f);
                pliant_tir::lowering_pipeline::run_pass(pass, f)
                    .map_err(|e| PassError::user(e.to_string()))?;
            }
        }
    }
    Ok(module)
}

/// Converts an error of a pass to diagnostics. Internal errors fail the test.
fn pass_errors(error: PassError) -> Result<Vec<Diagnostic>, String> {
    match error {
        PassError::User(list) => Ok(list
            .into_iter()
            .map(|p| Diagnostic::error("", p.message).with_span(p.span))
            .collect()),
        PassError::Unsupported(list) => Ok(list
            .iter()
            .map(|u| Diagnostic::error(pliant_diag::error_codes::PL0002, u.to_string()))
            .collect()),
        other => Err(other.to_string()),
    }
}

/// Checks that the errors among the diagnostics match the expected errors one to one.
fn match_errors(
    case: &Case,
    diagnostics: &[Diagnostic],
    sources: &SourceMap,
) -> Result<(), String> {
    let mut missing: Vec<&ExpectedError> = case.errors.iter().collect();
    let mut unexpected = Vec::new();
    for d in diagnostics.iter().filter(|d| d.is_error()) {
        let line = line_of(d.span, sources);
        let matches = |e: &&ExpectedError| {
            e.line.is_none_or(|l| Some(l) == line)
                && (e.code.is_empty() || e.code == d.code)
                && d.message.contains(&e.text)
        };
        match missing.iter().position(matches) {
            Some(i) => {
                missing.remove(i);
            }
            None => unexpected.push(d.clone()),
        }
    }
    if unexpected.is_empty() && missing.is_empty() {
        return Ok(());
    }
    let mut message = String::new();
    if !unexpected.is_empty() {
        message.push_str("unexpected errors:\n");
        message.push_str(&render_all(&unexpected, sources, false));
    }
    for e in missing {
        let line = e.line.map_or(String::new(), |l| format!(" on line {l}"));
        message.push_str(&format!("missing error{line}: '{} {}'\n", e.code, e.text));
    }
    Err(message)
}

fn line_of(span: Span, sources: &SourceMap) -> Option<u32> {
    sources.line_column(span).map(|(line, _)| line)
}
