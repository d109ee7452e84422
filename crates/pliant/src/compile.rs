//! [`compile`]: from a module to a program, in phases: graph passes, loop lowering, machine code, bytecode.

use std::sync::Arc;
use std::time::Instant;

use crate::vm_codegen::{CodegenInputs, codegen, default_kernel_info};
use pliant_codegen::CodegenOptions;
use pliant_ir::{IRModule, print};
use pliant_pass::{DumpIr, Instrument, ModulePass, PassContext, Timing, TimingEntry, Verify};

use crate::compiled::CompiledModule;
use crate::error::Error;
use crate::inspect::verify;
use crate::kernels;
use crate::options::CompileOptions;
use crate::signature::signatures;
use crate::stats::CompileStats;

/// The pass context that compile options ask for. Every call makes new dump and timing instruments.
pub fn pass_context(options: &CompileOptions) -> PassContext {
    let mut ctx = PassContext::new(pliant_ops::registry()).with_cancel(options.cancel.clone());
    if let Some(level) = options.opt_level {
        ctx.opt_level = level;
    }
    ctx.disabled.extend(options.disabled_passes.iter().cloned());
    ctx.required.extend(options.required_passes.iter().cloned());
    ctx.config.extend(options.config.clone());
    ctx.instruments.extend(options.instruments.iter().cloned());
    if options.verify.unwrap_or(cfg!(debug_assertions)) {
        ctx.instruments.push(Arc::new(Verify));
    }
    ctx
}

/// Compiles a module, at whatever stage it is, into a program.
///
/// # Errors
/// The user's mistakes, all that can be found; what is not supported; bugs; a cancellation.
pub fn compile(module: IRModule, options: &CompileOptions) -> Result<CompiledModule, Error> {
    let start = Instant::now();
    let mut ctx = pass_context(options);
    let timing = Arc::new(Timing::new());
    let dump = dump_instrument(options);
    ctx.instruments.push(timing.clone());
    ctx.instruments.extend(dump.clone().map(|d| d as Arc<dyn Instrument>));

    // Whatever the module comes from, a broken one is the user's error and no pass sees it.
    verify(&module)?;
    let signatures = signatures(&module);
    let name = options.pipeline.as_deref().unwrap_or("default");
    let pipeline = pliant_opt::pipeline(name).ok_or_else(|| {
        let known = pliant_opt::pipelines::NAMES.join(", ");
        Error::option(
            format!("there is no pipeline '{name}'"),
            format!("the pipelines are {known}"),
        )
    })?;
    let module = pipeline.apply(module, &ctx)?;

    let phase = Phase::start("LowerLoops");
    let lowered = kernels::lower(&module, &ctx)?;
    let mut phases = timing.entries();
    phases.push(phase.end());
    if let Some(dump) = &dump {
        dump.write("LowerLoops", &pliant_pass::text::module_text(&lowered, ctx.ops))?;
    }

    ctx.check_cancelled()?;
    let phase = Phase::start("MachineCode");
    let machine_options = CodegenOptions {
        compile_threads: options.threads.unwrap_or(0),
        dump_dir: dump_dir(options),
        ..CodegenOptions::default()
    };
    let compiled = kernels::compile(&lowered, options.target, &machine_options)?;
    phases.push(phase.end());

    ctx.check_cancelled()?;
    let phase = Phase::start("Bytecode");
    let info = |name: &str| {
        let func = module.get(name)?.as_prim()?;
        Some(kernels::kernel_info(compiled.get(name)?, default_kernel_info(name, func)))
    };
    let signature_text = serde_json::to_string(&signatures)
        .map_err(|e| Error::internal("bytecode", format!("signatures cannot be written: {e}")))?;
    let inputs = CodegenInputs {
        kernel_info: &info,
        type_text: &print::type_text,
        kernels: kernels::encode(&module),
        metadata: vec![
            ("target".into(), options.target.name().into()),
            ("signatures".into(), signature_text),
        ],
    };
    let executable = codegen(&module, inputs, &ctx)?;
    phases.push(phase.end());
    if let Some(dump) = &dump {
        dump.write_as("Bytecode", "txt", &executable.as_text())?;
    }

    let stats = CompileStats {
        phases,
        total: start.elapsed(),
        functions: module.relax_funcs().count(),
        kernels: compiled.len(),
    };
    let table = kernels::kernel_table(compiled);
    Ok(CompiledModule::new(executable, table, Some(module), signatures, stats, options.threads))
}

/// Compiles a module without the optimising passes of the graph level.
///
/// # Errors
/// As [`compile`].
pub fn build(module: IRModule, options: &CompileOptions) -> Result<CompiledModule, Error> {
    let pipeline = options.pipeline.clone().unwrap_or_else(|| "minimum".into());
    compile(module, &CompileOptions { pipeline: Some(pipeline), ..options.clone() })
}

fn dump_dir(options: &CompileOptions) -> Option<std::path::PathBuf> {
    let from_env = || std::env::var_os("PLIANT_DUMP_IR").filter(|d| !d.is_empty()).map(Into::into);
    options.dump_dir.clone().or_else(from_env)
}

fn dump_instrument(options: &CompileOptions) -> Option<Arc<DumpIr>> {
    dump_dir(options).map(|dir| Arc::new(DumpIr::new(dir)))
}

/// A phase that is no pass, being timed.
struct Phase(&'static str, Instant);

impl Phase {
    fn start(name: &'static str) -> Phase {
        Phase(name, Instant::now())
    }

    fn end(self) -> TimingEntry {
        TimingEntry { name: self.0.into(), depth: 0, duration: self.1.elapsed() }
    }
}
