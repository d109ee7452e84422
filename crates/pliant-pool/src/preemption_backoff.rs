//! Runs small parallel loops serially for a while after the operating system has preempted a
//! worker.
//!
//! If the threads of another runtime spin on every CPU, a worker that has claimed a chunk can lose
//! its CPU for milliseconds, and a loop of a few microseconds must wait for the worker. This is
//! likely to happen again until the other runtime stops spinning, typically after about ten
//! milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The waiting time that indicates a preemption: if the caller waits longer than this for the
/// workers, and longer than the loop takes, a worker was probably preempted.
const MIN_WAIT: Duration = Duration::from_micros(150);
/// Number of grains (each about a microsecond of work) below which a loop runs serially after a preemption.
const SMALL_LOOP_GRAINS: i64 = 400;
/// The time for which small loops run serially after a preemption.
const BACKOFF: Duration = Duration::from_millis(30);

/// The backoff of a worker team: for a while after a worker was probably preempted, small loops run only on the calling thread.
pub(crate) struct PreemptionBackoff {
    start: Instant,
    /// The time until which small loops run serially, in nanoseconds after `start`. 0 means that they run in parallel; then no
    /// thread needs to read the clock.
    serial_until: AtomicU64,
}

impl PreemptionBackoff {
    pub(crate) fn new() -> PreemptionBackoff {
        PreemptionBackoff { start: Instant::now(), serial_until: AtomicU64::new(0) }
    }

    /// Whether a loop of `grains` grains (each about a microsecond of work) should run only on the
    /// calling thread.
    pub(crate) fn run_serial(&self, grains: i64) -> bool {
        let serial_until = self.serial_until.load(Ordering::Relaxed);
        if serial_until == 0 || grains >= SMALL_LOOP_GRAINS {
            return false;
        }
        let serial = self.now() < serial_until;
        if !serial {
            self.serial_until.store(0, Ordering::Relaxed);
        }
        serial
    }

    /// Records the time for which the caller waited for the workers at the end of a loop of `grains` grains (each about
    /// a microsecond of work). A long wait starts the backoff.
    pub(crate) fn record_wait(&self, grains: i64, wait: Duration) {
        if grains < SMALL_LOOP_GRAINS
            && wait > MIN_WAIT.max(Duration::from_micros(grains.unsigned_abs()))
        {
            self.serial_until.store(self.now() + BACKOFF.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_loops_run_serially_only_after_a_long_wait() {
        let backoff = PreemptionBackoff::new();
        assert!(!backoff.run_serial(10));
        backoff.record_wait(10, Duration::from_micros(20));
        backoff.record_wait(SMALL_LOOP_GRAINS, Duration::from_millis(5));
        assert!(!backoff.run_serial(10));
        backoff.record_wait(10, Duration::from_millis(5));
        assert!(backoff.run_serial(10));
        assert!(!backoff.run_serial(SMALL_LOOP_GRAINS));
    }
}
