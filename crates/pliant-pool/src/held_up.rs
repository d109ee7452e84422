//! Records that a worker was preempted, so that small loops avoid the workers for a while.
//!
//! If threads of another runtime spin on every CPU, a worker that has a chunk can lose its CPU for
//! milliseconds, and a loop that takes microseconds waits for it. That is likely to happen again
//! until the other runtime stops spinning, typically after some ten milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A longer wait of the caller, after its own chunks are done, indicates preemption unless the loop
/// itself is long.
const WAIT: Duration = Duration::from_micros(150);
/// Loops with fewer grains (of about a microsecond each) run on the caller alone after a
/// preemption.
const SMALL: i64 = 400;
/// How long small loops run on the caller alone.
const ALONE: Duration = Duration::from_millis(30);

/// The preemption state of one team.
pub(crate) struct HeldUp {
    start: Instant,
    /// Small loops run on the caller alone until this many nanoseconds after `start`. The value 0
    /// means never, which avoids reading the clock.
    until: AtomicU64,
}

impl HeldUp {
    pub(crate) fn new() -> HeldUp {
        HeldUp { start: Instant::now(), until: AtomicU64::new(0) }
    }

    /// Whether a loop with the given number of grains should currently run without the workers.
    pub(crate) fn stays_alone(&self, grains: i64) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        if until == 0 || grains >= SMALL {
            return false;
        }
        let alone = self.now() < until;
        if !alone {
            self.until.store(0, Ordering::Relaxed);
        }
        alone
    }

    /// Records how long the caller waited for the workers at the end of a loop with `grains`
    /// grains.
    pub(crate) fn waited(&self, grains: i64, wait: Duration) {
        if grains < SMALL && wait > WAIT.max(Duration::from_micros(grains.unsigned_abs())) {
            self.until.store(self.now() + ALONE.as_nanos() as u64, Ordering::Relaxed);
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
    fn small_loops_stay_alone_after_a_long_wait_only() {
        let held_up = HeldUp::new();
        assert!(!held_up.stays_alone(10));
        held_up.waited(10, Duration::from_micros(20));
        held_up.waited(SMALL, Duration::from_millis(5));
        assert!(!held_up.stays_alone(10));
        held_up.waited(10, Duration::from_millis(5));
        assert!(held_up.stays_alone(10));
        assert!(!held_up.stays_alone(SMALL));
    }
}
