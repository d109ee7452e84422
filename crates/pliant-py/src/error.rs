//! Errors passed to Python: [`Error`], and the exception class for each of its variants.
//!
//! The classes themselves are defined in Python (`pliant.error`), because several of them have two bases.

use pliant_exec::ExecError;
use pliant_pass::PassError;
use pliant_tensor::TensorError;
use pliant_vm::{CheckKind, TraceEntry, VmError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

use crate::runtime::ctrl_c_interrupts::take_interrupt_error;

/// The error type of the functions in this crate.
#[derive(Debug)]
pub enum Error {
    /// An exception that Python code raised.
    Python(PyErr),
    /// The script text does not parse or is not valid.
    Script(ScriptProblem),
    /// A module does not compile, or a call of an operator is invalid.
    Compile(String),
    /// A primitive of a schedule cannot be applied.
    Schedule(String),
    /// Pliant does not support a feature.
    Unsupported(String),
    /// A run of the VM failed.
    Vm(String),
    /// A run exceeded its time limit.
    TimeLimit(String),
    /// A run was stopped by its token.
    Cancelled(String),
    /// An assertion of the program failed.
    Assertion(String),
    /// A program accessed an index that is out of bounds.
    Bounds(String),
    /// A program divided an integer by zero.
    Division(String),
    /// A function was called with the wrong number of arguments.
    Call(String),
    /// An executable is damaged, invalid or built by another version.
    Executable(String),
    /// A value has the wrong shape.
    Shape(String),
    /// A tensor or value has the wrong data type.
    DType(String),
    /// An argument has the wrong type.
    Type(String),
    /// An argument has an invalid value.
    Value(String),
    /// A name is unknown, such as the name of a function.
    Key(String),
    /// An index is out of range.
    Index(String),
    /// Pliant has a bug.
    Internal(String),
}

impl Error {
    /// The error with a prefix before its message. An exception raised by Python code gets the prefix as a note.
    pub fn with_prefix(self, prefix: &str) -> Error {
        let prepend = |text: String| format!("{prefix}{text}");
        match self {
            Error::Python(e) => Error::Python(with_note(e, prefix.trim_end_matches([':', ' ']))),
            Error::Unsupported(m) => Error::Unsupported(prepend(m)),
            Error::Shape(m) => Error::Shape(prepend(m)),
            Error::DType(m) => Error::DType(prepend(m)),
            Error::Type(m) => Error::Type(prepend(m)),
            Error::Value(m) => Error::Value(prepend(m)),
            other => other,
        }
    }

    /// The error with a stack trace, one line for each entry. An exception raised by Python code gets the trace as a
    /// note.
    fn with_trace(mut self, trace: &[TraceEntry]) -> Error {
        let lines: Vec<String> = trace.iter().map(|entry| format!("  at {entry}")).collect();
        let lines = lines.join("\n");
        match &mut self {
            Error::Python(e) => {
                let e = Python::attach(|py| e.clone_ref(py));
                return Error::Python(with_note(e, &lines));
            }
            Error::Script(problem) => problem.message.push_str(&format!("\n{lines}")),
            Error::Compile(m)
            | Error::Schedule(m)
            | Error::Unsupported(m)
            | Error::Vm(m)
            | Error::TimeLimit(m)
            | Error::Cancelled(m)
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
            | Error::Internal(m) => m.push_str(&format!("\n{lines}")),
        }
        self
    }
}

/// The first problem of a script, with its source location: the arguments of a Python
/// `ScriptError`.
#[derive(Clone, Debug, Default)]
pub struct ScriptProblem {
    /// The problem in one line.
    pub message: String,
    /// The whole report, with the source line and the caret.
    pub rendered: String,
    /// Whether the report contains further problems.
    pub more: bool,
    /// The file, and the line and column (from 1), if known.
    pub location: Option<(String, u32, u32)>,
    /// The column (from 1) after the last character of the problem, if known.
    pub end_column: Option<u32>,
    /// The text of the source line with the problem, if known.
    pub line: Option<String>,
}

/// The result of a function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Defines functions that return exception classes of `pliant.error`. Each function looks its class up once.
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
    schedule_error = "ScheduleError";
    unsupported_error = "UnsupportedError";
    vm_error = "VMError";
    time_limit_error = "TimeLimitError";
    cancelled_error = "CancelledError";
    assertion_failed = "AssertionFailed";
    bounds_error = "BoundsError";
    division_error = "DivisionError";
    shape_error = "ShapeError";
    dtype_error = "DTypeError";
    internal_error = "InternalError";
    call_error = "CallError";
    executable_error = "ExecutableError";
    argument_type_error = "ArgumentTypeError";
    argument_value_error = "ArgumentValueError";
    unknown_name_error = "UnknownNameError";
    index_range_error = "IndexRangeError";
}

