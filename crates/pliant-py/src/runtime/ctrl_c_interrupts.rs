//! Handles Ctrl-C while a program runs.
//!
//! Python handles signals only on its main thread, between bytecodes, and during a run that thread is inside the VM. A watcher
//! thread therefore asks each running VM, a few times per second, to call back into Python on the thread that runs the VM. The
//! callback handles pending signals, and an exception of a signal handler stops the run. A VM calls back only between
//! instructions. If it stays inside a kernel for long, the watcher listens for Ctrl-C itself and stops the kernel.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use pliant_vm::VirtualMachine;
use pyo3::prelude::*;

use super::sigint_handler;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The number of consecutive polls that find no run in progress, after which the watcher thread sleeps until it is woken.
const IDLE_POLLS: u32 = 40;
/// The number of consecutive polls that find a run in progress, after which the watcher thread listens for Ctrl-C itself.
const LONG_RUN_POLLS: u32 = 3;

/// The VMs that the watcher thread monitors for Ctrl-C, each with the number of threads that run it now.
type WatchedVms = Vec<(VirtualMachine, Arc<AtomicU32>)>;

static WATCHED: Mutex<WatchedVms> = Mutex::new(Vec::new());
/// Whether the thread that watches for Ctrl-C must be woken or started.
static WATCHER_ASLEEP: AtomicBool = AtomicBool::new(true);
static WATCHER: Mutex<Option<Thread>> = Mutex::new(None);

/// The number of compilations and passes in progress.
static COMPILING: AtomicU32 = AtomicU32::new(0);
/// Whether Ctrl-C arrived during a compilation, which may be inside a kernel of constant folding.
static STOP_COMPILING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The exception that a signal handler raised during the run on this thread.
    static SIGNAL_ERROR: std::cell::RefCell<Option<PyErr>> = const { std::cell::RefCell::new(None) };
}

/// Counts the threads that currently run a VM. The thread that watches for Ctrl-C refers to the inner counter only: if it dropped
/// the last reference to a `RunCounter`, the drop would take a lock that this thread already holds.
#[derive(Default)]
pub struct RunCounter(Arc<AtomicU32>);

/// Counts a compilation or pass as in progress until this value is dropped.
pub struct CompileGuard(());

impl CompileGuard {
    /// Counts a compilation or pass as in progress, until the returned value is dropped.
    pub fn begin() -> CompileGuard {
        if COMPILING.fetch_add(1, Ordering::SeqCst) == 0 {
            STOP_COMPILING.store(false, Ordering::Relaxed);
        }
        wake();
        CompileGuard(())
    }
}

impl Drop for CompileGuard {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a thread as one that runs a VM until this value is dropped.
pub struct RunGuard<'a>(&'a RunCounter);

impl RunCounter {
    /// Makes Ctrl-C stop the runs of a VM until the returned value is dropped.
    pub fn monitor(vm: &VirtualMachine) -> Arc<RunCounter> {
        vm.set_poll(Some(Arc::new(poll)));
        let counter = Arc::new(RunCounter::default());
        fork_handlers::install();
        lock(&WATCHED).push((vm.clone(), counter.0.clone()));
        counter
    }

