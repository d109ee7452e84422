//! Matrix products with a right operand that the compiler packed into panels
//! ([`pliant_tensor::pack_panels`]).
//!
//! Method: a loop over blocks of rows, then panels, then slices of k, then slivers (groups of rows
//! of A). All slivers of a block of rows read the same slice of a panel, [`slice_bytes`], from the
//! first-level cache. The sums of a panel stay in the caches until all of k is added. A block of A
//! stays in the second-level cache. If k is too large for that, it is split into equal blocks of
//! about [`BLOCK_DEPTH`]. Rows of A that would conflict in the caches are copied
//! ([`super::contiguous_row_copies`]). If the tiles of an instruction set are narrower than a
//! panel, a panel is processed in several strips. The last panel is padded to the width of the
//! others. Padding columns are computed only up to a whole vector, and are never written.
//!
//! The following rates were measured with two threads on a processor with two 512-bit multiply-adds
//! per cycle, a first-level cache of 48 KB and a second-level cache of 2 MB. The clock and the peak
//! were measured in each round. This loop order reaches 96 % of the peak at 504 x 384 x 384, 91 %
//! at 504 x 1024 x 1024, and 93 % at 252 x 3072 x 768. With an outermost loop over blocks of 512
//! values of k, the same products reach 88 %, 87 % and 82 %. Three alternatives are not faster:
//! slices of 160 or 192 rows and A packed into slivers take at least 98 % of the time, and slices
//! of 256 rows take 4 % more. Pieces of 48 rows take 10 to 15 % more.

use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::contiguous_row_copies::with_copied_rows;
use super::micro_kernel::{
    Element, KSegment, LINE, MAX_K_SPLITS, MicroKernels, Prefetch, ROWS, Tile,
};
use super::row_tiling::split_evenly;
use super::work_partition::even_part;
use crate::algorithm_selection::packed_operand_matmul::{
    BLOCK_DEPTH, MIN_PREFETCH_ROWS, block_rows, prefetched_bytes, slice_bytes,
};
use crate::epilogue::MAX_TILE_COLUMNS;
use pliant_machine::isa::Isa;

/// Distance in bytes by which panels are prefetched ahead of the current position, if they are read
/// from memory and A has only one sliver (the rows of one register tile).
const PREFETCH_DISTANCE: usize = 4096;

/// A matrix product with packed B: `c[m, n] (+)= a[m, k] * b[k, n]`. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct PackedProduct<T> {
    /// Number of rows of A and C.
    pub m: usize,
    /// Number of columns of B and C.
    pub n: usize,
    /// Number of columns of A, equal to the number of rows of B.
    pub k: usize,
    /// The address of the first element of A, the stride of its rows, and the stride of its
    /// columns, in elements.
    pub a: (*const T, isize, isize),
    /// The address of the panels of B, which are padded to `width` columns.
    pub b: *const T,
    /// Number of columns of a panel.
    pub width: usize,
    /// Whether B is too large for a cache (more than [`prefetched_bytes`] bytes), so that panels
    /// are read from memory. Such panels are prefetched.
    pub b_in_memory: bool,
    /// The address of the first element of C, whose rows are contiguous, and the stride between its
    /// rows, in elements.
    pub c: (*mut T, isize),
    /// Whether the matrix product is added to the contents of C instead of replacing them.
    pub accumulate: bool,
}

/// The part of C for a block of rows and a panel: the address of the first element, and the stride
/// between rows, in elements.
type Output<T> = (*mut T, isize);

impl<T: Element> PackedProduct<T> {
    /// Creates the product of an `m` by `k` and a `k` by `n` matrix, which overwrites C. `a` is the
    /// address of the first element of A with its row stride and column stride, `b` the panels with
    /// `width` columns, and `c` the address of the first element of C with its row stride.
    pub fn new(
        [m, n, k]: [usize; 3],
        a: (*const T, isize, isize),
        (b, width): (*const T, usize),
        c: (*mut T, isize),
    ) -> Self {
        let b_in_memory = n.saturating_mul(k) > prefetched_bytes() / size_of::<T>();
        PackedProduct { m, n, k, a, b, width, b_in_memory, c, accumulate: false }
    }

