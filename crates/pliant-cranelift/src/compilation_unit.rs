//! Compilation units: a unit is a JIT module with several functions and the executable memory of their code.

use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{FuncRef, GlobalValueData, InstBuilder, Signature, Value, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{DataId, FuncId, Linkage, Module, ModuleReloc};
use indexmap::IndexMap;
use pliant_codegen::error::Unsupported;
use pliant_codegen::{
    CodegenError, CodegenOptions, CompiledKernel, CompiledKernels, CreateProgramData,
    KernelSignature, KernelSource, ObjectCode, ObjectFunction,
};
use pliant_exec::abi::LoopFn;
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::PrimFunc;

use crate::code_target::CodeTarget;
use crate::function_builder::GenError;
use crate::object_file::ObjectFile;

/// Maximum number of values of a function that is compiled with the default (backtracking) register allocator. Larger
/// functions use the single-pass allocator. The time of the default allocator grows with the cube of the number of
/// simultaneously live values, and register allocation cannot be interrupted. It took 70 seconds for 8,000 live values
/// (without optimization, on a busy Zen 3).
const MAX_BACKTRACKING_VALUES: usize = 1 << 14;

/// Maximum size in bytes of a function's stack frame. Worker threads have a stack of 2 MiB.
const MAX_FRAME_BYTES: u32 = 512 << 10;

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

/// The module of a compilation unit, which collects its machine functions and data.
#[expect(clippy::large_enum_variant, reason = "there is one module per compilation unit")]
pub(crate) enum CodeModule {
    /// Executable memory of this process. Code calls functions of the run-time library by their addresses.
    Memory(JITModule),
    /// An object file.
    Object(ObjectFile),
}

impl Deref for CodeModule {
    type Target = dyn Module;

    fn deref(&self) -> &Self::Target {
        match self {
            CodeModule::Memory(module) => module,
            CodeModule::Object(file) => &file.module,
        }
    }
}

impl DerefMut for CodeModule {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            CodeModule::Memory(module) => module,
            CodeModule::Object(file) => &mut file.module,
        }
    }
}

/// The state that the functions of a compilation unit share during code generation.
pub(crate) struct Unit {
    pub module: CodeModule,
    /// The CPU for which code is generated.
    target: CodeTarget,
    /// The number of machine functions that have been added to the unit so far.
    functions: usize,
    /// Whether the target CPU has fused multiply-add.
    pub has_fma: bool,
    /// Whether the target CPU is an x86-64. Its float minimum and maximum instructions need extra code for NaNs, because they
    /// return the second operand if either is NaN.
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
    /// Creates a unit without functions. `isa` is Cranelift's description of `target`.
    pub fn new(
        module: CodeModule,
        isa: &OwnedTargetIsa,
        target: &CodeTarget,
        options: &CodegenOptions,
    ) -> Unit {
        let architecture = isa.triple().architecture.to_string();
        let has_fma = architecture.starts_with("aarch64")
            || isa.isa_flags().iter().any(|v| v.name == "has_fma" && v.as_bool() == Some(true));
        Unit {
            module,
            target: target.clone(),
            functions: 0,
            has_fma,
            x86: architecture.starts_with("x86_64"),
            check_interrupt: options.check_interrupt,
            check_accesses: options.check_accesses,
            dump: options.dump_dir.is_some().then(String::new),
            contexts: Vec::new(),
        }
    }

    /// Declares a machine function. In an object file, its symbol starts with the name of the loop function, so that profilers
    /// and debuggers show it.
    pub fn declare_function(&mut self, name: &str, sig: &Signature) -> Result<FuncId, GenError> {
        self.functions += 1;
        Ok(match &mut self.module {
            CodeModule::Memory(module) => module.declare_anonymous_function(sig)?,
            CodeModule::Object(file) => {
                let symbol = format!("{name}.{}", self.functions);
                file.module.declare_function(&symbol, Linkage::Local, sig)?
            }
        })
    }

    /// Returns the address of a function of the run-time library as a machine value. In code for this process, the value is the
    /// constant `address`. In an object file, it is loaded from the table of imports.
    pub fn import_address(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        import: Import,
        address: usize,
    ) -> Value {
        match &mut self.module {
            CodeModule::Memory(_) => b.ins().iconst(types::I64, address as i64),
            CodeModule::Object(file) => file.load_import(b, import),
        }
    }

    /// Returns a reference through which the function under construction can call another function of the same compilation unit.
    pub fn func_ref(&mut self, b: &mut FunctionBuilder<'_>, id: FuncId) -> FuncRef {
        let func = self.module.declare_func_in_func(id, b.func);
        if matches!(self.module, CodeModule::Memory(_)) {
            // The call uses the absolute address, because parts of the unit's memory may be more than 2 GB apart if other threads
            // map memory at the same time.
            b.func.dfg.ext_funcs[func].colocated = false;
        }
        func
    }

