//! Time limits of runs. One timer thread per process interrupts each run at the run's deadline. The
//! first run with a time limit starts the thread.
//!
//! A run with a limit has its own interrupt flag ([`DeadlineFlag`]), so its deadline does not
//! affect other runs. The VM owns the flags, because interrupts of the VM set them, too. A run is
//! removed from the timer before it releases its flag, so a deadline never affects a later run.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::VmError;
use crate::virtual_machine::Inner;

/// The interrupt flag of a run with a time limit. Later runs of the same VM reuse it.
#[derive(Default)]
pub(crate) struct DeadlineFlag {
    /// The flag that the loop functions and builtins of the run poll.
    pub(crate) interrupt: AtomicBool,
    /// Whether the deadline of the run has passed, which then is the reason for the interrupt.
    expired: AtomicBool,
    in_use: AtomicBool,
}

/// The interrupt flags of a VM's runs with a time limit, one flag per concurrent run. A flag is set when the time limit
/// expires. The flags form a linked list that only grows, to the largest number of concurrent runs with a time limit. The
/// list has no lock, because a fork could copy a lock while another thread holds it.
#[derive(Default)]
pub(crate) struct DeadlineFlags {
    run: Arc<DeadlineFlag>,
    next: OnceLock<Box<DeadlineFlags>>,
}

impl DeadlineFlags {
    /// Acquires a flag that no other run uses, and clears it.
    fn acquire(&self) -> Arc<DeadlineFlag> {
        let mut list = self;
        loop {
            let run = &list.run;
            if !run.in_use.swap(true, Ordering::SeqCst) {
                run.expired.store(false, Ordering::SeqCst);
                run.interrupt.store(false, Ordering::SeqCst);
                return Arc::clone(run);
            }
            list = list.next.get_or_init(Box::default);
        }
    }

    /// Interrupts all runs of the VM that have a time limit.
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

/// The time limit of a running invocation. Dropping this value removes the deadline from the timer
/// and makes the interrupt flag ([`DeadlineFlag`]) available to later runs.
pub(crate) struct Limit {
    run: Arc<DeadlineFlag>,
    key: Key,
    time: Duration,
}

impl Limit {
    /// Sets the deadline of a run of `vm`. The caller must keep the VM alive at least as long as the limit. Returns `None` if the
    /// deadline is too far in the future for the clock.
    ///
    /// # Errors
    /// `NoTimer` if the operating system cannot create the timer thread.
    pub(crate) fn start(
        runs: &DeadlineFlags,
        vm: &Weak<Inner>,
        time: Duration,
    ) -> Result<Option<Limit>, VmError> {
        let Some(deadline) = Instant::now().checked_add(time) else { return Ok(None) };
        let run = runs.acquire();
        match TIMER.add(deadline, Entry { run: Arc::clone(&run), vm: Weak::clone(vm) }) {
            Ok(key) => Ok(Some(Limit { run, key, time })),
            Err(error) => {
                run.in_use.store(false, Ordering::SeqCst);
                Err(VmError::NoTimer(error))
            }
        }
    }

    /// Returns the interrupt flag of the run.
    pub(crate) fn interrupt(&self) -> &AtomicBool {
        &self.run.interrupt
    }

    /// Whether the deadline of the run has passed.
    pub(crate) fn has_expired(&self) -> bool {
        self.run.expired.load(Ordering::SeqCst)
    }

    /// Returns the duration of the time limit.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        TIMER.lock().entries.remove(&self.key);
        self.run.in_use.store(false, Ordering::SeqCst);
    }
}

/// The key of a run in the table of deadlines: its deadline, and a number that makes the key unique.
type Key = (Instant, u64);

/// A run with a time limit, in the table of deadlines.
struct Entry {
    run: Arc<DeadlineFlag>,
    vm: Weak<Inner>,
}

impl Entry {
    /// Interrupts the run because its deadline has passed. The caller holds the timer's lock. So the run cannot end meanwhile, its
    /// thread keeps the VM alive, and this function never drops the last reference to the VM.
    fn expire(&self) {
        self.run.expired.store(true, Ordering::SeqCst);
        self.run.interrupt.store(true, Ordering::SeqCst);
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
