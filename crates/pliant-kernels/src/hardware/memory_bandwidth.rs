//! Measures the read bandwidth of memory: threads repeatedly read data of a given size.

use std::hint::black_box;

use super::best_of;
use crate::simd::{Lanes, for_isa};
use pliant_machine::isa::isa;

/// Sizes in bytes that fit the first, second and third cache levels of common machines, and a size
/// that exceeds them.
pub const LEVELS: [(&str, usize); 4] =
    [("L1", 16 << 10), ("L2", 256 << 10), ("L3", 8 << 20), ("DRAM", 256 << 20)];

/// Minimum number of bytes that all threads together read in a round of the measurement.
const ROUND: usize = 256 << 20;
/// Number of independent vector sums, which hide the latency of additions.
const SUMS: usize = 8;

/// Sums all elements of `data`, so that each of them is read once.
///
/// # Safety
/// The machine has the instructions of `L`.
#[inline(always)]
unsafe fn sum<L: Lanes<Elem = f32>>(data: &[f32]) {
    // SAFETY: guaranteed by the caller; each address lies inside its chunk.
    unsafe {
        let mut sums = [L::zero(); SUMS];
        for chunk in data.chunks_exact(SUMS * L::N) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add(L::load(chunk.as_ptr().add(i * L::N)));
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = total.add(*sum);
        }
        black_box(total);
    }
}

/// Measures the combined read bandwidth of `threads` threads, in bytes per second. Each thread repeatedly reads its own
/// part of the data, `bytes / threads` bytes.
pub fn read_bandwidth(bytes: usize, threads: usize) -> f64 {
    let threads = threads.max(1);
    let (run, lanes) = for_isa!(isa(), sum(data: &[f32]));
    let elements = (bytes / threads / size_of::<f32>()).max(1024);
    // Round down to whole groups of vectors.
    let elements = elements / (SUMS * lanes) * (SUMS * lanes);
    let times = (ROUND / threads / (elements * size_of::<f32>())).max(1);
    let time = best_of(threads, || {
        let data = vec![1.0f32; elements];
        move || {
            for _ in 0..times {
                // SAFETY: the machine has the instructions of `isa()`.
                unsafe { run(black_box(&data)) };
            }
        }
    });
    (time.threads * times * elements * size_of::<f32>()) as f64 / time.time.as_secs_f64()
}
