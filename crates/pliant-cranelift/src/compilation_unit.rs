//! Compilation units: a unit is a JIT module with several functions and the executable memory of their code.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{FuncRef, GlobalValueData, InstBuilder, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{DataId, FuncId, Linkage, Module, ModuleReloc};
use indexmap::IndexMap;
use pliant_codegen::error::Unsupported;
use pliant_codegen::{
    CodegenError, CodegenOptions, CompiledKernel, CompiledKernels, KernelSignature, KernelSource,
};
use pliant_exec::abi::LoopFn;
use pliant_ir::tir::PrimFunc;
use pliant_kernels::{ExternFn, ExternTy, extern_fn, extern_fns};
use rustc_hash::FxHashMap;

use crate::function_builder::{GenError, abi_signature, extern_type};

/// Maximum number of values of a function that is compiled with the default (backtracking) register allocator. Larger
/// functions use the single-pass allocator. The time of the default allocator grows with the cube of the number of
/// simultaneously live values, and register allocation cannot be interrupted. It took 70 seconds for 8,000 live values
/// (without optimization, on a busy Zen 3).
const MAX_BACKTRACKING_VALUES: usize = 1 << 14;

/// Maximum size in bytes of a function's stack frame. Worker threads have a stack of 2 MiB.
const MAX_FRAME_BYTES: u32 = 512 << 10;

/// Returns Cranelift's description of the host CPU, with all its instruction sets.
pub(crate) fn host_isa() -> Result<OwnedTargetIsa, CodegenError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    ISA.get_or_init(|| make_isa("backtracking")).clone().map_err(CodegenError::Host)
}

/// Like [`host_isa`], but with a register allocator that takes linear time and spills more values to the stack.
fn single_pass_isa() -> Result<OwnedTargetIsa, String> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    ISA.get_or_init(|| make_isa("single_pass")).clone()
}

fn make_isa(allocator: &str) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("regalloc_algorithm", allocator),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", verify),
        ("unwind_info", "false"),
        // Probes prevent a frame larger than a page from skipping the guard page.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags
            .set(name, value)
            .map_err(|e| format!("the code generator rejects the setting {name}: {e}"))?;
    }
    let isa = cranelift_native::builder()?;
    isa.finish(settings::Flags::new(flags)).map_err(|e| e.to_string())
}

/// The executable memory of a compilation unit. Dropping it frees the code.
pub(crate) struct UnitMemory(Option<JITModule>);

impl UnitMemory {
    /// Takes ownership of the memory of a finalized module.
    pub fn new(module: JITModule) -> UnitMemory {
        UnitMemory(Some(module))
    }
}

// SAFETY: the module is finalized, and nothing but `drop` accesses it.
unsafe impl Send for UnitMemory {}
// SAFETY: as for Send.
unsafe impl Sync for UnitMemory {}

impl Drop for UnitMemory {
    fn drop(&mut self) {
        if let Some(module) = self.0.take() {
            // SAFETY: `CompiledKernels` keeps this memory as long as its entry points are reachable.
            unsafe { module.free_memory() }
        }
    }
}

/// The state that the functions of a compilation unit share during code generation.
pub(crate) struct Unit {
    pub module: JITModule,
    /// The external native functions that the compilation unit has declared so far, by the name under which generated code calls
    /// them.
    externs: FxHashMap<&'static str, FuncId>,
    /// Whether the machine has fused multiply-add.
    pub has_fma: bool,
    /// Whether the machine is an x86-64. Its float minimum and maximum instructions need extra code for NaNs, because they return
    /// the second operand if either is NaN.
    pub x86: bool,
    /// Whether generated loops poll the interrupt flag.
    pub check_interrupt: bool,
    /// Whether generated code checks the bounds of every access ([`crate::debug_bounds_checks`]).
    pub check_accesses: bool,
    /// The dump of the current loop function: the text of its machine functions. `None` if the options request no
    /// dumps.
    pub dump: Option<String>,
    /// Unused builder contexts, whose allocations the next functions reuse.
    contexts: Vec<FunctionBuilderContext>,
}

