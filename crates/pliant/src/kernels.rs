//! From loop functions to machine code, and the section of an executable that keeps them portable.

use std::sync::Arc;

use crate::vm_codegen::default_kernel_info;
use pliant_codegen::{
    Backend, CodegenOptions, CompiledKernel, CompiledKernels, KernelSource, ParamKind,
};
use pliant_cranelift::CraneliftBackend;
use pliant_diag::Diagnostic;
use pliant_diag::codes::PL0002;
use pliant_exec::{ExecError, Executable, KernelArg, KernelInfo};
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::PassContext;
use pliant_vm::KernelTable;
use rayon::prelude::*;

use crate::error::Error;
use crate::inspect::verify;
use crate::options::{ExecMode, Target};

/// The code generator of a target.
pub(crate) fn backend(target: Target) -> Box<dyn Backend> {
    match target {
        Target::Cranelift => Box::new(CraneliftBackend::new()),
    }
}

/// Lowers the loop functions of a module, in parallel.
///
/// # Errors
/// What is wrong in a function, or a cancellation.
pub(crate) fn lower(module: &IRModule, ctx: &PassContext) -> Result<IRModule, Error> {
    let sources: Vec<(&Arc<str>, &Arc<PrimFunc>)> = module.prim_funcs().collect();
    let lowered: Vec<Result<PrimFunc, Error>> = sources
        .par_iter()
        .map(|(name, func)| {
            ctx.check_cancelled()?;
            lower_one(name, func)
        })
        .collect();
    let mut out = IRModule::new();
    for ((name, _), func) in sources.into_iter().zip(lowered) {
        out.insert(name.clone(), func?);
    }
    Ok(out)
}

fn lower_one(name: &str, func: &PrimFunc) -> Result<PrimFunc, Error> {
    pliant_tir::lower(func).map_err(|e| {
        let finding = Diagnostic::error(PL0002, format!("{}: {}", e.pass, e.message));
        Error::Compile(pliant_diag::Error::Unsupported(vec![finding.in_function(name)]))
    })
}

/// Compiles lowered loop functions.
///
/// # Errors
/// What the code generator cannot compile, or a cancellation.
pub(crate) fn compile(
    lowered: &IRModule,
    target: Target,
    options: &CodegenOptions,
) -> Result<CompiledKernels, Error> {
    let sources: Vec<KernelSource<'_>> =
        lowered.prim_funcs().map(|(name, func)| (name.clone(), &**func)).collect();
    Ok(backend(target).compile(&sources, options)?)
}

/// What the machine must know of a compiled kernel; `declared` is what its loop function says.
pub(crate) fn kernel_info(kernel: &CompiledKernel, mut declared: KernelInfo) -> KernelInfo {
    declared.checks = kernel.messages.iter().map(|m| m.to_string()).collect();
    let kinds = kernel.signature.params.iter().map(|(_, kind)| kind);
    for (arg, kind) in declared.args.iter_mut().zip(kinds) {
        match kind {
            ParamKind::Int(dtype) if dtype.is_bool() => *arg = KernelArg::Bool,
            ParamKind::Int(_) => *arg = KernelArg::Int,
            ParamKind::Float(_) => *arg = KernelArg::Float,
            ParamKind::Tensor { .. } => {}
        }
    }
    declared
}

/// The machine's table of compiled kernels.
pub(crate) fn kernel_table(kernels: CompiledKernels) -> KernelTable {
    let mut table = KernelTable::new();
    for (name, kernel) in kernels.iter() {
        // SAFETY: the code generator made the entry point for the kernel ABI and the parameters that the executable
        // describes, and the table keeps the code's memory alive.
        unsafe { table.insert(&**name, kernel.entry) };
    }
    table.keep_alive(Arc::new(kernels));
    table
}

/// Adds the native bodies of a program's bytecode functions where it is executed in that mode.
///
/// # Errors
/// A defect of the code generator, or a machine that cannot run generated code.
pub(crate) fn add_bodies(
    table: &mut KernelTable,
    executable: &Executable,
    target: Target,
    options: &CodegenOptions,
) -> Result<(), Error> {
    if executable.exec_mode() != ExecMode::Compiled.name() {
        return Ok(());
    }
    let bodies = backend(target).compile_bodies(executable, options)?;
    for (function, pieces) in executable.vm_functions().zip(bodies.iter()) {
        // SAFETY: the code generator made the pieces from this function, and the table keeps their memory alive.
        unsafe { table.insert_body(&*function.name, pieces.clone()) };
    }
    table.keep_alive(Arc::new(bodies));
    Ok(())
}

/// The kernels section: the loop functions as script, as they were before they were lowered, so that each machine
/// lowers them for itself.
pub(crate) fn encode(module: &IRModule) -> Vec<u8> {
    let mut loops = IRModule::new();
    for (name, func) in module.prim_funcs() {
        loops.insert(name.clone(), BaseFunc::Prim(func.clone()));
    }
    if loops.functions.is_empty() {
        return Vec::new();
    }
    print_module(&loops, pliant_ops::registry(), &PrintOptions::complete()).into_bytes()
}

/// The loop functions of an executable's kernels section.
///
/// # Errors
/// `Executable` when the section is no script of loop functions.
pub(crate) fn decode(executable: &Executable) -> Result<IRModule, Error> {
    let damaged = |why: String| {
        Error::Executable(ExecError::Format(format!(
            "the kernels of the executable are damaged: {why}"
        )))
    };
    if executable.kernels().is_empty() {
        return Ok(IRModule::new());
    }
    let text = std::str::from_utf8(executable.kernels()).map_err(|e| damaged(e.to_string()))?;
    let module = crate::script::parse_quietly(text).map_err(damaged)?;
    if module.relax_funcs().next().is_some() {
        return Err(damaged("there are graph functions among them".into()));
    }
    verify(&module).map_err(|e| damaged(e.to_string()))?;
    Ok(module)
}

/// Checks that the bytecode calls the kernels as they are: the machine relies on the descriptions.
///
/// # Errors
/// `Executable` where a kernel is missing or described otherwise.
pub(crate) fn check(
    executable: &Executable,
    loops: &IRModule,
    compiled: &CompiledKernels,
) -> Result<(), Error> {
    for info in executable.kernel_infos() {
        let func = loops.get(&info.name).and_then(|f| f.as_prim());
        let (Some(func), Some(kernel)) = (func, compiled.get(&info.name)) else {
            let why = format!("the kernel '{}' is missing", info.name);
            return Err(Error::Executable(ExecError::Format(why)));
        };
        if kernel_info(kernel, default_kernel_info(&info.name, func)) != *info {
            let why = format!("the kernel '{}' is not as the program describes it", info.name);
            return Err(Error::Executable(ExecError::Format(why)));
        }
    }
    Ok(())
}
