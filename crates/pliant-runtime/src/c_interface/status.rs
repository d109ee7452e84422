//! The status of a function of the C interface, and the message of the last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pliant_tensor::TensorError;
use pliant_vm::VmError;

use crate::error::RuntimeError;

/// The status that a function of the C interface returns, `pliant_status` in C.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The function succeeded.
    Ok = 0,
    /// An argument is wrong.
    Argument = 1,
    /// The program cannot be used in this process: it is damaged, was compiled for another CPU or version, or calls missing
    /// functions.
    Program = 2,
    /// The run failed.
    Run = 3,
    /// There is not enough memory.
    Memory = 4,
    /// The run was interrupted.
    Interrupted = 5,
    /// The run exceeded its time limit.
    TimeLimit = 6,
    /// A bug in Pliant.
    Internal = 7,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Returns the message of the last error of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn pliant_error_message() -> *const c_char {
    // After the thread-local variable was destroyed, at the end of the thread, there is no message.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Stores the message of an error for the calling thread, which [`pliant_error_message`] returns.
fn set_message(message: &str) {
    let text: Vec<u8> = message.bytes().filter(|&byte| byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = text);
}

/// The status with which a function of the C interface reports an error.
fn status_of(error: &RuntimeError) -> Status {
    match error {
        RuntimeError::Argument(_) => Status::Argument,
        RuntimeError::Incompatible(_) | RuntimeError::Executable(_) => Status::Program,
        RuntimeError::Run(error) => match error.root() {
            VmError::MissingFunctions { .. } => Status::Program,
            VmError::Interrupted | VmError::Cancelled { .. } => Status::Interrupted,
            VmError::TimeLimit { .. } => Status::TimeLimit,
            VmError::Tensor(TensorError::OutOfMemory { .. } | TensorError::MemoryLimit { .. }) => {
                Status::Memory
            }
            error if error.is_internal() => Status::Internal,
            _ => Status::Run,
        },
    }
}

/// Runs the body of a function of the C interface. Stores the message of its error or panic, and returns its status.
pub(super) fn guard(body: impl FnOnce() -> Result<(), RuntimeError>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(error)) => {
            set_message(&error.to_string());
            status_of(&error)
        }
        Err(_) => {
            set_message("internal error of Pliant; the panic message is on standard error");
            Status::Internal
        }
    }
}

/// Runs the body of a function of the C interface that returns a value. Returns `default` if the body panics.
pub(super) fn guard_value<T>(default: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(default)
}

/// Creates the error for a wrong argument of a function of the C interface.
pub(super) fn argument_error(message: impl Into<String>) -> RuntimeError {
    RuntimeError::Argument(message.into())
}
