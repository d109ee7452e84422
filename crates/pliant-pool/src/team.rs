//! The team: a handle on its threads that outlives a fork, and the ways to run a loop on it.

use std::any::Any;
use std::mem::transmute;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::MAX_THREADS;
use crate::crew::Crew;
use crate::slot::{Body, Context, Job};
use crate::sync::lock;

/// What [`Team::parallel_for`] calls with ranges of iterations.
type LoopBody<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// A fixed set of threads that run parallel loops together with the thread that starts them.
///
/// In a child of `fork`, which has none of the threads, the first loop starts them anew. A loop that is running when its
/// own body forks must not be returned to in the child.
pub struct Team {
    threads: usize,
    /// From `Box::into_raw`; replaced once in each forked child, freed by `drop` alone.
    crew: AtomicPtr<Crew>,
}

impl Team {
    /// Starts a team of `threads` threads, the caller included (so `threads - 1` are started; 0 means 1, and more than
    /// [`MAX_THREADS`] mean so many).
    ///
    /// A system that refuses to start a thread gets a smaller team.
    pub fn new(threads: usize) -> Team {
        let threads = threads.clamp(1, MAX_THREADS);
        Team { threads, crew: AtomicPtr::new(Box::into_raw(Box::new(Crew::new(threads - 1)))) }
    }

    /// The number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.crew().workers() + 1
    }

    fn crew(&self) -> &Crew {
        // SAFETY: the pointer is a box's and is freed only when the team is dropped.
        let crew = unsafe { &*self.crew.load(Ordering::Acquire) };
        if crew.is_here() { crew } else { self.renew(crew) }
    }

    /// Starts the threads again in a forked child. The old crew stays: its threads cannot be joined here, and other
    /// threads may be looking at it.
    #[cold]
    fn renew(&self, gone: &Crew) -> &Crew {
        let new = Box::into_raw(Box::new(Crew::new(self.threads - 1)));
        let gone = std::ptr::from_ref(gone).cast_mut();
        match self.crew.compare_exchange(gone, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `crew`.
            Ok(_) => unsafe { &*new },
            Err(others) => {
                // SAFETY: the box was made above and nobody else has seen it.
                unsafe { Box::from_raw(new) }.end();
                // SAFETY: as in `crew`.
                unsafe { &*others }
            }
        }
    }

    /// Calls `body` with disjoint ranges that cover `0..extent`, on several threads where that pays.
    ///
    /// `grain` is the number of iterations worth a thread's while (about a microsecond of work). Loops of fewer than two
    /// grains run serially, as do loops within loops, loops started while another thread has the team, and short ones
    /// while all workers sleep or for some time after one was held up.
    ///
    /// # Panics
    /// Passes on the panic of `body`, after all running chunks have ended.
    pub fn parallel_for(&self, extent: usize, grain: usize, body: LoopBody<'_>) {
        type Panicked = Mutex<Option<Box<dyn Any + Send>>>;
        unsafe fn call([data, table, panicked]: Context, begin: i64, end: i64) -> i64 {
            // SAFETY: these are the halves of the reference below, to a body that outlives the loop.
            let body = unsafe { transmute::<[*const (); 2], LoopBody<'_>>([data, table]) };
            let range = begin as usize..end as usize;
            match catch_unwind(AssertUnwindSafe(|| body(range))) {
                Ok(()) => 0,
                Err(panic) => {
                    // SAFETY: the place below, which outlives the loop.
                    let place = unsafe { &*panicked.cast::<Panicked>() };
                    let mut place = lock(place);
                    if place.is_none() {
                        *place = Some(panic);
                    } else {
                        // Dropping it could panic here, where nobody catches.
                        std::mem::forget(panic);
                    }
                    1
                }
            }
        }
        let panicked = Panicked::new(None);
        // SAFETY: a reference to a trait's object is two pointers, which are only put together again.
        let [data, table] = unsafe { transmute::<LoopBody<'_>, [*const (); 2]>(body) };
        let extent = i64::try_from(extent).expect("an extent is at most isize::MAX");
        let grain = i64::try_from(grain).unwrap_or(i64::MAX);
        let context = [data, table, (&raw const panicked).cast()];
        // SAFETY: the body is Sync, and it and the place live until `launch` returns.
        unsafe { self.launch(call, context, extent, grain) };
        let panic = panicked.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs `body` over `0..extent` in chunks and returns the first status other than 0, or 0. A negative `grain` tells how
    /// many grains an iteration is.
    ///
    /// # Safety
    /// `body` may be called with `context` on several threads at once until this returns, and does not unwind.
    pub(crate) unsafe fn launch(
        &self,
        body: Body,
        context: Context,
        extent: i64,
        grain: i64,
    ) -> i64 {
        if extent <= 0 {
            return 0;
        }
        let job = Job { body, context, extent, chunks: 1 };
        let grains = match grain {
            ..0 => extent.saturating_mul(grain.saturating_neg()),
            _ => extent / grain.max(1),
        };
        // SAFETY: the caller's promise.
        unsafe { self.crew().run(job, grains) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // SAFETY: the pointer is a box's, and nobody else has the team.
        let crew = unsafe { Box::from_raw(*self.crew.get_mut()) };
        if crew.is_here() {
            crew.end();
        } else {
            // Threads of the process that this one was forked from cannot be joined.
            std::mem::forget(crew);
        }
    }
}
