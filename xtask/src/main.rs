//! `cargo xtask`: checks of the workspace.
//!
//! | command | action |
//! |---|---|
//! | `layers` | fails if a crate depends on a crate of a higher layer, or on one of its own layer that its entry in `crate_layers.rs` does not list, or if a crate that runs programs depends on the compiler |
//! | `tidy` | fails on files, functions and lines that are too long, and on files that lack a module comment, contain a path of a development machine, or name a missing source file |
//! | `publish` | fails if a public crate lacks metadata or a README, or cannot be packaged |
//! | `check` | all of these |
//! | `ci` | runs `make test`, `make rust-example`, `make llvm-test-if-possible`, `make deny`, `make docs`, `make models`, `make race` and `make test-torch-if-possible`, and prints the numbers of tests |

mod ci;
mod crate_layers;
mod publish_checks;
mod tidy;
mod workspace_packages;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the folder of xtask has a parent, the root of the workspace");
    let command = std::env::args().nth(1).unwrap_or_else(|| "check".to_string());
    let problems = match command.as_str() {
        "layers" => crate_layers::check(root),
        "tidy" => tidy::check(root),
        "publish" => publish_checks::check(root),
        "check" => check_all(root),
        "ci" => {
            return ci::run(root).unwrap_or_else(|message| {
                eprintln!("xtask: {message}");
                ExitCode::FAILURE
            });
        }
        other => {
            Err(format!("unknown command `{other}`: expected layers, tidy, publish, check or ci"))
        }
    };
    match problems {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("{} problems", problems.len());
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn check_all(root: &Path) -> Result<Vec<String>, String> {
    let mut problems = crate_layers::check(root)?;
    problems.extend(tidy::check(root)?);
    problems.extend(publish_checks::check(root)?);
    Ok(problems)
}
