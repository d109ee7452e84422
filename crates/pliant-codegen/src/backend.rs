//! The trait that a code generator implements.

use std::sync::Arc;

use pliant_exec::Executable;
use pliant_ir::tir::PrimFunc;

use crate::bodies::CompiledBodies;
use crate::error::CodegenError;
use crate::kernels::CompiledKernels;

/// A lowered loop function to compile: its global name and the function.
pub type KernelSource<'a> = (Arc<str>, &'a PrimFunc);

/// Options of code generation.
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// The number of threads that compile in parallel; 0 for as many as the machine has.
    pub compile_threads: usize,
    /// The directory to which each function's intermediate and machine code is written; `None` for no dump.
    pub dump_dir: Option<std::path::PathBuf>,
    /// Whether generated loops poll the interrupt flag.
    pub check_interrupt: bool,
    /// Whether generated code compares each index with the size of its buffer directly before the access, even if it was proved to
    /// be in bounds. An access out of bounds then fails with an internal error ([`pliant_tensor::CheckFailure::Internal`]).
    /// Default: on in builds with debug assertions.
    pub check_accesses: bool,
}

impl Default for CodegenOptions {
    fn default() -> Self {
        CodegenOptions {
            compile_threads: 0,
            dump_dir: None,
            check_interrupt: true,
            check_accesses: cfg!(debug_assertions),
        }
    }
}

/// A code generator.
pub trait Backend: Send + Sync {
    /// Its name, which `target=` selects.
    fn name(&self) -> &'static str;

    /// Compiles lowered functions to machine code that is ready to be called.
    ///
    /// # Errors
    /// [`CodegenError::Unsupported`] lists everything that this backend cannot compile. [`CodegenError::Internal`] is a defect of
    /// Pliant.
    fn compile(
        &self,
        funcs: &[KernelSource<'_>],
        options: &CodegenOptions,
    ) -> Result<CompiledKernels, CodegenError>;

    /// Compiles the bytecode functions of a program to native bodies (`pliant_exec::native_body`).
    ///
    /// # Errors
    /// [`CodegenError::Unsupported`] from a backend without native bodies. [`CodegenError::Internal`] is a defect of Pliant.
    fn compile_bodies(
        &self,
        executable: &Executable,
        options: &CodegenOptions,
    ) -> Result<CompiledBodies, CodegenError>;
}
