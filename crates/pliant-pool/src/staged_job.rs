//! A parallel job in stages, which are divided into pieces of work. A stage begins when all pieces of the previous stage are
//! finished.
//!
//! Each thread first claims the pieces that are assigned to it. The assignment is the same in every
//! stage, so the data of a piece stays in the cache of one core. No thread waits for a thread that
//! has not arrived: a waiting thread takes over pieces that stay unclaimed for a while. Therefore
//! one thread can run the whole job, and threads can join at any time.

use crossbeam_utils::CachePadded;

use crate::chunk_claiming::chunk_range;
use crate::sync_primitives::{AtomicBool, AtomicUsize, Ordering, pause, yield_now};

/// Maximum number of pieces of work in a stage. The limit is small under the model checker loom, which explores all
/// interleavings.
pub const MAX_PIECES: usize = if cfg!(loom) { 2 } else { 128 };
/// Approximate number of iterations of a spin loop in a microsecond.
const SPINS: usize = 40;
/// Number of spins of a waiting thread before it yields the CPU. The CPU may be needed by the
/// thread that has claimed the last piece.
const SPINS_PER_YIELD: usize = if cfg!(loom) { 1 } else { 2000 };

/// A parallel job with a barrier between its stages. Threads run it by calling [`Stages::join`].
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use pliant_pool::Stages;
///
/// // Three rounds of a stage of four pieces and a stage of two pieces.
/// let pieces = AtomicUsize::new(0);
/// let piece = |_stage: usize, _index: usize| {
///     pieces.fetch_add(1, Ordering::Relaxed);
/// };
/// assert!(Stages::new(3, &[4, 2], 1.0, &piece, &|| false).join());
/// assert_eq!(pieces.load(Ordering::Relaxed), 18);
/// ```
pub struct Stages<'a, F, S> {
    stages: usize,
    counts: &'a [usize],
    piece: &'a F,
    stop: &'a S,
    /// Number of spins after which a waiting thread takes over pieces of other threads.
    steal_after: usize,
    /// For each piece index, 1 plus the number of the last stage in which the piece was claimed; 0 if it was never claimed.
    claims: [CachePadded<AtomicUsize>; MAX_PIECES],
    /// The number of finished pieces, over all stages.
    done: CachePadded<AtomicUsize>,
    /// The number of threads that have joined the job.
    arrived: CachePadded<AtomicUsize>,
    stopped: AtomicBool,
}

