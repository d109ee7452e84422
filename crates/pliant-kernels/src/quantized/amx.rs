//! Products of bytes in tile registers ([`crate::amx`]).
//!
//! Recipe: blocks of up to 256 rows of A are copied once for all panels of a piece, so that rows begin lines of the caches and
//! end in zeros: a register whose rows cross lines takes twice as long to read. They are read in blocks of up to 32, by 32
//! columns of a panel. Signed bytes need no turning over, since there is an instruction for them. Sums lie in scratch memory,
//! whose rows do not share sets of the first-level cache, until they are finished, six rows at a time.

use std::arch::x86_64::*;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::Work;
use crate::amx::{BLOCK_COLUMNS, BLOCK_ROWS, Block, Kind, LINE, Stretch, Tiles, strips};
use crate::product::rows::{even, slivers};
use crate::product::share::part;
use crate::scratch::Scratch;

/// Bytes of the copies, about: a part of the second-level cache.
const COPIED: usize = 256 * 1024;
/// Rows of quads of B that a step reads.
const QUADS: usize = LINE / 4;
/// From row to row of what [`Edge`] holds, in bytes.
const EDGE_ROW: usize = BLOCK_COLUMNS * 4;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// The quads of a strip that a last step lacks some of, and the sums of a block.
#[repr(C, align(64))]
struct Edge {
    b: [u32; QUADS * BLOCK_COLUMNS],
    c: [i32; BLOCK_ROWS * BLOCK_COLUMNS],
}

/// Some columns of a panel.
struct Strip {
    /// Its first word of B.
    b: *const u32,
    /// Number of its first column.
    first: usize,
    /// Columns of registers.
    width: usize,
    /// Columns that there are results for.
    columns: usize,
}

/// Copies of some rows of A.
struct Rows {
    /// Their numbers.
    rows: Range<usize>,
    /// The first.
    copy: *mut u8,
    /// From row to row: an odd number of lines, so that neighbours begin in different sets.
    apart: usize,
}

