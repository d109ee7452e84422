//! Errors of loading and running programs.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use pliant_exec::NODE;
use pliant_tensor::Failed;
use pliant_tensor::TensorError;

/// The kind of a failed check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// A rank, dim or size is wrong.
    Shape,
    /// The data type of a tensor or scalar is wrong.
    DType,
    /// The kind of a value is wrong, for example a tensor instead of a function.
    Type,
    /// Another property of a value is wrong.
    Value,
    /// An assertion of the program failed.
    Assertion,
    /// An index is out of range.
    Index,
    /// A divisor is zero.
    Division,
    /// Generated code misbehaved: a bug in Pliant.
    Internal,
}

impl From<Failed> for CheckKind {
    fn from(failed: Failed) -> CheckKind {
        match failed {
            Failed::Assertion => CheckKind::Assertion,
            Failed::Shape => CheckKind::Shape,
            Failed::Index => CheckKind::Index,
            Failed::Division => CheckKind::Division,
            Failed::Internal => CheckKind::Internal,
        }
    }
}

/// The reason why an invocation, or loading an executable, failed.
#[derive(Debug)]
pub enum VmError {
    /// Functions that the executable calls do not exist.
    MissingFunctions {
        /// The names of packed functions that are not registered.
        packed: Vec<String>,
        /// The names of loop functions without machine code.
        kernels: Vec<String>,
    },
    /// There is no function with the requested name.
    UnknownFunction {
        /// The requested name.
        name: String,
        /// The names of the existing functions.
        known: Vec<String>,
    },
    /// The wrong number of arguments.
    Arity {
        /// The function, with its parameters: `main(x: Tensor(("n",), "float32"))`.
        signature: String,
        /// The expected number of arguments.
        expected: usize,
        /// The actual number of arguments.
        given: usize,
    },
    /// A check failed: an argument or an intermediate value does not match what the program was
    /// compiled for.
    Check(CheckKind, String),
    /// An instruction received a value of the wrong kind, or a builtin was misused.
    Type(String),
    /// A tensor could not be created or viewed.
    Tensor(TensorError),
    /// A packed function failed.
    Packed {
        /// The name of the function.
        name: String,
        /// The error of the function.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An error returned by a packed function. The VM reports it as [`VmError::Packed`].
    External(Box<dyn Error + Send + Sync>),
    /// An error that a packed function returns and that the VM passes on unchanged, because it
    /// already says what failed.
    Plain(Box<VmError>),
    /// A loop function failed with a status that has no message.
    Kernel {
        /// The name of the function.
        name: String,
        /// The status.
        status: i64,
    },
    /// Calls are nested too deeply.
    StackOverflow {
        /// The nesting depth.
        depth: usize,
        /// The function that was called last; empty if the limit was exceeded by nested invocations
        /// of VMs.
        function: String,
    },
    /// The invocation was interrupted.
    Interrupted,
    /// The invocation exceeded the time limit of its [`RunOptions`](crate::RunOptions) and was
    /// stopped.
    TimeLimit {
        /// The invoked function.
        function: String,
        /// The time limit.
        limit: Duration,
    },
    /// An invocation with a time limit was not started, because the system could not start the
    /// timer thread.
    NoTimer(std::io::Error),
    /// An error with its source locations.
    Traced {
        /// The error.
        error: Box<VmError>,
        /// The source locations, innermost first: the one that failed, then those of the enclosing
        /// calls.
        trace: Vec<TraceEntry>,
    },
}

/// The source lines of an instruction. There are several if several computations were fused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// The name of the function in the program.
    pub function: String,
    /// The path of the source file, a name in angle brackets, or the name of a graph node.
    pub file: String,
    /// The first line, starting at 1; [`NODE`] for a graph node.
    pub line: u32,
    /// The last line.
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

    /// Creates the error of a value of the wrong kind.
    pub fn type_error(message: impl Into<String>) -> VmError {
        VmError::Type(message.into())
    }

    /// Wraps an error of the host, for packed functions to return.
    pub fn external(error: impl Into<Box<dyn Error + Send + Sync>>) -> VmError {
        VmError::External(error.into())
    }

    /// The error without source locations.
    pub fn root(&self) -> &VmError {
        match self {
            VmError::Traced { error, .. } => error.root(),
            other => other,
        }
    }

    /// Whether the cause is a bug in Pliant.
    pub fn is_internal(&self) -> bool {
        matches!(self.root(), VmError::Check(CheckKind::Internal, _))
    }

    /// The source locations, innermost first; empty if unknown.
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

    /// Attributes the error to the packed function `name`, unless the error already says where it
    /// comes from.
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
            VmError::MissingFunctions { packed, kernels } => {
                let mut and = "";
                if !packed.is_empty() {
                    let names = packed.join(", ");
                    write!(f, "functions that the program calls are not registered: {names}")?;
                    and = "; ";
                }
                if !kernels.is_empty() {
                    let names = kernels.join(", ");
                    write!(f, "{and}kernels of the program have no machine code: {names}")?;
                }
                Ok(())
            }
            VmError::UnknownFunction { name, known } => {
                write!(f, "the program has no function '{name}' (it has: {})", known.join(", "))
            }
            VmError::Arity { signature, expected, given } => {
                let plural = if *expected == 1 { "" } else { "s" };
                write!(f, "{signature} takes {expected} argument{plural}, but {given} ")?;
                f.write_str(if *given == 1 { "was given" } else { "were given" })
            }
            VmError::Check(_, message) | VmError::Type(message) => f.write_str(message),
            VmError::Tensor(error) => error.fmt(f),
            VmError::Packed { name, source } => {
                write!(f, "packed function '{name}' failed: {source}")
            }
            VmError::External(source) => source.fmt(f),
            VmError::Plain(error) => error.fmt(f),
            VmError::Kernel { name, status } => match *status {
                pliant_exec::abi::STATUS_NO_MEMORY => {
                    write!(f, "kernel '{name}' ran out of memory")
                }
                pliant_exec::abi::STATUS_BAD_ARGUMENTS => {
                    write!(f, "kernel '{name}' was called with arguments that it cannot take")
                }
                status => write!(f, "kernel '{name}' failed with status {status}"),
            },
            VmError::StackOverflow { depth, function } => {
                write!(f, "calls are nested too deeply (more than {depth})")?;
                if function.is_empty() {
                    Ok(())
                } else {
                    write!(f, ", the last one of '{function}'")
                }
            }
            VmError::Interrupted => f.write_str("interrupted"),
            VmError::TimeLimit { function, limit } => write!(
                f,
                "'{function}' exceeded its time limit of {} seconds and was stopped (help: allow more time, or make the \
                 inputs smaller)",
                limit.as_secs_f64()
            ),
            VmError::NoTimer(error) => write!(
                f,
                "a time limit needs a timer thread, which the system refuses to start: {error} (help: leave out the time \
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
