//! The command `pliant`; everything is in the library, which the Python package runs as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = pliant_cli::main(std::env::args_os());
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