    /// Returns the number of panels of B.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// Whether the panel width is valid: a multiple of 16, and not larger than necessary for `n`
    /// columns.
    pub fn has_valid_panels(&self) -> bool {
        let most = self.n.checked_next_multiple_of(MAX_TILE_COLUMNS).unwrap_or(usize::MAX);
        self.width > 0 && self.width.is_multiple_of(16) && self.width <= most.max(MAX_TILE_COLUMNS)
    }

    /// Computes the block of C for a range of rows and a range of panels, on the calling thread.
    /// Returns a kernel status: out of memory if rows cannot be copied
    /// ([`super::contiguous_row_copies`]), or 0. A single panel needs no copies.
    ///
    /// # Safety
    /// The machine has `isa`. [`PackedProduct::has_valid_panels`] is true. All addressed elements
    /// of A and C are valid, and B has [`PackedProduct::panels`] whole panels. C overlaps neither A
    /// nor B. The ranges are inside the product.
    pub unsafe fn compute_block(&self, isa: Isa, rows: Range<usize>, panels: Range<usize>) -> i64 {
        let kernels = T::kernels(isa);
        for rows in row_blocks(rows) {
            for k_block in k_blocks(self.k, slice_rows::<T>(kernels.columns())) {
                // SAFETY: guaranteed by the caller.
                let status = unsafe {
                    with_copied_rows(self, &rows, &k_block, panels.len(), |product| {
                        product.add_k_block(kernels, &rows, panels.clone(), &k_block)
                    })
                };
                if status != STATUS_OK {
                    return status;
                }
            }
        }
        STATUS_OK
    }

