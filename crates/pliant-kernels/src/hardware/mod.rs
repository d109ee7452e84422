//! Measures the peak performance of the machine. Benchmarks compare kernels with it.
//!
//! Each result is the best of a few short rounds, because other programs can only slow down a round.

mod memory_bandwidth;
mod peak_flops;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use memory_bandwidth::{LEVELS, read_bandwidth};
pub use peak_flops::{multiply_adds, peak_flops, tile_peaks};

/// Number of rounds of a measurement. The fastest round counts.
const ROUNDS: usize = 7;
/// The stack size of measuring threads, in bytes.
const STACK: usize = 2 << 20;

/// The duration of one round of a measurement, or of its fastest round.
struct RoundTime {
    time: Duration,
    /// The number of threads that ran: fewer than requested if the system could not start more
    /// threads.
    threads: usize,
}

/// Measures the best time of `threads` threads that run concurrently, from a common start to the end of the last
/// thread. Each thread first calls `prepare`, which is not timed, and then the function that `prepare` returned.
fn best_of<P: FnMut()>(threads: usize, prepare: impl Fn() -> P + Sync) -> RoundTime {
    let all: Vec<RoundTime> = (0..ROUNDS).map(|_| round(threads, &prepare)).collect();
    // Rounds with fewer threads are not compared.
    let threads = all.iter().map(|round| round.threads).max().unwrap_or(1);
    let time = all.iter().filter(|round| round.threads == threads).map(|round| round.time).min();
    RoundTime { time: time.unwrap_or(Duration::MAX), threads }
}

/// Measures one round of [`best_of`]: runs all threads and returns the time.
fn round<P: FnMut()>(threads: usize, prepare: &(impl Fn() -> P + Sync)) -> RoundTime {
    let (ready, started) = (AtomicUsize::new(0), AtomicBool::new(false));
    let part = |wait: &dyn Fn()| {
        let mut run = prepare();
        run();
        wait();
        let begin = Instant::now();
        run();
        (begin, Instant::now())
    };
    let other = || {
        part(&|| {
            ready.fetch_add(1, Ordering::AcqRel);
            while !started.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    };
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new;
        let start = |_| pliant_pool::start_scoped(scope, builder(), STACK, other).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let own_span = part(&|| {
            while ready.load(Ordering::Acquire) < others.len() {
                std::thread::yield_now();
            }
            started.store(true, Ordering::Release);
        });
        others.into_iter().filter_map(|thread| thread.join().ok()).chain([own_span]).collect()
    });
    let begin = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    let time = end.zip(begin).map_or(Duration::MAX, |(end, begin)| end - begin);
    RoundTime { time, threads: spans.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_machine::isa::Isa;

    #[test]
    fn exactly_the_available_instruction_sets_are_measured() {
        for isa in Isa::ALL {
            let peak = peak_flops(isa, 1);
            assert_eq!(peak.is_some(), isa.is_available(), "{isa:?}");
            assert!(peak.is_none_or(|flops| flops > 0.0 && flops.is_finite()));
        }
        let tiles = tile_peaks(1);
        assert_eq!(tiles.is_some(), Isa::Amx.is_available());
        assert!(tiles.is_none_or(|[bf16, int8]| bf16 > 0.0 && int8 > 0.0 && int8.is_finite()));
        assert_eq!(best_of(3, || || ()).threads, 3);
        assert!(read_bandwidth(LEVELS[0].1, 1) > 0.0);
    }
}
