//! One parallel loop shared by a team: its description, the claim word that hands out its chunks, and the count of those
//! who sleep until there is one.

use std::ops::Range;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicI64, AtomicU64, AtomicUsize, Ordering, UnsafeCell, fence};

/// Runs iterations `begin..end`; a result other than 0 stops the loop.
pub(crate) type Body = unsafe fn(context: *const (), begin: i64, end: i64) -> i64;

/// What to run. Written by the thread that owns the team, read by those who claimed one of its chunks.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) body: Body,
    pub(crate) context: *const (),
    pub(crate) extent: i64,
    pub(crate) chunks: u32,
}

/// The board on which a job is published.
///
/// The claim word holds the unclaimed chunks as two halves, `next` (low) and `end` (high): the caller takes chunks
/// from the front, workers of odd number from the back, so that with two threads each keeps to its own half of the
/// data from loop to loop. Whoever swaps the word successfully owns a chunk of the job that is current at that
/// moment, since a job ends only when all its claimed chunks are done; so a late worker can never run a stale job.
pub(crate) struct Board {
    claim: CachePadded<AtomicU64>,
    pending: CachePadded<AtomicUsize>,
    /// Workers that are parked or about to park.
    sleepers: CachePadded<AtomicUsize>,
    status: AtomicI64,
    job: UnsafeCell<Job>,
}

// SAFETY: `job` is written only between jobs by the team's owner (no chunk is claimable then), and read only by
// holders of a chunk, after the acquiring swap that follows the owner's release store.
unsafe impl Sync for Board {}
// SAFETY: the context pointer is only handed to `body`, whose callers promise that it may run on any thread.
unsafe impl Send for Board {}

fn pack(next: u32, end: u32) -> u64 {
    u64::from(end) << 32 | u64::from(next)
}

fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

unsafe fn nothing(_: *const (), _: i64, _: i64) -> i64 {
    0
}

impl Board {
    pub(crate) fn new() -> Board {
        Board {
            claim: CachePadded::new(AtomicU64::new(0)),
            pending: CachePadded::new(AtomicUsize::new(0)),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            status: AtomicI64::new(0),
            job: UnsafeCell::new(Job {
                body: nothing,
                context: std::ptr::null(),
                extent: 0,
                chunks: 0,
            }),
        }
    }

    /// Whether a chunk can be claimed.
    pub(crate) fn has_work(&self) -> bool {
        let (next, end) = unpack(self.claim.load(Ordering::Acquire));
        next < end
    }

    /// Counts the calling worker as a sleeper; whether it may park. [`Board::get_up`] follows in either case.
    pub(crate) fn lie_down(&self) -> bool {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence of `publish`: either this worker sees the job, or the publisher sees the sleeper.
        fence(Ordering::SeqCst);
        !self.has_work()
    }

    /// Ends what [`Board::lie_down`] began.
    pub(crate) fn get_up(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Workers that are parked or about to be.
    pub(crate) fn sleepers(&self) -> usize {
        self.sleepers.load(Ordering::Relaxed)
    }

    /// Makes the job's chunks claimable; whether there are sleepers to wake.
    ///
    /// # Safety
    /// The previous job has ended, the caller is the only publisher, and `body` may be called with `context` on any
    /// thread until [`Board::is_done`].
    pub(crate) unsafe fn publish(&self, job: Job) -> bool {
        // SAFETY: no chunk is claimable or running, so no one reads the job.
        self.job.with_mut(|place| unsafe { *place = job });
        self.status.store(0, Ordering::Relaxed);
        self.pending.store(job.chunks as usize, Ordering::Relaxed);
        self.claim.store(pack(0, job.chunks), Ordering::Release);
        fence(Ordering::SeqCst);
        self.sleepers() > 0
    }

    /// Claims chunks and runs them until none is left.
    pub(crate) fn work(&self, from_back: bool) {
        let mut word = self.claim.load(Ordering::Acquire);
        loop {
            let (next, end) = unpack(word);
            if next >= end {
                return;
            }
            let (chunk, rest) = if from_back {
                (end - 1, pack(next, end - 1))
            } else {
                (next, pack(next + 1, end))
            };
            match self.claim.compare_exchange_weak(word, rest, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    self.run(chunk);
                    word = self.claim.load(Ordering::Acquire);
                }
                Err(actual) => word = actual,
            }
        }
    }

