//! [`InterpError`]: the reason why a run of the interpreter failed, described for the author of the program.

use std::fmt;

use pliant_diag::{Diagnostic, SourceMap, Span, error_codes};
use pliant_sym::EvalError;
use pliant_tensor::{CheckFailure, TensorError};

/// Maximum number of locations in the trace of an error.
const MAX_TRACE: usize = 12;

/// The kinds of failures that stop a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A value does not have the type that was declared for it.
    Type,
    /// An element access is out of the bounds of its buffer.
    Bounds,
    /// A check that the program contains has failed.
    Check,
    /// A packed function failed, or is not registered.
    Packed,
    /// A size overflows 64 bits, is negative or is too large to allocate.
    Size,
    /// An integer is divided by zero.
    DivideByZero,
    /// The step budget, the call depth or the stack is exhausted.
    Budget,
    /// The run was cancelled from outside.
    Stopped,
    /// The program is malformed, or uses a feature that the interpreter does not support.
    Unsupported,
}

impl ErrorKind {
    /// The error code, such as `PL0401`.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::Type => error_codes::PL0401,
            ErrorKind::Bounds => error_codes::PL0402,
            ErrorKind::Check => error_codes::PL0403,
            ErrorKind::Packed => error_codes::PL0404,
            ErrorKind::Size => error_codes::PL0405,
            ErrorKind::DivideByZero => error_codes::PL0406,
            ErrorKind::Budget | ErrorKind::Stopped => error_codes::PL0407,
            ErrorKind::Unsupported => error_codes::PL0408,
        }
    }
}

impl From<CheckFailure> for ErrorKind {
    fn from(failed: CheckFailure) -> ErrorKind {
        match failed {
            // Only generated code fails internally.
            CheckFailure::Assertion | CheckFailure::Shape | CheckFailure::Internal => {
                ErrorKind::Check
            }
            CheckFailure::Index => ErrorKind::Bounds,
            CheckFailure::Division => ErrorKind::DivideByZero,
        }
    }
}

/// The error of a run of the interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpError {
    /// The kind of the failure.
    pub kind: ErrorKind,
    /// A description of the failure, which names functions, variables, buffers and dims.
    pub message: String,
    /// The locations at which the failure occurred, innermost first.
    pub trace: Vec<TraceEntry>,
}

/// A location in the trace of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// A description of the location, such as `'lv' in main`.
    pub what: String,
    /// The position in the source text, if the entry describes a binding; otherwise empty.
    pub span: Span,
}

pub(crate) type Result<T, E = InterpError> = std::result::Result<T, E>;

impl InterpError {
    /// Creates an error of the given kind, without a trace.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        InterpError { kind, message: message.into(), trace: Vec::new() }
    }

    /// Creates the error that a value has the wrong type.
    pub fn type_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Type, message)
    }

    /// Creates the error of a failed check.
    pub fn check(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Check, message)
    }

    /// Creates the error that a size is invalid.
    pub fn size(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Size, message)
    }

    /// Creates the error that the program is malformed or uses an unsupported feature.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Adds a trace entry that describes a location in words, without a source location.
    pub(crate) fn at(self, what: impl FnOnce() -> String) -> Self {
        self.at_span(Span::NONE, what)
    }

    /// Adds a trace entry with a source location.
    pub(crate) fn at_span(mut self, span: Span, what: impl FnOnce() -> String) -> Self {
        if self.trace.len() < MAX_TRACE {
            self.trace.push(TraceEntry { what: what(), span });
        }
        self
    }

    /// Whether any entry of the trace has a source location.
    pub(crate) fn has_source_location(&self) -> bool {
        self.trace.iter().any(|entry| !entry.span.is_none())
    }

    /// Formats the error as text. Locations of the trace are shown with file and line, or with their ONNX nodes.
    pub fn with_lines(&self, sources: &SourceMap) -> String {
        let mut text = self.message.clone();
        for TraceEntry { what, span } in &self.trace {
            text.push_str(&match (sources.nodes(*span), sources.lines(*span)) {
                (Some(nodes), _) if !nodes.is_empty() => format!("\n  at {nodes}, {what}"),
                (None, Some((file, line, _))) => format!("\n  at {file}:{line}, {what}"),
                _ => format!("\n  at {what}"),
            });
        }
        text
    }

    /// Converts the error to a diagnostic. The locations of the trace become notes.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.kind.code(), self.message.clone());
        let mut spans = self.trace.iter().map(|entry| entry.span);
        diagnostic.span = spans.find(|span| !span.is_none()).unwrap_or_default();
        diagnostic.notes = self.trace.iter().map(|entry| format!("at {}", entry.what)).collect();
        diagnostic
    }
}

impl fmt::Display for InterpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for entry in &self.trace {
            write!(f, "\n  at {}", entry.what)?;
        }
        Ok(())
    }
}

impl std::error::Error for InterpError {}

impl From<TensorError> for InterpError {
    fn from(error: TensorError) -> Self {
        let kind = match error {
            TensorError::SizeOverflow { .. }
            | TensorError::NegativeDim { .. }
            | TensorError::OutOfMemory { .. }
            | TensorError::MemoryLimit { .. }
            | TensorError::WrongLimit { .. } => ErrorKind::Size,
            TensorError::OutOfBounds { .. } => ErrorKind::Bounds,
            TensorError::Unsupported(_) => ErrorKind::Unsupported,
            _ => ErrorKind::Type,
        };
        Self::new(kind, error.to_string())
    }
}

/// Creates the error of a failed evaluation of a size. `text` prints the size.
pub(crate) fn eval_error(error: EvalError, text: &dyn Fn() -> String) -> InterpError {
    match error {
        EvalError::Unbound(_) => InterpError::unsupported(format!(
            "the size {} cannot be computed, because a symbol in it has no value",
            text()
        )),
        EvalError::Overflow => {
            InterpError::size(format!("the size {} does not fit in 64 bits", text()))
        }
        EvalError::DivideByZero => InterpError::new(
            ErrorKind::DivideByZero,
            format!("the size {} divides by zero", text()),
        ),
    }
}
