//! One job in stages, which begin when all pieces of the one before are done.
//!
//! Threads claim pieces, each first those of its own share, which is the same from stage to stage, so that what a piece reads
//! stays in the cache of one core. Nothing waits for a thread that has not come: pieces that nobody has claimed for a while
//! are taken by those who wait. So a single thread may run everything, and any number may come at any time.

use crossbeam_utils::CachePadded;

use crate::slot::chunk_range;
use crate::sync::{AtomicBool, AtomicUsize, Ordering, pause, yield_now};

/// Pieces of a stage at most. The model checker runs every order of what threads do to each of them.
pub const MOST_PIECES: usize = if cfg!(loom) { 2 } else { 128 };
/// Turns of a waiting thread that take about a microsecond.
const SPINS: usize = 40;
/// Turns between two yields of the CPU: the thread that holds the last piece may be queued on it.
const SPINS_PER_YIELD: usize = if cfg!(loom) { 1 } else { 2000 };

/// A job, which the threads that share it enter by [`Stages::take_part`].
pub struct Stages<'a, F, S> {
    stages: usize,
    counts: &'a [usize],
    piece: &'a F,
    stop: &'a S,
    /// Turns after which pieces of others are taken.
    patience: usize,
    /// For each piece how many stages have had it claimed.
    claims: [CachePadded<AtomicUsize>; MOST_PIECES],
    /// Pieces done, of all stages.
    done: CachePadded<AtomicUsize>,
    /// Threads that have come.
    arrived: CachePadded<AtomicUsize>,
    stopped: AtomicBool,
}

