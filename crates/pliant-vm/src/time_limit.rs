//! Time limits of runs. One timer thread for the whole process, started with the first limit, stops each run at its deadline.
//!
//! A run with a limit has an interrupt flag of its own ([`LimitedRun`]), so that its deadline stops no other run. The machine
//! owns the flag, because its interrupts raise it too. A run leaves the timer before it returns its flag; hence a deadline never
//! reaches a later run.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::VmError;
use crate::machine::Inner;

/// The interrupt flag of a run with a time limit. Runs of one machine use it one after another.
#[derive(Default)]
pub(crate) struct LimitedRun {
    /// Kernels and builtins of the run poll it.
    pub(crate) interrupt: AtomicBool,
    /// Whether the deadline raised the flag.
    expired: AtomicBool,
    in_use: AtomicBool,
}

/// The flags of all runs of a machine with a time limit: a list that only grows, to the largest number of such runs at a time.
/// It has no lock, which another thread could hold at a fork.
#[derive(Default)]
pub(crate) struct LimitedRuns {
    run: Arc<LimitedRun>,
    next: OnceLock<Box<LimitedRuns>>,
}

impl LimitedRuns {
    /// A lowered flag that no other run uses.
    fn acquire(&self) -> Arc<LimitedRun> {
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

    /// Raises the flags of all runs.
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

/// The time limit of a run. Dropping it ends the limit.
pub(crate) struct Limit {
    run: Arc<LimitedRun>,
    key: Key,
    time: Duration,
}

impl Limit {
    /// Starts the clock of a run of `machine`. The caller keeps the machine alive as long as the limit. `None` for a deadline
    /// that the clock cannot represent.
    ///
    /// # Errors
    /// `NoTimer`.
    pub(crate) fn start(
        runs: &LimitedRuns,
        machine: &Weak<Inner>,
        time: Duration,
    ) -> Result<Option<Limit>, VmError> {
        let Some(deadline) = Instant::now().checked_add(time) else { return Ok(None) };
        let run = runs.acquire();
        match TIMER.add(deadline, Entry { run: Arc::clone(&run), machine: Weak::clone(machine) }) {
            Ok(key) => Ok(Some(Limit { run, key, time })),
            Err(error) => {
                run.in_use.store(false, Ordering::SeqCst);
                Err(VmError::NoTimer(error))
            }
        }
    }

    /// The flag that stops the run.
    pub(crate) fn interrupt(&self) -> &AtomicBool {
        &self.run.interrupt
    }

    /// Whether the deadline has passed.
    pub(crate) fn has_expired(&self) -> bool {
        self.run.expired.load(Ordering::SeqCst)
    }

    /// How long the run may take.
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

/// The deadline of a run, and a number that makes it unique.
type Key = (Instant, u64);

/// A run that has a deadline.
struct Entry {
    run: Arc<LimitedRun>,
    machine: Weak<Inner>,
}

impl Entry {
    /// Stops the run. The timer is locked, so the run has not ended, and its caller keeps the machine alive: the machine is not
    /// dropped here.
    fn expire(&self) {
        self.run.expired.store(true, Ordering::SeqCst);
        self.run.interrupt.store(true, Ordering::SeqCst);
        if let Some(machine) = self.machine.upgrade() {
            machine.wake_runs();
        }
    }
}

/// All deadlines.
struct Deadlines {
    entries: BTreeMap<Key, Entry>,
    next_id: u64,
    /// Whether this process has the timer thread.
    has_thread: bool,
    /// When the thread wakes up; `None` if it waits for an entry.
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
    /// Nothing else is locked by a thread that holds this lock.
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

    /// The timer thread.
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

/// A forked child does not inherit the timer thread. The forking thread holds the lock during the fork, so that the child finds it
/// free; the child's next run with a limit starts a thread again.
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

    /// Installs the fork handlers once.
    pub(super) fn prepare() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers live as long as the process; they lock, store and unlock. No thread forks while it holds the
            // lock. Failure (no memory) leaves forks unhandled.
            let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }
}

#[cfg(not(unix))]
mod forks {
    /// Other systems do not fork.
    pub(super) fn prepare() {}
}
