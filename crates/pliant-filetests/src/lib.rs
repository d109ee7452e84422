//! File tests: a script with its expectation below, and a check that the result of passes computes
//! the same as the input.
//!
//! A test is a `.py` file under `tests/filetests/`. Its first line states what is done with
//! the script:
//!
//! | header | what is tested |
//! |---|---|
//! | `# test print` | parsing and printing: the expectation is the print, which parses back to the same |
//! | `# test verify` | the verifier refuses the script as annotated |
//! | `# test opt --passes=A,B` | the passes: the expectation is the resulting module |
//! | `# test run` | the interpreter: the expectation is a digest of the results |
//!
//! The script follows, then a line `# expect` and the expectation, each line prefixed with `# `.
//! `PLIANT_BLESS=1` writes it. A line of the script that must be refused ends with
//! `# error: PL0203 part of the message`. An error without a line is declared in the header:
//! `# fails: PL0210 part of the message`. `# no-run` in the header, followed by the reason,
//! disables execution. `# no-compile: message` states that the compiler refuses the module, and
//! `# known-bug: message` that the test currently fails, in each case with a message that contains
//! this text; the test fails as soon as that is no longer true.
//!
//! Every module that an `opt` test produces is verified, printed, parsed back and compared. Every
//! public graph function is executed by the interpreter before and after the passes, with symbols
//! at [`exec::SIZES`] and the same inputs, and the results are compared. The script of each test
//! that is not about errors is also compiled as a whole, and the machine code is compared with the
//! interpreter at the same sizes. Scripts may call the packed functions of `packed`.

mod case;
mod check;
mod compiled;
pub mod exec;
mod inputs;
mod lowered;
mod packed;

use std::path::{Path, PathBuf};

pub use case::{Case, Kind};
pub use lowered::{Lowered, lower_all};

/// The result of all tests under a folder.
#[derive(Debug, Default)]
pub struct Report {
    /// The files that passed.
    pub passed: Vec<PathBuf>,
    /// The files that failed, with the reasons.
    pub failed: Vec<(PathBuf, String)>,
    /// The files whose expectation was written.
    pub blessed: Vec<PathBuf>,
}

/// Runs every test under `root` whose path contains `filter`. With `bless`, writes expectations
/// that differ.
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
            let found = check::check(&case);
            let found = match (&case.known_bug, found) {
                (None, found) => found?,
                (Some(bug), Err(message)) if message.contains(bug) => case.expect.clone(),
                (Some(_), Err(message)) => return Err(message),
                (Some(bug), Ok(_)) => {
                    return Err(format!("the known bug is gone, remove its line: {bug}"));
                }
            };
            Ok((case, found))
        });
        match outcome {
            Err(message) => report.failed.push((file, message)),
            Ok((case, found)) if found == case.expect => report.passed.push(file),
            Ok((case, found)) if bless => {
                std::fs::write(&file, case.blessed(&text, &found))?;
                report.blessed.push(file);
            }
            Ok((case, found)) => {
                let message = format!(
                    "the result differs from the expectation (PLIANT_BLESS=1 accepts it):\n{}",
                    difference(&case.expect, &found)
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

/// A few lines, starting with the first one that differs.
fn difference(expected: &str, found: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let mut out = format!("from line {} on:\n", same + 1);
    for line in old.iter().skip(same).take(8) {
        out.push_str(&format!("- {line}\n"));
    }
    for line in new.iter().skip(same).take(8) {
        out.push_str(&format!("+ {line}\n"));
    }
    out
}
