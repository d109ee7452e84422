//! Convolution as an implicit GEMM. The matmul micro-kernel reads the runs of adjacent inputs under
//! the filter in place.
//!
//! For each block of up to [`block_pixels`] results, the kernel multiplies one slice of the weights
//! after the other. A slice consists of the weights for parts of one or several runs. A slice stays
//! in the first-level cache while the next slice is prefetched. Slices are 1.2 times as fast at 7 x
//! 7 x 512 as whole filters, whose weights come from the second-level cache for each register tile.
//! The sums of a tile stay in registers over all runs of a slice, because runs of few channels are
//! too short to load and store the sums for each run. On Zen 5 with AVX-512 and one thread, keeping
//! the sums is 1.1 to 1.4 times as fast at 16 channels as one pass per run. If the results have
//! channels first, they are computed in scratch memory and transposed. Taps outside of the input
//! are skipped, so padding is neither written nor multiplied.

use std::mem::MaybeUninit;
use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::shape_and_strides::Sizes;
use super::{Convolution, Image};
use crate::algorithm_selection::convolution::{MAX_BLOCK_PIXELS, block_pixels, short_pieces};
use crate::epilogue::{BiasAndClip, ClipEpilogue, EpilogueTile, MAX_TILE_COLUMNS, Position};
use crate::matmul::Element;
use crate::matmul::micro_kernel::{KSegment, MAX_K_SPLITS, MicroKernels, Prefetch, Tile};
use crate::matmul::row_tiling::split_evenly;
use crate::matmul::slice_rows;
use crate::matmul::work_partition::{even_part, parallel_for, unit_work};
use pliant_machine::isa::Isa;

/// The parameters of the convolution that all pieces of work share.
struct ImplicitGemm<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    x: &'a Image<*const f32>,
    isa: Isa,
    kernels: &'static MicroKernels<f32>,
    /// The number of columns (filters) of a panel of packed weights.
    width: usize,
    /// The number of panels of packed weights for each group of the convolution.
    panels: usize,
    /// The number of taps of a run: all taps of a filter row if their inputs are adjacent, otherwise 1.
    taps_per_run: usize,
    /// The number of runs (sequences of adjacent inputs for one result) of the whole filter.
    run_count: usize,
    /// The number of blocks into which an output row is divided; 1 if a block has room for a whole
    /// output row.
    blocks_per_line: usize,
    /// The number of blocks of results of an image.
    blocks: usize,
}

/// Adjacent results along an output row (the rows of one register tile). The same filter taps are
/// inside the input for all of them.
#[derive(Clone, Copy)]
struct Sliver {
    /// The address of the input for filter tap 0 and channel 0 of the first result. It may be
    /// outside of the image.
    input: *const f32,
    /// The address of the first result, for filter 0.
    out: *mut f32,
    /// The position of the first result in the output image, as a row-major index over its pixels.
    row: usize,
    /// The number of results of the sliver (the rows of its register tile).
    height: usize,
    /// For each dim, the range of filter taps that are inside the input, as its start and its end.
    taps: [(usize, usize); 3],
    /// Whether an earlier slice of the weights has stored sums for these results, to which the
    /// current slice adds.
    has_sums: bool,
}

/// The slivers (groups of adjacent results) of a block. The array is not initialized as a whole,
/// because blocks of small convolutions take less than a microsecond.
struct Slivers {
    all: [MaybeUninit<Sliver>; MAX_BLOCK_PIXELS],
    count: usize,
}

impl Slivers {
    fn push(&mut self, sliver: Sliver) {
        self.all[self.count].write(sliver);
        self.count += 1;
    }

    fn as_mut_slice(&mut self) -> &mut [Sliver] {
        let first = self.all.as_mut_ptr().cast::<Sliver>();
        // SAFETY: `push` has initialized the first `count` slivers.
        unsafe { std::slice::from_raw_parts_mut(first, self.count) }
    }
}

/// Maximum number of runs (sequences of adjacent inputs under the filter) in a slice of the
/// weights.
const MAX_SLICE_RUNS: usize = 32;

