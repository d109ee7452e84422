//! Matrix products of 8-bit integers with int32 sums: `c[i, j]` is the sum over `p` of `(a[i, p] -
//! a_zero[i]) * (b[p, j] - b_zero[j])`.
//!
//! Method: the same as for packed float32 operands, with four adjacent values of k in each 32-bit
//! lane. A 32-bit word of A (four values of k) is broadcast to all lanes. One instruction
//! (`vpdpbusd`) multiplies the word's unsigned bytes by the signed bytes of B and adds the four
//! products. k is not split. The highest bit of signed bytes of A is flipped, which adds 128. Zero
//! points are subtracted from the sums at the end. The subtraction uses the column sums of B, which
//! packing computes, and the row sums of A. The row sums are computed only if B has zero points.
//! Sums wrap around on overflow of int32, as in the reference. Tile registers are used if the
//! machine has them, except for few rows or a very large k.
//!
//! For measurements, see "8-bit integers" in `docs/internals/measurements/quantized.md`, which
//! states the rates with and without tile registers.
//!
//! | module | owns |
//! |---|---|
//! | `int8_amx_matmul` | matrix products of many rows in tile registers |
//! | `matmul_entry_point` | the declared kernel |
//! | `convolution` | convolutions, by im2col |
//! | `int8_epilogue` | the conversion of sums to float32 or 8 bits |
//! | `int8_micro_kernel` | the micro-kernel |
//! | `requantization`, `avx512_requantization` | the requantization of results to 8 bits |
//! | `zero_point_correction` | the subtraction of zero points |
//!
//! Right operands are packed by [`pack_vnni`].

#[cfg(target_arch = "x86_64")]
mod avx512_requantization;
pub mod convolution;
#[cfg(target_arch = "x86_64")]
mod int8_amx_matmul;
mod int8_epilogue;
mod int8_micro_kernel;
mod matmul_entry_point;
mod requantization;
mod zero_point_correction;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use crate::algorithm_selection::quantized::{
    MAX_COPIED_BLOCKS, TILE_SPEEDUP, VECTOR_SPEEDUP, copied_bytes,
};
use crate::algorithm_selection::tile_registers;
use crate::epilogue::{EpilogueTile, MAX_TILE_COLUMNS, MAX_TILE_ROWS, Position};
use crate::matmul::micro_kernel::{LINE, ROWS};
use crate::matmul::row_tiling::{TILE_ROWS, slivers};
use crate::matmul::work_partition::{Partition, parallel_for};
use crate::simd::for_isa;
pub use convolution::Int8Conv;
pub use int8_epilogue::IntegerEpilogue;
use int8_micro_kernel::{Kernels, Tile, kernels};
pub use matmul_entry_point::Int8Product;
use pliant_machine::isa::Isa;
pub use pliant_tensor::{VnniMatrix, pack_vnni};
pub use requantization::Requantization;
use requantization::ZeroPoints;
use zero_point_correction::{RawTile, subtract_zero_points, sum_rows};

/// The arguments of a matrix product of 8-bit integers. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedGemm {
    /// Number of rows of A and C.
    pub m: i64,
    /// Number of columns of B and C.
    pub n: i64,
    /// Number of columns of A, equal to the number of rows of B.
    pub k: i64,
    /// The address of A, 8-bit integers whose rows are contiguous.
    pub a: *const u8,
    /// The stride between rows of A, in elements.
    pub a_row: i64,
    /// Whether A is int8 instead of uint8.
    pub a_signed: bool,
    /// The address of the zero points of A, one for each row; null if all are 0.
    pub a_zeros: *const i32,
    /// The distance between the zero points of adjacent rows, in elements: 0 if all rows share one
    /// zero point.
    pub a_zeros_stride: i64,
    /// The address of B, as packed by [`pack_vnni`].
    pub b: *const i8,
    /// Number of columns of a panel of B.
    pub width: i64,
    /// The address of the sums of the elements of B, one for each column.
    pub sums: *const i32,
    /// The address of the zero points of B, one for each column; null if all are 0.
    pub b_zeros: *const i32,
    /// The address of C, whose rows are contiguous; null if the epilogue writes 8-bit results
    /// instead.
    pub c: *mut i32,
    /// The stride between rows of C, in elements.
    pub c_row: i64,
    /// The epilogue; `None` if the results are the int32 sums.
    pub epilogue: Option<IntegerEpilogue>,
}

