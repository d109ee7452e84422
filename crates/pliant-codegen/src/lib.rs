//! The interface between code generators and the rest of Pliant: the [`Backend`] trait, the compiled functions that it returns,
//! and its errors.
//!
//! | module | contents |
//! |---|---|
//! | [`backend`] | [`Backend`] and its options |
//! | [`bodies`] | [`CompiledBodies`]: native bodies of bytecode functions |
//! | [`kernels`] | [`CompiledKernels`]: entry points, signatures, error messages and memory of loop functions |
//! | [`error`] | [`CodegenError`] |
//!
//! The input of a backend is *lowered* loop functions. `pliant_tir::lowered` defines this form.

pub mod backend;
pub mod bodies;
pub mod error;
pub mod kernels;

pub use backend::{Backend, CodegenOptions, KernelSource};
pub use bodies::CompiledBodies;
pub use error::CodegenError;
pub use kernels::{CompiledKernel, CompiledKernels, KernelSignature, ParamKind};
