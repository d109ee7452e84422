//! File tests: script in, expectation below, and the proof that what the pass made computes the same.
//!
//! A test is a `.py` file under `tests/filetests/`. Its first line says what is done with the script:
//!
//! | header | what is tested |
//! |---|---|
//! | `# test print` | parsing and printing: the expectation is the print, which parses back to the same |
//! | `# test verify` | the verifier refuses the script as the annotations say |
//! | `# test opt --passes=A,B` | the passes: the expectation is the module they make |
//! | `# test run` | the interpreter: the expectation is a digest of the results |
//!
//! The script follows, then a line `# expect` and the expectation, each line behind `# `. `PLIANT_BLESS=1` writes it.
//! A line of the script that must be refused ends with `# error: PL0203 part of the message`; an error that has no
//! line is announced in the header: `# fails: PL0210 part of the message`. `# no-run` in the header keeps a test
//! from being executed, with the reason behind it. `# no-compile: message` says that the module is refused by the
//! compiler, `# known-bug: message` that the test fails for now, with a message that holds this
//! part; the test fails as
//! soon as that is not so.
//!
//! Every module that an `opt` test makes is verified, printed, parsed back and compared; and every public graph
//! function is executed before and after the passes, by the interpreter, with symbols at [`exec::SIZES`] and the same
//! inputs, and the results compared. The script of each test that is not about errors is also
//! compiled as a whole, and the
//! machine code compared with the interpreter at the same sizes. Scripts may call the packed functions of `packed`.

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

/// The outcome of all tests under a folder.
#[derive(Debug, Default)]
pub struct Report {
    /// The files that passed.
    pub passed: Vec<PathBuf>,
    /// The files that failed, and why.
    pub failed: Vec<(PathBuf, String)>,
    /// The files whose expectation was written.
    pub blessed: Vec<PathBuf>,
}

/// Runs every test under `root` whose path contains `filter`; with `bless`, expectations that differ are written.
///
/// # Errors
/// A folder or file that cannot be read or written.
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

/// The lines from the first one that differs on, a few of them.
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
