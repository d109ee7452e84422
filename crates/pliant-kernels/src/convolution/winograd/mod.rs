//! 3 x 3 filters by Winograd's algorithms F(2x2, 3x3), with 16 multiplications for 4 results
//! instead of 36, and F(4x4, 3x3), with 36 for 16 instead of 144.
//!
//! Recipe (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015): inputs of 4
//! x 4 for each 2 x 2 results (6 x 6 for 4 x 4) are transformed by `B^T d B`, with vectors of
//! channels. Each of the numbers of all tiles of a block is one product with the weights, which
//! were transformed by `G g G^T` when the program was compiled. `A^T m A` computes the results,
//! which an epilogue finishes line by line. Padding is not read but taken as zeros. The inputs of a
//! block and the sums of one panel of filters are in scratch memory: about 1 MB, half of a
//! second-level cache, and more if there are many channels (above 682 for F(2x2), above 303 for
//! F(4x4)), since a block has a minimum number of tiles. If there are few blocks, threads share the
//! panels of each, after transforming its inputs together.
//!
//! Measured, F(2x2), one and two threads, against tiles of plain products: 1.6 and 1.5 times at 56
//! x 56 x 64, 1.7 and 1.8 at 28 x 28 x 128, 1.9 and 2.1 at 14 x 14 x 256, 1.1 and 1.0 at 5 x 5 x
//! 256; 0.6 and 0.85 at 3 x 3 x 256, whose transformed weights are read for four tiles. F(4x4)
//! against F(2x2): 1.6 and 1.4 times at 56 x 56 x 64, 1.8 and 1.4 at 28 x 28 x 128, 1.1 at 14 x 14
//! x 256, 0.6 and 0.7 at 7 x 7 x 512.
//!
//! Rounding: the sums of three and four terms before and after the products double the error of a
//! plain sum with F(2x2), to about 5e-7 of the largest result. The factors up to 8 of F(4x4) make
//! it 6e-6 to 1e-5, so it must be requested. A result of F(2x2) depends only on the inputs under
//! its filter: an infinity among them gives infinity or NaN. Tiles of F(4x4) spread an infinity or
//! a NaN to results that do not read it, sometimes to the whole tile.
//!
//! | module | owns |
//! |---|---|
//! | `transform` | the transforms of one tile's inputs and sums |

mod transform;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_tensor::Winograd;
use transform::{Inputs, Outputs};

use super::Convolution;
use super::shape::Sizes;
use crate::epilogue::{EpilogueTile, Position};
use crate::product::PackedProduct;
use crate::product::share::{part, pieces, share, unit_work};
use crate::rules::convolution::{block_tiles, by_blocks, transformed_unit};
use crate::rules::packed::prefetched_bytes;
use crate::scratch::Scratch;
use pliant_machine::isa::Isa;

/// The state shared by all pieces.
struct Work<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    form: Winograd,
    /// The number of tiles vertically and horizontally.
    tiles: [usize; 2],
    /// Tiles of all images.
    all: usize,
    blocks: usize,
    panels: usize,
    width: usize,
}

/// The algorithm for a convolution with transformed weights, if it is supported: 3 x 3 taps with
/// stride and dilation 1 in 2 dims, channels last.
pub(super) fn form(c: &Convolution, s: &Sizes) -> Option<Winograd> {
    let form = [Winograd::Two, Winograd::Four];
    let form = form.into_iter().find(|form| form.input_tile() as i64 - 3 == c.winograd)?;
    let applies = s.kernel == [1, 3, 3]
        && s.stride == [1; 3]
        && s.dilation == [1; 3]
        && s.before[0] == 0
        && s.input[0] == 1
        && s.output[0] == 1
        && s.groups == 1
        && c.x.channel == 1
        && c.out.channel == 1;
    applies.then_some(form)
}

