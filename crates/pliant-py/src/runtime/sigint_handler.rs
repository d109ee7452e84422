//! Detects Ctrl-C from any thread.
//!
//! Python records a signal in its C handler and acts on it later, on the main thread. While the main thread is inside a long
//! kernel, it cannot act on the signal. For the duration of such a run, this module installs its own handler in front of Python's
//! handler. The new handler records the signal and calls Python's handler. The watcher then stops the kernel through the
//! interrupt flag of the VM.

#[cfg(unix)]
pub use unix::{listen, stop_listening, take_arrived};

#[cfg(not(unix))]
pub use unsupported::{listen, stop_listening, take_arrived};

#[cfg(unix)]
mod unix {
    use std::mem::{MaybeUninit, transmute};
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use libc::{SA_SIGINFO, SIG_DFL, SIG_IGN, SIGINT, c_int, c_void, sigaction, siginfo_t};

    static ARRIVED: AtomicBool = AtomicBool::new(false);
    static LISTENING: AtomicBool = AtomicBool::new(false);
    /// The address of the signal handler that was installed before this one. The handler of this module passes signals on to it.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static NEXT_TAKES_INFO: AtomicBool = AtomicBool::new(false);

    /// Records the signal and passes it on to the previous handler. Uses only atomics, because a signal may arrive
    /// at any time.
    extern "C" fn on_sigint(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        ARRIVED.store(true, Ordering::Relaxed);
        let next = NEXT.load(Ordering::Relaxed);
        if next == SIG_DFL || next == SIG_IGN {
            return;
        }
        // SAFETY: `next` is the handler that was installed for this signal, and its flags determine its type.
        unsafe {
            if NEXT_TAKES_INFO.load(Ordering::Relaxed) {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = transmute(next);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(c_int) = transmute(next);
                handler(signal);
            }
        }
    }

    /// Returns the action currently installed for Ctrl-C.
    fn installed() -> Option<sigaction> {
        let mut action = MaybeUninit::<sigaction>::uninit();
        // SAFETY: with a null new action, the call only reads the current one, which is written on success.
        unsafe {
            let status = libc::sigaction(SIGINT, ptr::null(), action.as_mut_ptr());
            (status == 0).then(|| action.assume_init())
        }
    }

    fn our_handler() -> usize {
        on_sigint as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize
    }

    /// Installs the Ctrl-C handler of this module, which passes signals on to the handler installed before. Does nothing
    /// if Ctrl-C is ignored or has the system's default action.
    pub fn listen() {
        if LISTENING.load(Ordering::Relaxed) {
            return;
        }
        let Some(mut action) = installed() else { return };
        let next = action.sa_sigaction;
        if next == SIG_DFL || next == SIG_IGN || next == our_handler() {
            return;
        }
        NEXT.store(next, Ordering::Relaxed);
        NEXT_TAKES_INFO.store(action.sa_flags & SA_SIGINFO != 0, Ordering::Relaxed);
        ARRIVED.store(false, Ordering::Relaxed);
        action.sa_sigaction = our_handler();
        action.sa_flags |= SA_SIGINFO;
        // SAFETY: the handler is async-signal-safe and lives as long as the process.
        if unsafe { libc::sigaction(SIGINT, &raw const action, ptr::null_mut()) } == 0 {
            LISTENING.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the Ctrl-C handler of this module, unless another handler has replaced it.
    pub fn stop_listening() {
        if !LISTENING.swap(false, Ordering::Relaxed) {
            return;
        }
        let Some(mut action) = installed() else { return };
        if action.sa_sigaction != our_handler() {
            return;
        }
        action.sa_sigaction = NEXT.load(Ordering::Relaxed);
        if !NEXT_TAKES_INFO.load(Ordering::Relaxed) {
            action.sa_flags &= !SA_SIGINFO;
        }
        // SAFETY: the call restores the previous action.
        unsafe { libc::sigaction(SIGINT, &raw const action, ptr::null_mut()) };
    }

    /// Returns whether Ctrl-C arrived since the last call of this function.
    pub fn take_arrived() -> bool {
        ARRIVED.swap(false, Ordering::Relaxed)
    }
}

/// Empty functions for systems other than Unix, on which a kernel runs to its end before Python handles the signal.
#[cfg(not(unix))]
mod unsupported {
    pub fn listen() {}

    pub fn stop_listening() {}

    pub fn take_arrived() -> bool {
        false
    }
}
