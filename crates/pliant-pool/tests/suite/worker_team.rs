//! Tests of worker teams: coverage of iterations, nested loops, contention, panics, statuses,
//! parking and shutdown.

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crate::{locked, on_four_threads};
use pliant_pool::{Team, global, parallel_launch};

fn check_cover(team: &Team, extent: usize, grain: usize) {
    let seen: Vec<AtomicU32> = (0..extent).map(|_| AtomicU32::new(0)).collect();
    team.parallel_for(extent, grain, &|range| {
        for i in range {
            seen[i].fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{extent} {grain}");
}

#[test]
fn every_iteration_runs_once() {
    for threads in [1, 2, 3, 5] {
        let team = Team::new(threads);
        assert_eq!(team.threads(), threads);
        for extent in [0, 1, 2, 3, 7, 8, 31, 64, 1000] {
            for grain in [0, 1, 3, 2000] {
                check_cover(&team, extent, grain);
            }
        }
    }
}

#[test]
fn loops_run_in_succession_and_after_a_pause() {
    let team = Team::new(3);
    for round in 0..20_000usize {
        let sum = AtomicUsize::new(0);
        team.parallel_for(40 + round % 7, 1, &|r| {
            sum.fetch_add(r.len(), Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 40 + round % 7);
    }
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
        check_cover(&team, 100, 1);
        check_cover(&team, 10, 1);
    }
}

#[test]
fn workers_run_chunks() {
    let team = Team::new(2);
    let ids = Mutex::new(std::collections::BTreeSet::new());
    // Chunks are long enough that the worker arrives before the caller finishes.
    for _ in 0..50 {
        team.parallel_for(64, 1, &|_| {
            std::thread::sleep(Duration::from_micros(300));
            locked(&ids).insert(format!("{:?}", std::thread::current().id()));
        });
        if locked(&ids).len() == 2 {
            return;
        }
    }
    panic!("the worker never ran a chunk");
}

#[test]
fn nested_and_concurrent_loops_complete() {
    let team = Team::new(2);
    let total = AtomicUsize::new(0);
    team.parallel_for(8, 1, &|outer| {
        for _ in outer {
            team.parallel_for(10, 1, &|inner| {
                total.fetch_add(inner.len(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(total.into_inner(), 80);
    on_four_threads(|_| {
        for _ in 0..500 {
            check_cover(&team, 33, 1);
        }
    });
}

#[test]
fn a_panic_propagates_to_the_caller_and_the_team_survives() {
    let team = Team::new(3);
    for _ in 0..20 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            team.parallel_for(100, 1, &|range| {
                if range.contains(&57) {
                    std::panic::panic_any(57usize);
                }
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref::<usize>(), Some(&57));
        check_cover(&team, 100, 1);
    }
}

unsafe extern "C" fn add_or_fail(context: *mut c_void, begin: i64, end: i64) -> i64 {
    // SAFETY: the tests pass an AtomicI64.
    let sum = unsafe { &*context.cast::<AtomicI64>() };
    sum.fetch_add(end - begin, Ordering::Relaxed);
    if begin >= 500 { 7 } else { 0 }
}

#[test]
fn compiled_bodies_return_their_status() {
    let team = Team::new(2);
    let launch = |team: *const Team, extent| {
        let sum = AtomicI64::new(0);
        let context = (&raw const sum).cast_mut().cast();
        // SAFETY: the team is null or live and the body takes the atomic.
        let status = unsafe { parallel_launch(team.cast(), add_or_fail, context, extent, 1) };
        (status, sum.into_inner())
    };
    assert_eq!(launch(&raw const team, 100), (0, 100));
    assert_eq!(launch(&raw const team, -5), (0, 0));
    assert_eq!(launch(std::ptr::null(), 100), (0, 100));
    for _ in 0..100 {
        assert_eq!(launch(&raw const team, 1000).0, 7);
        assert_eq!(launch(&raw const team, 100), (0, 100));
    }
}

#[test]
fn one_iteration_can_be_many_grains() {
    unsafe extern "C" fn count(context: *mut c_void, begin: i64, end: i64) -> i64 {
        // SAFETY: the test passes this.
        let calls = unsafe { &*context.cast::<[AtomicI64; 2]>() };
        calls[0].fetch_add(1, Ordering::Relaxed);
        calls[1].fetch_add(end - begin, Ordering::Relaxed);
        0
    }
    let team = Team::new(2);
    // Extent, grains per iteration, and the expected number of calls.
    for (extent, worth, calls) in
        [(1, 1000, 1), (2, 1000, 2), (3, 1000, 3), (100, 1000, 8), (3, 1, 2), (7, i64::MAX, 7)]
    {
        let seen = [AtomicI64::new(0), AtomicI64::new(0)];
        let context = (&raw const seen).cast_mut().cast();
        let team = (&raw const team).cast();
        std::thread::sleep(Duration::from_micros(10));
        // SAFETY: the team is live and the body takes the numbers.
        let status = unsafe { parallel_launch(team, count, context, extent, -worth) };
        assert_eq!(status, 0);
        let [ran, covered] = seen.map(AtomicI64::into_inner);
        assert_eq!(covered, extent);
        assert!(ran <= calls, "{extent} {worth}: {ran}");
        assert!(worth < 1000 || ran == calls || ran == 1, "{extent} {worth}: {ran}");
    }
}

#[test]
fn there_is_one_global_team() {
    assert!(std::ptr::eq(global(), global()));
    check_cover(global(), 1000, 1);
}
