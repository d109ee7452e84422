//! [`PassError`]: the user's mistake, a limit of the compiler, or a bug of the compiler; never mixed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pliant_diag::Span;

/// Something wrong with the program, in words for the one who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The function it is in, if it is in one.
    pub function: Option<Arc<str>>,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if that can be said.
    pub help: Option<String>,
    /// Where it was written.
    pub span: Span,
}

impl Problem {
    /// A problem without function, place and advice.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { function: None, message: message.into(), help: None, span: Span::NONE }
    }

    /// The same, in that function.
    pub fn in_function(mut self, name: impl Into<Arc<str>>) -> Self {
        self.function.get_or_insert(name.into());
        self
    }

    /// The same, written there.
    pub fn at(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// The same, with advice.
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

/// Something that is right but that the compiler does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What is not supported, with the function it is in.
    pub what: String,
    /// Why, and what does the same.
    pub because: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not supported: {}", self.what, self.because)
    }
}

/// Why a pass failed.
#[derive(Clone, Debug)]
pub enum PassError {
    /// The program is wrong; all problems found, at least one.
    User(Vec<Problem>),
    /// The program needs something that is missing; at least one.
    Unsupported(Vec<Unsupported>),
    /// A bug in the compiler, with what is needed to report it.
    Internal {
        /// The pass.
        pass: String,
        /// What went wrong.
        message: String,
        /// The file that holds the module as the pass received it, where it was kept.
        dump: Option<PathBuf>,
    },
    /// A pass or an instrument from outside of Pliant failed in its own words.
    Foreign {
        /// Which, as `pass 'Name'`. A pass leaves it empty: the manager fills in the pass that runs.
        origin: String,
        /// What it failed with.
        source: Arc<dyn std::error::Error + Send + Sync>,
        /// The file that holds the module as the pass received it.
        dump: Option<PathBuf>,
    },
    /// Someone asked to stop.
    Cancelled,
}

impl PassError {
    /// One user error.
    pub fn user(message: impl Into<String>) -> Self {
        PassError::User(vec![Problem::new(message)])
    }

    /// One missing feature.
    pub fn unsupported(what: impl Into<String>, because: impl Into<String>) -> Self {
        PassError::Unsupported(vec![Unsupported { what: what.into(), because: because.into() }])
    }

    /// A bug, reported by a pass that does not know its name; the manager fills in name and file.
    pub fn internal(message: impl Into<String>) -> Self {
        PassError::Internal { pass: String::new(), message: message.into(), dump: None }
    }

    /// A failure that comes from outside of Pliant; the manager fills in the pass and the IR.
    pub fn foreign(source: Arc<dyn std::error::Error + Send + Sync>) -> Self {
        PassError::Foreign { origin: String::new(), source, dump: None }
    }

    /// The same with the function's name where none is given.
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

    /// One error out of those of several functions: a cancellation or a bug wins over problems, and problems of
    /// one kind are joined.
    pub fn join(errors: Vec<PassError>) -> Option<PassError> {
        let (mut problems, mut missing) = (Vec::new(), Vec::new());
        for error in errors {
            match error {
                PassError::User(list) => problems.extend(list),
                PassError::Unsupported(list) => missing.extend(list),
                other => return Some(other),
            }
        }
        match (problems.is_empty(), missing.is_empty()) {
            (false, _) => Some(PassError::User(problems)),
            (true, false) => Some(PassError::Unsupported(missing)),
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
        fn told(f: &mut fmt::Formatter<'_>, dump: &Option<PathBuf>) -> fmt::Result {
            match dump {
                Some(path) => write!(f, " (the module as it received it is in {})", path.display()),
                None => Ok(()),
            }
        }
        match self {
            PassError::User(list) => lines(f, list),
            PassError::Unsupported(list) => lines(f, list),
            PassError::Internal { pass, message, dump } => {
                write!(f, "internal error in pass {pass}: {message}; please report this")?;
                told(f, dump)
            }
            PassError::Foreign { origin, source, dump } => {
                write!(f, "{origin} failed: {source}")?;
                told(f, dump)
            }
            PassError::Cancelled => f.write_str("the compilation was interrupted"),
        }
    }
}

impl std::error::Error for PassError {}
