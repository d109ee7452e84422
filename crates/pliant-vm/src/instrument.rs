//! Watching a machine run: a callback before and after each call.

use std::sync::Arc;

use crate::Value;

/// One call, as an instrument sees it.
#[derive(Debug)]
pub struct CallEvent<'a> {
    /// The function whose body contains the call.
    pub function: &'a str,
    /// The index of the instruction.
    pub instruction: usize,
    /// The function called.
    pub callee: &'a str,
    /// The arguments.
    pub args: &'a [Value],
    /// The result: `None` before the call, and after calls of bytecode functions, whose result
    /// comes with their return.
    pub result: Option<&'a Value>,
    /// Whether the call is about to run.
    pub before: bool,
}

/// What to do with a call that is about to run. Ignored after the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentAction {
    /// Run it.
    Continue,
    /// Skip it; its destination is left empty.
    Skip,
}

/// A callback for each call.
pub type Instrument = Arc<dyn Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync>;
