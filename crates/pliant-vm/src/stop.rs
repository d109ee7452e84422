//! The flags that stop kernels: an interrupt reaches the runs that it finds, and no run that begins later.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pliant_exec::abi::KernelRuntime;
use pliant_pool::Team;

use crate::memory::{alloc_workspace, free_workspace};
use crate::time_limit::LimitedRuns;

/// Interrupts whose runs may all be on their way to the end at one time.
const FLAGS: usize = 4;

/// A flag, and the runs that it stops.
pub(crate) struct StopFlag {
    /// What the kernels of these runs get: it holds the flag's address.
    pub(crate) runtime: KernelRuntime,
    raised: Box<AtomicBool>,
    runs: AtomicUsize,
}

impl StopFlag {
    /// A run ends.
    pub(crate) fn leave(&self) {
        self.runs.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The flags of a machine. New runs share one; an interrupt raises it and lets later runs have another.
pub(crate) struct StopFlags {
    flags: [StopFlag; FLAGS],
    current: AtomicUsize,
    raising: Mutex<()>,
    /// Runs with a time limit have flags of their own.
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

    /// The runtime of a run that has an interrupt flag of its own. The flag outlives the runtime.
    pub(crate) fn runtime(&self, interrupt: &AtomicBool) -> KernelRuntime {
        KernelRuntime { interrupt, ..self.flags[0].runtime }
    }

    /// A run begins.
    pub(crate) fn enter(&self) -> &StopFlag {
        loop {
            let current = self.current.load(Ordering::SeqCst);
            let flag = &self.flags[current];
            let others = flag.runs.fetch_add(1, Ordering::SeqCst);
            // Raised only while no other flag was free: then the last run that it was meant for lowers it by ending.
            if others == 0 && flag.raised.load(Ordering::SeqCst) {
                flag.raised.store(false, Ordering::SeqCst);
            }
            // An interrupt in between may have taken the flag for earlier runs, or find it free and lower it.
            if self.current.load(Ordering::SeqCst) == current {
                return flag;
            }
            flag.leave();
        }
    }

    /// Stops the kernels of the runs that have begun.
    pub(crate) fn raise(&self) {
        let _one = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load(Ordering::SeqCst);
        // Earlier runs that still go on have their flags raised already.
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
        // Without a free flag the last one is shared until its runs end.
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
