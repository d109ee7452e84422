//! Products of bytes in tile registers ([`crate::amx`]).
//!
//! Recipe: blocks of up to 256 rows of A are copied once for all panels of a piece, so that rows
//! start at cache lines and are padded with zeros: a register whose rows cross lines takes twice as
//! long to load. They are read in blocks of up to 32, by 32 columns of a panel, or of up to 16, by 64
//! columns. Signed bytes need no offset, since there is an instruction for them. Until they are
//! finished, six rows at a time, sums are in scratch memory whose rows do not share sets of the
//! first-level cache.
//!
//! Measured: "8-bit integers" in `docs/performance.md`. [`crate::rules::tile_registers`] states from how
//! many rows on it is used.

use std::arch::x86_64::*;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::{Work, copies};
use crate::amx::{BLOCK_COLUMNS, Block, Edge, Kind, LINE, Stretch, Tiles, strips};
use crate::product::parallel::even_part;
use crate::product::rows::{TILE_ROWS, slivers, split_evenly};
use crate::scratch::Scratch;

/// Number of rows of quads of B that a step reads.
const QUADS: usize = LINE / 4;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// Some columns of a panel.
struct Strip {
    /// The address of its first byte of B.
    b: *const u8,
    /// The index of its first column.
    first: usize,
    /// Columns, rounded up to whole registers.
    width: usize,
    /// The number of columns that have results.
    columns: usize,
}

/// Copies of some rows of A.
struct Rows {
    /// Their indices.
    rows: Range<usize>,
    /// The address of the first copy.
    copy: *mut u8,
    /// The row stride: an odd number of cache lines, so that adjacent rows start in different sets.
    apart: usize,
    /// Their sums; null if columns have no zero points.
    totals: *mut i32,
}

/// Computes some rows of some panels. Returns a kernel status.
///
/// # Safety
/// As for [`super::run`]; the machine has tile registers, and `k` is at most `MAX_DEPTH`.
pub(super) unsafe fn block(w: &Work, rows: Range<usize>, panels: Range<usize>) -> i64 {
    if w.copied {
        let copy = w.g.a.wrapping_offset((rows.start as i64 * w.g.a_row) as isize).cast_mut();
        let (apart, count) = (w.g.a_row as usize, rows.len());
        let all = |totals: *mut i32| {
            // SAFETY: guaranteed by the caller; kernels do not call each other here.
            let mut tiles = unsafe { Tiles::new() };
            let rows = Rows { rows, copy, apart, totals };
            // SAFETY: guaranteed by the caller; the memory has room for the sums of these rows.
            unsafe {
                if !w.g.b_zeros.is_null() {
                    // The copies are in place.
                    rows.copy(w);
                }
                rows.multiply(w, panels, &mut tiles, &mut Edge::new());
            }
            STATUS_OK
        };
        return ROWS.with(|memory| memory.with(count, all));
    }
    let (apart, most) = copies(w.k);
    let blocks = rows.len().div_ceil(most);
    let most = most.min(rows.len());
    let all = |copy: *mut u8| {
        // SAFETY: guaranteed by the caller; kernels do not call each other here.
        let mut tiles = unsafe { Tiles::new() };
        let mut edge = Edge::new();
        for index in 0..blocks {
            let part = even_part(rows.len(), TILE_ROWS, index, blocks);
            let rows = rows.start + part.start..rows.start + part.end;
            let totals = copy.wrapping_add(most * apart).cast();
            let rows = Rows { rows, copy, apart, totals };
            // SAFETY: guaranteed by the caller; the memory has room for these rows.
            unsafe {
                rows.copy(w);
                rows.multiply(w, panels.clone(), &mut tiles, &mut edge);
            }
        }
        STATUS_OK
    };
    ROWS.with(|memory| memory.with(most * (apart + size_of::<i32>()), all))
}

