//! Copies rows of A to contiguous memory, if the rows would evict each other from the caches.
//!
//! Rows whose stride is a multiple of 4 KB map to the same set of the first-level cache and of the
//! TLB. A set has only a few ways. The rows and columns that a block reads in one pass over k are
//! copied once for all panels of a piece of work. [`crate::algorithm_selection::row_copies`]
//! decides when this is profitable, and states the gain. Storing the sums of a panel in separate
//! memory, too, would cost 2 to 5 %.

use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::PackedProduct;
use super::micro_kernel::{Element, LINE};
use crate::algorithm_selection::row_copies;
use crate::scratch_memory::Scratch;

thread_local! {
    static COPIES: Scratch = const { Scratch::new() };
}

/// If copying rows of A is profitable for `panels` panels, copies the given rows and columns of A
/// and calls `f` with arguments of a matrix product that reads the copy. Otherwise calls `f` with
/// the unchanged arguments. `f` must not read A outside of these rows and columns. Returns a kernel
/// status: out of memory, or 0.
///
/// # Safety
/// The elements of A in these rows and columns are readable.
pub unsafe fn with_copied_rows<T: Element>(
    product: &PackedProduct<T>,
    rows: &Range<usize>,
    columns: &Range<usize>,
    panels: usize,
    f: impl FnOnce(&PackedProduct<T>),
) -> i64 {
    let (a, a_row, a_col) = product.a;
    // The stride of a single row is arbitrary, so its size in bytes may overflow.
    let stride_bytes = a_row.unsigned_abs().saturating_mul(size_of::<T>());
    if a_col != 1 || !row_copies::is_faster(stride_bytes, rows.len(), panels) {
        f(product);
        return STATUS_OK;
    }
    let per_line = LINE / size_of::<T>();
    // An odd number of cache lines per row, so that adjacent rows start in different sets.
    let copy_row = (columns.len().div_ceil(per_line) | 1) * per_line;
    let copy_and_call = |copy: *mut T| {
        for (index, row) in rows.clone().enumerate() {
            // SAFETY: guaranteed by the caller; the memory has room for the rows.
            unsafe {
                let from = a.offset(row as isize * a_row).add(columns.start);
                copy.add(index * copy_row).copy_from_nonoverlapping(from, columns.len());
            }
        }
        let first =
            copy.cast_const().wrapping_sub(rows.start * copy_row).wrapping_sub(columns.start);
        f(&PackedProduct { a: (first, copy_row as isize, 1), ..*product });
        STATUS_OK
    };
    COPIES.with(|memory| memory.with(rows.len() * copy_row, copy_and_call))
}
