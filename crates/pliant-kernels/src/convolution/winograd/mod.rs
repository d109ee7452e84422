//! Winograd convolution for 3 x 3 filters: F(2x2, 3x3) takes 16 multiplications for 4 results
//! instead of 36, and F(4x4, 3x3) takes 36 multiplications for 16 results instead of 144.
//!
//! Method (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015): the input
//! transform `B^T d B` is applied to 4 x 4 inputs for each tile of 2 x 2 results (6 x 6 for 4 x 4),
//! with vectors of channels. For each element of a transformed tile, one matrix product multiplies
//! that element of all tiles of a block by the weights. The compiler has applied the filter
//! transform `G g G^T` to the weights. The output transform `A^T m A` computes the results, to
//! which the epilogue is applied row by row. Padding is not read but taken as zeros. The inputs of
//! a block and the sums of one panel of filters are in scratch memory: about 1 MB, half of a
//! second-level cache. A block has a minimum number of tiles, so it takes more with many channels
//! (above 682 for F(2x2), above 303 for F(4x4)). If there are few blocks, threads first transform
//! the inputs together, then share the panels of each block.
//!
//! The following speedups were measured with one and two threads. Compared with implicit GEMM,
//! F(2x2) is 1.6 and 1.5 times as fast at 56 x 56 x 64, 1.7 and 1.8 times at 28 x 28 x 128, 1.9 and
//! 2.1 times at 14 x 14 x 256, and 1.1 and 1.0 times at 5 x 5 x 256. It is 0.6 and 0.85 times as
//! fast at 3 x 3 x 256, where the transformed weights are read for only four tiles. Compared with
//! F(2x2), F(4x4) is 1.6 and 1.4 times as fast at 56 x 56 x 64, 1.8 and 1.4 times at 28 x 28 x 128,
//! 1.1 times at 14 x 14 x 256, and 0.6 and 0.7 times at 7 x 7 x 512.
//!
//! Rounding: F(2x2) doubles the error of a plain sum, to about 5e-7 of the largest result, by the
//! sums of three and four terms before and after the products. The factors up to 8 of F(4x4)
//! increase it to 6e-6 to 1e-5, so F(4x4) must be requested. A result of F(2x2) depends only on the
//! inputs under its filter: an infinity among them gives infinity or NaN. F(4x4) spreads an
//! infinity or NaN to results of the same tile that do not read it, sometimes to the whole tile.
//!
//! | module | owns |
//! |---|---|
//! | `transform` | the input and output transforms of one tile |

mod transform;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_tensor::Winograd;
use transform::{Inputs, Outputs};

use super::Convolution;
use super::shape_and_strides::Sizes;
use crate::algorithm_selection::convolution::{block_tiles, by_blocks, transformed_unit};
use crate::algorithm_selection::packed_operand_matmul::prefetched_bytes;
use crate::epilogue::{EpilogueTile, Position};
use crate::matmul::PackedProduct;
use crate::matmul::work_partition::{even_part, parallel_for, pieces, unit_work};
use crate::scratch_memory::Scratch;
use pliant_machine::isa::Isa;

/// The parameters of the convolution that all pieces of work share.
struct WinogradConvolution<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    algorithm: Winograd,
    /// The numbers of tiles of an image, along its height and its width.
    tiles: [usize; 2],
    /// Number of tiles of all images.
    tile_count: usize,
    /// Number of blocks into which the tiles of all images are divided.
    blocks: usize,
    /// Number of panels into which the filters are divided.
    panels: usize,
    /// Number of columns (filters) of a panel.
    width: usize,
}

/// Returns the variant of the Winograd algorithm for which the weights are transformed. Returns
/// `None` if the convolution is not supported: it must have 2 dims, 3 x 3 taps with stride and
/// dilation 1, one group, and channels last.
pub(super) fn algorithm(c: &Convolution, s: &Sizes) -> Option<Winograd> {
    let algorithms = [Winograd::Two, Winograd::Four];
    let algorithm = algorithms.into_iter().find(|a| a.input_tile() as i64 - 3 == c.winograd)?;
    let is_supported = s.kernel == [1, 3, 3]
        && s.stride == [1; 3]
        && s.dilation == [1; 3]
        && s.before[0] == 0
        && s.input[0] == 1
        && s.output[0] == 1
        && s.groups == 1
        && c.x.channel == 1
        && c.out.channel == 1;
    is_supported.then_some(algorithm)
}