impl Rows {
    /// Copies the rows, padded with zeros to whole steps, and sums each row if required.
    ///
    /// # Safety
    /// The machine has the instructions; the bytes are readable, and the destinations have room for
    /// the copies and sums.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn copy(&self, w: &Work) {
        if w.g.b_zeros.is_null() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.copy_adding(w, |_, sum| sum, |_, _| ()) };
        }
        let (ones, write) = (_mm512_set1_epi8(1), |row: usize, sum| {
            // SAFETY: there is room for the sums.
            unsafe { self.totals.add(row).write(_mm512_reduce_add_epi32(sum)) }
        });
        // SAFETY: guaranteed by the caller.
        unsafe {
            if w.g.a_signed {
                self.copy_adding(w, |x, sum| _mm512_dpbusd_epi32(sum, ones, x), write);
            } else {
                self.copy_adding(w, |x, sum| _mm512_dpbusd_epi32(sum, x, ones), write);
            }
        }
    }

    /// Copies the rows, adding each line of them to a sum, which is written after the row.
    ///
    /// # Safety
    /// As for [`Rows::copy`], whose instructions the caller has enabled.
    #[inline(always)]
    unsafe fn copy_adding(
        &self,
        w: &Work,
        add: impl Fn(__m512i, __m512i) -> __m512i,
        write: impl Fn(usize, __m512i),
    ) {
        let whole = w.k / LINE * LINE;
        let mask = (1u64 << (w.k - whole)) - 1;
        for (index, row) in self.rows.clone().enumerate() {
            // SAFETY: guaranteed by the caller; bytes that the mask excludes are not read.
            unsafe {
                let from = w.g.a.offset((row as i64 * w.g.a_row) as isize);
                let to = self.copy.add(index * self.apart);
                let mut sum = _mm512_setzero_si512();
                for at in (0..whole).step_by(LINE) {
                    let line = _mm512_loadu_si512(from.add(at).cast());
                    _mm512_store_si512(to.add(at).cast(), line);
                    sum = add(line, sum);
                }
                if whole < w.k {
                    let rest = _mm512_maskz_loadu_epi8(mask, from.add(whole).cast());
                    _mm512_store_si512(to.add(whole).cast(), rest);
                    sum = add(rest, sum);
                }
                write(index, sum);
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
        edge: &mut Edge<i32>,
    ) {
        for panel in panels {
            let first = panel * w.width;
            let all = w.width.min(w.n - first);
            for (column, width) in strips(all, self.rows.len()) {
                let at = panel * w.k.div_ceil(4) * w.width + column;
                let strip = Strip {
                    b: w.g.b.cast::<u8>().wrapping_add(at * 4),
                    first: first + column,
                    width,
                    columns: width.min(all - column),
                };
                // SAFETY: guaranteed by the caller.
                unsafe { strip.last_quads(w, edge) };
                for (row, height) in split_evenly(self.rows.len(), TILE_ROWS) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { strip.multiply(w, self, (row, height), tiles, edge) };
                }
            }
        }
    }
}

impl Strip {
    /// Copies the quads after the last whole step.
    ///
    /// # Safety
    /// As for [`block`].
    unsafe fn last_quads(&self, w: &Work, edge: &mut Edge<i32>) {
        if w.k.is_multiple_of(LINE) {
            return;
        }
        let (whole, b_row) = (w.k / LINE * QUADS, w.width * 4);
        let b = (self.b.wrapping_add(whole * b_row), b_row);
        // SAFETY: guaranteed by the caller; panels consist of whole registers of columns.
        unsafe { edge.copy(b, w.k.div_ceil(4) - whole, self.width) };
    }

    /// Multiplies up to [`TILE_ROWS`] rows.
    ///
    /// # Safety
    /// As for [`block`].
    unsafe fn multiply(
        &self,
        w: &Work,
        all: &Rows,
        (row, height): (usize, usize),
        tiles: &mut Tiles,
        edge: &mut Edge<i32>,
    ) {
        let (g, a_row) = (w.g, all.apart as isize);
        let a = all.copy.wrapping_add(row * all.apart).cast_const();
        let c = edge.c.as_mut_ptr();
        let kind = if g.a_signed { Kind::Signed } else { Kind::Unsigned };
        let (whole, rest) = (w.k / LINE, usize::from(!w.k.is_multiple_of(LINE)));
        let stretches = [
            Stretch::new(whole, (a, a_row), (self.b, w.width * 4)),
            Stretch::new(rest, (a.wrapping_add(whole * LINE), a_row), edge.copied()),
        ];
        let block = Block::new(stretches, c.cast(), Edge::<i32>::ROW as isize, false);
        // SAFETY: guaranteed by the caller; the copies end in zeros, and the sums have room for whole registers.
        unsafe { tiles.multiply(kind, height, self.width, &block) };
        let (row, totals) = (all.rows.start + row, all.totals.wrapping_add(row).cast_const());
        let own = |i: usize| c.wrapping_add(i * BLOCK_COLUMNS);
        for (above, rows) in slivers(height) {
            let totals = totals.wrapping_add(above);
            let (c, size) = ((own(above), BLOCK_COLUMNS as isize), (rows, self.columns));
            // SAFETY: guaranteed by the caller; the sums of these rows are complete.
            unsafe { w.finish((totals, row + above), c, size, self.first) };
        }
        if !g.c.is_null() {
            let to = g.c.wrapping_offset((row as i64 * g.c_row + self.first as i64) as isize);
            for i in 0..height {
                // SAFETY: guaranteed by the caller.
                unsafe { own(i).copy_to(to.offset(i as isize * g.c_row as isize), self.columns) };
            }
        }
    }
}
