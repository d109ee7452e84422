//! What can go wrong when a program runs.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use pliant_exec::NODE;
use pliant_tensor::Failed;
use pliant_tensor::TensorError;

/// What a failed check complains of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// A rank, a dim, a size.
    Shape,
    /// The data type of a tensor or scalar.
    DType,
    /// The kind of a value: a tensor, a tuple of two values, a function.
    Type,
    /// Another property of a value.
    Value,
    /// Something that the program asserts.
    Assertion,
    /// An index.
    Index,
    /// A divisor that is zero.
    Division,
    /// Generated code: a defect of Pliant.
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

/// Why an invocation, or the loading of an executable, failed.
#[derive(Debug)]
pub enum VmError {
    /// Functions that the executable calls were found nowhere.
    MissingFunctions {
        /// The names of packed functions that are not registered.
        packed: Vec<String>,
        /// The names of kernels without machine code.
        kernels: Vec<String>,
    },
    /// There is no function of this name to invoke.
    UnknownFunction {
        /// The name asked for.
        name: String,
        /// The functions that there are.
        known: Vec<String>,
    },
    /// The wrong number of arguments.
    Arity {
        /// The function, with its parameters: `main(x: Tensor(("n",), "float32"))`.
        signature: String,
        /// How many arguments it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// A check failed: an argument or an intermediate value is not what the program was compiled for.
    Check(CheckKind, String),
    /// A value of the wrong kind reached an instruction, or a builtin was misused.
    Type(String),
    /// A tensor could not be made or viewed.
    Tensor(TensorError),
    /// A packed function failed.
    Packed {
        /// Its name.
        name: String,
        /// Its error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An error that a packed function passes through the machine; it arrives as [`VmError::Packed`].
    External(Box<dyn Error + Send + Sync>),
    /// An error that a packed function passes through the machine as it is: it says by itself what failed.
    Plain(Box<VmError>),
    /// A kernel failed in a way that it has no message for.
    Kernel {
        /// Its name.
        name: String,
        /// Its status.
        status: i64,
    },
    /// Calls are nested too deeply.
    StackOverflow {
        /// How deeply.
        depth: usize,
        /// The function that was called last; empty where the machine itself was.
        function: String,
    },
    /// The invocation was interrupted.
    Interrupted,
    /// The invocation exceeded the time limit of its [`RunOptions`](crate::RunOptions) and was stopped.
    TimeLimit {
        /// The invoked function.
        function: String,
        /// The time limit.
        limit: Duration,
    },
    /// An invocation with a time limit was not started, because the system refused the thread that stops it.
    NoTimer(std::io::Error),
    /// What failed, and where the program says it.
    Traced {
        /// What failed.
        error: Box<VmError>,
        /// The lines of the source, innermost first: the one that failed, the one that called its function, and so on.
        trace: Vec<TraceEntry>,
    },
}

/// Lines of the source that were being executed: more than one where several computations are one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// The function, as the program calls it.
    pub function: String,
    /// The path of the source file, a name in angle brackets, or a node of a graph.
    pub file: String,
    /// The first line, from 1; [`NODE`] for a node.
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
    /// A failed check.
    pub fn check(kind: CheckKind, message: impl Into<String>) -> VmError {
        VmError::Check(kind, message.into())
    }

    /// A value of the wrong kind.
    pub fn type_error(message: impl Into<String>) -> VmError {
        VmError::Type(message.into())
    }

    /// An error of the host, for packed functions to return.
    pub fn external(error: impl Into<Box<dyn Error + Send + Sync>>) -> VmError {
        VmError::External(error.into())
    }

    /// What failed, without where.
    pub fn root(&self) -> &VmError {
        match self {
            VmError::Traced { error, .. } => error.root(),
            other => other,
        }
    }

    /// Whether the cause is a defect of Pliant.
    pub fn is_internal(&self) -> bool {
        matches!(self.root(), VmError::Check(CheckKind::Internal, _))
    }

    /// The lines of the source that were being executed, innermost first; none where they are not known.
    pub fn trace(&self) -> &[TraceEntry] {
        match self {
            VmError::Traced { trace, .. } => trace,
            _ => &[],
        }
    }

    /// The error with lines of the source behind those that it has.
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

    /// The error as that of the packed function `name`, unless it says by itself where it comes from.
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
