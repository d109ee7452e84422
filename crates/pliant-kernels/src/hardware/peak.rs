//! The rate of fused multiply-adds, operands in registers.

use std::hint::black_box;

use super::best_of;
use crate::isa::Isa;
use crate::lanes::{Lanes, for_isa};

/// Sums that are open at once: more than the latency of a multiply-add times those that begin in a cycle, and no more
/// than registers.
const SUMS: usize = 12;
/// Steps of a round: some 10 ms.
const STEPS: usize = 2_000_000;

/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn chain<L: Lanes<Elem = f32>>(steps: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        // Operands that the compiler does not see, and that keep the sums small.
        let (x, y) = (L::splat(black_box(0.5)), L::splat(black_box(0.25)));
        let mut sums = [y; SUMS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = sum.mul_add(x, y);
            }
        }
        let mut total = sums[0];
        for sum in &sums[1..] {
            total = total.add(*sum);
        }
        black_box(total);
    }
}

/// Adds products for so many steps on the calling thread, with the instructions of `isa`; the floating-point operations of
/// that, or none where the machine lacks the instructions.
pub fn multiply_adds(isa: Isa, steps: usize) -> Option<f64> {
    if !isa.is_available() {
        return None;
    }
    let (run, lanes) = for_isa!(isa, chain(steps: usize));
    // SAFETY: the machine has the instructions.
    unsafe { run(steps) };
    Some(2.0 * (lanes * SUMS * steps) as f64)
}

/// Floating-point operations per second of `threads` threads, each of which adds products of float32 with the instructions
/// of `isa`; none where the machine lacks them.
pub fn peak_flops(isa: Isa, threads: usize) -> Option<f64> {
    let operations = multiply_adds(isa, STEPS)? * threads.max(1) as f64;
    let time = best_of(threads.max(1), || {
        || {
            multiply_adds(isa, STEPS);
        }
    });
    Some(operations / time.as_secs_f64())
}
