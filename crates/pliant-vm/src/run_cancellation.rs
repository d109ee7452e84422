//! Cancellation of single runs. A [`CancelHandle`] stops the runs that were started with it, from any thread.
//!
//! Like a run with a time limit, such a run has its own interrupt flag ([`RunFlag`]), so other runs of the VM continue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::time_limit::{RunFlag, StopReason};
use crate::virtual_machine::Inner;

/// Cancels runs from another thread. Clones are the same handle: runs that were started with one of them
/// ([`RunOptions::cancel`](crate::RunOptions::cancel)) stop when one of them is cancelled. Later runs with a cancelled handle fail
/// immediately.
///
/// # Examples
/// ```
/// use pliant_vm::{CancelHandle, RunOptions};
///
/// let cancel = CancelHandle::new();
/// let options = RunOptions { cancel: Some(cancel.clone()), ..RunOptions::default() };
/// // Another thread runs `vm.invoke_with(name, args, &options)`.
/// cancel.cancel();
/// assert!(cancel.is_cancelled());
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
pub struct CancelHandle(Arc<State>);

#[derive(Default)]
struct State {
    cancelled: AtomicBool,
    /// The runs in progress, each with its VM.
    runs: Mutex<Vec<(Arc<RunFlag>, Weak<Inner>)>>,
}

impl CancelHandle {
    /// Creates a handle that is not cancelled.
    pub fn new() -> CancelHandle {
        CancelHandle::default()
    }

    /// Stops all runs that were started with the handle, at their next poll of the interrupt flag. They fail with
    /// [`VmError::Cancelled`](crate::VmError::Cancelled). Does not wait until they have stopped. Packed and library functions that
    /// are running are not interrupted.
    pub fn cancel(&self) {
        let runs = self.lock();
        self.0.cancelled.store(true, Ordering::SeqCst);
        for (flag, vm) in runs.iter() {
            flag.stop(StopReason::Cancelled);
            // A run leaves the list before it ends, for which it needs the lock. So its thread keeps the VM alive, and this
            // function never drops the last reference to it.
            if let Some(vm) = vm.upgrade() {
                vm.wake_runs();
            }
        }
    }

    /// Whether the handle was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Registers a run, so that cancelling the handle sets its flag. Returns false, without registering it, if the handle is
    /// already cancelled.
    pub(crate) fn enter(&self, flag: &Arc<RunFlag>, vm: &Weak<Inner>) -> bool {
        let mut runs = self.lock();
        let runs_on = !self.is_cancelled();
        if runs_on {
            runs.push((Arc::clone(flag), Weak::clone(vm)));
        }
        runs_on
    }

    /// Removes a run that [`enter`](Self::enter) registered.
    pub(crate) fn leave(&self, flag: &Arc<RunFlag>) {
        self.lock().retain(|(other, _)| !Arc::ptr_eq(other, flag));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<RunFlag>, Weak<Inner>)>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for CancelHandle {
    /// Whether both are clones of the same handle.
    fn eq(&self, other: &CancelHandle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CancelHandle {}

impl std::fmt::Debug for CancelHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelHandle").field("cancelled", &self.is_cancelled()).finish()
    }
}
