//! Instrumentation: a callback before and after each call.

use std::fmt;
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
    /// What kind of function it is.
    pub kind: CalleeKind,
    /// The arguments.
    pub args: &'a [Value],
    /// The result. `None` before the call, and after calls of bytecode functions, whose result is
    /// only known when they return.
    pub result: Option<&'a Value>,
    /// The floating-point operations that library kernels computed in the call, by the formulas of their declarations. 0
    /// before the call, and for generated code.
    pub flops: u64,
    /// Whether this is the event before the call.
    pub before: bool,
}

/// The kinds of functions that a program calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalleeKind {
    /// A loop function.
    LoopFunction,
    /// A builtin of the VM.
    Builtin,
    /// A packed function.
    Packed,
    /// A graph function or a closure. There is no event when it returns.
    GraphFunction,
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
#[derive(Clone)]
pub struct Instrument {
    callback: Arc<dyn Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync>,
    /// Whether it may skip calls. Tensors that a skipped call would have written are cleared when they are allocated.
    pub(crate) may_skip: bool,
}

impl Instrument {
    /// An instrument that may skip calls.
    pub fn new(
        callback: impl Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync + 'static,
    ) -> Self {
        Instrument { callback: Arc::new(callback), may_skip: true }
    }

    /// An instrument that only observes calls, so that runs take about their usual time.
    pub fn observer(observe: impl Fn(&CallEvent<'_>) + Send + Sync + 'static) -> Self {
        let callback = move |event: &CallEvent<'_>| {
            observe(event);
            InstrumentAction::Continue
        };
        Instrument { callback: Arc::new(callback), may_skip: false }
    }

    /// Reports a call.
    pub(crate) fn report(&self, event: &CallEvent<'_>) -> InstrumentAction {
        (self.callback)(event)
    }
}

impl fmt::Debug for Instrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instrument").field("may_skip", &self.may_skip).finish_non_exhaustive()
    }
}
