//! `pliant explain`: which parts of a model run in kernels, which do not and why, and which loops
//! are slow.

use std::io::Write;

use crate::Failure;
use crate::args::ExplainArgs;
use crate::program;

/// Runs the command.
pub fn explain(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    program::check_source(&args.file)?;
    let compiled = program::build_with(&args.file, &[], &args.build, err)?;
    write!(out, "{}", compiled.stats().explanation)?;
    Ok(())
}
