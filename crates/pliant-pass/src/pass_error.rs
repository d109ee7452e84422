//! [`PassError`]: the error of a pass. It distinguishes errors in the program, unsupported features, compiler bugs and errors of
//! user-defined passes.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pliant_diag::Span;

/// One error in the user's program, with message, hint and source location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the function that contains the error; `None` if the error is not in a function.
    pub function: Option<Arc<str>>,
    /// A description of the error.
    pub message: String,
    /// A hint on how to fix the error, if known.
    pub help: Option<String>,
    /// The source location of the error.
    pub span: Span,
}

impl Problem {
    /// Creates a problem that has only a message: no function, source location or hint.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { function: None, message: message.into(), help: None, span: Span::NONE }
    }

    /// Sets the name of the function that contains the error, unless it is already set.
    pub fn in_function(mut self, name: impl Into<Arc<str>>) -> Self {
        self.function.get_or_insert(name.into());
        self
    }

    /// Sets the source location of the problem.
    pub fn at(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Sets the hint on how to fix the problem.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.function {
            write!(f, "in function '{name}': ")?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

/// An unsupported feature that a valid program uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The statement that a feature is not supported, with the function that uses the feature.
    pub what: String,
    /// The reason why the feature is not supported, and what to use instead.
    pub because: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsupported { what, because } = self;
        write!(f, "{what}: {because}")
    }
}

/// The reason why a pass failed.
#[derive(Clone, Debug)]
pub enum PassError {
    /// The program is invalid. The list contains all problems that were found, at least one.
    User(Vec<Problem>),
    /// The program uses unsupported features. The list contains all of them, at least one.
    Unsupported(Vec<Unsupported>),
    /// A compiler bug, with the information needed to report it.
    Internal {
        /// The name of the pass that failed.
        pass: String,
        /// A description of what went wrong in the compiler.
        message: String,
        /// The path of the file with the input module of the pass; `None` if the module was not saved.
        dump: Option<PathBuf>,
    },
    /// A user-defined pass or instrument failed with its own error.
    UserCode {
        /// The user-defined code that failed, such as `pass 'Name'`. The code that creates the error leaves the field empty, and
        /// [`ModulePass::apply`](crate::ModulePass::apply) sets it.
        origin: String,
        /// The error that the user-defined code returned.
        source: Arc<dyn std::error::Error + Send + Sync>,
        /// The path of the file with the input module of the pass; `None` if the module was not saved.
        dump: Option<PathBuf>,
    },
    /// Cancellation was requested.
    Cancelled,
}

impl PassError {
    /// Creates a user error with one problem.
    pub fn user(message: impl Into<String>) -> Self {
        PassError::User(vec![Problem::new(message)])
    }

    /// Creates an error for one unsupported feature. `what` states that the feature is not supported, as in `a loop is not
    /// supported`, and `because` states the reason or what to use instead.
    pub fn unsupported(what: impl Into<String>, because: impl Into<String>) -> Self {
        PassError::Unsupported(vec![Unsupported { what: what.into(), because: because.into() }])
    }

    /// Creates an internal error. Its pass name is empty and its dump is `None`; [`ModulePass::apply`](crate::ModulePass::apply)
    /// sets both.
    pub fn internal(message: impl Into<String>) -> Self {
        PassError::Internal { pass: String::new(), message: message.into(), dump: None }
    }

    /// Wraps an error that user-defined code returned. [`ModulePass::apply`](crate::ModulePass::apply) sets the name of the pass
    /// and writes the dump file.
    pub fn user_code(source: Arc<dyn std::error::Error + Send + Sync>) -> Self {
        PassError::UserCode { origin: String::new(), source, dump: None }
    }

    /// Adds the name of a function to the error: sets it for problems that have none, and prepends it to the message of an
    /// internal error.
    pub fn in_function(self, name: &str) -> Self {
        match self {
            PassError::User(list) => {
                PassError::User(list.into_iter().map(|p| p.in_function(name)).collect())
            }
            PassError::Internal { pass, message, dump } => PassError::Internal {
                pass,
                message: format!("in function '{name}': {message}"),
                dump,
            },
            other => other,
        }
    }

    /// Combines the errors of several functions into one error; returns `None` if the list is empty. If any error is neither
    /// `User` nor `Unsupported`, returns the first such error. Otherwise, if there are `User` errors, returns one `User` error
    /// with the problems of all of them. Otherwise, returns one `Unsupported` error with all unsupported features.
    pub fn join(errors: Vec<PassError>) -> Option<PassError> {
        let (mut problems, mut unsupported) = (Vec::new(), Vec::new());
        for error in errors {
            match error {
                PassError::User(list) => problems.extend(list),
                PassError::Unsupported(list) => unsupported.extend(list),
                other => return Some(other),
            }
        }
        match (problems.is_empty(), unsupported.is_empty()) {
            (false, _) => Some(PassError::User(problems)),
            (true, false) => Some(PassError::Unsupported(unsupported)),
            (true, true) => None,
        }
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn lines<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
            for (i, item) in items.iter().enumerate() {
                write!(f, "{}{item}", if i == 0 { "" } else { "\n" })?;
            }
            Ok(())
        }
        fn write_dump(f: &mut fmt::Formatter<'_>, dump: &Option<PathBuf>) -> fmt::Result {
            match dump {
                Some(path) => write!(f, " (its input module is in {})", path.display()),
                None => Ok(()),
            }
        }
        match self {
            PassError::User(list) => lines(f, list),
            PassError::Unsupported(list) => lines(f, list),
            PassError::Internal { pass, message, dump } => {
                write!(f, "internal error in pass {pass}: {message}; please report this bug")?;
                write_dump(f, dump)
            }
            PassError::UserCode { origin, source, dump } => {
                write!(f, "{origin} failed: {source}")?;
                write_dump(f, dump)
            }
            PassError::Cancelled => f.write_str("the compilation was interrupted"),
        }
    }
}

impl std::error::Error for PassError {}
