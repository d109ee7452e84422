//! The team: a handle to its threads that survives `fork`, and the functions that run loops on it.

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

/// The body of [`Team::parallel_for`], called with ranges of iterations.
type LoopBody<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// A fixed set of threads that run parallel loops together with the thread that starts them.
///
/// A child of `fork` has none of the threads, so its first loop starts them again. If a loop body
/// forks, the child must not return to that loop.
pub struct Team {
    threads: usize,
    /// From `Box::into_raw`. Replaced once in each forked child, and freed only by `drop`.
    crew: AtomicPtr<Crew>,
}

impl Team {
    /// Starts a team of `threads` threads including the caller, so `threads - 1` threads are
    /// started. The number is clamped to `1..=MAX_THREADS`; see [`MAX_THREADS`].
    ///
    /// The team is smaller if the system cannot start that many threads.
    pub fn new(threads: usize) -> Team {
        let threads = threads.clamp(1, MAX_THREADS);
        Team { threads, crew: AtomicPtr::new(Box::into_raw(Box::new(Crew::new(threads - 1)))) }
    }

    /// The number of threads, including the caller.
    pub fn threads(&self) -> usize {
        self.crew().workers() + 1
    }

    fn crew(&self) -> &Crew {
        // SAFETY: the pointer comes from a box that is freed only when the team is dropped.
        let crew = unsafe { &*self.crew.load(Ordering::Acquire) };
        if crew.is_here() { crew } else { self.renew(crew) }
    }

    /// Starts the threads again in a forked child. The old crew is kept: its threads cannot be
    /// joined here, and other threads may be using it.
    #[cold]
    fn renew(&self, gone: &Crew) -> &Crew {
        let new = Box::into_raw(Box::new(Crew::new(self.threads - 1)));
        let gone = std::ptr::from_ref(gone).cast_mut();
        match self.crew.compare_exchange(gone, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `crew`.
            Ok(_) => unsafe { &*new },
            Err(others) => {
                // SAFETY: the box was created above and no other thread has seen it.
                unsafe { Box::from_raw(new) }.end();
                // SAFETY: as in `crew`.
                unsafe { &*others }
            }
        }
    }

    /// Calls `body` with disjoint ranges that cover `0..extent`, on several threads if that is
    /// faster.
    ///
    /// `grain` is the number of iterations in a unit of work that is worth distributing (about a
    /// microsecond). Loops of fewer than two grains run serially. So do nested loops, loops started
    /// while another thread uses the team, and short loops while all workers sleep or for some time
    /// after a worker was preempted.
    ///
    /// # Panics
    /// Resumes a panic of `body` after all running chunks have ended.
    pub fn parallel_for(&self, extent: usize, grain: usize, body: LoopBody<'_>) {
        type Panicked = Mutex<Option<Box<dyn Any + Send>>>;
        unsafe fn call([data, table, panicked]: Context, begin: i64, end: i64) -> i64 {
            // SAFETY: these are the halves of the reference below, and the body outlives the loop.
            let body = unsafe { transmute::<[*const (); 2], LoopBody<'_>>([data, table]) };
            let range = begin as usize..end as usize;
            match catch_unwind(AssertUnwindSafe(|| body(range))) {
                Ok(()) => 0,
                Err(panic) => {
                    // SAFETY: the mutex below, which outlives the loop.
                    let place = unsafe { &*panicked.cast::<Panicked>() };
                    let mut place = lock(place);
                    if place.is_none() {
                        *place = Some(panic);
                    } else {
                        // Dropping the panic could panic again, and nothing would catch that here.
                        std::mem::forget(panic);
                    }
                    1
                }
            }
        }
        let panicked = Panicked::new(None);
        // SAFETY: a reference to a trait object is two pointers; they are only reassembled.
        let [data, table] = unsafe { transmute::<LoopBody<'_>, [*const (); 2]>(body) };
        let extent = i64::try_from(extent).expect("an extent is at most isize::MAX");
        let grain = i64::try_from(grain).unwrap_or(i64::MAX);
        let context = [data, table, (&raw const panicked).cast()];
        // SAFETY: the body is Sync, and it and the mutex live until `launch` returns.
        unsafe { self.launch(call, context, extent, grain) };
        let panic = panicked.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs `body` over `0..extent` in chunks, and returns the first nonzero status, or 0. A
    /// negative `grain` is minus the number of grains in an iteration.
    ///
    /// # Safety
    /// `body` may be called with `context` on several threads at once until this returns, and does
    /// not unwind.
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
        // SAFETY: guaranteed by the caller.
        unsafe { self.crew().run(job, grains) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, and the team has no other user.
        let crew = unsafe { Box::from_raw(*self.crew.get_mut()) };
        if crew.is_here() {
            crew.end();
        } else {
            // Threads of the process that this one was forked from cannot be joined.
            std::mem::forget(crew);
        }
    }
}
