//! File tests: scripts with their expected output, and checks that passes and the compiler do not
//! change the results of a script.
//!
//! A test is a `.py` file under `tests/filetests/`. It starts with comment lines: first a description of what the test shows,
//! then the kind of the test:
//!
//! | kind | what is tested |
//! |---|---|
//! | `# test print` | parsing and printing: the expectation is the printed module, which must parse back to the same |
//! | `# test verify` | the verifier: it must reject the script as annotated |
//! | `# test opt --passes=A,B` | the passes: the expectation is the resulting module |
//! | `# test run` | the interpreter: the expectation is the results of each public graph function, as readable text |
//!
//! These directives may follow:
//!
//! | directive | meaning |
//! |---|---|
//! | `# fails: PL0210 part of the message` | an expected error that may have any source location |
//! | `# no-run: reason` | the script is not executed |
//! | `# no-compile: part of the message` | the compiler must reject the module with such a message |
//! | `# known-bug: part of the message` | the test must fail with such a message |
//!
//! A test with `no-compile` or `known-bug` fails as soon as that directive is no longer true. The script follows. A line of the
//! script that must be rejected ends with `# error: PL0203 part of the message`. After a line `# expect` comes the expectation,
//! each line prefixed with `# `. `PLIANT_BLESS=1` writes it.
//!
//! Every module that an `opt` test produces is verified and printed, and must parse back to an equal module. The interpreter
//! executes every public graph function before and after the passes, with the symbols at [`interpret_modules::SIZES`] and the
//! same inputs, and the results are compared. The script of each test without expected errors is also compiled, and its results
//! in the virtual machine are compared with the interpreter's at the same sizes. Scripts may call the packed functions of
//! `packed_functions`.

mod compare_compiled;
pub mod interpret_modules;
mod lowered_loop_checks;
mod packed_functions;
mod random_inputs;
mod run_test;
mod test_case;

use std::path::{Path, PathBuf};

pub use lowered_loop_checks::{Lowered, lower_all};
pub use test_case::{Case, TestKind};

/// The result of running all tests in a folder.
#[derive(Debug, Default)]
pub struct Report {
    /// The files of the tests that passed.
    pub passed: Vec<PathBuf>,
    /// The files of the tests that failed, with the reasons.
    pub failed: Vec<(PathBuf, String)>,
    /// The files of the tests whose expectation was updated.
    pub blessed: Vec<PathBuf>,
}

/// Runs every test under `root` whose path contains `filter`. With `bless`, replaces expectations that differ from the
/// output.
///
/// # Errors
/// If a folder or file cannot be read or written.
pub fn run_all(root: &Path, filter: &str, bless: bool) -> std::io::Result<Report> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.retain(|f| f.to_string_lossy().contains(filter));
    files.sort();
    let mut report = Report::default();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let outcome = Case::parse(&file, &text).and_then(|case| {
            let actual = run_test::check(&case);
            let actual = match (&case.known_bug, actual) {
                (None, actual) => actual?,
                (Some(bug), Err(message)) if message.contains(bug) => case.expect.clone(),
                (Some(_), Err(message)) => return Err(message),
                (Some(bug), Ok(_)) => {
                    return Err(format!(
                        "the test passes, so the known bug is fixed; remove the line `# known-bug: {bug}`"
                    ));
                }
            };
            Ok((case, actual))
        });
        match outcome {
            Err(message) => report.failed.push((file, message)),
            Ok((case, actual)) if actual == case.expect => report.passed.push(file),
            Ok((case, actual)) if bless => {
                std::fs::write(&file, case.blessed(&text, &actual))?;
                report.blessed.push(file);
            }
            Ok((case, actual)) => {
                let message = format!(
                    "the result differs from the expectation (PLIANT_BLESS=1 accepts it):\n{}",
                    difference(&case.expect, &actual)
                );
                report.failed.push((file, message));
            }
        }
    }
    Ok(report)
}

fn collect(dir: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "py") {
            out.push(path);
        }
    }
    Ok(())
}

/// A short diff of two texts: up to eight lines of each, starting at the first line that differs.
fn difference(expected: &str, actual: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let common = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let mut out = format!("from line {} on:\n", common + 1);
    for line in old.iter().skip(common).take(8) {
        out.push_str(&format!("- {line}\n"));
    }
    for line in new.iter().skip(common).take(8) {
        out.push_str(&format!("+ {line}\n"));
    }
    out
}
