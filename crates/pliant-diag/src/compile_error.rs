//! [`Error`]: the reason why a compilation failed, which is an error in the user's program, an unsupported feature, or a compiler
//! bug.

use std::fmt;
use std::path::PathBuf;

use crate::diagnostic::Diagnostic;

/// The reason why a compilation failed: the user's program, an unsupported feature or a compiler
/// bug.
///
/// # Examples
/// ```
/// use pliant_diag::{Diagnostic, Error, error_codes};
///
/// let error = Error::user(Diagnostic::error(error_codes::PL0203, "no variable 'z'"));
/// assert_eq!(error.diagnostics().len(), 1);
/// let bug = Error::internal("FuseOps", "a variable has no type");
/// assert!(bug.diagnostics().is_empty());
/// assert!(bug.to_string().starts_with("internal error in FuseOps: a variable has no type"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The program is invalid. Contains all errors found, at least one.
    User(Vec<Diagnostic>),
    /// The program is valid but uses unsupported features. Contains at least one diagnostic, one per feature.
    Unsupported(Vec<Diagnostic>),
    /// A bug in the compiler, with the data for a bug report.
    Internal {
        /// The name of the pass in which the bug was detected.
        pass: String,
        /// A description of the bug: what the compiler found to be wrong.
        message: String,
        /// The file that contains the input of the pass, if it was saved.
        dump: Option<PathBuf>,
    },
}

impl Error {
    /// Creates a user error with one diagnostic.
    pub fn user(diagnostic: Diagnostic) -> Self {
        Error::User(vec![diagnostic])
    }

    /// Creates the error for a compiler bug that the pass `pass` detected. The input of the pass is
    /// not saved.
    pub fn internal(pass: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Internal { pass: pass.into(), message: message.into(), dump: None }
    }

    /// The diagnostics of a user error or of unsupported features; empty for a compiler bug.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Error::User(list) | Error::Unsupported(list) => list,
            Error::Internal { .. } => &[],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::User(list) | Error::Unsupported(list) => {
                for (i, d) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_str("\n")?;
                    }
                    write!(f, "{d}")?;
                }
                Ok(())
            }
            Error::Internal { pass, message, dump } => {
                write!(f, "internal error in {pass}: {message} (this is a bug in Pliant")?;
                match dump {
                    Some(path) => write!(f, "; its input was saved to {})", path.display()),
                    None => f.write_str(")"),
                }
            }
        }
    }
}

impl std::error::Error for Error {}
