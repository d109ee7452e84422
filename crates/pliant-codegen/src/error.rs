//! What can go wrong while generating code.

use std::fmt;
use std::sync::Arc;

/// One thing that a backend cannot compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The function that holds it.
    pub function: Arc<str>,
    /// What it is, and what to use instead where there is something.
    pub what: String,
}

/// Code generation failed.
#[derive(Clone, Debug)]
pub enum CodegenError {
    /// The functions use what this backend cannot compile.
    Unsupported(Vec<Unsupported>),
    /// A defect of Pliant: the input was in order but no code came out.
    Internal {
        /// The function.
        function: Arc<str>,
        /// What went wrong.
        message: String,
        /// The intermediate code, to go with a report.
        ir: String,
    },
    /// The machine cannot run generated code.
    Host(String),
}

impl CodegenError {
    /// One unsupported thing.
    pub fn unsupported(function: impl Into<Arc<str>>, what: impl Into<String>) -> Self {
        CodegenError::Unsupported(vec![Unsupported {
            function: function.into(),
            what: what.into(),
        }])
    }
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodegenError::Unsupported(list) => {
                write!(f, "this backend cannot compile:")?;
                for item in list {
                    write!(f, "\n  {}: {}", item.function, item.what)?;
                }
                Ok(())
            }
            CodegenError::Internal { function, message, .. } => {
                write!(f, "internal error while generating code for '{function}': {message}")
            }
            CodegenError::Host(message) => {
                write!(f, "this machine cannot run generated code: {message}")
            }
        }
    }
}

impl std::error::Error for CodegenError {}