    fn run(&self, chunk: u32) {
        // SAFETY: this thread holds a claimed chunk, so the job is current and not being written.
        let job = self.job.with(|place| unsafe { *place });
        // After a failure the remaining chunks are only counted.
        if self.status.load(Ordering::Relaxed) == 0 {
            let range = chunk_range(chunk, job.chunks, job.extent);
            // SAFETY: the publisher promised that the body may run until the job is done.
            let status = unsafe { (job.body)(job.context, range.start, range.end) };
            if status != 0 {
                // The first failure is the one reported.
                let _ =
                    self.status.compare_exchange(0, status, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        self.pending.fetch_sub(1, Ordering::Release);
    }

    /// Whether every chunk has run. What the chunks wrote is visible afterwards.
    pub(crate) fn is_done(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    /// The first status other than 0; meaningful once the job is done.
    pub(crate) fn status(&self) -> i64 {
        self.status.load(Ordering::Relaxed)
    }
}

/// Iterations of chunk `index` of `chunks`: sizes differ by at most one.
pub(crate) fn chunk_range(index: u32, chunks: u32, extent: i64) -> Range<i64> {
    let (size, rest) = (extent / i64::from(chunks), extent % i64::from(chunks));
    let start = |i: i64| i * size + i.min(rest);
    start(i64::from(index))..start(i64::from(index) + 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_extent_once_and_evenly() {
        for extent in [1i64, 2, 7, 8, 9, 64, 1000, i64::MAX - 1] {
            for chunks in [1u32, 2, 3, 7, 8] {
                let mut at = 0;
                for i in 0..chunks {
                    let range = chunk_range(i, chunks, extent);
                    assert_eq!(range.start, at);
                    let size = extent / i64::from(chunks);
                    assert!((size..=size + 1).contains(&(range.end - range.start)));
                    at = range.end;
                }
                assert_eq!(at, extent);
            }
        }
    }
}

/// The protocol under the model checker, which runs every order of the threads' steps:
/// `RUSTFLAGS="--cfg loom" cargo test -p pliant-pool --release`.
#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    struct Sums {
        cells: [UnsafeCell<i64>; 2],
    }

    // SAFETY: chunks are disjoint, which is what the model checks.
    unsafe impl Sync for Sums {}
    // SAFETY: as above.
    unsafe impl Send for Sums {}

    unsafe fn add(context: *const (), begin: i64, end: i64) -> i64 {
        // SAFETY: the context is the job's.
        let sums = unsafe { &*context.cast::<Sums>() };
        for i in begin..end {
            // SAFETY: each iteration belongs to one chunk; the checker tells if two threads meet.
            sums.cells[i as usize].with_mut(|cell| unsafe { *cell += 1 });
        }
        0
    }

    fn job(sums: &Arc<Sums>, body: Body) -> Job {
        Job { body, context: Arc::as_ptr(sums).cast(), extent: 2, chunks: 2 }
    }

    fn wait(board: &Board) {
        while !board.is_done() {
            thread::yield_now();
        }
    }

    /// Two loops, the second published as soon as the first is done, and a worker that comes at any time.
    #[test]
    fn chunks_run_once_and_no_job_is_stale() {
        loom::model(|| {
            let board = Arc::new(Board::new());
            let sums = Arc::new(Sums { cells: [0, 0].map(UnsafeCell::new) });
            let worker = {
                let board = Arc::clone(&board);
                let sums = Arc::clone(&sums);
                thread::spawn(move || {
                    board.work(true);
                    board.work(true);
                    drop(sums);
                })
            };
            for round in 1..=2 {
                // SAFETY: the previous job is done, and the sums outlive the worker.
                unsafe { board.publish(job(&sums, add)) };
                board.work(false);
                wait(&board);
                for cell in &sums.cells {
                    // SAFETY: the job is done.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), round);
                }
            }
            worker.join().expect("the worker ends");
        });
    }

    unsafe fn fail_at_one(_: *const (), begin: i64, end: i64) -> i64 {
        i64::from((begin..end).contains(&1)) * 7
    }

    #[test]
    fn a_failure_of_either_thread_is_the_status() {
        loom::model(|| {
            let board = Arc::new(Board::new());
            let sums = Arc::new(Sums { cells: [0, 0].map(UnsafeCell::new) });
            let worker = {
                let board = Arc::clone(&board);
                thread::spawn(move || board.work(true))
            };
            // SAFETY: nothing was published before.
            unsafe { board.publish(job(&sums, fail_at_one)) };
            board.work(false);
            wait(&board);
            assert_eq!(board.status(), 7);
            worker.join().expect("the worker ends");
        });
    }

    /// A worker that lies down either sees the job or is seen by the publisher: it never sleeps through a loop.
    #[test]
    fn no_sleeper_is_forgotten() {
        loom::model(|| {
            let board = Arc::new(Board::new());
            let sums = Arc::new(Sums { cells: [0, 0].map(UnsafeCell::new) });
            let worker = {
                let board = Arc::clone(&board);
                thread::spawn(move || {
                    if board.lie_down() {
                        thread::park();
                    }
                    board.get_up();
                })
            };
            // SAFETY: nothing was published before.
            if unsafe { board.publish(job(&sums, add)) } {
                worker.thread().unpark();
            }
            // A worker that parked without being seen would never end, which the checker calls a deadlock.
            worker.join().expect("the worker ends");
            board.work(false);
        });
    }
}
