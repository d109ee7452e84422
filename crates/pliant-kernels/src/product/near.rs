//! Copies of rows of A that lie near each other, where the rows themselves fall into the same sets of the caches.
//!
//! Rows whose distance is a multiple of 4 KB share the few places of a set, in the first-level cache and in what
//! keeps addresses of pages. What a block reads in one pass over k is copied once for all panels of its piece. When that pays, and
//! what it gains, says [`crate::rules::near`]. Sums of a panel in memory of their own besides cost 2 to 5 %.

use std::ops::Range;

use super::PackedProduct;
use super::tile::{Element, LINE};
use crate::rules::near::pays;
use crate::scratch::Scratch;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// Calls `f` with the product itself or, where that pays for so many panels, with one whose A is a copy of some rows and
/// columns, outside of which it must not be read. Returns the kernel status that it returns, or that there is no memory.
///
/// # Safety
/// These elements of A are readable.
pub unsafe fn with_near_rows<T: Element>(
    product: &PackedProduct<T>,
    rows: &Range<usize>,
    columns: &Range<usize>,
    panels: usize,
    f: impl FnOnce(&PackedProduct<T>) -> i64,
) -> i64 {
    let (a, a_row, a_col) = product.a;
    let apart = a_row.unsigned_abs() * size_of::<T>();
    if a_col != 1 || !pays(apart, rows.len(), panels) {
        return f(product);
    }
    let per_line = LINE / size_of::<T>();
    // An odd number of lines from row to row, so that neighbours begin in different sets.
    let row = (columns.len().div_ceil(per_line) | 1) * per_line;
    let near = |copy: *mut T| {
        for (index, at) in rows.clone().enumerate() {
            // SAFETY: the caller's promise; the memory holds so many rows.
            unsafe {
                let from = a.offset(at as isize * a_row).add(columns.start);
                copy.add(index * row).copy_from_nonoverlapping(from, columns.len());
            }
        }
        let first = copy.cast_const().wrapping_sub(rows.start * row).wrapping_sub(columns.start);
        f(&PackedProduct { a: (first, row as isize, 1), ..*product })
    };
    ROWS.with(|memory| memory.with(rows.len() * row, near))
}
