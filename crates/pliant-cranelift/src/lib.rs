//! The embedded code generator: compiles lowered loop functions to machine code in memory, with Cranelift.
//!
//! | module | owns |
//! |---|---|
//! | `unit` | one compilation unit: the JIT module, linked symbols, executable memory freed on drop |
//! | `function` | the state of one machine function under construction, failure paths |
//! | `entry` | the prologue of a loop function: arguments, sizes, checks |
//! | `body` | native bodies of bytecode functions |
//! | `stmt` | statements and loops |
//! | `parallel` | parallel loops, outlined into separate functions |
//! | `memory` | buffers: loads, stores, stack, registers and workspaces |
//! | `access_checks` | bounds checks before every access, in test builds |
//! | `value` | values: scalars, 128-bit chunks, masks, lanes |
//! | `packed`, `kernel_call` | calls of packed functions and of library kernels |
//! | `expr`, `arith`, `cast`, `intrin` | expressions, by family |
//! | `half` | conversions of 16-bit floats |
//! | `sequences` | inline expansion of elementary functions |
//!
//! Loop functions may use vectors of any width. The generator splits them into 128-bit chunks, the only vector width that
//! Cranelift supports on x86-64. Expressions without a vector instruction are computed lane by lane.

mod access_checks;
mod arith;
mod body;
mod cast;
mod division;
mod entry;
mod expr;
mod function;
mod half;
mod intrin;
mod kernel_call;
mod memory;
mod packed;
mod parallel;
mod sequences;
mod stmt;
mod unit;
mod value;

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_codegen::{
    Backend, CodegenError, CodegenOptions, CompiledBodies, CompiledKernels, KernelSource,
};
use pliant_exec::Executable;
use pliant_pool::{compile_threads, parallel_map};

/// The Cranelift code generator. It compiles for the machine that it runs on.
#[derive(Debug, Default)]
pub struct CraneliftBackend;

impl CraneliftBackend {
    /// The code generator.
    pub fn new() -> Self {
        CraneliftBackend
    }
}

/// Minimum number of functions in a compilation unit, because each unit has its own executable pages.
const MIN_UNIT: usize = 8;

impl Backend for CraneliftBackend {
    fn name(&self) -> &'static str {
        "cranelift"
    }

    fn compile(
        &self,
        funcs: &[KernelSource<'_>],
        options: &CodegenOptions,
    ) -> Result<CompiledKernels, CodegenError> {
        let isa = unit::host_isa()?;
        let threads = match options.compile_threads {
            0 => compile_threads(),
            n => n,
        };
        // Each thread gets several units to balance the load, because the sizes of functions differ much.
        let chunk = funcs.len().div_ceil(threads * 4).max(MIN_UNIT);
        let compile = |chunk: &[KernelSource<'_>]| {
            check_memory()?;
            let deep = chunk.iter().any(|(_, f)| pliant_tir::stack_guard::is_deep(f));
            pliant_tir::stack_guard::run(deep, || unit::compile_unit(&isa, chunk, options))
                .unwrap_or_else(|e| Err(CodegenError::Host(e.to_string())))
        };
        let units: Vec<_> = if threads == 1 || funcs.len() <= chunk {
            funcs.chunks(chunk.max(1)).map(compile).collect()
        } else {
            parallel_map(funcs.chunks(chunk).collect(), compile)
        };
        join(units)
    }

    fn compile_bodies(
        &self,
        executable: &Executable,
        options: &CodegenOptions,
    ) -> Result<CompiledBodies, CodegenError> {
        body::compile(executable, options)
    }
}

/// Fails if the process is short of memory.
fn check_memory() -> Result<(), CodegenError> {
    pliant_tensor::memory_reserve::check().map_err(|e| CodegenError::Host(e.to_string()))
}

/// Joins the loop functions of all units in order. Collects the unsupported constructs of all units in one error.
fn join(
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
