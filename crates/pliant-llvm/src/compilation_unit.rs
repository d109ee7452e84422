//! Compilation units: a unit is an LLVM module with several functions, which becomes one object file in memory.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;

use indexmap::IndexMap;
use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMDiagnosticSeverity::{LLVMDSError, LLVMDSWarning};
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::{Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{FileType, TargetMachine};
use inkwell::types::FunctionType;
use inkwell::values::{FunctionValue, PointerValue};
use pliant_codegen::error::Unsupported;
use pliant_codegen::{
    CodegenError, CodegenOptions, CreateProgramData, KernelSignature, KernelSource, ObjectCode,
    ObjectFunction,
};
use pliant_exec::ahead_of_time_abi::Import;
use pliant_ir::tir::PrimFunc;

use crate::code_cache::{CacheKey, CodeCache};
use crate::code_target::{CodeTarget, MAX_FRAME_BYTES};
use crate::function_builder::{Gen, GenError, internal};
use crate::object_file::{ImportTable, add_data};

/// The LLVM pass pipeline that optimizes a compilation unit.
const PASSES: &str = "default<O2>";

/// The object code of a compilation unit.
pub(crate) struct CompiledUnit {
    /// The object file.
    pub object: Vec<u8>,
    /// The addresses of the external symbols that the object file uses.
    pub symbols: IndexMap<String, usize>,
    /// The loop functions of the unit, in order.
    pub functions: Vec<CompiledFunction>,
}

/// A loop function in a [`CompiledUnit`].
pub(crate) struct CompiledFunction {
    pub name: Arc<str>,
    /// The symbol of the machine function in the object file.
    pub symbol: String,
    pub signature: KernelSignature,
    /// The error messages of the function's checks.
    pub messages: Vec<Arc<str>>,
}

/// The state that the functions of a compilation unit share during code generation.
pub(crate) struct Unit<'ctx> {
    pub context: &'ctx Context,
    pub module: Module<'ctx>,
    pub target: &'ctx CodeTarget,
    /// Whether generated loops poll the interrupt flag.
    pub check_interrupt: bool,
    /// Whether generated code checks the bounds of every access ([`crate::debug_bounds_checks`]).
    pub check_accesses: bool,
    /// The table of imports of an object file; `None` for code in the memory of this process.
    import_table: Option<ImportTable<'ctx>>,
    /// The addresses of the external symbols that the unit's functions use so far, by symbol.
    symbols: RefCell<IndexMap<String, usize>>,
    /// The number of the unit, which makes its symbols unique.
    number: usize,
    /// The number of machine functions that have been added to the unit so far.
    functions: Cell<usize>,
}

impl<'ctx> Unit<'ctx> {
    /// Adds an empty machine function. Its symbol starts with the name of the loop function, so that profilers and debuggers show
    /// it.
    pub fn add_function(&self, name: &str, ty: FunctionType<'ctx>) -> FunctionValue<'ctx> {
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let position = self.functions.replace(self.functions.get() + 1);
        let symbol = format!("{name}.{}.{position}", self.number);
        let function = self.module.add_function(&symbol, ty, None);
        self.target.add_attributes(self.context, function);
        function
    }

    /// Returns the address of a function of the run-time library as an LLVM value. In code for this process, it is the address of a
    /// symbol, which is linked to `address`. In an object file, it is loaded from the table of imports.
    pub fn import_address(
        &self,
        builder: &Builder<'ctx>,
        import: Import,
        address: usize,
        ty: FunctionType<'ctx>,
    ) -> Gen<PointerValue<'ctx>> {
        if let Some(table) = &self.import_table {
            let pointer = self.context.ptr_type(AddressSpace::default());
            return Ok(builder.build_load(pointer, table.entry(import), "")?.into_pointer_value());
        }
        // With the prefix, LLVM does not take the function for one of the C library.
        let symbol = match &import {
            Import::Function(name) => format!("pliant.{name}"),
            other => other.symbol().unwrap_or_default(),
        };
        let function = self
            .module
            .get_function(&symbol)
            .unwrap_or_else(|| self.module.add_function(&symbol, ty, Some(Linkage::External)));
        self.symbols.borrow_mut().entry(symbol).or_insert(address);
        Ok(function.as_global_value().as_pointer_value())
    }
}

