//! Runs a parallel job in stages ([`pliant_pool::Stages`]) on the worker team that a kernel call
//! provides. Threads synchronize between stages.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
pub use pliant_pool::MAX_PIECES;
use pliant_pool::Stages;

/// Runs a sequence of stages one after the other, each stage on several threads, and repeats the sequence `rounds` times. `counts`
/// contains the number of pieces of work of each stage of the sequence. Calls `piece` with the index of the stage, counted over all
/// repetitions, and the index of the piece. A stage starts when all pieces of the previous stage have finished. A piece takes about
/// `micros` microseconds. Returns a kernel status: 0, or cancelled.
///
/// # Safety
/// The worker team and the interrupt flag of the runtime are valid. `piece` may be called on several threads at once, and must not
/// unwind. The counts are at most [`MAX_PIECES`].
pub unsafe fn run<F: Fn(usize, usize)>(
    runtime: &KernelRuntime,
    rounds: usize,
    counts: &[usize],
    micros: f64,
    piece: &F,
) -> i64 {
    unsafe extern "C" fn enter<F: Fn(usize, usize), S: Fn() -> bool>(
        job: *mut c_void,
        _: i64,
        _: i64,
    ) -> i64 {
        // SAFETY: `run` passes its job, which outlives the loop.
        match unsafe { (*job.cast::<Stages<'_, F, S>>()).join() } {
            true => STATUS_OK,
            false => STATUS_CANCELLED,
        }
    }
    /// Returns the C entry function of a job. Type inference supplies the type of the job, which
    /// contains closures and therefore has no name.
    fn entry<F: Fn(usize, usize), S: Fn() -> bool>(
        _: &Stages<'_, F, S>,
    ) -> unsafe extern "C" fn(*mut c_void, i64, i64) -> i64 {
        enter::<F, S>
    }
    let stop = || runtime.is_interrupted();
    let max_count = counts.iter().copied().max().unwrap_or(0);
    let job = Stages::new(rounds, counts, micros, piece, &stop);
    // Run on one thread if a stage takes less time than the synchronization.
    let run_serial = max_count < 2 || micros * max_count as f64 * 2.0 < 1.5;
    if run_serial {
        return if job.join() { STATUS_OK } else { STATUS_CANCELLED };
    }
    let pieces: usize = counts.iter().sum();
    let units = (micros * pieces as f64 * rounds as f64).min(1e9) as i64;
    // SAFETY: the job outlives the loop; guaranteed by the caller.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            entry(&job),
            (&raw const job).cast_mut().cast(),
            units.max(2),
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    fn stages_run_in_order_and_each_piece_runs_once() {
        for threads in [1, 2, 3, 5] {
            with_team(threads, |runtime| {
                for counts in [&[5usize][..], &[7, 2], &[1], &[MAX_PIECES, 1]] {
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
                    // SAFETY: the runtime is valid; pieces that fail abort the test.
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
    fn interrupt_cancels_job() {
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
