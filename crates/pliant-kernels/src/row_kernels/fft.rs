//! The implementation of the declared kernel `fft`, for any length, with the crate `rustfft`.
//!
//! Rows are transformed in float64 and rounded once, so that sums that should cancel are zero to
//! the precision of the operand's type.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use half::{bf16, f16};
use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_kernel_api::kernels::fft::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes, View};
use pliant_pool::{ThreadCache, ThreadCaches, on_release};
use pliant_tensor::{DType, poison, round_to_f16};
use rustfft::num_complex::Complex;
use rustfft::{Fft as Plan, FftPlanner};

use super::row_addresses::Rows;
use crate::algorithm_selection::fft::{piece, row_operations, unit};
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::parallel_for;

/// The implementation of the kernel `fft`.
pub struct Fft;

impl Implementation for Fft {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let dtype = call.operand("x").map_or(DType::Float32, |x| x.dtype);
        // SAFETY: guaranteed by the caller; the elements are of these types.
        unsafe {
            match dtype {
                DType::Float64 => transform::<f64>(runtime, call, sizes),
                DType::Float16 => transform::<f16>(runtime, call, sizes),
                DType::BFloat16 => transform::<bf16>(runtime, call, sizes),
                _ => transform::<f32>(runtime, call, sizes),
            }
        }
    }
}

/// The data type of the real and imaginary parts of operands.
trait Component: Copy {
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
}

macro_rules! components {
    ($($ty:ty: $to_f64:expr, $from_f64:expr;)*) => {$(
        impl Component for $ty {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }

            #[inline(always)]
            fn from_f64(value: f64) -> $ty {
                $from_f64(value)
            }
        }
    )*};
}

components! {
    f64: f64::from, f64::from;
    f32: f64::from, |value| value as f32;
    f16: f64::from, round_to_f16;
    bf16: f64::from, bf16::from_f64;
}

// ---- plans ----

/// Maximum number of FFT plans that a thread keeps. There is one plan for each length and direction.
const MAX_CACHED_PLANS: usize = 64;

/// The FFT plans that a thread keeps between calls, and the memory in which the thread transforms
/// one row at a time.
struct Plans {
    planner: FftPlanner<f64>,
    cached: HashMap<(usize, bool), Arc<dyn Plan<f64>>>,
    scratch: Vec<Complex<f64>>,
    /// The complex numbers of the current row, which are transformed in place.
    row: Vec<Complex<f64>>,
}

/// The FFT plans of all threads.
static CACHES: ThreadCaches<Option<Plans>> = ThreadCaches::new();

/// Calls `f` with the FFT plans of the thread, or with temporary plans while another thread empties
/// the cache. Returns the kernel status of `f`.
fn with_plans(f: impl FnOnce(&mut Plans) -> i64) -> i64 {
    let plans = PLANS.with(|plans| plans.enter());
    match plans {
        Some(mut plans) => f(plans.get_or_insert_with(Plans::new)),
        None => f(&mut Plans::new()),
    }
}

impl Plans {
    fn new() -> Self {
        Plans {
            planner: FftPlanner::new(),
            cached: HashMap::new(),
            scratch: Vec::new(),
            row: Vec::new(),
        }
    }

    fn plan(&mut self, n: usize, inverse: bool) -> Arc<dyn Plan<f64>> {
        if let Some(plan) = self.cached.get(&(n, inverse)) {
            return plan.clone();
        }
        if self.cached.len() >= MAX_CACHED_PLANS {
            self.cached.clear();
            self.planner = FftPlanner::new();
        }
        let plan = if inverse {
            self.planner.plan_fft_inverse(n)
        } else {
            self.planner.plan_fft_forward(n)
        };
        self.cached.insert((n, inverse), plan.clone());
        plan
    }

    /// Checks that enough memory is available for transforms of `n` numbers. Returns a kernel
    /// status: 0 on success. The tables and scratch memory of `rustfft` take a few times the memory
    /// of the row, and without this check a failed allocation would abort the process.
    fn reserve(&mut self, n: usize) -> i64 {
        let n = n.max(1);
        let mut tables: Vec<Complex<f64>> = Vec::new();
        self.row.clear();
        let failed = tables.try_reserve_exact(n.saturating_mul(8)).is_err();
        if failed || self.row.try_reserve_exact(n).is_err() { STATUS_NO_MEMORY } else { STATUS_OK }
    }

    /// Computes the Fourier transform of [`Plans::row`] in place, without dividing by the length.
    fn run(&mut self, plan: &dyn Plan<f64>) {
        self.scratch.resize(plan.get_inplace_scratch_len(), Complex::ZERO);
        let bytes = size_of_val(&*self.scratch);
        // SAFETY: the memory has `bytes` bytes.
        unsafe { poison(self.scratch.as_mut_ptr().cast(), bytes) };
        plan.process_with_scratch(&mut self.row, &mut self.scratch);
    }
}

thread_local! {
    static PLANS: LazyCell<ThreadCache<Option<Plans>>> = const {
        LazyCell::new(|| {
            on_release(|| CACHES.empty(Option::take));
            CACHES.claim()
        })
    };
}

// ---- calls ----

/// The operands and attributes of a checked `fft` call.
struct Transform<T> {
    x: Rows<T>,
    /// The stride between samples, and the stride between the real and the imaginary part of a
    /// sample, in elements.
    x_strides: [usize; 2],
    samples: usize,
    is_complex: bool,
    window: Option<(Rows<T>, usize)>,
    out: Rows<T>,
    out_strides: [usize; 2],
    frequencies: usize,
    length: usize,
    inverse: bool,
}

/// The strides of the last two dims of an operand.
fn strides(view: &View) -> [usize; 2] {
    view.strides().last_chunk::<2>().map_or([0; 2], |strides| strides.map(|s| s as usize))
}

