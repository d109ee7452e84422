//! Errors that occur when executables are read, written or validated.

use std::fmt;

/// The reason why an executable could not be built, read or written.
#[derive(Debug)]
pub enum ExecError {
    /// The bytes are not a Pliant executable, or they are damaged.
    Format(String),
    /// Another version of Pliant created the executable.
    Version {
        /// The format version of the file.
        found: u32,
        /// The format version that this build supports.
        expected: u32,
    },
    /// The program violates a rule of the bytecode.
    Invalid {
        /// The function that violates the rule, with the instruction if known: `main` or `main, instruction 3`.
        location: String,
        /// A description of the violated rule.
        message: String,
    },
    /// The file could not be read or written.
    Io(std::io::Error),
}

impl ExecError {
    pub(crate) fn format(message: impl Into<String>) -> ExecError {
        ExecError::Format(message.into())
    }

    pub(crate) fn invalid(location: impl Into<String>, message: impl Into<String>) -> ExecError {
        ExecError::Invalid { location: location.into(), message: message.into() }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::Format(message) => f.write_str(message),
            ExecError::Version { found, expected } => write!(
                f,
                "the executable has format version {found}, but this build reads version {expected}; \
                 compile the model again"
            ),
            ExecError::Invalid { location, message } => {
                write!(f, "invalid executable: {location}: {message}")
            }
            ExecError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ExecError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for ExecError {
    fn from(error: std::io::Error) -> ExecError {
        ExecError::Io(error)
    }
}
