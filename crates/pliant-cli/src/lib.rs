//! The command line: `pliant check | compile | run | bench | explain | dump | opt | diff | profile
//! | explore | hwbench`, a frontend of the crate `pliant`.
//!
//! Exit codes: 0 success, 1 an error in the program, an input or a file, or a comparison that
//! differs, 2 an error in the command line, 70 a bug of the compiler, 124 a run exceeded its time
//! limit, 130 interrupted. Results go to standard output, everything else to standard error.

mod args;
mod bench_plot;
mod bench_rows;
mod commands;
mod declared_symbols;
mod peer_benchmark;
mod peer_runtime;
mod program_loading;
mod progress;
mod run_inputs;
mod shape_option;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use pliant::{Error, ErrorKind, SourceMap};

use crate::args::{Cli, Command};

/// Exit code: success.
pub const EXIT_OK: i32 = 0;
/// Exit code: an error in the program, an input or a file, or a comparison that differs.
pub const EXIT_FAILED: i32 = 1;
/// Exit code: an error in the command line.
pub const EXIT_USAGE: i32 = 2;
/// Exit code: a bug of the compiler.
pub const EXIT_BUG: i32 = 70;
/// Exit code: a run exceeded its time limit. The command `timeout` uses the same exit code.
pub const EXIT_TIME_LIMIT: i32 = 124;
/// Exit code: interrupted by Ctrl-C.
pub const EXIT_INTERRUPTED: i32 = 130;

/// A failed command: the text for standard error, and the exit code of the process.
pub(crate) struct Failure {
    text: String,
    code: i32,
}

impl Failure {
    /// Creates a failure that the program, an input or a file caused (exit code 1).
    fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into(), code: EXIT_FAILED }
    }

    /// Creates a failure from an error of `pliant`, rendered with the user's source lines.
    fn of(error: &Error, sources: &SourceMap) -> Failure {
        let code = match error.kind() {
            ErrorKind::Internal => EXIT_BUG,
            ErrorKind::TimeLimit => EXIT_TIME_LIMIT,
            ErrorKind::Interrupted => EXIT_INTERRUPTED,
            _ => EXIT_FAILED,
        };
        Failure { text: error.render(sources), code }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::of(&error, &SourceMap::new())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // A closed output pipe needs no message.
            std::io::ErrorKind::BrokenPipe => Failure::new(""),
            _ => Failure::new(format!("error: {error}")),
        }
    }
}

/// Runs the command line `args` (the program's name first) on the standard streams. Returns the
/// exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    // Standard error is locked only for each line, since progress indicators also write to it.
    run(args, &mut std::io::stdout().lock(), &mut std::io::stderr())
}

/// Runs the command line `args` (the program's name first), and prints to the streams `out` and `err` in place of standard output
/// and standard error. Returns the exit code.
///
/// # Examples
/// ```
/// let (mut out, mut err) = (Vec::<u8>::new(), Vec::<u8>::new());
/// let code = pliant_cli::run(["pliant".into(), "--version".into()], &mut out, &mut err);
/// assert_eq!(code, pliant_cli::EXIT_OK);
/// assert!(out.starts_with(b"pliant ") && err.is_empty());
/// ```
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> i32 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results, not errors. Failures to write them cannot be reported.
            let text = error.render();
            if error.use_stderr() {
                let _ = write!(err, "{text}");
                return EXIT_USAGE;
            }
            let _ = write!(out, "{text}");
            return EXIT_OK;
        }
    };
    let result = match cli.command {
        Command::Opt(args) => commands::opt(&args, out, err),
        Command::Check(args) => commands::check(&args, out),
        Command::Compile(args) => commands::compile(&args, out, err),
        Command::Run(args) => commands::run(&args, out, err),
        Command::Explain(args) => commands::explain(&args, out, err),
        Command::Dump(args) => commands::dump(&args, out),
        Command::Bench(args) => commands::bench(&args, out, err),
        Command::Diff(args) => commands::diff(&args, out, err),
        Command::Explore(args) => commands::explore(&args, out, err),
        Command::Hwbench(args) => commands::hwbench(&args, out),
        Command::Profile(args) => commands::profile(&args, out, err),
    };
    match result {
        Ok(()) => EXIT_OK,
        Err(failure) => {
            if !failure.text.is_empty() {
                let _ = writeln!(err, "{}", failure.text.trim_end());
            }
            failure.code
        }
    }
}
