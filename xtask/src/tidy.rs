//! Tidiness that can be counted: sizes of files and functions, opening doc comments, traces of a machine.

use std::path::Path;
use std::process::Command;

/// Lines of a source file above which it must be cut.
const MAX_LINES: usize = 900;
/// Lines of a function above which it must be cut.
const MAX_FUNCTION: usize = 80;
/// Functions that may be longer, and why.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/pliant-pass/src/pattern/check.rs",
        "write_pattern",
        "one arm for each kind of pattern",
    ),
    ("crates/pliant-pass/src/pattern/matcher.rs", "expand", "one arm for each kind of pattern"),
    ("crates/pliant-ir/src/print/tir.rs", "item", "one arm for each kind of statement"),
    ("crates/pliant-ops/src/ops/vision/nms.rs", "suppress", "one loop nest, as it is generated"),
    (
        "crates/pliant-onnx/src/ops/nn/image.rs",
        "deform_conv",
        "one operator, from its inputs to its sums",
    ),
];
/// Columns of a line of Rust.
const MAX_COLUMNS: usize = 132;

/// Every file that breaks a rule.
///
/// # Errors
/// When git cannot list the files or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "*.rs", "*.py", "*.pyi", "*.md", "*.toml", "Makefile"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut problems = Vec::new();
    for path in listing.lines().filter(|p| !p.contains("/generated/")) {
        // A file deleted in the working tree is still listed until the deletion is committed.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        check_file(path, &text, &mut problems);
    }
    check_excuses(root, &mut problems);
    Ok(problems)
}

fn check_file(path: &str, text: &str, problems: &mut Vec<String>) {
    if path.contains("/generated/") {
        return;
    }
    let lines = text.lines().count();
    let is_code = path.ends_with(".rs") || path.ends_with(".py");
    if is_code && lines > MAX_LINES {
        problems.push(format!("{path}: {lines} lines, at most {MAX_LINES}"));
    }
    if path.ends_with(".rs") {
        let is_test = path.contains("/tests/") || path.contains("/examples/");
        if !text.starts_with("//!") && !is_test {
            problems.push(format!("{path}: opens without `//!` saying what it owns"));
        }
        check_functions(path, text, problems);
        for (number, line) in text.lines().enumerate() {
            // Strings are as long as what they say, and tables cannot be wrapped.
            let exempt = is_test || line.contains('"') || line.starts_with("//! |");
            if line.chars().count() > MAX_COLUMNS && !exempt {
                problems.push(format!("{path}:{}: longer than {MAX_COLUMNS} columns", number + 1));
            }
        }
    }
    if path.ends_with(".py") && lines > 0 && !is_script(path) {
        let opens = text.trim_start_matches("#!/usr/bin/env python3\n");
        if !opens.starts_with("\"\"\"") && !opens.starts_with("r\"\"\"") {
            problems.push(format!("{path}: opens without a docstring"));
        }
    }
    for trace in [concat!("/", "work/"), concat!("/", "tmp/t/"), concat!("/", "root/")] {
        if text.contains(trace) {
            problems.push(format!("{path}: holds the machine path `{trace}`"));
        }
    }
}

/// Tells the functions that are too long.
fn check_functions(path: &str, text: &str, problems: &mut Vec<String>) {
    for (line, name, length) in long_functions(text) {
        if !LONG_FUNCTIONS.iter().any(|row| row.0 == path && row.1 == name) {
            problems.push(format!(
                "{path}:{line}: '{name}' has {length} lines, at most {MAX_FUNCTION}"
            ));
        }
    }
}

/// Tells excuses for functions that are short or gone.
fn check_excuses(root: &Path, problems: &mut Vec<String>) {
    for (path, name, _) in LONG_FUNCTIONS {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        if !long_functions(&text).iter().any(|long| long.1 == *name) {
            problems.push(format!("{path}: '{name}' needs no excuse for its length any more"));
        }
    }
}

/// The functions that are too long: line, name and length. The code is formatted, so that a body ends at a brace beneath its
/// `fn`.
fn long_functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        // What ends with a semicolon is declared here, and what ends on its line is short.
        let opens = lines[at..].iter().position(|l| l.ends_with('{') || l.ends_with([';', '}']));
        let Some(opens) = opens.filter(|&n| lines[at + n].ends_with('{')) else { continue };
        let closes = |l: &&str| l.strip_prefix(indent) == Some("}");
        let Some(rest) = lines[at + opens..].iter().position(closes) else { continue };
        if opens + rest + 1 > MAX_FUNCTION {
            found.push((at + 1, name, opens + rest + 1));
        }
    }
    found
}

/// The name of the function that begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let modifier = |w: &str| {
        w.starts_with("pub") || matches!(w, "const" | "async" | "unsafe" | "extern" | "\"C\"")
    };
    let word = words.by_ref().find(|w| !modifier(w))?;
    let name = words.next().filter(|_| word == "fn")?;
    name.split(['(', '<']).next()
}

/// Whether a Python file is a program in the script language, which has no docstrings.
fn is_script(path: &str) -> bool {
    path.contains("filetests")
        || path.contains("tests/corpus")
        || path.contains("/tests/suite/programs/")
}
