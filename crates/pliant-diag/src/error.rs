//! [`Error`]: the user's mistake, a missing feature, or a bug of the compiler; never mixed.

use std::fmt;
use std::path::PathBuf;

use crate::diagnostic::Diagnostic;

/// Why a compilation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The program is wrong: all errors found, at least one.
    User(Vec<Diagnostic>),
    /// The program is right but needs what the compiler does not have: all such things found, at least one.
    Unsupported(Vec<Diagnostic>),
    /// A bug of the compiler, with what is needed to report it.
    Internal {
        /// The pass in which it showed.
        pass: String,
        /// What went wrong.
        message: String,
        /// The file that holds the program as the pass received it, where it was kept.
        dump: Option<PathBuf>,
    },
}

impl Error {
    /// One mistake of the user.
    pub fn user(diagnostic: Diagnostic) -> Self {
        Error::User(vec![diagnostic])
    }

    /// A bug.
    pub fn internal(pass: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Internal { pass: pass.into(), message: message.into(), dump: None }
    }

    /// The diagnostics of an error that is the program's.
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
                    Some(path) => write!(f, "; what it received is in {})", path.display()),
                    None => f.write_str(")"),
                }
            }
        }
    }
}

impl std::error::Error for Error {}
