//! Memory beside the operands of a block.

use super::{BLOCK_COLUMNS, LINE};
use crate::product::rows::TILE_ROWS;

/// Rows of words of B that a step reads.
const WORDS: usize = LINE / size_of::<u32>();

/// Rows of words of B that a last step lacks some of, and the sums of a block, with rows of [`Edge::ROW`] bytes.
#[repr(C, align(64))]
pub struct Edge<T> {
    b: [u32; WORDS * BLOCK_COLUMNS],
    /// The sums.
    pub c: [T; TILE_ROWS * BLOCK_COLUMNS],
}

impl<T: Copy + Default> Edge<T> {
    /// From row to row of what it holds, in bytes.
    pub const ROW: usize = BLOCK_COLUMNS * size_of::<u32>();

    /// All zeros.
    pub fn new() -> Edge<T> {
        const { assert!(size_of::<T>() == size_of::<u32>()) };
        Edge { b: [0; _], c: [T::default(); _] }
    }

    /// Copies so many words of some rows of B, which begin at any address and are `b_row` bytes apart, with zeros below.
    ///
    /// # Safety
    /// The words are readable.
    pub unsafe fn copy(&mut self, (b, b_row): (*const u8, usize), rows: usize, words: usize) {
        self.b.fill(0);
        for (row, to) in self.b.chunks_exact_mut(BLOCK_COLUMNS).enumerate().take(rows) {
            let (from, to) = (b.wrapping_add(row * b_row), &mut to[..words]);
            // SAFETY: the caller's promise.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr().cast(), size_of_val(to)) };
        }
    }

    /// Where the copied rows are, and how far apart.
    pub fn copied(&self) -> (*const u8, usize) {
        (self.b.as_ptr().cast(), Self::ROW)
    }
}
