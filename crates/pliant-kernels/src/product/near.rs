//! Copies rows of A next to each other if they would map to the same cache sets.
//!
//! Rows with a stride that is a multiple of 4 KB share the few ways of a set, in the first-level
//! cache and in the TLB. The part that a block reads in one pass over k is copied once for all
//! panels of its piece. [`crate::rules::near`] decides when this is profitable, and states the
//! gain. Also keeping the sums of a panel in separate memory costs 2 to 5 %.

use std::ops::Range;

use pliant_exec::abi::STATUS_OK;

use super::PackedProduct;
use super::tile::{Element, LINE};
use crate::rules::near::pays;
use crate::scratch::Scratch;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// Calls `f` with the product itself or, if that is profitable for `panels` panels, with one whose
/// A is a copy of some rows and columns; `f` must not read A outside of these. Returns a kernel
/// status: out of memory, or 0.
///
/// # Safety
/// The elements of A in these rows and columns are readable.
pub unsafe fn with_near_rows<T: Element>(
    product: &PackedProduct<T>,
    rows: &Range<usize>,
    columns: &Range<usize>,
    panels: usize,
    f: impl FnOnce(&PackedProduct<T>),
) -> i64 {
    let (a, a_row, a_col) = product.a;
    // The row stride of a single row may be any number.
    let apart = a_row.unsigned_abs().saturating_mul(size_of::<T>());
    if a_col != 1 || !pays(apart, rows.len(), panels) {
        f(product);
        return STATUS_OK;
    }
    let per_line = LINE / size_of::<T>();
    // An odd number of cache lines per row, so that adjacent rows start in different sets.
    let row = (columns.len().div_ceil(per_line) | 1) * per_line;
    let near = |copy: *mut T| {
        for (index, at) in rows.clone().enumerate() {
            // SAFETY: guaranteed by the caller; the memory has room for the rows.
            unsafe {
                let from = a.offset(at as isize * a_row).add(columns.start);
                copy.add(index * row).copy_from_nonoverlapping(from, columns.len());
            }
        }
        let first = copy.cast_const().wrapping_sub(rows.start * row).wrapping_sub(columns.start);
        f(&PackedProduct { a: (first, row as isize, 1), ..*product });
        STATUS_OK
    };
    ROWS.with(|memory| memory.with(rows.len() * row, near))
}
