//! Errors of code generation.

use std::fmt;
use std::sync::Arc;

/// One construct that a backend cannot compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the function that contains the construct.
    pub function: Arc<str>,
    /// A description of the construct, and an alternative if there is one.
    pub description: String,
}

/// The reason why code generation failed.
///
/// # Examples
/// ```
/// use pliant_codegen::CodegenError;
///
/// let error = CodegenError::unsupported("main", "vectors of 3 lanes");
/// assert!(error.to_string().ends_with("main: vectors of 3 lanes"));
/// ```
#[derive(Clone, Debug)]
pub enum CodegenError {
    /// The functions use constructs that this backend cannot compile.
    Unsupported(Vec<Unsupported>),
    /// A bug in Pliant: the input was valid, but code generation failed.
    Internal {
        /// The name of the function for which code was generated.
        function: Arc<str>,
        /// A description of the failure of code generation.
        message: String,
        /// The intermediate code of the function, for bug reports.
        ir: String,
    },
    /// The machine cannot generate or run code. Contains the reason.
    Host(String),
}

impl CodegenError {
    /// Returns the error [`CodegenError::Unsupported`] for one unsupported construct of `function`.
    pub fn unsupported(function: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        CodegenError::Unsupported(vec![Unsupported {
            function: function.into(),
            description: description.into(),
        }])
    }
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodegenError::Unsupported(list) => {
                write!(f, "the code generator cannot compile the following functions:")?;
                for item in list {
                    write!(f, "\n  {}: {}", item.function, item.description)?;
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
