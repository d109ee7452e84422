//! How long a team takes to share a loop, measured.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Team;

/// Rounds of a measurement of hot threads, and of their warming up, and the loops of each.
const ROUNDS: u32 = 200;
const HOT_LOOPS: u32 = 100;
/// Measured wake-ups.
const WAKE_UPS: usize = 200;
/// Longer than a worker spins before it parks.
const PAUSE: Duration = Duration::from_millis(2);
/// A wake-up that takes longer counts as this.
const LATE: Duration = Duration::from_millis(20);

/// The time of an empty loop that all threads of the team share while they are awake: the median of rounds of many loops. Rounds
/// in which the caller kept a loop to itself, as it does for some time after a worker lost its CPU, do not count, unless all are
/// such; then this is what such a loop takes.
pub fn fork_join(team: &Team) -> Duration {
    let (whole, others) = (2 * team.threads(), team.threads() > 1);
    let alone = AtomicBool::new(false);
    let round = || {
        alone.store(false, Ordering::Relaxed);
        let begin = Instant::now();
        for _ in 0..HOT_LOOPS {
            team.parallel_for(whole, 1, &|range| {
                if range.len() == whole && others {
                    alone.store(true, Ordering::Relaxed);
                }
            });
        }
        (alone.load(Ordering::Relaxed), begin.elapsed() / HOT_LOOPS)
    };
    let mut rounds: Vec<(bool, Duration)> = (0..2 * ROUNDS).map(|_| round()).collect();
    rounds.drain(..ROUNDS as usize);
    rounds.sort_unstable();
    // Those that count stand first.
    let shared = rounds.iter().filter(|round| !round.0).count();
    rounds[if shared > 0 { shared } else { rounds.len() } / 2].1
}

/// From the start of a loop until a parked worker runs a part of it: the median and the 99th percentile. Nothing for a
/// team without workers.
pub fn wake_up(team: &Team) -> Option<(Duration, Duration)> {
    if team.threads() == 1 {
        return None;
    }
    let mut times: Vec<Duration> = (0..WAKE_UPS).map(|_| one_wake_up(team)).collect();
    times.sort_unstable();
    Some((times[WAKE_UPS / 2], times[WAKE_UPS * 99 / 100]))
}

fn one_wake_up(team: &Team) -> Duration {
    std::thread::sleep(PAUSE);
    let caller = std::thread::current().id();
    let come = AtomicBool::new(false);
    let first = Mutex::new(LATE);
    let begin = Instant::now();
    team.parallel_for(64 * team.threads(), 1, &|_| {
        let now = begin.elapsed();
        if std::thread::current().id() != caller {
            if !come.swap(true, Ordering::Relaxed)
                && let Ok(mut first) = first.lock()
            {
                *first = now.min(LATE);
            }
            return;
        }
        // The caller holds its first part until somebody has come, as a long loop would.
        while !come.load(Ordering::Relaxed) && begin.elapsed() < LATE {
            std::hint::spin_loop();
        }
    });
    first.into_inner().unwrap_or(LATE)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_team_of_one_has_nobody_to_wake() {
        assert_eq!(wake_up(&Team::new(1)), None);
        assert!(fork_join(&Team::new(1)) < LATE);
    }
}
