//! One compilation unit: a JIT module with the functions of a chunk, and the memory its code stands in.

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
use pliant_exec::abi::KernelFn;
use pliant_ir::tir::PrimFunc;
use pliant_kernels::{ExternFn, ExternTy, extern_fn, extern_fns};
use rustc_hash::FxHashMap;

use crate::function::{GenError, abi_signature, extern_type};

/// Functions with more values than this get registers from the single-pass allocator. The time of the default allocator
/// grows with the cube of the number of values that are live at once: 70 seconds for 8,000 (without optimisation, on a
/// busy Zen 3), which nothing can interrupt.
const MAX_BACKTRACKING_VALUES: usize = 1 << 14;

/// The largest stack frame of a function in bytes. Worker threads have a stack of 2 MiB.
const MAX_FRAME: u32 = 512 << 10;

/// The machine that this program runs on, with all its instruction sets.
pub(crate) fn host_isa() -> Result<OwnedTargetIsa, CodegenError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    ISA.get_or_init(|| make_isa("backtracking")).clone().map_err(CodegenError::Host)
}

/// As [`host_isa`], with a register allocator that takes linear time and spills more.
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
        // Frames larger than a page must not step over the guard page.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags.set(name, value).map_err(|e| format!("setting {name}: {e}"))?;
    }
    let isa = cranelift_native::builder()?;
    isa.finish(settings::Flags::new(flags)).map_err(|e| e.to_string())
}

/// The executable memory of a unit.
pub(crate) struct UnitMemory(Option<JITModule>);

impl UnitMemory {
    /// The memory of a finished module.
    pub fn new(module: JITModule) -> UnitMemory {
        UnitMemory(Some(module))
    }
}

// SAFETY: after finalization the module is only kept to be freed; nothing reaches into it.
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

/// What the functions of a unit share while they are built.
pub(crate) struct Unit {
    pub module: JITModule,
    externs: FxHashMap<&'static str, FuncId>,
    pub has_fma: bool,
    /// Whether the machine is an x86, whose instructions for extremes ignore NaNs.
    pub x86: bool,
    pub check_interrupt: bool,
    pub check_accesses: bool,
    /// Text of every machine function of the current kernel, when somebody wants it.
    pub dump: Option<String>,
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

    /// A linked function, as the function under construction names it.
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

    /// A function, as the function under construction names it. Always by its absolute address: the memory of a unit
    /// may be more than 2 GB apart if other threads map memory meanwhile.
    pub fn func_ref(&mut self, b: &mut FunctionBuilder<'_>, id: FuncId) -> FuncRef {
        let func = self.module.declare_func_in_func(id, b.func);
        b.func.dfg.ext_funcs[func].colocated = false;
        func
    }

    /// The address of constant data, likewise absolute.
    pub fn data_address(&mut self, b: &mut FunctionBuilder<'_>, id: DataId) -> Value {
        let data = self.module.declare_data_in_func(id, b.func);
        if let GlobalValueData::Symbol { colocated, .. } = &mut b.func.global_values[data] {
            *colocated = false;
        }
        b.ins().symbol_value(types::I64, data)
    }

    pub fn take_context(&mut self) -> FunctionBuilderContext {
        self.contexts.pop().unwrap_or_default()
    }

    pub fn give_context(&mut self, context: FunctionBuilderContext) {
        self.contexts.push(context);
    }

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
        let Some(code) = ctx.compiled_code() else { return Err(failed("no code".into(), ctx)) };
        let relocations = code.buffer.relocs().iter();
        let relocations: Vec<ModuleReloc> =
            relocations.map(|r| ModuleReloc::from_mach_reloc(r, &ctx.func, id)).collect();
        let (alignment, bytes) = (u64::from(code.buffer.alignment), code.buffer.data());
        let defined = self.module.define_function_bytes(id, alignment, bytes, &relocations);
        defined.map_err(|e| failed(e.to_string(), ctx))
    }

    /// Compiles a finished function.
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

/// Fails if a compiled function needs more stack than threads have to spare.
fn check_frame(ctx: &Context) -> Result<(), GenError> {
    let layout = ctx.compiled_code().and_then(|code| code.buffer.frame_layout());
    let bytes = layout.map_or(0, |layout| layout.frame_to_fp_offset);
    if bytes <= MAX_FRAME {
        return Ok(());
    }
    Err(GenError::Unsupported(format!(
        "its expressions keep {bytes} bytes of intermediate values at once, more than {MAX_FRAME}"
    )))
}

struct Built {
    name: Arc<str>,
    id: FuncId,
    signature: KernelSignature,
    messages: Vec<Arc<str>>,
}

/// Compiles some functions into memory of their own.
pub(crate) fn compile_unit(
    isa: &OwnedTargetIsa,
    funcs: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<CompiledKernels, CodegenError> {
    let mut unit = Unit::new(isa, options);
    let mut built = Vec::with_capacity(funcs.len());
    let mut unsupported = Vec::new();
    for (name, func) in funcs {
        match build(&mut unit, name, func) {
            Ok(one) => built.push(one),
            Err(GenError::Unsupported(what)) => {
                unsupported.push(Unsupported { function: name.clone(), what });
            }
            Err(GenError::Internal(message, ir)) => {
                // SAFETY: nothing of this unit has been handed out.
                unsafe { unit.module.free_memory() };
                return Err(CodegenError::Internal { function: name.clone(), message, ir });
            }
        }
        write_dump(&mut unit, name, options);
    }
    if !unsupported.is_empty() {
        // SAFETY: nothing of this unit has been handed out.
        unsafe { unit.module.free_memory() };
        return Err(CodegenError::Unsupported(unsupported));
    }
    finish(unit, built)
}

fn build(unit: &mut Unit, name: &Arc<str>, func: &PrimFunc) -> Result<Built, GenError> {
    pliant_tir::lowered::verify(func).map_err(GenError::Unsupported)?;
    let signature = KernelSignature::of(func).map_err(|param| {
        GenError::Unsupported(format!("the handle parameter '{param}' has no buffer"))
    })?;
    let checked = unit.check_accesses.then(|| pliant_tir::kernel_checks::with_kernel_checks(func));
    let (id, messages) = crate::entry::generate(unit, checked.as_ref().unwrap_or(func))?;
    Ok(Built { name: name.clone(), id, signature, messages })
}

fn finish(mut unit: Unit, built: Vec<Built>) -> Result<CompiledKernels, CodegenError> {
    // Makes the pages executable and no longer writable.
    if let Err(error) = unit.module.finalize_definitions() {
        return Err(CodegenError::Host(error.to_string()));
    }
    let mut kernels = IndexMap::with_capacity(built.len());
    for one in built {
        let code = unit.module.get_finalized_function(one.id);
        // SAFETY: `entry` generated this function with the signature of the kernel ABI.
        let entry = unsafe { std::mem::transmute::<*const u8, KernelFn>(code) };
        let kernel =
            CompiledKernel { entry, signature: one.signature, messages: one.messages.into() };
        kernels.insert(one.name, kernel);
    }
    Ok(CompiledKernels::new(kernels, Arc::new(UnitMemory::new(unit.module))))
}

/// Writes what was collected about a kernel; a dump that cannot be written is not worth failing for.
fn write_dump(unit: &mut Unit, name: &str, options: &CodegenOptions) {
    if let (Some(dir), Some(dump)) = (&options.dump_dir, &mut unit.dump) {
        let file: String =
            name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let _ = std::fs::create_dir_all(dir);
        let _ = std::fs::write(dir.join(format!("{file}.clif")), &*dump);
        dump.clear();
    }
}
