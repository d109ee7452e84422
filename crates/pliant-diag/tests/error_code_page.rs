//! Tests that `docs/reference/error-codes.md` agrees with the error codes. With `PLIANT_BLESS=1`, writes the page instead.

use std::path::Path;

use pliant_diag::error_codes;

const INTRODUCTION: &str = "# Error codes

This page is generated from `crates/pliant-diag/src/error_codes.rs`.

A report of an error starts with its code: `error[PL0103]: unknown name 'y'`. The source line and often a remedy follow. A code
never changes its meaning. The command line prints reports; in Python, `ScriptError.rendered` contains the report.
";

/// The groups of codes: the first four characters that their codes share, and what the errors of the group are about.
const GROUPS: &[(&str, &str)] = &[
    ("PL00", "The compiler"),
    ("PL01", "Scripts"),
    ("PL02", "Graph functions"),
    ("PL03", "Loop functions"),
    ("PL04", "Execution in the interpreter"),
    ("PL05", "Passes, targets and options"),
    ("PL06", "ONNX models"),
];

fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    for (prefix, title) in GROUPS {
        page += &format!("\n## {title}\n\n| code | meaning |\n|---|---|\n");
        for (code, meaning) in error_codes::ALL.iter().filter(|(code, _)| code.starts_with(prefix))
        {
            page += &format!("| `{code}` | {meaning} |\n");
        }
    }
    page
}

#[test]
fn every_code_is_in_a_group() {
    let page = page();
    for (code, _) in error_codes::ALL {
        assert!(page.contains(&format!("| `{code}` |")), "GROUPS has no group for {code}");
    }
}

#[test]
fn the_error_code_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/error-codes.md");
    let page = page();
    if std::env::var_os("PLIANT_BLESS").is_some() {
        std::fs::write(&path, page).expect("the page is writable");
        return;
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    let bless = "PLIANT_BLESS=1 cargo test --package pliant-diag";
    assert!(current == page, "docs/reference/error-codes.md is stale; regenerate it with {bless}");
}
