//! Rules for matrix products with a packed operand.

use pliant_machine::Machine;

use crate::matmul::micro_kernel::ROWS;

/// Size in bytes of a slice of a panel, which all slivers (groups of rows of A) of a block read. On Emerald Rapids, slices of 128
/// rows are as fast as slices of 160 or 192 rows (within 2 %), and 4 % faster than slices of 256 rows.
pub fn slice_bytes() -> usize {
    Machine::host().slice_bytes()
}
/// Maximum depth (range of the inner dimension `k`) of a block of rows of A. A block of this depth stays in the
/// second-level cache. A larger `k` is split into equal parts. With one thread, parts of this depth take 0.97 of the
/// time of parts of up to 6144 at 264 x 384 x 3000. If `k` is 1500, both take the same time. Blocks of depth 512, with
/// the loop over `k` outside of the loops over rows and panels, reached 88 % of the peak instead of 96 % at 504 x 384 x
/// 384, and 82 % instead of 93 % at 252 x 3072 x 768.
pub const BLOCK_DEPTH: usize = pliant_machine::cost_model::BLOCK_DEPTH;
/// Maximum number of rows of A that are multiplied as one block. A block of depth [`BLOCK_DEPTH`] takes up to three quarters of the
/// second-level cache.
pub fn block_rows() -> usize {
    Machine::host().block_rows(BLOCK_DEPTH, ROWS)
}
/// Minimum size of B in bytes for which panels are prefetched: the size of a second-level cache, because a larger B is read from
/// memory. For a smaller B, prefetching makes a matrix product of 4 x 384 x 384 take 1.23 times as long, and makes no difference
/// for 7 and 16 rows (one thread). One and two rows are memory-bound in any case.
pub fn prefetched_bytes() -> usize {
    Machine::host().caches.l2
}
/// Minimum number of rows of A for which a matrix product with a single sliver (group of rows of A)
/// prefetches panels of a B that is read from memory. With four rows, the multiplications take
/// about as long as reading B. Four rows of 3072 x 768 reach 90 % of the read bandwidth with one
/// thread (table "Products with packed weights").
pub const MIN_PREFETCH_ROWS: usize = 4;
