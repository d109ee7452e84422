//! The LLVM code generator: compiles lowered loop functions to machine code in memory, with the full vector width of the CPU.
//!
//! The crate is empty unless its feature `llvm` is set, which links LLVM 19.
//!
//! | module | owns |
//! |---|---|
//! | `code_target` | the CPU for which code is generated: name, instruction sets, vector width |
//! | `compilation_unit` | a compilation unit: an LLVM module of several functions, its optimization and its object code |
//! | `code_cache` | object code in the user's cache directory |
//! | `object_file` | the data of the object file of a program that is compiled ahead of time |
//! | `object_loader` | links object code into executable memory |
//! | [`process_lifetime`] | prevents compilations while the process exits or forks |
//! | `function_builder` | the state of a machine function under construction, and its failure paths |
//! | `values` | LLVM types and values of expressions, and operations on both scalars and vectors |
//! | `function_prologue` | the prologue of a loop function: loads and checks arguments, defines size variables |
//! | `statements` | statements and loops |
//! | `parallel_loop` | parallel loops, outlined into separate functions |
//! | `buffer_accesses` | locations of buffers, loads and stores |
//! | `buffer_allocation` | buffers in registers, on the stack and in workspaces |
//! | `debug_bounds_checks` | bounds checks before every access, in test builds |
//! | `packed_function_calls`, `library_kernel_calls` | calls of packed functions and of library kernels |
//! | `basic_expressions` | constants, variables, selection and vector constructors |
//! | `binary_operators`, `int_division` | operators with two operands |
//! | `element_type_casts` | conversions between element types |
//! | `intrinsics` | intrinsics and calls of external native functions |
//! | `half_floats` | conversions of 16-bit floats |
//! | `elementary_functions` | inline expansion of elementary functions |
//!
//! Loop functions arrive with explicit vectors. The default schedule chooses the number of lanes and emits the tail, the last
//! iterations of a vectorized loop, as separate loops (`pliant-tir/src/schedule/emit_stage_loops.rs`).
//! `pliant-tir/src/vectorize_loops.rs` then replaces loops of the kind `vectorized` by vector operations.
//!
//! Every value, scalar or vector, is one LLVM value. LLVM splits vectors that are wider than those of the CPU.
#![cfg(feature = "llvm")]

mod basic_expressions;
mod binary_operators;
mod buffer_accesses;
mod buffer_allocation;
mod code_cache;
mod code_target;
mod compilation_unit;
mod debug_bounds_checks;
mod element_type_casts;
mod elementary_functions;
mod function_builder;
mod function_prologue;
mod half_floats;
mod int_division;
mod intrinsics;
mod library_kernel_calls;
mod object_file;
mod object_loader;
mod packed_function_calls;
mod parallel_loop;
pub mod process_lifetime;
mod statements;
mod values;

use indexmap::IndexMap;
use pliant_codegen::error::Unsupported;
use pliant_codegen::{
    Backend, CodegenError, CodegenOptions, CompiledBodies, CompiledKernel, CompiledKernels,
    CreateProgramData, KernelSource, ObjectTarget,
};
use pliant_exec::Executable;
use pliant_ir::tir::PrimFunc;
use pliant_ir::tir::visit::for_each_stmt;
use pliant_pool::{compile_threads, parallel_map};
use pliant_tensor::memory_reserve;

use code_target::CodeTarget;
use compilation_unit::CompiledUnit;

/// The LLVM code generator.
///
/// # Examples
/// ```
/// use pliant_codegen::{Backend, CodegenOptions};
/// use pliant_exec::abi::KernelRuntime;
/// use pliant_llvm::LlvmBackend;
/// use pliant_ops::te;
/// use pliant_tensor::{DType, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = te::placeholder(vec![te::int(2)], DType::Float32, "x");
/// let y = te::compute(vec![te::int(2)], "y", |i| x.at(i) + x.at(i));
/// let double = pliant_tir::lower(&te::create_prim_func(&[(&x).into(), (&y).into()])?)?;
/// let compiled = LlvmBackend::new().compile(&[("double".into(), &double)], &CodegenOptions::default())?;
/// let entry = compiled.get("double").expect("the function was compiled").entry;
/// let (x, y) = (Tensor::from_slice(&[2], &[1.0f32, 2.0])?, Tensor::zeros(&[2], DType::Float32)?);
/// let words = [x.dl(), y.dl()].map(|tensor| std::ptr::from_ref(tensor) as u64);
/// // SAFETY: the words match the signature of the function, and only this thread uses the tensors.
/// assert_eq!(unsafe { entry(words.as_ptr(), &KernelRuntime::serial()) }, 0);
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct LlvmBackend;

impl LlvmBackend {
    /// Creates the code generator.
    pub fn new() -> Self {
        LlvmBackend
    }
}

