//! Remembers that a worker was held up, so that small loops do not wait for it again at once.
//!
//! Where threads of another runtime spin on every CPU, a worker that holds a chunk can lose its CPU for milliseconds,
//! and a loop of microseconds waits for it. Another such wait is likely while the other runtime spins, which ends
//! after some ten milliseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A wait of the caller, its own chunks done, that is longer than this was no share of the loop's work, unless the
/// loop was long.
const WAIT: Duration = Duration::from_micros(150);
/// Loops of fewer grains than this (a grain is about a microsecond) stay with their caller after a hold-up.
const SMALL: i64 = 400;
/// How long they do.
const ALONE: Duration = Duration::from_millis(30);

/// What one team knows of its hold-ups.
pub(crate) struct HeldUp {
    start: Instant,
    /// Nanoseconds after `start` until when small loops stay alone; 0 for not at all, which spares reading the clock.
    until: AtomicU64,
}

impl HeldUp {
    pub(crate) fn new() -> HeldUp {
        HeldUp { start: Instant::now(), until: AtomicU64::new(0) }
    }

    /// Whether a loop of so many grains is better run without the workers now.
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

    /// Tells how long the caller of a loop of so many grains waited for the workers' chunks.
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