    /// Multiplies some rows of A by some panels of B over a block of the inner dimension `k`, and adds the results to
    /// C.
    ///
    /// # Safety
    /// The conditions of [`PackedProduct::compute_block`] hold.
    unsafe fn add_k_block(
        &self,
        kernels: &MicroKernels<T>,
        rows: &Range<usize>,
        panels: Range<usize>,
        k_block: &Range<usize>,
    ) {
        for panel in panels.clone() {
            let (c, c_row) = self.c;
            let offset = rows.start as isize * c_row + (panel * self.width) as isize;
            let output = (c.wrapping_offset(offset), c_row);
            let next_k = (panel + 1 < panels.end).then_some(k_block.start);
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.add_panel(kernels, rows.clone(), (panel, next_k), k_block.clone(), output)
            };
        }
    }

    /// Multiplies some rows of A by one panel of B over a block of the inner dimension `k`, slice by slice, and adds
    /// the results to C. `next_k` is the first row that the caller reads of the next panel; `None` if this is the last
    /// panel. The memory that is read next is prefetched.
    ///
    /// # Safety
    /// The conditions of [`PackedProduct::compute_block`] hold. `output` has room for the rows.
    unsafe fn add_panel(
        &self,
        kernels: &MicroKernels<T>,
        rows: Range<usize>,
        (panel, next_k): (usize, Option<usize>),
        k_block: Range<usize>,
        output: Output<T>,
    ) {
        let is_single_slice = rows.len() <= ROWS;
        let slice =
            if is_single_slice { k_block.len() } else { slice_rows::<T>(kernels.columns()) };
        for k in split_range(k_block.clone(), slice) {
            // The slices of a panel are adjacent. After the last block of k, the next panel follows in memory.
            let next_row = match next_k {
                _ if k.end < k_block.end || self.b_in_memory && next_k.is_none() => {
                    Some(panel * self.k + k.end)
                }
                next_k => next_k.map(|k| (panel + 1) * self.k + k),
            };
            let next = next_row.map(|row| self.b.wrapping_add(row * self.width).cast::<u8>());
            // SAFETY: guaranteed by the caller.
            unsafe { self.add_slice(kernels, rows.clone(), panel, k, next, output) };
        }
    }

    /// Multiplies some rows of A by a slice of a panel of B, adds the results to C, and prefetches
    /// the slice at the address `next`, which is read next.
    ///
    /// # Safety
    /// The conditions of [`PackedProduct::add_panel`] hold.
    unsafe fn add_slice(
        &self,
        kernels: &MicroKernels<T>,
        rows: Range<usize>,
        panel: usize,
        k: Range<usize>,
        next: Option<*const u8>,
        (c, c_row): Output<T>,
    ) {
        let columns = self.width.min(self.n - panel * self.width);
        let row_bytes = self.width * size_of::<T>();
        let b = self.b.wrapping_add((panel * self.k + k.start) * self.width);
        for column in (0..columns).step_by(kernels.columns()) {
            let width = kernels.columns().min(columns - column);
            // All strips have tiles of the same height, because the order of summation depends on it.
            let max_height = kernels.rows(self.n.min(kernels.columns()));
            let count = rows.len().div_ceil(max_height);
            let prefetches_own_data =
                count == 1 && rows.len() >= MIN_PREFETCH_ROWS && self.b_in_memory;
            for (index, (row, height)) in split_evenly(rows.len(), max_height).enumerate() {
                let prefetch = match next {
                    _ if column > 0 => Prefetch::NONE,
                    _ if prefetches_own_data => Prefetch {
                        address: b.cast::<u8>().wrapping_add(PREFETCH_DISTANCE),
                        step_bytes: row_bytes,
                    },
                    Some(next) => Prefetch::nth_part(next, row_bytes, k.len(), index, count),
                    None => Prefetch::NONE,
                };
                // SAFETY: the offsets stay inside the matrices.
                unsafe {
                    let (a, a_row, a_col) = self.a;
                    let mut tile = Tile {
                        segments: &[KSegment::leading(k.len())],
                        a: a.wrapping_offset((rows.start + row) as isize * a_row)
                            .wrapping_offset(k.start as isize * a_col),
                        a_row,
                        a_col,
                        b: b.add(column),
                        b_row: self.width as isize,
                        c: c.offset(row as isize * c_row).add(column),
                        c_row,
                        accumulate: self.accumulate || k.start > 0,
                        tail_lanes: 0,
                        prefetch,
                        epilogue: None,
                    };
                    kernels.run(height, width, &mut tile);
                }
            }
        }
    }
}

/// Splits the inner dimension `k` into nearly equal blocks of about [`BLOCK_DEPTH`]. All blocks except the last consist
/// of whole slices of `slice` rows.
fn k_blocks(k: usize, slice: usize) -> impl Iterator<Item = Range<usize>> {
    let size = k.div_ceil(k.div_ceil(BLOCK_DEPTH).max(1));
    split_range(0..k, size.next_multiple_of(slice))
}

/// Splits rows into blocks of nearly equal size.
fn row_blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let blocks = rows.len().div_ceil(block_rows());
    (0..blocks).map(move |index| {
        let part = even_part(rows.len(), ROWS, index, blocks);
        rows.start + part.start..rows.start + part.end
    })
}

/// The number of rows of a slice of B with `columns` columns. The number is a multiple of the factor by which tiles
/// split the inner dimension `k`, so that only the last slice has a remainder.
///
/// Matrix products with up to [`ROWS`] rows of A are not sliced, and tiles with fewer rows split
/// `k` further. So the order of summation depends on the number of rows.
pub fn slice_rows<T>(columns: usize) -> usize {
    (slice_bytes() / (columns * size_of::<T>()).max(LINE)).max(MAX_K_SPLITS)
}

/// Splits a range into parts of `size` elements; the last part may be smaller. An empty range has
/// one empty part, for which kernels write zeros.
pub fn split_range(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let size = size.max(1);
    let starts = (range.start..range.end.max(range.start + 1)).step_by(size);
    starts.map(move |start| start..range.end.min(start + size))
}
