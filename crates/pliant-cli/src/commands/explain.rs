//! `pliant explain`: which parts of a model run in kernels, which do not and why, and which loops
//! are slow.

use std::io::Write;

use crate::Failure;
use crate::args::ExplainArgs;
use crate::program::{self, Kind};

/// Runs the command.
pub fn explain(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    if Kind::of(&args.file) == Kind::Executable {
        let file = args.file.display();
        return Err(Failure::new(format!(
            "error: {file} is neither an ONNX model (.onnx) nor a script (.py): only a compilation can be explained"
        )));
    }
    let compiled = program::build_with(&args.file, &[], &args.build, err)?;
    write!(out, "{}", compiled.stats().explanation)?;
    Ok(())
}
