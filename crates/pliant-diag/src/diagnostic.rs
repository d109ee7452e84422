//! [`Diagnostic`]: one finding about a program, in words for the one who wrote it.

use std::fmt;

use crate::span::Span;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Likely a mistake.
    Warning,
    /// The program is refused.
    Error,
}

/// A second place that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code, of the table in [`codes`](crate::codes).
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, naming variables, dims and types.
    pub message: String,
    /// Where it was written.
    pub span: Span,
    /// What is wrong right there, beside the caret.
    pub label: Option<String>,
    /// Other places.
    pub labels: Vec<Label>,
    /// What to do about it, if that can be said.
    pub help: Option<String>,
    /// More to know.
    pub notes: Vec<String>,
    /// The function that it is in, if it is in one.
    pub function: Option<String>,
}

impl Diagnostic {
    /// A finding of that severity.
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

    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// The same, written there.
    pub fn with_span(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// The same with words beside the caret.
    pub fn with_label(mut self, text: impl Into<String>) -> Self {
        self.label = Some(text.into());
        self
    }

    /// The same with a second place.
    pub fn with_secondary(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// The same with advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with one more thing to know.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same, in that function.
    pub fn in_function(mut self, name: impl Into<String>) -> Self {
        self.function.get_or_insert(name.into());
        self
    }

    /// Whether the program is refused.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// One line, without the source.
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
