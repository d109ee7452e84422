//! Products with a right operand that was packed when the program was compiled ([`pliant_tensor::panels`]).
//!
//! Recipe: blocks of k, then blocks of rows, then panels, then slivers, so that a slice of a panel is read by all slivers of
//! a block while it is in the nearest caches, and a block of A stays in the second level. Instructions with narrow tiles run over
//! a panel in several strips. The last panel is as wide in memory as the others; what lies beyond the last column is not
//! computed but for the rest of a vector, and never written.

use std::ops::Range;

use super::rows::slivers;
use super::tile::{Element, Kernels, Tile};
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
    /// First element of C, whose rows are contiguous, and its row stride.
    pub c: (*mut T, isize),
    /// Whether to add to what C holds.
    pub accumulate: bool,
}

impl<T: Element> PackedProduct<T> {
    /// How many panels there are.
    pub fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// Computes some rows of some panels, on the calling thread.
    ///
    /// # Safety
    /// The machine has `isa`. All addressed elements of A and C are valid, and [`PackedProduct::panels`] whole panels of B;
    /// C overlaps neither. `width` is a multiple of 16. The ranges lie inside the product.
    pub unsafe fn block(&self, isa: Isa, rows: Range<usize>, panels: Range<usize>) {
        let kernels = T::kernels(isa);
        let whole = rows.len() <= FEW_ROWS && self.k <= K_WHOLE;
        let step = if whole { self.k.max(1) } else { K_BLOCK };
        let mut k = 0;
        loop {
            let depth = step.min(self.k - k);
            for first in rows.clone().step_by(ROW_BLOCK) {
                let rows = first..rows.end.min(first + ROW_BLOCK);
                for panel in panels.clone() {
                    // SAFETY: the caller's promise.
                    unsafe { self.panel(kernels, rows.clone(), panel, k, depth) };
                }
            }
            k += depth;
            // With k = 0 one pass writes the zeros.
            if k >= self.k {
                return;
            }
        }
    }

    /// Adds `depth` products to each element of a block of rows of one panel.
    ///
    /// # Safety
    /// As for [`PackedProduct::block`].
    unsafe fn panel(
        &self,
        kernels: &Kernels<T>,
        rows: Range<usize>,
        panel: usize,
        k: usize,
        depth: usize,
    ) {
        let columns = self.width.min(self.n - panel * self.width);
        // SAFETY: the offsets stay inside the matrices.
        unsafe {
            let b = self.b.add((panel * self.k + k) * self.width);
            for column in (0..columns).step_by(kernels.columns()) {
                let width = kernels.columns().min(columns - column);
                for (row, height) in slivers(rows.len()) {
                    let row = (rows.start + row) as isize;
                    let (a, a_row, a_col) = self.a;
                    let mut tile = Tile {
                        k: depth,
                        a: a.offset(row * a_row + k as isize * a_col),
                        a_row,
                        a_col,
                        b: b.add(column),
                        b_row: self.width as isize,
                        c: self.c.0.offset(row * self.c.1).add(panel * self.width + column),
                        c_row: self.c.1,
                        accumulate: self.accumulate || k > 0,
                        last: 0,
                    };
                    kernels.run(height, width, &mut tile);
                }
            }
        }
    }
}
