//! Collects the errors of a script, with suggestions for misspelt names, up to a limit.

use std::cell::RefCell;

pub(crate) use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_diag::{Diagnostic, FileId, Span, error_codes};

use crate::python::ast::Range;

/// Maximum number of errors reported by one parse.
const MAX_ERRORS: usize = 25;

/// A marker that an error has been reported, so that the caller continues with the next statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// The result of an operation that reports its own errors, so the error value [`Reported`] contains
/// no message.
pub(crate) type Res<T> = Result<T, Reported>;

/// The kinds of script errors. Each has its own error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The text is not valid Python.
    Syntax,
    /// The script contains valid Python that the script language does not support.
    Unsupported,
    /// The script uses an undefined name.
    UnknownName,
    /// The script uses a name that the script language does not have.
    UnknownConstruct,
    /// A construct or an operator has wrong arguments.
    Arguments,
    /// The script uses a value of the wrong kind.
    Value,
    /// A value or an annotation has a type that does not match.
    Type,
    /// The type inference of an operator failed.
    Infer,
    /// A dataflow variable is used outside its block.
    Dataflow,
    /// A call has side effects where they are not allowed.
    Purity,
    /// The structure of a function or module is invalid.
    Structure,
    /// The surrounding Python program could not evaluate an expression.
    Host,
}

impl ErrorKind {
    pub(crate) fn code(self) -> &'static str {
        match self {
            ErrorKind::Syntax => error_codes::PL0101,
            ErrorKind::Unsupported => error_codes::PL0102,
            ErrorKind::UnknownName => error_codes::PL0103,
            ErrorKind::UnknownConstruct => error_codes::PL0104,
            ErrorKind::Arguments => error_codes::PL0105,
            ErrorKind::Value => error_codes::PL0106,
            ErrorKind::Type => error_codes::PL0107,
            ErrorKind::Infer => error_codes::PL0108,
            ErrorKind::Dataflow => error_codes::PL0109,
            ErrorKind::Purity => error_codes::PL0110,
            ErrorKind::Structure => error_codes::PL0111,
            ErrorKind::Host => error_codes::PL0112,
        }
    }
}

/// An error that has not been converted to a diagnostic yet.
#[derive(Debug)]
pub(crate) struct ScriptError {
    kind: ErrorKind,
    range: Range,
    message: String,
    help: Option<String>,
    /// The macro uses that contain the location of the error, innermost first.
    uses: Vec<(Range, String)>,
}

impl ScriptError {
    pub(crate) fn new(kind: ErrorKind, range: Range, message: impl Into<String>) -> Self {
        ScriptError { kind, range, message: message.into(), help: None, uses: Vec::new() }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

/// The errors found by one parse.
pub(crate) struct Errors {
    /// The files that make up the source, with the offset at which each file starts.
    files: Vec<(u32, FileId)>,
    list: RefCell<Vec<ScriptError>>,
}

impl Errors {
    pub(crate) fn new(file: FileId) -> Self {
        Errors { files: vec![(0, file)], list: RefCell::new(Vec::new()) }
    }

    /// Declares that the source text from offset `start` on comes from another file.
    pub(crate) fn add_file(&mut self, start: u32, file: FileId) {
        self.files.push((start, file));
    }

    pub(crate) fn report(&self, error: ScriptError) -> Reported {
        let mut list = self.list.borrow_mut();
        let repeated = list.iter().any(|e| e.range == error.range && e.message == error.message);
        if list.len() < MAX_ERRORS && !repeated {
            list.push(error);
        }
        Reported
    }

    /// Records that the errors from index `from` on occurred while the macro `name` was expanded at `range`.
    pub(crate) fn mark_macro_use(&self, from: usize, range: Range, name: &str) {
        for error in self.list.borrow_mut().iter_mut().skip(from) {
            error.uses.push((range, format!("macro '{name}' is used here")));
        }
    }

    /// The number of errors reported so far.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().len()
    }

    pub(crate) fn any(&self) -> bool {
        !self.list.borrow().is_empty()
    }

    /// Whether the maximum number of errors is reached. If so, parsing should stop.
    pub(crate) fn is_full(&self) -> bool {
        self.list.borrow().len() >= MAX_ERRORS
    }

    pub(crate) fn span(&self, range: Range) -> Span {
        let found = self.files.iter().rfind(|(start, _)| *start <= range.start);
        let (start, file) = found.copied().unwrap_or(self.files[0]);
        Span { file, start: range.start - start, end: range.end.saturating_sub(start) }
    }

    /// Converts the errors to diagnostics, ordered by source location.
    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        let mut list = self.list.take();
        list.sort_by_key(|e| e.range.start);
        list.into_iter()
            .map(|e| {
                let span = self.span(e.range);
                let d = Diagnostic::error(e.kind.code(), e.message).with_span(span);
                let uses = e.uses.into_iter();
                let d = uses.fold(d, |d, (at, text)| d.with_secondary(self.span(at), text));
                match e.help {
                    Some(help) => d.with_help(help),
                    None => d,
                }
            })
            .collect()
    }
}
