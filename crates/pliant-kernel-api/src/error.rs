//! Errors of kernel calls.

use std::fmt;

/// The kind of error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelErrorKind {
    /// An operand has another data type, is missing, or is not a tensor.
    Type,
    /// Sizes do not fit together.
    Shape,
    /// An attribute is out of range, or operands overlap.
    Value,
}

/// A kernel was called with invalid arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The kernel.
    pub kernel: &'static str,
    /// The kind of error.
    pub kind: KernelErrorKind,
    /// The operand or attribute, and what was expected.
    pub message: String,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: {}", self.kernel, self.message)
    }
}

impl std::error::Error for KernelError {}