impl Backend for LlvmBackend {
    fn name(&self) -> &'static str {
        "llvm"
    }

    fn widest_vector_bytes(&self) -> Result<Option<usize>, CodegenError> {
        check_memory(0)?;
        let _compiling = process_lifetime::begin_compilation()?;
        Ok(Some(CodeTarget::host()?.vector_bits as usize / 8))
    }

    fn compile(
        &self,
        funcs: &[KernelSource<'_>],
        options: &CodegenOptions,
    ) -> Result<CompiledKernels, CodegenError> {
        check_memory(0)?;
        let target = {
            let _compiling = process_lifetime::begin_compilation()?;
            CodeTarget::host()?
        };
        let threads = match options.compile_threads {
            0 => compile_threads(),
            n => n,
        };
        // Several units per thread balance the load, because the sizes of functions differ a lot.
        let unit_len = funcs.len().div_ceil(threads * 4).max(1);
        let compile = |(number, funcs): (usize, &[KernelSource<'_>])| {
            check_memory(funcs.iter().map(|(_, f)| statement_count(f)).sum())?;
            let _compiling = process_lifetime::begin_compilation()?;
            let deep = funcs.iter().any(|(_, f)| pliant_tir::stack_guard::is_deep(f));
            pliant_tir::stack_guard::run(deep, || {
                compilation_unit::compile_unit(target, number, funcs, options)
            })
            .unwrap_or_else(|e| Err(CodegenError::Host(e.to_string())))
        };
        let units: Vec<_> = funcs.chunks(unit_len).enumerate().collect();
        let units = match threads {
            1 => units.into_iter().map(compile).collect(),
            _ => parallel_map(units, compile),
        };
        load_units(units)
    }

    fn object_vector_bytes(&self, target: &ObjectTarget) -> Result<Option<usize>, CodegenError> {
        check_memory(0)?;
        let _compiling = process_lifetime::begin_compilation()?;
        Ok(Some(CodeTarget::object(target)?.vector_bits as usize / 8))
    }

    fn compile_object(
        &self,
        funcs: &[KernelSource<'_>],
        target: &ObjectTarget,
        options: &CodegenOptions,
        create_program_data: CreateProgramData<'_>,
    ) -> Result<Vec<u8>, CodegenError> {
        check_memory(funcs.iter().map(|(_, f)| statement_count(f)).sum())?;
        let deep = funcs.iter().any(|(_, f)| pliant_tir::stack_guard::is_deep(f));
        pliant_tir::stack_guard::run(deep, || {
            let _compiling = process_lifetime::begin_compilation()?;
            let target = CodeTarget::object(target)?;
            compilation_unit::compile_object(&target, funcs, options, create_program_data)
        })
        .unwrap_or_else(|e| Err(CodegenError::Host(e.to_string())))
    }

    fn compile_bodies(
        &self,
        executable: &Executable,
        _options: &CodegenOptions,
    ) -> Result<CompiledBodies, CodegenError> {
        let description = "LLVM compiles only loop functions, not bytecode functions; compile these with Cranelift";
        let unsupported = executable.vm_functions().map(|f| Unsupported {
            function: f.name.as_str().into(),
            description: description.into(),
        });
        Err(CodegenError::Unsupported(unsupported.collect()))
    }
}

/// Number of bytes of memory that must be available before LLVM compiles a unit of small functions. LLVM aborts the process if an
/// allocation fails.
const UNIT_MEMORY: usize = 128 << 20;
/// Number of bytes of memory that must be available for each statement of a unit, in addition to `UNIT_MEMORY`. A function of 1,000
/// statements with one `exp` each takes more than 180 MB.
const STATEMENT_MEMORY: usize = 256 << 10;

/// Returns the number of statements of a loop function, as a measure of its size.
pub fn statement_count(f: &PrimFunc) -> usize {
    let mut count = 0;
    for_each_stmt(f, f.body, |_| count += 1);
    count
}

/// Returns an error if the process is short of memory, so that LLVM does not compile a unit of this size.
fn check_memory(statements: usize) -> Result<(), CodegenError> {
    let needed = UNIT_MEMORY.saturating_add(statements.saturating_mul(STATEMENT_MEMORY));
    memory_reserve::check()
        .and_then(|()| memory_reserve::check_available(needed.min(isize::MAX as usize / 2)))
        .map_err(|e| CodegenError::Host(e.to_string()))
}

/// Links the object code of all units into executable memory, and returns the loop functions in order. If units have unsupported
/// constructs, the error lists all of them.
fn load_units(
    units: Vec<Result<CompiledUnit, CodegenError>>,
) -> Result<CompiledKernels, CodegenError> {
    let (mut compiled, mut unsupported) = (Vec::new(), Vec::new());
    for unit in units {
        match unit {
            Ok(unit) => compiled.push(unit),
            Err(CodegenError::Unsupported(mut list)) => unsupported.append(&mut list),
            Err(other) => return Err(other),
        }
    }
    if !unsupported.is_empty() {
        return Err(CodegenError::Unsupported(unsupported));
    }
    check_memory(0)?;
    let _compiling = process_lifetime::begin_compilation()?;
    let code = object_loader::LoadedCode::load(&compiled).map_err(CodegenError::Host)?;
    let mut kernels = IndexMap::new();
    for function in compiled.into_iter().flat_map(|unit| unit.functions) {
        let entry = code.entry(&function.symbol).map_err(CodegenError::Host)?;
        let kernel = CompiledKernel {
            entry,
            signature: function.signature,
            messages: function.messages.into(),
        };
        kernels.insert(function.name, kernel);
    }
    Ok(CompiledKernels::new(kernels, std::sync::Arc::new(code)))
}
