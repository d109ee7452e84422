//! Compiles loop functions to machine code, and encodes them for the section `kernels` of an
//! executable, which is portable between machines.

use std::sync::Arc;

use crate::vm_codegen::default_kernel_info;
use pliant_codegen::{
    Backend, CodegenOptions, CompiledKernels, KernelSignature, KernelSource, ParamKind,
};
use pliant_diag::Diagnostic;
use pliant_diag::error_codes::PL0002;
use pliant_exec::{ExecError, Executable, LoopFuncInfo, LoopFuncParam};
use pliant_ir::attr_names::KERNELS;
use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::PassContext;
use pliant_pool::parallel_map;
use pliant_tir::code_generator_vectors::VECTOR_BYTES;
use pliant_tir::fully_written_buffers::fully_written_params;
use pliant_vm::LoopFuncTable;

use crate::compile_options::{ExecMode, Target};
use crate::error::Error;
use crate::module_inspection::verify;

/// Returns the code generator of a target; for [`Target::Auto`], the one that compiles fastest.
pub(crate) fn backend(target: Target) -> Box<dyn Backend> {
    match target {
        #[cfg(feature = "llvm")]
        Target::Llvm => Box::new(pliant_llvm::LlvmBackend::new()),
        #[cfg(feature = "cranelift")]
        Target::Cranelift => Box::new(pliant_cranelift::CraneliftBackend::new()),
        Target::Auto => backend(Target::fastest_compiler()),
    }
}

/// Marks every loop function of the module so that it does not call library kernels. Executables
/// contain this mark, so it also applies where the program is loaded.
pub(crate) fn disable_library_kernels(mut module: IRModule) -> IRModule {
    let names: Vec<Arc<str>> = module.prim_funcs().map(|(name, _)| name.clone()).collect();
    for name in names {
        if let Some(BaseFunc::Prim(func)) = module.functions.get_mut(&name) {
            Arc::make_mut(func).attrs.insert(KERNELS.into(), AttrValue::Bool(false));
        }
    }
    module
}

/// Lowers the loop functions of a module for a code generator, in parallel.
///
/// # Errors
/// If a loop function is invalid, if the compilation is cancelled, if the machine cannot run the code generator or lacks
/// instructions that an environment variable requires, or if the number of threads is invalid.
pub(crate) fn lower(
    module: &IRModule,
    ctx: &PassContext,
    backend: &dyn Backend,
) -> Result<IRModule, Error> {
    // The code generator reports an invalid variable as an unsupported machine, without help.
    check_variables()?;
    lower_module(module, ctx, backend.widest_vector_bytes()?)
}

/// Lowers the loop functions of a module for a code generator with vectors of this size ([`Backend::widest_vector_bytes`]), in
/// parallel.
///
/// # Errors
/// The errors of [`lower`].
pub(crate) fn lower_module(
    module: &IRModule,
    ctx: &PassContext,
    vector_bytes: Option<usize>,
) -> Result<IRModule, Error> {
    check_variables()?;
    let sources: Vec<(&Arc<str>, &Arc<PrimFunc>)> = module.prim_funcs().collect();
    let lower = |(name, func): (&Arc<str>, &Arc<PrimFunc>)| -> Result<PrimFunc, Error> {
        ctx.check_cancelled()?;
        lower_for_vectors(name, func, vector_bytes)
    };
    let lowered = parallel_map(sources.clone(), lower);
    let mut out = IRModule::new();
    for ((name, _), func) in sources.into_iter().zip(lowered) {
        out.insert(name.clone(), func?);
    }
    Ok(out)
}

/// Lowers a loop function for a code generator with vectors of this size ([`Backend::widest_vector_bytes`]).
///
/// # Errors
/// If the function is invalid.
pub(crate) fn lower_for_vectors(
    name: &str,
    func: &PrimFunc,
    vector_bytes: Option<usize>,
) -> Result<PrimFunc, Error> {
    let mut marked = None;
    if let Some(bytes) = vector_bytes {
        let func = marked.insert(func.clone());
        func.attrs.insert(VECTOR_BYTES.into(), AttrValue::Int(bytes as i64));
    }
    pliant_tir::lower(marked.as_ref().unwrap_or(func)).map_err(|e| {
        let finding = Diagnostic::error(PL0002, format!("{}: {}", e.pass, e.message));
        Error::Compile(pliant_diag::Error::Unsupported(vec![finding.in_function(name)]))
    })
}

