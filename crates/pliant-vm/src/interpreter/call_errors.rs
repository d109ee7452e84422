//! Creates the error values for failed calls: failures of loop functions, calls of values that are
//! not functions, and panics.

use std::any::Any;

use pliant_exec::LoopFuncParam;
use pliant_exec::abi::{AssertArgs, STATUS_CANCELLED, STATUS_PACKED};
use pliant_tensor::{CheckFailure, DType};

use crate::executable_linker::LinkedLoopFunc;
use crate::loop_function_callbacks::LoopCall;
use crate::loop_function_code::LoopFunctionCode;
use crate::{Value, VmError};

#[cold]
pub(super) fn loop_func_error(
    (loop_func, code): (&LinkedLoopFunc, &LoopFunctionCode),
    status: i64,
    call: &LoopCall<'_>,
    assert_args: &AssertArgs,
) -> VmError {
    match status {
        STATUS_CANCELLED => return VmError::Interrupted,
        STATUS_PACKED => {
            if let Some(error) = call.take_error() {
                return error;
            }
        }
        _ => {}
    }
    let message =
        usize::try_from(status.saturating_sub(1)).ok().and_then(|k| match &code.messages {
            Some(messages) => messages.get(k).map(|m| &**m),
            None => loop_func.info.checks.get(k).map(|m| &**m),
        });
    match message {
        Some(message) => {
            let (failed, message) = CheckFailure::split(message);
            let (given, message) = (call.arguments(), assert_args.fill(status, message));
            let given = if given.is_empty() { given } else { format!(", called with {given}") };
            let text = format!("{message} (in loop function '{}'{given})", loop_func.info.name);
            VmError::check(failed.into(), text)
        }
        None => VmError::LoopFunc { name: loop_func.info.name.clone(), status },
    }
}

#[cold]
pub(super) fn bad_loop_func_arg(loop_func: &LinkedLoopFunc, i: usize, value: &Value) -> VmError {
    let name = &loop_func.info.name;
    let expected = match loop_func.info.args[i] {
        LoopFuncParam::Any => "a tensor or a number".to_string(),
        LoopFuncParam::Int(DType::Int64) => "an integer".to_string(),
        LoopFuncParam::Int(dtype) => format!("an integer in the range of {dtype}"),
        LoopFuncParam::Float => "a number".to_string(),
        LoopFuncParam::Bool => "a bool".to_string(),
        LoopFuncParam::Tensor { dtype, ndim, written, .. } => {
            let dtype = dtype.map_or(String::new(), |dtype| format!("{dtype} "));
            let ndim = ndim.map_or(String::new(), |ndim| format!(" of {ndim} dims"));
            let writable = if written { "writable " } else { "" };
            format!("a {writable}{dtype}tensor{ndim}")
        }
    };
    VmError::type_error(format!(
        "loop function '{name}': argument {i} must be {expected}, but is {value:?}"
    ))
}

#[cold]
pub(super) fn not_callable(caller: &str, callee: &Value) -> VmError {
    let kind = callee.kind();
    VmError::type_error(format!("{caller}: the callee must be a function, but is {kind}"))
}

#[cold]
pub(crate) fn in_function(error: VmError, name: &str) -> VmError {
    match error {
        VmError::Type(message) => VmError::Type(format!("{name}: {message}")),
        other => other,
    }
}

/// Returns the message of a caught panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown".to_string())
}
