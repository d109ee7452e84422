//! Rules for convolutions: choice of the implementation at run time, and sizes of blocks.
//!
//! Winograd's algorithm needs transformed filters, so the offload rule chooses it at compile time
//! (`pliant-opt/src/offload/rules/conv/conv_matcher.rs`, by
//! `pliant-machine/src/compile_time_profitability.rs`). The rules of this file choose among the
//! other implementations, and the block sizes of all implementations.

use pliant_machine::Machine;
/// Whether the groups of a grouped convolution are small enough to share panels of packed weights.
pub use pliant_tensor::may_share_panels;

use super::partition::pieces;

/// Maximum number of output pixels of a block. The kernel multiplies the inputs of all pixels of a
/// block by one slice of the weights after the other. The results of a block for 64 filters take up
/// to three quarters of the first-level cache. On Emerald Rapids, blocks of 96 pixels with slices
/// are 1.2 times as fast as without slices at 7 x 7 x 512, and as fast at other sizes. On Zen 5,
/// blocks of 64 pixels take 1.05 to 1.2 times as long.
pub fn block_pixels() -> usize {
    (Machine::host().caches.l1 / 4 * 3 / (64 * size_of::<f32>())).clamp(24, MAX_BLOCK_PIXELS)
}
/// Maximum value of [`block_pixels`] on any machine, by which the kernels' scratch memory is sized.
pub const MAX_BLOCK_PIXELS: usize = 96;
/// Returns the number of pieces of work into which a convolution with only a few blocks of results is divided. This value was not
/// measured.
pub fn short_pieces() -> usize {
    2 * pieces()
}
/// Number of multiply-adds that a depthwise convolution computes per microsecond.
pub fn depthwise_unit() -> usize {
    Machine::host().rates.depthwise
}
/// Maximum number of filters for which convolutions are computed by dot products over channels.
pub const FEW_FILTERS: usize = 4;

/// Whether a convolution by few filters is faster as dot products over channels than with panels of 16 filters, which
/// would mostly be padding. Each dot product ends with a horizontal sum, which takes about as long as a few vector
/// multiply-adds.
pub const fn few_filters_are_faster(filters: usize, channels: usize, taps: usize) -> bool {
    filters <= FEW_FILTERS && channels >= 8 && channels.saturating_mul(taps) >= 64
}

/// Whether vectors of adjacent results are faster than vectors of channels or filters, for output rows of `line` pixels. The input
/// is first copied to one plane for each channel. Time relative to the implementations with vectors of channels or filters, for 3
/// images of 74 x 91 with 3 x 3 filters and one thread (AMD EPYC with AVX-512): 0.34 for 3 channels and 3 filters, 0.15 for 1
/// channel and 1 filter, 0.46 to 0.74 for 16 to 32 channels and 1 filter, 0.4 to 0.63 for 16 to 64 channels and 4 filters, 1.17 for
/// 64 channels and 1 filter.
pub const fn few_channels_are_faster(filters: usize, channels: usize, line: usize) -> bool {
    filters <= FEW_FILTERS && (channels <= 4 || line >= 8 && channels <= 16 * (filters + 1))
}

/// Number of taps of a filter row for which depthwise convolutions use the sweep, which loads each input once for all taps
/// of a filter row.
pub const SWEPT_TAPS: usize = 3;

/// Whether an output row of a depthwise convolution is computed as a sweep, which loads each input
/// once for all taps of a filter row instead of once for each tap. Speedups by sweeps with one
/// thread and AVX-512: 1.5 for output rows of 28 to 112 pixels, 1.05 to 1.6 for 14 and 7 pixels;
/// with AVX2: 1.2 to 1.4 and 0.9 to 1.1. With stride 2, where adjacent results share fewer inputs,
/// a sweep took 1.2 times as long.
pub const fn sweeps(taps: usize, stride: usize, dilation: usize) -> bool {
    taps == SWEPT_TAPS && stride == 1 && dilation == 1
}

/// Approximate number of output rows in a piece of work of a grouped convolution. Each piece copies
/// its input rows into a line buffer of its own: with 3 x 3 filters, two rows more than it has
/// output rows. This value was not measured.
const BAND_LINES: usize = 16;
/// Minimum number of output rows in a piece of work of a grouped convolution, if the convolution
/// has fewer pieces than [`short_pieces`]. This value was not measured. With 3 x 3 filters, four
/// output rows need six rows of inputs.
const MIN_BAND_LINES: usize = 4;
/// Maximum panel width, in columns (filters), of a group that has its own panels, for the implementation of grouped convolution
/// with few filters per group: two vectors of 512 bits. For 3 x 3 filters with stride 1 and 32 groups, this implementation is 12
/// times as fast as the GEMM for 4 channels per group, 5 times for 8, 3 times for 16 and 2 times for 32.
const MAX_GROUP_WIDTH: i64 = 32;
/// Maximum number of elements of a line buffer, which contains copies of the input rows that an
/// output row of a grouped convolution depends on: half of the first-level cache. A line buffer may
/// be larger if the shortest permitted part of an output row needs more elements. This value was
/// not measured.
pub fn line_elements() -> usize {
    Machine::host().caches.l1 / 2 / size_of::<f32>()
}

/// Whether the sums of a group's panel of `width` columns stay in registers over all taps.
pub const fn sums_fit_registers(width: i64) -> bool {
    width <= MAX_GROUP_WIDTH
}

/// Returns the number of bands (ranges of output rows) into which an image of `lines` output rows
/// is divided in a grouped convolution, if each band is further divided into `other_pieces` pieces.
pub fn bands(lines: usize, other_pieces: usize) -> usize {
    let bands = lines.div_ceil(BAND_LINES).max(short_pieces().div_ceil(other_pieces));
    bands.min(lines.div_ceil(MIN_BAND_LINES))
}

/// Maximum number of input elements of a Winograd block, unless [`MIN_TILES`] need more. The elements fit in the second-level cache
/// and take at most 1 MB. With half of this limit, convolutions take up to 1.05 times as long on Zen 5.
fn block_elements() -> usize {
    Machine::host().caches.l2.min(1 << 20) / size_of::<f32>()
}
/// Maximum number of tiles of a Winograd block. The tiles are the rows of the left operand of the matrix products. More tiles would
/// gain little: products of 64 rows are nearly as fast per row as products of 256 rows (table "Products with packed weights" in
/// `docs/internals/measurements/products.md`).
const MAX_TILES: usize = 96;
/// Minimum number of tiles of a Winograd block. Products of at least 16 rows reach 81 % and more of the peak (same table).
const MIN_TILES: usize = 24;
/// Approximate number of elements to which the Winograd input transform is applied per microsecond:
/// half of the number of elements that are copied per microsecond. This value was not measured.
pub fn transformed_unit() -> usize {
    Machine::host().rates.copied / 2
}

/// Returns the number of tiles of a Winograd block, for transformed tiles of `elements` elements and `channels` channels.
pub fn block_tiles(elements: usize, channels: usize) -> usize {
    (block_elements() / (elements * channels.max(1))).clamp(MIN_TILES, MAX_TILES)
}

/// Whether each thread computes whole Winograd blocks. It does so if there are enough blocks for
/// all threads, or too little work to synchronize the threads twice: `units` is the work of the
/// whole convolution in microseconds of one thread. Otherwise, the threads transform the inputs
/// together and then share the panels of each block. The thresholds were not measured.
pub fn by_blocks(blocks: usize, units: usize) -> bool {
    blocks >= pieces() || units < 2 * pieces()
}
