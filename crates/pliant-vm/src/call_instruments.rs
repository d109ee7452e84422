//! Instruments: callbacks that the VM invokes before and after each call of a program, for example
//! for profiling.

use std::fmt;
use std::sync::Arc;

use crate::Value;

/// A call that the VM reports to an instrument.
#[derive(Debug)]
pub struct CallEvent<'a> {
    /// The name of the function whose body contains the reported call.
    pub function: &'a str,
    /// The index of the call instruction among the instructions of the function that contains it.
    pub instruction: usize,
    /// The name of the called function.
    pub callee: &'a str,
    /// The kind of the called function.
    pub kind: CalleeKind,
    /// The arguments of the reported call.
    pub args: &'a [Value],
    /// The result of the call. `None` before the call, and also after a call of a bytecode
    /// function, because the event precedes the execution of its body.
    pub result: Option<&'a Value>,
    /// The number of floating-point operations of library kernels during the call, computed from
    /// the formulas in the kernel declarations. 0 before the call, and for generated code.
    pub flops: u64,
    /// Whether the event is reported before the call (true) or after it (false).
    pub before: bool,
}

/// The kinds of functions that a program calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalleeKind {
    /// A loop function, compiled to machine code.
    LoopFunction,
    /// A builtin of the VM.
    Builtin,
    /// A packed function: a Rust or Python function that programs call by name.
    Packed,
    /// A graph function or a closure. The VM enters its body after the instruction of the call, so the event after the call is
    /// reported before the body runs.
    GraphFunction,
}

/// The decision of an instrument whether a call runs. The decision is ignored for events after the
/// call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstrumentAction {
    /// The VM executes the call.
    Continue,
    /// The call is skipped, and its destination register becomes empty.
    Skip,
}

/// A callback that the VM invokes before and after each call of a program.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use pliant_vm::Instrument;
///
/// let calls = Arc::new(AtomicU64::new(0));
/// let counter = calls.clone();
/// let instrument = Instrument::observer(move |event| {
///     if event.before {
///         counter.fetch_add(1, Ordering::Relaxed);
///     }
/// });
/// // `VirtualMachine::set_instrument(Some(instrument))` counts the calls of all later runs.
/// # let _ = instrument;
/// ```
#[derive(Clone)]
pub struct Instrument {
    callback: Arc<dyn Fn(&CallEvent<'_>) -> InstrumentAction + Send + Sync>,
    /// Whether the callback may skip calls. If so, every tensor is zero-filled on allocation,
    /// because the call that writes the tensor may be skipped.
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
