//! The parallel loop that a team executes: one slot per thread, and the first failure.
//!
//! Chunks are distributed evenly in advance, and each thread gets the same part of the data in
//! every loop. A thread that has finished its own chunks steals unclaimed ones of other threads
//! from the back.

use crossbeam_utils::CachePadded;

use crate::slot::{End, Job, Slot, chunk_range};
use crate::sync::{AtomicI64, Ordering};

/// The shared state through which a loop is published to the workers.
pub(crate) struct Board {
    /// The slot of the caller, then those of the workers.
    slots: Box<[CachePadded<Slot>]>,
    status: CachePadded<AtomicI64>,
}

impl Board {
    /// Creates the board for a caller and the given number of workers.
    pub(crate) fn new(workers: usize) -> Board {
        Board {
            slots: (0..=workers).map(|_| CachePadded::new(Slot::new())).collect(),
            status: CachePadded::new(AtomicI64::new(0)),
        }
    }

    /// The slot of a thread. Thread 0 is the caller.
    pub(crate) fn slot(&self, thread: usize) -> &Slot {
        &self.slots[thread]
    }

    /// Distributes the job's chunks among the first `threads` threads, and calls `wake` for each of
    /// them that sleeps.
    ///
    /// # Safety
    /// The previous job has ended, the caller is the only publisher, and `body` may be called with
    /// `context` on any thread until [`Board::is_done`]. No thread gets more than
    /// [`crate::slot::MOST_CHUNKS`] chunks.
    pub(crate) unsafe fn publish(&self, job: Job, threads: usize, wake: impl Fn(usize)) {
        // Workers read this cache line for every chunk, so it is written only if its value changes.
        if self.status() != 0 {
            self.status.store(0, Ordering::Relaxed);
        }
        // The workers' slots are published first, because workers take longer to start.
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

    /// Claims and runs chunks until none is left: first the thread's own, then unclaimed ones of
    /// others.
    pub(crate) fn work(&self, thread: usize) {
        self.empty(&self.slots[thread], End::Front);
        let (before, from) = self.slots.split_at(thread);
        for slot in from[1..].iter().chain(before) {
            self.empty(slot, End::Back);
        }
    }

    fn empty(&self, slot: &Slot, from: End) {
        while let Some((job, range)) = slot.claim(from) {
            // After a failure, the remaining chunks are claimed but not run.
            if self.status() == 0 {
                // SAFETY: the publisher promised that the body may run until the job is done.
                let status = unsafe { (job.body)(job.context, range.start, range.end) };
                if status != 0 {
                    // The first failure is the one reported.
                    let order = Ordering::Relaxed;
                    let _ = self.status.compare_exchange(0, status, order, order);
                }
            }
            slot.finish();
        }
    }

    /// Whether every chunk has run. If so, the writes of the chunks are visible to the caller.
    pub(crate) fn is_done(&self) -> bool {
        self.slots.iter().all(|slot| slot.is_done())
    }

    /// The first nonzero status; valid once the job is done.
    pub(crate) fn status(&self) -> i64 {
        self.status.load(Ordering::Relaxed)
    }
}

/// Tests of the protocol under the loom model checker, which explores all interleavings:
/// `RUSTFLAGS="--cfg loom" cargo test -p pliant-pool --release`.
#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::slot::{Body, Context};
    use crate::sync::UnsafeCell;

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

    fn wait(board: &Board) {
        while !board.is_done() {
            thread::yield_now();
        }
    }

    /// Two loops, the second published as soon as the first is done, and a worker that arrives at
    /// any time. Each thread has a slot, or both take from one slot of two chunks. Explores all
    /// interleavings with at most three preemptions.
    fn loops(shares: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let board = Arc::new(Board::new(1));
            let sums = Sums::new();
            let worker = {
                let board = Arc::clone(&board);
                let sums = Arc::clone(&sums);
                thread::spawn(move || {
                    board.work(1);
                    board.work(1);
                    drop(sums);
                })
            };
            for round in 1..=2 {
                // SAFETY: the previous job is done, and the sums outlive the worker.
                unsafe { board.publish(job(&sums, add), shares, |_| ()) };
                board.work(0);
                wait(&board);
                for cell in &sums.cells {
                    // SAFETY: the job is done.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), round);
                }
            }
            worker.join().expect("the worker ends");
        });
    }

    #[test]
    fn chunks_run_once_and_no_job_is_stale() {
        loops(2);
    }

    #[test]
    fn chunks_of_one_share_run_once() {
        loops(1);
    }

    unsafe fn fail_at_one(_: Context, begin: i64, end: i64) -> i64 {
        i64::from((begin..end).contains(&1)) * 7
    }

    #[test]
    fn a_failure_of_either_thread_is_the_status() {
        loom::model(|| {
            let board = Arc::new(Board::new(1));
            let sums = Sums::new();
            let worker = {
                let board = Arc::clone(&board);
                thread::spawn(move || board.work(1))
            };
            // SAFETY: nothing was published before.
            unsafe { board.publish(job(&sums, fail_at_one), 2, |_| ()) };
            board.work(0);
            wait(&board);
            assert_eq!(board.status(), 7);
            worker.join().expect("the worker ends");
        });
    }

    /// A worker that goes to sleep either sees the job or is seen by the publisher, so no loop
    /// misses it.
    #[test]
    fn no_sleeper_is_forgotten() {
        loom::model(|| {
            let board = Arc::new(Board::new(1));
            let sums = Sums::new();
            let worker = {
                let board = Arc::clone(&board);
                thread::spawn(move || {
                    if board.slot(1).lie_down() {
                        while board.slot(1).sleeps() {
                            thread::park();
                        }
                    }
                })
            };
            // SAFETY: nothing was published before.
            unsafe { board.publish(job(&sums, add), 2, |_| worker.thread().unpark()) };
            // A worker that parked unseen would never be joined, which the checker reports as a
            // deadlock.
            worker.join().expect("the worker ends");
            board.work(0);
        });
    }
}
