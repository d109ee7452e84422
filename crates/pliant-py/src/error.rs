//! Errors on their way to Python: [`Error`], and the exception class that each becomes.
//!
//! The classes themselves are Python's (`pliant.error`), because several have two bases.

use pliant_tensor::TensorError;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyType};

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

/// The first problem of a script, with where it is.
#[derive(Clone, Debug, Default)]
pub struct ScriptProblem {
    /// What is wrong, in one line.
    pub message: String,
    /// The whole report, with the source line and the caret.
    pub rendered: String,
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
    shape_error = "ShapeError";
    dtype_error = "DTypeError";
    internal_error = "InternalError";
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
            TensorError::DTypeMismatch { .. } => Error::DType(text),
            TensorError::Unsupported(_) => Error::Unsupported(text),
            TensorError::ReadOnly => Error::Value(text),
            TensorError::OutOfMemory { .. } => Error::Vm(text),
            _ => Error::Shape(text),
        }
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
