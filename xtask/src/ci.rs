//! Runs everything that continuous integration checks on a clean checkout, and prints how many tests ran.

use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The make targets to run, in order. The first failure ends the run.
const TARGETS: &[&str] = &[
    "test",
    "rust-example",
    "llvm-test-if-possible",
    "deny",
    "docs",
    "models",
    "race",
    "test-torch-if-possible",
];

/// How many tests passed, failed and were skipped, read from the output of the test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// The last line of the output of each run of pytest.
    python: Vec<String>,
}

impl Counts {
    /// Adds the numbers on a line of output: `test result: ok. 3 passed; 0 failed; 1 ignored; ...` of a Rust test
    /// program, or `=== 7 passed, 2 skipped in 1.50s ===` of pytest.
    fn add(&mut self, line: &str) {
        if let Some((_, counts)) = line.split_once("test result:") {
            let words: Vec<&str> =
                counts.split([' ', ';']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let count = pair[0].parse().unwrap_or(0);
                match pair[1] {
                    "passed" => self.passed += count,
                    "failed" => self.failed += count,
                    "ignored" => self.ignored += count,
                    _ => {}
                }
            }
            return;
        }
        let summary = line.trim_matches(['=', ' ']);
        let mut words = summary.split([' ', ',']);
        let starts_with_count = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
        let seconds = summary.split_once(" in ").and_then(|(_, time)| time.split('s').next());
        if starts_with_count
            && matches!(words.next(), Some("passed" | "failed"))
            && seconds.is_some_and(|seconds| seconds.parse::<f64>().is_ok())
        {
            self.python.push(summary.to_string());
        }
    }
}

/// Runs all make targets. Prints the free disk space before them and the numbers of tests after them.
///
/// # Errors
/// If a program cannot be started.
pub fn run(root: &Path) -> Result<ExitCode, String> {
    shell(root, "df -h . | awk 'NR == 2 { print \"Disk:   \" $4 \" free\" }'")?;
    let mut counts = Counts::default();
    let mut success = true;
    for target in TARGETS {
        success = make(root, target, &mut counts)?;
        if !success {
            eprintln!("xtask: make {target} failed");
            break;
        }
    }
    shell(root, "echo \"Build:  $(du -sh target 2>/dev/null | cut -f1) in target\"")?;
    let (passed, failed, ignored) = (counts.passed, counts.failed, counts.ignored);
    print(&format!("Rust:   {passed} passed, {failed} failed, {ignored} ignored"));
    let python =
        if counts.python.is_empty() { "none ran".into() } else { counts.python.join("; ") };
    print(&format!("Python: {python}"));
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a make target, forwards its output, and counts its tests. Returns whether it succeeded.
fn make(root: &Path, target: &str, counts: &mut Counts) -> Result<bool, String> {
    // Errors go to the same pipe, so that their order in the log is that of the run.
    let mut child = Command::new("sh")
        .args(["-c", &format!("make {target} 2>&1")])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run make: {error}"))?;
    let output = child.stdout.take().ok_or("the output of make is not available")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read the output of make: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        print(&line);
        counts.add(&line);
    }
    let status = child.wait().map_err(|error| format!("cannot wait for make: {error}"))?;
    Ok(status.success())
}

/// Writes a line to the standard output. Ignores a closed output, which is no reason to stop the tests.
fn print(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

/// Runs a shell command that prints a line of information.
fn shell(root: &Path, command: &str) -> Result<(), String> {
    let run = Command::new("sh").args(["-c", command]).current_dir(root).status();
    run.map(|_| ()).map_err(|error| format!("cannot run sh: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_both_test_runners_are_counted() {
        let mut counts = Counts::default();
        for line in [
            "test result: ok. 35 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.42s",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 84.21s",
            "3 passed in the text of a test",
            "==== 1351 passed, 4 skipped in 240.10s (0:04:00) ====",
            "running 7 tests",
        ] {
            counts.add(line);
        }
        let python = vec!["1351 passed, 4 skipped in 240.10s (0:04:00)".to_string()];
        assert_eq!(counts, Counts { passed: 37, failed: 1, ignored: 1, python });
    }
}
