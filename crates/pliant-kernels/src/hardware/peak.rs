//! The rate of fused multiply-adds, operands in registers.

use std::hint::black_box;

use super::best_of;
use crate::isa::Isa;
use crate::lanes::{Lanes, portable::Array};

/// Sums that are open at once: more than the latency of a multiply-add times those that begin in a cycle, and no more
/// than registers.
const SUMS: usize = 12;
/// Steps of a round: some 10 ms.
const STEPS: usize = 2_000_000;

/// # Safety
/// The machine has the instructions.
#[inline(always)]
unsafe fn chain<L: Lanes>(x: L::Elem, y: L::Elem) {
    // SAFETY: the caller's promise.
    unsafe {
        let (x, y) = (L::splat(x), L::splat(y));
        let mut sums = [y; SUMS];
        for _ in 0..STEPS {
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

/// A function that runs a chain with the instructions enabled, and how many elements a vector has.
macro_rules! with {
    ($lanes:ty $(, $feature:literal)?) => {{
        /// # Safety
        /// The machine has the instructions.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run() {
            // Operands that the compiler does not see, and that keep the sums small.
            // SAFETY: the caller's promise.
            unsafe { chain::<$lanes>(black_box(0.5), black_box(0.25)) }
        }
        (run as unsafe fn(), <$lanes as Lanes>::N)
    }};
}

/// Floating-point operations per second of `threads` threads, each of which adds products of float32 with the instructions
/// of `isa`; none where the machine lacks them.
pub fn peak_flops(isa: Isa, threads: usize) -> Option<f64> {
    if !isa.is_available() {
        return None;
    }
    let (run, lanes) = match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => with!(crate::lanes::x86::F32x16, "avx512f"),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => with!(crate::lanes::x86::F32x8, "avx2,fma"),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => with!(crate::lanes::neon::F32x4),
        _ => with!(Array<f32, 4>),
    };
    // SAFETY: the machine has the instructions.
    let time = best_of(threads.max(1), || || unsafe { run() });
    let operations = 2.0 * (lanes * SUMS * STEPS * threads.max(1)) as f64;
    Some(operations / time.as_secs_f64())
}
