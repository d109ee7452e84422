//! Matrix products of many float32 rows (A) by bfloat16 weights (B) in tile registers
//! ([`crate::amx`]). A is rounded to bfloat16, too.
//!
//! Method: blocks of A of up to 256 rows and 512 values of k are converted to bfloat16 once for all
//! panels of a piece of work, in scratch memory that stays in the second-level cache. A strip of 32
//! columns of B over the same 512 values of k takes 32 KB and stays in the first-level cache while
//! it is multiplied by all rows of the block.
//!
//! For measurements, see "Weights of 4, 8 and 16 bits" in
//! `docs/internals/measurements/low-precision-weights.md`. Cases of five or more rows use this
//! implementation.

use std::arch::x86_64::*;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::CheckedGemm;
use crate::algorithm_selection::low_precision_weights::{COPY_DEPTH, COPY_ROWS};
use crate::amx::{BLOCK_COLUMNS, Block, COLUMNS, Edge, KRange, Kind, LINE, TileRegisters, strips};
use crate::matmul::row_tiling::{TILE_ROWS, split_evenly};
use crate::matmul::work_partition::even_part;
use crate::scratch_memory::Scratch;

/// Number of rows of B, along the inner dimension `k`, that one step of the micro-kernel reads: the number of bfloat16
/// numbers in a row of a tile register.
const STEP: usize = LINE / size_of::<u16>();
/// Number of pairs of rows of B, along the inner dimension `k`, that a step of the micro-kernel reads.
const STEP_PAIRS: usize = STEP / 2;
/// Distance in bytes between the copied rows of A: an odd number of cache lines, so that adjacent rows start in
/// different sets of the cache.
const A_ROW_BYTES: usize = COPY_DEPTH * size_of::<u16>() + LINE;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// The part of B that a tile multiplies: a strip of columns of a panel, over a range of the inner dimension `k`.
struct Strip {
    panel: usize,
    /// The index of the strip's first column within the panel.
    column: usize,
    /// The number of columns of the strip without padding.
    columns: usize,
    k: Range<usize>,
}

/// Computes the matrix product for a range of rows and a range of panels. Returns a kernel status:
/// 0 on success.
///
/// # Safety
/// The conditions of [`super::run`] hold; the machine has tile registers.
pub(super) unsafe fn many_rows(w: &CheckedGemm, rows: Range<usize>, panels: Range<usize>) -> i64 {
    // SAFETY: guaranteed by the caller; kernels do not call each other here.
    let mut tiles = unsafe { TileRegisters::new() };
    let mut edge = Edge::new();
    let blocks = rows.len().div_ceil(COPY_ROWS);
    let max_rows = COPY_ROWS.min(rows.len());
    ROWS.with(|memory| {
        memory.with(max_rows * A_ROW_BYTES, |a: *mut u8| {
            for index in 0..blocks {
                let block = even_part(rows.len(), TILE_ROWS, index, blocks);
                let block = rows.start + block.start..rows.start + block.end;
                for start in (0..w.k.max(1)).step_by(COPY_DEPTH) {
                    let k = start..w.k.min(start + COPY_DEPTH);
                    // SAFETY: guaranteed by the caller; the memory has room for the rows.
                    unsafe { round_to_bfloat16(w, block.clone(), k.clone(), a) };
                    for panel in panels.clone() {
                        let panel_columns = w.width.min(w.n - panel * w.width);
                        let height = block.len().min(TILE_ROWS);
                        for (column, width) in strips(panel_columns, height) {
                            let columns = width.min(panel_columns - column);
                            let strip = Strip { panel, column, columns, k: k.clone() };
                            // SAFETY: guaranteed by the caller.
                            unsafe { strip.multiply(w, &block, a, &mut tiles, &mut edge) };
                        }
                    }
                }
            }
            STATUS_OK
        })
    })
}

