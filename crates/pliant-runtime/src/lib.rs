//! The run-time library of programs: the host functions that compiled programs call, and the interfaces in Rust and C to
//! programs that were compiled ahead of time.
//!
//! | module | owns |
//! |---|---|
//! | `program` | [`Program`]: a program that was compiled ahead of time |
//! | [`c_interface`] | the same for C; `include/pliant.h` documents it |
//! | `error` | [`RuntimeError`] |
//! | `gemm_functions` | the library functions `pliant.gemm`, matmuls with bias and activation |
//! | `host_functions` | the host functions that imported ONNX models call |
//! | `named_inputs_and_results` | inputs and results by name |
//! | [`npy`] | reads and writes NumPy's `.npy` files |
//! | `signature` | the signatures of functions: names, dtypes and dims with their symbols |
//!
//! The crate does not depend on the compiler.

pub mod c_interface;
mod error;
mod gemm_functions;
mod host_functions;
mod named_inputs_and_results;
pub mod npy;
mod program;
mod signature;

pub use error::RuntimeError;
pub use gemm_functions::call_library;
pub use host_functions::argument_error;
pub use named_inputs_and_results::{NamedInputError, entry_function};
pub use pliant_exec::ahead_of_time_abi::ProgramHeader;
pub use pliant_tensor::{DType, Tensor};
pub use pliant_vm::{RunOptions, Value, VmOptions};
pub use program::{Program, SHARED_LIBRARY_SYMBOL};
pub use signature::{Dim, Signature, ValueInfo};

/// A group of host functions of this crate that are registered together.
#[derive(Clone, Copy, Debug)]
pub struct HostFunctionGroup {
    /// The name of the group.
    pub name: &'static str,
    /// Whether the group contains the host function with this name.
    pub contains: fn(&str) -> bool,
}

/// The groups of host functions of this crate. A program that was compiled ahead of time registers those that it calls.
pub static HOST_FUNCTION_GROUPS: &[HostFunctionGroup] = &[
    HostFunctionGroup {
        name: "gemm",
        contains: |name| name.starts_with(pliant_kernel_api::host_function_names::GEMM),
    },
    HostFunctionGroup {
        name: "onnx",
        contains: |name| pliant_kernel_api::host_function_names::ALL.contains(&name),
    },
];

/// Registers the library functions `pliant.gemm` (the group `gemm`). Functions that the user has registered under these names are
/// kept.
#[unsafe(no_mangle)]
pub extern "C" fn pliant_register_gemm_functions() {
    gemm_functions::register();
}

/// Registers the host functions that imported ONNX models call (the group `onnx`). Functions that the user has registered under
/// these names are kept.
#[unsafe(no_mangle)]
pub extern "C" fn pliant_register_onnx_functions() {
    host_functions::register();
}

/// Registers all host functions of this crate. Functions that the user has registered under these names are kept.
pub fn register_host_functions() {
    pliant_register_gemm_functions();
    pliant_register_onnx_functions();
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_exec::ahead_of_time_abi::Import;

    #[test]
    fn groups_of_host_functions_have_the_symbols_of_imports() {
        let symbols = HOST_FUNCTION_GROUPS
            .iter()
            .map(|group| Import::HostFunctions(group.name.into()).symbol().expect("a symbol"));
        let expected = ["pliant_register_gemm_functions", "pliant_register_onnx_functions"];
        assert!(symbols.eq(expected));
    }
}