/// Some rows of some panels. Returns a kernel status.
///
/// # Safety
/// As for [`super::run`]; the machine has tile registers, and `k` is at most `DEEP`.
pub(super) unsafe fn block(w: &Work, rows: Range<usize>, panels: Range<usize>) -> i64 {
    let apart = (w.k.div_ceil(LINE) | 1) * LINE;
    let most = (COPIED / apart / BLOCK_ROWS).clamp(1, 8) * BLOCK_ROWS;
    let blocks = rows.len().div_ceil(most);
    let all = |copy: *mut u8| {
        // SAFETY: the caller's promise; kernels do not call each other here.
        let mut tiles = unsafe { Tiles::new() };
        let mut edge = Edge { b: [0; _], c: [0; _] };
        for index in 0..blocks {
            let part = part(rows.len(), BLOCK_ROWS, index, blocks);
            let rows = rows.start + part.start..rows.start + part.end;
            let rows = Rows { rows, copy, apart };
            // SAFETY: the caller's promise; the memory has room for these rows.
            let status = unsafe {
                rows.copy(w);
                rows.multiply(w, panels.clone(), &mut tiles, &mut edge)
            };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    };
    ROWS.with(|memory| memory.with(most.min(rows.len()) * apart, all))
}

impl Rows {
    /// Copies the rows, up to whole steps with zeros.
    ///
    /// # Safety
    /// The machine has the instructions; the bytes are readable, and there is room for the copies.
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn copy(&self, w: &Work) {
        let whole = w.k / LINE * LINE;
        let mask = (1u64 << (w.k - whole)) - 1;
        for (index, row) in self.rows.clone().enumerate() {
            // SAFETY: the caller's promise; bytes that the mask leaves out are not read.
            unsafe {
                let from = w.g.a.offset((row as i64 * w.g.a_row) as isize);
                let to = self.copy.add(index * self.apart);
                for at in (0..whole).step_by(LINE) {
                    _mm512_store_si512(to.add(at).cast(), _mm512_loadu_si512(from.add(at).cast()));
                }
                if whole < w.k {
                    let rest = _mm512_maskz_loadu_epi8(mask, from.add(whole).cast());
                    _mm512_store_si512(to.add(whole).cast(), rest);
                }
            }
        }
    }

    /// Multiplies the rows by some panels.
    ///
    /// # Safety
    /// As for [`block`].
    unsafe fn multiply(
        &self,
        w: &Work,
        panels: Range<usize>,
        tiles: &mut Tiles,
        edge: &mut Edge,
    ) -> i64 {
        for panel in panels {
            let first = panel * w.width;
            let all = w.width.min(w.n - first);
            for (column, width) in strips(all, self.rows.len()) {
                let at = panel * w.k.div_ceil(4) * w.width + column;
                let strip = Strip {
                    b: w.g.b.cast::<u32>().wrapping_add(at),
                    first: first + column,
                    width,
                    columns: width.min(all - column),
                };
                // SAFETY: the caller's promise.
                unsafe { strip.last_quads(w, edge) };
                for (row, height) in even(self.rows.len(), BLOCK_ROWS) {
                    // SAFETY: the caller's promise.
                    let status = unsafe { strip.multiply(w, self, (row, height), tiles, edge) };
                    if status != STATUS_OK {
                        return status;
                    }
                }
            }
        }
        STATUS_OK
    }
}

impl Strip {
    /// Copies the quads beyond whole steps.
    ///
    /// # Safety
    /// As for [`block`].
    unsafe fn last_quads(&self, w: &Work, edge: &mut Edge) {
        if w.k.is_multiple_of(LINE) {
            return;
        }
        edge.b.fill(0);
        let whole = w.k / LINE * QUADS;
        for (quad, to) in (whole..w.k.div_ceil(4)).zip(edge.b.chunks_exact_mut(BLOCK_COLUMNS)) {
            // SAFETY: the caller's promise; panels have whole registers of columns.
            unsafe { self.b.wrapping_add(quad * w.width).copy_to(to.as_mut_ptr(), self.width) };
        }
    }

    /// Up to [`BLOCK_ROWS`] rows.
    ///
    /// # Safety
    /// As for [`block`].
    unsafe fn multiply(
        &self,
        w: &Work,
        all: &Rows,
        (row, height): (usize, usize),
        tiles: &mut Tiles,
        edge: &mut Edge,
    ) -> i64 {
        let (g, a_row) = (w.g, all.apart as isize);
        let a = all.copy.wrapping_add(row * all.apart).cast_const();
        let c = edge.c.as_mut_ptr();
        let kind = if g.a_signed != 0 { Kind::Signed } else { Kind::Unsigned };
        let (whole, rest) = (w.k / LINE, usize::from(!w.k.is_multiple_of(LINE)));
        let last = (edge.b.as_ptr().cast(), EDGE_ROW);
        let stretches = [
            Stretch::new(whole, (a, a_row), (self.b.cast(), w.width * 4)),
            Stretch::new(rest, (a.wrapping_add(whole * LINE), a_row), last),
        ];
        let block = Block::new(stretches, c.cast(), EDGE_ROW as isize, false);
        // SAFETY: the caller's promise; the copies end in zeros, and the sums have room for whole registers.
        unsafe { tiles.multiply(kind, height, self.width, &block) };
        let row = all.rows.start + row;
        let a = g.a.wrapping_offset((row as i64 * g.a_row) as isize);
        let own = |i: usize| c.wrapping_add(i * BLOCK_COLUMNS);
        for (above, rows) in slivers(height) {
            let a = a.wrapping_offset((above as i64 * g.a_row) as isize);
            let (c, size) = ((own(above), BLOCK_COLUMNS as isize), (rows, self.columns));
            // SAFETY: the caller's promise; the sums of these rows are complete.
            let status = unsafe { w.finish((a, row + above), c, size, self.first) };
            if status != STATUS_OK {
                return status;
            }
        }
        if !g.c.is_null() {
            let to = g.c.wrapping_offset((row as i64 * g.c_row + self.first as i64) as isize);
            for i in 0..height {
                // SAFETY: the caller's promise.
                unsafe { own(i).copy_to(to.offset(i as isize * g.c_row as isize), self.columns) };
            }
        }
        STATUS_OK
    }
}
