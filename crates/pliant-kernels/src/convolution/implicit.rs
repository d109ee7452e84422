//! Tiles of results: passes of the product kernel over the runs of adjacent inputs under the filter.
//!
//! Blocks of up to [`block_pixels`] results are computed slice by slice of the weights. A slice consists of parts of one or several
//! runs. It stays in the first-level cache while the next is prefetched, which is 1.2 times as fast at 7 x 7 x 512 as whole
//! filters, whose weights come from the second level for each sliver. The sums of a tile stay in registers over all runs of a
//! slice: runs of few channels are too short to load and store the sums for each. On Zen 5 with AVX-512 and one thread, this is 1.1
//! to 1.4 times as fast at 16 channels as a pass for each run. With channels first, results are collected in scratch memory and
//! transposed. Taps outside of the input are skipped, so that padding is neither written nor multiplied.

use std::mem::MaybeUninit;
use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::shape::Sizes;
use super::{Convolution, Image};
use crate::epilogue::{EpilogueTile, MOST_COLUMNS, Position};
use crate::product::Element;
use crate::product::rows::even;
use crate::product::share::{part, share, unit_work};
use crate::product::slice_rows;
use crate::product::tile::{Ahead, Kernels, Run, SPLITS, Tile};
use crate::rules::convolution::{MAX_BLOCK_PIXELS, block_pixels, short_pieces};
use pliant_machine::isa::Isa;

/// The state shared by all pieces.
struct Work<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    x: &'a Image<*const f32>,
    isa: Isa,
    kernels: &'static Kernels<f32>,
    /// Columns of a panel.
    width: usize,
    /// Panels of a group.
    panels: usize,
    /// The number of taps of a run: a row of the filter if its inputs are adjacent.
    merged: usize,
    /// Runs of the whole filter.
    runs: usize,
    /// The number of blocks along a line, if lines are longer than a block.
    chunks: usize,
    /// Blocks of an image.
    blocks: usize,
}

/// Some results along a line that have the same taps.
#[derive(Clone, Copy)]
struct Sliver {
    /// The address that tap 0 of the first result reads, channel 0. It may be outside of the image.
    input: *const f32,
    /// The first result of filter 0, and its number among the pixels of the image.
    out: *mut f32,
    row: usize,
    /// The number of results.
    height: usize,
    /// For each dim, the first tap whose input exists, and the end of these taps.
    taps: [(usize, usize); 3],
    /// Whether sums were stored already.
    has_sums: bool,
}

/// The slivers of a block. The array is not initialised as a whole: blocks of thin convolutions take less than a microsecond.
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
        // SAFETY: `push` has initialised the first `count` slivers.
        unsafe { std::slice::from_raw_parts_mut(first, self.count) }
    }
}

/// Maximum number of runs of a slice.
const MAX_RUNS: usize = 32;

/// A part of a run.
#[derive(Clone, Copy, Default)]
struct Part {
    /// The first tap of the run.
    tap: [usize; 3],
    /// The distance between the inputs of this tap and of tap 0.
    input: isize,
    /// The row of the weights of this tap.
    row: usize,
    /// The first element and the end.
    start: usize,
    end: usize,
}

/// A slice of the weights.
#[derive(Default)]
struct Slice {
    parts: [Part; MAX_RUNS],
    count: usize,
    /// Elements of all parts.
    depth: usize,
}

/// The runs of a slice for results with the same taps.
struct Runs {
    all: [Run; MAX_RUNS],
    count: usize,
    taps: Option<[(usize, usize); 3]>,
}

/// Results of a block, aligned to a cache line.
#[repr(C, align(64))]
struct Scratch([MaybeUninit<f32>; MAX_BLOCK_PIXELS * MOST_COLUMNS]);

/// The convolution of an input that is read in place.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the results overlap no operand.
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
    let chunks = line.div_ceil(block_pixels());
    let next_tap = (s.dilation[2] as i64).wrapping_mul(x.pixel[2]);
    let adjacent = s.groups == 1 && next_tap == s.channels as i64;
    let merged = if adjacent { s.kernel[2] } else { 1 };
    let w = Work {
        c,
        s,
        x,
        isa,
        kernels: f32::kernels(isa),
        width,
        panels: s.group_filters().div_ceil(width),
        merged,
        runs: s.kernel.iter().product::<usize>() / merged,
        chunks,
        // A block consists of whole lines, and no line has more results than the scratch
        // memory holds.
        blocks: if chunks > 1 { lines * chunks } else { lines.div_ceil(block_pixels() / line) },
    };
    let (blocks, panels) = (s.batch * w.blocks, s.groups * w.panels);
    let taps: usize = s.kernel.iter().product();
    let macs = taps.saturating_mul(s.group_channels()).saturating_mul(s.filters);
    let units = macs.saturating_mul(s.pixels()).saturating_mul(s.batch) / unit_work();
    let cut = short_pieces().div_ceil(blocks).min(panels).min(units.div_ceil(blocks)).max(1);
    let piece = |index: usize| {
        let (block, panels) = (index / cut, part(panels, 1, index % cut, cut));
        for panel in panels {
            // SAFETY: guaranteed by the caller; pieces write disjoint results.
            unsafe { w.panel(block / w.blocks, block % w.blocks, panel) };
        }
        STATUS_OK
    };
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { share(runtime, blocks * cut, units / (blocks * cut), &piece) }
}