fn new_exception(
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
            Error::Script(problem) => new_script_error(problem),
            Error::Compile(m) => new_exception(compile_error, m),
            Error::Schedule(m) => new_exception(schedule_error, m),
            Error::Unsupported(m) => new_exception(unsupported_error, m),
            Error::Vm(m) => new_exception(vm_error, m),
            Error::TimeLimit(m) => new_exception(time_limit_error, m),
            Error::Cancelled(m) => new_exception(cancelled_error, m),
            Error::Assertion(m) => new_exception(assertion_failed, m),
            Error::Bounds(m) => new_exception(bounds_error, m),
            Error::Division(m) => new_exception(division_error, m),
            Error::Call(m) => new_exception(call_error, m),
            Error::Executable(m) => new_exception(executable_error, m),
            Error::Shape(m) => new_exception(shape_error, m),
            Error::DType(m) => new_exception(dtype_error, m),
            Error::Internal(m) => new_exception(internal_error, m),
            Error::Type(m) => new_exception(argument_type_error, m),
            Error::Value(m) => new_exception(argument_value_error, m),
            Error::Key(m) => new_exception(unknown_name_error, m),
            Error::Index(m) => new_exception(index_range_error, m),
        }
    }
}

/// Creates a `ScriptError`. It is a `SyntaxError`: its arguments are the message and the source location, so Python's
/// traceback shows the user's line with a caret.
fn new_script_error(problem: ScriptProblem) -> PyErr {
    Python::attach(|py| {
        let class = match script_error(py) {
            Ok(class) => class,
            Err(e) => return e,
        };
        let error = match problem.location {
            Some((file, line, column)) => {
                let end = problem.end_column.unwrap_or(column + 1);
                let location = (file, line, column, problem.line, line, end);
                PyErr::from_type(class.clone(), (problem.message, location))
            }
            None => PyErr::from_type(class.clone(), (problem.message,)),
        };
        // Python's traceback shows only the first problem, so a note shows the others.
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
            VmError::Interrupted => Error::Python(take_interrupt_error()),
            VmError::TimeLimit { .. } => Error::TimeLimit(e.to_string()),
            VmError::Cancelled { .. } => Error::Cancelled(e.to_string()),
            VmError::Packed { name, source } => match python_error(&*source) {
                Some(e) => Error::Python(with_note(e, &format!("in packed function '{name}'"))),
                None => Error::Vm(format!("packed function '{name}' failed: {source}")),
            },
            VmError::External(source) => match python_error(&*source) {
                Some(e) => Error::Python(e),
                None => Error::Vm(source.to_string()),
            },
            VmError::Plain(error) => (*error).into(),
            VmError::Traced { error, trace } => Error::from(*error).with_trace(&trace),
            VmError::Arity { .. } => Error::Call(e.to_string()),
            VmError::Check(kind, text) => check_error(kind, text),
            VmError::Tensor(e) => e.into(),
            other => Error::Vm(other.to_string()),
        }
    }
}

/// The error for a run-time check that failed, by the kind of the check.
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

/// The exception that Python code raised while the VM was running.
fn python_error(error: &(dyn std::error::Error + 'static)) -> Option<PyErr> {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(e) = e.downcast_ref::<PyErr>() {
            return Some(Python::attach(|py| e.clone_ref(py)));
        }
        cause = match e.downcast_ref::<VmError>() {
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
            pliant::Error::Interrupted => Error::Python(take_interrupt_error()),
            pliant::Error::Runtime(e) => e.into(),
            pliant::Error::Executable(ExecError::Io(e)) => Error::Python(e.into()),
            pliant::Error::Executable(e) => Error::Executable(e.to_string()),
            pliant::Error::Compile(e) => compile_problem(&e),
            pliant::Error::Pass { origin, source, dump } => {
                let dump = dump.map(|path| format!("; its input module is in {}", path.display()));
                let failure = format!("{origin} failed{}", dump.unwrap_or_default());
                match python_error(&*source) {
                    Some(error) => Error::Python(with_note(error, &failure)),
                    None => Error::Compile(format!("{failure}: {source}")),
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

/// The exception with a note below its message. The exception keeps its own traceback.
fn with_note(error: PyErr, note: &str) -> PyErr {
    // If a class rejects notes, the exception is raised without the note, because its message matters more.
    let _ = Python::attach(|py| {
        let value = error.value(py);
        // An exception that passes through the same function at several depths gets the note once.
        let notes: Vec<String> =
            value.getattr("__notes__").and_then(|notes| notes.extract()).unwrap_or_default();
        if notes.iter().any(|known| known == note) {
            return Ok(());
        }
        value.call_method1("add_note", (note,)).map(|_| ())
    });
    error
}

/// The Python error for diagnostics of the compiler. Its message contains the user's source lines if they are known.
fn compile_problem(e: &pliant_diag::Error) -> Error {
    let text = || {
        if e.diagnostics().iter().all(|d| d.span.is_none()) {
            return e.to_string();
        }
        crate::source_texts::with_sources(|sources| {
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

/// Imports an attribute of a Python module, as `from module import name` does. The crate uses it to call helper functions
/// that are written in Python.
pub fn import<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    PyModule::import(py, module)?.getattr(name)
}
