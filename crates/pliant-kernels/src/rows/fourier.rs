//! The discrete Fourier transform of a row of complex numbers of any length, with the crate
//! `rustfft`.
//!
//! Rows of float32 are transformed in float64 and rounded once, so that sums that cancel are zero
//! to the precision of float32.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_pool::{ThreadCache, ThreadCaches, on_release};
use pliant_tensor::poison;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

/// Maximum number of lengths and directions whose plans a thread keeps.
const KEPT: usize = 64;

/// The plans of a thread.
struct Plans {
    planner: FftPlanner<f64>,
    made: HashMap<(usize, bool), Arc<dyn Fft<f64>>>,
    scratch: Vec<Complex<f64>>,
    /// A row of float32, converted to float64.
    wide: Vec<Complex<f64>>,
}

/// The plans of all threads.
static ALL: ThreadCaches<Option<Plans>> = ThreadCaches::new();

/// Calls `f` with the plans of the thread, or with temporary ones while another thread drops them.
fn with_plans(f: impl FnOnce(&mut Plans) -> i64) -> i64 {
    let kept = PLANS.with(|plans| plans.enter());
    match kept {
        Some(mut plans) => f(plans.get_or_insert_with(Plans::new)),
        None => f(&mut Plans::new()),
    }
}

impl Plans {
    fn new() -> Self {
        Plans {
            planner: FftPlanner::new(),
            made: HashMap::new(),
            scratch: Vec::new(),
            wide: Vec::new(),
        }
    }

    fn plan(&mut self, n: usize, inverse: bool) -> Arc<dyn Fft<f64>> {
        if let Some(plan) = self.made.get(&(n, inverse)) {
            return plan.clone();
        }
        if self.made.len() >= KEPT {
            self.made.clear();
            self.planner = FftPlanner::new();
        }
        let plan = if inverse {
            self.planner.plan_fft_inverse(n)
        } else {
            self.planner.plan_fft_forward(n)
        };
        self.made.insert((n, inverse), plan.clone());
        plan
    }

    /// Transforms in place, without dividing by the length.
    fn run(&mut self, row: &mut [Complex<f64>], inverse: bool) -> i64 {
        // Tables and scratch memory take a few times the memory of the row. An error is preferable
        // to the allocator aborting the process.
        let mut room: Vec<Complex<f64>> = Vec::new();
        if room.try_reserve_exact(row.len().saturating_mul(8)).is_err() {
            return STATUS_NO_MEMORY;
        }
        drop(room);
        let plan = self.plan(row.len(), inverse);
        self.scratch.resize(plan.get_inplace_scratch_len(), Complex::ZERO);
        let bytes = size_of_val(&*self.scratch);
        // SAFETY: the memory has `bytes` bytes.
        unsafe { poison(self.scratch.as_mut_ptr().cast(), bytes) };
        plan.process_with_scratch(row, &mut self.scratch);
        STATUS_OK
    }

    /// As [`Plans::run`], for a row of float32.
    fn run_single(&mut self, row: &mut [Complex<f32>], inverse: bool) -> i64 {
        let mut wide = std::mem::take(&mut self.wide);
        wide.clear();
        if wide.try_reserve(row.len()).is_err() {
            return STATUS_NO_MEMORY;
        }
        wide.extend(row.iter().map(|x| Complex { re: f64::from(x.re), im: f64::from(x.im) }));
        let status = self.run(&mut wide, inverse);
        for (to, from) in row.iter_mut().zip(&wide) {
            *to = Complex { re: from.re as f32, im: from.im as f32 };
        }
        self.wide = wide;
        status
    }
}

thread_local! {
    static PLANS: LazyCell<ThreadCache<Option<Plans>>> = const {
        LazyCell::new(|| {
            on_release(|| ALL.empty(Option::take));
            ALL.claim()
        })
    };
}

macro_rules! entries {
    ($($name:ident: $ty:ty, $run:ident;)*) => {$(
        /// Called by generated code with the number of parts of the row, twice its length; whether
        /// the transform is the inverse one, which is not divided by the length; and the numbers,
        /// with real and imaginary parts interleaved. Returns a kernel status.
        ///
        /// # Safety
        /// `row` is valid for that many parts.
        pub unsafe extern "C" fn $name(
            _runtime: *const KernelRuntime,
            parts: i64,
            inverse: i64,
            row: *mut $ty,
        ) -> i64 {
            let n = parts.max(0) as usize / 2;
            if n == 0 {
                return STATUS_OK;
            }
            // SAFETY: guaranteed by the caller; a complex number consists of its two parts.
            let row = unsafe { std::slice::from_raw_parts_mut(row.cast::<Complex<$ty>>(), n) };
            with_plans(|plans| plans.$run(row, inverse != 0))
        }
    )*};
}

entries! {
    fourier_f32: f32, run_single;
    fourier_f64: f64, run;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_agrees_with_the_sum_and_comes_back() {
        for n in [1usize, 2, 3, 4, 5, 7, 8, 12, 17, 31, 64, 97, 100] {
            let signal: Vec<f64> = (0..2 * n).map(|i| ((i * 37) % 11) as f64 - 5.0).collect();
            let mut row = signal.clone();
            let mut run = |inverse: i64| {
                // SAFETY: the row has that many parts.
                let status = unsafe {
                    fourier_f64(std::ptr::null(), 2 * n as i64, inverse, row.as_mut_ptr())
                };
                assert_eq!(status, STATUS_OK);
                row.clone()
            };
            let (there, back) = (run(0), run(1));
            for k in 0..n {
                let (mut re, mut im) = (0.0, 0.0);
                for j in 0..n {
                    let angle = std::f64::consts::TAU * ((j * k) % n) as f64 / n as f64;
                    let (a, b) = (signal[2 * j], signal[2 * j + 1]);
                    re += a * angle.cos() + b * angle.sin();
                    im += b * angle.cos() - a * angle.sin();
                }
                let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * n as f64;
                assert!(near(there[2 * k], re) && near(there[2 * k + 1], im), "{n} {k}");
                assert!(near(back[2 * k] / n as f64, signal[2 * k]), "{n} {k}");
            }
        }
    }
}
