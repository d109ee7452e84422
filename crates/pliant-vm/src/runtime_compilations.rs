//! Counts the programs that packed and library functions compile at run time, for the statistics of a VM.
//!
//! A packed or library function that compiles a program calls [`record_compilation`] on the thread of the run. Every invocation of
//! a VM has a [`CompilationCounter`], which adds the compilations that were recorded since its creation to the total of the VM. A
//! nested run also counts them for the run that contains it; a top-level run does not.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The number of compilations recorded on this thread by the current top-level invocation.
    static RECORDED: Cell<u64> = const { Cell::new(0) };
}

/// Records that a packed or library function compiled a program during the run on this thread.
/// [`VmStats::compilations`](crate::VmStats::compilations) of the running VM counts it.
pub fn record_compilation() {
    RECORDED.set(RECORDED.get() + 1);
}

/// Adds the compilations recorded during an invocation to the total of its VM, when it is dropped.
pub(crate) struct CompilationCounter<'a> {
    total: &'a AtomicU64,
    /// The number of compilations that were recorded on this thread before the invocation started ([`RECORDED`]).
    start: u64,
    nested: bool,
}

impl<'a> CompilationCounter<'a> {
    /// Starts to count the compilations of an invocation on this thread. `nested` states whether
    /// they also count as compilations of the run that contains the invocation.
    pub(crate) fn new(total: &'a AtomicU64, nested: bool) -> Self {
        CompilationCounter { total, start: RECORDED.get(), nested }
    }
}

impl Drop for CompilationCounter<'_> {
    fn drop(&mut self) {
        let recorded = RECORDED.get();
        if recorded == self.start {
            return;
        }
        self.total.fetch_add(recorded.wrapping_sub(self.start), Ordering::Relaxed);
        if !self.nested {
            RECORDED.set(self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nested_invocations_pass_compilations_to_the_outer_run() {
        let [outer, inner, top_level] = [const { AtomicU64::new(0) }; 3];
        let count = |total: &AtomicU64| total.load(Ordering::Relaxed);
        let outer_counter = CompilationCounter::new(&outer, false);
        record_compilation();
        let inner_counter = CompilationCounter::new(&inner, true);
        record_compilation();
        drop(inner_counter);
        let top_level_counter = CompilationCounter::new(&top_level, false);
        record_compilation();
        drop(top_level_counter);
        drop(outer_counter);
        assert_eq!([count(&outer), count(&inner), count(&top_level)], [2, 1, 1]);
    }
}
