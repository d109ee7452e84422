//! The error type of the lowering passes.

use std::fmt;

/// A loop function cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The pass that failed.
    pub pass: &'static str,
    /// The reason.
    pub message: String,
}

impl LowerError {
    pub(crate) fn new(pass: &'static str, message: impl Into<String>) -> Self {
        LowerError { pass, message: message.into() }
    }
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pass, self.message)
    }
}

impl std::error::Error for LowerError {}