impl Unit {
    fn new(isa: &OwnedTargetIsa, options: &CodegenOptions) -> Unit {
        let mut builder =
            JITBuilder::with_isa(isa.clone(), cranelift_module::default_libcall_names());
        for f in extern_fns() {
            builder.symbol(f.name, f.address as *const u8);
        }
        builder.symbol_lookup_fn(Box::new(|name| extern_fn(name).map(|f| f.address as *const u8)));
        let architecture = isa.triple().architecture.to_string();
        let has_fma = architecture.starts_with("aarch64")
            || isa.isa_flags().iter().any(|v| v.name == "has_fma" && v.as_bool() == Some(true));
        Unit {
            module: JITModule::new(builder),
            externs: FxHashMap::default(),
            has_fma,
            x86: architecture.starts_with("x86_64"),
            check_interrupt: options.check_interrupt,
            check_accesses: options.check_accesses,
            dump: options.dump_dir.is_some().then(String::new),
            contexts: Vec::new(),
        }
    }

    /// Returns a reference through which the function under construction can call the external native function `f`.
    pub fn extern_ref(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        f: &'static ExternFn,
    ) -> Result<FuncRef, GenError> {
        let id = match self.externs.get(f.name) {
            Some(&id) => id,
            None => {
                let mut params = Vec::with_capacity(f.params.len() + 1);
                if f.runtime {
                    params.push(extern_type(ExternTy::Ptr));
                }
                params.extend(f.params.iter().map(|&p| extern_type(p)));
                let sig = abi_signature(&self.module, &params, extern_type(f.result));
                let id = self.module.declare_function(f.name, Linkage::Import, &sig)?;
                self.externs.insert(f.name, id);
                id
            }
        };
        Ok(self.func_ref(b, id))
    }

    /// Returns a reference through which the function under construction can call another function of the same compilation unit.
    /// Calls always use the absolute address, because parts of the unit's memory may be more than 2 GB apart if other threads map
    /// memory at the same time.
    pub fn func_ref(&mut self, b: &mut FunctionBuilder<'_>, id: FuncId) -> FuncRef {
        let func = self.module.declare_func_in_func(id, b.func);
        b.func.dfg.ext_funcs[func].colocated = false;
        func
    }

    /// Returns the address of constant data as a value. It is an absolute address, as in [`Unit::func_ref`].
    pub fn data_address(&mut self, b: &mut FunctionBuilder<'_>, id: DataId) -> Value {
        let data = self.module.declare_data_in_func(id, b.func);
        if let GlobalValueData::Symbol { colocated, .. } = &mut b.func.global_values[data] {
            *colocated = false;
        }
        b.ins().symbol_value(types::I64, data)
    }

    /// Returns a builder context for one machine function. The caller returns it to the unit with
    /// [`Unit::return_context`].
    pub fn take_context(&mut self) -> FunctionBuilderContext {
        self.contexts.pop().unwrap_or_default()
    }

    /// Returns a builder context to the unit, so that another function can reuse its allocations.
    pub fn return_context(&mut self, context: FunctionBuilderContext) {
        self.contexts.push(context);
    }

    /// Compiles a function to machine code, with the register allocator that suits its size.
    fn compile(&mut self, id: FuncId, ctx: &mut Context) -> Result<(), GenError> {
        let failed = |error: String, ctx: &Context| {
            GenError::Internal(error, ctx.func.display().to_string())
        };
        if ctx.func.dfg.num_values() <= MAX_BACKTRACKING_VALUES {
            self.module.define_function(id, ctx).map_err(|e| failed(e.to_string(), ctx))?;
            return check_frame(ctx);
        }
        let isa = single_pass_isa().map_err(|e| failed(e, ctx))?;
        let compiled = ctx.compile(&*isa, &mut ControlPlane::default());
        if let Err(error) = compiled.map(|_| ()).map_err(|e| e.inner.to_string()) {
            return Err(failed(error, ctx));
        }
        check_frame(ctx)?;
        let Some(code) = ctx.compiled_code() else {
            return Err(failed("the code generator returned no code".into(), ctx));
        };
        let relocations = code.buffer.relocs().iter();
        let relocations: Vec<ModuleReloc> =
            relocations.map(|r| ModuleReloc::from_mach_reloc(r, &ctx.func, id)).collect();
        let (alignment, bytes) = (u64::from(code.buffer.alignment), code.buffer.data());
        let defined = self.module.define_function_bytes(id, alignment, bytes, &relocations);
        defined.map_err(|e| failed(e.to_string(), ctx))
    }

    /// Compiles the function in `ctx` to machine code, defines it in the module under `id`, and
    /// adds its text to the dump.
    pub fn define(&mut self, id: FuncId, ctx: &mut Context) -> Result<(), GenError> {
        if let Some(dump) = &mut self.dump {
            let _ = writeln!(dump, "{}", ctx.func.display());
            ctx.set_disasm(true);
        }
        self.compile(id, ctx)?;
        if let (Some(dump), Some(code)) = (&mut self.dump, ctx.compiled_code())
            && let Some(asm) = &code.vcode
        {
            let _ = writeln!(dump, "{asm}");
        }
        Ok(())
    }
}

