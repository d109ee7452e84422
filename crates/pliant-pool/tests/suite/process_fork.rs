//! Tests teams in a child of `fork`, which inherits no threads and must start them again.
#![cfg(unix)]

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::locked;
use pliant_pool::Team;

/// Whether workers of the team help the calling thread: whether, within ten seconds, more than one thread runs iterations of the
/// team's loops.
fn helps(team: &Team) -> bool {
    let seen = Mutex::new(HashSet::new());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        team.parallel_for(64, 1, &|_| {
            locked(&seen).insert(std::thread::current().id());
            std::thread::sleep(Duration::from_micros(50));
        });
        if locked(&seen).len() > 1 {
            return true;
        }
    }
    false
}

/// Runs `child` in a forked child process, and returns its result.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: after a fork of a process with several threads, Rust code in the child may find locks
    // held by threads that do not exist. The child only takes the allocator's locks, which the C
    // library resets, and exits by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: ends the process without running anything else.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = 0;
    // SAFETY: the pid is the child's and the status is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_team_works_in_a_forked_child_and_still_in_the_parent() {
    let team = Team::new(2);
    assert!(helps(&team));
    assert!(in_child(|| helps(&team) && in_child(|| helps(&team))));
    assert!(helps(&team));
}

#[test]
fn a_forked_child_can_drop_an_inherited_team() {
    let team = Team::new(2);
    let inherited = &team;
    assert!(in_child(|| {
        // SAFETY: the copy of the child is dropped, and the child ends without dropping the
        // original.
        drop(unsafe { std::ptr::read(inherited) });
        true
    }));
    assert!(helps(&team));
}