impl<'a, F: Fn(usize, usize), S: Fn() -> bool> Stages<'a, F, S> {
    /// Creates a job that repeats a sequence of stages `rounds` times. Stage `i` of the sequence has `counts[i]` pieces.
    /// `piece(stage, index)` runs one piece, where `stage` counts through all repetitions. A piece takes about `micros`
    /// microseconds and must not unwind. The job ends early when `stop` returns true.
    ///
    /// # Panics
    /// A count exceeds [`MAX_PIECES`], or the total number of pieces overflows.
    pub fn new(
        rounds: usize,
        counts: &'a [usize],
        micros: f64,
        piece: &'a F,
        stop: &'a S,
    ) -> Stages<'a, F, S> {
        assert!(counts.iter().all(|&n| n <= MAX_PIECES), "a stage has too many pieces");
        let all = counts.iter().sum::<usize>().checked_mul(rounds);
        let stages = rounds.checked_mul(counts.len());
        let (Some(_), Some(stages)) = (all, stages) else {
            panic!("the number of stages or pieces of a job overflows")
        };
        let zero = || CachePadded::new(AtomicUsize::new(0));
        Stages {
            stages,
            counts,
            piece,
            stop,
            steal_after: ((micros * 2.0) as usize).saturating_add(1).saturating_mul(SPINS),
            claims: std::array::from_fn(|_| zero()),
            done: zero(),
            arrived: zero(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Returns the number of pieces of work in a stage.
    fn count(&self, stage: usize) -> usize {
        self.counts[stage % self.counts.len()]
    }

    /// Claims and runs a piece of work unless another thread has claimed it. Returns whether the calling thread ran the piece.
    fn claim(&self, stage: usize, piece: usize) -> bool {
        let claim = &self.claims[piece];
        let old = claim.load(Ordering::Relaxed);
        // The inputs of the piece are visible since this thread saw that the previous stage was finished.
        let mine = old <= stage
            && claim.compare_exchange(old, stage + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if mine {
            (self.piece)(stage, piece);
        }
        mine
    }

    fn is_stopped(&self) -> bool {
        if (self.stop)() {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Joins the job: runs pieces until the last stage is finished. Returns false if the job was stopped.
    pub fn join(&self) -> bool {
        let full: usize = self.counts.iter().sum();
        if self.stages == 0
            || self.done.load(Ordering::Acquire) >= full * (self.stages / self.counts.len())
        {
            return true;
        }
        let thread = self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut target = 0;
        for stage in 0..self.stages {
            let count = self.count(stage);
            target += count;
            if self.done.load(Ordering::Acquire) >= target {
                continue;
            }
            if self.is_stopped() {
                return false;
            }
            let all = self.arrived.load(Ordering::Relaxed).max(thread + 1);
            let own = share(count, thread, all);
            let ran = own.filter(|&piece| self.claim(stage, piece)).count();
            if ran > 0 {
                self.done.fetch_add(ran, Ordering::AcqRel);
            }
            if !self.wait(stage, target) {
                return false;
            }
        }
        true
    }

    /// Waits until `target` pieces of the job are finished, and meanwhile takes over pieces that stay unclaimed. Returns false if
    /// the job was stopped.
    fn wait(&self, stage: usize, target: usize) -> bool {
        let mut spins = 0usize;
        while self.done.load(Ordering::Acquire) < target {
            spins += 1;
            if spins.is_multiple_of(self.steal_after) {
                for piece in 0..self.count(stage) {
                    if self.claim(stage, piece) {
                        self.done.fetch_add(1, Ordering::AcqRel);
                    }
                }
            }
            if spins.is_multiple_of(SPINS_PER_YIELD) {
                if self.is_stopped() {
                    return false;
                }
                yield_now();
            }
            pause();
        }
        true
    }
}

/// Returns the range of the `count` pieces of a stage that is assigned to thread `thread` of
/// `threads` threads.
fn share(count: usize, thread: usize, threads: usize) -> std::ops::Range<usize> {
    // There are at most [`MAX_PIECES`] pieces, so threads with larger numbers get none.
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let range = chunk_range(number(thread), number(threads), count as i64);
    range.start as usize..range.end as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_runs_every_piece_in_order() {
        for counts in [&[5usize][..], &[7, 2], &[1], &[3, 0, 2], &[MAX_PIECES, 1], &[0]] {
            let seen = std::sync::Mutex::new(Vec::new());
            let piece = |stage, piece| seen.lock().expect("no panic").push((stage, piece));
            assert!(Stages::new(3, counts, 1.0, &piece, &|| false).join());
            let want = (0..3 * counts.len())
                .flat_map(|stage| (0..counts[stage % counts.len()]).map(move |p| (stage, p)));
            assert_eq!(seen.into_inner().expect("no panic"), want.collect::<Vec<_>>());
        }
        let none = |_, _| panic!("a stage without pieces must not run any piece");
        assert!(Stages::new(0, &[3], 1.0, &none, &|| false).join());
        assert!(Stages::new(3, &[], 1.0, &none, &|| false).join());
    }

    #[test]
    fn a_stopped_job_runs_no_further_pieces() {
        let ran = AtomicUsize::new(0);
        let piece = |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        let stop = || ran.load(Ordering::Relaxed) >= 4;
        assert!(!Stages::new(100, &[2], 1.0, &piece, &stop).join());
        assert_eq!(ran.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn too_many_pieces_panic() {
        let none = |_, _| ();
        let result = std::panic::catch_unwind(|| {
            Stages::new(1, &[MAX_PIECES + 1], 1.0, &none, &|| false).join()
        });
        assert!(result.is_err());
    }
}

/// Tests of the barrier between stages under the loom model checker.
#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;
    use crate::sync_primitives::UnsafeCell;

    /// The data of a test job: one counter per piece and stage.
    struct Cells([[UnsafeCell<usize>; 2]; 2]);

    // SAFETY: a piece writes its own cell only; the model checks that.
    unsafe impl Sync for Cells {}
    // SAFETY: as above.
    unsafe impl Send for Cells {}

    impl Cells {
        fn new() -> Cells {
            Cells(std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))))
        }

        /// Runs a piece of a test job: checks that all pieces of the previous stage have
        /// incremented their counters, then increments its own counter.
        fn piece(&self, counts: &[usize], stage: usize, piece: usize) {
            if stage > 0 {
                for before in &self.0[stage - 1][..counts[(stage - 1) % counts.len()]] {
                    // SAFETY: the previous stage is done; loom reports a violation.
                    assert_eq!(before.with(|cell| unsafe { *cell }), 1);
                }
            }
            // SAFETY: one thread has claimed the piece; loom reports a violation.
            self.0[stage][piece].with_mut(|cell| unsafe { *cell += 1 });
        }
    }

    /// Joins the job at address `job`. Returns false if the job was stopped.
    ///
    /// # Safety
    /// `job` is the address of a live job with these type parameters.
    unsafe fn enter<F: Fn(usize, usize), S: Fn() -> bool>(job: *const ()) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*job.cast::<Stages<'_, F, S>>()).join() }
    }

    /// Runs a job on two threads, which join it at arbitrary times. Returns for each thread whether it reached the end of the job.
    /// A waiting thread takes over pieces of the other thread every `steal_after` spins. (With three threads, two threads could
    /// wait while loom, the model checker, never schedules the third.)
    fn shared<F: Fn(usize, usize), S: Fn() -> bool>(
        mut job: Stages<'_, F, S>,
        steal_after: usize,
    ) -> [bool; 2] {
        job.steal_after = steal_after;
        let (enter, at): (unsafe fn(*const ()) -> bool, _) =
            (enter::<F, S>, (&raw const job).expose_provenance());
        let other = thread::spawn(move || {
            // SAFETY: the job has these type parameters and lives until the thread is joined.
            unsafe { enter(std::ptr::with_exposed_provenance(at)) }
        });
        let ended = job.join();
        [ended, other.join().expect("the other thread ends without a panic")]
    }

    /// Checks under all interleavings with at most three preemptions that every piece of the job runs once, after the previous
    /// stage.
    fn check(rounds: usize, counts: &'static [usize], steal_after: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let cells = Cells::new();
            let piece = |stage, piece| cells.piece(counts, stage, piece);
            let job = Stages::new(rounds, counts, 0.0, &piece, &|| false);
            assert!(shared(job, steal_after).iter().all(|&ended| ended));
            for stage in 0..rounds * counts.len() {
                for cell in &cells.0[stage][..counts[stage % counts.len()]] {
                    // SAFETY: all threads have ended.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), 1);
                }
            }
        });
    }

    #[test]
    fn stages_are_ordered_with_immediate_stealing() {
        check(2, &[2], 1);
    }

    #[test]
    fn stages_are_ordered_with_delayed_stealing() {
        check(2, &[2], 2);
    }

    #[test]
    fn stages_with_fewer_pieces_than_threads_are_ordered() {
        check(1, &[2, 1], 1);
        check(1, &[1, 2], 1);
        check(2, &[1], 1);
    }

    /// Tests that a stopped job ends for all threads, no matter which stage they are in.
    #[test]
    fn no_thread_waits_for_a_stopped_job() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (cells, ran) = (Cells::new(), AtomicUsize::new(0));
            let piece = |stage, piece| {
                cells.piece(&[2], stage, piece);
                ran.fetch_add(1, Ordering::Relaxed);
            };
            let stop = || ran.load(Ordering::Relaxed) >= 1;
            let ended = shared(Stages::new(2, &[2], 0.0, &piece, &stop), 1);
            assert!(ran.load(Ordering::Relaxed) == 4 || ended.contains(&false));
        });
    }
}
