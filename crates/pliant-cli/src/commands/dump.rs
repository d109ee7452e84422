//! `pliant dump`: prints a stage of the compilation.

use std::io::Write;

use pliant::Error;

use crate::Failure;
use crate::args::DumpArgs;
use crate::program_loading;

/// Runs `pliant dump`.
pub fn dump(args: &DumpArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let source = program_loading::read(&args.file, &mut std::io::sink())?;
    let failed = |e: Error| Failure::of(&e, &source.sources);
    let text = pliant::stage_text(source.module.clone(), &args.stage, !args.no_constants)
        .map_err(failed)?;
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(out)?;
    }
    Ok(())
}
