//! Registers the host functions that every program can call: those of `pliant-runtime`, and the two that compile at run time.

use std::sync::{Arc, Once};

use pliant_ops::dynamic_operator_calls::CALL_OPERATOR;
use pliant_vm::register_library_func;

/// Registers Pliant's host functions, once per process. Functions that the user has registered under these names are kept.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use pliant::{Value, register_func, register_library};
///
/// register_library();
/// let replaced = register_func("pliant.gemm", Arc::new(|_| Ok(Value::None)), false);
/// assert!(!replaced, "the name belongs to the library");
/// ```
pub fn register_library() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        pliant_runtime::register_host_functions();
        register_library_func(CALL_OPERATOR, Arc::new(crate::dynamic_operators::call), false);
        #[cfg(feature = "onnx")]
        register_onnx_node();
    });
}

/// Registers the function that imports and runs an ONNX node.
#[cfg(feature = "onnx")]
fn register_onnx_node() {
    use pliant_exec::abi::KernelRuntime;
    use pliant_vm::{Value, VmError};
    let call_node = |runtime: &KernelRuntime, args: &[Value]| {
        crate::deferred_node::call(runtime, args).map_err(|e| VmError::Plain(Box::new(e)))
    };
    register_library_func(pliant_kernel_api::host_function_names::NODE, Arc::new(call_node), false);
}