impl<'ctx> Unit<'ctx> {
    fn new(
        context: &'ctx Context,
        (target, machine): (&'ctx CodeTarget, &TargetMachine),
        number: usize,
        options: &CodegenOptions,
    ) -> Unit<'ctx> {
        let module = context.create_module("pliant");
        module.set_triple(&machine.get_triple());
        module.set_data_layout(&machine.get_target_data().get_data_layout());
        Unit {
            context,
            module,
            target,
            check_interrupt: options.check_interrupt,
            check_accesses: options.check_accesses,
            import_table: None,
            symbols: RefCell::default(),
            number,
            functions: Cell::new(0),
        }
    }

    /// Generates the machine functions of all loop functions.
    ///
    /// # Errors
    /// `Unsupported` lists the unsupported constructs of all functions. `Internal` reports the first error.
    fn generate(&self, funcs: &[KernelSource<'_>]) -> Result<Vec<CompiledFunction>, CodegenError> {
        let (mut functions, mut unsupported) = (Vec::with_capacity(funcs.len()), Vec::new());
        for (name, func) in funcs {
            match generate_function(self, name, func) {
                Ok(function) => functions.push(function),
                Err(GenError::Unsupported(description)) => {
                    unsupported.push(Unsupported { function: name.clone(), description });
                }
                Err(GenError::Internal(message)) => return Err(self.internal_error(name, message)),
            }
        }
        match unsupported.is_empty() {
            true => Ok(functions),
            false => Err(CodegenError::Unsupported(unsupported)),
        }
    }

    /// Creates the error for a bug that occurred in the code of a loop function.
    fn internal_error(&self, function: &Arc<str>, message: String) -> CodegenError {
        let ir = self.module.print_to_string().to_string();
        CodegenError::Internal { function: function.clone(), message, ir }
    }

    /// Converts an error that occurred in the code of a loop function.
    fn error(&self, function: &Arc<str>, error: GenError) -> CodegenError {
        match error {
            GenError::Unsupported(description) => {
                CodegenError::unsupported(function.clone(), description)
            }
            GenError::Internal(message) => self.internal_error(function, message),
        }
    }
}

/// Compiles loop functions to object code for this process.
///
/// # Errors
/// `Unsupported` lists the unsupported constructs of all functions. `Internal` and `Host` report the first error.
pub(crate) fn compile_unit(
    target: &'static CodeTarget,
    number: usize,
    funcs: &[KernelSource<'_>],
    options: &CodegenOptions,
) -> Result<CompiledUnit, CodegenError> {
    let context = Context::create();
    let machine = target.machine().map_err(CodegenError::Host)?;
    let unit = Unit::new(&context, (target, &machine), number, options);
    let functions = unit.generate(funcs)?;
    let Some((name, _)) = funcs.first() else {
        return Ok(CompiledUnit { object: Vec::new(), symbols: IndexMap::new(), functions });
    };
    let object = cached_object(&unit, options, || {
        with_diagnostics(&context, || emit_object(&unit, &machine, options))
    });
    let object = object.map_err(|e| unit.error(name, e))?;
    Ok(CompiledUnit { object, symbols: unit.symbols.into_inner(), functions })
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
    let context = Context::create();
    let machine = target.machine().map_err(CodegenError::Host)?;
    let mut unit = Unit::new(&context, (target, &machine), 0, options);
    let table = ImportTable::new(&unit.module);
    unit.import_table = Some(table);
    let functions = unit.generate(funcs)?;
    let described: Vec<ObjectFunction> = functions
        .iter()
        .map(|f| ObjectFunction {
            name: f.name.clone(),
            signature: f.signature.clone(),
            messages: f.messages.clone().into(),
        })
        .collect();
    let imports = unit.import_table.as_ref().map(ImportTable::imports).unwrap_or_default();
    let cpu_features = target.cpu_features();
    let code = ObjectCode { functions: &described, imports: &imports, cpu_features: &cpu_features };
    let data = create_program_data(code)?;
    let name: Arc<str> = "the object file".into();
    if let Some(table) = unit.import_table.take() {
        add_data(&unit, table, &functions, &data).map_err(|e| unit.error(&name, e))?;
    }
    with_diagnostics(&context, || emit_object(&unit, &machine, options))
        .map_err(|e| unit.error(&name, e))
}

/// Verifies a loop function and generates its machine functions.
fn generate_function(unit: &Unit<'_>, name: &Arc<str>, func: &PrimFunc) -> Gen<CompiledFunction> {
    pliant_tir::lowered_form_verifier::verify(func).map_err(GenError::Unsupported)?;
    let signature = KernelSignature::of(func).map_err(|param| {
        GenError::Unsupported(format!(
            "no buffer is bound to the handle parameter '{param}'; bind one with T.match_buffer"
        ))
    })?;
    let checked =
        unit.check_accesses.then(|| pliant_tir::vector_math_checks::with_kernel_checks(func));
    let (symbol, messages) =
        crate::function_prologue::generate(unit, name, checked.as_ref().unwrap_or(func))?;
    Ok(CompiledFunction { name: name.clone(), symbol, signature, messages })
}

/// Returns the object code of a unit from the code cache, or compiles it and stores it there. Dumps need a compilation.
fn cached_object(
    unit: &Unit<'_>,
    options: &CodegenOptions,
    compile: impl FnOnce() -> Gen<Vec<u8>>,
) -> Gen<Vec<u8>> {
    let Some(cache) = CodeCache::get().filter(|_| options.dump_dir.is_none()) else {
        return compile();
    };
    let key = CacheKey::of(&unit.module, PASSES);
    if let Some(object) = cache.load(key) {
        return Ok(object);
    }
    let object = compile()?;
    cache.store(key, &object);
    Ok(object)
}

/// Optimizes the module of a unit and compiles it to an object file.
fn emit_object(unit: &Unit<'_>, machine: &TargetMachine, options: &CodegenOptions) -> Gen<Vec<u8>> {
    unit.module.verify().or_else(|e| internal(format!("LLVM rejects the generated code: {e}")))?;
    let failed = |what: &str, e: String| GenError::Internal(format!("{what}: {e}"));
    unit.module
        .run_passes(PASSES, machine, PassBuilderOptions::create())
        .map_err(|e| failed("LLVM cannot optimize the generated code", e.to_string()))?;
    write_dump(unit, machine, options);
    let object = machine.write_to_memory_buffer(&unit.module, FileType::Object);
    let object = object.map_err(|e| {
        failed("LLVM cannot translate the generated code to machine code", e.to_string())
    })?;
    Ok(object.as_slice().to_vec())
}

/// Collects the errors and warnings of LLVM while `compile` runs. The only warnings that generated code can cause concern the
/// size of the stack frame; they are an unsupported construct.
fn with_diagnostics(context: &Context, compile: impl FnOnce() -> Gen<Vec<u8>>) -> Gen<Vec<u8>> {
    let mut large_frames: Vec<String> = Vec::new();
    // SAFETY: the handler and the list live until the handler is removed below.
    unsafe {
        LLVMContextSetDiagnosticHandler(
            context.raw(),
            Some(record_diagnostic),
            (&raw mut large_frames).cast(),
        );
    }
    let object = compile();
    // SAFETY: removes the handler.
    unsafe {
        LLVMContextSetDiagnosticHandler(context.raw(), None, std::ptr::null_mut());
    }
    match large_frames.is_empty() {
        true => object,
        false => Err(GenError::Unsupported(format!(
            "the machine code needs a stack frame of more than {MAX_FRAME_BYTES} bytes for its intermediate values; unroll or \
             vectorize fewer loops, or split the function (LLVM reports: {})",
            large_frames.join("; ")
        ))),
    }
}

/// Records an error or warning of LLVM's code generator. The only warnings that generated code can cause concern the size of the
/// stack frame.
extern "C" fn record_diagnostic(diagnostic: LLVMDiagnosticInfoRef, list: *mut c_void) {
    // SAFETY: `emit_object` passes a list of strings, and LLVM a valid diagnostic.
    unsafe {
        let severity = LLVMGetDiagInfoSeverity(diagnostic);
        if !matches!(severity, LLVMDSError | LLVMDSWarning) {
            return;
        }
        let text = LLVMGetDiagInfoDescription(diagnostic);
        let description = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        (*list.cast::<Vec<String>>()).push(description);
    }
}

/// Writes the optimized intermediate code and the assembly code of a unit to files. Ignores errors, because a dump is only an aid
/// for debugging.
fn write_dump(unit: &Unit<'_>, machine: &TargetMachine, options: &CodegenOptions) {
    let Some(dir) = &options.dump_dir else { return };
    let _ = std::fs::create_dir_all(dir);
    let file = |extension: &str| dir.join(format!("unit{}.{extension}", unit.number));
    let _ = std::fs::write(file("ll"), unit.module.print_to_string().to_bytes());
    if let Ok(assembly) = machine.write_to_memory_buffer(&unit.module, FileType::Assembly) {
        let _ = std::fs::write(file("s"), assembly.as_slice());
    }
}
