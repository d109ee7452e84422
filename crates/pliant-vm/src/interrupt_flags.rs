//! The interrupt flags of a VM. An interrupt stops all runs that have begun, but no later run.
//!
//! [`VirtualMachine::interrupt`](crate::VirtualMachine::interrupt) sets the flags. The embedding program calls it, for example for
//! Ctrl-C (`pliant-py/src/runtime/ctrl_c_interrupts.rs`). A run that has a time limit or can be cancelled has a flag of its own
//! ([`crate::time_limit`]).
//!
//! A run passes the address of its flag on in its [`KernelRuntime`]. Generated loops
//! (`pliant-codegen/src/interrupt_polling.rs`), kernels, builtins and library functions poll it there. The interpreter polls the
//! VM's attention word between instructions instead, which an interrupt changes, too.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pliant_exec::abi::KernelRuntime;
use pliant_pool::Team;

use crate::memory_pool::{alloc_workspace, free_workspace};
use crate::time_limit::RunFlags;

/// The number of interrupt flags of a VM. If interrupted runs still use all other flags, new runs
/// share the last flag.
const FLAGS: usize = 4;

/// An interrupt flag and the number of runs that use it.
pub(crate) struct InterruptFlag {
    /// The runtime that loop functions of the runs with this flag receive. It contains the address of the flag.
    pub(crate) runtime: KernelRuntime,
    raised: Box<AtomicBool>,
    runs: AtomicUsize,
}

impl InterruptFlag {
    /// Records that a run no longer uses the flag.
    pub(crate) fn leave(&self) {
        self.runs.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The interrupt flags of a VM. New runs share the current flag. An interrupt sets the current flag
/// and selects another flag for later runs.
pub(crate) struct InterruptFlags {
    flags: [InterruptFlag; FLAGS],
    current: AtomicUsize,
    raising: Mutex<()>,
    /// The separate flags of runs that may be stopped early, one per run.
    pub(crate) run_flags: RunFlags,
}

impl InterruptFlags {
    pub(crate) fn new(team: *const Team) -> InterruptFlags {
        let flag = |_| {
            let raised = Box::new(AtomicBool::new(false));
            let runtime = KernelRuntime {
                parallel_launch: pliant_pool::parallel_launch,
                team: team.cast(),
                alloc_workspace,
                free_workspace,
                interrupt: &raw const *raised,
                call_packed: crate::loop_function_callbacks::call_packed,
                report_error: crate::loop_function_callbacks::report_error,
                call: std::ptr::null(),
                assert_args: KernelRuntime::serial().assert_args,
                flops: std::ptr::null(),
            };
            InterruptFlag { runtime, raised, runs: AtomicUsize::new(0) }
        };
        InterruptFlags {
            flags: std::array::from_fn(flag),
            current: AtomicUsize::new(0),
            raising: Mutex::new(()),
            run_flags: RunFlags::default(),
        }
    }

    /// Returns the runtime for a run that has its own interrupt flag `interrupt`. The flag must
    /// outlive the runtime.
    pub(crate) fn runtime(&self, interrupt: &AtomicBool) -> KernelRuntime {
        KernelRuntime { interrupt, ..self.flags[0].runtime }
    }

    /// Begins a run and returns its flag.
    pub(crate) fn enter(&self) -> &InterruptFlag {
        loop {
            let current = self.current.load(Ordering::SeqCst);
            let flag = &self.flags[current];
            let others = flag.runs.fetch_add(1, Ordering::SeqCst);
            // The current flag is set only if no other flag was free at the last interrupt. All runs that used it have ended, so
            // clear it.
            if others == 0 && flag.raised.load(Ordering::SeqCst) {
                flag.raised.store(false, Ordering::SeqCst);
            }
            // If an interrupt selected another flag in between, this flag may be set, so retry.
            if self.current.load(Ordering::SeqCst) == current {
                return flag;
            }
            flag.leave();
        }
    }

    /// Interrupts the loop functions of all runs that have begun, including those that may be stopped early.
    pub(crate) fn raise(&self) {
        let _one = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.load(Ordering::SeqCst);
        // Flags other than the current one were set by earlier interrupts.
        self.flags[current].raised.store(true, Ordering::SeqCst);
        self.run_flags.interrupt();
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

    fn raised(flag: &InterruptFlag) -> bool {
        flag.raised.load(Ordering::SeqCst)
    }

    #[test]
    fn an_interrupt_stops_earlier_runs_but_no_later_run() {
        let flags = InterruptFlags::new(std::ptr::null());
        let (first, second) = (flags.enter(), flags.enter());
        flags.raise();
        let third = flags.enter();
        assert!(raised(first) && raised(second) && !raised(third));
        third.leave();
        assert!(raised(first) && !raised(flags.enter()));
    }

    #[test]
    fn flags_are_reused_after_their_runs_end() {
        let flags = InterruptFlags::new(std::ptr::null());
        for _ in 0..3 * FLAGS {
            let run = flags.enter();
            assert!(!raised(run));
            flags.raise();
            assert!(raised(run));
            run.leave();
        }
        // If no flag is free, new runs share the last one until the interrupted runs end.
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
