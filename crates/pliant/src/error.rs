//! [`Error`]: all errors of compiling, loading and running, by kind.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pliant_codegen::CodegenError;
#[cfg(feature = "onnx")]
use pliant_diag::error_codes::PL0601;
use pliant_diag::error_codes::{PL0002, PL0501, PL0502};
use pliant_diag::{Diagnostic, SourceMap};
use pliant_exec::ExecError;
#[cfg(feature = "onnx")]
use pliant_onnx::{ImportError, Problem, ProblemKind};
use pliant_pass::PassError;
use pliant_pass::module_dump_files::write_new;
use pliant_vm::VmError;

/// The cause of an error and the phase in which it occurred: compiling, loading or running.
///
/// # Examples
/// ```
/// use pliant::{Error, ErrorKind, find_pass};
///
/// fn exit_code(error: &Error) -> i32 {
///     match error.kind() {
///         ErrorKind::Internal => 70,
///         ErrorKind::Interrupted => 130,
///         _ => 1,
///     }
/// }
///
/// assert_eq!(exit_code(&Error::Interrupted), 130);
/// let Err(error) = find_pass("NoSuchPass") else { panic!("the pass should not exist") };
/// assert_eq!((error.kind(), exit_code(&error)), (ErrorKind::User, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The program or an option is wrong.
    User,
    /// The program needs a feature that the compiler does not have.
    Unsupported,
    /// A bug of the compiler.
    Internal,
    /// The compilation or the run was interrupted.
    Interrupted,
    /// A run exceeded its time limit.
    TimeLimit,
    /// A run was stopped by its cancel handle.
    Cancelled,
    /// A saved executable is damaged, has an unknown format, or cannot be read or written.
    Executable,
    /// The program failed while it ran.
    Runtime,
}

/// An error of compiling, loading or running a program.
///
/// # Examples
/// ```
/// use pliant::{ErrorKind, parse};
///
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")):
///     return R.no_such_operator(x)
/// "#;
/// let Err((error, sources)) = parse("wrong.py", script) else { panic!("no such operator") };
/// assert_eq!(error.kind(), ErrorKind::User);
/// assert!(error.render(&sources).contains("no_such_operator"));
/// ```
#[derive(Debug)]
pub enum Error {
    /// The program could not be compiled because of a mistake of the user, a missing feature or a
    /// bug in Pliant.
    Compile(pliant_diag::Error),
    /// A user-defined pass or instrument failed.
    Pass {
        /// The pass or instrument that failed, as `pass 'Name'`.
        origin: String,
        /// The error that the pass or instrument returned.
        source: Arc<dyn std::error::Error + Send + Sync>,
        /// The file with the text of the module that the pass received, if one was written.
        dump: Option<PathBuf>,
    },
    /// The compilation was interrupted.
    Interrupted,
    /// An executable could not be saved or loaded.
    Executable(ExecError),
    /// The program failed while it ran.
    Runtime(VmError),
}

impl Error {
    /// Returns the cause of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Compile(pliant_diag::Error::User(_)) | Error::Pass { .. } => ErrorKind::User,
            Error::Compile(pliant_diag::Error::Unsupported(_)) => ErrorKind::Unsupported,
            Error::Compile(pliant_diag::Error::Internal { .. }) => ErrorKind::Internal,
            Error::Interrupted | Error::Runtime(VmError::Interrupted) => ErrorKind::Interrupted,
            Error::Executable(_) => ErrorKind::Executable,
            Error::Runtime(error) if matches!(error.root(), VmError::TimeLimit { .. }) => {
                ErrorKind::TimeLimit
            }
            Error::Runtime(error) if matches!(error.root(), VmError::Cancelled { .. }) => {
                ErrorKind::Cancelled
            }
            Error::Runtime(error) if error.is_internal() => ErrorKind::Internal,
            Error::Runtime(_) => ErrorKind::Runtime,
        }
    }

    /// Returns the diagnostics of an error of the compilation; empty for other errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Error::Compile(error) => error.diagnostics(),
            _ => &[],
        }
    }

    /// Formats the error as text, with the user's source lines if `sources` contains them.
    pub fn render(&self, sources: &SourceMap) -> String {
        let list = self.diagnostics();
        if list.is_empty() {
            return format!("error: {self}");
        }
        pliant_diag::render_all(list, sources, false)
    }

    /// Creates a user error about an argument or option.
    pub(crate) fn option(message: impl Into<String>, help: impl Into<String>) -> Error {
        let finding = Diagnostic::error(PL0502, message).with_help(help);
        Error::Compile(pliant_diag::Error::user(finding))
    }

    /// Creates the error for a feature that Pliant does not have.
    pub(crate) fn unsupported(message: impl Into<String>, help: impl Into<String>) -> Error {
        let finding = Diagnostic::error(PL0002, message).with_help(help);
        Error::Compile(pliant_diag::Error::Unsupported(vec![finding]))
    }

    /// Creates an internal error in a compilation step.
    pub(crate) fn internal(step: &str, message: impl Into<String>) -> Error {
        Error::Compile(pliant_diag::Error::internal(step, message))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Compile(error) => error.fmt(f),
            Error::Pass { origin, source, dump } => {
                write!(f, "{origin} failed: {source}")?;
                match dump {
                    Some(path) => {
                        write!(f, " (its input module is in {})", path.display())
                    }
                    None => Ok(()),
                }
            }
            Error::Interrupted => f.write_str("the compilation was interrupted"),
            Error::Executable(error) => error.fmt(f),
            Error::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Compile(error) => Some(error),
            Error::Pass { source, .. } => Some(&**source),
            Error::Interrupted => None,
            Error::Executable(error) => Some(error),
            Error::Runtime(error) => Some(error),
        }
    }
}

