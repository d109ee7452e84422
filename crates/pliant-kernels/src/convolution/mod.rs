//! Convolution of float32 in 1, 2 and 3 dims, without a matrix of patches.
//!
//! Recipe: channels last, so that the inputs under one row of the kernel are neighbours. A tile of the product kernel is up to six
//! outputs along a line by a panel of filters; for each row of the kernel it runs over `width * channels` neighbours, read in place
//! at even distances, and keeps adding to the same results. Weights are packed like any right operand. Margins of zeros, and
//! inputs whose channels come first, are made once before, into scratch memory of the size of the input, by threads together;
//! without margins the input is read in place. A 1 x 1 kernel is a plain product over all pixels. Where each channel has a filter
//! of its own (`depthwise`), vectors lie along the channels, and margins are left out rather than made. Groups of few
//! filters keep their sums in registers over all taps (`grouped`). Kernels of 3 x 3 that were turned when the program was compiled
//! take 16 multiplications for 36, or 36 for 144 (`winograd`).
//!
//! Which of these runs says the structure, and [`crate::rules::convolution`]. Measured: "Convolution" in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | `shape` | the sizes, checked, and the places of inputs and results |
//! | `margin` | inputs with margins, channels last |
//! | `implicit` | tiles of results |
//! | `depthwise` | one filter for each channel |
//! | `sweep` | the same along the inner part of a line, with weights in registers |
//! | `grouped` | few filters to a group |
//! | `winograd` | kernels of 3 x 3 in fewer multiplications |
//! | `call` | the declared kernel |

mod call;
mod depthwise;
mod grouped;
mod implicit;
mod margin;
pub(crate) mod shape;
mod sweep;
mod winograd;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};

use crate::epilogue::Epilogue;
use crate::isa::{Isa, isa};
pub use call::Conv;
use shape::Sizes;

/// An image for each batch. Strides count elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Image<P> {
    /// First element.
    pub data: P,
    /// From batch to batch.
    pub batch: i64,
    /// From channel to channel.
    pub channel: i64,
    /// From pixel to pixel, in each dim.
    pub pixel: [i64; 3],
}

/// One convolution: 64-bit words, so that generated code may write them as an array. Images of fewer than 3 dims have first dims of
/// size 1, with kernels of 1, strides and dilations of 1 and no margins there.
///
/// Weights are the panels of a matrix `[taps * channels / groups, filters /
/// groups]` for each group (`pliant_tensor::pack_panels`), one group after the other; rows are taps in row-major order, then
/// channels. With one input and one filter to each of several groups they are a matrix `[taps, channels]`, not packed; then the
/// channels of input and results come last, and an epilogue gets a line of results at a time. Groups of 2, 4 or 8 filters and no
/// more channels may share panels of 16 filters, where channels come last: panels `[taps * channels / groups, 16]`, the last of
/// which has as many columns as filters are left.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// Images.
    pub batch: i64,
    /// Channels of the input.
    pub channels: i64,
    /// Channels of the results.
    pub filters: i64,
    /// Groups of channels and of filters.
    pub groups: i64,
    /// Size of the input.
    pub input: [i64; 3],
    /// Size of the results.
    pub output: [i64; 3],
    /// Size of the kernel.
    pub kernel: [i64; 3],
    /// From result to result, in pixels of the input.
    pub stride: [i64; 3],
    /// From tap to tap.
    pub dilation: [i64; 3],
    /// Zeros before the input. Those after it follow from the sizes.
    pub before: [i64; 3],
    /// Input.
    pub x: Image<*const f32>,
    /// Weights.
    pub weights: *const f32,
    /// Columns of a panel of weights, or those of a group where groups share panels; not read where they are not packed.
    pub width: i64,
    /// By how many numbers along a dim kernels of 1 x 3 x 3 grew when they were turned (`pliant_tensor::Winograd`): 1 for F(2x2), 3
    /// for F(4x4), 0 where they were not. Weights are panels of `[16 * channels, filters]`, or 36, one number of all kernels
    /// after the other. Steps and dilations are 1, there is one group, and channels come last.
    pub winograd: i64,
    /// Results, which overlap no operand.
    pub out: Image<*mut f32>,
    /// Whether an epilogue finishes the results.
    pub has_epilogue: i64,
    /// It: rows are pixels of an image, columns are filters. Not read without.
    pub epilogue: Epilogue,
}

/// [`pliant_convolution_f32`] with these instructions.
///
/// # Safety
/// The machine has `isa`; as for [`pliant_convolution_f32`].
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution) -> i64 {
    let Some(s) = Sizes::of(c) else { return STATUS_BAD_ARGUMENTS };
    if s.batch == 0 || s.filters == 0 || s.pixels() == 0 {
        return STATUS_OK;
    }
    if c.winograd != 0 {
        let Some(form) = winograd::form(c, &s) else { return STATUS_BAD_ARGUMENTS };
        // SAFETY: the caller's promise.
        return unsafe { winograd::run(isa, runtime, (c, &s), form) };
    }
    if s.is_depthwise() {
        if c.x.channel != 1 || c.out.channel != 1 {
            return STATUS_BAD_ARGUMENTS;
        }
        // SAFETY: the caller's promise.
        return unsafe { depthwise::run(isa, runtime, c, &s) };
    }
    if grouped::applies(c, &s) {
        // SAFETY: the caller's promise.
        return unsafe { grouped::run(isa, runtime, c, &s) };
    }
    if s.shared {
        // Channels come first.
        return STATUS_BAD_ARGUMENTS;
    }
    let (s, first) = s.cropped();
    let data = c.x.data.wrapping_offset(c.x.offset(0, first));
    let c = &Convolution { x: Image { data, ..c.x }, ..*c };
    let s = s.flat(c);
    if s.in_place(c) {
        // SAFETY: the caller's promise.
        return unsafe { implicit::run(isa, runtime, c, &s, &c.x) };
    }
    let Some(elements) = s.padded_elements() else { return STATUS_NO_MEMORY };
    // SAFETY: the runtime lives; the block is given back below, on this thread.
    let block = unsafe { (runtime.alloc_workspace)((elements * size_of::<f32>()) as u64) };
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let padded = s.padded(block.cast());
    // SAFETY: the block has room for the padded images; the caller's promise.
    let status = unsafe {
        let made = margin::make(isa, runtime, c, &s, &padded);
        if made == STATUS_OK { implicit::run(isa, runtime, c, &s, &padded) } else { made }
    };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}

/// A convolution, called by generated code with the address of its structure. Returns a kernel status.
///
/// # Safety
/// The runtime lives; all addressed elements are valid, and all of each panel; the results overlap no operand; the epilogue takes
/// its operands.
pub unsafe extern "C" fn pliant_convolution_f32(
    runtime: *const KernelRuntime,
    convolution: *const Convolution,
) -> i64 {
    // SAFETY: the caller's promise; the instructions are those of the machine.
    unsafe { run(isa(), &*runtime, &*convolution) }
}
