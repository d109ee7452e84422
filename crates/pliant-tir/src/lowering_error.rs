//! The error type of the lowering passes.

use std::fmt;

/// The error of a lowering pass that cannot lower a loop function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerError {
    /// The name of the pass that failed.
    pub pass: &'static str,
    /// The reason why the pass failed.
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
