//! Products of 8-bit integers with sums in 32 bits, exact: `c[i, j]` is the sum of
//! `(a[i, p] - a_zero[i]) * (b[p, j] - b_zero[j])`.
//!
//! Recipe: as for packed operands of float32, with four neighbours of k in each 32-bit lane: a word of A goes to all lanes, and one
//! instruction multiplies its unsigned bytes by the signed bytes of B and adds the four products (`vpdpbusd`). All of k is summed
//! at once. Signed bytes of A are read with their highest bit turned over, which adds 128. Zero points are taken out of the sums at
//! the end, by the sums of columns, which packing leaves, and of rows, which are added up only where B has zero points. Sums
//! wrap around beyond 32 bits, as those of the reference do. Where there are tile registers they take all but few rows
//! and sums of very many products.
//!
//! Measured, with and without tile registers: "8-bit integers" in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | `amx` | many rows in tile registers |
//! | `call` | the entry points that loop functions call |
//! | `convolution` | convolutions: products of copied patches |
//! | `finish` | what becomes of sums |
//! | `tile` | the micro-kernel |
//! | `zeros` | zero points taken out of sums |
//!
//! Right operands are packed by [`pack_quads`].

#[cfg(target_arch = "x86_64")]
mod amx;
mod call;
pub mod convolution;
mod finish;
mod tile;
mod zeros;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use crate::epilogue::{Epilogue, MOST_COLUMNS, MOST_ROWS, Place, finish};
use crate::isa::{Isa, isa};
use crate::lanes::for_isa;
use crate::product::rows::{TILE_ROWS, slivers};
use crate::product::share::{cut, share};
use crate::product::tile::{LINE, ROWS};
use crate::rules::quantized::{COPIED, FAST, MOST_COPIED, TILES_FAST};
use crate::rules::tiles;
pub use call::Int8Product;
pub use convolution::Int8Conv;
pub use finish::pliant_epilogue_int32;
pub use pliant_tensor::{Quads, pack_quads};
use tile::{Kernels, Tile, kernels};
use zeros::{ReadTile, add_rows, take_zeros};

/// One product: 64-bit words, so that generated code may write them as an array. Strides count elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QuantizedGemm {
    /// Rows of A and C.
    pub m: i64,
    /// Columns of B and C.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// A: bytes, whose rows are contiguous.
    pub a: *const u8,
    /// From row to row of A.
    pub a_row: i64,
    /// Whether the bytes of A are signed.
    pub a_signed: i64,
    /// Zero points of the rows of A; null where all are 0.
    pub a_zeros: *const i32,
    /// From row to row of them: 0 where all rows have one.
    pub a_zeros_step: i64,
    /// B, as [`pack_quads`] leaves it.
    pub b: *const i8,
    /// Columns of a panel of B.
    pub width: i64,
    /// Sums of the columns of B.
    pub sums: *const i32,
    /// Zero points of the columns of B; null where all are 0.
    pub b_zeros: *const i32,
    /// C, whose rows are contiguous. It may be null with an epilogue, which then writes the results elsewhere.
    pub c: *mut i32,
    /// From row to row of C.
    pub c_row: i64,
    /// Whether an epilogue finishes the results.
    pub has_epilogue: i64,
    /// It, over tiles of int32. Not read without.
    pub epilogue: Epilogue,
}

/// The sums of a tile in scratch memory.
#[repr(C, align(64))]
struct Scratch([i32; MOST_ROWS * MOST_COLUMNS]);

/// What all pieces share.
#[derive(Clone, Copy)]
struct Work<'a> {
    g: &'a QuantizedGemm,
    isa: Isa,
    kernels: &'static Kernels,
    /// Whether tile registers are used.
    tiles: bool,
    /// Whether the rows of A are copies already: they begin lines of the caches, have memory up to the end of a line and are
    /// writable.
    copied: bool,
    m: usize,
    n: usize,
    k: usize,
    width: usize,
}

/// [`pliant_gemm_int8`] with these instructions.
///
/// # Safety
/// The machine has `isa`; as for [`pliant_gemm_int8`].
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, g: &QuantizedGemm) -> i64 {
    let Some(w) = Work::of(isa, g) else { return STATUS_BAD_ARGUMENTS };
    if w.m == 0 || w.n == 0 {
        return STATUS_OK;
    }
    let panels = w.n.div_ceil(w.width);
    let k = w.k.div_ceil(w.speed());
    let (cut, unit) = match w.tiles {
        true => (cut((w.m, TILE_ROWS), w.n, k, panels).coarse(), TILE_ROWS),
        false => (cut((w.m, ROWS), w.n, k, panels), ROWS),
    };
    let piece = |index: usize| {
        let (rows, panels) = cut.piece(index, (w.m, unit), panels);
        // SAFETY: the caller's promise; pieces write disjoint results.
        unsafe { w.block(rows, panels) }
    };
    // SAFETY: the caller's promise; the kernels do not unwind.
    unsafe { share(runtime, cut.pieces(), cut.units, &piece) }
}

