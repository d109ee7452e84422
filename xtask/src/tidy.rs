//! Checks the style of source files: lengths of files, functions and lines, module comments, no paths of development machines, and
//! no names of missing source files in documentation.

use std::path::Path;
use std::process::Command;

/// Maximum number of lines of a source file.
const MAX_LINES: usize = 700;
/// Maximum number of lines of a function.
const MAX_FUNCTION_LINES: usize = 80;
/// Functions that may exceed [`MAX_FUNCTION_LINES`]: the file, the name and the reason.
const ALLOWED_LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/pliant-pass/src/pattern/impossible_patterns.rs",
        "write_pattern",
        "one arm for each kind of pattern",
    ),
    (
        "crates/pliant-pass/src/pattern/pattern_matcher.rs",
        "expand",
        "one arm for each kind of pattern",
    ),
    ("crates/pliant-ir/src/print/tir.rs", "item", "one arm for each kind of statement"),
    (
        "crates/pliant-onnx/src/ops/nn/image_ops.rs",
        "deform_conv",
        "one operator, from its inputs to its sums",
    ),
];
/// Maximum number of columns of a line of a Rust file.
const MAX_COLUMNS: usize = 132;

/// Returns a message for every violation of a rule.
///
/// # Errors
/// If git cannot list the files.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "*.rs", "*.py", "*.pyi", "*.md", "*.toml", "Makefile"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run git ls-files: {e}"))?;
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut problems = Vec::new();
    for path in listing.lines().filter(|p| !p.contains("/generated/")) {
        // A file deleted in the working tree is still listed until the deletion is committed.
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        check_file(path, &text, &mut problems);
        if path.ends_with(".md") && path != "CHANGELOG.md" {
            check_named_files(path, &text, &listing, &mut problems);
        }
    }
    check_allowed_long_functions(root, &mut problems);
    Ok(problems)
}

/// Checks that the repository has each Rust file that a page of documentation names between backticks. A name may omit leading
/// folders. The changelog is not checked, since it names files of earlier versions.
fn check_named_files(path: &str, text: &str, listing: &str, problems: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            let is_path = name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
            let exists = |file: &str| {
                file.strip_suffix(name).is_some_and(|p| p.is_empty() || p.ends_with('/'))
            };
            let exists =
                listing.lines().any(|file| exists(file) || exists(&file.replace("/src/", "/")));
            if is_path && !exists {
                problems.push(format!(
                    "{path}:{}: names the file {name}, which does not exist",
                    number + 1
                ));
            }
        }
    }
}

fn check_file(path: &str, text: &str, problems: &mut Vec<String>) {
    if path.contains("/generated/") {
        return;
    }
    let lines = text.lines().count();
    let is_code = path.ends_with(".rs") || path.ends_with(".py");
    if is_code && lines > MAX_LINES {
        problems.push(format!("{path}: has {lines} lines, but at most {MAX_LINES} are allowed"));
    }
    if path.ends_with(".rs") {
        let is_test = path.contains("/tests/") || path.contains("/examples/");
        if !text.starts_with("//!") && !is_test {
            problems.push(format!(
                "{path}: does not start with a `//!` comment that describes the module"
            ));
        }
        check_functions(path, text, problems);
        for (number, line) in text.lines().enumerate() {
            // Strings and tables cannot be wrapped.
            let exempt = is_test || line.contains('"') || line.starts_with("//! |");
            if line.chars().count() > MAX_COLUMNS && !exempt {
                problems
                    .push(format!("{path}:{}: is longer than {MAX_COLUMNS} columns", number + 1));
            }
        }
    }
    if path.ends_with(".py") && lines > 0 && !is_script(path) {
        let start = text.trim_start_matches("#!/usr/bin/env python3\n");
        if !start.starts_with("\"\"\"") && !start.starts_with("r\"\"\"") {
            problems.push(format!("{path}: does not start with a docstring"));
        }
    }
    for machine_path in [concat!("/", "work/"), concat!("/", "tmp/t/"), concat!("/", "root/")] {
        if text.contains(machine_path) {
            problems.push(format!(
                "{path}: contains the path `{machine_path}` of a development machine"
            ));
        }
    }
}

/// Reports functions that are longer than [`MAX_FUNCTION_LINES`].
fn check_functions(path: &str, text: &str, problems: &mut Vec<String>) {
    for (line, name, length) in long_functions(text) {
        if !ALLOWED_LONG_FUNCTIONS.iter().any(|row| row.0 == path && row.1 == name) {
            problems.push(format!(
                "{path}:{line}: '{name}' has {length} lines, at most {MAX_FUNCTION_LINES}"
            ));
        }
    }
}

/// Reports entries of [`ALLOWED_LONG_FUNCTIONS`] whose functions are short or do not exist.
fn check_allowed_long_functions(root: &Path, problems: &mut Vec<String>) {
    for (path, name, _) in ALLOWED_LONG_FUNCTIONS {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        if !long_functions(&text).iter().any(|long| long.1 == *name) {
            problems.push(format!(
                "{path}: '{name}' is not too long; remove its entry from ALLOWED_LONG_FUNCTIONS"
            ));
        }
    }
}

/// Returns the line, name and length of each function that is longer than [`MAX_FUNCTION_LINES`].
/// Since the code is formatted, a body ends at the first closing brace with the indentation of its
/// `fn`.
fn long_functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        // Skips declarations, which end with a semicolon, and bodies of one line.
        let body_start =
            lines[at..].iter().position(|l| l.ends_with('{') || l.ends_with([';', '}']));
        let Some(body_start) = body_start.filter(|&n| lines[at + n].ends_with('{')) else {
            continue;
        };
        let is_end = |l: &&str| l.strip_prefix(indent) == Some("}");
        let Some(rest) = lines[at + body_start..].iter().position(is_end) else { continue };
        if body_start + rest + 1 > MAX_FUNCTION_LINES {
            long.push((at + 1, name, body_start + rest + 1));
        }
    }
    long
}

/// Returns the name of the function that begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(' ');
    let is_modifier = |w: &str| {
        w.starts_with("pub") || matches!(w, "const" | "async" | "unsafe" | "extern" | "\"C\"")
    };
    let word = words.by_ref().find(|w| !is_modifier(w))?;
    let name = words.next().filter(|_| word == "fn")?;
    name.split(['(', '<']).next()
}

/// Whether a Python file is a program in the script language. Such files need no docstrings.
fn is_script(path: &str) -> bool {
    path.contains("filetests")
        || path.contains("tests/corpus")
        || path.contains("/tests/suite/programs/")
}
