//! Products with a right operand that was packed when the program was compiled
//! ([`pliant_tensor::panels`]).
//!
//! Recipe: a loop over blocks of rows, then panels, then blocks of k, then slivers. All slivers of
//! a block of rows read a slice of a panel, [`slice_bytes`], from the first-level cache. The sums
//! of a panel stay in the nearest caches until all of k is added, and a block of A stays in the
//! second-level cache. If A is too deep for that, k is cut into equal parts of about [`DEEP`]. Rows
//! that would share cache sets are copied ([`super::near`]). Instruction sets with narrow tiles
//! process a panel in several strips. The last panel has the same width in memory as the others;
//! its columns beyond the last are computed only up to a whole vector, and never written.
//!
//! Measured on a processor with two 512-bit multiply-adds per cycle and 48 KB and 2 MB of cache,
//! with clock and peak measured in each round, with two threads, against blocks of 512 of k outside
//! of the loops over rows and panels: 96 % of the peak instead of 88 at 504 x 384 x 384, 91 instead
//! of 87 at 504 x 1024 x 1024, 93 instead of 82 at 252 x 3072 x 768. Slices of 160 or 192 rows, and
//! A packed into slivers, are within 2 % or slower; blocks of 256 lose 4. Cutting a product into
//! pieces of 48 rows costs 10 to 15 %.

use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::near::with_near_rows;
use super::rows::even;
use super::share::part;
use super::tile::{Ahead, Element, Kernels, LINE, ROWS, Run, SPLITS, Tile};
use crate::epilogue::MOST_COLUMNS;
use crate::rules::packed::{BUSY_ROWS, DEEP, block_rows, prefetched_bytes, slice_bytes};
use pliant_machine::isa::Isa;

/// How far a single sliver prefetches if the panels are read from memory, in bytes.
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
    /// Whether the panels are read from memory rather than a cache: they are part of at least
    /// [`prefetched_bytes`] bytes.
    pub fed: bool,
    /// The first element of C, whose rows are contiguous, and its row stride.
    pub c: (*mut T, isize),
    /// Whether to add to the contents of C.
    pub accumulate: bool,
}

/// The destination of the sums of a block of rows of a panel: the first element and the row stride.
type Sums<T> = (*mut T, isize);

impl<T: Element> PackedProduct<T> {
    /// A product of `m` rows, `n` columns and depth `k` that overwrites C. `a` is the first element
    /// of A with its row and column strides, `b` the panels and their width, `c` the first element
    /// of C and its row stride.
    pub fn new(
        [m, n, k]: [usize; 3],
        a: (*const T, isize, isize),
        (b, width): (*const T, usize),
        c: (*mut T, isize),
    ) -> Self {
        let fed = n.saturating_mul(k) > prefetched_bytes() / size_of::<T>();
        PackedProduct { m, n, k, a, b, width, fed, c, accumulate: false }
    }

    /// The number of panels.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// Whether panels consist of whole vectors, and are no wider than all columns require.
    pub fn has_panels(&self) -> bool {
        let most = self.n.checked_next_multiple_of(MOST_COLUMNS).unwrap_or(usize::MAX);
        self.width > 0 && self.width.is_multiple_of(16) && self.width <= most.max(MOST_COLUMNS)
    }

