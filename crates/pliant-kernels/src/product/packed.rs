//! Products with a right operand that was packed when the program was compiled ([`pliant_tensor::panels`]).
//!
//! Recipe: blocks of k, then blocks of rows, then panels, then slivers, so that a slice of a panel is read by all slivers of
//! a block while it is in the nearest caches, and a block of A stays in the second level. Instructions with narrow tiles run over
//! a panel in several strips. The last panel is as wide in memory as the others; what lies beyond the last column is not
//! computed but for the rest of a vector, and never written. An epilogue gets each tile right after its last block of k. Where
//! it alone writes results, there is no C: sums stay in scratch memory, and all blocks of k pass over one block of rows and
//! one panel before the next.

use std::mem::MaybeUninit;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::rows::slivers;
use super::tile::{Ahead, Element, Kernels, ROWS, Tile};
use crate::epilogue::{Epilogue, MOST_COLUMNS, Place, finish};
use crate::isa::Isa;

/// Block of k.
const K_BLOCK: usize = 512;
/// k up to which few rows take all of it at once.
const K_WHOLE: usize = 2048;
/// How many rows are few.
const FEW_ROWS: usize = 64;
/// Block of rows: 96 by 512 float32 are 192 KB.
const ROW_BLOCK: usize = 96;

/// `c[m, n] (+)= a[m, k] * b[k, n]` with packed b; strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct PackedProduct<T> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// First element of A, its row stride and its column stride.
    pub a: (*const T, isize, isize),
    /// The panels of B.
    pub b: *const T,
    /// Columns of a panel.
    pub width: usize,
    /// First element of C, whose rows are contiguous, and its row stride. Null where the epilogue writes the results.
    pub c: (*mut T, isize),
    /// Whether to add to what C holds.
    pub accumulate: bool,
    /// What finishes the results.
    pub epilogue: Option<Epilogue>,
    /// Its number within a batch, for the epilogue.
    pub batch: usize,
}

/// Sums that an epilogue reads, in lines of their own.
#[repr(C, align(64))]
struct Scratch<T>([MaybeUninit<T>; ROW_BLOCK * MOST_COLUMNS]);

/// Where the sums of a block of rows of a panel go: the first of them, and from row to row.
type Sums<T> = (*mut T, isize);

impl<T: Element> PackedProduct<T> {
    /// How many panels there are.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// Whether a product can be computed: panels of whole vectors, scratch memory only for those that fit it, and with
    /// somebody to write the results.
    pub fn is_sound(&self) -> bool {
        let scratch = self.epilogue.is_some() && self.width <= MOST_COLUMNS && !self.accumulate;
        self.width > 0 && self.width.is_multiple_of(16) && (!self.c.0.is_null() || scratch)
    }

    /// Computes some rows of some panels, on the calling thread; the first status of an epilogue other than 0, or 0.
    ///
    /// # Safety
    /// The machine has `isa`. [`PackedProduct::is_sound`]. All addressed elements of A and C are valid, and
    /// [`PackedProduct::panels`] whole panels of B; C overlaps neither. The ranges lie inside the product. The epilogue takes
    /// its operands.
    pub unsafe fn block(&self, isa: Isa, rows: Range<usize>, panels: Range<usize>) -> i64 {
        let kernels = T::kernels(isa);
        if self.c.0.is_null() {
            // SAFETY: the caller's promise.
            return unsafe { self.in_scratch(kernels, rows, panels) };
        }
        for (k, depth) in self.k_blocks(rows.len()) {
            for first in rows.clone().step_by(ROW_BLOCK) {
                let rows = first..rows.end.min(first + ROW_BLOCK);
                for panel in panels.clone() {
                    // SAFETY: the caller's promise.
                    let status = unsafe {
                        let c = self.c.0.offset(first as isize * self.c.1);
                        let c = (c.add(panel * self.width), self.c.1);
                        self.panel(kernels, rows.clone(), (panel, panels.end), (k, depth), c)
                    };
                    if status != STATUS_OK {
                        return status;
                    }
                }
            }
        }
        STATUS_OK
    }

    /// Blocks of k: where each begins and how deep it is. There is one even where k is 0, which writes zeros.
    fn k_blocks(&self, rows: usize) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let (k, whole) = (self.k, rows <= FEW_ROWS && self.k <= K_WHOLE);
        let step = if whole { k.max(1) } else { K_BLOCK };
        (0..k.max(1)).step_by(step).map(move |at| (at, step.min(k - at)))
    }

    /// As [`PackedProduct::block`], where the epilogue writes the results.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`].
    unsafe fn in_scratch(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        panels: Range<usize>,
    ) -> i64 {
        let mut sums = Scratch([const { MaybeUninit::<T>::uninit() }; ROW_BLOCK * MOST_COLUMNS]);
        let sums = (sums.0.as_mut_ptr().cast::<T>(), self.width as isize);
        for first in rows.clone().step_by(ROW_BLOCK) {
            let rows = first..rows.end.min(first + ROW_BLOCK);
            for panel in panels.clone() {
                for block in self.k_blocks(rows.len()) {
                    // SAFETY: the caller's promise; scratch memory holds a block of rows of the widest panel.
                    let status = unsafe {
                        self.panel(kernels, rows.clone(), (panel, panels.end), block, sums)
                    };
                    if status != STATUS_OK {
                        return status;
                    }
                }
            }
        }
        STATUS_OK
    }

    /// Adds `depth` products to each sum of a block of rows of one panel, and finishes what is complete.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`]; `sums` holds the block of rows.
    unsafe fn panel(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        (panel, last): (usize, usize),
        (k, depth): (usize, usize),
        (c, c_row): Sums<T>,
    ) -> i64 {
        let count = rows.len().div_ceil(ROWS);
        let first = panel * self.width;
        let columns = self.width.min(self.n - first);
        let epilogue = self.epilogue.as_ref().filter(|_| k + depth == self.k);
        let row_bytes = self.width * size_of::<T>();
        let next = ((panel + 1) * self.k + k) * self.width;
        let next = (panel + 1 < last).then(|| self.b.wrapping_add(next).cast::<u8>());
        for column in (0..columns).step_by(kernels.columns()) {
            let width = kernels.columns().min(columns - column);
            for (index, (row, height)) in slivers(rows.len()).enumerate() {
                let ahead = match next {
                    Some(next) if column == 0 => Ahead::share(next, row_bytes, depth, index, count),
                    _ => Ahead::NONE,
                };
                // SAFETY: the offsets stay inside the matrices.
                let status = unsafe {
                    let (a, a_row, a_col) = self.a;
                    let mut tile = Tile {
                        k: depth,
                        a: a.offset((rows.start + row) as isize * a_row + k as isize * a_col),
                        a_row,
                        a_col,
                        b: self.b.add((panel * self.k + k) * self.width + column),
                        b_row: self.width as isize,
                        c: c.offset(row as isize * c_row).add(column),
                        c_row,
                        accumulate: self.accumulate || k > 0,
                        last: 0,
                        ahead,
                    };
                    kernels.run(height, width, &mut tile);
                    let place =
                        Place { batch: self.batch, row: rows.start + row, column: first + column };
                    finish(epilogue, tile.c, c_row, (height, width), place)
                };
                if status != STATUS_OK {
                    return status;
                }
            }
        }
        STATUS_OK
    }
}