    /// Counts the calling thread as a thread that runs the VM, until the returned value is dropped.
    pub fn begin(&self) -> RunGuard<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        wake();
        RunGuard(self)
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for RunCounter {
    fn drop(&mut self) {
        let mut watched = lock(&WATCHED);
        let unregistered: Vec<_> =
            watched.extract_if(.., |(_, runs)| Arc::ptr_eq(runs, &self.0)).collect();
        drop(watched);
        // VMs own Python objects, whose destructors may take locks.
        drop(unregistered);
    }
}

/// Wakes the watcher thread after a counter of runs has been incremented. Before it sleeps, the watcher sets [`WATCHER_ASLEEP`]
/// and then reads the counters once more. So either the watcher sees the new count, or this function sees the flag and wakes the
/// watcher.
fn wake() {
    if WATCHER_ASLEEP.load(Ordering::SeqCst) {
        wake_sleeper();
    }
}

#[cold]
fn wake_sleeper() {
    WATCHER_ASLEEP.store(false, Ordering::SeqCst);
    let mut watcher = lock(&WATCHER);
    match &*watcher {
        Some(thread) => thread.unpark(),
        None => {
            fork_handlers::install();
            let builder = thread::Builder::new().name("pliant-signals".into());
            let started = pliant_pool::start_helper(builder, watcher_loop);
            *watcher = started.ok().map(|handle| handle.thread().clone());
            // If no thread could be started, the next run tries again.
            WATCHER_ASLEEP.store(watcher.is_none(), Ordering::SeqCst);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handlers that make forks safe. A forked child has no watcher thread, and a lock that the parent's watcher held at
/// the time of the fork would never be released. So the forking thread takes the locks before the fork and releases
/// them in both processes.
#[cfg(unix)]
mod fork_handlers {
    use std::cell::RefCell;
    use std::sync::atomic::Ordering;
    use std::sync::{MutexGuard, Once};
    use std::thread::Thread;

    use super::{
        OUTSIDE_PYTHON, WATCHED, WATCHER, WATCHER_ASLEEP, WATCHER_STATE, WatchedVms, lock,
    };

    type Locks = (MutexGuard<'static, Option<Thread>>, MutexGuard<'static, WatchedVms>);

    thread_local! {
        static LOCKS_DURING_FORK: RefCell<Option<Locks>> = const { RefCell::new(None) };
    }

    extern "C" fn before_fork() {
        LOCKS_DURING_FORK.set(Some((lock(&WATCHER), lock(&WATCHED))));
    }

    extern "C" fn in_parent() {
        LOCKS_DURING_FORK.set(None);
    }

    extern "C" fn in_child() {
        if let Some((mut watcher, _watched)) = LOCKS_DURING_FORK.take() {
            *watcher = None;
            WATCHER_ASLEEP.store(true, Ordering::SeqCst);
            WATCHER_STATE.store(OUTSIDE_PYTHON, Ordering::Release);
        }
    }

    /// Installs handlers so that later forks are safe.
    pub fn install() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handlers live as long as the process, and they only lock, unlock and store. No thread forks
            // while it holds one of these locks, because the locked regions make no calls to unknown code. If
            // registration fails for lack of memory, forks are not protected.
            let _ =
                unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        });
    }
}

#[cfg(not(unix))]
mod fork_handlers {
    /// Does nothing. Only Unix systems have forks.
    pub fn install() {}
}

fn watcher_loop() {
    let (mut idle_polls, mut busy_polls) = (0, 0);
    loop {
        thread::sleep(POLL_INTERVAL);
        (idle_polls, busy_polls) = if poll_active_runs(sigint_handler::take_arrived()) {
            (0, busy_polls + 1)
        } else {
            (idle_polls + 1, 0)
        };
        if busy_polls == LONG_RUN_POLLS && has_default_handler() {
            sigint_handler::listen();
        } else if busy_polls == 0 {
            sigint_handler::stop_listening();
        }
        if idle_polls >= IDLE_POLLS {
            idle_polls = 0;
            WATCHER_ASLEEP.store(true, Ordering::SeqCst);
            if poll_active_runs(false) {
                WATCHER_ASLEEP.store(false, Ordering::SeqCst);
            } else {
                thread::park();
            }
        }
    }
}

/// Asks all running VMs and compilations to call back into Python, or to stop if `stop` is set. Returns whether
/// anything is running.
fn poll_active_runs(stop: bool) -> bool {
    let compiling = COMPILING.load(Ordering::SeqCst) > 0;
    if compiling && stop {
        STOP_COMPILING.store(true, Ordering::Relaxed);
    }
    let mut any_active = compiling;
    for (vm, runs) in lock(&WATCHED).iter() {
        if runs.load(Ordering::SeqCst) > 0 {
            any_active = true;
            vm.request_poll();
            if stop {
                vm.interrupt();
            }
        }
    }
    any_active
}

/// State of the thread that watches for Ctrl-C: it is not calling Python.
const OUTSIDE_PYTHON: u8 = 0;
/// State of the thread that watches for Ctrl-C: it is calling Python.
const INSIDE_PYTHON: u8 = 1;
/// State of the thread that watches for Ctrl-C: Python is exiting, and the thread must not call it any more.
const EXITING: u8 = 2;
/// The state of the thread that watches for Ctrl-C: whether it is calling Python or must not call it any more. If Python finalized
/// while the thread waited for the GIL, Python would end the thread, and the unwinding would abort the process.
static WATCHER_STATE: AtomicU8 = AtomicU8::new(OUTSIDE_PYTHON);

/// Changes the state of the watcher thread from [`OUTSIDE_PYTHON`] to `state`. Returns false, without a change, if the thread is
/// in another state.
fn leave_outside(state: u8) -> bool {
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    WATCHER_STATE.compare_exchange(OUTSIDE_PYTHON, state, success, failure).is_ok()
}

/// Registers an exit handler with Python. After it has run, the thread that watches for Ctrl-C no longer calls Python.
///
/// # Errors
/// If the exit handler cannot be registered.
pub fn register_exit_handler(py: Python<'_>) -> PyResult<()> {
    let on_exit = |args: &Bound<'_, pyo3::types::PyTuple>,
                   _: Option<&Bound<'_, pyo3::types::PyDict>>| {
        args.py().detach(|| {
            while !leave_outside(EXITING) && WATCHER_STATE.load(Ordering::Acquire) != EXITING {
                thread::sleep(Duration::from_millis(1));
            }
        });
    };
    let on_exit = pyo3::types::PyCFunction::new_closure(py, None, None, on_exit)?;
    py.import("atexit")?.call_method1("register", (on_exit,))?;
    Ok(())
}

