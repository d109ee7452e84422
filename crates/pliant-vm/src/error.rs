//! Errors that occur when programs are loaded or run.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use pliant_exec::NODE;
use pliant_tensor::CheckFailure;
use pliant_tensor::TensorError;

/// The kind of a failed check. Embedding programs, such as the Python package, choose the type of their exception by this kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// A rank, dim or size is wrong.
    Shape,
    /// The data type of a tensor or scalar is wrong.
    DType,
    /// The kind of a value is wrong, for example a tensor instead of a function.
    Type,
    /// A value has the right kind, data type and shape but is not allowed, for example an axis that is out of range.
    Value,
    /// An assertion of the program failed.
    Assertion,
    /// An index is out of range.
    Index,
    /// The divisor of an integer division is zero.
    Division,
    /// Generated code violated an internal invariant: a bug in Pliant.
    Internal,
}

impl From<CheckFailure> for CheckKind {
    fn from(failed: CheckFailure) -> CheckKind {
        match failed {
            CheckFailure::Assertion => CheckKind::Assertion,
            CheckFailure::Shape => CheckKind::Shape,
            CheckFailure::Index => CheckKind::Index,
            CheckFailure::Division => CheckKind::Division,
            CheckFailure::Internal => CheckKind::Internal,
        }
    }
}

/// The reason why loading an executable or invoking a function failed.
///
/// # Examples
/// ```
/// use pliant_vm::VmError;
///
/// // The error of a packed function.
/// let error = VmError::external("x is not a tensor");
/// assert_eq!(error.to_string(), "x is not a tensor");
/// assert!(error.trace().is_empty() && !error.is_internal());
/// ```
#[derive(Debug)]
pub enum VmError {
    /// The executable calls functions that do not exist.
    MissingFunctions {
        /// The names of packed functions that are not registered.
        packed: Vec<String>,
        /// The names of loop functions without machine code.
        loop_funcs: Vec<String>,
    },
    /// The executable has no function with the requested name.
    UnknownFunction {
        /// The requested name of a function.
        name: String,
        /// The names of the functions that the executable has.
        known: Vec<String>,
    },
    /// A function was called with the wrong number of arguments.
    Arity {
        /// The signature of the function, such as `main(x: Tensor(("n",), "float32"))`.
        signature: String,
        /// The number of parameters of the function.
        expected: usize,
        /// The number of arguments of the call.
        given: usize,
        /// The names of the parameters without an argument.
        missing: Vec<String>,
    },
    /// A check failed: an argument or intermediate value does not match the types that the program was compiled for.
    Check(CheckKind, String),
    /// An instruction or builtin received a value of the wrong kind.
    Type(String),
    /// A tensor could not be created or viewed.
    Tensor(TensorError),
    /// A packed function returned an error or panicked.
    Packed {
        /// The name of the packed function.
        name: String,
        /// The error that the packed function returned.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An error that a packed function returned. The VM converts it to [`VmError::Packed`], which
    /// adds the name of the function.
    External(Box<dyn Error + Send + Sync>),
    /// An error returned by a packed function that the VM returns unchanged, because its message already names the function.
    Plain(Box<VmError>),
    /// A loop function returned a status without a message.
    LoopFunc {
        /// The name of the loop function.
        name: String,
        /// The status that the loop function returned; see the `STATUS_*` constants of `pliant_exec::abi`.
        status: i64,
    },
    /// The calls of the program are nested too deeply.
    StackOverflow {
        /// The nesting depth of the calls.
        depth: usize,
        /// The name of the function that was called last. Empty if the limit on nested runs was
        /// exceeded.
        function: String,
    },
    /// The invocation was interrupted, for example by Ctrl-C.
    Interrupted,
    /// The invocation exceeded its time limit ([`RunOptions::time_limit`](crate::RunOptions)) and was stopped.
    TimeLimit {
        /// The name of the function with which the invocation began.
        function: String,
        /// The time limit that was exceeded.
        limit: Duration,
    },
    /// The invocation was stopped by its handle ([`RunOptions::cancel`](crate::RunOptions)).
    Cancelled {
        /// The name of the function with which the invocation began.
        function: String,
    },
    /// An invocation with a time limit was not started, because the operating system could not create the timer thread.
    NoTimer(std::io::Error),
    /// An error with the source locations where it occurred.
    Traced {
        /// The original error, without source locations.
        error: Box<VmError>,
        /// The source locations, innermost first: the failed instruction, then the enclosing calls.
        trace: Vec<TraceEntry>,
    },
}

/// The source lines of an instruction. The instruction may have several source lines, if operators
/// were fused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// The name of the program's function that contains the instruction.
    pub function: String,
    /// The path of the source file, a name in angle brackets, or, for graph nodes, the names of the nodes.
    pub file: String,
    /// The number of the first line, counted from 1; [`NODE`] for graph nodes.
    pub line: u32,
    /// The number of the last line.
    pub last: u32,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == NODE {
            return f.write_str(&self.file);
        }
        write!(f, "{}:{}", self.file, self.line)?;
        if self.last != self.line {
            write!(f, "-{}", self.last)?;
        }
        write!(f, ", in {}", self.function)
    }
}

