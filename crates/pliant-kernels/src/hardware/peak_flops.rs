//! Measures the peak rate of fused multiply-adds with operands in registers, and of matrix products
//! in tile registers.

use std::hint::black_box;

use super::best_of;
#[cfg(target_arch = "x86_64")]
use crate::amx::{COLUMNS, Kind, LINE, TileRegisters};
#[cfg(target_arch = "x86_64")]
use crate::matmul::row_tiling::TILE_ROWS;
use crate::simd::{Lanes, for_isa};
use pliant_machine::isa::Isa;

/// Number of independent sums in registers: at least the latency of a multiply-add in cycles times
/// the number of multiply-adds per cycle, and at most the number of registers.
const SUMS: usize = 12;
/// Number of multiply-adds on each sum in one round of the measurement, which takes about 10 ms.
const STEPS: usize = 2_000_000;
/// Number of steps in one round of the measurement of tile registers, which takes about as long as a round with vectors. A step is
/// four tile multiplications.
#[cfg(target_arch = "x86_64")]
const TILE_STEPS: usize = 400_000;

/// Executes multiply-adds on independent sums in registers, `steps` times for each sum.
///
/// # Safety
/// The machine has the instructions of `L`.
#[inline(always)]
unsafe fn accumulate<L: Lanes<Elem = f32>>(steps: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // `black_box` prevents constant folding. The values keep the sums small.
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

/// Executes `steps` steps of multiply-adds in registers on the calling thread, with the
/// instructions of `isa`. Returns the number of floating-point operations, or `None` if the machine
/// lacks the instructions.
pub fn multiply_adds(isa: Isa, steps: usize) -> Option<f64> {
    if !isa.is_available() {
        return None;
    }
    let (run, lanes) = for_isa!(isa, accumulate(steps: usize));
    // SAFETY: the machine has the instructions.
    unsafe { run(steps) };
    Some(2.0 * (lanes * SUMS * steps) as f64)
}

/// Measures the peak rate of `threads` threads in floating-point operations per second, for float32
/// multiply-adds with the instructions of `isa`. Returns `None` if the machine lacks the
/// instructions.
pub fn peak_flops(isa: Isa, threads: usize) -> Option<f64> {
    let operations = multiply_adds(isa, STEPS)?;
    let time = best_of(threads.max(1), || {
        || {
            multiply_adds(isa, STEPS);
        }
    });
    Some(operations * time.threads as f64 / time.time.as_secs_f64())
}

/// Measures the peak rates of `threads` threads in tile registers, in operations per second: for
/// bfloat16, then for 8-bit integers. Returns `None` if the machine lacks tile registers.
pub fn tile_peaks(threads: usize) -> Option<[f64; 2]> {
    #[cfg(target_arch = "x86_64")]
    if Isa::Amx.is_available() {
        return Some([Kind::BFloat16, Kind::Signed].map(|kind| tile_peak(kind, threads.max(1))));
    }
    let _ = threads;
    None
}

#[cfg(target_arch = "x86_64")]
fn tile_peak(kind: Kind, threads: usize) -> f64 {
    let time = best_of(threads, || {
        || {
            // SAFETY: the caller checked that the registers may be used, and no kernel runs here.
            unsafe { TileRegisters::new() }.repeat(kind, TILE_STEPS);
        }
    });
    let k_per_step = LINE / if kind == Kind::BFloat16 { 2 } else { 1 };
    let operations = 2 * TILE_ROWS * 2 * COLUMNS * k_per_step * TILE_STEPS * time.threads;
    operations as f64 / time.time.as_secs_f64()
}
