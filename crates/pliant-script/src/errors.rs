//! Errors of scripts: collected, capped, with suggestions.

use std::cell::RefCell;

pub(crate) use pliant_diag::suggest::did_you_mean;
use pliant_diag::{Diagnostic, FileId, Span, codes};

use crate::python::ast::Range;

/// How many errors one parse reports.
const MAX_ERRORS: usize = 25;

/// An error has been reported; whoever sees this goes on with the next statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reported;

/// The result of a step that reports its own errors.
pub(crate) type Res<T> = Result<T, Reported>;

/// The kinds of script errors. Each has one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text that is not Python.
    Syntax,
    /// Python that no script contains.
    Unsupported,
    /// A name that nothing defines.
    UnknownName,
    /// A name of the language that does not exist.
    UnknownConstruct,
    /// Wrong arguments of a construct or operator.
    Arguments,
    /// A value of the wrong kind.
    Value,
    /// A type that does not fit.
    Type,
    /// An operator's type rule refuses.
    Infer,
    /// A dataflow variable outside its block.
    Dataflow,
    /// A call with effects where none may be.
    Purity,
    /// Something that the structure of a function forbids.
    Structure,
    /// The host could not evaluate an expression.
    Host,
}

impl Kind {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Kind::Syntax => codes::PL0101,
            Kind::Unsupported => codes::PL0102,
            Kind::UnknownName => codes::PL0103,
            Kind::UnknownConstruct => codes::PL0104,
            Kind::Arguments => codes::PL0105,
            Kind::Value => codes::PL0106,
            Kind::Type => codes::PL0107,
            Kind::Infer => codes::PL0108,
            Kind::Dataflow => codes::PL0109,
            Kind::Purity => codes::PL0110,
            Kind::Structure => codes::PL0111,
            Kind::Host => codes::PL0112,
        }
    }
}

/// One error before it becomes a diagnostic.
#[derive(Debug)]
pub(crate) struct ScriptError {
    kind: Kind,
    range: Range,
    message: String,
    help: Option<String>,
    /// The uses of macros that it was found in, the innermost first.
    uses: Vec<(Range, String)>,
}

impl ScriptError {
    pub(crate) fn new(kind: Kind, range: Range, message: impl Into<String>) -> Self {
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

/// The errors of one parse.
pub(crate) struct Errors {
    /// The files of which the text is made, and where each begins.
    files: Vec<(u32, FileId)>,
    list: RefCell<Vec<ScriptError>>,
}

impl Errors {
    pub(crate) fn new(file: FileId) -> Self {
        Errors { files: vec![(0, file)], list: RefCell::new(Vec::new()) }
    }

    /// What follows in the text is another file.
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

    /// The errors from that one on were found where a macro is used there.
    pub(crate) fn used_at(&self, from: usize, range: Range, name: &str) {
        for error in self.list.borrow_mut().iter_mut().skip(from) {
            error.uses.push((range, format!("macro '{name}' is used here")));
        }
    }

    /// How many errors were found so far.
    pub(crate) fn count(&self) -> usize {
        self.list.borrow().len()
    }

    pub(crate) fn any(&self) -> bool {
        !self.list.borrow().is_empty()
    }

    /// Whether so many errors were found that going on helps nobody.
    pub(crate) fn full(&self) -> bool {
        self.list.borrow().len() >= MAX_ERRORS
    }

    pub(crate) fn span(&self, range: Range) -> Span {
        let found = self.files.iter().rfind(|(start, _)| *start <= range.start);
        let (start, file) = found.copied().unwrap_or(self.files[0]);
        Span { file, start: range.start - start, end: range.end.saturating_sub(start) }
    }

    /// The diagnostics, in the order of the text.
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
