//! The machine code of loop functions. A better version can replace it while programs run.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pliant_exec::abi::LoopFn;

/// One version of the machine code of a loop function.
pub(crate) struct LoopFunctionCode {
    /// The entry point of this version of the machine code.
    pub(crate) function: LoopFn,
    /// The error messages of the run-time checks in this version, by the status that a failed check returns. If `None`, the
    /// messages that the executable lists apply.
    pub(crate) messages: Option<Arc<[Arc<str>]>>,
    /// An object that keeps this version of the machine code alive. `None` if the table of loop functions owns such an object.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

/// The current version of a loop function's machine code. Calls read it without a lock.
pub(crate) struct CodeSlot {
    current: AtomicPtr<LoopFunctionCode>,
    /// All versions of the machine code so far. Old versions are kept because calls of them may be in progress.
    versions: Mutex<Vec<Arc<LoopFunctionCode>>>,
}

impl CodeSlot {
    /// Creates a slot with the first version of a function's code. Its error messages are those that the executable lists.
    pub(crate) fn new(function: LoopFn) -> CodeSlot {
        let first = Arc::new(LoopFunctionCode { function, messages: None, _owner: None });
        let current = AtomicPtr::new(Arc::as_ptr(&first).cast_mut());
        CodeSlot { current, versions: Mutex::new(vec![first]) }
    }

    /// Returns the current version of the code.
    #[inline]
    pub(crate) fn load(&self) -> &LoopFunctionCode {
        // SAFETY: the pointer is that of a version in `versions`, which is never removed before the slot is dropped.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Replaces the current version of the code. Calls in progress finish in the version in which they started.
    pub(crate) fn replace(
        &self,
        function: LoopFn,
        messages: Arc<[Arc<str>]>,
        owner: Arc<dyn Any + Send + Sync>,
    ) {
        let code = LoopFunctionCode { function, messages: Some(messages), _owner: Some(owner) };
        let code = Arc::new(code);
        let pointer = Arc::as_ptr(&code).cast_mut();
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).push(code);
        self.current.store(pointer, Ordering::Release);
    }
}

impl fmt::Debug for CodeSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodeSlot({:?})", self.load().function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_exec::abi::KernelRuntime;

    unsafe extern "C" fn one(_: *const u64, _: *const KernelRuntime) -> i64 {
        1
    }

    unsafe extern "C" fn two(_: *const u64, _: *const KernelRuntime) -> i64 {
        2
    }

    #[test]
    fn a_replaced_version_stays_valid_for_calls_in_progress() {
        let slot = CodeSlot::new(one);
        let owner = Arc::new(());
        let before = slot.load();
        std::thread::scope(|scope| {
            scope.spawn(|| slot.replace(two, Arc::from([Arc::from("message")]), owner.clone()));
        });
        // SAFETY: the functions ignore their arguments.
        let status = |code: &LoopFunctionCode| unsafe {
            (code.function)(std::ptr::null(), std::ptr::null())
        };
        assert_eq!((status(before), status(slot.load())), (1, 2));
        assert_eq!(slot.load().messages.as_deref().map(<[_]>::len), Some(1));
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(slot);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
