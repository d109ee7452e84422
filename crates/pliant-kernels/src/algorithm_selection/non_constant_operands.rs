//! Rules for matrix products of two non-constant operands.

/// Number of rows of B (range of the inner dimension `k`) that are multiplied per pass, for panels of `columns` columns
/// of float32. A slice of a panel of this depth takes an eighth of the second-level cache, at most 128 KB, and stays
/// there together with A. The same depth limits the rows of an unpacked B, which every sliver (group of rows of A)
/// reads again.
///
/// On Emerald Rapids with one thread and 512 rows per pass, products reach 83 % of the peak at 512
/// x 512 x 512, and 73 % at 1024 x 1024 x 1024 (table "Products of two non-constant operands"). If
/// one pass covers all of `k`, the time is the same if B is packed (8 to 64 rows of A) or if B is
/// read in place for 6 rows of A. Reading in place then takes 1.2 to 1.4 times as long for 12 and
/// 24 rows, and 1.5 to 1.9 times for 36 to 64 rows (512 columns, `k` of 1024 and 2048).
pub fn depth(columns: usize) -> usize {
    let bytes = pliant_machine::Machine::host().l2_share(2).min(128 << 10);
    bytes / (columns.max(16) * size_of::<f32>())
}
/// Number of rows of A up to which reading B in place is cheaper than packing B, if the row stride of B is small. Time
/// of reading in place relative to packing, with one thread: 512 columns and an inner dimension `k` of 256 to 2048: 0.5
/// to 0.6 for 6 rows, 0.7 to 0.8 for 24, 0.9 for 48, 0.9 to 1.05 for 96 (1.2 at `k` = 4096). 64 columns: 0.4 for 6 to
/// 48 rows.
const IN_PLACE_ROWS: usize = 48;
/// Maximum row stride of B in bytes that counts as small. Time of reading in place relative to packing: with a stride of 3
/// KB, 0.9 for 48 rows of A. With 4 KB and more, where each row of B is in another page, 0.6 to 0.8 for 6 rows, 0.8 to 1.0
/// for 12, 1.0 for 18, 1.0 to 1.35 for 24, 1.1 to 1.6 for 48.
const SMALL_STRIDE: usize = 3 * 1024;
/// Number of rows of A up to which reading B in place is cheaper than packing B, if the row stride of B is large.
const LARGE_STRIDE_IN_PLACE_ROWS: usize = 12;
/// Number of rows of A up to which dot products of rows of A and columns of B in place are faster than transposing B
/// into panels, if the columns of B are contiguous and the inner dimension `k` is long. Time of transposing relative to
/// dot products, with one thread and `k` of 256 to 2048: 2.1 to 3.5 for 4 rows, 1.3 to 1.7 for 8, 1.1 to 1.4 for 16,
/// 0.9 to 1.0 for 24, 0.8 to 0.9 for 48. For 16 rows and only 64 or 100 columns, the ratio is still 1.5 and 1.8.
pub const DOT_ROWS: usize = 16;
/// Minimum inner dimension `k` that counts as long, for the choice between dot products and transposing B.
const LONG_K: usize = 256;
/// Number of rows of A up to which dot products are faster than transposing B for a medium inner dimension `k`. Time of
/// transposing relative to dot products: `k` of 64: 0.9 to 1.1 for 3 and 4 rows, 0.7 for 5. `k` of 100 and 128: 1.1 to
/// 1.4 for 5 rows, 1.0 to 1.15 for 8, 0.8 for 12.
const MEDIUM_K_DOT_ROWS: usize = 4;
/// Number of rows of A up to which dot products are faster than transposing B for a short inner dimension `k`. Time of
/// transposing relative to dot products at `k` = 32: 1.0 for 2 rows, 0.8 for 3, 0.7 for 4.
const SHORT_K_DOT_ROWS: usize = 2;
/// Maximum inner dimension `k` that counts as short, for the choice between dot products and transposing B.
const SHORT_K: usize = 63;
/// Maximum number of results of a matrix product for which the crate `gemm` chooses dot products. Larger products are
/// passed to the crate in strips of this size. Time without strips relative to transposing: 3.4 for 3 rows by 1024 x 1024,
/// 2 to 3 for 2 rows by 2048 x 512 and 3072 x 768.
pub const MAX_DOT_RESULTS: usize = 16 * 16;

/// Whether reading B in place is faster than packing it, if the rows of B are contiguous. A has `m`
/// rows, and the row stride of B is `row_stride` bytes. The limits were measured with panels that
/// consist of whole vectors. Panels whose last vector is partly filled gain more: with 4, 20 and 100
/// columns, reading in place takes 0.15 to 0.6 of the time of packing for 1 to 48 rows.
pub const fn in_place_is_faster(m: usize, row_stride: usize) -> bool {
    m <= if row_stride <= SMALL_STRIDE { IN_PLACE_ROWS } else { LARGE_STRIDE_IN_PLACE_ROWS }
}

/// Whether transposing B into panels is faster than dot products, if the rows of B are not
/// contiguous. A has `m` rows of `k` elements. The limits were measured only with float32 and
/// AVX-512.
pub const fn transposing_is_faster(m: usize, k: usize) -> bool {
    m > match k {
        0..=SHORT_K => SHORT_K_DOT_ROWS,
        LONG_K.. => DOT_ROWS,
        _ => MEDIUM_K_DOT_ROWS,
    }
}