/// A part of a run. A run is a sequence of adjacent inputs for one result: the inputs of a whole
/// filter row, or of a single tap.
#[derive(Clone, Copy, Default)]
struct RunPart {
    /// The first filter tap of the run (sequence of adjacent inputs).
    tap: [usize; 3],
    /// The distance, in elements, from the input that filter tap 0 reads for a result to the first
    /// input of the run (sequence of adjacent inputs) for the same result. It is equal for all
    /// results.
    input_offset: isize,
    /// The index of the first row of weights that are multiplied by the run (sequence of adjacent
    /// inputs).
    weight_row: usize,
    /// The start of this part of a run (sequence of adjacent inputs), as an index within the run.
    start: usize,
    /// The end (exclusive) of this part of a run (sequence of adjacent inputs), as an index within
    /// the run.
    end: usize,
}

/// A slice of the weights: the weight rows by which parts of consecutive runs are multiplied.
#[derive(Default)]
struct Slice {
    parts: [RunPart; MAX_SLICE_RUNS],
    count: usize,
    /// The total number of weight rows in the slice.
    depth: usize,
}

/// The contiguous segments of the inner dimension (`k`) that a slice of the weights covers, for
/// results with the same filter taps inside the input.
struct SliceSegments {
    all: [KSegment; MAX_SLICE_RUNS],
    count: usize,
    /// The ranges of taps for which the segments were computed; `None` if the segments are not
    /// valid for the current slice.
    taps: Option<[(usize, usize); 3]>,
}

/// Scratch memory for the results of a block, aligned to a cache line.
#[repr(C, align(64))]
struct Scratch([MaybeUninit<f32>; MAX_BLOCK_PIXELS * MAX_TILE_COLUMNS]);

/// Computes a convolution of the input `x`, which has channels last and is read in place. Returns a
/// kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. All elements of the operands and the results are valid, and the results
/// overlap no operand.
pub(super) unsafe fn run(
    isa: Isa,
    runtime: &KernelRuntime,
    c: &Convolution,
    s: &Sizes,
    x: &Image<*const f32>,
) -> i64 {
    let width = c.width as usize;
    let line = s.output[2];
    let lines = s.output[0] * s.output[1];
    let blocks_per_line = line.div_ceil(block_pixels());
    let next_tap = (s.dilation[2] as i64).wrapping_mul(x.pixel[2]);
    let adjacent = s.groups == 1 && next_tap == s.channels as i64;
    let taps_per_run = if adjacent { s.kernel[2] } else { 1 };
    let gemm = ImplicitGemm {
        c,
        s,
        x,
        isa,
        kernels: f32::kernels(isa),
        width,
        panels: s.group_filters().div_ceil(width),
        taps_per_run,
        run_count: s.kernel.iter().product::<usize>() / taps_per_run,
        blocks_per_line,
        // A block has one part of a line, or several whole lines, so it fits into the scratch memory.
        blocks: if blocks_per_line > 1 {
            lines * blocks_per_line
        } else {
            lines.div_ceil(block_pixels() / line)
        },
    };
    let (blocks, panels) = (s.batch * gemm.blocks, s.groups * gemm.panels);
    let taps: usize = s.kernel.iter().product();
    let macs = taps.saturating_mul(s.group_channels()).saturating_mul(s.filters);
    let micros = macs.saturating_mul(s.pixels()).saturating_mul(s.batch) / unit_work();
    let pieces_per_block = short_pieces().div_ceil(blocks).min(panels);
    let pieces_per_block = pieces_per_block.min(micros.div_ceil(blocks)).max(1);
    let piece = |index: usize| {
        let (block, part) = (index / pieces_per_block, index % pieces_per_block);
        let (batch, block) = (block / gemm.blocks, block % gemm.blocks);
        let mut slivers =
            Slivers { all: [const { MaybeUninit::uninit() }; MAX_BLOCK_PIXELS], count: 0 };
        gemm.find_slivers(batch, block, &mut slivers);
        for panel in even_part(panels, 1, part, pieces_per_block) {
            // SAFETY: guaranteed by the caller; pieces write disjoint results.
            unsafe { gemm.compute_panel(batch, slivers.as_mut_slice(), panel) };
        }
        STATUS_OK
    };
    let pieces = blocks * pieces_per_block;
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, pieces, micros / pieces, &piece) }
}