    /// Computes some rows of some panels on the calling thread. Returns a kernel status:
    /// copies of rows ([`super::near`]) may exhaust memory, but not for a single panel.
    ///
    /// # Safety
    /// The machine has `isa`. [`PackedProduct::has_panels`] is true. All addressed elements of A and
    /// C are valid, and [`PackedProduct::panels`] whole panels of B; C overlaps neither. The ranges
    /// are inside the product.
    pub unsafe fn block(&self, isa: Isa, rows: Range<usize>, panels: Range<usize>) -> i64 {
        let kernels = T::kernels(isa);
        for rows in row_blocks(rows) {
            for deep in deep_steps(self.k, slice_rows::<T>(kernels.columns())) {
                // SAFETY: guaranteed by the caller.
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

    /// Adds the products of a range of k to a block of rows of some panels of C.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`].
    unsafe fn in_place(
        &self,
        kernels: &Kernels<T>,
        rows: &Range<usize>,
        panels: Range<usize>,
        deep: &Range<usize>,
    ) {
        for panel in panels.clone() {
            let (c, c_row) = self.c;
            let first = rows.start as isize * c_row + (panel * self.width) as isize;
            let sums = (c.wrapping_offset(first), c_row);
            let next = (panel + 1 < panels.end).then_some(deep.start);
            // SAFETY: guaranteed by the caller.
            unsafe { self.panel(kernels, rows.clone(), (panel, next), deep.clone(), sums) };
        }
    }

    /// Adds the products of a range of k to each sum of a block of rows of one panel. `next` is the
    /// position in the next panel that is read afterwards, if any.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`]; `sums` has room for the block of rows.
    unsafe fn panel(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        (panel, next): (usize, Option<usize>),
        deep: Range<usize>,
        sums: Sums<T>,
    ) {
        let whole = rows.len() <= ROWS;
        let step = if whole { deep.len() } else { slice_rows::<T>(kernels.columns()) };
        for k in steps(deep.clone(), step) {
            // Slices of a panel are adjacent, and the next part of a larger panel follows the
            // current one.
            let next = match next {
                _ if k.end < deep.end || self.fed && next.is_none() => Some(panel * self.k + k.end),
                next => next.map(|k| (panel + 1) * self.k + k),
            };
            let next = next.map(|row| self.b.wrapping_add(row * self.width).cast::<u8>());
            // SAFETY: guaranteed by the caller.
            unsafe { self.slice(kernels, rows.clone(), panel, k, next, sums) };
        }
    }

    /// Adds the products of a slice to each sum of a block of rows of one panel, while the
    /// next data is prefetched.
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
    ) {
        let columns = self.width.min(self.n - panel * self.width);
        let row_bytes = self.width * size_of::<T>();
        let b = self.b.wrapping_add((panel * self.k + k.start) * self.width);
        for column in (0..columns).step_by(kernels.columns()) {
            let width = kernels.columns().min(columns - column);
            // The same for all strips: the order of summation depends on the rows of a tile.
            let tallest = kernels.rows(self.n.min(kernels.columns()));
            let count = rows.len().div_ceil(tallest);
            let alone = count == 1 && rows.len() >= BUSY_ROWS && self.fed;
            for (index, (row, height)) in even(rows.len(), tallest).enumerate() {
                let ahead = match next {
                    _ if column > 0 => Ahead::NONE,
                    _ if alone => Ahead { from: b.cast::<u8>().wrapping_add(FAR), pace: row_bytes },
                    Some(next) => Ahead::share(next, row_bytes, k.len(), index, count),
                    None => Ahead::NONE,
                };
                // SAFETY: the offsets stay inside the matrices.
                unsafe {
                    let (a, a_row, a_col) = self.a;
                    let mut tile = Tile {
                        runs: &[Run::first(k.len())],
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
                }
            }
        }
    }
}

/// All of k in equal steps of about [`DEEP`], in whole slices except the last.
fn deep_steps(k: usize, slice: usize) -> impl Iterator<Item = Range<usize>> {
    let step = k.div_ceil(k.div_ceil(DEEP).max(1));
    steps(0..k, step.next_multiple_of(slice))
}

/// Blocks of rows of nearly equal size.
fn row_blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let blocks = rows.len().div_ceil(block_rows());
    (0..blocks).map(move |index| {
        let part = part(rows.len(), ROWS, index, blocks);
        rows.start + part.start..rows.start + part.end
    })
}

/// Rows of a slice of `columns` columns: a multiple of the factor by which tiles split k, so that only the last slice
/// has a remainder. Up to [`ROWS`] rows are not sliced, and lower tiles split k further: the order
/// of summation depends on the number of rows.
pub fn slice_rows<T>(columns: usize) -> usize {
    (slice_bytes() / (columns * size_of::<T>()).max(LINE)).max(SPLITS)
}

/// `all` in steps of at most `step`; the last may be smaller. An empty range has one step, which
/// writes zeros.
pub fn steps(all: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    let step = step.max(1);
    (all.start..all.end.max(all.start + 1)).step_by(step).map(move |at| at..all.end.min(at + step))
}
