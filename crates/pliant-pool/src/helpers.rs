//! Threads that parallelise compilation: a rayon pool that, unlike rayon's global one, is recreated
//! in a forked child.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::Builder;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::thread_start::start_helper;
use crate::{default_threads, fork};

/// A pool, and the fork generation of the process that has its threads.
struct Helpers {
    /// `None` if the system cannot start a thread.
    pool: Option<ThreadPool>,
    born: u32,
}

/// Calls `f` on every item, and returns the results in the order of the items. Up to
/// [`default_threads`] helper threads share the calls, fewer if the system cannot start them. If it
/// starts none, the calling thread makes all calls.
pub fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    match &current().pool {
        Some(pool) => pool.install(|| items.into_par_iter().map(f).collect()),
        None => items.into_iter().map(f).collect(),
    }
}

/// The number of threads that share the calls of [`map`].
pub fn helpers() -> usize {
    current().pool.as_ref().map_or(1, ThreadPool::current_num_threads)
}

fn current() -> &'static Helpers {
    static CURRENT: AtomicPtr<Helpers> = AtomicPtr::new(std::ptr::null_mut());
    let known = CURRENT.load(Ordering::Acquire);
    // SAFETY: null, or from a box that is never freed. Threads of another process cannot be joined
    // here.
    if let Some(helpers) = unsafe { known.as_ref() }
        && helpers.born == fork::generation()
    {
        return helpers;
    }
    fork::watch();
    let new = Box::new(Helpers { pool: start(default_threads()), born: fork::generation() });
    let new = Box::into_raw(new);
    match CURRENT.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above.
        Ok(_) => unsafe { &*new },
        Err(others) => {
            // SAFETY: the box was created above and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: as above. The pointer is not null, because another thread stored it.
            unsafe { &*others }
        }
    }
}

/// Creates a pool of `threads` threads, or of as many as the system can start.
fn start(mut threads: usize) -> Option<ThreadPool> {
    while threads > 0 {
        let started = AtomicUsize::new(0);
        let spawn = |thread: rayon::ThreadBuilder| -> io::Result<()> {
            let builder = Builder::new().name(format!("pliant-compile-{}", thread.index() + 1));
            start_helper(builder, || thread.run())?;
            started.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let pool = ThreadPoolBuilder::new().num_threads(threads).spawn_handler(spawn).build();
        if let Ok(pool) = pool {
            return Some(pool);
        }
        threads = started.into_inner().min(threads - 1);
    }
    None
}