impl<'a, F: Fn(usize, usize), S: Fn() -> bool> Stages<'a, F, S> {
    /// A job that calls `piece` with each stage below `rounds * counts.len()` and each number below the count of that stage,
    /// which are given for one round. A piece takes about `micros` microseconds, and does not unwind. The job ends early
    /// where `stop` says so.
    ///
    /// # Panics
    /// If a count is above [`MOST_PIECES`], or if all pieces cannot be counted.
    pub fn new(
        rounds: usize,
        counts: &'a [usize],
        micros: f64,
        piece: &'a F,
        stop: &'a S,
    ) -> Stages<'a, F, S> {
        assert!(counts.iter().all(|&n| n <= MOST_PIECES), "a stage has too many pieces");
        let all = counts.iter().sum::<usize>().checked_mul(rounds);
        let stages = rounds.checked_mul(counts.len());
        let (Some(_), Some(stages)) = (all, stages) else { panic!("too many stages") };
        let zero = || CachePadded::new(AtomicUsize::new(0));
        Stages {
            stages,
            counts,
            piece,
            stop,
            patience: ((micros * 2.0) as usize).saturating_add(1).saturating_mul(SPINS),
            claims: std::array::from_fn(|_| zero()),
            done: zero(),
            arrived: zero(),
            stopped: AtomicBool::new(false),
        }
    }

    /// How many pieces a stage has.
    fn count(&self, stage: usize) -> usize {
        self.counts[stage % self.counts.len()]
    }

    /// Runs a piece unless somebody has it; whether it did.
    fn claim(&self, stage: usize, piece: usize) -> bool {
        let claim = &self.claims[piece];
        let old = claim.load(Ordering::Relaxed);
        // What a piece reads was made visible by the count of the stage before.
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

    /// Runs pieces of all stages until the last is done; false where the job was stopped.
    pub fn take_part(&self) -> bool {
        let full: usize = self.counts.iter().sum();
        if self.stages == 0
            || self.done.load(Ordering::Acquire) >= full * (self.stages / self.counts.len())
        {
            return true;
        }
        let me = self.arrived.fetch_add(1, Ordering::Relaxed);
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
            let all = self.arrived.load(Ordering::Relaxed).max(me + 1);
            let own = share(count, me, all);
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

    /// Waits until so many pieces are done, and takes those that nobody has; whether all went well.
    fn wait(&self, stage: usize, target: usize) -> bool {
        let mut spins = 0usize;
        while self.done.load(Ordering::Acquire) < target {
            spins += 1;
            if spins.is_multiple_of(self.patience) {
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

/// Pieces that belong to thread `me` of `all`.
fn share(count: usize, me: usize, all: usize) -> std::ops::Range<usize> {
    // Counts are at most [`MOST_PIECES`], so that threads beyond have nothing, whatever their number.
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let range = chunk_range(number(me), number(all), count as i64);
    range.start as usize..range.end as usize
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_runs_every_piece_in_order() {
        for counts in [&[5usize][..], &[7, 2], &[1], &[3, 0, 2], &[MOST_PIECES, 1], &[0]] {
            let seen = std::sync::Mutex::new(Vec::new());
            let piece = |stage, piece| seen.lock().expect("no panic").push((stage, piece));
            assert!(Stages::new(3, counts, 1.0, &piece, &|| false).take_part());
            let want = (0..3 * counts.len())
                .flat_map(|stage| (0..counts[stage % counts.len()]).map(move |p| (stage, p)));
            assert_eq!(seen.into_inner().expect("no panic"), want.collect::<Vec<_>>());
        }
        let none = |_, _| panic!("there is no piece");
        assert!(Stages::new(0, &[3], 1.0, &none, &|| false).take_part());
        assert!(Stages::new(3, &[], 1.0, &none, &|| false).take_part());
    }

    #[test]
    fn a_job_that_is_stopped_runs_nothing_more() {
        let ran = AtomicUsize::new(0);
        let piece = |_, _| {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        let stop = || ran.load(Ordering::Relaxed) >= 4;
        assert!(!Stages::new(100, &[2], 1.0, &piece, &stop).take_part());
        assert_eq!(ran.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn counts_are_limited() {
        let none = |_, _| ();
        let result = std::panic::catch_unwind(|| {
            Stages::new(1, &[MOST_PIECES + 1], 1.0, &none, &|| false).take_part()
        });
        assert!(result.is_err());
    }
}

/// Threads that meet after each stage, under the model checker.
#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;
    use crate::sync::UnsafeCell;

    /// What pieces write and read: a cell for each piece of each of two stages.
    struct Cells([[UnsafeCell<usize>; 2]; 2]);

    // SAFETY: a piece writes its own cell, which is what the model checks.
    unsafe impl Sync for Cells {}
    // SAFETY: as above.
    unsafe impl Send for Cells {}

    impl Cells {
        fn new() -> Cells {
            Cells(std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))))
        }

        /// Adds one to what the piece has, after reading what all pieces of the stage before have.
        fn piece(&self, counts: &[usize], stage: usize, piece: usize) {
            if stage > 0 {
                for before in &self.0[stage - 1][..counts[(stage - 1) % counts.len()]] {
                    // SAFETY: the stage before is done; the checker tells if it is not.
                    assert_eq!(before.with(|cell| unsafe { *cell }), 1);
                }
            }
            // SAFETY: one thread has the piece; the checker tells if two do.
            self.0[stage][piece].with_mut(|cell| unsafe { *cell += 1 });
        }
    }

    /// Enters a job whose address this is.
    ///
    /// # Safety
    /// The job is of these types, and lives.
    unsafe fn enter<F: Fn(usize, usize), S: Fn() -> bool>(job: *const ()) -> bool {
        // SAFETY: the caller's promise.
        unsafe { (*job.cast::<Stages<'_, F, S>>()).take_part() }
    }

    /// Lets two threads enter a job, each as late as it likes; whether each saw it through. Who waits takes pieces of others at
    /// every `patience`-th turn. (Of three, two may wait while the checker never lets the third go on.)
    fn shared<F: Fn(usize, usize), S: Fn() -> bool>(
        mut job: Stages<'_, F, S>,
        patience: usize,
    ) -> [bool; 2] {
        job.patience = patience;
        let (enter, at): (unsafe fn(*const ()) -> bool, _) =
            (enter::<F, S>, (&raw const job).expose_provenance());
        let other = thread::spawn(move || {
            // SAFETY: the job is of these types, and lives until the thread is joined.
            unsafe { enter(std::ptr::with_exposed_provenance(at)) }
        });
        let ended = job.take_part();
        [ended, other.join().expect("the thread ends")]
    }

    /// Every order of the threads' steps, but for those in which one is held up by the other more than three times.
    fn check(rounds: usize, counts: &'static [usize], patience: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let cells = Cells::new();
            let piece = |stage, piece| cells.piece(counts, stage, piece);
            let job = Stages::new(rounds, counts, 0.0, &piece, &|| false);
            assert!(shared(job, patience).iter().all(|&ended| ended));
            for stage in 0..rounds * counts.len() {
                for cell in &cells.0[stage][..counts[stage % counts.len()]] {
                    // SAFETY: all threads have ended.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), 1);
                }
            }
        });
    }

    #[test]
    fn stages_meet_where_pieces_of_others_are_taken_at_once() {
        check(2, &[2], 1);
    }

    #[test]
    fn stages_meet_where_pieces_of_others_are_left_for_a_while() {
        check(2, &[2], 2);
    }

    #[test]
    fn stages_of_fewer_pieces_than_threads_meet() {
        check(1, &[2, 1], 1);
        check(1, &[1, 2], 1);
        check(2, &[1], 1);
    }

    /// A job that somebody stops ends for everybody, in whatever stage each is.
    #[test]
    fn no_thread_waits_for_a_job_that_was_stopped() {
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
