//! Tests loops that pass non-atomic memory between threads. `make race` checks these tests for data
//! races with ThreadSanitizer.

use std::cell::UnsafeCell;

use crate::on_four_threads;
use pliant_pool::Team;

/// Numbers to which several threads write. No two threads write the same number in one loop.
struct SharedNumbers(Vec<UnsafeCell<u64>>);

// SAFETY: the loops below write disjoint numbers and read only those of a loop that has ended.
unsafe impl Sync for SharedNumbers {}

impl SharedNumbers {
    fn zeros(count: usize) -> SharedNumbers {
        SharedNumbers((0..count).map(|_| UnsafeCell::new(0)).collect())
    }

    fn get(&self, at: usize) -> u64 {
        // SAFETY: the loop that wrote this number has ended, so no thread writes it now.
        unsafe { *self.0[at].get() }
    }

    fn set(&self, at: usize, value: u64) {
        // SAFETY: the loop's ranges are disjoint, so only the caller accesses this number.
        unsafe { *self.0[at].get() = value }
    }
}

/// Runs `rounds` loops. Each loop reads the numbers that the previous loop wrote, in reverse order,
/// so that threads read data of other threads.
fn hand_over(team: &Team, count: usize, rounds: u64) {
    let (mut from, mut to) = (SharedNumbers::zeros(count), SharedNumbers::zeros(count));
    for round in 0..rounds {
        team.parallel_for(count, 1, &|range| {
            for at in range {
                to.set(at, from.get(count - 1 - at) + at as u64 % 3);
            }
        });
        std::mem::swap(&mut from, &mut to);
        // The caller writes between the loops, too.
        from.set(round as usize % count, from.get(round as usize % count));
    }
    let each = |at: usize| {
        let (mut at, mut sum) = (at, 0);
        for _ in 0..rounds {
            sum += at as u64 % 3;
            at = count - 1 - at;
        }
        sum
    };
    assert!((0..count).all(|at| from.get(at) == each(at)));
}

#[test]
fn a_loop_reads_what_the_previous_loop_wrote() {
    for threads in [1, 2, 3, 5] {
        let team = Team::new(threads);
        for count in [1, 2, 7, 64] {
            hand_over(&team, count, 300);
        }
    }
}

#[test]
fn concurrent_callers_of_one_team_read_their_own_writes() {
    let team = Team::new(3);
    on_four_threads(|caller| hand_over(&team, 16 + caller, 500));
}

#[test]
fn woken_workers_see_earlier_writes() {
    let team = Team::new(3);
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        hand_over(&team, 31, 3);
    }
}
