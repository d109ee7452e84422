//! Matrix products of 8-bit integers in tile registers ([`crate::amx`]).
//!
//! Method: blocks of up to 256 rows of A are copied once for all panels of a piece of work. The
//! copies start at cache lines and are padded with zeros, because a register whose rows cross cache
//! lines takes twice as long to load. Blocks of C have up to 32 rows and 32 columns, or up to 16
//! rows and 64 columns. Signed A needs no offset, because the hardware can multiply signed by
//! signed bytes. Sums are stored in scratch memory, whose rows map to different sets of the
//! first-level cache, and are finished six rows at a time.
//!
//! For measurements, see "8-bit integers" in `docs/internals/measurements/quantized.md`.
//! [`crate::algorithm_selection::tile_registers`] states the number of rows from which tile
//! registers are used.

use std::arch::x86_64::*;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::{CheckedGemm, copy_layout};
use crate::amx::{BLOCK_COLUMNS, Block, Edge, KRange, Kind, LINE, TileRegisters, strips};
use crate::matmul::row_tiling::{TILE_ROWS, slivers, split_evenly};
use crate::matmul::work_partition::even_part;
use crate::scratch_memory::Scratch;

/// Number of 32-bit words of each column of B that a step multiplies. A word contains four adjacent
/// values of k. A step covers 64 values of k, one row of a tile register.
const STEP_WORDS: usize = LINE / 4;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// A strip of columns of a panel of B, which one configuration of tile registers multiplies.
struct Strip {
    /// The address of the strip's first byte.
    b: *const u8,
    /// The index of the strip's first column among all columns of B.
    first: usize,
    /// The number of columns of the strip, rounded up to whole tile registers.
    width: usize,
    /// The number of columns of the strip without padding.
    columns: usize,
}

/// A range of rows of A, and the memory for their copies.
struct RowCopies {
    /// The range of rows of A.
    rows: Range<usize>,
    /// The address of the copy of the first row.
    copy: *mut u8,
    /// The stride between copied rows in bytes: an odd number of cache lines, so that adjacent rows
    /// start in different sets of the cache.
    row_stride: usize,
    /// The destination of the sum of each row; null if the columns of B have no zero points, so
    /// that the sums are not needed.
    row_sums: *mut i32,
}

/// Computes the int8 matrix product for a range of rows and a range of panels. Returns a kernel
/// status: 0 on success.
///
/// # Safety
/// The conditions of [`super::run`] hold; the machine has tile registers, and `k` is at most
/// `MAX_DEPTH`.
pub(super) unsafe fn block(w: &CheckedGemm, rows: Range<usize>, panels: Range<usize>) -> i64 {
    if w.a_is_copied {
        let copy = w.g.a.wrapping_offset((rows.start as i64 * w.g.a_row) as isize).cast_mut();
        let (row_stride, count) = (w.g.a_row as usize, rows.len());
        let run = |row_sums: *mut i32| {
            // SAFETY: guaranteed by the caller; kernels do not call each other here.
            let mut tiles = unsafe { TileRegisters::new() };
            let rows = RowCopies { rows, copy, row_stride, row_sums };
            // SAFETY: guaranteed by the caller; the memory has room for the sums of these rows.
            unsafe {
                if !w.g.b_zeros.is_null() {
                    // The rows are copied onto themselves, for their sums.
                    rows.copy(w);
                }
                rows.multiply(w, panels, &mut tiles, &mut Edge::new());
            }
            STATUS_OK
        };
        return ROWS.with(|memory| memory.with(count, run));
    }
    let (row_stride, max_rows) = copy_layout(w.k);
    let blocks = rows.len().div_ceil(max_rows);
    let max_rows = max_rows.min(rows.len());
    let run = |copy: *mut u8| {
        // SAFETY: guaranteed by the caller; kernels do not call each other here.
        let mut tiles = unsafe { TileRegisters::new() };
        let mut edge = Edge::new();
        for index in 0..blocks {
            let part = even_part(rows.len(), TILE_ROWS, index, blocks);
            let rows = rows.start + part.start..rows.start + part.end;
            let row_sums = copy.wrapping_add(max_rows * row_stride).cast();
            let rows = RowCopies { rows, copy, row_stride, row_sums };
            // SAFETY: guaranteed by the caller; the memory has room for these rows.
            unsafe {
                rows.copy(w);
                rows.multiply(w, panels.clone(), &mut tiles, &mut edge);
            }
        }
        STATUS_OK
    };
    ROWS.with(|memory| memory.with(max_rows * (row_stride + size_of::<i32>()), run))
}

