//! Keeps a waking worker off the caller's CPU.
//!
//! Operating systems tend to queue a woken thread on the CPU of the thread that woke it. On this
//! CPU, the worker cannot run while the caller spins and waits for the worker, possibly for
//! milliseconds until the load balancer acts. Therefore the caller's CPU is removed from the
//! worker's affinity mask while the worker wakes. The worker restores its mask once it is awake or
//! before it sleeps again, unless the mask was changed in the meantime.

#[cfg(target_os = "linux")]
mod imp {
    use std::sync::{Mutex, OnceLock};

    use libc::{cpu_set_t, pid_t};

    use crate::sync_primitives::lock;

    /// The CPU affinity state of one worker.
    #[derive(Default)]
    pub(crate) struct Placement {
        thread: OnceLock<pid_t>,
        narrowed: Mutex<Option<RestrictedMask>>,
    }

    /// The affinity mask of a worker without the caller's CPU, and the original mask to be restored.
    struct RestrictedMask {
        before: cpu_set_t,
        now: cpu_set_t,
    }

    /// Returns the affinity mask of a thread. The id 0 means the calling thread. Returns `None` if the system call
    /// fails.
    fn mask(thread: pid_t) -> Option<cpu_set_t> {
        // SAFETY: cpu_set_t is plain bits, for which all zeros is the empty set.
        let mut mask: cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is writable and its size is passed.
        let got = unsafe { libc::sched_getaffinity(thread, size_of_val(&mask), &raw mut mask) };
        (got == 0).then_some(mask)
    }

    /// Sets the affinity mask of a thread. Returns whether that succeeded. A failure only reduces speed.
    fn set_mask(thread: pid_t, mask: &cpu_set_t) -> bool {
        // SAFETY: the set is readable and its size is passed. For a thread that has ended, the call
        // fails.
        unsafe { libc::sched_setaffinity(thread, size_of_val(mask), mask) == 0 }
    }

    impl Placement {
        /// Records the thread id of the calling thread. A worker calls this when it starts.
        pub(crate) fn register(&self) {
            // SAFETY: takes no arguments and cannot fail.
            let _ = self.thread.set(unsafe { libc::gettid() });
        }

        /// Removes the CPU of the calling thread, which is about to wake the worker, from the worker's affinity mask.
        pub(crate) fn avoid_this_cpu(&self) {
            // SAFETY: takes no arguments; a negative result means unknown.
            let cpu = unsafe { libc::sched_getcpu() };
            let mut narrowed = lock(&self.narrowed);
            let (Some(&thread), Ok(cpu), None) =
                (self.thread.get(), usize::try_from(cpu), &*narrowed)
            else {
                return;
            };
            let Some(before) = mask(thread).filter(|_| cpu < libc::CPU_SETSIZE as usize) else {
                return;
            };
            let mut now = before;
            // SAFETY: the CPU is below CPU_SETSIZE.
            unsafe { libc::CPU_CLR(cpu, &mut now) };
            // SAFETY: reads the sets only.
            let useful = unsafe { libc::CPU_COUNT(&now) > 0 && !libc::CPU_EQUAL(&now, &before) };
            if useful && set_mask(thread, &now) {
                *narrowed = Some(RestrictedMask { before, now });
            }
        }

        /// Restores the worker's original mask. The worker calls this when it wakes and before it sleeps.
        pub(crate) fn restore_mask(&self) {
            let narrowed = lock(&self.narrowed).take();
            if let Some(RestrictedMask { before, now }) = narrowed
                // SAFETY: reads the sets only.
                && mask(0).is_some_and(|mask| unsafe { libc::CPU_EQUAL(&mask, &now) })
            {
                set_mask(0, &before);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    /// The CPU affinity state on operating systems other than Linux: nothing, because the scheduler
    /// alone places threads.
    #[derive(Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub(crate) fn register(&self) {}
        pub(crate) fn avoid_this_cpu(&self) {}
        pub(crate) fn restore_mask(&self) {}
    }
}

pub(crate) use imp::Placement;
