//! Buffers for a block at the edge of a matrix product: a zero-padded copy of the last rows of B,
//! which do not fill a tile register, and the accumulated products of the block.

use super::{BLOCK_COLUMNS, LINE};
use crate::matmul::row_tiling::TILE_ROWS;

/// Number of 32-bit words of a row of a tile register. A step multiplies each word of a row of A by
/// one row of words of B, so this is also the number of rows of words of B that a step reads.
const WORDS: usize = LINE / size_of::<u32>();

/// The buffers of a block of a matrix product: a zero-padded copy of the last rows of B, which do not fill a tile register, and the
/// sums of the block. The rows of both buffers have [`Edge::ROW`] bytes.
#[repr(C, align(64))]
pub struct Edge<T> {
    b: [u32; WORDS * BLOCK_COLUMNS],
    /// The sums (results) of the block of the matrix product, before they are copied to C.
    pub c: [T; TILE_ROWS * BLOCK_COLUMNS],
}

impl<T: Copy + Default> Edge<T> {
    /// The distance in bytes between rows of the copy of B, and between rows of the sums.
    pub const ROW: usize = BLOCK_COLUMNS * size_of::<u32>();

    /// Creates the buffers for the copy of B and for the sums, filled with zeros.
    pub fn new() -> Edge<T> {
        const { assert!(size_of::<T>() == size_of::<u32>()) };
        Edge { b: [0; _], c: [T::default(); _] }
    }

    /// Copies `rows` rows of B with `words` 32-bit words each, and fills the rest of the buffer
    /// with zeros. The rows of B are `b_row` bytes apart, and need not be aligned.
    ///
    /// # Safety
    /// The words are readable.
    pub unsafe fn copy(&mut self, (b, b_row): (*const u8, usize), rows: usize, words: usize) {
        self.b.fill(0);
        for (row, to) in self.b.chunks_exact_mut(BLOCK_COLUMNS).enumerate().take(rows) {
            let (from, to) = (b.wrapping_add(row * b_row), &mut to[..words]);
            // SAFETY: guaranteed by the caller.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr().cast(), size_of_val(to)) };
        }
    }

    /// Returns the address of the copied rows of B, and their stride in bytes.
    #[inline]
    pub fn copied(&self) -> (*const u8, usize) {
        (self.b.as_ptr().cast(), Self::ROW)
    }
}