impl RowCopies {
    /// Copies the rows of A, padded with zeros to whole steps. If columns have zero points, also computes the sum of each row.
    ///
    /// # Safety
    /// The machine has AVX-512 with VNNI; the bytes of A are readable, and the destinations have
    /// room for the copies and sums.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn copy(&self, w: &CheckedGemm) {
        if w.g.b_zeros.is_null() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.copy_and_sum(w, |_, sum| sum, |_, _| ()) };
        }
        let (ones, write) = (_mm512_set1_epi8(1), |row: usize, sum| {
            // SAFETY: there is room for the sums.
            unsafe { self.row_sums.add(row).write(_mm512_reduce_add_epi32(sum)) }
        });
        // SAFETY: guaranteed by the caller.
        unsafe {
            if w.g.a_signed {
                self.copy_and_sum(w, |x, sum| _mm512_dpbusd_epi32(sum, ones, x), write);
            } else {
                self.copy_and_sum(w, |x, sum| _mm512_dpbusd_epi32(sum, x, ones), write);
            }
        }
    }

    /// Copies the rows of A cache line by cache line. `add` adds the bytes of a cache line to a
    /// vector of sums, and `write` stores the sum of a row.
    ///
    /// # Safety
    /// The conditions of [`RowCopies::copy`] hold, and the caller has enabled the instructions of
    /// that function.
    #[inline(always)]
    unsafe fn copy_and_sum(
        &self,
        w: &CheckedGemm,
        add: impl Fn(__m512i, __m512i) -> __m512i,
        write: impl Fn(usize, __m512i),
    ) {
        let whole = w.k / LINE * LINE;
        let mask = (1u64 << (w.k - whole)) - 1;
        for (index, row) in self.rows.clone().enumerate() {
            // SAFETY: guaranteed by the caller; bytes that the mask excludes are not read.
            unsafe {
                let from = w.g.a.offset((row as i64 * w.g.a_row) as isize);
                let to = self.copy.add(index * self.row_stride);
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

    /// Multiplies the copied rows of A by a range of panels of B.
    ///
    /// # Safety
    /// The conditions of [`block`] hold.
    unsafe fn multiply(
        &self,
        w: &CheckedGemm,
        panels: Range<usize>,
        tiles: &mut TileRegisters,
        edge: &mut Edge<i32>,
    ) {
        for panel in panels {
            let first = panel * w.width;
            let panel_columns = w.width.min(w.n - first);
            for (column, width) in strips(panel_columns, self.rows.len()) {
                let at = panel * w.k.div_ceil(4) * w.width + column;
                let strip = Strip {
                    b: w.g.b.cast::<u8>().wrapping_add(at * 4),
                    first: first + column,
                    width,
                    columns: width.min(panel_columns - column),
                };
                // SAFETY: guaranteed by the caller.
                unsafe { strip.copy_incomplete_step(w, edge) };
                for (row, height) in split_evenly(self.rows.len(), TILE_ROWS) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { strip.multiply(w, self, (row, height), tiles, edge) };
                }
            }
        }
    }
}

impl Strip {
    /// If the inner dimension `k` is not a multiple of the depth of a step, copies the part of B for the incomplete
    /// last step to `edge`.
    ///
    /// # Safety
    /// The conditions of [`block`] hold.
    unsafe fn copy_incomplete_step(&self, w: &CheckedGemm, edge: &mut Edge<i32>) {
        if w.k.is_multiple_of(LINE) {
            return;
        }
        let (whole, b_row) = (w.k / LINE * STEP_WORDS, w.width * 4);
        let b = (self.b.wrapping_add(whole * b_row), b_row);
        // SAFETY: guaranteed by the caller; panels consist of whole registers of columns.
        unsafe { edge.copy(b, w.k.div_ceil(4) - whole, self.width) };
    }

    /// Multiplies up to [`TILE_ROWS`] copied rows of A by a strip of B.
    ///
    /// # Safety
    /// The conditions of [`block`] hold.
    unsafe fn multiply(
        &self,
        w: &CheckedGemm,
        copies: &RowCopies,
        (row, height): (usize, usize),
        tiles: &mut TileRegisters,
        edge: &mut Edge<i32>,
    ) {
        let (g, a_row) = (w.g, copies.row_stride as isize);
        let a = copies.copy.wrapping_add(row * copies.row_stride).cast_const();
        let c = edge.c.as_mut_ptr();
        let kind = if g.a_signed { Kind::Signed } else { Kind::Unsigned };
        let (whole, rest) = (w.k / LINE, usize::from(!w.k.is_multiple_of(LINE)));
        let k_ranges = [
            KRange::new(whole, (a, a_row), (self.b, w.width * 4)),
            KRange::new(rest, (a.wrapping_add(whole * LINE), a_row), edge.copied()),
        ];
        let block = Block::new(k_ranges, c.cast(), Edge::<i32>::ROW as isize, false);
        // SAFETY: guaranteed by the caller; the copies end in zeros, and the sums have room for whole registers.
        unsafe { tiles.multiply(kind, height, self.width, &block) };
        let (row, row_sums) =
            (copies.rows.start + row, copies.row_sums.wrapping_add(row).cast_const());
        let sums = |i: usize| c.wrapping_add(i * BLOCK_COLUMNS);
        for (above, rows) in slivers(height) {
            let row_sums = row_sums.wrapping_add(above);
            let (c, size) = ((sums(above), BLOCK_COLUMNS as isize), (rows, self.columns));
            // SAFETY: guaranteed by the caller; the sums of these rows are complete.
            unsafe { w.finish((row_sums, row + above), c, size, self.first) };
        }
        if !g.c.is_null() {
            let to = g.c.wrapping_offset((row as i64 * g.c_row + self.first as i64) as isize);
            for i in 0..height {
                // SAFETY: guaranteed by the caller.
                unsafe { sums(i).copy_to(to.offset(i as isize * g.c_row as isize), self.columns) };
            }
        }
    }
}
