//! The command `pliant`. Its implementation is in the library, which the Python package also uses.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: pliant::Allocator = pliant::Allocator;

fn main() -> ExitCode {
    pliant::prepare_for_shortage();
    let code = pliant_cli::main(std::env::args_os());
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