impl Work<'_> {
    /// The results of a block, line by line, in slivers of at most `tallest` results.
    fn slivers(&self, batch: usize, block: usize, tallest: usize) -> Slivers {
        let [_, height, width] = self.s.output;
        let lines = self.s.output[0] * height;
        let (lines, along): (Range<usize>, Range<usize>) = if self.chunks > 1 {
            let line = block / self.chunks;
            (line..line + 1, part(width, tallest, block % self.chunks, self.chunks))
        } else {
            (part(lines, 1, block, self.blocks), 0..width)
        };
        let mut out =
            Slivers { all: [const { MaybeUninit::uninit() }; MAX_BLOCK_PIXELS], count: 0 };
        let ends = |taps: Range<usize>| (taps.start, taps.end);
        for line in lines {
            let (z, y) = (line / height, line % height);
            let (planes, rows) = (ends(self.s.taps(0, z)), ends(self.s.taps(1, y)));
            let mut x = along.start;
            while x < along.end {
                let columns = self.s.taps(2, x);
                let end = self.s.same_taps_end(x, &columns, along.end);
                for (first, height) in even(end - x, tallest) {
                    let pixel = [z, y, x + first];
                    out.push(Sliver {
                        input: self.input(batch, pixel),
                        out: self.c.out.data.wrapping_offset(self.c.out.offset(batch, pixel)),
                        row: (z * self.s.output[1] + y) * width + pixel[2],
                        height,
                        taps: [planes, rows, ends(columns.clone())],
                        has_sums: false,
                    });
                }
                x = end;
            }
        }
        out
    }

    /// The first tap of a run.
    fn tap(&self, run: usize) -> [usize; 3] {
        let [_, height, width] = self.s.kernel;
        let per_row = width / self.merged;
        [run / (per_row * height), run / per_row % height, run % per_row * self.merged]
    }

    /// A block of results of one panel of filters.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn panel(&self, batch: usize, block: usize, panel: usize) {
        let s = self.s;
        let (group, of_group) = (panel / self.panels, panel % self.panels);
        let columns = self.width.min(s.group_filters() - of_group * self.width);
        let filter = group * s.group_filters() + of_group * self.width;
        let panel_rows = s.taps.iter().product::<usize>() * s.group_channels();
        let weights = self.c.weights.wrapping_add(panel * panel_rows * self.width);
        let mut scratch =
            Scratch([const { MaybeUninit::uninit() }; MAX_BLOCK_PIXELS * MOST_COLUMNS]);
        let scratch = scratch.0.as_mut_ptr().cast::<f32>();
        let in_place = self.c.out.channel == 1;
        let tallest = self.kernels.rows(s.group_filters().min(self.kernels.columns()));
        let mut slivers = self.slivers(batch, block, tallest);
        let (count, slivers) = (slivers.count, slivers.as_mut_slice());
        let first_channel = (group * s.group_channels()) as isize;
        let mut next = (0, 0);
        let mut slice = Slice::default();
        let mut runs = Runs { all: [Run::first(0); MAX_RUNS], count: 0, taps: None };
        while self.next_slice(&mut next, columns, &mut slice) {
            let ends = next.0 == self.runs;
            let end_row = slice.parts[..slice.count].last().map_or(0, |part| part.row + part.end);
            let ahead = weights.wrapping_add(end_row * self.width).cast::<u8>();
            runs.taps = None;
            let mut at = 0;
            for (number, sliver) in slivers.iter_mut().enumerate() {
                let out = sliver.out.wrapping_offset(filter as isize * self.c.out.channel as isize);
                let c = if in_place {
                    (out, self.c.out.pixel[2] as isize)
                } else {
                    (scratch.wrapping_add(at * self.width), self.width as isize)
                };
                at += sliver.height;
                let size = (sliver.height, columns);
                if runs.taps != Some(sliver.taps) {
                    self.find_runs(&slice, sliver.taps, &mut runs);
                }
                let runs = &runs.all[..runs.count];
                if !runs.is_empty() || (ends && !sliver.has_sums) {
                    let ahead = Ahead::share(ahead, self.width * 4, slice.depth, number, count);
                    let a = sliver.input.wrapping_offset(first_channel);
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.tiles((a, runs), weights, c, size, (sliver.has_sums, ahead)) };
                    sliver.has_sums = true;
                }
                if !ends {
                    continue;
                }
                if let Some(epilogue) = &self.c.epilogue {
                    let ((data, row_stride), (rows, columns)) = (c, size);
                    let position = Position { batch, row: sliver.row, column: filter };
                    let tile = EpilogueTile { data, row_stride, rows, columns, position };
                    // SAFETY: the sums are complete; guaranteed by the caller.
                    unsafe { epilogue.finish(self.isa, &tile) };
                }
                if !in_place {
                    // SAFETY: guaranteed by the caller.
                    unsafe { self.write(c.0, out, size) };
                }
            }
        }
    }

    /// The slice of the weights of `columns` filters from a run and an element of it on, which move to its end. False at the end of
    /// the filter.
    fn next_slice(
        &self,
        (run, first): &mut (usize, usize),
        columns: usize,
        slice: &mut Slice,
    ) -> bool {
        if *run == self.runs {
            return false;
        }
        let depth = self.merged * self.s.group_channels();
        let left = self.runs * depth - (*run * depth + *first);
        let most = slice_rows::<f32>(columns.min(self.kernels.columns()));
        // Slices of nearly equal depth; an empty filter has one slice, which writes zeros.
        let rows = left.div_ceil(left.div_ceil(most).max(1)).next_multiple_of(SPLITS);
        (slice.count, slice.depth) = (0, 0);
        while *run < self.runs && slice.count < MAX_RUNS && (slice.depth < rows || depth == 0) {
            let tap = self.tap(*run);
            let (start, end) = (*first, depth.min(*first + rows - slice.depth));
            let (input, row) = (self.to_tap(tap), self.s.weight_row(tap));
            slice.parts[slice.count] = Part { tap, input, row, start, end };
            slice.count += 1;
            slice.depth += end - start;
            (*run, *first) = if end == depth { (*run + 1, 0) } else { (*run, end) };
        }
        true
    }

    /// Finds the runs of a slice, without the inputs that do not exist for results with these taps.
    fn find_runs(&self, slice: &Slice, taps: [(usize, usize); 3], runs: &mut Runs) {
        let of_tap = self.s.group_channels();
        (runs.count, runs.taps) = (0, Some(taps));
        for part in &slice.parts[..slice.count] {
            let has = |d: usize| (taps[d].0..taps[d].1).contains(&part.tap[d]);
            if !has(0) || !has(1) {
                continue;
            }
            let first = taps[2].0.saturating_sub(part.tap[2]) * of_tap;
            let last = taps[2].1.saturating_sub(part.tap[2]).min(self.merged) * of_tap;
            let k = first.max(part.start)..last.min(part.end);
            if !k.is_empty() {
                runs.all[runs.count] = Run {
                    a: part.input.wrapping_add(k.start as isize),
                    b: (part.row + k.start) * self.width,
                    k: k.len(),
                };
                runs.count += 1;
            }
        }
    }

    /// The input of tap 0 of a result, which may be outside of the image.
    fn input(&self, batch: usize, pixel: [usize; 3]) -> *const f32 {
        let s = self.s;
        let at = |d: usize| {
            let inside = (pixel[d] * s.stride[d]) as i64 - s.before[d] as i64;
            inside.wrapping_mul(self.x.pixel[d])
        };
        let start = (batch as i64).wrapping_mul(self.x.batch);
        let offset = (0..3).map(at).fold(start, i64::wrapping_add);
        self.x.data.wrapping_offset(offset as isize)
    }

    /// The distance between the inputs of a tap and of tap 0.
    fn to_tap(&self, tap: [usize; 3]) -> isize {
        let at = |d: usize| ((tap[d] * self.s.dilation[d]) as i64).wrapping_mul(self.x.pixel[d]);
        (0..3).map(at).fold(0, i64::wrapping_add) as isize
    }

    /// Some runs of a sliver, strip by strip.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn tiles(
        &self,
        (a, runs): (*const f32, &[Run]),
        weights: *const f32,
        (c, c_row): (*mut f32, isize),
        (rows, columns): (usize, usize),
        (accumulate, ahead): (bool, Ahead),
    ) {
        for column in (0..columns).step_by(self.kernels.columns()) {
            let width = self.kernels.columns().min(columns - column);
            let mut tile = Tile {
                runs,
                a,
                a_row: self.s.stride[2] as isize * self.x.pixel[2] as isize,
                a_col: 1,
                b: weights.wrapping_add(column),
                b_row: self.width as isize,
                c: c.wrapping_add(column),
                c_row,
                accumulate,
                last: 0,
                ahead: if column == 0 { ahead } else { Ahead::NONE },
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.kernels.run(rows, width, &mut tile) };
        }
    }

    /// Writes results whose channels are not adjacent.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn write(&self, from: *const f32, out: *mut f32, (rows, columns): (usize, usize)) {
        let (pixel, channel) = (self.c.out.pixel[2] as isize, self.c.out.channel as isize);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if pixel == 1 {
                self.kernels.turn((from, self.width as isize), (out, channel), rows, columns);
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
