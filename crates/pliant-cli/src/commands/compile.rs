//! `pliant compile`: compiles a model to an executable file.

use std::io::Write;

use crate::Failure;
use crate::args::CompileArgs;
use crate::program;
use crate::shapes;

/// Runs the command.
pub fn compile(
    args: &CompileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    program::check_source(&args.file)?;
    program::check_writable(&args.output)?;
    let facts = shapes::parse(&args.shapes)?;
    let compiled = program::build_with(&args.file, &facts, &args.build, err)?;
    compiled.save(&args.output)?;
    let stats = compiled.stats();
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (functions, kernels) = (many(stats.functions, "function"), many(stats.kernels, "kernel"));
    writeln!(out, "{}: {functions}, {kernels}", args.output.display())?;
    Ok(())
}
