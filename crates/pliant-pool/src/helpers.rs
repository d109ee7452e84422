//! The threads that help to compile: a pool of rayon's that, unlike its global one, a forked child has anew.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::Builder;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::thread_start::start_helper;
use crate::{default_threads, fork};

/// A pool, and the generation of forks whose process has its threads.
struct Helpers {
    /// None if the system starts no thread.
    pool: Option<ThreadPool>,
    born: u32,
}

/// Calls `f` with each item and returns its results in the order of the items. Up to [`default_threads`] helpers share the
/// calls, or fewer if the system refuses to start them; if it starts none, the calling thread makes all calls.
pub fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    match &current().pool {
        Some(pool) => pool.install(|| items.into_par_iter().map(f).collect()),
        None => items.into_iter().map(f).collect(),
    }
}

/// How many threads share the calls of [`map`].
pub fn helpers() -> usize {
    current().pool.as_ref().map_or(1, ThreadPool::current_num_threads)
}

fn current() -> &'static Helpers {
    static CURRENT: AtomicPtr<Helpers> = AtomicPtr::new(std::ptr::null_mut());
    let known = CURRENT.load(Ordering::Acquire);
    // SAFETY: null, or from a box that is never freed: threads that another process has cannot be joined here.
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
            // SAFETY: the box was made above and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: as above, and not null, since somebody put it there.
            unsafe { &*others }
        }
    }
}

/// A pool of `threads` threads, or of as many as the system starts.
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
