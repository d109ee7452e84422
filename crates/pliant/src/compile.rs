//! [`compile`]: compiles a module to a program in phases: graph passes, loop lowering, machine code,
//! bytecode. Reads the environment variable `PLIANT_DUMP_IR`, the directory into which the module after each pass is written.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::vm_codegen::{CodegenInputs, codegen};
use pliant_codegen::CodegenOptions;
use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_exec::EXEC_MODE;
use pliant_ir::{AttrValue, IRModule, print};
use pliant_pass::pass_settings::{KERNELS, PRECISION};
use pliant_pass::{
    CancelToken, DumpIr, Instrument, ModulePass, PassContext, Sequential, Timing, TimingEntry,
    Verify,
};
use pliant_runtime::Signature;
use pliant_tensor::memory_reserve;

use crate::background_optimization;
use crate::compile_and_model_stats::CompileStats;
use crate::compile_options::{CompileOptions, ExecMode, Pipeline};
use crate::compiled_module::{CompiledModule, OnDrop};
use crate::constant_evaluator::CompiledEvaluator;
use crate::error::Error;
use crate::loop_codegen;
use crate::module_inspection::verify;
use crate::offload_explanation::{Explanation, remark_slow_loops};
use crate::packed_name_conflicts;
use crate::pass_registry::canonical_pass_name;
use crate::signature::signatures;

/// Creates the pass context that the compile options describe. Every call creates new dump and
/// timing instruments.
///
/// # Examples
/// ```
/// use pliant::CompileOptions;
///
/// let options = CompileOptions {
///     opt_level: Some(1),
///     disabled_passes: vec!["FoldConstant".into()],
///     ..CompileOptions::default()
/// };
/// let context = pliant::pass_context(&options);
/// assert_eq!(context.opt_level, 1);
/// assert!(!context.enables("FoldConstant", 0));
/// ```
pub fn pass_context(options: &CompileOptions) -> PassContext {
    let mut ctx = PassContext::new(pliant_ops::registry()).with_cancel(options.cancel.clone());
    if let Some(level) = options.opt_level {
        ctx.opt_level = level;
    }
    ctx.disabled.extend(options.disabled_passes.iter().map(|name| canonical_pass_name(name)));
    ctx.required.extend(options.required_passes.iter().map(|name| canonical_pass_name(name)));
    ctx.config.extend(options.config.clone());
    ctx.instruments.extend(options.instruments.iter().cloned());
    ctx.dump_dir = dump_dir(options);
    ctx.evaluator = Some(Arc::new(CompiledEvaluator {
        threads: options.threads,
        cancel: options.cancel.clone(),
    }));
    if options.verify.unwrap_or(cfg!(debug_assertions)) {
        ctx.instruments.push(Arc::new(Verify));
    }
    ctx
}

/// Compiles a module at any stage into a program.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Tensor, Value, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let vm = program.vm()?;
/// for n in [0usize, 1, 5] {
///     let x = Tensor::from_slice(&[n as i64], &vec![1.0f32; n])?;
///     let y = vm.invoke("main", &[Value::Tensor(x)])?;
///     assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, vec![2.0; n]);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// All user errors that can be found, or an error for unsupported features, a bug of the compiler or a cancellation.
pub fn compile(module: IRModule, options: &CompileOptions) -> Result<CompiledModule, Error> {
    let (start, cancel, time) = (Instant::now(), options.cancel.clone(), options.time);
    let deadline_passed = move || time.is_some_and(|time| start.elapsed() >= time);
    let memory_exhausted = Arc::new(AtomicBool::new(false));
    let should_stop = {
        let memory_exhausted = Arc::clone(&memory_exhausted);
        move || {
            if memory_reserve::check().is_err() {
                memory_exhausted.store(true, Ordering::Relaxed);
            }
            memory_exhausted.load(Ordering::Relaxed) || cancel.is_cancelled() || deadline_passed()
        }
    };
    let limited = CompileOptions { cancel: CancelToken::with_poll(should_stop), ..options.clone() };
    match compile_into(module, &limited, dump_dir(&limited), OnDrop::Trim) {
        Err(Error::Interrupted) if memory_exhausted.load(Ordering::Relaxed) => Err(out_of_memory()),
        Err(Error::Interrupted) if deadline_passed() => {
            let time = time.unwrap_or_default().as_secs_f64();
            let message = format!("the compilation took longer than {time} seconds");
            Err(Error::option(message, "raise the time limit, or make the program smaller"))
        }
        compiled => compiled,
    }
}

fn out_of_memory() -> Error {
    let message = "out of memory: the system refused memory that the compilation needs";
    Error::option(message, "raise the memory limit of the process, or make the program smaller")
}

