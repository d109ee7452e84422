//! Convolution in groups of few filters. A vector holds adjacent filters of one or several groups,
//! and up to 14 results along a line share the loaded weights.
//!
//! If a vector holds filters of several groups, each lane needs a channel of its own group. Inputs
//! are permuted once for each channel of a group, when they are copied with their padding into a
//! line buffer (`ring`), and then serve all taps. If all filters belong to one group, each input is
//! broadcast to all lanes. The sums stay in registers over all taps. Tiles of products (`implicit`)
//! cannot do this: they add to results once per tap, a tile of six rows at a time.
//!
//! Recipe: direct convolution on a line buffer of input rows. Measured: the cases in groups under
//! "Convolution" in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | `cut` | which filters are computed together |
//! | `ring` | the line buffer of inputs |
//! | `tile` | sums |

mod cut;
mod ring;
mod tile;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};

use super::Convolution;
use super::shape::Sizes;
use crate::epilogue::{EpilogueTile, Position};
use crate::lanes::for_isa;
use crate::lanes::permute::Permute;
use crate::product::parallel::{even_part, parallel_for, unit_work};
use crate::rules::convolution::{bands, is_narrow};
use cut::{Block, Cut};
use pliant_machine::isa::Isa;
use ring::Ring;
use tile::{Line, most};

/// The state shared by all pieces.
struct Work<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    cut: Cut,
    ring: Ring,
    /// The number of parts of a line, and of an image's lines.
    parts: usize,
    bands: usize,
}

/// Some lines of a part of the results of a block of filters.
struct Piece<'a> {
    w: &'a Work<'a>,
    block: Block,
    batch: usize,
    z: usize,
    ys: Range<usize>,
    xs: Range<usize>,
    ring: *mut f32,
    /// The rows of weights, in place or copied, and their stride.
    panel: *const f32,
    panel_row: usize,
}

/// Whether this implementation supports a convolution: groups share panels, or have their own panel
/// of few columns.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    let last = c.x.channel == 1 && c.out.channel == 1;
    s.groups > 1 && last && (s.shared || is_narrow(c.width))
}

/// The convolution; input and results have channels last.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the results overlap no operand.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let (line, lanes) = for_isa!(isa, line(p: &Piece<'_>, y: usize, new: Range<usize>));
    let cut = Cut::new(c, s, lanes);
    let least = most(lanes, 1);
    let Some((ring, parts)) = Ring::new(s, &cut, lanes, least) else { return STATUS_NO_MEMORY };
    let Some(elements) = ring.elements(s.kernel[0]) else { return STATUS_NO_MEMORY };
    // Copies of weights of filters that do not fill a vector follow.
    let rows = s.kernel.iter().product::<usize>() * s.group_channels();
    let bytes = rows.checked_mul(lanes).and_then(|own| own.checked_add(elements));
    let Some(bytes) = bytes.and_then(|all| all.checked_mul(size_of::<f32>())) else {
        return STATUS_NO_MEMORY;
    };
    let others = s.batch * s.output[0] * parts * cut.count();
    let bands = bands(s.output[1], others);
    let w = Work { c, s, isa, cut, ring, parts, bands };
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
            p.whole_weights(rows, lanes, memory.wrapping_add(elements));
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

impl Work<'_> {
    /// Piece `index`. Blocks of filters vary fastest, since their inputs and results are adjacent.
    fn piece(&self, index: usize, ring: *mut f32) -> Piece<'_> {
        let (rest, block) = (index / self.cut.count(), index % self.cut.count());
        let (rest, along) = (rest / self.parts, rest % self.parts);
        let (rest, band) = (rest / self.bands, rest % self.bands);
        let [depth, height, width] = self.s.output;
        let block = self.cut.block(block);
        Piece {
            w: self,
            block,
            batch: rest / depth,
            z: rest % depth,
            ys: even_part(height, 1, band, self.bands),
            xs: even_part(width, 1, along, self.parts),
            ring,
            panel: self.c.weights.wrapping_add(block.weights),
            panel_row: block.next,
        }
    }
}

