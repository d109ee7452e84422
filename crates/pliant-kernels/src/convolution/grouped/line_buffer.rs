//! The line buffer: a ring buffer of the padded input rows that an output row depends on. The
//! number of rows is the number of input rows that the filter spans. New rows for the next output
//! row replace rows that are no longer needed.
//!
//! A row consists of cells, which are arrays of channels of one pixel. If all filters of a vector
//! belong to one group, a cell contains [`CELL`] adjacent channels of that group. If they belong to
//! several groups, a cell is a vector with one channel per lane, which belongs to the group of that
//! lane's filter. With stride `s`, the cells of pixels 0, `s`, `2 s` and so on come first (phase
//! 0), then the cells of pixels 1, `s + 1` and so on. So the cells for the same tap of adjacent
//! results are adjacent, and one loop with compile-time strides handles all strides, dilations and
//! paddings.

use std::ops::Range;

use super::super::Convolution;
use super::super::shape_and_strides::Sizes;
use super::filter_blocks::{Block, FilterBlocks};
use crate::algorithm_selection::convolution::line_elements;
use crate::matmul::micro_kernel::prefetch_line;
use crate::simd::lane_permutation::{MAX_LANES, Permute};

/// Number of adjacent channels of a pixel that the line buffer stores together (in a cell), if all
/// filters of a vector belong to the same group.
pub(super) const CELL: usize = 16;
/// Maximum number of channels of a group, if a vector contains filters of several groups. The line
/// buffer has one permutation for each of these channels.
const SPREAD: usize = 8;

/// The layout of a line buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineBuffer {
    /// The number of elements of a cell (an array of channels of one pixel).
    cell: usize,
    /// The number of cells (arrays of channels) that store one pixel. It is also the number of planes of a row of the line buffer,
    /// since each plane contains one cell of each pixel.
    pub planes: usize,
    /// The number of phases: classes of pixels with the same remainder modulo the stride.
    phases: usize,
    /// The number of pixels of a row in one phase (class of pixels with the same remainder modulo
    /// the stride).
    pub phase_cells: usize,
    /// The number of elements of one plane of a row. A plane contains one cell (array of channels)
    /// of each pixel.
    pub plane: usize,
    /// The number of input rows that the filter spans in its second dim, including dilation.
    pub rows: usize,
    /// The number of input channels that one vector of filters reads, if the filters belong to
    /// several groups: all channels of these groups.
    inputs: usize,
    /// The permutations for vectors of filters of several groups. For each index of a channel
    /// within its group and each lane, the input channel to load, relative to the first channel of
    /// the vector's groups.
    order: [[u32; MAX_LANES]; SPREAD],
}

/// A range of pixels of an input row to copy into the line buffer.
#[derive(Clone, Copy)]
struct Pixels {
    from: *const f32,
    /// The distance between consecutive pixels to copy, in elements.
    step: isize,
    /// The distance, in elements, from this input row to the row that will replace it in the line
    /// buffer. That row is prefetched.
    next: isize,
    count: usize,
}

impl LineBuffer {
    /// Computes the layout for vectors of `lanes` lanes, and the number of parts into which output
    /// rows are divided. Parts have at least `min_results` results, unless the output row has
    /// fewer. Returns `None` if a size overflows.
    pub fn new(
        s: &Sizes,
        blocks: &FilterBlocks,
        lanes: usize,
        min_results: usize,
    ) -> Option<(LineBuffer, usize)> {
        let channels = s.group_channels();
        let reach = (s.kernel[2] - 1).checked_mul(s.dilation[2])?;
        let (cell, planes) =
            if blocks.spans_groups() { (lanes, channels) } else { (CELL, channels.div_ceil(CELL)) };
        let rows = (s.kernel[1] - 1).checked_mul(s.dilation[1])?.checked_add(1)?;
        let phases = s.stride[2].min(reach + 1);
        let more = reach / s.stride[2];
        let pixel = [cell, planes, phases, rows, s.kernel[0]];
        let pixel = pixel.into_iter().try_fold(1usize, usize::checked_mul)?;
        let cached_results = (line_elements() / pixel.max(1)).saturating_sub(more);
        let parts = s.output[2].div_ceil(cached_results.max(min_results));
        let phase_cells = s.output[2].div_ceil(parts).checked_add(more)?;
        let mut order = [[0; MAX_LANES]; SPREAD];
        if blocks.spans_groups() {
            for (channel, order) in order.iter_mut().enumerate().take(channels) {
                for (lane, from) in order.iter_mut().enumerate().take(lanes) {
                    *from = (lane / s.group_filters() * channels + channel) as u32;
                }
            }
        }
        let plane = phases.checked_mul(phase_cells)?.checked_mul(cell)?;
        let inputs = lanes / s.group_filters() * channels;
        Some((LineBuffer { cell, planes, phases, phase_cells, plane, rows, inputs, order }, parts))
    }

    /// The number of elements of one input row in the line buffer.
    pub fn row_elements(&self) -> usize {
        self.planes * self.plane
    }

    /// Returns the number of elements of a line buffer for filters with `depth` taps in the first
    /// dim. Returns `None` on overflow.
    pub fn elements(&self, depth: usize) -> Option<usize> {
        let all = [self.planes, self.plane, self.rows, depth];
        all.into_iter().try_fold(1usize, usize::checked_mul)
    }

