//! The declared kernel `pool`: windows of images with channels last, one vector of channels after another.
//!
//! Recipe: a direct loop over the elements of a window that exist. Up to four vectors of channels share the addresses. Each
//! element is read once for each window that contains it, mostly from the first-level cache.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::pool::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes, View};
use pliant_machine::isa::isa;

use crate::entry::Implementation;
use crate::lanes::{MathLanes, for_isa};
use crate::product::share::share;
use crate::rules::convolution::copied_unit;

/// Pooling of float32.
pub struct Pool;

impl Implementation for Pool {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else {
            return STATUS_OK;
        };
        let windows = Windows::of(runtime, call, sizes, x, out);
        if [windows.batch, windows.channels].contains(&0) || windows.output.contains(&0) {
            return STATUS_OK;
        }
        let lines = windows.output[0] * windows.output[1];
        let run = match call.int("kind") {
            0 => for_isa!(isa(), max_line(w: &Windows<'_>, batch: usize, z: usize, y: usize)).0,
            _ => for_isa!(isa(), mean_line(w: &Windows<'_>, batch: usize, z: usize, y: usize)).0,
        };
        let piece = |index: usize| {
            let (batch, at) = (index / lines, index % lines);
            // SAFETY: the call was checked: both operands have these elements and share no memory. Each line is one piece's.
            unsafe { run(&windows, batch, at / windows.output[1], at % windows.output[1]) };
            if runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
        };
        let taps: usize = windows.kernel.iter().product();
        let line = windows.output[2].saturating_mul(windows.channels);
        let units = taps.saturating_mul(line) / (4 * copied_unit());
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { share(runtime, windows.batch * lines, units, &piece) }
    }
}

/// The sizes and the operands. Strides count elements; those of images are (depth, height, width).
struct Windows<'a> {
    runtime: &'a KernelRuntime,
    batch: usize,
    channels: usize,
    input: [usize; 3],
    output: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    before: [usize; 3],
    x: (*const f32, isize, [isize; 3]),
    out: (*mut f32, isize, [isize; 3]),
}

impl<'a> Windows<'a> {
    fn of(
        runtime: &'a KernelRuntime,
        call: &Call,
        sizes: &Sizes,
        x: &View,
        out: &View,
    ) -> Windows<'a> {
        let size = |name| sizes.get(name) as usize;
        let three = |name| std::array::from_fn(|d| call.ints(name)[d] as usize);
        let strides = |view: &View| std::array::from_fn(|d| view.strides()[2 + d] as isize);
        Windows {
            runtime,
            batch: size("batch"),
            channels: size("channels"),
            input: ["in_depth", "in_height", "in_width"].map(size),
            output: ["out_depth", "out_height", "out_width"].map(size),
            kernel: three("kernel_shape"),
            stride: three("strides"),
            dilation: three("dilations"),
            before: three("padding"),
            x: (x.data.cast_const().cast(), x.strides()[0] as isize, strides(x)),
            out: (out.data.cast(), out.strides()[0] as isize, strides(out)),
        }
    }

    /// The positions of the elements of a window along a dim: the first one, and the number of them.
    fn elements(&self, d: usize, at: usize) -> (usize, usize) {
        let (step, first) = (self.dilation[d], at.saturating_mul(self.stride[d]));
        let skipped = self.before[d].saturating_sub(first).div_ceil(step);
        let end = self.input[d].saturating_add(self.before[d]).saturating_sub(first);
        let end = end.div_ceil(step).min(self.kernel[d]);
        match skipped < end {
            true => (first + skipped * step - self.before[d], end - skipped),
            false => (0, 0),
        }
    }
}

/// What combines the elements of a window.
trait Combine<L> {
    /// The value before the first element.
    ///
    /// # Safety
    /// The machine has the instructions of `L`. This holds for all methods.
    unsafe fn start() -> L;
    /// The value after another element.
    unsafe fn add(so_far: L, element: L) -> L;
    /// The result of a window of `count` elements.
    unsafe fn finish(so_far: L, count: usize) -> L;
}

/// The largest element; NaN if one is NaN.
struct Max;

impl<L: MathLanes<Elem = f32>> Combine<L> for Max {
    #[inline(always)]
    unsafe fn start() -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { L::splat(f32::NEG_INFINITY) }
    }

    #[inline(always)]
    unsafe fn add(so_far: L, element: L) -> L {
        // SAFETY: guaranteed by the caller. `max2` keeps a NaN of its second operand.
        unsafe { L::keep_nan(element, element.max2(so_far)) }
    }

    #[inline(always)]
    unsafe fn finish(so_far: L, _: usize) -> L {
        so_far
    }
}

