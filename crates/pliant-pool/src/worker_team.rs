//! [`Team`]: a handle to worker threads that survives `fork`, and the functions that run loops on them. `worker_threads.rs` decides
//! whether a loop runs in parallel.

use std::any::Any;
use std::mem::transmute;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::MAX_THREADS;
use crate::chunk_claiming::{Body, Context, Job};
use crate::sync_primitives::lock;
use crate::worker_threads::Workers;

/// The body of [`Team::parallel_for`], called with ranges of iterations.
type LoopBody<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// A fixed set of threads that run parallel loops together with the calling thread.
///
/// A child of `fork` does not inherit the threads, so its first loop starts them again. If a loop body forks, the child must not
/// return to that loop.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use pliant_pool::Team;
///
/// let team = Team::new(2);
/// let sum = AtomicUsize::new(0);
/// // With a grain of 100 iterations, loops of fewer than 200 iterations run serially.
/// team.parallel_for(1000, 100, &|range| {
///     sum.fetch_add(range.sum::<usize>(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub struct Team {
    threads: usize,
    /// The worker threads, a pointer from `Box::into_raw`. The pointer is replaced once in each
    /// forked child, and the object is freed only by `drop`.
    workers: AtomicPtr<Workers>,
}

impl Team {
    /// Starts a team of `threads` threads including the caller, that is, `threads - 1` workers. The count is clamped to
    /// `1..=`[`MAX_THREADS`]. If the operating system cannot start that many threads, the team is smaller.
    pub fn new(threads: usize) -> Team {
        let threads = threads.clamp(1, MAX_THREADS);
        Team {
            threads,
            workers: AtomicPtr::new(Box::into_raw(Box::new(Workers::new(threads - 1)))),
        }
    }

    /// Returns the number of threads of the team, including the caller.
    pub fn threads(&self) -> usize {
        self.workers().count() + 1
    }

    fn workers(&self) -> &Workers {
        // SAFETY: the pointer comes from a box that is freed only when the team is dropped.
        let workers = unsafe { &*self.workers.load(Ordering::Acquire) };
        if workers.in_this_process() { workers } else { self.restart_after_fork(workers) }
    }

    /// Starts the threads again in a forked child. The old `Workers` object is leaked, because its threads cannot be joined in the
    /// child and other threads may still use the object.
    #[cold]
    fn restart_after_fork(&self, stale: &Workers) -> &Workers {
        let new = Box::into_raw(Box::new(Workers::new(self.threads - 1)));
        let stale = std::ptr::from_ref(stale).cast_mut();
        match self.workers.compare_exchange(stale, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as in `workers`.
            Ok(_) => unsafe { &*new },
            Err(existing) => {
                // SAFETY: the box was created above and no other thread has seen it.
                unsafe { Box::from_raw(new) }.shut_down();
                // SAFETY: as in `workers`.
                unsafe { &*existing }
            }
        }
    }

    /// Calls `body` with disjoint ranges that cover `0..extent`, on several threads if that is faster.
    ///
    /// `grain` is the number of iterations in a unit of work that is worth distributing, about a microsecond. The loop runs
    /// serially if it has fewer than two grains, if it is nested in another loop, or if another thread uses the team. A short loop
    /// also runs serially while all workers sleep, and for some time after a worker was preempted.
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
                    let slot = unsafe { &*panicked.cast::<Panicked>() };
                    let mut slot = lock(slot);
                    if slot.is_none() {
                        *slot = Some(panic);
                    } else {
                        // Dropping the panic payload could panic again, which nothing would catch here.
                        std::mem::forget(panic);
                    }
                    1
                }
            }
        }
        let panicked = Panicked::new(None);
        // SAFETY: a reference to a trait object is two pointers; they are only reassembled.
        let [data, table] = unsafe { transmute::<LoopBody<'_>, [*const (); 2]>(body) };
        let extent = i64::try_from(extent).expect("the extent of a loop is at most isize::MAX");
        let grain = i64::try_from(grain).unwrap_or(i64::MAX);
        let context = [data, table, (&raw const panicked).cast()];
        // SAFETY: the body is Sync, and it and the mutex live until `launch` returns.
        unsafe { self.launch(call, context, extent, grain) };
        let panic = panicked.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs `body` over `0..extent` in chunks on the team. Returns 0 or the first nonzero status. `grain` is the number of
    /// iterations that take about a microsecond, in the encoding of [`crate::parallel_launch`].
    ///
    /// # Safety
    /// Until the function returns, `body` may be called with `context` on several threads at once. `body` does not
    /// unwind.
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
        unsafe { self.workers().run(job, grains) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, and the team has no other user.
        let workers = unsafe { Box::from_raw(*self.workers.get_mut()) };
        if workers.in_this_process() {
            workers.shut_down();
        } else {
            // The threads belong to the parent process and cannot be joined.
            std::mem::forget(workers);
        }
    }
}