/// Compiles lowered loop functions.
///
/// # Errors
/// If the code generator cannot compile a function.
pub(crate) fn compile(
    lowered: &IRModule,
    backend: &dyn Backend,
    options: &CodegenOptions,
) -> Result<CompiledKernels, Error> {
    let sources: Vec<KernelSource<'_>> =
        lowered.prim_funcs().map(|(name, func)| (name.clone(), &**func)).collect();
    Ok(backend.compile(&sources, options)?)
}

/// Checks the environment variables that describe the machine and limit the number of threads.
fn check_variables() -> Result<(), Error> {
    let error = |message: String, variable: &str, default: &str| {
        let help = format!("to use {default}, unset the environment variable {variable}");
        Error::option(message, help)
    };
    pliant_machine::isa::selected().map_err(|e| {
        error(e.to_string(), pliant_machine::isa::VARIABLE, "all instructions of this machine")
    })?;
    pliant_machine::cache_sizes::check().map_err(|e| {
        let default = "the cache sizes that the CPU reports";
        error(e.to_string(), pliant_machine::cache_sizes::VARIABLE, default)
    })?;
    pliant_pool::check_threads().map_err(|e| error(e, "PLIANT_NUM_THREADS", "all processors"))
}

/// Returns the description of a compiled loop function for the VM: the description derived from its source, updated with the
/// parameter kinds and failure messages of the machine code.
pub(crate) fn loop_function_info(
    name: &str,
    func: &PrimFunc,
    signature: &KernelSignature,
    messages: &[Arc<str>],
) -> LoopFuncInfo {
    let mut declared = default_kernel_info(name, func);
    declared.checks = messages.iter().map(|m| m.to_string()).collect();
    let kinds = signature.params.iter().map(|(_, kind)| kind);
    for (arg, kind) in declared.args.iter_mut().zip(kinds) {
        match kind {
            ParamKind::Int(dtype) if dtype.is_bool() => *arg = LoopFuncParam::Bool,
            ParamKind::Int(dtype) => *arg = LoopFuncParam::Int(*dtype),
            ParamKind::Float(_) => *arg = LoopFuncParam::Float,
            ParamKind::Tensor { .. } => {}
        }
    }
    declared
}

/// Creates the table through which the VM calls compiled loop functions. `module` contains the functions before lowering.
pub(crate) fn kernel_table(kernels: CompiledKernels, module: &IRModule) -> LoopFuncTable {
    let mut table = LoopFuncTable::new();
    let loops: Vec<(&Arc<str>, &Arc<PrimFunc>)> = module.prim_funcs().collect();
    let full_writes =
        |(name, f): (&Arc<str>, &Arc<PrimFunc>)| (name.to_string(), fully_written_params(f));
    for (name, params) in parallel_map(loops, full_writes) {
        table.set_full_writes(name, params);
    }
    for (name, kernel) in kernels.iter() {
        // SAFETY: the code generator created the entry point for the kernel ABI and the parameters
        // that the executable describes, and the table keeps the code's memory alive.
        unsafe { table.insert(&**name, kernel.entry) };
    }
    table.keep_alive(Arc::new(kernels));
    table
}

/// Compiles the bytecode functions of a program to machine code ("native bodies") and adds it to
/// `table`. Does nothing unless the execution mode is `compiled`.
///
/// # Errors
/// An internal error of the code generator, or an error if the machine cannot run generated code.
pub(crate) fn add_bodies(
    table: &mut LoopFuncTable,
    executable: &Executable,
    options: &CodegenOptions,
) -> Result<(), Error> {
    if executable.exec_mode() != ExecMode::Compiled.name() {
        return Ok(());
    }
    // Cranelift, if it is built in, for every target: these functions are sequences of calls, which LLVM cannot make faster.
    let bodies = backend(Target::fastest_compiler()).compile_bodies(executable, options)?;
    for (function, pieces) in executable.vm_functions().zip(bodies.iter()) {
        // SAFETY: the code generator created the pieces from this function, and the table keeps
        // their memory alive.
        unsafe { table.insert_body(&*function.name, pieces.clone()) };
    }
    table.keep_alive(Arc::new(bodies));
    Ok(())
}