impl VmError {
    /// Creates the error of a failed check.
    pub fn check(kind: CheckKind, message: impl Into<String>) -> VmError {
        VmError::Check(kind, message.into())
    }

    /// Creates the error that a value has the wrong kind.
    pub fn type_error(message: impl Into<String>) -> VmError {
        VmError::Type(message.into())
    }

    /// Wraps any error as an error that a packed function can return.
    pub fn external(error: impl Into<Box<dyn Error + Send + Sync>>) -> VmError {
        VmError::External(error.into())
    }

    /// Returns the error without source locations.
    pub fn root(&self) -> &VmError {
        match self {
            VmError::Traced { error, .. } => error.root(),
            other => other,
        }
    }

    /// Whether the cause is a bug in Pliant rather than in the program or its inputs.
    pub fn is_internal(&self) -> bool {
        matches!(self.root(), VmError::Check(CheckKind::Internal, _))
    }

    /// Returns the source locations at which the error occurred, innermost first; empty if unknown.
    pub fn trace(&self) -> &[TraceEntry] {
        match self {
            VmError::Traced { trace, .. } => trace,
            _ => &[],
        }
    }

    /// Appends source locations of enclosing calls to the error.
    pub(crate) fn traced(self, more: Vec<TraceEntry>) -> VmError {
        match self {
            error if more.is_empty() => error,
            VmError::Traced { error, mut trace } => {
                trace.extend(more);
                VmError::Traced { error, trace }
            }
            error => VmError::Traced { error: Box::new(error), trace: more },
        }
    }

    /// Attributes the error to the packed function `name`, unless the error already names its origin.
    pub(crate) fn in_packed(self, name: &str) -> VmError {
        let source = match self {
            VmError::External(source) => source,
            VmError::Plain(error) => return *error,
            other => match other.root() {
                VmError::Interrupted | VmError::StackOverflow { .. } | VmError::Packed { .. } => {
                    return other;
                }
                _ => Box::new(other),
            },
        };
        VmError::Packed { name: name.to_string(), source }
    }
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VmError::MissingFunctions { packed, loop_funcs } => {
                let mut and = "";
                if !packed.is_empty() {
                    let names = packed.join(", ");
                    write!(f, "the program calls functions that are not registered: {names}")?;
                    and = "; ";
                }
                if !loop_funcs.is_empty() {
                    let names = loop_funcs.join(", ");
                    write!(f, "{and}these loop functions have no machine code: {names}")?;
                }
                Ok(())
            }
            VmError::UnknownFunction { name, known } => {
                write!(f, "the program has no function '{name}' (it has: {})", known.join(", "))
            }
            VmError::Arity { signature, expected, given, missing } => {
                let plural = if *expected == 1 { "" } else { "s" };
                write!(f, "{signature} takes {expected} argument{plural}, but {given} ")?;
                f.write_str(if *given == 1 { "was given" } else { "were given" })?;
                match &missing[..] {
                    [] => Ok(()),
                    names => write!(f, " (missing: '{}')", names.join("', '")),
                }
            }
            VmError::Check(_, message) | VmError::Type(message) => f.write_str(message),
            VmError::Tensor(error) => error.fmt(f),
            VmError::Packed { name, source } => {
                write!(f, "packed function '{name}' failed: {source}")
            }
            VmError::External(source) => source.fmt(f),
            VmError::Plain(error) => error.fmt(f),
            VmError::LoopFunc { name, status } => match *status {
                pliant_exec::abi::STATUS_NO_MEMORY => {
                    write!(f, "loop function '{name}' ran out of memory")
                }
                pliant_exec::abi::STATUS_BAD_ARGUMENTS => {
                    write!(
                        f,
                        "loop function '{name}' does not support the shapes, strides or data types of its arguments"
                    )
                }
                status => write!(f, "loop function '{name}' failed with status {status}"),
            },
            VmError::StackOverflow { depth, function } => {
                write!(f, "function calls are nested too deeply (more than {depth} levels)")?;
                if function.is_empty() { Ok(()) } else { write!(f, " at a call of '{function}'") }
            }
            VmError::Interrupted => f.write_str("the run was interrupted"),
            VmError::TimeLimit { function, limit } => write!(
                f,
                "function '{function}' exceeded its time limit of {} seconds and was stopped (help: allow more time, or make the \
                 inputs smaller)",
                limit.as_secs_f64()
            ),
            VmError::Cancelled { function } => {
                write!(f, "the run of function '{function}' was cancelled")
            }
            VmError::NoTimer(error) => write!(
                f,
                "cannot start the timer thread for the time limit: {error} (help: run without a time \
                 limit, or allow the process more threads and memory)"
            ),
            VmError::Traced { error, trace } => {
                error.fmt(f)?;
                trace.iter().try_for_each(|entry| write!(f, "\n  at {entry}"))
            }
        }
    }
}

impl Error for VmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            VmError::Tensor(error) => Some(error),
            VmError::NoTimer(error) => Some(error),
            VmError::Plain(error) | VmError::Traced { error, .. } => Some(&**error),
            VmError::Packed { source, .. } | VmError::External(source) => Some(&**source),
            _ => None,
        }
    }
}

impl From<TensorError> for VmError {
    fn from(error: TensorError) -> VmError {
        VmError::Tensor(error)
    }
}
