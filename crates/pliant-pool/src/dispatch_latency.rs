//! Measures the time to distribute a parallel loop to the threads of a worker team.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::Team;

/// Number of loops that are measured on awake threads. The same number of loops runs before, as a warm-up.
const HOT_LOOPS: usize = 20_000;
/// Number of times that the wake-up of a parked (sleeping) worker is measured.
const WAKE_UPS: usize = 200;
/// The pause before each measured wake-up. The pause is longer than the time for which an idle
/// worker spins before it parks.
const PAUSE: Duration = Duration::from_millis(2);
/// The maximum wake-up time that is recorded. Longer times are recorded as this value.
const LATE: Duration = Duration::from_millis(20);

/// Measures the overhead of a loop on awake threads: the median time of many empty loops. Loops in
/// which the caller ran chunks of other threads are ignored. Returns `None` if all loops are
/// ignored, as on a busy machine.
pub fn fork_join(team: &Team) -> Option<Duration> {
    thread_local!(static HERE: u8 = const { 0 });
    let here = || HERE.with(|here| std::ptr::from_ref(here).addr());
    let (whole, caller) = (2 * team.threads(), here());
    // Written only by the caller, in a separate cache line.
    let own = CachePadded::new(AtomicUsize::new(0));
    let empty = |range: Range<usize>| {
        if here() == caller {
            own.fetch_add(range.len(), Ordering::Relaxed);
        }
    };
    let one = || {
        own.store(0, Ordering::Relaxed);
        let begin = Instant::now();
        team.parallel_for(whole, 1, &empty);
        let time = begin.elapsed();
        (own.load(Ordering::Relaxed) * team.threads() <= whole).then_some(time)
    };
    let warm = (0..2 * HOT_LOOPS).map(|_| one()).skip(HOT_LOOPS);
    let mut times: Vec<Duration> = warm.flatten().collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// Measures the time from the start of a loop until a parked worker runs a part of it. Returns the median and the 99th percentile;
/// `None` if the team has no workers.
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
    let arrived = AtomicBool::new(false);
    let first = Mutex::new(LATE);
    let begin = Instant::now();
    team.parallel_for(64 * team.threads(), 1, &|_| {
        let now = begin.elapsed();
        if std::thread::current().id() != caller {
            if !arrived.swap(true, Ordering::Relaxed)
                && let Ok(mut first) = first.lock()
            {
                *first = now.min(LATE);
            }
            return;
        }
        // The caller stays in its first chunk until a worker arrives, as in a long loop.
        while !arrived.load(Ordering::Relaxed) && begin.elapsed() < LATE {
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
    fn a_team_of_one_has_no_wake_up_time() {
        assert_eq!(wake_up(&Team::new(1)), None);
        assert!(fork_join(&Team::new(1)).is_some_and(|time| time < LATE));
    }
}
