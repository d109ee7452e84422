//! Keeps a waking worker off the caller's CPU.
//!
//! The kernel tends to queue a woken thread on the waker's own CPU, where it waits for a caller that spins for it:
//! milliseconds, until the load balancer acts. Excluding that one CPU from the worker's mask on the wake path alone
//! makes the wake-up take some 20 microseconds.

#[cfg(target_os = "linux")]
mod imp {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI32, Ordering};

    struct Known {
        thread: libc::pid_t,
        allowed: libc::cpu_set_t,
    }

    /// What is known about one worker's placement.
    #[derive(Default)]
    pub(crate) struct Placement {
        known: OnceLock<Known>,
        /// The CPU excluded last, plus one; 0 before the first exclusion.
        excluded: AtomicI32,
    }

    impl Placement {
        /// Called by the worker when it starts.
        pub(crate) fn register(&self) {
            // SAFETY: cpu_set_t is plain bits, for which all zeros is the empty set.
            let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is writable and its size is passed.
            let got = unsafe {
                libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed)
            };
            if got == 0 {
                // SAFETY: takes no arguments and cannot fail.
                let thread = unsafe { libc::gettid() };
                let _ = self.known.set(Known { thread, allowed });
            }
        }

        /// Called by the thread that is about to wake the worker.
        pub(crate) fn avoid_this_cpu(&self) {
            // SAFETY: takes no arguments; a negative result means unknown.
            let cpu = unsafe { libc::sched_getcpu() };
            if !(0..libc::CPU_SETSIZE).contains(&cpu)
                || self.excluded.swap(cpu + 1, Ordering::Relaxed) == cpu + 1
            {
                return;
            }
            let Some(known) = self.known.get() else { return };
            let mut mask = known.allowed;
            // SAFETY: the CPU is below CPU_SETSIZE.
            unsafe { libc::CPU_CLR(cpu as usize, &mut mask) };
            // SAFETY: reads the set only.
            if unsafe { libc::CPU_COUNT(&mask) } > 0 {
                // SAFETY: the worker outlives its team's launches; failure only loses the hint.
                let _ = unsafe {
                    libc::sched_setaffinity(known.thread, size_of_val(&mask), &raw const mask)
                };
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    /// Other systems place woken threads well enough.
    #[derive(Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub(crate) fn register(&self) {}
        pub(crate) fn avoid_this_cpu(&self) {}
    }
}

pub(crate) use imp::Placement;
