//! The [`Backend`] trait, which code generators implement, and its options.

use std::sync::Arc;

use pliant_exec::Executable;
use pliant_ir::tir::PrimFunc;

use crate::compiled_bytecode_functions::CompiledBodies;
use crate::compiled_loop_functions::CompiledKernels;
use crate::error::CodegenError;
use crate::object_code::{CreateProgramData, ObjectTarget};

/// A lowered loop function that a backend compiles: its name and its body.
pub type KernelSource<'a> = (Arc<str>, &'a PrimFunc);

/// Options of code generation for a whole compilation.
///
/// # Examples
/// ```
/// use pliant_codegen::CodegenOptions;
///
/// // Loops without polls of the interrupt flag, compiled on one thread.
/// let options =
///     CodegenOptions { check_interrupt: false, compile_threads: 1, ..CodegenOptions::default() };
/// assert_eq!(options.dump_dir, None);
/// ```
#[derive(Clone, Debug)]
pub struct CodegenOptions {
    /// The number of compilation threads. 0 selects the number of hardware threads of the machine.
    pub compile_threads: usize,
    /// The directory to which the intermediate code and the machine code of each function are dumped; `None` disables dumps.
    pub dump_dir: Option<std::path::PathBuf>,
    /// Whether generated loops poll the interrupt flag.
    pub check_interrupt: bool,
    /// Whether generated code compares each index with the size of its buffer immediately before the access, even if the index
    /// was proved to be in bounds. An access out of bounds then fails with [`pliant_tensor::CheckFailure::Internal`]. Default: on
    /// in builds with debug assertions, otherwise off.
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

/// A code generator: compiles loop functions and bytecode functions to machine code.
pub trait Backend: Send + Sync {
    /// The name of the code generator, by which the setting `target=` selects it, such as
    /// `"cranelift"`.
    fn name(&self) -> &'static str;

    /// The size in bytes of the widest vectors of the CPU if the code generator uses them, for which loop functions must be
    /// lowered ([`VECTOR_BYTES`](pliant_tir::code_generator_vectors::VECTOR_BYTES)). `None` if its vectors have 128 bits.
    ///
    /// # Errors
    /// [`CodegenError::Host`]: the machine cannot generate code.
    fn widest_vector_bytes(&self) -> Result<Option<usize>, CodegenError> {
        Ok(None)
    }

    /// Compiles lowered loop functions to callable machine code.
    ///
    /// # Errors
    /// - [`CodegenError::Unsupported`] lists all constructs that this backend cannot compile.
    /// - [`CodegenError::Internal`]: a bug in Pliant.
    /// - [`CodegenError::Host`]: the machine cannot generate or run code.
    fn compile(
        &self,
        funcs: &[KernelSource<'_>],
        options: &CodegenOptions,
    ) -> Result<CompiledKernels, CodegenError>;

    /// Returns the size in bytes of the widest vectors that object code for `target` uses, for which loop functions
    /// must be lowered before they are compiled to object code. `None` if the vectors have 128 bits.
    ///
    /// # Errors
    /// [`CodegenError::Host`]: the code generator does not know the target.
    fn object_vector_bytes(&self, target: &ObjectTarget) -> Result<Option<usize>, CodegenError>;

    /// Compiles lowered loop functions to one relocatable object file in ELF format. The file defines a single global symbol, the
    /// header of the program (`pliant_exec::ahead_of_time_abi`). `create_program_data` creates the contents of the file besides
    /// the machine code; it is called after the code has been generated.
    ///
    /// # Errors
    /// The errors of [`compile`](Self::compile) and of `create_program_data`; [`CodegenError::Host`] also if the code generator
    /// does not know the target.
    fn compile_object(
        &self,
        funcs: &[KernelSource<'_>],
        target: &ObjectTarget,
        options: &CodegenOptions,
        create_program_data: CreateProgramData<'_>,
    ) -> Result<Vec<u8>, CodegenError>;

    /// Compiles the bytecode functions of a program to native bodies: machine code that the VM runs instead of the bytecode.
    /// `pliant_exec::native_body_abi` defines their calling convention.
    ///
    /// # Errors
    /// - [`CodegenError::Unsupported`]: the backend does not compile bytecode functions.
    /// - [`CodegenError::Internal`]: a bug in Pliant.
    /// - [`CodegenError::Host`]: the machine cannot generate or run code.
    fn compile_bodies(
        &self,
        executable: &Executable,
        options: &CodegenOptions,
    ) -> Result<CompiledBodies, CodegenError>;
}
