//! Interrupt flags. An interrupt stops the runs that have begun, but no later run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pliant_exec::abi::KernelRuntime;
use pliant_pool::Team;

use crate::memory::{alloc_workspace, free_workspace};
use crate::time_limit::LimitedRuns;

/// The number of flags. While interrupted runs still use all the others, new runs share the last
/// one.
const FLAGS: usize = 4;

/// An interrupt flag and the number of runs that use it.
pub(crate) struct StopFlag {
    /// The runtime passed to the loop functions of these runs. It contains the flag's address.
    pub(crate) runtime: KernelRuntime,
    raised: Box<AtomicBool>,
    runs: AtomicUsize,
}

impl StopFlag {
    /// Ends a run.
    pub(crate) fn leave(&self) {
        self.runs.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The flags of a VM. New runs share one flag. An interrupt sets it and makes later runs use
/// another.
pub(crate) struct StopFlags {
    flags: [StopFlag; FLAGS],
    current: AtomicUsize,
    raising: Mutex<()>,
    /// Runs with a time limit have their own flags.
    pub(crate) limited: LimitedRuns,
}

impl StopFlags {
    pub(crate) fn new(team: *const Team) -> StopFlags {
        let flag = |_| {
            let raised = Box::new(AtomicBool::new(false));
            let runtime = KernelRuntime {
                parallel_launch: pliant_pool::parallel_launch,
                team: team.cast(),
                alloc_workspace,
                free_workspace,
                interrupt: &raw const *raised,
                call_packed: crate::callback::call_packed,
                report_error: crate::callback::report_error,
                call: std::ptr::null(),
                told: KernelRuntime::serial().told,
                flops: std::ptr::null(),
            };
            StopFlag { runtime, raised, runs: AtomicUsize::new(0) }
        };
        StopFlags {
            flags: std::array::from_fn(flag),
            current: AtomicUsize::new(0),
            raising: Mutex::new(()),
            limited: LimitedRuns::default(),
        }
    }

    /// The runtime of a run that has its own interrupt flag. The flag must outlive the runtime.
    pub(crate) fn runtime(&self, interrupt: &AtomicBool) -> KernelRuntime {
        KernelRuntime { interrupt, ..self.flags[0].runtime }
    }

    /// Begins a run, and returns its flag.
    pub(crate) fn enter(&self) -> &StopFlag {
        loop {
            let current = self.current.load(Ordering::SeqCst);
            let flag = &self.flags[current];
            let others = flag.runs.fetch_add(1, Ordering::SeqCst);
            // The current flag is only set if no other flag was free. The last interrupted run has
            // ended, so clear it.
            if others == 0 && flag.raised.load(Ordering::SeqCst) {
                flag.raised.store(false, Ordering::SeqCst);
            }
            // An interrupt may have happened in between: the flag may be set for earlier runs only,
            // so retry.
            if self.current.load(Ordering::SeqCst) == current {
                return flag;
            }
            flag.leave();
        }
    }

    /// Interrupts the loop functions of all runs that have begun.
    pub(crate) fn raise(&self) {
        let _one = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load(Ordering::SeqCst);
        // The flags of earlier interrupted runs are set already.
        self.flags[current].raised.store(true, Ordering::SeqCst);
        self.limited.interrupt();
        let free =
            (0..FLAGS).find(|&i| i != current && self.flags[i].runs.load(Ordering::SeqCst) == 0);
        if let Some(next) = free {
            self.flags[next].raised.store(false, Ordering::SeqCst);
            self.current.store(next, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(flag: &StopFlag) -> bool {
        flag.raised.load(Ordering::SeqCst)
    }

    #[test]
    fn an_interrupt_stops_the_runs_before_it_only() {
        let flags = StopFlags::new(std::ptr::null());
        let (first, second) = (flags.enter(), flags.enter());
        flags.raise();
        let third = flags.enter();
        assert!(raised(first) && raised(second) && !raised(third));
        third.leave();
        assert!(raised(first) && !raised(flags.enter()));
    }

    #[test]
    fn flags_are_used_again() {
        let flags = StopFlags::new(std::ptr::null());
        for _ in 0..3 * FLAGS {
            let run = flags.enter();
            assert!(!raised(run));
            flags.raise();
            assert!(raised(run));
            run.leave();
        }
        // If no flag is free, the last one is shared until its runs end.
        let runs: Vec<_> = (0..FLAGS)
            .map(|_| {
                let run = flags.enter();
                flags.raise();
                run
            })
            .collect();
        assert!(runs.iter().all(|run| raised(run)));
        runs.iter().for_each(|run| run.leave());
        assert!(!raised(flags.enter()));
    }
}
