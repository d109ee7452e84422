//! The interface between code generators and the rest of Pliant: the [`Backend`] trait, the compiled functions that it returns,
//! and its errors.
//!
//! | module | owns |
//! |---|---|
//! | [`backend`] | [`Backend`] and its options |
//! | [`bodies`] | [`CompiledBodies`]: native bodies of bytecode functions |
//! | [`kernels`] | [`CompiledKernels`]: entry points of loop functions, their messages and signatures, and their memory |
//! | [`error`] | [`CodegenError`] |
//!
//! A backend takes *lowered* loop functions (`pliant_tir::lowered` defines this form).

pub mod backend;
pub mod bodies;
pub mod error;
pub mod kernels;

pub use backend::{Backend, CodegenOptions, KernelSource};
pub use bodies::CompiledBodies;
pub use error::CodegenError;
pub use kernels::{CompiledKernel, CompiledKernels, KernelSignature, ParamKind};
