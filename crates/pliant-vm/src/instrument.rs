//! Instrumentation: a callback before and after each call.

use std::sync::Arc;

use crate::Value;

/// A call, as passed to an instrument.
#[derive(Debug)]
pub struct CallEvent<'a> {
    /// The function whose body contains the call.
    pub function: &'a str,
    /// The index of the instruction.
    pub instruction: usize,
    /// The called function.
    pub callee: &'a str,
    /// The arguments.
    pub args: &'a [Value],
    /// The result. `None` before the call, and after calls of bytecode functions, whose result is
    /// only known when they return.
    pub result: Option<&'a Value>,
    /// Whether this is the event before the call.
    pub before: bool,
}

/// What to do with a call. The action is ignored after the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentAction {
    /// Run the call.
    Continue,
    /// Skip the call. Its destination is left empty.
    Skip,
}

/// A callback invoked around each call.
pub type Instrument = Arc<dyn Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync>;