    /// Returns the address of constant data as a machine value. In code for this process, it is an absolute address, because the
    /// data may be more than 2 GB away from the code.
    pub fn data_address(&mut self, b: &mut FunctionBuilder<'_>, id: DataId) -> Value {
        let data = self.module.declare_data_in_func(id, b.func);
        if matches!(self.module, CodeModule::Memory(_))
            && let GlobalValueData::Symbol { colocated, .. } = &mut b.func.global_values[data]
        {
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
        let isa = self.target.single_pass_isa().map_err(|e| failed(e, ctx))?;
        let compiled = ctx.compile(&*isa, &mut ControlPlane::default());
        if let Err(error) = compiled.map(|_| ()).map_err(|e| e.inner.to_string()) {
            return Err(failed(error, ctx));
        }
        check_frame(ctx)?;
        let Some(code) = ctx.compiled_code() else {
            return Err(failed(
                "Cranelift compiled the function, but returned no machine code".into(),
                ctx,
            ));
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
        "the machine code of the function needs a stack frame of {bytes} bytes for its intermediate values, more than the \
         maximum of {MAX_FRAME_BYTES}; unroll or vectorize fewer loops, or split the function"
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
    let builder = JITBuilder::with_isa(isa.clone(), cranelift_module::default_libcall_names());
    let module = CodeModule::Memory(JITModule::new(builder));
    let mut unit = Unit::new(module, isa, &CodeTarget::host_memory(), options);
    let generated = generate_functions(&mut unit, funcs, options);
    let CodeModule::Memory(module) = unit.module else { unreachable!("created above") };
    match generated {
        Ok(generated) => finalize(module, generated),
        Err(error) => {
            // SAFETY: no address of the unit's code has been returned.
            unsafe { module.free_memory() };
            Err(error)
        }
    }
}

/// Generates the machine functions of all loop functions.
///
/// # Errors
/// `Unsupported` lists the unsupported constructs of all functions. `Internal` reports the first error.
fn generate_functions(
    unit: &mut Unit,
    funcs: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<Vec<GeneratedFunction>, CodegenError> {
    let (mut generated, mut unsupported) = (Vec::with_capacity(funcs.len()), Vec::new());
    for (name, func) in funcs {
        match generate_function(unit, name, func) {
            Ok(function) => generated.push(function),
            Err(GenError::Unsupported(description)) => {
                unsupported.push(Unsupported { function: name.clone(), description });
            }
            Err(GenError::Internal(message, ir)) => {
                return Err(CodegenError::Internal { function: name.clone(), message, ir });
            }
        }
        write_dump(unit, name, options);
    }
    if unsupported.is_empty() { Ok(generated) } else { Err(CodegenError::Unsupported(unsupported)) }
}

/// Compiles loop functions to an object file. After the code is generated, `create_program_data` creates the rest of the file's
/// contents: the encoded executable, the description of the program and the list of imports.
///
/// # Errors
/// If [`compile_unit`] or `create_program_data` fails.
pub(crate) fn compile_object(
    target: &CodeTarget,
    funcs: &[KernelSource<'_>],
    options: &CodegenOptions,
    create_program_data: CreateProgramData<'_>,
) -> Result<Vec<u8>, CodegenError> {
    let isa = target.isa().map_err(CodegenError::Host)?;
    let file = ObjectFile::new(&isa).map_err(CodegenError::Host)?;
    let mut unit = Unit::new(CodeModule::Object(file), &isa, target, options);
    let generated = generate_functions(&mut unit, funcs, options)?;
    let CodeModule::Object(file) = unit.module else { unreachable!("created above") };
    let ids: Vec<FuncId> = generated.iter().map(|function| function.id).collect();
    let functions: Vec<ObjectFunction> = generated
        .into_iter()
        .map(|f| ObjectFunction {
            name: f.name,
            signature: f.signature,
            messages: f.messages.into(),
        })
        .collect();
    let cpu_features = target.cpu_features(&isa);
    let imports = file.imports();
    let code = ObjectCode { functions: &functions, imports: &imports, cpu_features: &cpu_features };
    file.finish(&ids, create_program_data(code)?)
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
            "no buffer is bound to the handle parameter '{param}'; bind one with T.match_buffer"
        ))
    })?;
    let checked =
        unit.check_accesses.then(|| pliant_tir::vector_math_checks::with_kernel_checks(func));
    let (id, messages) =
        crate::function_prologue::generate(unit, name, checked.as_ref().unwrap_or(func))?;
    Ok(GeneratedFunction { name: name.clone(), id, signature, messages })
}

/// Makes the code of a compilation unit executable. Returns the compiled functions.
fn finalize(
    mut module: JITModule,
    generated: Vec<GeneratedFunction>,
) -> Result<CompiledKernels, CodegenError> {
    // The pages become executable and read-only.
    if let Err(error) = module.finalize_definitions() {
        return Err(CodegenError::Host(error.to_string()));
    }
    let mut kernels = IndexMap::with_capacity(generated.len());
    for function in generated {
        let code = module.get_finalized_function(function.id);
        // SAFETY: `function_prologue` generated this function with the signature of `LoopFn`.
        let entry = unsafe { std::mem::transmute::<*const u8, LoopFn>(code) };
        let kernel = CompiledKernel {
            entry,
            signature: function.signature,
            messages: function.messages.into(),
        };
        kernels.insert(function.name, kernel);
    }
    Ok(CompiledKernels::new(kernels, Arc::new(UnitMemory::new(module))))
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