/// Compiles a module as part of another compilation. Writes no dumps, even if `PLIANT_DUMP_IR` is set, and does not return free
/// memory to the system when the program is dropped.
pub(crate) fn compile_nested(
    module: IRModule,
    options: &CompileOptions,
) -> Result<CompiledModule, Error> {
    compile_into(module, options, None, OnDrop::Keep)
}

/// Compiles a module. Writes the text of every stage into `dump_dir` if that is set. An invalid module is a user error whatever its
/// origin; no pass receives it.
fn compile_into(
    module: IRModule,
    options: &CompileOptions,
    dump_dir: Option<PathBuf>,
    on_drop: OnDrop,
) -> Result<CompiledModule, Error> {
    let start = Instant::now();
    check_settings(options)?;
    let mut ctx = pass_context(options);
    let timing = Arc::new(Timing::new());
    let dump = dump_dir.clone().map(|dir| Arc::new(DumpIr::new(dir)));
    ctx.instruments.push(timing.clone());
    ctx.instruments.extend(dump.clone().map(|d| d as Arc<dyn Instrument>));
    verify(&module)?;
    let signatures = signatures(&module);
    let module = run_pipeline(module, options.pipeline.as_ref(), &ctx)?;
    let module = if ctx.kernels() { module } else { loop_codegen::disable_library_kernels(module) };
    let phase = Phase::start("LowerLoops");
    let target = options.target.first_tier()?;
    let backend = loop_codegen::backend(target);
    let lowered = loop_codegen::lower(&module, &ctx, &*backend)?;
    let mut phases = timing.entries();
    phases.push(phase.end());
    remark_slow_loops(&lowered, &ctx.remarks);
    if let Some(dump) = &dump {
        dump.write("LowerLoops", &pliant_pass::module_text::module_text(&lowered, ctx.ops))?;
    }

    ctx.check_cancelled()?;
    let phase = Phase::start("MachineCode");
    let machine_options = CodegenOptions {
        compile_threads: options.threads.unwrap_or(0),
        dump_dir,
        ..CodegenOptions::default()
    };
    let compiled = loop_codegen::compile(&lowered, &*backend, &machine_options)?;
    phases.push(phase.end());

    ctx.check_cancelled()?;
    let phase = Phase::start("Bytecode");
    let info = |name: &str| {
        let func = module.get(name)?.as_prim()?;
        let code = compiled.get(name)?;
        Some(loop_codegen::loop_function_info(name, func, &code.signature, &code.messages))
    };
    let inputs = CodegenInputs {
        kernel_info: &info,
        type_text: &print::type_text,
        kernels: loop_codegen::encode(&module),
        metadata: vec![
            ("target".into(), options.target.name().into()),
            (EXEC_MODE.into(), options.exec_mode.name().into()),
            ("signatures".into(), signature_text(&signatures)?),
        ],
        sources: options.sources.as_deref(),
    };
    let executable = codegen(&module, inputs, &ctx)?;
    phases.push(phase.end());
    let mut table = loop_codegen::kernel_table(compiled, &module);
    if options.exec_mode == ExecMode::Compiled {
        let phase = Phase::start("FunctionBodies");
        loop_codegen::add_bodies(&mut table, &executable, &machine_options)?;
        phases.push(phase.end());
    }
    if let Some(dump) = &dump {
        dump.write_as("Bytecode", "txt", &executable.as_text())?;
    }
    let optimization = background_optimization::start(options.target, &module, &mut table)?;
    let stats = CompileStats {
        phases,
        total: start.elapsed(),
        functions: module.relax_funcs().count(),
        kernels: table.len(),
        explanation: explanation(&ctx, options),
    };
    let module = Some(module);
    let parts = (executable, table, module);
    let tiers = (target, optimization);
    Ok(CompiledModule::new(parts, signatures, stats, options.threads, on_drop, tiers))
}

/// Returns the signatures as text for the metadata of an executable.
///
/// # Errors
/// An internal error if they cannot be written.
fn signature_text(signatures: &[Signature]) -> Result<String, Error> {
    serde_json::to_string(signatures).map_err(|e| {
        let message = format!("the signatures of the executable cannot be written: {e}");
        Error::internal("bytecode", message)
    })
}

/// Creates the explanation of the compilation from the remarks of its passes, with a note if the
/// options disable library kernels.
fn explanation(ctx: &PassContext, options: &CompileOptions) -> Explanation {
    let optimizes = options.pipeline.as_ref().is_none_or(|pipeline| match pipeline {
        Pipeline::Named(name) => name != "minimum",
        Pipeline::Passes(_) => true,
    });
    let note = match (ctx.kernels(), optimizes) {
        (_, false) => "The pipeline does not offload operators to kernels.\n",
        (false, _) => "Library kernels are switched off.\n",
        (true, true) => "",
    };
    let (remarks, sources) = (ctx.remarks.all(), options.sources.clone());
    Explanation { remarks, sources, note: Some(note) }
}

