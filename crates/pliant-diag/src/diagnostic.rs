//! [`Diagnostic`]: one error, warning or note about a program, written for its author.

use std::fmt;

use crate::source_spans::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The diagnostic only contains additional information.
    Note,
    /// The program is probably mistaken, but compilation continues.
    Warning,
    /// The program is rejected because of the diagnostic.
    Error,
}

/// A secondary source location of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The source location to which the text belongs.
    pub span: Span,
    /// The text shown at the location.
    pub text: String,
}

/// One error, warning or note about a program.
///
/// # Examples
/// ```
/// use pliant_diag::{Diagnostic, error_codes};
///
/// let diagnostic = Diagnostic::error(error_codes::PL0203, "no variable 'z'").in_function("main");
/// assert!(diagnostic.is_error());
/// assert_eq!(diagnostic.to_string(), "error[PL0203]: in function 'main': no variable 'z'");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The error code; see [`codes`](crate::error_codes).
    pub code: &'static str,
    /// The severity of the diagnostic.
    pub severity: Severity,
    /// A description of the problem, with the names of the variables, dims and types involved.
    pub message: String,
    /// The source location of the problem itself.
    pub span: Span,
    /// The text printed beside the caret that marks the primary source location.
    pub label: Option<String>,
    /// Secondary source locations, each with a text.
    pub labels: Vec<Label>,
    /// How to fix the problem, if known.
    pub help: Option<String>,
    /// Notes with further information, which are printed after the source text.
    pub notes: Vec<String>,
    /// The name of the function that contains the problem, if any.
    pub function: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic without a source location.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity,
            message: message.into(),
            span: Span::NONE,
            label: None,
            labels: Vec::new(),
            help: None,
            notes: Vec::new(),
            function: None,
        }
    }

    /// Creates a diagnostic of severity error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// Creates a diagnostic of severity warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Sets the primary source location.
    pub fn with_span(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// Sets the text printed beside the caret that marks the primary source location.
    pub fn with_label(mut self, text: impl Into<String>) -> Self {
        self.label = Some(text.into());
        self
    }

    /// Adds a secondary source location with a text.
    pub fn with_secondary(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the help text: how to fix the problem.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a note with further information.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the function that contains the problem, unless it is set already.
    pub fn in_function(mut self, name: impl Into<String>) -> Self {
        self.function.get_or_insert(name.into());
        self
    }

    /// Whether the diagnostic is an error, which rejects the program.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Formats the diagnostic as one line, without source text.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}[{}]: ", self.code)?;
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
