//! Errors on their way to Python: [`Error`], and the exception class that each becomes.
//!
//! The classes themselves are Python's (`pliant.error`), because several have two bases.

use pliant_exec::ExecError;
use pliant_pass::PassError;
use pliant_tensor::TensorError;
use pliant_vm::{CheckKind, TraceEntry, VmError};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

use crate::runtime::interrupt::take_raised;

/// What a function of this crate fails with.
#[derive(Debug)]
pub enum Error {
    /// An exception that Python code raised, or one already made.
    Python(PyErr),
    /// Script text that does not parse or verify.
    Script(ScriptProblem),
    /// A module that does not compile; an operator whose operands cannot fit.
    Compile(String),
    /// Something Pliant does not do.
    Unsupported(String),
    /// A run that failed.
    Vm(String),
    /// A run that exceeded its time limit.
    TimeLimit(String),
    /// Something that a program asserts does not hold.
    Assertion(String),
    /// An index outside of what a program accesses.
    Bounds(String),
    /// An integer division by zero in a program.
    Division(String),
    /// A call with the wrong number of arguments.
    Call(String),
    /// An executable that is damaged, foreign or not valid.
    Executable(String),
    /// A value whose shape does not fit.
    Shape(String),
    /// A value whose dtype does not fit.
    DType(String),
    /// An argument of the wrong type.
    Type(String),
    /// An argument of the wrong value.
    Value(String),
    /// A name that is not there.
    Key(String),
    /// An index out of range.
    Index(String),
    /// A bug of Pliant.
    Internal(String),
}

impl Error {
    /// The same with words before its message; an exception of Python's gets them as a note.
    pub fn prefixed(self, words: &str) -> Error {
        let before = |text: String| format!("{words}{text}");
        match self {
            Error::Python(e) => Error::Python(with_note(e, words.trim_end_matches([':', ' ']))),
            Error::Unsupported(m) => Error::Unsupported(before(m)),
            Error::Shape(m) => Error::Shape(before(m)),
            Error::DType(m) => Error::DType(before(m)),
            Error::Type(m) => Error::Type(before(m)),
            Error::Value(m) => Error::Value(before(m)),
            other => other,
        }
    }

    /// The same with where it happened, a line for each place; an exception of Python's gets them as a note.
    fn traced(mut self, trace: &[TraceEntry]) -> Error {
        let places: Vec<String> = trace.iter().map(|entry| format!("  at {entry}")).collect();
        let places = places.join("\n");
        match &mut self {
            Error::Python(e) => {
                let e = Python::attach(|py| e.clone_ref(py));
                return Error::Python(with_note(e, &places));
            }
            Error::Script(problem) => problem.message.push_str(&format!("\n{places}")),
            Error::Compile(m)
            | Error::Unsupported(m)
            | Error::Vm(m)
            | Error::TimeLimit(m)
            | Error::Assertion(m)
            | Error::Bounds(m)
            | Error::Division(m)
            | Error::Call(m)
            | Error::Executable(m)
            | Error::Shape(m)
            | Error::DType(m)
            | Error::Type(m)
            | Error::Value(m)
            | Error::Key(m)
            | Error::Index(m)
            | Error::Internal(m) => m.push_str(&format!("\n{places}")),
        }
        self
    }
}

/// The first problem of a script, with where it is.
#[derive(Clone, Debug, Default)]
pub struct ScriptProblem {
    /// What is wrong, in one line.
    pub message: String,
    /// The whole report, with the source line and the caret.
    pub rendered: String,
    /// Whether the report tells of further problems.
    pub more: bool,
    /// The file, and the line and column (from 1), where known.
    pub place: Option<(String, u32, u32)>,
    /// The last column (exclusive, from 1) on that line.
    pub end_column: Option<u32>,
    /// The text of the line.
    pub line: Option<String>,
}

/// The result of a function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Defines a getter of a class of `pliant.error`, looked up once.
macro_rules! exception_classes {
    ($($fn:ident = $name:literal;)*) => {
        $(fn $fn(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            CLASS.import(py, "pliant.error", $name)
        })*
    };
}