impl Strip {
    /// Multiplies a range of rows of A by a strip of B. `a` is the address of the bfloat16 copies
    /// of these rows.
    ///
    /// # Safety
    /// The conditions of [`many_rows`] hold.
    unsafe fn multiply(
        &self,
        w: &CheckedGemm,
        rows: &Range<usize>,
        a: *const u8,
        tiles: &mut TileRegisters,
        edge: &mut Edge<f32>,
    ) {
        let g = w.g;
        let whole = self.k.len() / STEP;
        let b_row = w.width * size_of::<u32>();
        let b = g.b.wrapping_add(self.panel * g.format.panel_bytes(w.k, w.width));
        let b = b.wrapping_add(self.k.start / 2 * b_row + self.column * size_of::<u32>());
        let pairs = self.k.len().div_ceil(2) - whole * STEP_PAIRS;
        let width = self.columns.next_multiple_of(COLUMNS);
        if pairs > 0 {
            let rest = (b.wrapping_add(whole * STEP_PAIRS * b_row), b_row);
            // SAFETY: guaranteed by the caller; panels are as wide as `width`.
            unsafe { edge.copy(rest, pairs, width) };
        }
        let accumulate = self.k.start > 0;
        for (row, height) in split_evenly(rows.len(), TILE_ROWS) {
            let a = a.wrapping_add(row * A_ROW_BYTES);
            let rest = a.wrapping_add(whole * LINE);
            let k_ranges = [
                KRange::new(whole, (a, A_ROW_BYTES as isize), (b, b_row)),
                KRange::new(usize::from(pairs > 0), (rest, A_ROW_BYTES as isize), edge.copied()),
            ];
            let row_offset = (rows.start + row) as i64 * g.c_row;
            let first = (self.panel * w.width + self.column) as i64;
            let c = g.c.wrapping_offset((row_offset + first) as isize);
            let c_row = g.c_row as isize;
            // SAFETY: guaranteed by the caller; the copies end in zeros.
            unsafe {
                if width == self.columns {
                    let c_row = c_row * size_of::<f32>() as isize;
                    let block = Block::new(k_ranges, c.cast(), c_row, accumulate);
                    tiles.multiply(Kind::BFloat16, height, width, &block);
                    continue;
                }
                let buffer = edge.c.as_mut_ptr();
                let rows_at =
                    |i: usize| (c.offset(i as isize * c_row), buffer.add(i * BLOCK_COLUMNS));
                if accumulate {
                    (0..height)
                        .map(rows_at)
                        .for_each(|(c, buffer)| c.copy_to(buffer, self.columns));
                }
                let block =
                    Block::new(k_ranges, buffer.cast(), Edge::<f32>::ROW as isize, accumulate);
                tiles.multiply(Kind::BFloat16, height, width, &block);
                (0..height).map(rows_at).for_each(|(c, buffer)| buffer.copy_to(c, self.columns));
            }
        }
    }
}

/// Converts a block of A to bfloat16, rounded to nearest, ties to even. The converted rows are padded with zeros to a
/// multiple of [`STEP`] columns.
///
/// # Safety
/// The machine has AVX-512 with bfloat16; the elements of A are readable, and `to` has room for the
/// converted rows.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn round_to_bfloat16(w: &CheckedGemm, rows: Range<usize>, k: Range<usize>, to: *mut u8) {
    for (index, row) in rows.enumerate() {
        let from = w.g.a.wrapping_offset((row as i64 * w.g.a_row) as isize).wrapping_add(k.start);
        let to = to.wrapping_add(index * A_ROW_BYTES);
        let whole = k.len() / STEP * STEP;
        // SAFETY: guaranteed by the caller; elements that a mask excludes are not read.
        unsafe {
            for at in (0..whole).step_by(STEP) {
                let (low, high) = (from.add(at), from.add(at + 16));
                let both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(high), _mm512_loadu_ps(low));
                to.add(at * 2).cast::<__m512bh>().write_unaligned(both);
            }
            if whole < k.len() {
                let mask = (1u32 << (k.len() - whole)) - 1;
                let low = _mm512_maskz_loadu_ps(mask as __mmask16, from.add(whole));
                let high = from.wrapping_add(whole + 16);
                let high = _mm512_maskz_loadu_ps((mask >> 16) as __mmask16, high);
                let both = _mm512_cvtne2ps_pbh(high, low);
                to.add(whole * 2).cast::<__m512bh>().write_unaligned(both);
            }
        }
    }
}