impl Piece<'_> {
    /// Copies weights that do not fill a vector to `to`, padded with zeros.
    ///
    /// # Safety
    /// `to` has room for `rows` vectors. The weights are valid.
    unsafe fn whole_weights(&mut self, rows: usize, lanes: usize, to: *mut f32) {
        if !self.w.s.shared || self.block.filters >= lanes {
            return;
        }
        for row in 0..rows {
            let from = self.panel.wrapping_add(row * self.panel_row);
            let to = to.wrapping_add(row * lanes);
            // SAFETY: guaranteed by the caller.
            unsafe {
                to.write_bytes(0, lanes);
                from.copy_to_nonoverlapping(to, self.block.filters);
            }
        }
        (self.panel, self.panel_row) = (to, lanes);
    }

    /// All lines, in order: each uses the rows that earlier ones put into the line buffer.
    ///
    /// # Safety
    /// As for [`run`]; `line` is [`line`] with the machine's instructions.
    unsafe fn run(&self, line: unsafe fn(&Piece<'_>, usize, Range<usize>)) {
        let (c, s) = (self.w.c, self.w.s);
        let mut filled = 0;
        for y in self.ys.clone() {
            // All inputs from the first tap to the last, since the taps of another line may be
            // between them.
            let (first, margin) = (y * s.stride[1], s.before[1]);
            let last = (first + self.w.ring.rows).min(margin + s.input[1]);
            let new = first.max(margin).max(filled)..last;
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

    /// The address of the first result of a line.
    fn out(&self, y: usize) -> *mut f32 {
        let out = &self.w.c.out;
        let at = out.offset(self.batch, [self.z, y, self.xs.start]);
        out.data.wrapping_offset(at).wrapping_add(self.block.filter)
    }
}

/// Copies the input rows `new`, counted from the first row of padding, into the line buffer, and
/// computes a line of results.
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. As for [`run`].
#[inline(always)]
unsafe fn line<L: Permute>(p: &Piece<'_>, y: usize, new: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if p.w.cut.is_spread() {
            form::<L, 1, true>(p, y, new);
        } else if p.block.vectors == 1 {
            form::<L, 1, false>(p, y, new);
        } else {
            form::<L, 2, false>(p, y, new);
        }
    }
}

/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn form<L: Permute, const V: usize, const SPREAD: bool>(
    p: &Piece<'_>,
    y: usize,
    new: Range<usize>,
) {
    let Work { c, s, ring, .. } = p.w;
    let taps = [s.taps(0, p.z), s.taps(1, y)];
    for z in taps[0].clone() {
        let plane = p.z * s.stride[0] + z * s.dilation[0] - s.before[0];
        for row in new.clone() {
            let from = c.x.data.wrapping_offset(c.x.offset(p.batch, [plane, row - s.before[1], 0]));
            let to = p.ring.wrapping_add((z * ring.rows + row % ring.rows) * ring.row());
            // SAFETY: the row is one of the input; the line buffer is large enough.
            unsafe { ring.fill::<L, SPREAD>((c, s), from, &p.block, p.xs.start, to) };
        }
    }
    let first = (y * s.stride[1] + taps[1].start * s.dilation[1]) % ring.rows;
    let line = Line {
        ring,
        inputs: p.ring.cast_const(),
        first,
        taps,
        kernel: s.kernel,
        dilation: [s.dilation[1], s.dilation[2]],
        stride: s.stride[2],
        channels: s.group_channels(),
        weights: p.panel,
        next: p.panel_row,
        out: p.out(y),
        pixel: c.out.pixel[2] as isize,
        filters: p.block.filters,
    };
    let count = p.xs.len().div_ceil(most(L::N, V));
    for tile in 0..count {
        let xs = even_part(p.xs.len(), 1, tile, count);
        // SAFETY: the line buffer contains the inputs; guaranteed by the caller.
        unsafe { tile::run::<L, V, SPREAD>(&line, xs.start, xs.len()) };
    }
}