/// From row to row of copies of A, and how many rows are copied at once: an odd number of lines, so that neighbours begin in
/// different sets of the first-level cache, and whole blocks of tile registers.
fn copies(k: usize) -> (usize, usize) {
    let apart = (k.div_ceil(LINE) | 1) * LINE;
    let blocks = (COPIED / apart / TILE_ROWS).clamp(1, MOST_COPIED);
    (apart, blocks * TILE_ROWS)
}

impl<'a> Work<'a> {
    /// A product; none where its structure makes no sense.
    fn of(isa: Isa, g: &'a QuantizedGemm) -> Option<Work<'a>> {
        let of = |d: i64| usize::try_from(d).ok();
        let (m, n, k) = (of(g.m)?, of(g.n)?, of(g.k)?);
        let width = of(g.width).filter(|&w| w > 0 && w.is_multiple_of(16) && w <= MOST_COLUMNS)?;
        let somewhere = !g.c.is_null() || g.has_epilogue != 0;
        let tiles = isa == Isa::Amx && tiles::take_bytes(m, n, k);
        let kernels = kernels(isa);
        somewhere.then_some(Work { g, isa, kernels, tiles, copied: false, m, n, k, width })
    }

    /// Products that are added in the time of one of float32.
    fn speed(&self) -> usize {
        if self.tiles { TILES_FAST } else { FAST }
    }

    /// Some rows of some panels.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn block(&self, rows: Range<usize>, panels: Range<usize>) -> i64 {
        #[cfg(target_arch = "x86_64")]
        if self.tiles {
            // SAFETY: the caller's promise.
            return unsafe { amx::block(self, rows, panels) };
        }
        for panel in panels {
            for (row, height) in slivers(rows.len()) {
                // SAFETY: the caller's promise.
                let status = unsafe { self.sliver(rows.start + row, height, panel) };
                if status != STATUS_OK {
                    return status;
                }
            }
        }
        STATUS_OK
    }

    /// One sliver of one panel, strip by strip.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn sliver(&self, row: usize, height: usize, panel: usize) -> i64 {
        let g = self.g;
        let first = panel * self.width;
        let columns = self.width.min(self.n - first);
        let a = g.a.wrapping_offset((row as i64 * g.a_row) as isize);
        let mut scratch = Scratch([0; MOST_ROWS * MOST_COLUMNS]);
        let (c, c_row) = if g.c.is_null() {
            (scratch.0.as_mut_ptr(), MOST_COLUMNS as isize)
        } else {
            let offset = row as i64 * g.c_row + first as i64;
            (g.c.wrapping_offset(offset as isize), g.c_row as isize)
        };
        let signed = g.a_signed != 0;
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
            // SAFETY: the caller's promise.
            unsafe { self.kernels.run(height, width, &mut tile) };
        }
        let mut totals = [0; MOST_ROWS];
        // SAFETY: the caller's promise; the sums of the tile are complete.
        unsafe {
            if !g.b_zeros.is_null() {
                let (a, k) = ((a, g.a_row as isize), (self.k, signed));
                let add = for_isa!(self.isa, add_rows(a: (*const u8, isize), k: (usize, bool), totals: &mut [i32])).0;
                add(a, k, &mut totals[..height]);
            }
            self.finish((totals.as_ptr(), row), (c, c_row), (height, columns), first)
        }
    }

    /// What was added to bytes of A as they were read: tile registers know signed ones.
    fn added(&self) -> i32 {
        if self.g.a_signed != 0 && !self.tiles { 128 } else { 0 }
    }

    /// Whether sums have something to be taken out of.
    fn has_zeros(&self) -> bool {
        self.added() != 0 || !self.g.a_zeros.is_null() || !self.g.b_zeros.is_null()
    }

    /// Takes the zero points out of the sums of a tile and calls the epilogue.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn finish(
        &self,
        (totals, row): (*const i32, usize),
        (c, c_row): (*mut i32, isize),
        size: (usize, usize),
        first: usize,
    ) -> i64 {
        // SAFETY: the caller's promise.
        unsafe {
            if self.has_zeros() {
                let read = ReadTile { totals, row, c, c_row, size, first };
                for_isa!(self.isa, take_zeros(work: &Work, tile: &ReadTile)).0(self, &read);
            }
            let epilogue = (self.g.has_epilogue != 0).then_some(&self.g.epilogue);
            finish(epilogue, c, c_row, size, Place { batch: 0, row, column: first })
        }
    }
}

/// A product of 8-bit integers, called by generated code with the address of its structure. Returns a kernel status.
///
/// # Safety
/// The runtime lives; all addressed elements are valid, and all of each panel; C overlaps no operand; the epilogue takes its
/// operands, and tiles of int32.
pub unsafe extern "C" fn pliant_gemm_int8(
    runtime: *const KernelRuntime,
    product: *const QuantizedGemm,
) -> i64 {
    // SAFETY: the caller's promise; the instructions are those of the machine.
    unsafe { run(isa(), &*runtime, &*product) }
}
