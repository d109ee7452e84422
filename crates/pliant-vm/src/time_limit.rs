//! Early stops of runs, and the timer of their time limits. One timer thread per process interrupts each run at the run's deadline.
//! The first run with a time limit starts the thread.
//!
//! A run that has a time limit or can be cancelled has its own interrupt flag ([`RunFlag`]), so its end does not affect other runs.
//! The VM owns the flags, because interrupts of the VM set them, too. A run is removed from the timer and from its
//! [`CancelHandle`] before it releases its flag, so neither affects a later run.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::run_cancellation::CancelHandle;
use crate::virtual_machine::Inner;
use crate::{RunOptions, VmError};

/// Why a run is stopped early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StopReason {
    /// The time limit of the run has expired.
    TimeLimit = 1,
    /// The handle of the run was cancelled.
    Cancelled = 2,
}

/// The interrupt flag of a run that may be stopped early. Later runs of the same VM reuse it.
#[derive(Default)]
pub(crate) struct RunFlag {
    /// The flag that the loop functions and builtins of the run poll.
    pub(crate) interrupt: AtomicBool,
    /// The first [`StopReason`] of the run, or 0.
    reason: AtomicU8,
    in_use: AtomicBool,
}

impl RunFlag {
    /// Stops the run at its next poll. If another reason has already stopped it, that reason stays.
    pub(crate) fn stop(&self, reason: StopReason) {
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::SeqCst, Ordering::SeqCst);
        self.interrupt.store(true, Ordering::SeqCst);
    }

    fn reason(&self) -> Option<StopReason> {
        let reason = self.reason.load(Ordering::SeqCst);
        [StopReason::TimeLimit, StopReason::Cancelled].into_iter().find(|&r| r as u8 == reason)
    }
}

/// The interrupt flags of a VM's runs that may be stopped early, one flag per concurrent run. The flags form a linked list
/// that only grows, to the largest number of such concurrent runs. The list has no lock, because a fork could copy a lock while
/// another thread holds it.
#[derive(Default)]
pub(crate) struct RunFlags {
    run: Arc<RunFlag>,
    next: OnceLock<Box<RunFlags>>,
}

impl RunFlags {
    /// Acquires a flag that no other run uses, and clears it.
    fn acquire(&self) -> Arc<RunFlag> {
        let mut list = self;
        loop {
            let run = &list.run;
            if !run.in_use.swap(true, Ordering::SeqCst) {
                run.reason.store(0, Ordering::SeqCst);
                run.interrupt.store(false, Ordering::SeqCst);
                return Arc::clone(run);
            }
            list = list.next.get_or_init(Box::default);
        }
    }

    /// Interrupts all runs of the VM that may be stopped early.
    pub(crate) fn interrupt(&self) {
        let mut next = Some(self);
        while let Some(list) = next {
            if list.run.in_use.load(Ordering::SeqCst) {
                list.run.interrupt.store(true, Ordering::SeqCst);
            }
            next = list.next.get().map(|next| &**next);
        }
    }
}

/// The early stop of a running invocation: its time limit and its cancel handle. Dropping this value removes the run from both, and
/// makes the interrupt flag ([`RunFlag`]) available to later runs.
pub(crate) struct EarlyStop {
    run: Arc<RunFlag>,
    /// The deadline in the timer, with the duration of the limit.
    deadline: Option<(Key, Duration)>,
    cancel: Option<CancelHandle>,
}

impl EarlyStop {
    /// Begins a run of `vm` that the options may stop. The caller must keep the VM alive at least as long as this value. `function`
    /// is the name of the function that the run invokes, for errors.
    ///
    /// # Errors
    /// `TimeLimit` and `Cancelled` if there is no time to run or the handle was cancelled before, and `NoTimer` if the operating
    /// system cannot create the timer thread.
    pub(crate) fn start(
        runs: &RunFlags,
        vm: &Weak<Inner>,
        options: &RunOptions,
        function: &str,
    ) -> Result<EarlyStop, VmError> {
        let mut stop = EarlyStop { run: runs.acquire(), deadline: None, cancel: None };
        if let Some(cancel) = &options.cancel {
            if !cancel.enter(&stop.run, vm) {
                return Err(VmError::Cancelled { function: function.to_string() });
            }
            stop.cancel = Some(cancel.clone());
        }
        let Some(time) = options.time_limit else { return Ok(stop) };
        if time.is_zero() {
            return Err(VmError::TimeLimit { function: function.to_string(), limit: time });
        }
        // A deadline that is too far in the future for the clock never expires.
        if let Some(deadline) = Instant::now().checked_add(time) {
            let entry = Entry { run: Arc::clone(&stop.run), vm: Weak::clone(vm) };
            let key = TIMER.add(deadline, entry).map_err(VmError::NoTimer)?;
            stop.deadline = Some((key, time));
        }
        Ok(stop)
    }

