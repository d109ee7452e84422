//! A job of the worker team in stages, which begin when all pieces of the one before are done.
//!
//! Threads claim pieces, each first those of its own share, which is the same from stage to stage, so that what a piece reads
//! stays in the cache of one core. Nothing waits for a thread that has not come: pieces that nobody has claimed for a while
//! are taken by those who wait. So a single thread may run everything, and any number may come at any time.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};

use crate::product::share::part;

/// Pieces of a stage at most.
pub const MOST: usize = 128;
/// Turns of a waiting thread that take about a microsecond.
const SPINS: usize = 40;
/// Turns between two yields of the CPU: the thread that holds the last piece may be queued on it.
const SPINS_PER_YIELD: usize = 2000;

/// A counter in a line of its own.
#[repr(align(128))]
struct Line(AtomicUsize);

impl Line {
    const fn zero() -> Line {
        Line(AtomicUsize::new(0))
    }
}

/// The state of a job.
struct Job<'a, F> {
    runtime: &'a KernelRuntime,
    stages: usize,
    counts: &'a [usize],
    piece: &'a F,
    /// Turns after which pieces of others are taken.
    patience: usize,
    /// For each piece how many stages have had it claimed.
    claims: [Line; MOST],
    /// Pieces done, of all stages.
    done: Line,
    /// Threads that have come.
    arrived: Line,
    stopped: AtomicBool,
}

