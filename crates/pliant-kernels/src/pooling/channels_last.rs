//! Pooling of images with channels last, one vector of channels at a time.
//!
//! Method: a direct loop over the elements of a window that are inside of the image, for up to four
//! vectors of channels at once. An element is read once for each window that contains the element,
//! mostly from the first-level cache.

use std::ops::Range;

use pliant_exec::abi::{STATUS_CANCELLED, STATUS_OK};
use pliant_machine::isa::isa;

use super::{Max, Mean, Reduction, Windows, strided_addresses};
use crate::algorithm_selection::partition::copied_unit;
use crate::matmul::work_partition::parallel_for;
use crate::simd::{MathLanes, for_isa};

/// Computes all output rows, on the worker team. Returns a kernel status: 0 on success.
///
/// # Safety
/// The operands have the elements of the windows and share no memory.
pub(super) unsafe fn run(windows: &Windows<'_>, mean: bool) -> i64 {
    let lines = windows.output[0] * windows.output[1];
    let run = match mean {
        false => for_isa!(isa(), max_line(w: &Windows<'_>, batch: usize, z: usize, y: usize)).0,
        true => for_isa!(isa(), mean_line(w: &Windows<'_>, batch: usize, z: usize, y: usize)).0,
    };
    let piece = |index: usize| {
        let (batch, at) = (index / lines, index % lines);
        // SAFETY: guaranteed by the caller. Each line is in one piece.
        unsafe { run(windows, batch, at / windows.output[1], at % windows.output[1]) };
        if windows.runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
    };
    let taps: usize = windows.kernel.iter().product();
    let line = windows.output[2].saturating_mul(windows.channels);
    let units = taps.saturating_mul(line) / (4 * copied_unit());
    // SAFETY: the runtime is valid, and the kernels do not unwind.
    unsafe { parallel_for(windows.runtime, windows.batch * lines, units, &piece) }
}

/// Computes an output row of maximum pooling.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
pub(super) unsafe fn max_line<L: MathLanes<Elem = f32>>(
    w: &Windows<'_>,
    batch: usize,
    z: usize,
    y: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { line::<L, Max>(w, batch, z, y) }
}

/// Computes an output row of mean pooling.
///
/// # Safety
/// The conditions of [`max_line`] hold.
#[inline(always)]
pub(super) unsafe fn mean_line<L: MathLanes<Elem = f32>>(
    w: &Windows<'_>,
    batch: usize,
    z: usize,
    y: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { line::<L, Mean>(w, batch, z, y) }
}

/// Computes an output row of pooling by the reduction `C` (maximum or mean).
///
/// # Safety
/// The conditions of [`max_line`] hold.
#[inline(always)]
unsafe fn line<L: MathLanes<Elem = f32>, C: Reduction<L>>(
    w: &Windows<'_>,
    batch: usize,
    z: usize,
    y: usize,
) {
    let (planes, rows) = (w.elements(0, z), w.elements(1, y));
    for x in 0..w.output[2] {
        if w.runtime.is_interrupted() {
            return;
        }
        let columns = w.elements(2, x);
        let counts = [planes.1, rows.1, columns.1];
        let window = Window {
            from: w.x.0.wrapping_offset(w.x.1.of([batch, 0, planes.0, rows.0, columns.0])),
            counts: if counts.contains(&0) { [0; 3] } else { counts },
            steps: std::array::from_fn(|d| (w.dilation[d] as isize).wrapping_mul(w.x.1.0[2 + d])),
            out: w.out.0.wrapping_offset(w.out.1.of([batch, 0, z, y, x])),
        };
        // SAFETY: guaranteed by the caller; the elements are inside of the image.
        unsafe { window.compute::<L, C>(0..w.channels) };
    }
}

/// A pooling window: the address of its first element, the counts and strides of its elements, and
/// the address of its result.
struct Window {
    from: *const f32,
    counts: [usize; 3],
    steps: [isize; 3],
    out: *mut f32,
}

impl Window {
    /// Computes the pooling result of the window for all channels in the range.
    ///
    /// # Safety
    /// The conditions of [`max_line`] hold; the elements are inside of the image.
    #[inline(always)]
    unsafe fn compute<L: MathLanes<Elem = f32>, C: Reduction<L>>(&self, channels: Range<usize>) {
        let mut channel = channels.start;
        // SAFETY: guaranteed by the caller.
        unsafe {
            while channel + 4 * L::N <= channels.end {
                self.vectors::<L, C, 4>(channel);
                channel += 4 * L::N;
            }
            while channel + L::N <= channels.end {
                self.vectors::<L, C, 1>(channel);
                channel += L::N;
            }
            if channel < channels.end {
                self.partial_vector::<L, C>(channel, channels.end - channel);
            }
        }
    }

    /// Computes the pooling result of the window for `V` vectors of channels.
    ///
    /// # Safety
    /// The conditions of [`Window::compute`] hold.
    #[inline(always)]
    unsafe fn vectors<L: MathLanes<Elem = f32>, C: Reduction<L>, const V: usize>(
        &self,
        channel: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = [C::start(); V];
            for plane in strided_addresses(self.from, self.counts[0], self.steps[0]) {
                for row in strided_addresses(plane, self.counts[1], self.steps[1]) {
                    for element in strided_addresses(row, self.counts[2], self.steps[2]) {
                        for v in 0..V {
                            let x = L::load(element.add(channel + v * L::N));
                            values[v] = C::add(values[v], x);
                        }
                    }
                }
            }
            for v in 0..V {
                let result = C::finish(values[v], self.counts.iter().product());
                result.store(self.out.add(channel + v * L::N));
            }
        }
    }

    /// Computes the pooling result of the window for the last `count` channels, fewer than the
    /// number of lanes of a vector.
    ///
    /// # Safety
    /// The conditions of [`Window::compute`] hold.
    #[inline(always)]
    unsafe fn partial_vector<L: MathLanes<Elem = f32>, C: Reduction<L>>(
        &self,
        channel: usize,
        count: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut value = C::start();
            for plane in strided_addresses(self.from, self.counts[0], self.steps[0]) {
                for row in strided_addresses(plane, self.counts[1], self.steps[1]) {
                    for element in strided_addresses(row, self.counts[2], self.steps[2]) {
                        value = C::add(value, L::load_first(element.add(channel), count));
                    }
                }
            }
            let result = C::finish(value, self.counts.iter().product());
            result.store_first(self.out.add(channel), count);
        }
    }
}
