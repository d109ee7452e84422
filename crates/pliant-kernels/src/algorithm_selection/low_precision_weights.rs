//! Rules for matrix products by constant weights of 4, 8 or 16 bits.

use pliant_machine::Machine;

use crate::matmul::micro_kernel::ROWS;
use crate::matmul::row_tiling::TILE_ROWS;

/// Maximum value of [`depth`] on any machine, by which the kernels' scratch memory is sized.
pub const MAX_DEPTH: usize = 128;

/// Number of rows of B (the weights) that are converted to float32 at once: the depth of a slice of B along the inner dimension
/// `k`. A slice of the widest panel, 64 columns, stays in the first-level cache. With slices of 128 rows on Emerald Rapids, matmuls
/// with many rows of A take 0.96 to 1.02 of the time of float32 matmuls (table "Weights of 4, 8 and 16 bits"). With slices that
/// exceed the cache and a division by rows, they take 1.25 of this time.
pub fn depth() -> usize {
    let rows = Machine::host().slice_bytes() / (64 * size_of::<f32>());
    // Groups of 32 weights, the smallest common ones, stay whole.
    (rows / 32 * 32).clamp(32, MAX_DEPTH)
}
/// Maximum depth (range of the inner dimension `k`) of a block of rows of A. A block of this depth stays in the
/// second-level cache. This value was not measured separately.
pub const MAX_A_DEPTH: usize = 1024;

/// Maximum number of rows of a block of A. A block of depth [`MAX_A_DEPTH`] takes half of the
/// second-level cache. Blocks are larger than for packed float32 operands, since each block
/// converts the slices of B again. This value was not measured separately.
pub fn block_rows() -> usize {
    let rows = Machine::host().l2_share(8) / (MAX_A_DEPTH * size_of::<f32>());
    (rows / ROWS * ROWS).max(4 * ROWS)
}
/// Estimated throughput of bfloat16 matmuls with tile registers, relative to float32, from which the size of the pieces of work is
/// computed. The measured ratio is 2.2 to 5.8 (table "Weights of 4, 8 and 16 bits"); 8 is half the estimate for 8-bit integers.
pub const TILE_SPEEDUP: usize = 8;
/// Number of columns of A that are converted to bfloat16 at once for tile registers; the
/// corresponding rows of 32 columns of B take 32 KB, which stays in the first-level cache. The
/// kernel as a whole is 5.65 times as fast as float32 at 512 x 1024 x 1024 (table "Weights of 4, 8
/// and 16 bits").
pub const COPY_DEPTH: usize = 512;
/// Number of rows of A that are converted to bfloat16 at once: with [`COPY_DEPTH`] columns, the
/// copy takes 272 KB of the second-level cache. This value was not measured separately.
pub const COPY_ROWS: usize = 8 * TILE_ROWS;

/// Returns the number of pieces for a division of a matmul by panels only. Returns `None` if the
/// caller should divide the matmul into `rows` blocks of rows and `pieces` pieces of panels
/// instead, because `rows` is 1 or there are too few panels. Each block of rows converts the panels
/// again: with blocks of rows, matmuls with many rows took 1.25 times as long as float32 matmuls,
/// without them 1.05 times.
pub fn panel_pieces(rows: usize, pieces: usize, panels: usize) -> Option<usize> {
    let min_pieces = super::partition::pieces();
    (rows > 1 && panels >= min_pieces).then(|| pieces.max(min_pieces).min(panels))
}
