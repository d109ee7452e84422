//! Tests of the team from outside.
#![cfg(not(loom))]

mod fork;
mod idle;
mod race;
mod team;

use std::sync::{Mutex, MutexGuard, TryLockError};

/// Takes a lock as ThreadSanitizer can follow it, which does not see into the standard library's wait for one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(poisoned) => panic!("{poisoned}"),
        }
    }
}

/// Runs `work` with the numbers 0 to 3 on threads of their own, and joins each: the end of a scope alone is ordered within
/// the standard library.
fn on_four_threads(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || work(n))).collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}