/// The mean; NaN without elements.
struct Mean;

impl<L: MathLanes<Elem = f32>> Combine<L> for Mean {
    #[inline(always)]
    unsafe fn start() -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { L::zero() }
    }

    #[inline(always)]
    unsafe fn add(so_far: L, element: L) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { so_far.add(element) }
    }

    #[inline(always)]
    unsafe fn finish(so_far: L, count: usize) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { so_far.div(L::splat(count as f32)) }
    }
}

/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn max_line<L: MathLanes<Elem = f32>>(w: &Windows<'_>, batch: usize, z: usize, y: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { line::<L, Max>(w, batch, z, y) }
}

/// # Safety
/// As for [`max_line`].
#[inline(always)]
unsafe fn mean_line<L: MathLanes<Elem = f32>>(w: &Windows<'_>, batch: usize, z: usize, y: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { line::<L, Mean>(w, batch, z, y) }
}

/// A line of results.
///
/// # Safety
/// As for [`max_line`].
#[inline(always)]
unsafe fn line<L: MathLanes<Elem = f32>, C: Combine<L>>(
    w: &Windows<'_>,
    batch: usize,
    z: usize,
    y: usize,
) {
    let (planes, rows) = (w.elements(0, z), w.elements(1, y));
    // Strides of dims with one element may be any numbers.
    let offset = |batch_stride: isize, strides: [isize; 3], at: [usize; 3]| {
        let start = batch_stride.wrapping_mul(batch as isize);
        let dims = strides.into_iter().zip(at);
        dims.fold(start, |sum, (stride, at)| sum.wrapping_add(stride.wrapping_mul(at as isize)))
    };
    for x in 0..w.output[2] {
        if w.runtime.is_interrupted() {
            return;
        }
        let columns = w.elements(2, x);
        let counts = [planes.1, rows.1, columns.1];
        let from = offset(w.x.1, w.x.2, [planes.0, rows.0, columns.0]);
        let window = Window {
            from: w.x.0.wrapping_offset(from),
            counts: if counts.contains(&0) { [0; 3] } else { counts },
            steps: std::array::from_fn(|d| (w.dilation[d] as isize).wrapping_mul(w.x.2[d])),
            out: w.out.0.wrapping_offset(offset(w.out.1, w.out.2, [z, y, x])),
        };
        // SAFETY: guaranteed by the caller; the elements exist.
        unsafe { window.compute::<L, C>(0..w.channels) };
    }
}

/// A window: the address of its first element, the counts and strides of its elements, and its result.
struct Window {
    from: *const f32,
    counts: [usize; 3],
    steps: [isize; 3],
    out: *mut f32,
}

impl Window {
    /// All channels.
    ///
    /// # Safety
    /// As for [`max_line`]; the elements exist.
    #[inline(always)]
    unsafe fn compute<L: MathLanes<Elem = f32>, C: Combine<L>>(&self, channels: Range<usize>) {
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
                self.rest::<L, C>(channel, channels.end - channel);
            }
        }
    }

    /// `V` vectors of channels.
    ///
    /// # Safety
    /// As for [`Window::compute`].
    #[inline(always)]
    unsafe fn vectors<L: MathLanes<Elem = f32>, C: Combine<L>, const V: usize>(
        &self,
        channel: usize,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut values = [C::start(); V];
            self.each(|element| {
                for v in 0..V {
                    let x = L::load(element.add(channel + v * L::N));
                    values[v] = C::add(values[v], x);
                }
            });
            for v in 0..V {
                let result = C::finish(values[v], self.counts.iter().product());
                result.store(self.out.add(channel + v * L::N));
            }
        }
    }

    /// The last `count` channels, fewer than a vector has lanes.
    ///
    /// # Safety
    /// As for [`Window::compute`].
    #[inline(always)]
    unsafe fn rest<L: MathLanes<Elem = f32>, C: Combine<L>>(&self, channel: usize, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut value = C::start();
            self.each(|element| {
                value = C::add(value, L::load_first(element.add(channel), count));
            });
            let result = C::finish(value, self.counts.iter().product());
            result.store_first(self.out.add(channel), count);
        }
    }

    /// Calls `f` with the address of channel 0 of each element, in row-major order.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(*const f32)) {
        for z in 0..self.counts[0] {
            let plane = self.from.wrapping_offset((z as isize).wrapping_mul(self.steps[0]));
            for y in 0..self.counts[1] {
                let mut element = plane.wrapping_offset((y as isize).wrapping_mul(self.steps[1]));
                for _ in 0..self.counts[2] {
                    f(element);
                    element = element.wrapping_offset(self.steps[2]);
                }
            }
        }
    }
}
