//! The integration tests of `pliant-pool`. They are one binary, which links faster than one binary per file.
#![cfg(not(loom))]

mod data_races;
mod idle_workers;
mod process_fork;
mod worker_team;

use std::sync::{Mutex, MutexGuard, TryLockError};

/// Locks a mutex by polling, because ThreadSanitizer cannot observe how the standard library waits
/// for a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(poisoned) => panic!("{poisoned}"),
        }
    }
}

/// Runs `work` on four threads, with the numbers 0 to 3 as arguments, and joins the threads. The
/// explicit joins are needed because ThreadSanitizer cannot observe the standard library's
/// synchronization at the end of a scope.
fn on_four_threads(work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || work(n))).collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}
