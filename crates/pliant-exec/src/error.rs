//! Errors that occur when executables are read, written or validated.

use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why an executable could not be built, read or written.
#[derive(Debug)]
pub enum ExecError {
    /// The bytes do not begin like a Pliant executable.
    NotExecutable,
    /// The executable is damaged or incomplete.
    Damaged(String),
    /// The executable has a form that this build does not accept, or cannot be encoded.
    Format(String),
    /// Another version of Pliant created the executable.
    Version {
        /// The format version of the file that was read.
        found: u32,
        /// The format version that this build supports.
        expected: u32,
    },
    /// The program violates a rule of the bytecode.
    Invalid {
        /// The function that violates the rule, with the instruction if known: `main` or `main, instruction 3`.
        location: String,
        /// A sentence that states which rule of the bytecode the program violates, and how.
        message: String,
    },
    /// The file could not be read or written.
    Io(std::io::Error),
    /// The file at a path cannot be loaded.
    InFile {
        /// The path of the file.
        path: PathBuf,
        /// The reason, which is not an I/O error.
        error: Box<ExecError>,
    },
}

impl ExecError {
    pub(crate) fn format(message: impl Into<String>) -> ExecError {
        ExecError::Format(message.into())
    }

    pub(crate) fn damaged(message: impl Into<String>) -> ExecError {
        ExecError::Damaged(message.into())
    }

    /// Adds the path of the file that could not be loaded, unless the error has it already. I/O
    /// errors are unchanged.
    #[must_use]
    pub fn in_file(self, path: &Path) -> ExecError {
        match self {
            ExecError::Io(_) | ExecError::InFile { .. } => self,
            error => ExecError::InFile { path: path.to_path_buf(), error: Box::new(error) },
        }
    }

    pub(crate) fn invalid(location: impl Into<String>, message: impl Into<String>) -> ExecError {
        ExecError::Invalid { location: location.into(), message: message.into() }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::NotExecutable => {
                f.write_str("the file is not a Pliant executable: it does not begin with PLIANTEX")
            }
            ExecError::Damaged(message) => {
                write!(f, "{message} (help: copy the file again, or compile the model again)")
            }
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
            ExecError::InFile { path, error } => {
                write!(f, "{}: {error}", path.display())?;
                match **error {
                    ExecError::NotExecutable => write!(f, " (help: {})", other_file_help(path)),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Returns the help of the error message for a file that is not an executable, which depends on the extension of the file.
fn other_file_help(path: &Path) -> String {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("onnx" | "py") => format!(
            "compile the model with pliant.compile(\"{0}\") in Python, or `pliant compile {0} -o model.plx`",
            path.display()
        ),
        _ => "a file that is not an ONNX model (.onnx) or a script (.py) must be a program that `save` in Python or \
              `pliant compile` wrote"
            .to_string(),
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ExecError::Io(error) => Some(error),
            ExecError::InFile { error, .. } => Some(&**error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for ExecError {
    fn from(error: std::io::Error) -> ExecError {
        ExecError::Io(error)
    }
}