exception_classes! {
    script_error = "ScriptError";
    compile_error = "CompileError";
    unsupported_error = "UnsupportedError";
    vm_error = "VMError";
    time_limit_error = "TimeLimitError";
    assertion_failed = "AssertionFailed";
    bounds_error = "BoundsError";
    division_error = "DivisionError";
    shape_error = "ShapeError";
    dtype_error = "DTypeError";
    internal_error = "InternalError";
    call_error = "CallError";
    executable_error = "ExecutableError";
}

fn raise(
    class: for<'py> fn(Python<'py>) -> PyResult<&'py Bound<'py, PyType>>,
    message: String,
) -> PyErr {
    Python::attach(|py| match class(py) {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(e) => e,
    })
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        match error {
            Error::Python(e) => e,
            Error::Script(problem) => raise_script(problem),
            Error::Compile(m) => raise(compile_error, m),
            Error::Unsupported(m) => raise(unsupported_error, m),
            Error::Vm(m) => raise(vm_error, m),
            Error::TimeLimit(m) => raise(time_limit_error, m),
            Error::Assertion(m) => raise(assertion_failed, m),
            Error::Bounds(m) => raise(bounds_error, m),
            Error::Division(m) => raise(division_error, m),
            Error::Call(m) => raise(call_error, m),
            Error::Executable(m) => raise(executable_error, m),
            Error::Shape(m) => raise(shape_error, m),
            Error::DType(m) => raise(dtype_error, m),
            Error::Internal(m) => raise(internal_error, m),
            Error::Type(m) => PyTypeError::new_err(m),
            Error::Value(m) => PyValueError::new_err(m),
            Error::Key(m) => PyKeyError::new_err(m),
            Error::Index(m) => PyIndexError::new_err(m),
        }
    }
}

/// A `ScriptError` is a `SyntaxError`: its arguments are the message and where it is, so that Python's own
/// traceback shows the user's line with a caret.
fn raise_script(problem: ScriptProblem) -> PyErr {
    Python::attach(|py| {
        let class = match script_error(py) {
            Ok(class) => class,
            Err(e) => return e,
        };
        let error = match problem.place {
            Some((file, line, column)) => {
                let end = problem.end_column.unwrap_or(column + 1);
                let place = (file, line, column, problem.line, line, end);
                PyErr::from_type(class.clone(), (problem.message, place))
            }
            None => PyErr::from_type(class.clone(), (problem.message,)),
        };
        // Python's traceback shows the first problem; a note brings the others before the user's eyes.
        if problem.more {
            let _ = error.value(py).call_method1("add_note", (&problem.rendered,));
        }
        match error.value(py).setattr("rendered", problem.rendered) {
            Ok(()) => error,
            Err(e) => e,
        }
    })
}

impl From<PyErr> for Error {
    fn from(e: PyErr) -> Error {
        Error::Python(e)
    }
}

impl From<TensorError> for Error {
    fn from(e: TensorError) -> Error {
        let text = e.to_string();
        match e {
            TensorError::DTypeMismatch { .. } | TensorError::UnsupportedDType(_) => {
                Error::DType(text)
            }
            TensorError::Unsupported(_) => Error::Unsupported(text),
            TensorError::ReadOnly | TensorError::Malformed(_) => Error::Value(text),
            TensorError::OutOfMemory { .. }
            | TensorError::MemoryLimit { .. }
            | TensorError::WrongLimit { .. } => Error::Vm(text),
            _ => Error::Shape(text),
        }
    }
}

impl From<VmError> for Error {
    fn from(e: VmError) -> Error {
        match e {
            VmError::Interrupted => Error::Python(take_raised()),
            VmError::TimeLimit { .. } => Error::TimeLimit(e.to_string()),
            VmError::Packed { name, source } => match python_error(&*source) {
                Some(e) => Error::Python(with_note(e, &format!("in packed function '{name}'"))),
                None => Error::Vm(format!("packed function '{name}' failed: {source}")),
            },
            VmError::External(source) => match python_error(&*source) {
                Some(e) => Error::Python(e),
                None => Error::Vm(source.to_string()),
            },
            VmError::Plain(error) => (*error).into(),
            VmError::Traced { error, trace } => Error::from(*error).traced(&trace),
            VmError::Arity { .. } => Error::Call(e.to_string()),
            VmError::Check(kind, text) => check_error(kind, text),
            VmError::Tensor(e) => e.into(),
            other => Error::Vm(other.to_string()),
        }
    }
}

