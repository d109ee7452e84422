//! Ctrl-C while a program runs.
//!
//! Python handles signals on its main thread only, between bytecodes, and that thread is inside the machine. So a
//! watcher thread asks each running machine, a few times a second, to call back into Python from the thread that
//! runs it; there pending signals are handled, and what a handler raises stops the run.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use pliant_vm::VirtualMachine;
use pyo3::prelude::*;

const TICK: Duration = Duration::from_millis(50);
/// Ticks without a run after which the watcher sleeps until it is woken.
const IDLE_TICKS: u32 = 40;

static WATCHED: Mutex<Vec<(VirtualMachine, Weak<Activity>)>> = Mutex::new(Vec::new());
static ASLEEP: AtomicBool = AtomicBool::new(false);
static WATCHER: OnceLock<Option<Thread>> = OnceLock::new();

thread_local! {
    /// What a signal handler raised during the run on this thread.
    static RAISED: std::cell::RefCell<Option<PyErr>> = const { std::cell::RefCell::new(None) };
}

/// How many threads run a machine now.
#[derive(Default)]
pub struct Activity(AtomicU32);

/// A run in progress.
pub struct Running<'a>(&'a Activity);

impl Activity {
    /// Lets the watcher look after a machine as long as the result lives.
    pub fn watch(vm: &VirtualMachine) -> Arc<Activity> {
        vm.set_poll(Some(Arc::new(poll)));
        let activity = Arc::new(Activity::default());
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let dead: Vec<_> = watched.extract_if(.., |(_, a)| a.strong_count() == 0).collect();
        watched.push((vm.clone(), Arc::downgrade(&activity)));
        drop(watched);
        // Machines own values of the user's, whose end may take locks.
        drop(dead);
        activity
    }

    /// Notes that a run begins.
    pub fn begin(&self) -> Running<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if ASLEEP.load(Ordering::Relaxed) || WATCHER.get().is_none() {
            wake();
        }
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
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let dead: Vec<_> = watched.extract_if(.., |(_, a)| a.strong_count() == 0).collect();
        drop(watched);
        drop(dead);
    }
}

#[cold]
fn wake() {
    ASLEEP.store(false, Ordering::Relaxed);
    let watcher = WATCHER.get_or_init(|| {
        let spawned = thread::Builder::new().name("pliant-signals".into()).spawn(watch);
        spawned.ok().map(|handle| handle.thread().clone())
    });
    if let Some(thread) = watcher {
        thread.unpark();
    }
}

fn watch() {
    let mut idle = 0;
    loop {
        thread::sleep(TICK);
        let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        let mut active = false;
        for (vm, activity) in watched.iter() {
            if activity.upgrade().is_some_and(|a| a.0.load(Ordering::Relaxed) > 0) {
                active = true;
                vm.request_poll();
            }
        }
        drop(watched);
        idle = if active { 0 } else { idle + 1 };
        if idle >= IDLE_TICKS {
            idle = 0;
            ASLEEP.store(true, Ordering::Relaxed);
            thread::park();
        }
    }
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
    poll()
}

/// What a signal handler raised during the run that was just interrupted, else `KeyboardInterrupt`.
pub fn take_raised() -> PyErr {
    let raised = RAISED.with_borrow_mut(Option::take);
    raised.unwrap_or_else(|| pyo3::exceptions::PyKeyboardInterrupt::new_err(()))
}
