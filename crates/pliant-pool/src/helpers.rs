//! The threads that help to compile: a pool of rayon's that, unlike its global one, a forked child has anew.

use std::sync::atomic::{AtomicPtr, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{default_threads, fork};

/// A pool, and the generation of forks whose process has its threads.
struct Helpers {
    pool: Option<ThreadPool>,
    born: u32,
}

/// Runs `work` where rayon's parallel iterators are shared with helpers, as many as [`default_threads`]. Where the system
/// refuses to start them, rayon's own pool takes their place.
pub fn with_helpers<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match &current().pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
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
    let build = ThreadPoolBuilder::new()
        .num_threads(default_threads())
        .thread_name(|index| format!("pliant-compile-{}", index + 1));
    let new = Box::new(Helpers { pool: build.build().ok(), born: fork::generation() });
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
