//! Notices that this process is a fork of the one that started a team's threads, which a fork does not inherit.

#[cfg(unix)]
mod imp {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering};

    static GENERATION: AtomicU32 = AtomicU32::new(0);

    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on, forks of this process count.
    pub(crate) fn watch() {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| {
            // SAFETY: the handler lives as long as the process and only adds to an atomic, which is allowed between
            // fork and exec. Failure (no memory) leaves forks unnoticed, as they would be without it.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }

    /// How many forks lie between the process that called [`watch`] first and this one.
    pub(crate) fn generation() -> u32 {
        GENERATION.load(Ordering::Relaxed)
    }
}

#[cfg(not(unix))]
mod imp {
    /// Other systems do not fork.
    pub(crate) fn watch() {}

    pub(crate) fn generation() -> u32 {
        0
    }
}

pub(crate) use imp::{generation, watch};
