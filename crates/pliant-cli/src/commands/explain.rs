//! `pliant explain`: prints which calls of a model run in kernels, which stay loops and why, and
//! which loops are slow.

use std::io::Write;

use crate::Failure;
use crate::args::ExplainArgs;
use crate::program_loading;

/// Runs `pliant explain`.
pub fn explain(
    args: &ExplainArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    program_loading::check_source(&args.file)?;
    let compiled = program_loading::build_with_symbols(&args.file, &[], &args.build, err)?;
    write!(out, "{}", compiled.stats().explanation)?;
    Ok(())
}
