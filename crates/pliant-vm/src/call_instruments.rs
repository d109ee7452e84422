//! Instruments: callbacks before and after each call of a program.

use std::fmt;
use std::sync::Arc;

use crate::Value;

/// The description of a call that an instrument receives.
#[derive(Debug)]
pub struct CallEvent<'a> {
    /// The function whose body contains the call.
    pub function: &'a str,
    /// The index of the call instruction.
    pub instruction: usize,
    /// The name of the called function.
    pub callee: &'a str,
    /// The kind of the called function.
    pub kind: CalleeKind,
    /// The arguments of the call.
    pub args: &'a [Value],
    /// The result of the call. `None` before the call, and also after a call of a bytecode function, because its result is known
    /// only when it returns.
    pub result: Option<&'a Value>,
    /// The number of floating-point operations of library kernels during the call, computed from their declared formulas. 0 before
    /// the call and for generated code.
    pub flops: u64,
    /// True before the call, false after it.
    pub before: bool,
}

/// The kinds of functions that a program calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalleeKind {
    /// A compiled loop function.
    LoopFunction,
    /// A builtin of the VM.
    Builtin,
    /// A packed function.
    Packed,
    /// A graph function or a closure. No event is reported when it returns.
    GraphFunction,
}

/// The decision of an instrument whether a call runs. It is ignored for events after the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentAction {
    /// The call runs.
    Continue,
    /// The call is skipped, and its destination register becomes empty.
    Skip,
}

/// A callback that the VM invokes before and after each call of a program.
#[derive(Clone)]
pub struct Instrument {
    callback: Arc<dyn Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync>,
    /// Whether the callback may skip calls. If so, every tensor is zero-filled on allocation, because the call that writes it may
    /// be skipped.
    pub(crate) may_skip: bool,
}

impl Instrument {
    /// Creates an instrument that may skip calls.
    pub fn new(
        callback: impl Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync + 'static,
    ) -> Self {
        Instrument { callback: Arc::new(callback), may_skip: true }
    }

    /// Creates an instrument that only observes calls. It has little effect on the run time.
    pub fn observer(observe: impl Fn(&CallEvent<'_>) + Send + Sync + 'static) -> Self {
        let callback = move |event: &CallEvent<'_>| {
            observe(event);
            InstrumentAction::Continue
        };
        Instrument { callback: Arc::new(callback), may_skip: false }
    }

    /// Passes a call event to the callback. Returns whether the call should run.
    pub(crate) fn report(&self, event: &CallEvent<'_>) -> InstrumentAction {
        (self.callback)(event)
    }
}

impl fmt::Debug for Instrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instrument").field("may_skip", &self.may_skip).finish_non_exhaustive()
    }
}
