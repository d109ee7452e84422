//! Errors of library kernel calls whose arguments violate the declaration of the kernel.

use std::fmt;

/// What is invalid in a library kernel call: a type, a shape or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelErrorKind {
    /// An operand has a wrong data type, is missing, or is not a tensor.
    Type,
    /// Ranks or sizes of operands are inconsistent with the declaration or with each other.
    Shape,
    /// An attribute is out of range, strides or an address are invalid, or operands overlap.
    Value,
}

/// The error of a library kernel call with invalid arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelError {
    /// The name of the called kernel.
    pub kernel: &'static str,
    /// The kind of the error: type, shape or value.
    pub kind: KernelErrorKind,
    /// The text of the error: the operand or attribute, its value or property, and what was expected.
    pub message: String,
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}: {}", self.kernel, self.message)
    }
}

impl std::error::Error for KernelError {}
