//! Products with a right operand that was packed when the program was compiled ([`pliant_tensor::panels`]).
//!
//! Recipe: blocks of rows, then panels, then blocks of k, then slivers. A slice of a panel, [`SLICE`] bytes, is read by all
//! slivers of a block of rows from the first-level cache; the sums of a panel stay in the nearest caches until all of k has
//! been added, and a block of A in the second level. Where A is too deep for that, even parts of some [`DEEP`] columns are
//! passed over one after the other; rows that would share sets of the caches are copied ([`super::near`]). Instructions
//! with narrow tiles run over a panel in several strips. The last panel is as wide in memory as the others; what lies
//! beyond the last column is not computed but for the rest of a vector, and never written. An epilogue gets each tile right
//! after its last block of k. Where it alone writes results, there is no C: sums stay in scratch memory.
//!
//! Measured on a processor with two multiply-adds of 512 bits in a cycle, 48 KB and 2 MB of cache, clock and peak taken beside
//! each round, two threads, against blocks of 512 of k outside of rows and panels: 96 % of the peak for 88 at 504 x 384 x 384,
//! 91 for 87 at 504 x 1024 x 1024, 93 for 82 at 252 x 3072 x 768. Slices of 160 or 192 rows, and A packed into slivers, are
//! within 2 % or behind; blocks of 256 lose 4. What cuts a product into pieces of 48 rows costs 10 to 15 %.

use std::mem::MaybeUninit;
use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::near::with_near_rows;
use super::rows::slivers;
use super::share::part;
use super::tile::{Ahead, Element, Kernels, LINE, ROWS, SPLITS, Tile};
use crate::epilogue::{Epilogue, MOST_COLUMNS, Place, finish};
use crate::isa::Isa;
pub use crate::rules::packed::FED;
use crate::rules::packed::{BUSY_ROWS, DEEP, ROW_BLOCK, SLICE};

/// How far a single sliver reads ahead of itself where memory feeds it, in bytes.
const FAR: usize = 4096;

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
    /// Whether memory feeds the panels rather than a cache: they are a part of [`FED`] bytes and more.
    pub fed: bool,
    /// First element of C, whose rows are contiguous, and its row stride. Null where the epilogue writes the results.
    pub c: (*mut T, isize),
    /// Whether to add to what C holds.
    pub accumulate: bool,
    /// What finishes the results.
    pub epilogue: Option<Epilogue>,
    /// Where in a batch its first result lies, for the epilogue.
    pub at: Place,
}

/// Sums that an epilogue reads, in lines of their own.
#[repr(C, align(64))]
struct Scratch<T>([MaybeUninit<T>; ROW_BLOCK * MOST_COLUMNS]);

/// Where the sums of a block of rows of a panel go: the first of them, and from row to row.
type Sums<T> = (*mut T, isize);

impl<T: Element> PackedProduct<T> {
    /// A product of `m` rows, `n` columns and `k` inner positions that replaces what C holds. `a` is the first element of A
    /// and its row and column strides, `b` the panels and the columns of each, `c` the first element of C and its row
    /// stride.
    pub fn new(
        [m, n, k]: [usize; 3],
        a: (*const T, isize, isize),
        (b, width): (*const T, usize),
        c: (*mut T, isize),
    ) -> Self {
        let fed = n.saturating_mul(k) > FED / size_of::<T>();
        let at = Place::default();
        PackedProduct { m, n, k, a, b, width, fed, c, accumulate: false, epilogue: None, at }
    }

    /// How many panels there are.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// Whether panels are of whole vectors, and no wider than all columns take.
    pub fn has_panels(&self) -> bool {
        let most = self.n.checked_next_multiple_of(MOST_COLUMNS).unwrap_or(usize::MAX);
        self.width > 0 && self.width.is_multiple_of(16) && self.width <= most.max(MOST_COLUMNS)
    }

    /// Whether there is somebody to write the results: without C the epilogue does, from scratch memory that a panel fits.
    pub fn has_results(&self) -> bool {
        let scratch = self.epilogue.is_some() && self.width <= MOST_COLUMNS && !self.accumulate;
        !self.c.0.is_null() || scratch
    }

    /// Computes some rows of some panels, on the calling thread; the first status of an epilogue other than 0, or 0.
    ///
    /// # Safety
    /// The machine has `isa`. [`PackedProduct::has_panels`], [`PackedProduct::has_results`]. All addressed elements of A and
    /// C are valid, and [`PackedProduct::panels`] whole panels of B; C overlaps neither. The ranges lie inside the
    /// product. The epilogue takes its operands.
    pub unsafe fn block(&self, isa: Isa, rows: Range<usize>, panels: Range<usize>) -> i64 {
        let kernels = T::kernels(isa);
        if self.c.0.is_null() {
            // SAFETY: the caller's promise.
            return unsafe { self.in_scratch(kernels, rows, panels) };
        }
        for rows in row_blocks(rows) {
            for deep in deep_steps(self.k, slice_rows(kernels)) {
                // SAFETY: the caller's promise.
                let status = unsafe {
                    with_near_rows(self, &rows, &deep, panels.len(), |near| {
                        near.in_place(kernels, &rows, panels.clone(), &deep)
                    })
                };
                if status != STATUS_OK {
                    return status;
                }
            }
        }
        STATUS_OK
    }

