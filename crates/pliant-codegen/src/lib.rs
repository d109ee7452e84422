//! The interface between code generators and the rest of Pliant: the [`Backend`] trait, the compiled functions that it returns,
//! its errors, and decisions that all backends share.
//!
//! | module | contents |
//! |---|---|
//! | [`backend_trait`] | [`Backend`] and its options |
//! | [`call_arguments`] | buffers that calls receive, and the list of error messages |
//! | [`compiled_bytecode_functions`] | [`CompiledBodies`]: machine code of bytecode functions |
//! | [`compiled_loop_functions`] | [`CompiledKernels`]: entry points, signatures, error messages and memory of loop functions |
//! | [`error`] | [`CodegenError`] |
//! | [`interrupt_polling`] | which loops poll the interrupt flag |
//! | [`object_code`] | code and data of an object file, for programs that are compiled ahead of time |
//! | [`prologue_plan`] | how a loop function loads and checks its arguments |
//!
//! The input of a backend is *lowered* loop functions. `pliant_tir::lowered_form_verifier` defines this form.
//!
//! # Examples
//! ```
//! use pliant_codegen::{KernelSignature, ParamKind};
//! use pliant_ir::DType;
//! use pliant_ir::tir::PrimFunc;
//!
//! let mut f = PrimFunc::new();
//! let shape = vec![f.int(4), f.int(8)];
//! let a = f.compact_buffer("A", shape, DType::Float32);
//! f.add_buffer_param("var_A", a);
//! let signature = KernelSignature::of(&f).expect("the parameter has a buffer");
//! let (name, kind) = &signature.params[0];
//! assert_eq!(&**name, "A");
//! assert_eq!(*kind, ParamKind::Tensor { dtype: DType::Float32, ndim: 2 });
//! ```

pub mod backend_trait;
pub mod call_arguments;
pub mod compiled_bytecode_functions;
pub mod compiled_loop_functions;
pub mod error;
pub mod interrupt_polling;
pub mod object_code;
pub mod prologue_plan;

pub use backend_trait::{Backend, CodegenOptions, KernelSource};
pub use compiled_bytecode_functions::CompiledBodies;
pub use compiled_loop_functions::{CompiledKernel, CompiledKernels, KernelSignature, ParamKind};
pub use error::CodegenError;
pub use object_code::{CreateProgramData, ObjectCode, ObjectFunction, ObjectTarget, ProgramData};