/// Memory for the sums of a tile.
#[repr(C, align(64))]
struct Scratch([i32; MAX_TILE_ROWS * MAX_TILE_COLUMNS]);

/// A matrix product whose sizes have been checked, and the choice of its implementation.
#[derive(Clone, Copy)]
struct CheckedGemm<'a> {
    g: &'a QuantizedGemm,
    isa: Isa,
    kernels: &'static Kernels,
    /// Whether the product is computed with tile registers (AMX).
    uses_tile_registers: bool,
    /// Whether A is already a copy in scratch memory, with rows that start at cache lines, are
    /// writable, and are padded to whole cache lines.
    a_is_copied: bool,
    m: usize,
    n: usize,
    k: usize,
    width: usize,
}

/// Computes a matrix product of 8-bit integers with the given instruction set. Returns a kernel
/// status: 0 on success.
///
/// # Safety
/// The machine has `isa`. The runtime is valid; all addressed elements are valid, including whole
/// panels and the operands of the epilogue; C overlaps no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, g: &QuantizedGemm) -> i64 {
    let Some(w) = CheckedGemm::of(isa, g) else { return STATUS_BAD_ARGUMENTS };
    if w.m == 0 || w.n == 0 {
        return STATUS_OK;
    }
    let panels = w.n.div_ceil(w.width);
    let k = w.k.div_ceil(w.speedup());
    let (partition, unit) = match w.uses_tile_registers {
        true => {
            (Partition::of_product((w.m, TILE_ROWS), w.n, k, panels).coarsen_panels(), TILE_ROWS)
        }
        false => (Partition::of_product((w.m, ROWS), w.n, k, panels), ROWS),
    };
    let piece = |index: usize| {
        let (rows, panels) = partition.piece(index, (w.m, unit), panels);
        // SAFETY: guaranteed by the caller; pieces write disjoint results.
        unsafe { w.block(rows, panels) }
    };
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, partition.pieces(), partition.piece_micros, &piece) }
}

/// Returns the row stride of copies of A, in bytes, and the maximum number of rows that are copied
/// at once. The stride is an odd number of cache lines, so that adjacent rows start in different
/// sets of the first-level cache.
fn copy_layout(k: usize) -> (usize, usize) {
    let row_stride = (k.div_ceil(LINE) | 1) * LINE;
    let blocks = (copied_bytes() / row_stride / TILE_ROWS).clamp(1, MAX_COPIED_BLOCKS);
    (row_stride, blocks * TILE_ROWS)
}

impl<'a> CheckedGemm<'a> {
    /// Checks the arguments of a matrix product and chooses its implementation; `None` if the arguments are invalid.
    fn of(isa: Isa, g: &'a QuantizedGemm) -> Option<CheckedGemm<'a>> {
        let to_usize = |d: i64| usize::try_from(d).ok();
        let (m, n, k) = (to_usize(g.m)?, to_usize(g.n)?, to_usize(g.k)?);
        let width = to_usize(g.width)
            .filter(|&w| w > 0 && w.is_multiple_of(16) && w <= MAX_TILE_COLUMNS)?;
        let has_destination =
            !g.c.is_null() || g.epilogue.is_some_and(|e| e.requantization.is_some());
        let uses_tile_registers = isa == Isa::Amx && tile_registers::used_for_bytes(m, n, k);
        let kernels = kernels(isa);
        has_destination.then_some(CheckedGemm {
            g,
            isa,
            kernels,
            uses_tile_registers,
            a_is_copied: false,
            m,
            n,
            k,
            width,
        })
    }

    /// Returns the estimated throughput of the product relative to float32, from which the size of
    /// the pieces of work is computed.
    fn speedup(&self) -> usize {
        if self.uses_tile_registers { TILE_SPEEDUP } else { VECTOR_SPEEDUP }
    }

    /// Computes the results of a range of rows for a range of panels. Returns a kernel status: out
    /// of memory if rows cannot be copied for tile registers, or 0.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn block(&self, rows: Range<usize>, panels: Range<usize>) -> i64 {
        #[cfg(target_arch = "x86_64")]
        if self.uses_tile_registers {
            // SAFETY: guaranteed by the caller.
            return unsafe { int8_amx_matmul::block(self, rows, panels) };
        }
        for panel in panels {
            for (row, height) in slivers(rows.len()) {
                // SAFETY: guaranteed by the caller.
                unsafe { self.sliver(rows.start + row, height, panel) };
            }
        }
        STATUS_OK
    }

