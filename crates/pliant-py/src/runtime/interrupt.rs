//! Ctrl-C while a program runs.
//!
//! Python handles signals on its main thread only, between bytecodes, and that thread is inside the machine. So a
//! watcher thread asks each running machine, a few times a second, to call back into Python from the thread that
//! runs it; there pending signals are handled, and what a handler raises stops the run. A machine calls back between
//! instructions only: for one that stays inside a kernel, the watcher listens for Ctrl-C itself and stops the kernel.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use pliant_vm::VirtualMachine;
use pyo3::prelude::*;

use super::sigint;

const TICK: Duration = Duration::from_millis(50);
/// Ticks without a run after which the watcher sleeps until it is woken.
const IDLE_TICKS: u32 = 40;
/// Ticks that machines are busy before the watcher listens for Ctrl-C itself.
const LONG_TICKS: u32 = 3;

/// The machines that the watcher looks after, and how many threads run each now.
type Watched = Vec<(VirtualMachine, Arc<AtomicU32>)>;

static WATCHED: Mutex<Watched> = Mutex::new(Vec::new());
/// Whether the watcher must be woken, or made.
static ASLEEP: AtomicBool = AtomicBool::new(true);
static WATCHER: Mutex<Option<Thread>> = Mutex::new(None);

/// How many compilations and passes run now.
static COMPILING: AtomicU32 = AtomicU32::new(0);
/// Whether Ctrl-C came while something was compiled, which may be inside a kernel that it folds.
static STOP: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What a signal handler raised during the run on this thread.
    static RAISED: std::cell::RefCell<Option<PyErr>> = const { std::cell::RefCell::new(None) };
}

/// How many threads run a machine now. The watcher shares the number and not this, so that it never is the last owner,
/// whose drop takes the lock that the watcher holds.
#[derive(Default)]
pub struct Activity(Arc<AtomicU32>);

/// A compilation or pass in progress.
pub struct Compiling(());

impl Compiling {
    /// Notes that one begins.
    pub fn begin() -> Compiling {
        if COMPILING.fetch_add(1, Ordering::SeqCst) == 0 {
            STOP.store(false, Ordering::Relaxed);
        }
        wake();
        Compiling(())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A run in progress.
pub struct Running<'a>(&'a Activity);

impl Activity {
    /// Lets the watcher look after a machine as long as the result lives.
    pub fn watch(vm: &VirtualMachine) -> Arc<Activity> {
        vm.set_poll(Some(Arc::new(poll)));
        let activity = Arc::new(Activity::default());
        forks::prepare_for();
        lock(&WATCHED).push((vm.clone(), activity.0.clone()));
        activity
    }

    /// Notes that a run begins.
    pub fn begin(&self) -> Running<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        wake();
        Running(self)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        let mut watched = lock(&WATCHED);
        let ended: Vec<_> =
            watched.extract_if(.., |(_, runs)| Arc::ptr_eq(runs, &self.0)).collect();
        drop(watched);
        // Machines own values of the user's, whose end may take locks.
        drop(ended);
    }
}

/// Wakes the watcher for what was counted before. It says that it sleeps before it looks a last time, so that one of the
/// two sees the other.
fn wake() {
    if ASLEEP.load(Ordering::SeqCst) {
        wake_sleeper();
    }
}

