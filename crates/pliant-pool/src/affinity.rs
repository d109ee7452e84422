//! Keeps a waking worker off the caller's CPU.
//!
//! The operating system tends to queue a woken thread on the waker's own CPU. There the worker
//! waits while the caller spins for it, for milliseconds until the load balancer acts. So the
//! caller's CPU is removed from the worker's affinity mask while the worker wakes. The worker
//! restores its mask once it is awake, or before it next sleeps, unless another mask was set in the
//! meantime.

#[cfg(target_os = "linux")]
mod imp {
    use std::sync::{Mutex, OnceLock};

    use libc::{cpu_set_t, pid_t};

    use crate::sync::lock;

    /// The affinity state of one worker.
    #[derive(Default)]
    pub(crate) struct Placement {
        thread: OnceLock<pid_t>,
        narrowed: Mutex<Option<Narrowed>>,
    }

    /// The mask of a worker that is being woken, and the mask it had before.
    struct Narrowed {
        before: cpu_set_t,
        now: cpu_set_t,
    }

    /// The affinity mask of a thread; 0 is the calling thread.
    fn mask(thread: pid_t) -> Option<cpu_set_t> {
        // SAFETY: cpu_set_t is plain bits, for which all zeros is the empty set.
        let mut mask: cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is writable and its size is passed.
        let got = unsafe { libc::sched_getaffinity(thread, size_of_val(&mask), &raw mut mask) };
        (got == 0).then_some(mask)
    }

    /// Sets the affinity mask of a thread. Returns whether that succeeded; a failure only costs
    /// speed.
    fn confine(thread: pid_t, mask: &cpu_set_t) -> bool {
        // SAFETY: the set is readable and its size is passed. For a thread that has ended, the call
        // fails.
        unsafe { libc::sched_setaffinity(thread, size_of_val(mask), mask) == 0 }
    }

    impl Placement {
        /// Called by the worker when it starts.
        pub(crate) fn register(&self) {
            // SAFETY: takes no arguments and cannot fail.
            let _ = self.thread.set(unsafe { libc::gettid() });
        }

        /// Called by the thread that is about to wake the worker.
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
            if useful && confine(thread, &now) {
                *narrowed = Some(Narrowed { before, now });
            }
        }

        /// Restores the mask. Called by the worker when it wakes and before it sleeps.
        pub(crate) fn take_back(&self) {
            let narrowed = lock(&self.narrowed).take();
            if let Some(Narrowed { before, now }) = narrowed
                // SAFETY: reads the sets only.
                && mask(0).is_some_and(|mask| unsafe { libc::CPU_EQUAL(&mask, &now) })
            {
                confine(0, &before);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    /// On other systems the scheduler's placement is used.
    #[derive(Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub(crate) fn register(&self) {}
        pub(crate) fn avoid_this_cpu(&self) {}
        pub(crate) fn take_back(&self) {}
    }
}

pub(crate) use imp::Placement;
