//! `pliant compile`: compiles a model to a program file, an object file, a library or an executable.

use std::io::Write;

use pliant::{CompileOptions, Emit, ExportOptions, export_library};

use crate::Failure;
use crate::args::{CompileArgs, EmitKind};
use crate::program_loading;
use crate::shape_option;

/// Runs `pliant compile`.
pub fn compile(
    args: &CompileArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let emit = emit(args)?;
    if emit.is_none() {
        program_loading::check_source(&args.file)?;
    }
    program_loading::check_writable(&args.output)?;
    let declared = shape_option::parse(&args.shapes)?;
    let compiled = program_loading::build_with_symbols(&args.file, &declared, &args.build, err)?;
    match emit {
        None => compiled.save(&args.output)?,
        Some(emit) => {
            let options = ExportOptions {
                code_generator: CompileOptions::from_names(&args.build.target, "bytecode")?
                    .0
                    .target,
                target_triple: args.target_triple.clone(),
                target_cpu: args.target_cpu.clone(),
                runtime_library: None,
            };
            export_library(&compiled, &args.output, emit, &options)?;
        }
    }
    let stats = compiled.stats();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let functions = count(stats.functions, "graph function");
    let loop_functions = count(stats.kernels, "loop function");
    writeln!(out, "{}: {functions}, {loop_functions}", args.output.display())?;
    Ok(())
}

/// Returns the kind of file to write, if it contains machine code; `None` for a program file, which contains none.
fn emit(args: &CompileArgs) -> Result<Option<Emit>, Failure> {
    let emit = match args.emit {
        EmitKind::Program => None,
        EmitKind::Obj => Some(Emit::Object),
        EmitKind::Static => Some(Emit::Static),
        EmitKind::Shared => Some(Emit::Shared),
        EmitKind::Exe => Some(Emit::Executable),
    };
    let (cpu, triple) = (args.target_cpu.is_some(), args.target_triple.is_some());
    if emit.is_none() && (cpu || triple) {
        let option = if cpu { "--target-cpu" } else { "--target-triple" };
        return Err(Failure::new(format!(
            "error: {option} needs --emit: a program without machine code runs on any machine"
        )));
    }
    Ok(emit)
}