/// Computes a convolution with transformed weights. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. `algorithm` is the result of the function [`algorithm`] for this
/// convolution. All elements of the operands and the results are valid, and the results overlap no
/// operand.
pub(super) unsafe fn run(
    isa: Isa,
    runtime: &KernelRuntime,
    (c, s): (&Convolution, &Sizes),
    algorithm: Winograd,
) -> i64 {
    let tiles = [s.output[1], s.output[2]].map(|d| d.div_ceil(algorithm.output_tile()));
    let tile_elements = algorithm.filter_elements();
    let tile_count = s.batch * tiles[0] * tiles[1];
    let width = c.width as usize;
    let max_block_tiles = block_tiles(tile_elements, s.channels);
    let w = WinogradConvolution {
        c,
        s,
        isa,
        algorithm,
        tiles,
        tile_count,
        blocks: tile_count.div_ceil(max_block_tiles),
        panels: s.filters.div_ceil(width),
        width,
    };
    let tile_work = tile_elements.saturating_mul(s.channels).saturating_mul(s.filters);
    let micros = tile_count.saturating_mul(tile_work) / unit_work();
    if by_blocks(w.blocks, micros) {
        let piece = |block: usize| {
            let inputs = w.block_tiles(block).len() * w.tile_inputs();
            let inputs = inputs.next_multiple_of(LINE);
            // SAFETY: guaranteed by the caller; blocks write disjoint results, and the memory
            // belongs to this thread.
            let compute = |v: *mut f32| unsafe {
                w.transform_inputs(block, w.block_tiles(block), v);
                w.compute_panels(block, v, v.add(inputs), 0..w.panels);
                STATUS_OK
            };
            SCRATCH.with(|s| s.with(inputs + w.block_sums(block), compute))
        };
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        return unsafe { parallel_for(runtime, w.blocks, micros / w.blocks, &piece) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { w.run_by_panels(runtime, micros) }
}

/// Number of float32 elements of a cache line, to which the transformed results of a block are aligned in scratch memory.
const LINE: usize = 16;

thread_local! {
    static SCRATCH: Scratch = const { Scratch::new() };
}

impl WinogradConvolution<'_> {
    /// Returns the range of tiles of a block.
    fn block_tiles(&self, block: usize) -> Range<usize> {
        even_part(self.tile_count, 1, block, self.blocks)
    }

    /// Returns the number of elements of the transformed inputs of a tile, over all channels.
    fn tile_inputs(&self) -> usize {
        self.algorithm.filter_elements() * self.s.channels
    }

    /// Returns the number of transformed results (before the output transform) of one block of
    /// tiles and one panel of filters.
    fn block_sums(&self, block: usize) -> usize {
        self.algorithm.filter_elements() * self.block_tiles(block).len() * self.width
    }

    /// Computes the convolution in two parallel loops: over tiles, to transform the inputs of all
    /// blocks, then over blocks and panels. `micros` is the approximate time of the matrix products
    /// in microseconds. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn run_by_panels(&self, runtime: &KernelRuntime, micros: usize) -> i64 {
        let elements = self.tile_count.checked_mul(self.tile_inputs());
        let bytes = elements.and_then(|elements| elements.checked_mul(size_of::<f32>()));
        let Some(bytes) = bytes else { return STATUS_NO_MEMORY };
        // SAFETY: the runtime is valid; the memory is freed below, on this thread.
        let memory = unsafe { (runtime.alloc_workspace)(bytes as u64) }.cast::<f32>();
        if memory.is_null() {
            return STATUS_NO_MEMORY;
        }
        let inputs =
            |block: usize| memory.wrapping_add(self.block_tiles(block).start * self.tile_inputs());
        let group_size = self.tile_count.div_ceil(pieces()).max(1);
        let transform_group = |group: usize| {
            for tile in group * group_size..self.tile_count.min((group + 1) * group_size) {
                let block = (0..self.blocks).find(|&b| self.block_tiles(b).contains(&tile));
                let block = block.unwrap_or_default();
                // SAFETY: guaranteed by the caller; the inputs of tiles are disjoint.
                unsafe { self.transform_inputs(block, tile..tile + 1, inputs(block)) };
            }
            STATUS_OK
        };
        let group_micros = self.tile_inputs() * group_size / transformed_unit();
        let groups = self.tile_count.div_ceil(group_size);
        let pieces_per_block = pieces().div_ceil(self.blocks).min(self.panels);
        let panel_pieces = self.blocks * pieces_per_block;
        let piece = |index: usize| {
            let (block, part) = (index / pieces_per_block, index % pieces_per_block);
            let panels = even_part(self.panels, 1, part, pieces_per_block);
            // SAFETY: guaranteed by the caller; panels and blocks write disjoint results.
            let compute = |m: *mut f32| unsafe {
                self.compute_panels(block, inputs(block), m, panels);
                STATUS_OK
            };
            SCRATCH.with(|s| s.with(self.block_sums(block), compute))
        };
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        let status = unsafe {
            match parallel_for(runtime, groups, group_micros, &transform_group) {
                STATUS_OK => parallel_for(runtime, panel_pieces, micros / panel_pieces, &piece),
                status => status,
            }
        };
        // SAFETY: as above.
        unsafe { (runtime.free_workspace)(memory.cast()) };
        status
    }

    /// Returns the image, the tile row and the tile column of a tile.
    fn tile_position(&self, tile: usize) -> (usize, usize, usize) {
        let [down, across] = self.tiles;
        (tile / (down * across), tile / across % down, tile % across)
    }

    /// Applies the input transform to some tiles of a block, and stores the results in `v`.
    ///
    /// # Safety
    /// The conditions of [`run`] hold. `v` has room for the transformed inputs of the block.
    unsafe fn transform_inputs(&self, block: usize, tiles: Range<usize>, v: *mut f32) {
        let (s, x) = (self.s, &self.c.x);
        let block_tiles = self.block_tiles(block);
        let transform = transform::input_transform(self.isa, self.algorithm);
        let (output_tile, input_tile) =
            (self.algorithm.output_tile(), self.algorithm.input_tile() as isize);
        for tile in tiles {
            let (batch, row, column) = self.tile_position(tile);
            let [top, left] =
                [(output_tile * row, s.before[1]), (output_tile * column, s.before[2])]
                    .map(|(position, before)| position as isize - before as isize);
            let range_inside = |first: isize, size: usize| {
                let low = (-first).clamp(0, input_tile);
                low as usize..(size as isize - first).clamp(low, input_tile) as usize
            };
            let first =
                x.offset(batch, [0; 3]) + top * x.pixel[1] as isize + left * x.pixel[2] as isize;
            let t = Inputs {
                x: x.data.wrapping_offset(first),
                pixel: x.pixel[2] as isize,
                line: x.pixel[1] as isize,
                lines: range_inside(top, s.input[1]),
                pixels: range_inside(left, s.input[2]),
                channels: s.channels,
                to: v.wrapping_add((tile - block_tiles.start) * s.channels),
                element_stride: block_tiles.len() * s.channels,
            };
            // SAFETY: guaranteed by the caller.
            unsafe { transform(&t) };
        }
    }

    /// Computes the results of a block of tiles, for some panels of filters.
    ///
    /// # Safety
    /// The conditions of [`run`] hold. `v` contains the transformed inputs of the block, and `m`
    /// has room for its sums.
    unsafe fn compute_panels(
        &self,
        block: usize,
        v: *const f32,
        m: *mut f32,
        panels: Range<usize>,
    ) {
        let (s, tiles) = (self.s, self.block_tiles(block).len());
        let elements = self.algorithm.filter_elements();
        let sums = tiles * self.width;
        for panel in panels {
            for element in 0..elements {
                let weights = (panel * elements + element) * s.channels * self.width;
                let product = PackedProduct {
                    m: tiles,
                    n: self.width.min(s.filters - panel * self.width),
                    k: s.channels,
                    a: (v.wrapping_add(element * tiles * s.channels), s.channels as isize, 1),
                    b: self.c.weights.wrapping_add(weights),
                    width: self.width,
                    b_in_memory: elements * s.channels * s.filters
                        > prefetched_bytes() / size_of::<f32>(),
                    c: (m.wrapping_add(element * sums), self.width as isize),
                    accumulate: false,
                };
                // SAFETY: guaranteed by the caller; the sums have room. A single panel needs no memory for copies of rows.
                unsafe { product.compute_block(self.isa, 0..tiles, 0..1) };
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.transform_outputs(block, m, panel) };
        }
    }

    /// Applies the output transform to the transformed results `m` of a block of tiles and one
    /// panel of filters, stores the results, and applies the epilogue.
    ///
    /// # Safety
    /// The conditions of [`run`] hold. `m` contains the sums of the block and the panel.
    unsafe fn transform_outputs(&self, block: usize, m: *const f32, panel: usize) {
        let (s, out) = (self.s, &self.c.out);
        let tiles = self.block_tiles(block);
        let (filter, tile_size) = (panel * self.width, self.algorithm.output_tile());
        let transform = transform::output_transform(self.isa, self.algorithm);
        let columns = self.width.min(s.filters - filter);
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (batch, tile_row, tile_column) = self.tile_position(tile);
            // The epilogue is applied to the tiles of one line together.
            let count = (self.tiles[1] - tile_column).min(tiles.end - tile);
            let [y, x] = [tile_size * tile_row, tile_size * tile_column];
            let first = out.offset(batch, [0, y, x]) + filter as isize;
            let lines = (s.output[1] - y).min(tile_size);
            for i in 0..count {
                let t = Outputs {
                    from: m.wrapping_add((tile + i - tiles.start) * self.width),
                    element_stride: tiles.len() * self.width,
                    columns,
                    out: out
                        .data
                        .wrapping_offset(first + (tile_size * i) as isize * out.pixel[2] as isize),
                    pixel: out.pixel[2] as isize,
                    line: out.pixel[1] as isize,
                    lines,
                    pixels: (s.output[2] - x - tile_size * i).min(tile_size),
                };
                // SAFETY: guaranteed by the caller.
                unsafe { transform(&t) };
            }
            tile += count;
            let Some(epilogue) = &self.c.epilogue else { continue };
            for line in 0..lines {
                let line_offset = first + line as isize * out.pixel[1] as isize;
                let results = EpilogueTile {
                    data: out.data.wrapping_offset(line_offset),
                    row_stride: out.pixel[2] as isize,
                    rows: (s.output[2] - x).min(tile_size * count),
                    columns,
                    position: Position { batch, row: (y + line) * s.output[2] + x, column: filter },
                };
                // SAFETY: the sums are complete; guaranteed by the caller.
                unsafe { epilogue.finish(self.isa, &results) };
            }
        }
    }
}
