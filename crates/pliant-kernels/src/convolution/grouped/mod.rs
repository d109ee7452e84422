//! Grouped convolution with few filters per group. A vector holds adjacent filters of one or
//! several groups, and up to 14 results along an output row share the loaded weights.
//!
//! If a vector holds filters of several groups, each lane needs a channel of its own group. Inputs
//! are permuted once for each channel of a group, when they are copied with their padding into a
//! line buffer (`line_buffer`); the copies serve all taps. If all filters belong to one group, each
//! input is broadcast to all lanes. The sums stay in registers over all taps.
//!
//! Method: direct convolution on a line buffer of input rows. For measurements, see the cases with
//! groups under "Convolution" in `docs/internals/measurements/convolution.md`.
//!
//! | module | owns |
//! |---|---|
//! | `filter_blocks` | the division of filters into blocks that are computed together |
//! | `line_buffer` | the line buffer of inputs |
//! | `register_tiles` | register tiles of results |

mod filter_blocks;
mod line_buffer;
mod register_tiles;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};

use super::Convolution;
use super::shape_and_strides::Sizes;
use crate::algorithm_selection::convolution::{bands, sums_fit_registers};
use crate::epilogue::{EpilogueTile, Position};
use crate::matmul::work_partition::{even_part, parallel_for, unit_work};
use crate::simd::for_isa;
use crate::simd::lane_permutation::Permute;
use filter_blocks::{Block, FilterBlocks};
use line_buffer::LineBuffer;
use pliant_machine::isa::Isa;
use register_tiles::{Line, max_results};

/// The parameters of a grouped convolution that all pieces of work share.
struct GroupedConvolution<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    filter_blocks: FilterBlocks,
    buffer: LineBuffer,
    /// The number of parts into which each output row is divided.
    parts: usize,
    /// The number of bands (ranges of output rows) into which each image is divided.
    bands: usize,
}

/// A piece of work of a grouped convolution, which one thread computes: the results of a block of
/// filters in a band (range of output rows), for the same part of each output row.
struct Piece<'a> {
    w: &'a GroupedConvolution<'a>,
    block: Block,
    batch: usize,
    z: usize,
    ys: Range<usize>,
    xs: Range<usize>,
    /// The memory of the line buffer that this piece of work uses.
    buffer: *mut f32,
    /// The address of the weights of the block of filters, which are read in place or from a padded
    /// copy.
    weights: *const f32,
    /// The distance between rows of weights, in elements.
    weight_row_stride: usize,
}

/// Whether this implementation supports a convolution: channels are last, and either groups share
/// panels, or each group has one narrow panel.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    let last = c.x.channel == 1 && c.out.channel == 1;
    s.groups > 1 && last && (s.shared || sums_fit_registers(c.width))
}

/// Computes a convolution. Input and results have channels last. Returns a kernel status: 0 on
/// success.
///
/// # Safety
/// The machine has `isa`. All elements of the operands and the results are valid, and the results
/// overlap no operand.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let (line, lanes) = for_isa!(isa, compute_line(p: &Piece<'_>, y: usize, new: Range<usize>));
    let filter_blocks = FilterBlocks::new(c, s, lanes);
    let min_results = max_results(lanes, 1);
    let Some((buffer, parts)) = LineBuffer::new(s, &filter_blocks, lanes, min_results) else {
        return STATUS_NO_MEMORY;
    };
    let Some(elements) = buffer.elements(s.kernel[0]) else { return STATUS_NO_MEMORY };
    // The line buffer is followed by copies of the weights of filters that do not fill a vector.
    let rows = s.kernel.iter().product::<usize>() * s.group_channels();
    let bytes = rows.checked_mul(lanes).and_then(|copies| copies.checked_add(elements));
    let Some(bytes) = bytes.and_then(|all| all.checked_mul(size_of::<f32>())) else {
        return STATUS_NO_MEMORY;
    };
    let others = s.batch * s.output[0] * parts * filter_blocks.count();
    let bands = bands(s.output[1], others);
    let w = GroupedConvolution { c, s, isa, filter_blocks, buffer, parts, bands };
    let piece = |index: usize| {
        // SAFETY: the runtime is valid; the block is freed below, on this thread.
        let memory = unsafe { (runtime.alloc_workspace)(bytes as u64) }.cast::<f32>();
        if memory.is_null() {
            return STATUS_NO_MEMORY;
        }
        let mut p = w.piece(index, memory);
        // SAFETY: the memory is large enough; guaranteed by the caller; pieces write disjoint
        // results.
        unsafe {
            p.pad_weights(rows, lanes, memory.wrapping_add(elements));
            p.run(line);
        }
        // SAFETY: as above.
        unsafe { (runtime.free_workspace)(memory.cast()) };
        STATUS_OK
    };
    let pieces = others * bands;
    let macs = rows.saturating_mul(s.filters).saturating_mul(s.pixels()).saturating_mul(s.batch);
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, pieces, macs / unit_work() / pieces, &piece) }
}

impl GroupedConvolution<'_> {
    /// Returns the piece of work with index `index`. Consecutive pieces compute adjacent blocks of
    /// filters at the same output positions, so that their inputs and results are adjacent in
    /// memory.
    fn piece(&self, index: usize, buffer: *mut f32) -> Piece<'_> {
        let (rest, block) =
            (index / self.filter_blocks.count(), index % self.filter_blocks.count());
        let (rest, along) = (rest / self.parts, rest % self.parts);
        let (rest, band) = (rest / self.bands, rest % self.bands);
        let [depth, height, width] = self.s.output;
        let block = self.filter_blocks.block(block);
        Piece {
            w: self,
            block,
            batch: rest / depth,
            z: rest % depth,
            ys: even_part(height, 1, band, self.bands),
            xs: even_part(width, 1, along, self.parts),
            buffer,
            weights: self.c.weights.wrapping_add(block.weights),
            weight_row_stride: block.weight_row_stride,
        }
    }
}

