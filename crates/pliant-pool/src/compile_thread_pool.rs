//! Threads for parallel compilation: a rayon pool. Unlike rayon's global pool, this pool is started
//! again in a forked child process.

use std::io;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::Builder;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::thread_spawning::start_helper;
use crate::{default_threads, fork_detection};

/// A thread pool, and the number of forks (generation) of the process that started its threads.
struct CompilePool {
    /// The thread pool; `None` if the operating system cannot start a thread.
    pool: Option<ThreadPool>,
    fork_generation: u32,
}

/// Calls `f` on every item and returns the results in the order of the items. Distributes the calls
/// over up to [`default_threads`] threads. If the operating system cannot start any thread, the
/// calling thread makes all calls.
pub fn parallel_map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    match &current().pool {
        Some(pool) => pool.install(|| items.into_par_iter().map(f).collect()),
        None => items.into_iter().map(f).collect(),
    }
}

/// Returns the maximum number of threads that [`parallel_map`] uses.
pub fn compile_threads() -> usize {
    current().pool.as_ref().map_or(1, ThreadPool::current_num_threads)
}

fn current() -> &'static CompilePool {
    static CURRENT: AtomicPtr<CompilePool> = AtomicPtr::new(std::ptr::null_mut());
    let known = CURRENT.load(Ordering::Acquire);
    // SAFETY: null, or from a box that is never freed. Threads of another process cannot be joined
    // here.
    if let Some(pool) = unsafe { known.as_ref() }
        && pool.fork_generation == fork_detection::generation()
    {
        return pool;
    }
    fork_detection::count_forks();
    let new = Box::new(CompilePool {
        pool: start(default_threads()),
        fork_generation: fork_detection::generation(),
    });
    let new = Box::into_raw(new);
    match CURRENT.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above.
        Ok(_) => unsafe { &*new },
        Err(existing) => {
            // SAFETY: the box was created above and no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: as above. The pointer is not null, because another thread stored it.
            unsafe { &*existing }
        }
    }
}

/// Creates a pool of `threads` threads, or of the largest number that the operating system can
/// start; `None` if it can start none.
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