impl<F: Fn(usize, usize)> Job<'_, F> {
    /// How many pieces a stage has.
    fn count(&self, stage: usize) -> usize {
        self.counts[stage % self.counts.len()]
    }

    /// Runs a piece unless somebody has it; whether it did.
    fn claim(&self, stage: usize, piece: usize) -> bool {
        let claim = &self.claims[piece].0;
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
        // SAFETY: the ABI says that the flag is never null, and that it lives.
        if unsafe { (*self.runtime.interrupt).load(Ordering::Relaxed) } {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Runs pieces of all stages until the last is done.
    fn take_part(&self) -> i64 {
        let full: usize = self.counts.iter().sum();
        let rounds = self.stages / self.counts.len();
        if self.done.0.load(Ordering::Acquire) >= full * rounds {
            return STATUS_OK;
        }
        let me = self.arrived.0.fetch_add(1, Ordering::Relaxed);
        let mut target = 0;
        for stage in 0..self.stages {
            let count = self.count(stage);
            target += count;
            if self.done.0.load(Ordering::Acquire) >= target {
                continue;
            }
            if self.is_stopped() {
                return STATUS_CANCELLED;
            }
            let all = self.arrived.0.load(Ordering::Relaxed).max(me + 1);
            let own = part(count, 1, me, all);
            let ran = own.filter(|&piece| self.claim(stage, piece)).count();
            if ran > 0 {
                self.done.0.fetch_add(ran, Ordering::AcqRel);
            }
            if !self.wait(stage, target) {
                return STATUS_CANCELLED;
            }
        }
        STATUS_OK
    }

    /// Waits until so many pieces are done, and takes those that nobody has; whether all went well.
    fn wait(&self, stage: usize, target: usize) -> bool {
        let mut spins = 0usize;
        while self.done.0.load(Ordering::Acquire) < target {
            spins += 1;
            if spins.is_multiple_of(self.patience) {
                for piece in 0..self.count(stage) {
                    if self.claim(stage, piece) {
                        self.done.0.fetch_add(1, Ordering::AcqRel);
                    }
                }
            }
            if spins.is_multiple_of(SPINS_PER_YIELD) {
                if self.is_stopped() {
                    return false;
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }
}

/// Calls `piece` with each stage below `rounds * counts.len()` and each number below the count of that stage, which are given
/// for one round; a stage begins when the one before is done. A piece takes about `micros` microseconds.
///
/// # Safety
/// The runtime's team and flag live. `piece` may be called on several threads at once, and does not unwind. Counts are at most
/// [`MOST`].
pub unsafe fn run<F: Fn(usize, usize)>(
    runtime: &KernelRuntime,
    rounds: usize,
    counts: &[usize],
    micros: f64,
    piece: &F,
) -> i64 {
    unsafe extern "C" fn enter<F: Fn(usize, usize)>(job: *mut c_void, _: i64, _: i64) -> i64 {
        // SAFETY: `run` passes its job, which outlives the loop.
        unsafe { (*job.cast::<Job<'_, F>>()).take_part() }
    }
    let widest = counts.iter().copied().max().unwrap_or(0);
    let job = Job {
        runtime,
        stages: rounds * counts.len(),
        counts,
        piece,
        patience: ((micros * 2.0) as usize).saturating_add(1).saturating_mul(SPINS),
        claims: [const { Line::zero() }; MOST],
        done: Line::zero(),
        arrived: Line::zero(),
        stopped: AtomicBool::new(false),
    };
    // Threads that meet once a stage must have work for longer than it takes them to meet.
    let alone = widest < 2 || micros * widest as f64 * 2.0 < 1.5;
    if alone {
        return job.take_part();
    }
    let all: usize = counts.iter().sum();
    let grains = (micros * all as f64 * rounds as f64).min(1e9) as i64;
    // SAFETY: the job outlives the loop; the caller's promise.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            enter::<F>,
            (&raw const job).cast_mut().cast(),
            grains.max(2),
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_pool::Team;

    fn with_team(threads: usize, check: impl Fn(&KernelRuntime)) {
        let team = Team::new(threads);
        check(&KernelRuntime {
            parallel_launch: pliant_pool::parallel_launch,
            team: (&raw const team).cast::<c_void>(),
            ..KernelRuntime::serial()
        });
    }

    #[test]
    fn stages_follow_one_another_and_every_piece_runs_once() {
        for threads in [1, 2, 3, 5] {
            with_team(threads, |runtime| {
                for counts in [&[5usize][..], &[7, 2], &[1], &[MOST, 1]] {
                    let begun: Vec<AtomicUsize> = (0..40).map(|_| AtomicUsize::new(0)).collect();
                    let ended: Vec<AtomicUsize> = (0..40).map(|_| AtomicUsize::new(0)).collect();
                    let piece = |stage: usize, _: usize| {
                        begun[stage].fetch_add(1, Ordering::SeqCst);
                        if stage > 0 {
                            let before = counts[(stage - 1) % counts.len()];
                            assert_eq!(ended[stage - 1].load(Ordering::SeqCst), before);
                        }
                        ended[stage].fetch_add(1, Ordering::SeqCst);
                    };
                    let rounds = 40 / counts.len();
                    // SAFETY: the runtime lives; pieces that fail abort the test.
                    let status = unsafe { run(runtime, rounds, counts, 20.0, &piece) };
                    assert_eq!(status, STATUS_OK);
                    for stage in 0..rounds * counts.len() {
                        assert_eq!(
                            begun[stage].load(Ordering::SeqCst),
                            counts[stage % counts.len()]
                        );
                    }
                }
            });
        }
    }

    #[test]
    fn an_interrupt_ends_the_job() {
        static FLAG: AtomicBool = AtomicBool::new(false);
        with_team(2, |runtime| {
            let runtime = KernelRuntime { interrupt: &raw const FLAG, ..*runtime };
            let last = AtomicUsize::new(0);
            let piece = |stage: usize, _: usize| {
                last.fetch_max(stage, Ordering::SeqCst);
                if stage == 3 {
                    FLAG.store(true, Ordering::SeqCst);
                }
            };
            // SAFETY: as above.
            assert_eq!(unsafe { run(&runtime, 1000, &[4], 9.0, &piece) }, STATUS_CANCELLED);
            assert!(last.load(Ordering::SeqCst) < 1000 - 1);
        });
    }
}
