//! The parallel loop that a team is running: the chunks of each thread, and the status of the first failure.
//!
//! Chunks are distributed evenly in advance. A thread gets the same part of the data in every loop. A thread that has finished its
//! own chunks steals unclaimed chunks of other threads from the back.

use crossbeam_utils::CachePadded;

use crate::chunk_claiming::{Job, RangeEnd, Slot, chunk_range};
use crate::sync_primitives::{AtomicI64, Ordering};

/// The state of the parallel loop that a team runs: distributes chunks of the loop to the threads,
/// and records the first failure.
pub(crate) struct JobQueue {
    /// One slot of chunks per thread: first the slot of the caller, then the slots of the workers.
    slots: Box<[CachePadded<Slot>]>,
    status: CachePadded<AtomicI64>,
}

impl JobQueue {
    /// Creates the state for a caller and `workers` workers, without a loop to run.
    pub(crate) fn new(workers: usize) -> JobQueue {
        JobQueue {
            slots: (0..=workers).map(|_| CachePadded::new(Slot::new())).collect(),
            status: CachePadded::new(AtomicI64::new(0)),
        }
    }

    /// Returns the slot (the assigned chunks) of a thread. Thread 0 is the caller.
    pub(crate) fn slot(&self, thread: usize) -> &Slot {
        &self.slots[thread]
    }

    /// Distributes the chunks of `job` among the first `threads` threads. Calls `wake` for each of
    /// these threads that is asleep.
    ///
    /// # Safety
    /// The previous job has ended, the caller is the only publisher, and `body` may be called with
    /// `context` on any thread until [`JobQueue::is_done`]. No thread gets more than
    /// [`crate::chunk_claiming::MAX_CHUNKS`] chunks.
    pub(crate) unsafe fn publish(&self, job: Job, threads: usize, wake: impl Fn(usize)) {
        // Workers read this cache line for every chunk, so it is written only if the value changes.
        if self.status() != 0 {
            self.status.store(0, Ordering::Relaxed);
        }
        // Publish to the workers first, because they take longer to start than the caller.
        for thread in (0..threads).rev() {
            let share = chunk_range(thread as u32, threads as u32, i64::from(job.chunks));
            if share.is_empty() {
                continue;
            }
            let (first, chunks) = (share.start as u32, (share.end - share.start) as u32);
            // SAFETY: the caller's promise.
            if unsafe { self.slots[thread].publish(job, first, chunks) } {
                wake(thread);
            }
        }
    }

    /// Claims and runs chunks until none is left: first the thread's own chunks, then unclaimed chunks of other threads.
    pub(crate) fn run_chunks(&self, thread: usize) {
        self.drain(&self.slots[thread], RangeEnd::Front);
        let (before, from) = self.slots.split_at(thread);
        for slot in from[1..].iter().chain(before) {
            self.drain(slot, RangeEnd::Back);
        }
    }

    fn drain(&self, slot: &Slot, from: RangeEnd) {
        while let Some((job, range)) = slot.claim(from) {
            // After a failure, the remaining chunks are claimed but not run.
            if self.status() == 0 {
                // SAFETY: the publisher promised that the body may run until the job is done.
                let status = unsafe { (job.body)(job.context, range.start, range.end) };
                if status != 0 {
                    // Only the first failure is kept.
                    let order = Ordering::Relaxed;
                    let _ = self.status.compare_exchange(0, status, order, order);
                }
            }
            slot.finish();
        }
    }

    /// Whether every chunk of the loop has run. If so, all writes of the chunks are visible to the
    /// caller.
    pub(crate) fn is_done(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_done())
    }

    /// Returns the first nonzero status that a chunk returned, or 0. Valid only after the loop has
    /// ended.
    pub(crate) fn status(&self) -> i64 {
        self.status.load(Ordering::Relaxed)
    }
}