    /// Copies one row of the input to the line buffer row `to`, for the results from position `x`
    /// on. `from` is the address of the row's first pixel.
    ///
    /// # Safety
    /// The machine has the instructions of `L`, and the caller has enabled them. `to` has room for
    /// the row; the inputs are valid.
    #[inline(always)]
    pub unsafe fn fill_row<L: Permute, const SPREAD: bool>(
        &self,
        (c, s): (&Convolution, &Sizes),
        from: *const f32,
        block: &Block,
        x: usize,
        to: *mut f32,
    ) {
        let pixel = c.x.pixel[2] as isize;
        let (step, before) = (s.stride[2], s.before[2]);
        let from = from.wrapping_add(block.channel);
        for phase in 0..self.phases {
            let first = x * step + phase;
            let low = before.saturating_sub(first).div_ceil(step).min(self.phase_cells);
            let high = (s.input[2] + before).saturating_sub(first).div_ceil(step);
            let high = high.clamp(low, self.phase_cells);
            let to = to.wrapping_add(phase * self.phase_cells * self.cell);
            // SAFETY: guaranteed by the caller; the pixels from `low` to `high` are inputs.
            unsafe {
                self.fill_zeros(to, 0..low);
                self.fill_zeros(to, high..self.phase_cells);
                let position = (first + low * step).wrapping_sub(before) as isize;
                let from = from.wrapping_offset(position * pixel);
                let to = to.wrapping_add(low * self.cell);
                let next = c.x.pixel[1] as isize * s.stride[1] as isize;
                let pixels = Pixels { from, step: step as isize * pixel, next, count: high - low };
                if SPREAD {
                    self.permute_pixels::<L>(s, pixels, block, to);
                } else {
                    self.copy_pixels::<L>(s, pixels, to);
                }
            }
        }
    }

    /// Writes zeros to all planes of a row of the line buffer, for a range of pixels. A plane
    /// contains one cell (array of channels) of each pixel.
    ///
    /// # Safety
    /// The conditions of [`LineBuffer::fill_row`] hold.
    #[inline(always)]
    unsafe fn fill_zeros(&self, to: *mut f32, cells: Range<usize>) {
        if cells.is_empty() {
            return;
        }
        for plane in 0..self.planes {
            let to = to.wrapping_add(plane * self.plane + cells.start * self.cell);
            // SAFETY: guaranteed by the caller.
            unsafe { to.write_bytes(0, cells.len() * self.cell) };
        }
    }

    /// Copies pixels for vectors whose filters belong to several groups. For each pixel and each
    /// index of a channel within its group, writes one cell: a vector whose lanes contain the
    /// channels with this index from the groups of the lanes' filters.
    ///
    /// # Safety
    /// The conditions of [`LineBuffer::fill_row`] hold.
    #[inline(always)]
    unsafe fn permute_pixels<L: Permute>(
        &self,
        s: &Sizes,
        from: Pixels,
        block: &Block,
        to: *mut f32,
    ) {
        let inputs = self.inputs.min(s.channels - block.channel);
        // SAFETY: guaranteed by the caller; no channel after the last is read.
        unsafe {
            match (self.planes, inputs == L::N) {
                (2, true) => self.permute_planes::<L, 2, true>(from, L::N, to),
                (4, true) => self.permute_planes::<L, 4, true>(from, L::N, to),
                (8, true) => self.permute_planes::<L, 8, true>(from, L::N, to),
                (1, false) => self.permute_planes::<L, 1, false>(from, inputs, to),
                _ => self.permute_planes::<L, 0, false>(from, inputs, to),
            }
        }
    }

    /// Copies pixels with permuted channels to `PLANES` planes of a row, or to all planes if
    /// `PLANES` is 0. Each plane has its own permutation. If `WHOLE` is set, each pixel has as many
    /// input channels as a vector has lanes; otherwise it has `inputs`.
    ///
    /// # Safety
    /// The conditions of [`LineBuffer::fill_row`] hold; `inputs` elements of each pixel are valid.
    #[inline(always)]
    unsafe fn permute_planes<L: Permute, const PLANES: usize, const WHOLE: bool>(
        &self,
        pixels: Pixels,
        inputs: usize,
        mut to: *mut f32,
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut orders = [L::order(&self.order[0]); SPREAD];
            for (order, of) in orders.iter_mut().zip(&self.order) {
                *order = L::order(of);
            }
            let (next, planes) = (self.plane, if PLANES > 0 { PLANES } else { self.planes });
            let mut from = pixels.from;
            for _ in 0..pixels.count {
                prefetch_line(from.wrapping_offset(pixels.next).cast());
                let x = if WHOLE { L::load(from) } else { L::load_first(from, inputs) };
                for (plane, &order) in orders.iter().enumerate().take(planes) {
                    x.permute(order).store(to.wrapping_add(plane * next));
                }
                (from, to) = (from.wrapping_offset(pixels.step), to.wrapping_add(L::N));
            }
        }
    }

    /// Copies pixels to the line buffer without permuting their channels, for vectors whose filters
    /// belong to one group. Does not read beyond the last channel of the group.
    ///
    /// # Safety
    /// The conditions of [`LineBuffer::fill_row`] hold.
    #[inline(always)]
    unsafe fn copy_pixels<L: Permute>(&self, s: &Sizes, pixels: Pixels, to: *mut f32) {
        let channels = s.group_channels();
        for at in 0..pixels.count {
            let from = pixels.from.wrapping_offset(at as isize * pixels.step);
            let to = to.wrapping_add(at * CELL);
            for channel in (0..channels).step_by(L::N) {
                let (from, left) = (from.wrapping_add(channel), channels - channel);
                let to = to.wrapping_add(channel / CELL * self.plane + channel % CELL);
                prefetch_line(from.wrapping_offset(pixels.next).cast());
                // SAFETY: guaranteed by the caller.
                unsafe {
                    let x = if left >= L::N { L::load(from) } else { L::load_first(from, left) };
                    x.store(to);
                }
            }
        }
    }
}