#[cold]
fn wake_sleeper() {
    ASLEEP.store(false, Ordering::SeqCst);
    let mut watcher = lock(&WATCHER);
    match &*watcher {
        Some(thread) => thread.unpark(),
        None => {
            forks::prepare_for();
            let builder = thread::Builder::new().name("pliant-signals".into());
            let spawned = pliant_pool::start_helper(builder, watch);
            *watcher = spawned.ok().map(|handle| handle.thread().clone());
            // Without a thread to be had, the next run tries again.
            ASLEEP.store(watcher.is_none(), Ordering::SeqCst);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A forked child has no watcher, and would wait for ever for a lock that the parent's held at that moment: the forking
/// thread takes the locks before, and gives them back on both sides.
#[cfg(unix)]
mod forks {
    use std::cell::RefCell;
    use std::sync::atomic::Ordering;
    use std::sync::{MutexGuard, Once};
    use std::thread::Thread;

    use super::{ASLEEP, WATCHED, WATCHER, Watched, lock};

    type Locks = (MutexGuard<'static, Option<Thread>>, MutexGuard<'static, Watched>);

    thread_local! {
        static HELD: RefCell<Option<Locks>> = const { RefCell::new(None) };
    }

    extern "C" fn before() {
        HELD.set(Some((lock(&WATCHER), lock(&WATCHED))));
    }

    extern "C" fn in_parent() {
        HELD.set(None);
    }

    extern "C" fn in_child() {
        if let Some((mut watcher, _watched)) = HELD.take() {
            *watcher = None;
            ASLEEP.store(true, Ordering::SeqCst);
        }
    }

    /// From now on, forks take care of the watcher.
    pub fn prepare_for() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers live as long as the process; they lock, unlock and store. No thread forks while it
            // holds one of the locks, since none calls out meanwhile. Failure (no memory) leaves forks as they were.
            let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
        });
    }
}

#[cfg(not(unix))]
mod forks {
    /// Other systems do not fork.
    pub fn prepare_for() {}
}

fn watch() {
    let (mut idle, mut busy) = (0, 0);
    loop {
        thread::sleep(TICK);
        (idle, busy) = if look(sigint::arrived()) { (0, busy + 1) } else { (idle + 1, 0) };
        if busy == LONG_TICKS && default_handler() {
            sigint::listen();
        } else if busy == 0 {
            sigint::stop_listening();
        }
        if idle >= IDLE_TICKS {
            idle = 0;
            ASLEEP.store(true, Ordering::SeqCst);
            if look(false) {
                ASLEEP.store(false, Ordering::SeqCst);
            } else {
                thread::park();
            }
        }
    }
}

/// Asks all that runs now to call back into Python, or to `stop`; whether anything runs.
fn look(stop: bool) -> bool {
    let compiling = COMPILING.load(Ordering::SeqCst) > 0;
    if compiling && stop {
        STOP.store(true, Ordering::Relaxed);
    }
    let mut active = compiling;
    for (vm, runs) in lock(&WATCHED).iter() {
        if runs.load(Ordering::SeqCst) > 0 {
            active = true;
            vm.request_poll();
            if stop {
                vm.interrupt();
            }
        }
    }
    active
}

/// Whether Ctrl-C raises `KeyboardInterrupt`: a handler of the user's may well let the run go on.
fn default_handler() -> bool {
    let is_default = |py: Python<'_>| -> PyResult<bool> {
        let signal = py.import("signal")?;
        let handler = signal.call_method1("getsignal", (signal.getattr("SIGINT")?,))?;
        Ok(handler.is(&signal.getattr("default_int_handler")?))
    };
    Python::try_attach(|py| is_default(py).unwrap_or(false)).unwrap_or(false)
}

/// Handles pending signals; whether to stop.
fn poll() -> bool {
    let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    match raised {
        Some(e) => {
            RAISED.with_borrow_mut(|slot| *slot = Some(e));
            true
        }
        None => false,
    }
}

/// Handles pending signals, for compilations; whether to stop.
pub fn poll_signals() -> bool {
    poll() || STOP.load(Ordering::Relaxed)
}

/// Notes what Python code raised that is to end the run on this thread, as [`take_raised`] takes it.
pub fn set_raised(error: PyErr) {
    RAISED.with_borrow_mut(|slot| *slot = Some(error));
}

/// What a signal handler raised on this thread and no run has given on.
pub fn raised() -> Option<PyErr> {
    RAISED.with_borrow_mut(Option::take)
}

/// What a signal handler raised during the run that was just interrupted, else
/// `KeyboardInterrupt`. A signal that is still
/// pending is handled now, so that it does not raise a second time.
pub fn take_raised() -> PyErr {
    let raised = raised();
    let pending = || Python::try_attach(|py| py.check_signals().err()).flatten();
    raised.or_else(pending).unwrap_or_else(|| pyo3::exceptions::PyKeyboardInterrupt::new_err(()))
}