impl Piece<'_> {
    /// If groups share panels and the block of filters does not fill a vector, copies the weights
    /// of the block to `to`, with `lanes` columns padded with zeros. Otherwise does nothing.
    ///
    /// # Safety
    /// `to` has room for `rows` vectors. The weights are valid.
    unsafe fn pad_weights(&mut self, rows: usize, lanes: usize, to: *mut f32) {
        if !self.w.s.shared || self.block.filters >= lanes {
            return;
        }
        for row in 0..rows {
            let from = self.weights.wrapping_add(row * self.weight_row_stride);
            let to = to.wrapping_add(row * lanes);
            // SAFETY: guaranteed by the caller.
            unsafe {
                to.write_bytes(0, lanes);
                from.copy_to_nonoverlapping(to, self.block.filters);
            }
        }
        (self.weights, self.weight_row_stride) = (to, lanes);
    }

    /// Computes all output rows of this piece of work in order. An output row reuses input rows
    /// that earlier output rows have copied into the line buffer.
    ///
    /// # Safety
    /// The conditions of [`run`] hold. `line` is [`compute_line`], compiled for an instruction set
    /// of the machine.
    unsafe fn run(&self, line: unsafe fn(&Piece<'_>, usize, Range<usize>)) {
        let (c, s) = (self.w.c, self.w.s);
        let mut filled = 0;
        for y in self.ys.clone() {
            // All rows from the first tap to the last are copied. With dilation, later lines read the rows between the taps.
            let (first, padding) = (y * s.stride[1], s.before[1]);
            let end = (first + self.w.buffer.rows).min(padding + s.input[1]);
            let new = first.max(padding).max(filled)..end;
            filled = filled.max(new.end);
            // SAFETY: guaranteed by the caller.
            unsafe { line(self, y, new) };
            let Some(epilogue) = &c.epilogue else { continue };
            let row = (self.z * s.output[1] + y) * s.output[2] + self.xs.start;
            let tile = EpilogueTile {
                data: self.out(y),
                row_stride: c.out.pixel[2] as isize,
                rows: self.xs.len(),
                columns: self.block.filters,
                position: Position { batch: self.batch, row, column: self.block.filter },
            };
            // SAFETY: the sums are complete; guaranteed by the caller.
            unsafe { epilogue.finish(self.w.isa, &tile) };
        }
    }

    /// The address of the first result of output row `y`, for the first filter of the block.
    fn out(&self, y: usize) -> *mut f32 {
        let out = &self.w.c.out;
        let offset = out.offset(self.batch, [self.z, y, self.xs.start]);
        out.data.wrapping_offset(offset).wrapping_add(self.block.filter)
    }
}

/// Copies the input rows `new` into the line buffer, and computes output row `y`. Row indices
/// include the rows of padding before the input: index 0 is the first padding row.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The conditions of
/// [`run`] hold.
#[inline(always)]
unsafe fn compute_line<L: Permute>(p: &Piece<'_>, y: usize, new: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if p.w.filter_blocks.spans_groups() {
            compute_line_of::<L, 1, true>(p, y, new);
        } else if p.block.vectors == 1 {
            compute_line_of::<L, 1, false>(p, y, new);
        } else {
            compute_line_of::<L, 2, false>(p, y, new);
        }
    }
}

/// Copies the input rows `new` into the line buffer and computes output row `y`, for blocks of `V` vectors of filters. If `SPREAD`
/// is set, a vector contains filters of several groups.
///
/// # Safety
/// The conditions of [`compute_line`] hold.
#[inline(always)]
unsafe fn compute_line_of<L: Permute, const V: usize, const SPREAD: bool>(
    p: &Piece<'_>,
    y: usize,
    new: Range<usize>,
) {
    let GroupedConvolution { c, s, buffer, .. } = p.w;
    let taps = [s.taps(0, p.z), s.taps(1, y)];
    for z in taps[0].clone() {
        let plane = p.z * s.stride[0] + z * s.dilation[0] - s.before[0];
        for row in new.clone() {
            let from = c.x.data.wrapping_offset(c.x.offset(p.batch, [plane, row - s.before[1], 0]));
            let to = p
                .buffer
                .wrapping_add((z * buffer.rows + row % buffer.rows) * buffer.row_elements());
            // SAFETY: the row is one of the input; the line buffer is large enough.
            unsafe { buffer.fill_row::<L, SPREAD>((c, s), from, &p.block, p.xs.start, to) };
        }
    }
    let first = (y * s.stride[1] + taps[1].start * s.dilation[1]) % buffer.rows;
    let line = Line {
        buffer,
        inputs: p.buffer.cast_const(),
        first_row: first,
        taps,
        kernel: s.kernel,
        dilation: [s.dilation[1], s.dilation[2]],
        stride: s.stride[2],
        channels: s.group_channels(),
        weights: p.weights,
        weight_row_stride: p.weight_row_stride,
        out: p.out(y),
        result_stride: c.out.pixel[2] as isize,
        filters: p.block.filters,
    };
    let count = p.xs.len().div_ceil(max_results(L::N, V));
    for tile in 0..count {
        let xs = even_part(p.xs.len(), 1, tile, count);
        // SAFETY: the line buffer contains the inputs; guaranteed by the caller.
        unsafe { register_tiles::compute_tile::<L, V, SPREAD>(&line, xs.start, xs.len()) };
    }
}
