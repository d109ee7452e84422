//! [`RuntimeError`]: the errors of loading and running programs that were compiled ahead of time.

use std::fmt;

use pliant_exec::ExecError;
use pliant_tensor::TensorError;
use pliant_vm::VmError;

/// The reason why a program could not be loaded or run.
#[derive(Debug)]
pub enum RuntimeError {
    /// The program was compiled for another CPU or another version of Pliant.
    Incompatible(String),
    /// The executable of the program cannot be read.
    Executable(ExecError),
    /// An argument of the caller is wrong, such as the name of an input.
    Argument(String),
    /// The program failed while it was linked or while it ran.
    Run(VmError),
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuntimeError::Incompatible(message) | RuntimeError::Argument(message) => {
                f.write_str(message)
            }
            RuntimeError::Executable(error) => error.fmt(f),
            RuntimeError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RuntimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RuntimeError::Incompatible(_) | RuntimeError::Argument(_) => None,
            RuntimeError::Executable(error) => Some(error),
            RuntimeError::Run(error) => Some(error),
        }
    }
}

impl From<ExecError> for RuntimeError {
    fn from(error: ExecError) -> Self {
        RuntimeError::Executable(error)
    }
}

impl From<VmError> for RuntimeError {
    fn from(error: VmError) -> Self {
        RuntimeError::Run(error)
    }
}

impl From<TensorError> for RuntimeError {
    fn from(error: TensorError) -> Self {
        RuntimeError::Run(error.into())
    }
}