/// Computes the discrete Fourier transform of each row of a call, for elements of type `T`. Returns
/// a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`Implementation::run`] hold; the operands have elements of type `T`.
unsafe fn transform<T: Component>(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
    let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else { return STATUS_OK };
    let (rows, length) = (sizes.get("rows") as usize, call.int("length") as usize);
    if rows == 0 {
        return STATUS_OK;
    }
    let transforms = Transform::<T> {
        x: Rows::of(x, 2),
        x_strides: strides(x),
        samples: length.min(sizes.get("samples") as usize),
        is_complex: sizes.get("parts") == 2,
        window: call.operand("window").map(|w| (Rows::of(w, 1), w.strides()[0] as usize)),
        out: Rows::of(out, 2),
        out_strides: strides(out),
        frequencies: sizes.get("frequencies") as usize,
        length,
        inverse: call.int("inverse") != 0,
    };
    let rows_per_piece = (piece() / row_operations(length).max(1)).clamp(1, rows);
    let run = |index: usize| {
        with_plans(|plans| {
            let status = plans.reserve(length);
            if status != STATUS_OK {
                return status;
            }
            let plan = plans.plan(length, transforms.inverse);
            for row in index * rows_per_piece..rows.min((index + 1) * rows_per_piece) {
                // SAFETY: guaranteed by the caller; each row is in one piece.
                unsafe {
                    transforms.read(row, &mut plans.row);
                    if length > 0 {
                        plans.run(&*plan);
                    }
                    transforms.write(row, &mut plans.row);
                }
            }
            STATUS_OK
        })
    };
    let units = (rows_per_piece.saturating_mul(row_operations(length)) / unit()).max(1);
    // SAFETY: the runtime is valid, and the kernels do not unwind.
    unsafe { parallel_for(runtime, rows.div_ceil(rows_per_piece), units, &run) }
}

impl<T: Component> Transform<T> {
    /// Reads the samples of a row into `to`, multiplied by the window if there is one.
    ///
    /// # Safety
    /// The row is valid, and `to` has room for the length.
    unsafe fn read(&self, row: usize, to: &mut Vec<Complex<f64>>) {
        let (x, [step, part]) = (self.x.uniform_rows(row).address, self.x_strides);
        to.clear();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let samples = (0..self.samples).map(|j| x.add(j * step));
            match self.is_complex {
                true => to.extend(
                    samples.map(|at| Complex { re: (*at).to_f64(), im: (*at.add(part)).to_f64() }),
                ),
                false => to.extend(samples.map(|at| Complex { re: (*at).to_f64(), im: 0.0 })),
            }
            if let Some((window, step)) = &self.window {
                let window = window.uniform_rows(0).address;
                for (j, sample) in to.iter_mut().enumerate() {
                    *sample *= (*window.add(j * step)).to_f64();
                }
            }
        }
        // Pad with zeros. Without samples, all frequencies are 0.
        to.resize(self.length.max(self.frequencies), Complex::ZERO);
    }

    /// Writes the frequencies of a row to the result.
    ///
    /// # Safety
    /// The row of the result is valid.
    unsafe fn write(&self, row: usize, from: &mut [Complex<f64>]) {
        let (out, [step, part]) = (self.out.uniform_rows(row).address, self.out_strides);
        let from = &mut from[..self.frequencies];
        if self.inverse {
            let length = self.length as f64;
            from.iter_mut().for_each(|value| *value /= length);
        }
        for (k, value) in from.iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let at = out.add(k * step);
                *at = T::from_f64(value.re);
                *at.add(part) = T::from_f64(value.im);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transforms two copies of a test row in one call, and returns the result of the second copy.
    fn transformed(row: &[f64], inverse: bool) -> Vec<f64> {
        let n = row.len() as i64 / 2;
        let (x, mut out) = ([row, row].concat(), vec![0.0; 2 * row.len()]);
        let view = |data: *mut f64| {
            View::new(data.cast(), DType::Float64, &[2, n, 2], None).expect("few dims")
        };
        let mut call = Call::new(&KERNEL);
        call.set_operand(0, Some(view(x.as_ptr().cast_mut())));
        call.set_operand(2, Some(view(out.as_mut_ptr())));
        [n, 0, inverse.into()].into_iter().enumerate().for_each(|(i, v)| call.set_number(i, v));
        let sizes = call.check().expect("valid");
        // SAFETY: the views lie in their vectors.
        let status = unsafe { Fft::run(&KernelRuntime::serial(), &call, &sizes) };
        assert_eq!(status, STATUS_OK);
        out.split_off(row.len())
    }

    #[test]
    fn transforms_match_the_definition_and_invert() {
        for n in [1usize, 2, 3, 4, 5, 7, 8, 12, 17, 31, 64, 97, 100] {
            let signal: Vec<f64> = (0..2 * n).map(|i| ((i * 37) % 11) as f64 - 5.0).collect();
            let spectrum = transformed(&signal, false);
            let recovered = transformed(&spectrum, true);
            for k in 0..n {
                let (mut re, mut im) = (0.0, 0.0);
                for j in 0..n {
                    let angle = std::f64::consts::TAU * ((j * k) % n) as f64 / n as f64;
                    let (a, b) = (signal[2 * j], signal[2 * j + 1]);
                    re += a * angle.cos() + b * angle.sin();
                    im += b * angle.cos() - a * angle.sin();
                }
                let is_close = |a: f64, b: f64| (a - b).abs() < 1e-9 * n as f64;
                assert!(
                    is_close(spectrum[2 * k], re) && is_close(spectrum[2 * k + 1], im),
                    "{n} {k}"
                );
                assert!(is_close(recovered[2 * k], signal[2 * k]), "{n} {k}");
            }
        }
    }
}
