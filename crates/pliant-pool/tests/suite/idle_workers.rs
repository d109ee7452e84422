//! Tests that idle workers use no CPU time.
#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use crate::locked;
use pliant_pool::Team;

/// Returns the CPU time that a thread of this process has used, in nanoseconds.
fn cpu_time(thread: libc::pid_t) -> u64 {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).expect("the thread lives");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number of nanoseconds")
}

#[test]
fn workers_park_soon_after_the_last_loop() {
    let team = Team::new(3);
    let threads = Mutex::new(HashSet::new());
    // SAFETY: takes no arguments and cannot fail.
    let own = || unsafe { libc::gettid() };
    while locked(&threads).len() < 3 {
        team.parallel_for(48, 1, &|_| {
            locked(&threads).insert(own());
            std::thread::sleep(Duration::from_micros(100));
        });
    }
    std::thread::sleep(Duration::from_millis(100));
    let threads = threads.into_inner().expect("no panic");
    let used = || threads.iter().filter(|&&t| t != own()).map(|&t| cpu_time(t)).sum::<u64>();
    let before = used();
    let span = Duration::from_millis(500);
    std::thread::sleep(span);
    let used = used() - before;
    assert!(u128::from(used) * 100 < span.as_nanos(), "idle workers used {used} ns in {span:?}");
}