/// Whether Ctrl-C has Python's default handler, which raises `KeyboardInterrupt`. With another signal handler, the
/// run may have to continue.
fn has_default_handler() -> bool {
    if !leave_outside(INSIDE_PYTHON) {
        return false;
    }
    let is_default = |py: Python<'_>| -> PyResult<bool> {
        let signal = py.import("signal")?;
        let handler = signal.call_method1("getsignal", (signal.getattr("SIGINT")?,))?;
        Ok(handler.is(&signal.getattr("default_int_handler")?))
    };
    let answer = Python::try_attach(|py| is_default(py).unwrap_or(false)).unwrap_or(false);
    WATCHER_STATE.store(OUTSIDE_PYTHON, Ordering::Release);
    answer
}

/// Handles pending signals. Returns whether the run must stop.
fn poll() -> bool {
    let error = Python::try_attach(|py| py.check_signals().err()).flatten();
    match error {
        Some(e) => {
            SIGNAL_ERROR.with_borrow_mut(|slot| *slot = Some(e));
            true
        }
        None => false,
    }
}

/// Handles pending signals during a compilation. Returns whether the compilation must stop.
pub fn poll_signals() -> bool {
    poll() || STOP_COMPILING.load(Ordering::Relaxed)
}

/// Stores an exception of Python code that ends the run on this thread. [`take_interrupt_error`] returns it.
pub fn set_signal_error(error: PyErr) {
    SIGNAL_ERROR.with_borrow_mut(|slot| *slot = Some(error));
}

/// Takes the exception that a signal handler raised on this thread, if it has not been reported yet.
pub fn take_signal_error() -> Option<PyErr> {
    SIGNAL_ERROR.with_borrow_mut(Option::take)
}

/// Returns the exception with which a signal handler interrupted the run. If there is none, handles a pending signal now, so that
/// it does not interrupt a second time, and returns its exception, by default a `KeyboardInterrupt`.
pub fn take_interrupt_error() -> PyErr {
    let error = take_signal_error();
    let pending = || Python::try_attach(|py| py.check_signals().err()).flatten();
    error.or_else(pending).unwrap_or_else(|| pyo3::exceptions::PyKeyboardInterrupt::new_err(()))
}