/// Tests of the protocol for claiming chunks under the loom model checker, which explores all
/// interleavings: `RUSTFLAGS="--cfg loom" cargo test -p pliant-pool --release`.
#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::chunk_claiming::{Body, Context};
    use crate::sync_primitives::UnsafeCell;

    struct Sums {
        cells: [UnsafeCell<i64>; 2],
    }

    // SAFETY: chunks are disjoint; the model checks that.
    unsafe impl Sync for Sums {}
    // SAFETY: as above.
    unsafe impl Send for Sums {}

    impl Sums {
        fn new() -> Arc<Sums> {
            Arc::new(Sums { cells: [0, 0].map(UnsafeCell::new) })
        }
    }

    unsafe fn add([sums, ..]: Context, begin: i64, end: i64) -> i64 {
        // SAFETY: the context is the job's.
        let sums = unsafe { &*sums.cast::<Sums>() };
        for i in begin..end {
            // SAFETY: each iteration belongs to one chunk; the checker reports concurrent access.
            sums.cells[i as usize].with_mut(|cell| unsafe { *cell += 1 });
        }
        0
    }

    fn job(sums: &Arc<Sums>, body: Body) -> Job {
        let context = [Arc::as_ptr(sums).cast(), std::ptr::null(), std::ptr::null()];
        Job { body, context, extent: 2, chunks: 2 }
    }

    fn wait(queue: &JobQueue) {
        while !queue.is_done() {
            thread::yield_now();
        }
    }

    /// Runs two loops while a worker starts at an arbitrary time. The second loop is published as
    /// soon as the first is done. With two shares, each thread has its own slot. With one share,
    /// both threads claim from one slot of two chunks. Explores all interleavings with at most
    /// three preemptions.
    fn loops(shares: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let queue = Arc::new(JobQueue::new(1));
            let sums = Sums::new();
            let worker = {
                let queue = Arc::clone(&queue);
                let sums = Arc::clone(&sums);
                thread::spawn(move || {
                    queue.run_chunks(1);
                    queue.run_chunks(1);
                    drop(sums);
                })
            };
            for round in 1..=2 {
                // SAFETY: the previous job is done, and the sums outlive the worker.
                unsafe { queue.publish(job(&sums, add), shares, |_| ()) };
                queue.run_chunks(0);
                wait(&queue);
                for cell in &sums.cells {
                    // SAFETY: the job is done.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), round);
                }
            }
            worker.join().expect("the worker thread ends without a panic");
        });
    }

    #[test]
    fn each_chunk_runs_once_and_never_for_an_earlier_job() {
        loops(2);
    }

    #[test]
    fn chunks_of_a_shared_slot_run_once() {
        loops(1);
    }

    unsafe fn fail_at_one(_: Context, begin: i64, end: i64) -> i64 {
        i64::from((begin..end).contains(&1)) * 7
    }

    #[test]
    fn the_status_reports_a_failure_of_either_thread() {
        loom::model(|| {
            let queue = Arc::new(JobQueue::new(1));
            let sums = Sums::new();
            let worker = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.run_chunks(1))
            };
            // SAFETY: nothing was published before.
            unsafe { queue.publish(job(&sums, fail_at_one), 2, |_| ()) };
            queue.run_chunks(0);
            wait(&queue);
            assert_eq!(queue.status(), 7);
            worker.join().expect("the worker thread ends without a panic");
        });
    }

    /// Tests that either a worker that goes to sleep sees the job, or the publisher sees the sleeping worker and wakes it, so that
    /// no worker misses a loop.
    #[test]
    fn a_worker_that_falls_asleep_is_woken() {
        loom::model(|| {
            let queue = Arc::new(JobQueue::new(1));
            let sums = Sums::new();
            let worker = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    if queue.slot(1).try_sleep() {
                        while queue.slot(1).is_asleep() {
                            thread::park();
                        }
                    }
                })
            };
            // SAFETY: nothing was published before.
            unsafe { queue.publish(job(&sums, add), 2, |_| worker.thread().unpark()) };
            // A worker that parked without being seen would never be joined, which the checker reports as a deadlock.
            worker.join().expect("the worker thread ends without a panic");
            queue.run_chunks(0);
        });
    }
}