/// The convolution with transformed weights.
///
/// # Safety
/// The machine has `isa`. `form` is the result of [`form`]. All elements are valid; the results
/// overlap no operand.
pub(super) unsafe fn run(
    isa: Isa,
    runtime: &KernelRuntime,
    (c, s): (&Convolution, &Sizes),
    form: Winograd,
) -> i64 {
    let (tiles, numbers) = (
        [s.output[1], s.output[2]].map(|d| d.div_ceil(form.output_tile())),
        form.filter_elements(),
    );
    let all = s.batch * tiles[0] * tiles[1];
    let width = c.width as usize;
    let most = block_tiles(numbers, s.channels);
    let w = Work {
        c,
        s,
        isa,
        form,
        tiles,
        all,
        blocks: all.div_ceil(most),
        panels: s.filters.div_ceil(width),
        width,
    };
    let each = numbers.saturating_mul(s.channels).saturating_mul(s.filters);
    let units = all.saturating_mul(each) / unit_work();
    if by_blocks(w.blocks, units) {
        let piece = |index: usize| {
            let inputs = w.tiles_of(index).len() * w.tile_size();
            let inputs = inputs.next_multiple_of(LINE);
            // SAFETY: guaranteed by the caller; blocks write disjoint results, and the memory
            // belongs to this thread.
            let block = |v: *mut f32| unsafe {
                w.turn(index, w.tiles_of(index), v);
                w.filters(index, v, v.add(inputs), 0..w.panels);
                STATUS_OK
            };
            SCRATCH.with(|s| s.with(inputs + w.sums(index), block))
        };
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        return unsafe { share(runtime, w.blocks, units / w.blocks, &piece) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { w.together(runtime, units) }
}

/// Elements of a cache line.
const LINE: usize = 16;

thread_local! {
    static SCRATCH: Scratch = const { Scratch::new() };
}

impl Work<'_> {
    /// The tiles of a block.
    fn tiles_of(&self, block: usize) -> Range<usize> {
        part(self.all, 1, block, self.blocks)
    }

    /// The number of elements of a tile's inputs.
    fn tile_size(&self) -> usize {
        self.form.filter_elements() * self.s.channels
    }

    /// The number of elements of the sums of a block and a panel.
    fn sums(&self, block: usize) -> usize {
        self.form.filter_elements() * self.tiles_of(block).len() * self.width
    }

    /// Threads transform the inputs of all blocks, then share the panels of each.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn together(&self, runtime: &KernelRuntime, units: usize) -> i64 {
        let elements = self.all.checked_mul(self.tile_size());
        let bytes = elements.and_then(|elements| elements.checked_mul(size_of::<f32>()));
        let Some(bytes) = bytes else { return STATUS_NO_MEMORY };
        // SAFETY: the runtime is valid; the memory is freed below, on this thread.
        let memory = unsafe { (runtime.alloc_workspace)(bytes as u64) }.cast::<f32>();
        if memory.is_null() {
            return STATUS_NO_MEMORY;
        }
        let inputs =
            |block: usize| memory.wrapping_add(self.tiles_of(block).start * self.tile_size());
        let strips = self.all.div_ceil(pieces()).max(1);
        let turn_strip = |strip: usize| {
            for tile in strip * strips..self.all.min((strip + 1) * strips) {
                let block = (0..self.blocks).find(|&b| self.tiles_of(b).contains(&tile));
                let block = block.unwrap_or_default();
                // SAFETY: guaranteed by the caller; the inputs of tiles are disjoint.
                unsafe { self.turn(block, tile..tile + 1, inputs(block)) };
            }
            STATUS_OK
        };
        let each = self.tile_size() * strips / transformed_unit();
        let cut = pieces().div_ceil(self.blocks).min(self.panels);
        let piece = |index: usize| {
            let (block, cuts) = (index / cut, part(self.panels, 1, index % cut, cut));
            // SAFETY: guaranteed by the caller; panels and blocks write disjoint results.
            let part = |m: *mut f32| unsafe {
                self.filters(block, inputs(block), m, cuts);
                STATUS_OK
            };
            SCRATCH.with(|s| s.with(self.sums(block), part))
        };
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        let status = unsafe {
            match share(runtime, self.all.div_ceil(strips), each, &turn_strip) {
                STATUS_OK => share(runtime, self.blocks * cut, units / (self.blocks * cut), &piece),
                status => status,
            }
        };
        // SAFETY: as above.
        unsafe { (runtime.free_workspace)(memory.cast()) };
        status
    }

    /// The image, line and column of a tile.
    fn place(&self, tile: usize) -> (usize, usize, usize) {
        let [down, across] = self.tiles;
        (tile / (down * across), tile / across % down, tile % across)
    }

    /// Transforms the inputs of some tiles of a block.
    ///
    /// # Safety
    /// As for [`run`]; `v` has room for the inputs of the block.
    unsafe fn turn(&self, block: usize, tiles: Range<usize>, v: *mut f32) {
        let (s, x) = (self.s, &self.c.x);
        let of_block = self.tiles_of(block);
        let (inputs, step) = (transform::inputs(self.isa, self.form), self.form.output_tile());
        let side = self.form.input_tile();
        for tile in tiles {
            let (batch, down, across) = self.place(tile);
            let [top, left] = [(step * down, s.before[1]), (step * across, s.before[2])]
                .map(|(at, before)| at as isize - before as isize);
            let exists = |first: isize, size: usize| {
                let low = (-first).clamp(0, side as isize) as usize;
                low..(size as isize - first).clamp(low as isize, side as isize) as usize
            };
            let first =
                x.offset(batch, [0; 3]) + top * x.pixel[1] as isize + left * x.pixel[2] as isize;
            let t = Inputs {
                x: x.data.wrapping_offset(first),
                pixel: x.pixel[2] as isize,
                line: x.pixel[1] as isize,
                lines: exists(top, s.input[1]),
                pixels: exists(left, s.input[2]),
                channels: s.channels,
                to: v.wrapping_add((tile - of_block.start) * s.channels),
                step: of_block.len() * s.channels,
            };
            // SAFETY: guaranteed by the caller.
            unsafe { inputs(&t) };
        }
    }

    /// Computes the results of some panels of filters of a block.
    ///
    /// # Safety
    /// As for [`run`]; `v` contains the inputs of the block, and `m` has room for its sums.
    unsafe fn filters(&self, block: usize, v: *const f32, m: *mut f32, panels: Range<usize>) {
        let (s, tiles, numbers) = (self.s, self.tiles_of(block).len(), self.form.filter_elements());
        let sums = tiles * self.width;
        for panel in panels {
            for number in 0..numbers {
                let weights = (panel * numbers + number) * s.channels * self.width;
                let product = PackedProduct {
                    m: tiles,
                    n: self.width.min(s.filters - panel * self.width),
                    k: s.channels,
                    a: (v.wrapping_add(number * tiles * s.channels), s.channels as isize, 1),
                    b: self.c.weights.wrapping_add(weights),
                    width: self.width,
                    fed: numbers * s.channels * s.filters > prefetched_bytes() / size_of::<f32>(),
                    c: (m.wrapping_add(number * sums), self.width as isize),
                    accumulate: false,
                };
                // A single panel needs no memory for copies of rows.
                // SAFETY: guaranteed by the caller; the sums have room.
                unsafe { product.block(self.isa, 0..tiles, 0..1) };
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.finish(block, m, panel) };
        }
    }

    /// Computes the results from the sums of a panel.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn finish(&self, block: usize, m: *const f32, panel: usize) {
        let (s, out) = (self.s, &self.c.out);
        let tiles = self.tiles_of(block);
        let (column, step) = (panel * self.width, self.form.output_tile());
        let outputs = transform::outputs(self.isa, self.form);
        let columns = self.width.min(s.filters - column);
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (batch, down, across) = self.place(tile);
            // The tiles of one line are finished together.
            let count = (self.tiles[1] - across).min(tiles.end - tile);
            let [y, x] = [step * down, step * across];
            let first = out.offset(batch, [0, y, x]) + column as isize;
            let lines = (s.output[1] - y).min(step);
            for i in 0..count {
                let t = Outputs {
                    from: m.wrapping_add((tile + i - tiles.start) * self.width),
                    step: tiles.len() * self.width,
                    columns,
                    out: out
                        .data
                        .wrapping_offset(first + (step * i) as isize * out.pixel[2] as isize),
                    pixel: out.pixel[2] as isize,
                    line: out.pixel[1] as isize,
                    lines,
                    pixels: (s.output[2] - x - step * i).min(step),
                };
                // SAFETY: guaranteed by the caller.
                unsafe { outputs(&t) };
            }
            tile += count;
            let Some(epilogue) = &self.c.epilogue else { continue };
            for line in 0..lines {
                let of_line = first + line as isize * out.pixel[1] as isize;
                let results = EpilogueTile {
                    data: out.data.wrapping_offset(of_line),
                    row_stride: out.pixel[2] as isize,
                    rows: (s.output[2] - x).min(step * count),
                    columns,
                    position: Position { batch, row: (y + line) * s.output[2] + x, column },
                };
                // SAFETY: the sums are complete; guaranteed by the caller.
                unsafe { epilogue.finish(self.isa, &results) };
            }
        }
    }
}
