//! Convolution of float32 in 1, 2 and 3 dims, without im2col.
//!
//! Method: implicit GEMM with channels last, so that the inputs under one row of the filter are
//! adjacent (`implicit_gemm`). A tile of the matmul micro-kernel has up to 12 results along an
//! output row and a panel of filters. The tile reads one run of `width * channels` adjacent inputs
//! per row of the filter, in place, with a uniform stride. Weights are packed like any right
//! operand. Taps that read padding are skipped. If the input has channels first, all threads first
//! copy it to padded scratch memory with channels last; otherwise it is read in place. A
//! convolution by 1 x 1 filters is a plain matrix product over all pixels.
//!
//! Other implementations cover special cases. Depthwise convolutions use vectors of channels
//! (`depthwise`). Convolutions with few filters per group (`grouped`), or with one to four filters
//! in total (`channels_last_few_filters`, `channels_first_few_filters`), keep their sums in
//! registers over all taps. 3 x 3 filters that the compiler transformed take 16 multiplications
//! instead of 36, or 36 instead of 144 (`winograd`).
//!
//! An attribute of the call selects Winograd's algorithm. The offload rule sets this attribute at compile time
//! (`pliant-opt/src/offload/rules/conv/conv_matcher.rs`). Without it, the arguments and [`crate::algorithm_selection::convolution`]
//! decide which implementation runs. For measurements, see "Convolution" in `docs/internals/measurements/convolution.md`.
//!
//! | module | owns |
//! |---|---|
//! | `shape_and_strides` | the checked sizes, and the positions of inputs and results |
//! | `padded_input_copy` | copies channels-first inputs to padded channels-last images |
//! | `implicit_gemm` | implicit GEMM |
//! | `output_line` | an output row, for implementations that skip taps in the padding |
//! | `depthwise` | depthwise convolution (one filter per channel) |
//! | `depthwise_interior` | the inner part of an output row of a depthwise convolution, with weights in registers |
//! | `grouped` | groups of few filters |
//! | `channels_last_few_filters` | one to four filters in total, with channels last |
//! | `channels_first_few_filters` | few channels and one to four filters |
//! | `winograd` | 3 x 3 filters with fewer multiplications |
//! | `entry_point` | the declared kernel |

mod channels_first_few_filters;
mod channels_last_few_filters;
mod depthwise;
mod depthwise_interior;
mod entry_point;
mod grouped;
mod implicit_gemm;
mod output_line;
mod padded_input_copy;
pub(crate) mod shape_and_strides;
mod winograd;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};

use crate::epilogue::Epilogue;
pub use entry_point::Conv;
use pliant_machine::isa::Isa;
use shape_and_strides::Sizes;

/// A batch of images: an address and strides, which count elements.
#[derive(Clone, Copy, Debug)]
pub struct Image<P> {
    /// The address of the first element of the first image.
    pub data: P,
    /// The stride between images, in elements.
    pub batch: i64,
    /// The stride between channels, in elements.
    pub channel: i64,
    /// For each dim, the stride between adjacent pixels, in elements.
    pub pixel: [i64; 3],
}

