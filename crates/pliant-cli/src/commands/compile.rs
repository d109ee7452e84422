//! `pliant compile`: compiles a model to an executable file.

use std::io::Write;

use crate::Failure;
use crate::args::CompileArgs;
use crate::program_loading;
use crate::shape_option;

/// Runs `pliant compile`.
pub fn compile(
    args: &CompileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    program_loading::check_source(&args.file)?;
    program_loading::check_writable(&args.output)?;
    let declared = shape_option::parse(&args.shapes)?;
    let compiled = program_loading::build_with_symbols(&args.file, &declared, &args.build, err)?;
    compiled.save(&args.output)?;
    let stats = compiled.stats();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (functions, kernels) = (count(stats.functions, "function"), count(stats.kernels, "kernel"));
    writeln!(out, "{}: {functions}, {kernels}", args.output.display())?;
    Ok(())
}
