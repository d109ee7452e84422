//! Rules for batches of matrix products with any strides.

/// Number of multiplications between two polls of the interrupt flag: 0.1 seconds at 20 GFLOP/s.
/// This value was not measured.
pub const POLL_WORK: usize = 1 << 30;
/// Maximum inner dimension `k` of a matrix product with more work than [`POLL_WORK`] that is divided only by rows or
/// columns. Products with a larger `k` are split along `k` first, so that the parts keep hundreds of rows and columns.
/// This value was not measured.
pub const MAX_UNSPLIT_K: usize = 8192;

/// Whether each matrix product of a batch is computed by one thread, because the batch has enough
/// products for all threads. The limit was not measured. A batch of 12 products of 128 x 64 x 128,
/// which are divided, reaches 93 % of the peak with two threads (table "Products of two
/// non-constant operands").
pub fn stays_whole(batch: usize) -> bool {
    batch >= 2 * super::partition::pieces()
}

/// Whether a matrix product is divided among threads by rows of A instead of by panels of B. This
/// is the case if B has fewer than two panels, or fewer than four panels while A has rows for at
/// least eight blocks of 96. In a division by panels, each panel is read and packed by only one
/// thread. The limits were not measured.
pub const fn by_rows(m: usize, n: usize) -> bool {
    n < 128 || (m >= 8 * 96 && n < 256)
}
