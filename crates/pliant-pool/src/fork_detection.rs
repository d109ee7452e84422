//! Counts the forks of this process, because a forked child does not inherit the threads of a team and must start them
//! again.

#[cfg(unix)]
mod imp {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts counting forks: from now on, every child process of `fork` increments its counter.
    pub(crate) fn count_forks() {
        static REGISTER: Once = Once::new();
        REGISTER.call_once(|| {
            // SAFETY: the handler lives as long as the process and only increments an atomic, which
            // is allowed between fork and exec. If registration fails (out of memory), forks go
            // undetected.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }

    /// Returns the fork generation: the number of forks from the process that first called
    /// [`count_forks`] to this process.
    pub(crate) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }
}

#[cfg(not(unix))]
mod imp {
    /// Does nothing, because operating systems other than Unix have no `fork`.
    pub(crate) fn count_forks() {}

    pub(crate) fn generation() -> u32 {
        0
    }
}

pub(crate) use imp::{count_forks, generation};
