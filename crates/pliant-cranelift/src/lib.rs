//! The embedded code generator: compiles lowered loop functions to machine code in memory, with
//! Cranelift.
//!
//! | module | owns |
//! |---|---|
//! | `compilation_unit` | a compilation unit: a JIT module, its linked symbols and its executable memory |
//! | `code_target` | the CPU for which code is generated, and Cranelift's settings |
//! | `object_file` | the object file of a program that is compiled ahead of time |
//! | `function_builder` | the state of a machine function under construction, and its failure paths |
//! | `function_prologue` | the prologue of a loop function: loads and checks arguments, defines size variables |
//! | `bytecode_functions` | machine code of bytecode functions |
//! | `statements` | statements and loops |
//! | `parallel_loop` | parallel loops, outlined into separate functions |
//! | `buffer_accesses` | locations of buffers, loads and stores |
//! | `buffer_allocation` | buffers in registers, on the stack and in workspaces |
//! | `debug_bounds_checks` | bounds checks before every access, in test builds |
//! | `value_representations` | values of expressions: scalars, 128-bit chunks, masks, lanes |
//! | `packed_function_calls`, `library_kernel_calls` | calls of packed functions and of library kernels |
//! | `basic_expressions` | constants, variables, selection and vector constructors |
//! | `binary_operators`, `int_vector_division` | operators with two operands |
//! | `element_type_casts` | conversions between element types |
//! | `intrinsics` | intrinsics and calls of external native functions |
//! | `half_floats` | conversions of 16-bit floats |
//! | `elementary_functions` | inline expansion of elementary functions |
//!
//! Loop functions may use vectors of any width. The generator splits them into chunks of 128 bits,
//! the only vector width that Cranelift supports on x86-64. It computes an expression lane by lane
//! if there is no vector instruction for it.

mod basic_expressions;
mod binary_operators;
mod buffer_accesses;
mod buffer_allocation;
mod bytecode_functions;
mod code_target;
mod compilation_unit;
mod debug_bounds_checks;
mod element_type_casts;
mod elementary_functions;
mod function_builder;
mod function_prologue;
mod half_floats;
mod int_vector_division;
mod intrinsics;
mod library_kernel_calls;
mod object_file;
mod packed_function_calls;
mod parallel_loop;
mod statements;
mod value_representations;

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_codegen::{
    Backend, CodegenError, CodegenOptions, CompiledBodies, CompiledKernels, CreateProgramData,
    KernelSource, ObjectTarget,
};
use pliant_exec::Executable;
use pliant_pool::{compile_threads, parallel_map};

use code_target::CodeTarget;

/// The Cranelift code generator.
///
/// # Examples
/// ```
/// use pliant_codegen::{Backend, CodegenOptions};
/// use pliant_cranelift::CraneliftBackend;
/// use pliant_exec::abi::KernelRuntime;
/// use pliant_ops::te;
/// use pliant_tensor::{DType, Tensor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = te::placeholder(vec![te::int(2)], DType::Float32, "x");
/// let y = te::compute(vec![te::int(2)], "y", |i| x.at(i) + x.at(i));
/// let double = pliant_tir::lower(&te::create_prim_func(&[(&x).into(), (&y).into()])?)?;
/// let compiled = CraneliftBackend::new().compile(&[("double".into(), &double)], &CodegenOptions::default())?;
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
pub struct CraneliftBackend;

impl CraneliftBackend {
    /// Creates the code generator.
    pub fn new() -> Self {
        CraneliftBackend
    }
}

/// Minimum number of functions per compilation unit. Each unit has its own executable pages, so small units waste
/// memory.
const MIN_UNIT_FUNCTIONS: usize = 8;

impl Backend for CraneliftBackend {
    fn name(&self) -> &'static str {
        "cranelift"
    }

    fn compile(
        &self,
        funcs: &[KernelSource<'_>],
        options: &CodegenOptions,
    ) -> Result<CompiledKernels, CodegenError> {
        let isa = code_target::host_isa()?;
        let threads = match options.compile_threads {
            0 => compile_threads(),
            n => n,
        };
        // Several units per thread balance the load, because the sizes of functions differ a lot.
        let unit_len = funcs.len().div_ceil(threads * 4).max(MIN_UNIT_FUNCTIONS);
        let compile = |funcs: &[KernelSource<'_>]| {
            check_memory()?;
            let deep = funcs.iter().any(|(_, f)| pliant_tir::stack_guard::is_deep(f));
            pliant_tir::stack_guard::run(deep, || {
                compilation_unit::compile_unit(&isa, funcs, options)
            })
            .unwrap_or_else(|e| Err(CodegenError::Host(e.to_string())))
        };
        let units: Vec<_> = if threads == 1 || funcs.len() <= unit_len {
            funcs.chunks(unit_len.max(1)).map(compile).collect()
        } else {
            parallel_map(funcs.chunks(unit_len).collect(), compile)
        };
        merge_units(units)
    }

    fn object_vector_bytes(&self, _target: &ObjectTarget) -> Result<Option<usize>, CodegenError> {
        Ok(None)
    }

    fn compile_object(
        &self,
        funcs: &[KernelSource<'_>],
        target: &ObjectTarget,
        options: &CodegenOptions,
        create_program_data: CreateProgramData<'_>,
    ) -> Result<Vec<u8>, CodegenError> {
        check_memory()?;
        let deep = funcs.iter().any(|(_, f)| pliant_tir::stack_guard::is_deep(f));
        let target = CodeTarget::object(target);
        pliant_tir::stack_guard::run(deep, || {
            compilation_unit::compile_object(&target, funcs, options, create_program_data)
        })
        .unwrap_or_else(|e| Err(CodegenError::Host(e.to_string())))
    }

    fn compile_bodies(
        &self,
        executable: &Executable,
        options: &CodegenOptions,
    ) -> Result<CompiledBodies, CodegenError> {
        bytecode_functions::compile(executable, options)
    }
}

/// Returns an error if the process is short of memory, so that no more code is generated.
fn check_memory() -> Result<(), CodegenError> {
    pliant_tensor::memory_reserve::check().map_err(|e| CodegenError::Host(e.to_string()))
}

/// Merges the compiled loop functions of all units, in order. If units have unsupported constructs, the error lists all
/// of them.
fn merge_units(
    units: Vec<Result<CompiledKernels, CodegenError>>,
) -> Result<CompiledKernels, CodegenError> {
    let mut all = CompiledKernels::new(IndexMap::new(), Arc::new(()));
    let mut unsupported = Vec::new();
    for unit in units {
        match unit {
            Ok(kernels) => all.extend(kernels),
            Err(CodegenError::Unsupported(mut list)) => unsupported.append(&mut list),
            Err(other) => return Err(other),
        }
    }
    if unsupported.is_empty() { Ok(all) } else { Err(CodegenError::Unsupported(unsupported)) }
}
