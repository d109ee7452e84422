//! `cargo xtask`: checks and generators for working on Pliant.
//!
//! | command | does |
//! |---|---|
//! | `floors` | fails when a crate depends on a crate of a higher floor |
//! | `tidy` | fails on files that are too long, lack an opening doc comment, or leave a trace of a machine |
//! | `check` | both |

mod floors;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let command = std::env::args().nth(1).unwrap_or_else(|| "check".to_string());
    let problems = match command.as_str() {
        "floors" => floors::check(root),
        "tidy" => tidy::check(root),
        "check" => floors::check(root).and_then(|mut found| {
            found.extend(tidy::check(root)?);
            Ok(found)
        }),
        other => Err(format!("unknown command `{other}`: expected floors, tidy or check")),
    };
    match problems {
        Ok(found) if found.is_empty() => ExitCode::SUCCESS,
        Ok(found) => {
            for problem in &found {
                eprintln!("{problem}");
            }
            eprintln!("{} problems", found.len());
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