    /// Returns the interrupt flag of the run.
    pub(crate) fn interrupt(&self) -> &AtomicBool {
        &self.run.interrupt
    }

    /// Whether the run must stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.run.reason().is_some()
    }

    /// Returns the error of a run of `function` that must stop; `None` if it may continue.
    pub(crate) fn error(&self, function: &str) -> Option<VmError> {
        let function = function.to_string();
        Some(match self.run.reason()? {
            StopReason::TimeLimit => {
                let limit = self.deadline.map_or(Duration::ZERO, |(_, time)| time);
                VmError::TimeLimit { function, limit }
            }
            StopReason::Cancelled => VmError::Cancelled { function },
        })
    }
}

impl Drop for EarlyStop {
    fn drop(&mut self) {
        if let Some((key, _)) = &self.deadline {
            TIMER.lock().entries.remove(key);
        }
        if let Some(cancel) = &self.cancel {
            cancel.leave(&self.run);
        }
        self.run.in_use.store(false, Ordering::SeqCst);
    }
}

/// The key of a run in the table of deadlines: its deadline, and a number that makes the key unique.
type Key = (Instant, u64);

/// A run with a time limit, in the table of deadlines.
struct Entry {
    run: Arc<RunFlag>,
    vm: Weak<Inner>,
}

impl Entry {
    /// Interrupts the run because its deadline has passed. The caller holds the timer's lock. So the run cannot end meanwhile, its
    /// thread keeps the VM alive, and this function never drops the last reference to the VM.
    fn expire(&self) {
        self.run.stop(StopReason::TimeLimit);
        if let Some(vm) = self.vm.upgrade() {
            vm.wake_runs();
        }
    }
}

/// The deadlines of all runs in the process.
struct Deadlines {
    entries: BTreeMap<Key, Entry>,
    next_id: u64,
    /// Whether the timer thread exists in this process.
    has_thread: bool,
    /// The time at which the timer thread wakes up; `None` if the thread waits for the first
    /// deadline.
    wakes: Option<Instant>,
}

struct Timer {
    deadlines: Mutex<Deadlines>,
    changed: Condvar,
}

static TIMER: Timer = Timer {
    deadlines: Mutex::new(Deadlines {
        entries: BTreeMap::new(),
        next_id: 0,
        has_thread: false,
        wakes: None,
    }),
    changed: Condvar::new(),
};

impl Timer {
    /// Locks the deadlines. While a thread holds this lock, it acquires no other lock.
    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&'static self, deadline: Instant, entry: Entry) -> io::Result<Key> {
        forks::prepare();
        let mut deadlines = self.lock();
        if !deadlines.has_thread {
            let builder = Builder::new().name("pliant-timer".into());
            pliant_pool::start_helper(builder, || self.run())?;
            deadlines.has_thread = true;
        }
        let key = (deadline, deadlines.next_id);
        deadlines.next_id += 1;
        deadlines.entries.insert(key, entry);
        if deadlines.wakes.is_none_or(|wakes| deadline < wakes) {
            self.changed.notify_one();
        }
        Ok(key)
    }

    /// The main function of the timer thread.
    fn run(&self) {
        let mut deadlines = self.lock();
        loop {
            let now = Instant::now();
            while let Some(first) = deadlines.entries.first_entry()
                && first.key().0 <= now
            {
                first.remove().expire();
            }
            deadlines.wakes = deadlines.entries.keys().next().map(|key| key.0);
            deadlines = match deadlines.wakes {
                Some(wakes) => {
                    let time = wakes.saturating_duration_since(now);
                    let woken = self.changed.wait_timeout(deadlines, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(deadlines).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// Fork handlers. A forked child does not inherit the timer thread. The forking thread holds the lock during the fork, so the lock
/// is free in the child. The next run with a limit in the child starts a new thread.
#[cfg(unix)]
mod forks {
    use std::cell::RefCell;
    use std::sync::{MutexGuard, Once};

    use super::{Deadlines, TIMER};

    thread_local! {
        static HELD: RefCell<Option<MutexGuard<'static, Deadlines>>> = const { RefCell::new(None) };
    }

    extern "C" fn before() {
        HELD.set(Some(TIMER.lock()));
    }

    extern "C" fn in_parent() {
        HELD.set(None);
    }

    extern "C" fn in_child() {
        if let Some(mut deadlines) = HELD.take() {
            deadlines.has_thread = false;
            deadlines.wakes = None;
        }
    }

    /// Installs the fork handlers, once per process.
    pub(super) fn prepare() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers live as long as the process; they lock, store and unlock. No thread forks while it holds the
            // lock. If registration fails (out of memory), forks are not handled.
            let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }
}

#[cfg(not(unix))]
mod forks {
    /// Does nothing: this operating system has no `fork`, so it needs no fork handlers.
    pub(super) fn prepare() {}
}
