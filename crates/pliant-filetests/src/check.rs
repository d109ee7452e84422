//! Runs a test.

use std::sync::Arc;

use pliant_diag::{Diagnostic, SourceFile, SourceMap, Span, render_all};
use pliant_ir::equal::structural_equal;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::verify::verify_module;
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::{PassContext, PassError, Sequential};
use pliant_script::NoHost;

use crate::case::{Case, Expected, Kind};
use crate::{compiled, exec};

/// Runs the test that the header describes. Returns the text to compare with the expectation.
pub(crate) fn check(case: &Case) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let (name, text) = (case.name.as_str().into(), case.script.as_str().into());
    let file = sources.add(SourceFile { name, text, first_line: 1, dedent: 0 });
    let ops = pliant_ops::registry();
    let (parsed, mut found) = pliant_script::parse(&case.script, file, &NoHost, ops);
    let module = parsed.map(pliant_script::Parsed::into_module);
    if let Some(module) = &module {
        found.extend(verify_module(module, ops));
    }
    let Some(module) = module.filter(|_| !found.iter().any(Diagnostic::is_error)) else {
        return match_errors(case, &found, &sources).map(|()| String::new());
    };
    match &case.kind {
        Kind::Verify if case.errors.is_empty() => Ok(String::new()),
        Kind::Verify => Err("the script was accepted, but must be refused".into()),
        Kind::Print => {
            no_errors_expected(case)?;
            if case.execute {
                compiled::compare(&module, case.refusal.as_deref())?;
            }
            round_trip(&module)
        }
        Kind::Run => {
            no_errors_expected(case)?;
            let text = exec::digest(&module)?;
            if case.execute {
                compiled::compare(&module, case.refusal.as_deref())?;
            }
            Ok(text)
        }
        Kind::Opt(passes) => optimise(case, module, passes, &sources),
    }
}

fn no_errors_expected(case: &Case) -> Result<(), String> {
    if case.errors.is_empty() {
        Ok(())
    } else {
        Err("the script was accepted, but must be refused".into())
    }
}

fn print(module: &IRModule) -> String {
    print_module(module, pliant_ops::registry(), &PrintOptions::complete())
}

/// Prints a module, and checks that the text parses back to the same module and prints the
/// same again.
pub(crate) fn round_trip(module: &IRModule) -> Result<String, String> {
    let text = print(module);
    let again = pliant_script::parse_module(&text, pliant_ops::registry()).map_err(|found| {
        let list: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        format!("the print does not parse back: {}\n{text}", list.join("\n"))
    })?;
    structural_equal(module, &again)
        .map_err(|d| format!("the print parses back to another module: {d}\n{text}"))?;
    let second = print(&again);
    if second != text {
        let diff = crate::difference(&text, &second);
        return Err(format!("printing what the print parses to changes the text, {diff}"));
    }
    Ok(text)
}

fn optimise(
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
        return Err("the passes succeeded, but must fail".into());
    }
    let found = verify_module(&after, pliant_ops::registry());
    if found.iter().any(Diagnostic::is_error) {
        let list: Vec<String> = found.iter().map(Diagnostic::to_string).collect();
        return Err(format!(
            "the result is not well-formed:\n{}\n{}",
            list.join("\n"),
            print(&after)
        ));
    }
    let text = round_trip(&after)?;
    if case.execute {
        exec::compare(&before, &after)?;
        compiled::compare(&before, case.refusal.as_deref())?;
    }
    Ok(text)
}

/// Runs passes by name: module passes, and loop function passes on the whole module.
fn run_passes(mut module: IRModule, passes: &[String]) -> Result<IRModule, PassError> {
    let ctx = PassContext::new(pliant_ops::registry());
    for name in passes {
        if let Some(info) = pliant_opt::passes::find(name) {
            module = Sequential::new("filetest", vec![(info.make)()]).run_each(module, &ctx)?;
            continue;
        }
        let Some(pass) = pliant_tir::pipeline::pass(name) else {
            return Err(PassError::internal(format!("there is no pass '{name}'")));
        };
        for func in module.functions.values_mut() {
            if let BaseFunc::Prim(f) = func {
                let f = Arc::make_mut(f);
                pliant_tir::pipeline::run_pass(pass, f)
                    .map_err(|e| PassError::user(e.to_string()))?;
            }
        }
    }
    Ok(module)
}

/// The errors of a pass as diagnostics. Its internal errors are test failures.
fn pass_errors(error: PassError) -> Result<Vec<Diagnostic>, String> {
    match error {
        PassError::User(list) => Ok(list
            .into_iter()
            .map(|p| Diagnostic::error("", p.message).with_span(p.span))
            .collect()),
        PassError::Unsupported(list) => Ok(list
            .iter()
            .map(|u| Diagnostic::error(pliant_diag::codes::PL0002, u.to_string()))
            .collect()),
        other => Err(other.to_string()),
    }
}

/// Checks that every error is expected, and that every expected error occurs.
fn match_errors(case: &Case, found: &[Diagnostic], sources: &SourceMap) -> Result<(), String> {
    let mut open: Vec<&Expected> = case.errors.iter().collect();
    let mut surplus = Vec::new();
    for d in found.iter().filter(|d| d.is_error()) {
        let line = line_of(d.span, sources);
        let fits = |e: &&Expected| {
            e.line.is_none_or(|l| Some(l) == line)
                && (e.code.is_empty() || e.code == d.code)
                && d.message.contains(&e.text)
        };
        match open.iter().position(fits) {
            Some(i) => {
                open.remove(i);
            }
            None => surplus.push(d.clone()),
        }
    }
    if surplus.is_empty() && open.is_empty() {
        return Ok(());
    }
    let mut message = String::new();
    if !surplus.is_empty() {
        message.push_str("errors that nobody announced:\n");
        message.push_str(&render_all(&surplus, sources, false));
    }
    for e in open {
        let line = e.line.map_or(String::new(), |l| format!(" on line {l}"));
        message.push_str(&format!("no error{line} '{} {}'\n", e.code, e.text));
    }
    Err(message)
}

fn line_of(span: Span, sources: &SourceMap) -> Option<u32> {
    sources.line_column(span).map(|(line, _)| line)
}