/// The start of the first line of the section `kernels`. The names of the loop functions follow as
/// a JSON list.
const NAMES_PREFIX: &str = "# kernels: ";

/// Encodes the section `kernels`: the loop functions as script, before lowering, so that each
/// machine lowers them for itself. A list of their names comes first, since not every name is valid
/// in the script.
pub(crate) fn encode(module: &IRModule) -> Vec<u8> {
    let mut loops = IRModule::new();
    let mut names = Vec::new();
    for (i, (name, func)) in module.prim_funcs().enumerate() {
        loops.insert(format!("kernel_{i}"), BaseFunc::Prim(func.clone()));
        names.push(&**name);
    }
    if names.is_empty() {
        return Vec::new();
    }
    let names = serde_json::Value::from(names);
    let text = print_module(&loops, pliant_ops::registry(), &PrintOptions::complete());
    format!("{NAMES_PREFIX}{names}\n{text}").into_bytes()
}

/// Decodes the loop functions in the section `kernels` of an executable.
///
/// # Errors
/// `Executable` if the section is not a script of loop functions.
pub(crate) fn decode(executable: &Executable) -> Result<IRModule, Error> {
    let damaged_section = |why: String| {
        Error::Executable(ExecError::Damaged(format!(
            "the loop functions of the executable are damaged: {why}"
        )))
    };
    if executable.kernels().is_empty() {
        return Ok(IRModule::new());
    }
    let text =
        std::str::from_utf8(executable.kernels()).map_err(|e| damaged_section(e.to_string()))?;
    let module = crate::script_parsing::parse_generated(text).map_err(damaged_section)?;
    if module.relax_funcs().next().is_some() {
        return Err(damaged_section("the section contains graph functions".into()));
    }
    verify(&module).map_err(|e| damaged_section(e.to_string()))?;
    let names = text.lines().next().and_then(|line| line.strip_prefix(NAMES_PREFIX));
    let names: Option<Vec<String>> = names.and_then(|list| serde_json::from_str(list).ok());
    let names =
        names.ok_or_else(|| damaged_section("the list of function names is missing".into()))?;
    let mut loops = IRModule::new();
    for (i, name) in names.into_iter().enumerate() {
        let func = module.get(&format!("kernel_{i}"));
        let func = func.ok_or_else(|| {
            damaged_section(format!("the loop function '{name}' is missing in the section"))
        })?;
        loops.insert(name, func.clone());
    }
    Ok(loops)
}

/// Replaces the failure messages of a loaded executable by those of its recompiled loop functions.
/// First checks that the parameters of the recompiled functions match the descriptions in the
/// executable, since the bytecode and the VM rely on these.
///
/// # Errors
/// `Executable` if a loop function is missing, or if its parameters differ from their description.
pub(crate) fn adopt_recompiled(
    executable: &mut Executable,
    loops: &IRModule,
    compiled: &CompiledKernels,
) -> Result<(), Error> {
    let mut checks = Vec::new();
    for info in executable.loop_funcs() {
        let func = loops.get(&info.name).and_then(|f| f.as_prim());
        let (Some(func), Some(kernel)) = (func, compiled.get(&info.name)) else {
            let why =
                format!("the executable is damaged: the loop function '{}' is missing", info.name);
            return Err(Error::Executable(ExecError::Damaged(why)));
        };
        let recompiled = loop_function_info(&info.name, func, &kernel.signature, &kernel.messages);
        if recompiled.args != info.args {
            let why = format!(
                "the executable is damaged: the parameters of loop function '{}' differ from their description",
                info.name
            );
            return Err(Error::Executable(ExecError::Damaged(why)));
        }
        checks.push((recompiled.name, recompiled.checks));
    }
    for (name, checks) in checks {
        executable.set_loop_func_checks(&name, checks);
    }
    Ok(())
}