/// The arguments of a convolution. For convolutions in 1 or 2 dims, the leading dims have size 1,
/// with filter size, stride and dilation 1 and no padding.
///
/// The layout of the weights depends on the groups:
/// - In general, each group has the panels of a matrix `[taps * channels / groups, filters /
///   groups]` (`pliant_tensor::pack_panels`), one group after the other. Rows are taps in row-major
///   order, then channels.
/// - In a depthwise convolution, there are several groups, and each has one input channel and one
///   filter. The weights are a matrix `[taps, channels]`, which is not packed. Input and results
///   have channels last. An epilogue is applied to one output row at a time.
/// - Groups of 2, 4 or 8 filters and at most as many channels may share panels of 16 filters, if
///   channels are last. The panels are `[taps * channels / groups, 16]`; the last one has only the
///   remaining columns.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// Batch size (number of images).
    pub batch: i64,
    /// Number of channels of the input.
    pub channels: i64,
    /// Number of filters, which is the number of channels of the results.
    pub filters: i64,
    /// Number of groups into which channels and filters are divided.
    pub groups: i64,
    /// The size of the input in each dim.
    pub input: [i64; 3],
    /// The size of the results in each dim.
    pub output: [i64; 3],
    /// The size of the filter in each dim.
    pub kernel: [i64; 3],
    /// The stride in each dim, in pixels of the input.
    pub stride: [i64; 3],
    /// The dilation of the filter in each dim.
    pub dilation: [i64; 3],
    /// The padding before the input, in each dim. The padding after the input follows from the sizes.
    pub before: [i64; 3],
    /// The input images: address and strides.
    pub x: Image<*const f32>,
    /// The address of the weights, which are packed into panels except for depthwise convolutions.
    pub weights: *const f32,
    /// Number of columns of a panel of weights, or number of filters of a group if groups share
    /// panels. Ignored if weights are not packed.
    pub width: i64,
    /// The Winograd variant, as the input tile size minus 3, for transformed 1 x 3 x 3 filters
    /// (`pliant_tensor::Winograd`): 1 for F(2x2), 3 for F(4x4), 0 if the filters are not
    /// transformed. The weights are panels of `[16 * channels, filters]` or `[36 * channels,
    /// filters]`; rows are the elements of a transformed filter, then channels. Transformed filters
    /// require strides and dilations of 1, one group, and channels last.
    pub winograd: i64,
    /// The result images. They must not overlap an operand.
    pub out: Image<*mut f32>,
    /// The epilogue: operations on the results, such as bias and activation; `None` for none. Its
    /// rows are pixels of an image, its columns are filters.
    pub epilogue: Option<Epilogue>,
}

/// Computes a convolution with the given instruction set. Returns a kernel status: `STATUS_BAD_ARGUMENTS` for inconsistent or
/// unsupported arguments, `STATUS_NO_MEMORY` if scratch memory cannot be allocated.
///
/// # Safety
/// The machine has `isa`. The runtime is valid. All addressed elements are valid, including whole panels and the operands of the
/// epilogue. The results overlap no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution) -> i64 {
    let Some(s) = Sizes::of(c) else { return STATUS_BAD_ARGUMENTS };
    if s.batch == 0 || s.filters == 0 || s.pixels() == 0 {
        return STATUS_OK;
    }
    if c.winograd != 0 {
        let Some(algorithm) = winograd::algorithm(c, &s) else { return STATUS_BAD_ARGUMENTS };
        // SAFETY: guaranteed by the caller.
        return unsafe { winograd::run(isa, runtime, (c, &s), algorithm) };
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
        // Only `grouped` supports shared panels, and it requires channels last.
        return STATUS_BAD_ARGUMENTS;
    }
    let (s, first_pixel) = s.without_padding_taps();
    let data = c.x.data.wrapping_offset(c.x.offset(0, first_pixel));
    let c = &Convolution { x: Image { data, ..c.x }, ..*c };
    if channels_first_few_filters::applies(c, &s) {
        // SAFETY: guaranteed by the caller.
        return unsafe { channels_first_few_filters::run(isa, runtime, c, &s) };
    }
    if channels_last_few_filters::applies(c, &s) {
        // SAFETY: guaranteed by the caller.
        return unsafe { channels_last_few_filters::run(isa, runtime, c, &s) };
    }
    let s = s.flattened(c);
    if s.has_channels_last(c) {
        // SAFETY: guaranteed by the caller.
        return unsafe { implicit_gemm::run(isa, runtime, c, &s, &c.x) };
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
        let status = padded_input_copy::copy_padded(isa, runtime, c, &s, &padded);
        let s = Sizes { input: s.padded, before: [0; 3], ..s };
        if status == STATUS_OK { implicit_gemm::run(isa, runtime, c, &s, &padded) } else { status }
    };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}