    /// Adds the products of some of k to a block of rows of some panels of C.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`].
    unsafe fn in_place(
        &self,
        kernels: &Kernels<T>,
        rows: &Range<usize>,
        panels: Range<usize>,
        deep: &Range<usize>,
    ) -> i64 {
        for panel in panels.clone() {
            let (c, c_row) = self.c;
            let first = rows.start as isize * c_row + (panel * self.width) as isize;
            let sums = (c.wrapping_offset(first), c_row);
            let next = (panel + 1 < panels.end).then_some(deep.start);
            // SAFETY: the caller's promise.
            let status =
                unsafe { self.panel(kernels, rows.clone(), (panel, next), deep.clone(), sums) };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }

    /// As [`PackedProduct::block`], where the epilogue writes the results.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`].
    #[inline(never)]
    unsafe fn in_scratch(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        panels: Range<usize>,
    ) -> i64 {
        let mut sums = Scratch([const { MaybeUninit::<T>::uninit() }; ROW_BLOCK * MOST_COLUMNS]);
        let sums = (sums.0.as_mut_ptr().cast::<T>(), self.width as isize);
        for rows in row_blocks(rows) {
            let each_panel = |near: &Self| {
                let status = panels.clone().map(|panel| {
                    let next = (panel + 1 < panels.end).then_some(0);
                    // SAFETY: the caller's promise; scratch memory holds a block of rows of the widest panel.
                    unsafe { near.panel(kernels, rows.clone(), (panel, next), 0..self.k, sums) }
                });
                { status }.find(|&status| status != STATUS_OK).unwrap_or(STATUS_OK)
            };
            // SAFETY: the caller's promise.
            let status =
                unsafe { with_near_rows(self, &rows, &(0..self.k), panels.len(), each_panel) };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }

    /// Adds the products of some of k to each sum of a block of rows of one panel, and finishes what is complete. `next`: from
    /// where on the panel after it is read next, if it is.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`]; `sums` holds the block of rows.
    unsafe fn panel(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        (panel, next): (usize, Option<usize>),
        deep: Range<usize>,
        sums: Sums<T>,
    ) -> i64 {
        let whole = rows.len() <= ROWS;
        let step = if whole { deep.len() } else { slice_rows(kernels) };
        for k in steps(deep.clone(), step) {
            // Slices of a panel follow each other, and what is read after a part of something larger follows it.
            let next = match next {
                _ if k.end < deep.end || self.fed && next.is_none() => Some(panel * self.k + k.end),
                next => next.map(|k| (panel + 1) * self.k + k),
            };
            let next = next.map(|row| self.b.wrapping_add(row * self.width).cast::<u8>());
            // SAFETY: the caller's promise.
            let status = unsafe { self.slice(kernels, rows.clone(), panel, k, next, sums) };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }

    /// Adds the products of a slice to each sum of a block of rows of one panel, and finishes what is complete, while what is
    /// read next is fetched.
    ///
    /// # Safety
    /// As for [`PackedProduct::panel`].
    unsafe fn slice(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        panel: usize,
        k: Range<usize>,
        next: Option<*const u8>,
        (c, c_row): Sums<T>,
    ) -> i64 {
        let count = rows.len().div_ceil(ROWS);
        let first = panel * self.width;
        let columns = self.width.min(self.n - first);
        let epilogue = self.epilogue.as_ref().filter(|_| k.end == self.k);
        let row_bytes = self.width * size_of::<T>();
        let b = self.b.wrapping_add((panel * self.k + k.start) * self.width);
        let alone = count == 1 && rows.len() >= BUSY_ROWS && self.fed;
        for column in (0..columns).step_by(kernels.columns()) {
            let width = kernels.columns().min(columns - column);
            for (index, (row, height)) in slivers(rows.len()).enumerate() {
                let ahead = match next {
                    _ if column > 0 => Ahead::NONE,
                    _ if alone => Ahead { from: b.cast::<u8>().wrapping_add(FAR), pace: row_bytes },
                    Some(next) => Ahead::share(next, row_bytes, k.len(), index, count),
                    None => Ahead::NONE,
                };
                // SAFETY: the offsets stay inside the matrices.
                let status = unsafe {
                    let (a, a_row, a_col) = self.a;
                    let mut tile = Tile {
                        k: k.len(),
                        a: a.wrapping_offset((rows.start + row) as isize * a_row)
                            .wrapping_offset(k.start as isize * a_col),
                        a_row,
                        a_col,
                        b: b.add(column),
                        b_row: self.width as isize,
                        c: c.offset(row as isize * c_row).add(column),
                        c_row,
                        accumulate: self.accumulate || k.start > 0,
                        last: 0,
                        ahead,
                    };
                    kernels.run(height, width, &mut tile);
                    let place = self.at.offset(rows.start + row, first + column);
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

/// All of k in even steps of about [`DEEP`], whole slices but for the last.
fn deep_steps(k: usize, slice: usize) -> impl Iterator<Item = Range<usize>> {
    let step = k.div_ceil(k.div_ceil(DEEP).max(1));
    steps(0..k, step.next_multiple_of(slice))
}

/// Even blocks of rows.
fn row_blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let blocks = rows.len().div_ceil(ROW_BLOCK);
    (0..blocks).map(move |index| {
        let part = part(rows.len(), ROWS, index, blocks);
        rows.start + part.start..rows.start + part.end
    })
}

/// Rows of a slice: a multiple of what tiles split k by, so that only the last has some left over. Up to [`ROWS`] rows take no
/// slices, and lower tiles split k in more ways: in which order a sum is made depends on the rows.
pub fn slice_rows<T>(kernels: &Kernels<T>) -> usize {
    (SLICE / (kernels.columns() * size_of::<T>()).max(LINE)).max(SPLITS)
}

/// `all` in steps of at most `step`, the last of which may be smaller. There is one even where `all` is empty, which writes
/// zeros.
pub fn steps(all: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let step = step.max(1);
    (all.start..all.end.max(all.start + 1)).step_by(step).map(move |at| at..all.end.min(at + step))
}