impl From<ExecError> for Error {
    fn from(error: ExecError) -> Self {
        Error::Executable(error)
    }
}

impl From<VmError> for Error {
    fn from(error: VmError) -> Self {
        Error::Runtime(error)
    }
}

impl From<pliant_diag::Error> for Error {
    fn from(error: pliant_diag::Error) -> Self {
        Error::Compile(error)
    }
}

#[cfg(feature = "onnx")]
impl From<ImportError> for Error {
    /// Converts the problems found by the importer. A model that breaks a rule of ONNX is a user
    /// error, even if it has other problems too. An internal error is reported only if there are no
    /// other problems.
    fn from(error: ImportError) -> Self {
        let invalid = error.is_invalid();
        if let [only] = &error.problems[..]
            && only.kind == ProblemKind::Internal
        {
            return Error::Compile(pliant_diag::Error::internal(
                "the ONNX importer",
                only.to_string(),
            ));
        }
        let finding = |problem: Problem| {
            let code = match problem.kind {
                ProblemKind::Invalid => PL0601,
                ProblemKind::Unsupported | ProblemKind::Internal => PL0002,
            };
            let help = problem.help.clone();
            let finding = Diagnostic::error(code, Problem { help: None, ..problem }.to_string());
            match help {
                Some(help) => finding.with_help(help),
                None => finding,
            }
        };
        let findings = error.problems.into_iter().map(finding).collect();
        Error::Compile(match invalid {
            true => pliant_diag::Error::User(findings),
            false => pliant_diag::Error::Unsupported(findings),
        })
    }
}

impl From<PassError> for Error {
    fn from(error: PassError) -> Self {
        Error::Compile(match error {
            PassError::Cancelled => return Error::Interrupted,
            PassError::UserCode { origin, source, dump } => {
                return Error::Pass { origin, source, dump };
            }
            PassError::User(list) => pliant_diag::Error::User(
                list.into_iter()
                    .map(|problem| {
                        let mut finding =
                            Diagnostic::error(PL0501, problem.message).with_span(problem.span);
                        finding.help = problem.help;
                        finding.function = problem.function.map(|f| f.to_string());
                        finding
                    })
                    .collect(),
            ),
            PassError::Unsupported(list) => pliant_diag::Error::Unsupported(
                list.into_iter()
                    .map(|pliant_pass::Unsupported { what, because }| {
                        Diagnostic::error(PL0002, what).with_help(because)
                    })
                    .collect(),
            ),
            PassError::Internal { pass, message, dump } => {
                pliant_diag::Error::Internal { pass, message, dump }
            }
        })
    }
}

impl From<CodegenError> for Error {
    fn from(error: CodegenError) -> Self {
        Error::Compile(match error {
            CodegenError::Unsupported(list) => pliant_diag::Error::Unsupported(
                list.into_iter()
                    .map(|item| {
                        Diagnostic::error(PL0002, item.description).in_function(&*item.function)
                    })
                    .collect(),
            ),
            CodegenError::Internal { function, message, ir } => pliant_diag::Error::Internal {
                pass: format!("code generation for '{function}'"),
                message,
                dump: write_new(&std::env::temp_dir(), "pliant-before-codegen", "clif", &ir),
            },
            CodegenError::Host(message) => {
                pliant_diag::Error::Unsupported(vec![Diagnostic::error(PL0002, message)])
            }
        })
    }
}
