//! The entry point of the declared kernel `pool`, and the parts of pooling that are independent of
//! the layout.

mod channels_last;
mod contiguous_rows;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernel_api::kernels::pooling::{
    ContiguousDim, KERNEL, contiguous_dim, supports_columns,
};
use pliant_kernel_api::{Call, Kernel, Sizes, View};

use crate::kernel_entry_points::Implementation;
use crate::simd::MathLanes;

/// Maximum number of float32 lanes of a vector.
const WIDEST: usize = 16;

/// The implementation of the kernel `pool` for float32.
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
        let mean = call.int("kind") != 0;
        // SAFETY: guaranteed by the caller; the call was checked.
        unsafe {
            match contiguous_dim(call, sizes) {
                Some(ContiguousDim::Columns) => contiguous_rows::run(&windows, mean),
                _ => match windows.with_channels_as_columns() {
                    Some(windows) => contiguous_rows::run(&windows, mean),
                    None => channels_last::run(&windows, mean),
                },
            }
        }
    }
}

/// The sizes and operands of a checked pooling call. Strides count elements.
#[derive(Clone, Copy)]
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
    x: (*const f32, Strides),
    out: (*mut f32, Strides),
}

/// The strides of images in the order batch, channel, depth, height, width. Strides of dims of size 1 are arbitrary.
#[derive(Clone, Copy)]
struct Strides([isize; 5]);

impl Strides {
    fn new(view: &View) -> Strides {
        Strides(std::array::from_fn(|d| view.strides()[d] as isize))
    }

    fn with_adjacent_columns(mut self) -> Strides {
        self.0[4] = 1;
        self
    }

    /// The offset of the image element at the index `at` from the first element, in elements.
    #[inline(always)]
    fn of(&self, at: [usize; 5]) -> isize {
        let mut sum = 0isize;
        for d in 0..5 {
            sum = sum.wrapping_add(self.0[d].wrapping_mul(at[d] as isize));
        }
        sum
    }
}

/// The addresses of `count` elements with a stride of `step` elements.
#[inline(always)]
fn strided_addresses(
    first: *const f32,
    count: usize,
    step: isize,
) -> impl Iterator<Item = *const f32> {
    (0..count).map(move |i| first.wrapping_offset((i as isize).wrapping_mul(step)))
}

// SAFETY: pieces read operands and write different results, of memory that is valid during the call.
unsafe impl Sync for Windows<'_> {}

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
            x: (x.data.cast_const().cast(), Strides::new(x)),
            out: (out.data.cast(), Strides::new(out)),
        }
    }

    /// Converts channels-last images to images with one channel, by treating each pair of a column
    /// and a channel as one column. Returns `None` if pixels or windows have a stride along the
    /// rows, or if reducing each window as a whole reads fewer elements than reducing its rows and
    /// then its columns.
    fn with_channels_as_columns(&self) -> Option<Windows<'a>> {
        let columns = |size: usize| size.saturating_mul(self.channels);
        let is_contiguous =
            |size: usize, strides: &Strides| size <= 1 || strides.0[4] == self.channels as isize;
        let rows = self.kernel[0].saturating_mul(self.kernel[1]);
        let reads_fewer = rows.saturating_add(self.kernel[2]) < rows.saturating_mul(self.kernel[2]);
        let dilation = columns(self.dilation[2]);
        let is_supported = self.stride[2] == 1
            && is_contiguous(self.input[2], &self.x.1)
            && is_contiguous(self.output[2], &self.out.1)
            && supports_columns(self.kernel[2] as i64, i64::try_from(dilation).ok()?);
        let with_columns = |sizes: [usize; 3]| [sizes[0], sizes[1], columns(sizes[2])];
        (is_supported && reads_fewer).then(|| Windows {
            channels: 1,
            input: with_columns(self.input),
            output: with_columns(self.output),
            dilation: with_columns(self.dilation),
            before: with_columns(self.before),
            x: (self.x.0, self.x.1.with_adjacent_columns()),
            out: (self.out.0, self.out.1.with_adjacent_columns()),
            ..*self
        })
    }

    /// Returns which elements of a window are inside of the image along dim `d`: the position of
    /// the first one in the image, and their number.
    #[inline(always)]
    fn elements(&self, d: usize, at: usize) -> (usize, usize) {
        let (step, first) = (self.dilation[d], at.saturating_mul(self.stride[d]));
        // Avoid a division without dilation: it takes as long as several vectors of a line.
        let steps = |n: usize| if step == 1 { n } else { n.div_ceil(step) };
        let skipped = steps(self.before[d].saturating_sub(first));
        let end = self.input[d].saturating_add(self.before[d]).saturating_sub(first);
        let end = steps(end).min(self.kernel[d]);
        match skipped < end {
            true => (first + skipped * step - self.before[d], end - skipped),
            false => (0, 0),
        }
    }
}

/// The reduction of the elements of a pooling window to a result: maximum or mean.
trait Reduction<L> {
    /// Whether a result depends on the number of elements of its window, as a mean does.
    const COUNTS: bool;

    /// Returns the initial value of the reduction.
    ///
    /// # Safety
    /// The machine has the instructions of `L`. This holds for all methods.
    unsafe fn start() -> L;
    /// Combines an element with the intermediate value of the reduction.
    unsafe fn add(so_far: L, element: L) -> L;
    /// Converts the intermediate value of a window of `count` elements to the result.
    unsafe fn finish(so_far: L, count: usize) -> L;
    /// Converts the intermediate values of adjacent windows to results. All windows have `rows`
    /// rows. `columns` points to the number of columns of each window, and is read only if
    /// [`Self::COUNTS`] is true.
    unsafe fn finish_each(so_far: L, rows: f32, columns: *const f32) -> L;
}

/// The reduction of a pooling window to the maximum of its elements; NaN if an element is NaN.
struct Max;

impl<L: MathLanes<Elem = f32>> Reduction<L> for Max {
    const COUNTS: bool = false;

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

    #[inline(always)]
    unsafe fn finish_each(so_far: L, _: f32, _: *const f32) -> L {
        so_far
    }
}

/// The reduction of a pooling window to the mean of its elements; NaN if the window has no elements.
struct Mean;

impl<L: MathLanes<Elem = f32>> Reduction<L> for Mean {
    const COUNTS: bool = true;

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

    #[inline(always)]
    unsafe fn finish_each(so_far: L, rows: f32, columns: *const f32) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { so_far.div(L::load(columns).mul(L::splat(rows))) }
    }
}
