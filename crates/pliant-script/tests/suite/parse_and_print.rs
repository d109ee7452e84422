//! Shared test code: parses scripts, prints modules, and formats errors.

use pliant_diag::{Diagnostic, SourceFile, SourceMap};
use pliant_ir::IRModule;
use pliant_ir::print::{PrintOptions, print_module};

/// Parses a source text, which must be valid, and verifies the module.
#[allow(dead_code, reason = "each test file uses some of these")]
pub fn module(text: &str) -> IRModule {
    match pliant_script::parse_module(text, pliant_ops::registry()) {
        Ok(module) => {
            let found = pliant_ir::verify::verify_module(&module, pliant_ops::registry());
            assert!(found.is_empty(), "{}\n{}", report(text, &found), print(&module));
            module
        }
        Err(errors) => panic!("{}\n{text}", report(text, &errors)),
    }
}

/// The printed form of a module.
#[allow(dead_code, reason = "each test file uses some of these")]
pub fn print(module: &IRModule) -> String {
    print_module(
        module,
        pliant_ops::registry(),
        &PrintOptions { header: false, ..PrintOptions::complete() },
    )
}

/// Checks that the printed form of a text parses to the same program and prints identically. Returns the printed form.
#[allow(dead_code, reason = "each test file uses some of these")]
pub fn fixed_point(text: &str) -> String {
    let first = module(text);
    let once = print(&first);
    let second = module(&once);
    if let Err(difference) = pliant_ir::structural_equality::structural_equal(&first, &second) {
        panic!("the parse of a print is another program: {difference:?}\n{once}");
    }
    let twice = print(&second);
    assert_eq!(once, twice, "printing the parse of a print changes it");
    once
}

/// Formats each error as `line:column: message (help)`, followed by the source text at this
/// location.
#[allow(dead_code, reason = "each test file uses some of these")]
pub fn report(text: &str, errors: &[Diagnostic]) -> String {
    let mut map = SourceMap::new();
    map.add(SourceFile { name: "test.py".into(), text: text.into(), first_line: 1, dedent: 0 });
    let lines: Vec<String> = errors
        .iter()
        .map(|d| {
            let (line, column) = map.line_column(d.span).unwrap_or((0, 0));
            let at = text.get(d.span.start as usize..d.span.end as usize).unwrap_or("");
            let help = d.help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
            format!(
                "{line}:{column} `{}` {}: {}{help}",
                at.lines().next().unwrap_or(""),
                d.code,
                d.message
            )
        })
        .collect();
    lines.join("\n")
}

/// Formats the errors of an invalid text. Panics if the text is valid.
#[allow(dead_code, reason = "each test file uses some of these")]
pub fn errors(text: &str) -> String {
    match pliant_script::parse_module(text, pliant_ops::registry()) {
        Ok(module) => panic!("no error in\n{text}\n{}", print(&module)),
        Err(errors) => report(text, &errors),
    }
}