/// Fails if the stack frame of a compiled function is larger than [`MAX_FRAME_BYTES`].
fn check_frame(ctx: &Context) -> Result<(), GenError> {
    let layout = ctx.compiled_code().and_then(|code| code.buffer.frame_layout());
    let bytes = layout.map_or(0, |layout| layout.frame_to_fp_offset);
    if bytes <= MAX_FRAME_BYTES {
        return Ok(());
    }
    Err(GenError::Unsupported(format!(
        "the machine code of the function needs a stack frame of {bytes} bytes, more than the maximum of {MAX_FRAME_BYTES}"
    )))
}

/// A loop function whose code has been generated but is not executable yet.
struct GeneratedFunction {
    name: Arc<str>,
    id: FuncId,
    signature: KernelSignature,
    messages: Vec<Arc<str>>,
}

/// Compiles loop functions into one compilation unit, which has its own executable memory.
///
/// # Errors
/// `Unsupported` lists the unsupported constructs of all functions. `Internal` and `Host` report the first error.
pub(crate) fn compile_unit(
    isa: &OwnedTargetIsa,
    funcs: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<CompiledKernels, CodegenError> {
    let mut unit = Unit::new(isa, options);
    let mut generated = Vec::with_capacity(funcs.len());
    let mut unsupported = Vec::new();
    for (name, func) in funcs {
        match generate_function(&mut unit, name, func) {
            Ok(function) => generated.push(function),
            Err(GenError::Unsupported(description)) => {
                unsupported.push(Unsupported { function: name.clone(), description });
            }
            Err(GenError::Internal(message, ir)) => {
                // SAFETY: no address of the unit's code has been returned.
                unsafe { unit.module.free_memory() };
                return Err(CodegenError::Internal { function: name.clone(), message, ir });
            }
        }
        write_dump(&mut unit, name, options);
    }
    if !unsupported.is_empty() {
        // SAFETY: no address of the unit's code has been returned.
        unsafe { unit.module.free_memory() };
        return Err(CodegenError::Unsupported(unsupported));
    }
    finalize(unit, generated)
}

/// Verifies a loop function and generates its machine functions.
fn generate_function(
    unit: &mut Unit,
    name: &Arc<str>,
    func: &PrimFunc,
) -> Result<GeneratedFunction, GenError> {
    pliant_tir::lowered_form_verifier::verify(func).map_err(GenError::Unsupported)?;
    let signature = KernelSignature::of(func).map_err(|param| {
        GenError::Unsupported(format!(
            "the handle parameter '{param}' has no buffer; bind it with T.match_buffer"
        ))
    })?;
    let checked =
        unit.check_accesses.then(|| pliant_tir::vector_math_checks::with_kernel_checks(func));
    let (id, messages) =
        crate::function_prologue::generate(unit, checked.as_ref().unwrap_or(func))?;
    Ok(GeneratedFunction { name: name.clone(), id, signature, messages })
}

/// Makes the code of a compilation unit executable. Returns the compiled functions.
fn finalize(
    mut unit: Unit,
    generated: Vec<GeneratedFunction>,
) -> Result<CompiledKernels, CodegenError> {
    // The pages become executable and read-only.
    if let Err(error) = unit.module.finalize_definitions() {
        return Err(CodegenError::Host(error.to_string()));
    }
    let mut kernels = IndexMap::with_capacity(generated.len());
    for function in generated {
        let code = unit.module.get_finalized_function(function.id);
        // SAFETY: `prologue` generated this function with the signature of `LoopFn`.
        let entry = unsafe { std::mem::transmute::<*const u8, LoopFn>(code) };
        let kernel = CompiledKernel {
            entry,
            signature: function.signature,
            messages: function.messages.into(),
        };
        kernels.insert(function.name, kernel);
    }
    Ok(CompiledKernels::new(kernels, Arc::new(UnitMemory::new(unit.module))))
}

/// Writes the dump of a loop function to a file. Ignores errors, because a dump is only an aid for debugging.
fn write_dump(unit: &mut Unit, name: &str, options: &CodegenOptions) {
    if let (Some(dir), Some(dump)) = (&options.dump_dir, &mut unit.dump) {
        let file: String =
            name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let _ = std::fs::create_dir_all(dir);
        let _ = std::fs::write(dir.join(format!("{file}.clif")), &*dump);
        dump.clear();
    }
}