    /// Computes the results for one sliver (the rows of a register tile) and one panel, strip by
    /// strip of columns.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn sliver(&self, row: usize, height: usize, panel: usize) {
        let g = self.g;
        let first = panel * self.width;
        let columns = self.width.min(self.n - first);
        let a = g.a.wrapping_offset((row as i64 * g.a_row) as isize);
        let mut scratch = Scratch([0; MAX_TILE_ROWS * MAX_TILE_COLUMNS]);
        let (c, c_row) = if g.c.is_null() {
            (scratch.0.as_mut_ptr(), MAX_TILE_COLUMNS as isize)
        } else {
            let offset = row as i64 * g.c_row + first as i64;
            (g.c.wrapping_offset(offset as isize), g.c_row as isize)
        };
        let signed = g.a_signed;
        let quads = self.k.div_ceil(4);
        for column in (0..columns).step_by(self.kernels.columns()) {
            let width = self.kernels.columns().min(columns - column);
            let mut tile = Tile {
                k: self.k,
                a,
                a_row: g.a_row as isize,
                flip: if signed { 0x8080_8080 } else { 0 },
                b: g.b.wrapping_add((panel * quads * self.width + column) * 4),
                b_row: self.width * 4,
                c: c.wrapping_add(column),
                c_row,
                last: 0,
            };
            // SAFETY: guaranteed by the caller.
            unsafe { self.kernels.run(height, width, &mut tile) };
        }
        let mut row_sums = [0; MAX_TILE_ROWS];
        // SAFETY: guaranteed by the caller; the sums of the tile are complete.
        unsafe {
            if !g.b_zeros.is_null() {
                let (a, k) = ((a, g.a_row as isize), (self.k, signed));
                let add = for_isa!(self.isa, sum_rows(a: (*const u8, isize), k: (usize, bool), row_sums: &mut [i32])).0;
                add(a, k, &mut row_sums[..height]);
            }
            self.finish((row_sums.as_ptr(), row), (c, c_row), (height, columns), first);
        }
    }

    /// Returns the number that is added to each byte of A: 128 if the highest bit of int8 is
    /// flipped to make the bytes unsigned; 0 for uint8, and for tile registers, which support
    /// signed bytes.
    fn a_offset(&self) -> i32 {
        if self.g.a_signed && !self.uses_tile_registers { 128 } else { 0 }
    }

    /// Whether the product has zero points, which must be subtracted from the sums.
    fn has_zeros(&self) -> bool {
        self.a_offset() != 0 || !self.g.a_zeros.is_null() || !self.g.b_zeros.is_null()
    }

    /// Subtracts the zero points from the sums of a tile and applies the epilogue.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn finish(
        &self,
        (row_sums, row): (*const i32, usize),
        (c, c_row): (*mut i32, isize),
        size: (usize, usize),
        first: usize,
    ) {
        let (data, row_stride, (rows, columns)) = (c.cast(), c_row, size);
        let position = Position { batch: 0, row, column: first };
        let tile = EpilogueTile { data, row_stride, rows, columns, position };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(epilogue) = &self.g.epilogue
                && self.g.b_zeros.is_null()
                && epilogue.requantize(self.isa, &tile, &self.left_zeros())
            {
                return;
            }
            if self.has_zeros() {
                let read = RawTile { row_sums, row, c, c_row, size, first };
                for_isa!(self.isa, subtract_zero_points(work: &CheckedGemm, tile: &RawTile)).0(
                    self, &read,
                );
            }
            if let Some(epilogue) = &self.g.epilogue {
                epilogue.finish(self.isa, &tile);
            }
        }
    }

    /// Returns the zero points of the left operand, including the number that is added to its bytes.
    fn left_zeros(&self) -> ZeroPoints {
        let (zeros, stride) = (self.g.a_zeros, self.g.a_zeros_stride);
        ZeroPoints { zeros, stride, offset: self.a_offset(), column_sums: self.g.sums }
    }
}
