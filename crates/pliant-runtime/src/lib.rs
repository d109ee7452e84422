//! The run-time library of programs: the host functions that compiled programs call, and the interfaces in Rust and C to
//! programs that were compiled ahead of time.
//!
//! | module | owns |
//! |---|---|
//! | `gemm_functions` | the packed functions `pliant.gemm`, matmuls with bias and activation |
//! | `host_functions` | the host functions that imported ONNX models call |
//! | `signature` | the signatures of functions: names, dtypes and dims with their symbols |
//!
//! The crate does not depend on the compiler.

mod gemm_functions;
mod host_functions;
mod signature;

pub use gemm_functions::call_library;
pub use host_functions::argument_error;
pub use signature::{Dim, Signature, ValueInfo};

/// Registers the host functions of this crate. Functions that the user has registered under these names are kept.
pub fn register_host_functions() {
    gemm_functions::register();
    host_functions::register();
}
