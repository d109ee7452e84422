//! Convolution of float32 in 1, 2 and 3 dims, without im2col.
//!
//! Recipe: channels last, so that the inputs under one row of the filter are adjacent. A tile of
//! the product kernel is up to 12 outputs along a line by a panel of filters. It adds the products of several runs of
//! `width * channels` adjacent inputs, one for each row of the filter, read in place at a uniform stride.
//! Weights are packed like any right operand. Taps that read
//! padding are skipped. Inputs with channels first are padded and transposed before, into scratch
//! memory of the size of the input, by all threads; others are read in place. A 1 x 1 filter
//! is a plain product over all pixels. Depthwise convolutions (`depthwise`) use vectors of
//! channels, and skip padding instead of writing it. Groups of few filters keep their sums in
//! registers over all taps (`grouped`), and so do one to four filters (`few_filters`). 3 x 3 filters that were transformed when the
//! program was compiled take 16 multiplications instead of 36, or 36 instead of 144 (`winograd`).
//!
//! The arguments and [`crate::rules::convolution`] decide which of these runs. Measured:
//! "Convolution" in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | `shape` | the checked sizes, and the positions of inputs and results |
//! | `margin` | inputs with padding, channels last |
//! | `implicit` | tiles of results |
//! | `line` | a line of results whose padding is skipped |
//! | `depthwise` | one filter per channel |
//! | `sweep` | the inner part of a line of a depthwise convolution, with weights in registers |
//! | `grouped` | groups of few filters |
//! | `few_filters` | one to four filters in all |
//! | `winograd` | 3 x 3 filters with fewer multiplications |
//! | `call` | the declared kernel |

mod call;
mod depthwise;
mod few_filters;
mod grouped;
mod implicit;
mod line;
mod margin;
pub(crate) mod shape;
mod sweep;
mod winograd;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};

use crate::epilogue::Epilogue;
pub use call::Conv;
use pliant_machine::isa::Isa;
use shape::Sizes;

/// An image for each batch. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Image<P> {
    /// The first element.
    pub data: P,
    /// The batch stride.
    pub batch: i64,
    /// The channel stride.
    pub channel: i64,
    /// The pixel stride of each dim.
    pub pixel: [i64; 3],
}

/// The arguments of a convolution. Images of fewer than 3 dims have leading dims of size 1, with filter size, stride and dilation 1
/// and no padding there.
///
/// Weights are the panels of a matrix `[taps * channels / groups, filters / groups]` for each group
/// (`pliant_tensor::pack_panels`), one group after the other; rows are taps in row-major order,
/// then channels. For several groups with one input channel and one filter each, the weights are a
/// matrix `[taps, channels]`, not packed; then input and results have channels last, and an
/// epilogue gets a line of results at a time. With channels last, groups of 2, 4 or 8 filters and
/// at most as many channels may share panels of 16 filters: panels
/// `[taps * channels / groups, 16]`, where the last one has only the remaining columns.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// Batch size.
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
    /// Size of the filter.
    pub kernel: [i64; 3],
    /// Strides, in pixels of the input.
    pub stride: [i64; 3],
    /// Dilations.
    pub dilation: [i64; 3],
    /// Padding before the input. The padding after it follows from the sizes.
    pub before: [i64; 3],
    /// Input.
    pub x: Image<*const f32>,
    /// Weights.
    pub weights: *const f32,
    /// Columns of a panel of weights, or those of a group if groups share panels; ignored if
    /// weights are not packed.
    pub width: i64,
    /// The Winograd tile size minus 3, for transformed 1 x 3 x 3 filters
    /// (`pliant_tensor::Winograd`): 1 for F(2x2), 3 for F(4x4), 0 if they are not transformed.
    /// Weights are panels of `[16 * channels, filters]`, or 36, with one number of all filters
    /// after the other. Strides and dilations are 1, there is one group, and channels are last.
    pub winograd: i64,
    /// Results. They must not overlap an operand.
    pub out: Image<*mut f32>,
    /// The epilogue: rows are pixels of an image, columns are filters.
    pub epilogue: Option<Epilogue>,
}

/// Computes a convolution with the given instruction set. Returns a kernel status.
///
/// # Safety
/// The machine has `isa`. The runtime is valid; all addressed elements are valid, including whole
/// panels and the operands of the epilogue; the results overlap no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution) -> i64 {
    let Some(s) = Sizes::of(c) else { return STATUS_BAD_ARGUMENTS };
    if s.batch == 0 || s.filters == 0 || s.pixels() == 0 {
        return STATUS_OK;
    }
    if c.winograd != 0 {
        let Some(form) = winograd::form(c, &s) else { return STATUS_BAD_ARGUMENTS };
        // SAFETY: guaranteed by the caller.
        return unsafe { winograd::run(isa, runtime, (c, &s), form) };
    }
    if s.is_depthwise() {
        if c.x.channel != 1 || c.out.channel != 1 {
            return STATUS_BAD_ARGUMENTS;
        }
        // SAFETY: guaranteed by the caller.
        return unsafe { depthwise::run(isa, runtime, c, &s) };
    }
    if grouped::applies(c, &s) {
        // SAFETY: guaranteed by the caller.
        return unsafe { grouped::run(isa, runtime, c, &s) };
    }
    if s.shared {
        // Channels are first.
        return STATUS_BAD_ARGUMENTS;
    }
    let (s, first) = s.cropped();
    let data = c.x.data.wrapping_offset(c.x.offset(0, first));
    let c = &Convolution { x: Image { data, ..c.x }, ..*c };
    if few_filters::applies(c, &s) {
        // SAFETY: guaranteed by the caller.
        return unsafe { few_filters::run(isa, runtime, c, &s) };
    }
    let s = s.flat(c);
    if s.in_place(c) {
        // SAFETY: guaranteed by the caller.
        return unsafe { implicit::run(isa, runtime, c, &s, &c.x) };
    }
    let Some(elements) = s.padded_elements() else { return STATUS_NO_MEMORY };
    // SAFETY: the runtime is valid; the block is freed below, on this thread.
    let block = unsafe { (runtime.alloc_workspace)((elements * size_of::<f32>()) as u64) };
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let padded = s.padded(block.cast());
    // SAFETY: the block has room for the padded images; guaranteed by the caller.
    let status = unsafe {
        let made = margin::make(isa, runtime, c, &s, &padded);
        let s = Sizes { input: s.padded, before: [0; 3], ..s };
        if made == STATUS_OK { implicit::run(isa, runtime, c, &s, &padded) } else { made }
    };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}