/// Compiles a module at any stage with the pipeline `minimum`, unless the options select another pipeline. This pipeline lowers
/// operators to loop functions, without graph-level optimization and offloading.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Tensor, Value, build};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let program = build(module, &CompileOptions::default())?;
/// let x = Tensor::from_slice(&[2], &[1.0f32, 2.0])?;
/// let y = program.vm()?.invoke("main", &[Value::Tensor(x)])?;
/// assert_eq!(y.as_tensor().expect("a tensor").to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`compile`].
pub fn build(module: IRModule, options: &CompileOptions) -> Result<CompiledModule, Error> {
    let pipeline = options.pipeline.clone().unwrap_or_else(|| Pipeline::from("minimum"));
    compile(module, &CompileOptions { pipeline: Some(pipeline), ..options.clone() })
}

/// Runs the graph passes: the passes of the named pipeline, or the passes of the user followed by the lowering passes that every
/// build needs.
fn run_pipeline(
    module: IRModule,
    selected: Option<&Pipeline>,
    ctx: &PassContext,
) -> Result<IRModule, Error> {
    let original = module.functions.keys().cloned().collect();
    let module = match selected {
        None => pipeline("default")?.apply(module, ctx)?,
        Some(Pipeline::Named(name)) => pipeline(name)?.apply(module, ctx)?,
        Some(Pipeline::Passes(passes)) => {
            let module = passes.apply(module, ctx)?;
            pipeline("minimum")?.apply(module, ctx)?
        }
    };
    Ok(packed_name_conflicts::rename_conflicting(module, &original, ctx)?)
}

/// Returns the sequence of graph passes with that name.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let default = pliant::pipeline("default")?;
/// assert!(default.passes().iter().any(|pass| pass.name() == "LegalizeOps"));
/// let error = pliant::pipeline("defaults").err().expect("no such pipeline");
/// assert!(error.to_string().contains("there is no pipeline 'defaults'"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// A user error if no pipeline has that name.
pub fn pipeline(name: &str) -> Result<Sequential, Error> {
    pliant_opt::pipeline(name).ok_or_else(|| {
        let known = pliant_opt::pipelines::NAMES;
        let help = did_you_mean(name, known.iter().copied());
        Error::option(
            format!("there is no pipeline '{name}'"),
            help.unwrap_or_else(|| format!("the pipelines are {}", known.join(", "))),
        )
    })
}

/// The highest optimization level of a compilation.
const MAX_OPT_LEVEL: u8 = 3;

/// Rejects options with unknown settings or invalid values.
fn check_settings(options: &CompileOptions) -> Result<(), Error> {
    for (name, value) in &options.config {
        pliant_pass::pass_settings::check(name, value).map_err(|e| {
            Error::option(e, "the module `pliant_pass::pass_settings` lists the settings")
        })?;
    }
    let setting = |name: &str| options.config.get(name).cloned();
    if setting(PRECISION)
        .is_some_and(|v| v.as_str().is_some_and(|v| matches!(v, "bf16" | "bfloat16")))
        && setting(KERNELS) == Some(AttrValue::Bool(false))
    {
        return Err(Error::option(
            "bfloat16 precision needs library kernels, but the setting `kernels` disables them",
            "remove one of the settings `precision` and `kernels`",
        ));
    }
    if let Some(level) = options.opt_level.filter(|&level| level > MAX_OPT_LEVEL) {
        return Err(Error::option(
            format!("the option `opt_level` must be from 0 to {MAX_OPT_LEVEL}, but is {level}"),
            "leave the option out for level 2",
        ));
    }
    if options.threads == Some(0) {
        return Err(Error::option(
            "the option `threads` must be at least 1, but is 0",
            "leave the option out to use all processors",
        ));
    }
    if options.threads.is_some_and(|n| n > pliant_pool::MAX_THREADS) {
        return Err(Error::option(
            format!(
                "the option `threads` must be at most {}, but is {}",
                pliant_pool::MAX_THREADS,
                options.threads.unwrap_or(0)
            ),
            "leave the option out to use all processors",
        ));
    }
    Ok(())
}

fn dump_dir(options: &CompileOptions) -> Option<PathBuf> {
    let from_env = || std::env::var_os("PLIANT_DUMP_IR").filter(|d| !d.is_empty()).map(Into::into);
    options.dump_dir.clone().or_else(from_env)
}

/// The name and the start time of a compilation phase that is not a pass.
pub(crate) struct Phase(&'static str, Instant);

impl Phase {
    pub(crate) fn start(name: &'static str) -> Phase {
        Phase(name, Instant::now())
    }

    pub(crate) fn end(self) -> TimingEntry {
        TimingEntry { name: self.0.into(), depth: 0, duration: self.1.elapsed() }
    }
}