/// A failed check by what it complains of.
fn check_error(kind: CheckKind, text: String) -> Error {
    match kind {
        CheckKind::Shape => Error::Shape(text),
        CheckKind::DType => Error::DType(text),
        CheckKind::Type => Error::Call(text),
        CheckKind::Value => Error::Vm(text),
        CheckKind::Assertion => Error::Assertion(text),
        CheckKind::Index => Error::Bounds(text),
        CheckKind::Division => Error::Division(text),
        CheckKind::Internal => Error::Internal(format!("{text} (this is a bug in Pliant)")),
    }
}

/// The exception that Python code raised somewhere inside the machine.
fn python_error(error: &(dyn std::error::Error + 'static)) -> Option<PyErr> {
    let mut next = Some(error);
    while let Some(e) = next {
        if let Some(e) = e.downcast_ref::<PyErr>() {
            return Some(Python::attach(|py| e.clone_ref(py)));
        }
        next = match e.downcast_ref::<VmError>() {
            Some(VmError::Packed { source, .. } | VmError::External(source)) => Some(&**source),
            Some(VmError::Traced { error, .. }) => Some(&**error),
            _ => e.source(),
        };
    }
    None
}

impl From<pliant::Error> for Error {
    fn from(e: pliant::Error) -> Error {
        match e {
            pliant::Error::Interrupted => Error::Python(take_raised()),
            pliant::Error::Runtime(e) => e.into(),
            pliant::Error::Executable(ExecError::Io(e)) => Error::Python(e.into()),
            pliant::Error::Executable(e) => Error::Executable(e.to_string()),
            pliant::Error::Compile(e) => compile_problem(&e),
            pliant::Error::Pass { origin, source, dump } => {
                let dump = dump
                    .map(|path| format!("; the module as it received it is in {}", path.display()));
                let told = format!("{origin} failed{}", dump.unwrap_or_default());
                match python_error(&*source) {
                    Some(error) => Error::Python(with_note(error, &told)),
                    None => Error::Compile(format!("{told}: {source}")),
                }
            }
        }
    }
}

impl From<PassError> for Error {
    fn from(e: PassError) -> Error {
        pliant::Error::from(e).into()
    }
}

/// The exception with a line beneath its message; it keeps its own traceback.
fn with_note(error: PyErr, note: &str) -> PyErr {
    // A class that refuses notes keeps its message, which matters more.
    let _ = Python::attach(|py| {
        let value = error.value(py);
        // An exception that passes through the same function at several depths says so once.
        let known: Vec<String> =
            value.getattr("__notes__").and_then(|notes| notes.extract()).unwrap_or_default();
        if known.iter().any(|known| known == note) {
            return Ok(());
        }
        value.call_method1("add_note", (note,)).map(|_| ())
    });
    error
}

/// The diagnostics with the user's own lines.
fn compile_problem(e: &pliant_diag::Error) -> Error {
    let text = || {
        if e.diagnostics().iter().all(|d| d.span.is_none()) {
            return e.to_string();
        }
        crate::sources::with_sources(|sources| {
            pliant_diag::render_all(e.diagnostics(), sources, false)
        })
    };
    match e {
        pliant_diag::Error::User(_) => Error::Compile(text()),
        pliant_diag::Error::Unsupported(_) => Error::Unsupported(text()),
        pliant_diag::Error::Internal { .. } => Error::Internal(e.to_string()),
    }
}

impl From<pyo3::CastError<'_, '_>> for Error {
    fn from(e: pyo3::CastError<'_, '_>) -> Error {
        Error::Python(e.into())
    }
}

/// `from module import name`, for helpers that are written in Python.
pub fn import<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, module)?.getattr(name)
}