impl ImplicitGemm<'_> {
    /// Returns the number of columns (filters) of the widest register tile that the convolution
    /// uses.
    fn widest(&self) -> usize {
        self.s.group_filters().min(self.kernels.columns())
    }

    /// Divides the results of a block into slivers (groups of adjacent results), row by row, and
    /// adds them to `slivers`.
    fn find_slivers(&self, batch: usize, block: usize, slivers: &mut Slivers) {
        let max_height = self.kernels.rows(self.widest());
        let [_, height, width] = self.s.output;
        let lines = self.s.output[0] * height;
        let (lines, xs): (Range<usize>, Range<usize>) = if self.blocks_per_line > 1 {
            let line = block / self.blocks_per_line;
            (
                line..line + 1,
                even_part(width, max_height, block % self.blocks_per_line, self.blocks_per_line),
            )
        } else {
            (even_part(lines, 1, block, self.blocks), 0..width)
        };
        let bounds = |taps: Range<usize>| (taps.start, taps.end);
        for line in lines {
            let (z, y) = (line / height, line % height);
            let (planes, rows) = (bounds(self.s.taps(0, z)), bounds(self.s.taps(1, y)));
            let mut x = xs.start;
            while x < xs.end {
                let columns = self.s.taps(2, x);
                let end = self.s.same_taps_end(x, &columns, xs.end);
                for (first, height) in split_evenly(end - x, max_height) {
                    let pixel = [z, y, x + first];
                    slivers.push(Sliver {
                        input: self.input_address(batch, pixel),
                        out: self.c.out.data.wrapping_offset(self.c.out.offset(batch, pixel)),
                        row: (z * self.s.output[1] + y) * width + pixel[2],
                        height,
                        taps: [planes, rows, bounds(columns.clone())],
                        has_sums: false,
                    });
                }
                x = end;
            }
        }
    }

    /// Returns the first filter tap of run `run`. A run is a sequence of adjacent inputs for one
    /// result.
    fn first_tap(&self, run: usize) -> [usize; 3] {
        let [_, height, width] = self.s.kernel;
        let per_row = width / self.taps_per_run;
        [run / (per_row * height), run / per_row % height, run % per_row * self.taps_per_run]
    }

    /// Computes the results of all slivers (groups of adjacent results) of a block for the filters
    /// of one panel.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn compute_panel(&self, batch: usize, slivers: &mut [Sliver], panel: usize) {
        let s = self.s;
        let (group, group_panel) = (panel / self.panels, panel % self.panels);
        let columns = self.width.min(s.group_filters() - group_panel * self.width);
        let filter = group * s.group_filters() + group_panel * self.width;
        let panel_rows = s.taps.iter().product::<usize>() * s.group_channels();
        let weights = self.c.weights.wrapping_add(panel * panel_rows * self.width);
        let mut scratch =
            Scratch([const { MaybeUninit::uninit() }; MAX_BLOCK_PIXELS * MAX_TILE_COLUMNS]);
        let scratch = scratch.0.as_mut_ptr().cast::<f32>();
        let in_place = self.c.out.channel == 1;
        let count = slivers.len();
        // This epilogue is applied to the sums in registers.
        let clip = self.c.epilogue.as_ref().and_then(ClipEpilogue::of);
        let clip = clip.and_then(|clip| clip.without_residual(filter));
        slivers.iter_mut().for_each(|sliver| sliver.has_sums = false);
        let first_channel = (group * s.group_channels()) as isize;
        let mut position = (0, 0);
        let mut slice = Slice::default();
        let mut segments =
            SliceSegments { all: [KSegment::leading(0); MAX_SLICE_RUNS], count: 0, taps: None };
        while self.next_slice(&mut position, self.widest(), &mut slice) {
            let is_last_slice = position.0 == self.run_count;
            let last_part = slice.parts[..slice.count].last();
            let end_row = last_part.map_or(0, |part| part.weight_row + part.end);
            let next_slice = weights.wrapping_add(end_row * self.width).cast::<u8>();
            segments.taps = None;
            let mut row = 0;
            for (index, sliver) in slivers.iter_mut().enumerate() {
                let out = sliver.out.wrapping_offset(filter as isize * self.c.out.channel as isize);
                let c = if in_place {
                    (out, self.c.out.pixel[2] as isize)
                } else {
                    (scratch.wrapping_add(row * self.width), self.width as isize)
                };
                row += sliver.height;
                let size = (sliver.height, columns);
                if segments.taps != Some(sliver.taps) {
                    self.find_segments(&slice, sliver.taps, &mut segments);
                }
                let segments = &segments.all[..segments.count];
                let position = Position { batch, row: sliver.row, column: filter };
                let mut is_finished = false;
                if !segments.is_empty() || (is_last_slice && !sliver.has_sums) {
                    let row_bytes = self.width * size_of::<f32>();
                    let prefetch =
                        Prefetch::nth_part(next_slice, row_bytes, slice.depth, index, count);
                    let a = (sliver.input.wrapping_offset(first_channel), segments);
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let clip = clip.as_ref().filter(|_| is_last_slice);
                        self.compute_strips(a, weights, c, size, (sliver.has_sums, prefetch, clip));
                        is_finished = clip.is_some();
                    };
                    sliver.has_sums = true;
                }
                if !is_last_slice {
                    continue;
                }
                if let Some(epilogue) = self.c.epilogue.as_ref().filter(|_| !is_finished) {
                    let ((data, row_stride), (rows, columns)) = (c, size);
                    let tile = EpilogueTile { data, row_stride, rows, columns, position };
                    // SAFETY: the sums are complete; guaranteed by the caller.
                    unsafe { epilogue.finish(self.isa, &tile) };
                }
                if !in_place {
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.transpose_results(c.0, out, size) };
                }
            }
        }
    }

    /// Stores the next slice of the weights in `slice`, and advances the position (a run, and an
    /// element in this run) to the end of that slice. Returns false at the end of the filter.
    ///
    /// The depth of a slice depends on `widest`, the number of columns (filters) of the widest register tile, and not on the
    /// columns of the current panel. So the sums of all filters have the same order of additions, and equal filters give equal
    /// results.
    fn next_slice(
        &self,
        (run, element): &mut (usize, usize),
        widest: usize,
        slice: &mut Slice,
    ) -> bool {
        if *run == self.run_count {
            return false;
        }
        let run_len = self.taps_per_run * self.s.group_channels();
        let remaining = self.run_count * run_len - (*run * run_len + *element);
        let max_rows = slice_rows::<f32>(widest);
        // Slices have nearly equal depths. An empty filter has one slice, for which zeros are written.
        let rows =
            remaining.div_ceil(remaining.div_ceil(max_rows).max(1)).next_multiple_of(MAX_K_SPLITS);
        (slice.count, slice.depth) = (0, 0);
        while *run < self.run_count
            && slice.count < MAX_SLICE_RUNS
            && (slice.depth < rows || run_len == 0)
        {
            let tap = self.first_tap(*run);
            let (start, end) = (*element, run_len.min(*element + rows - slice.depth));
            let (input_offset, weight_row) = (self.tap_offset(tap), self.s.weight_row(tap));
            slice.parts[slice.count] = RunPart { tap, input_offset, weight_row, start, end };
            slice.count += 1;
            slice.depth += end - start;
            (*run, *element) = if end == run_len { (*run + 1, 0) } else { (*run, end) };
        }
        true
    }

    /// Computes the segments of `slice`, a slice of the weights, and stores them in `segments`. A segment is a range of `k`, the
    /// inner dimension (filter taps and channels), whose inputs are adjacent and not in the padding. `taps` has, for each dim, the
    /// range of filter taps that are inside the input for the results. The other taps are in the padding and are skipped.
    fn find_segments(
        &self,
        slice: &Slice,
        taps: [(usize, usize); 3],
        segments: &mut SliceSegments,
    ) {
        let tap_len = self.s.group_channels();
        (segments.count, segments.taps) = (0, Some(taps));
        for part in &slice.parts[..slice.count] {
            let is_inside = |d: usize| (taps[d].0..taps[d].1).contains(&part.tap[d]);
            if !is_inside(0) || !is_inside(1) {
                continue;
            }
            let start = taps[2].0.saturating_sub(part.tap[2]) * tap_len;
            let end = taps[2].1.saturating_sub(part.tap[2]).min(self.taps_per_run) * tap_len;
            let k = start.max(part.start)..end.min(part.end);
            if !k.is_empty() {
                segments.all[segments.count] = KSegment {
                    a_offset: part.input_offset.wrapping_add(k.start as isize),
                    b_offset: (part.weight_row + k.start) * self.width,
                    k: k.len(),
                };
                segments.count += 1;
            }
        }
    }

    /// Returns the address of the input for filter tap 0 and channel 0 of the result `pixel`. It
    /// may be outside of the image.
    fn input_address(&self, batch: usize, pixel: [usize; 3]) -> *const f32 {
        let s = self.s;
        let mut offset = (batch as i64).wrapping_mul(self.x.batch);
        for d in 0..3 {
            let position = (pixel[d] * s.stride[d]) as i64 - s.before[d] as i64;
            offset = offset.wrapping_add(position.wrapping_mul(self.x.pixel[d]));
        }
        self.x.data.wrapping_offset(offset as isize)
    }

    /// The distance, in elements, from the input of filter tap 0 to the input of the tap `tap`.
    fn tap_offset(&self, tap: [usize; 3]) -> isize {
        let dim_offset =
            |d: usize| ((tap[d] * self.s.dilation[d]) as i64).wrapping_mul(self.x.pixel[d]);
        (0..3).map(dim_offset).fold(0, i64::wrapping_add) as isize
    }

    /// Multiplies inputs and weights over some segments of the inner dimension `k`, and adds the products to the sums
    /// of `rows` adjacent results. A panel that is wider than a tile is processed in strips of columns. `clip` is the
    /// epilogue that is applied to complete sums; `None` if the sums are not complete.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn compute_strips(
        &self,
        (a, segments): (*const f32, &[KSegment]),
        weights: *const f32,
        (c, c_row): (*mut f32, isize),
        (rows, columns): (usize, usize),
        (accumulate, prefetch, clip): (bool, Prefetch, Option<&BiasAndClip<f32>>),
    ) {
        for column in (0..columns).step_by(self.kernels.columns()) {
            let width = self.kernels.columns().min(columns - column);
            let epilogue = clip.map(|clip| BiasAndClip {
                bias: if clip.bias.is_null() { clip.bias } else { clip.bias.wrapping_add(column) },
                ..*clip
            });
            let mut tile = Tile {
                segments,
                a,
                a_row: self.s.stride[2] as isize * self.x.pixel[2] as isize,
                a_col: 1,
                b: weights.wrapping_add(column),
                b_row: self.width as isize,
                c: c.wrapping_add(column),
                c_row,
                accumulate,
                tail_lanes: 0,
                prefetch: if column == 0 { prefetch } else { Prefetch::NONE },
                epilogue: epilogue.as_ref(),
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.kernels.run(rows, width, &mut tile) };
        }
    }

    /// Copies results from scratch memory, which has channels last, to the output, whose channels are not adjacent.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn transpose_results(
        &self,
        from: *const f32,
        out: *mut f32,
        (rows, columns): (usize, usize),
    ) {
        let (pixel, channel) = (self.c.out.pixel[2] as isize, self.c.out.channel as isize);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if pixel == 1 {
                self.kernels.transpose((from, self.width as isize), (out, channel), rows, columns);
                return;
            }
            for i in 0..rows {
                for j in 0..columns {
                    let to = out.offset(i as isize * pixel + j as isize * channel);
                    to.write(*from.add(i * self.width + j));
                }
            }
        }
    }
}
