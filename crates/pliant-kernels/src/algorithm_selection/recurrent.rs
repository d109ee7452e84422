//! Rules for recurrent layers: sizes of blocks and pieces of work.

/// Maximum number of rows (inputs of time steps) that are multiplied by the input weights at once.
/// With few rows, the weights are read too often. With many rows, the results are evicted from the
/// caches before the steps use them. This value was not measured separately; the table "Recurrent
/// layers" measures the whole layer.
pub const INPUT_BLOCK_ROWS: usize = 256;
/// Maximum number of rows (sequences) of a piece of work. With this number of rows, the sums of 64
/// columns take three quarters of the first-level cache. This value was not measured separately.
pub fn piece_rows() -> usize {
    super::convolution::block_pixels()
}
/// Maximum value of [`piece_rows`] on any machine, by which the kernels' scratch memory is sized.
pub const MAX_PIECE_ROWS: usize = super::convolution::MAX_BLOCK_PIXELS;
