//! Rules for the choice between tile registers (AMX) and vector instructions.

/// Number of rows of A up to which tile registers are not used for low-precision weights: matmuls
/// by integer weights then read the stored bits in place, and matmuls by bfloat16 weights use
/// vectors. Tile registers read as much of B for one row as for 16. The following ratios were
/// measured for B of 1024 x 1024 with one thread. Time of tile registers relative to vectors, for
/// bfloat16 weights: 1.2 for 1 row, 1.0 for 2, 0.63 for 4 (where A is also rounded to bfloat16).
/// Time of vectors relative to tile registers: 2.1 for 5 rows. Time of converting slices to float32
/// relative to reading in place, for 8-bit and 4-bit weights: 1.7 and 1.9 for 1 row, 1.0 for 4.
/// Time of reading in place relative to converting: 1.2 for 5 rows, 1.3 for 8.
pub const FEW_ROWS: usize = 4;
/// Number of rows of A up to which matrix products of 8-bit integers do not use tile registers. Time of tile registers
/// relative to vectors, with one thread, for B of 384 x 384 and larger: 1.1 to 1.7 for 1 row, 0.9 to 1.3 for 2, 0.8 to 1.2
/// for 3, 0.64 to 0.97 for 4, 0.55 to 0.94 for 5. Exception: for B of 3072 x 768 and 768 x 3072, which is read from
/// memory, the ratios for 4 rows were 1.06 and 1.17 in two of three runs.
const FEW_BYTE_ROWS: usize = 3;
/// Approximate number of rows of A whose multiplication with vectors takes as long as tile
/// registers take to read B.
const MEMORY_BOUND_ROWS: usize = 2;
/// Minimum number of multiplications that amortizes the set-up time of tile registers, 0.13 us. The
/// first [`MEMORY_BOUND_ROWS`] rows of A are not counted. Time of tile registers relative to
/// vectors: B of 64 x 64: 2.0 for 5 rows, 1.06 for 16, 0.88 for 24. B of 128 x 128: 1.1 for 5 rows,
/// 0.95 for 6. B of 256 x 128: 1.14 for 4 rows, 1.0 for 5.
const MIN_PRODUCTS: usize = 80 * 1024;

/// Whether a matrix product of 8-bit integers uses tile registers, if the machine has them.
pub const fn used_for_bytes(m: usize, n: usize, k: usize) -> bool {
    let beyond = m.saturating_sub(MEMORY_BOUND_ROWS).saturating_mul(n).saturating_mul(k);
    m > FEW_BYTE_ROWS && beyond >= MIN_PRODUCTS && k <= super::quantized::MAX_DEPTH
}

/// Whether a matrix product of `m` rows by bfloat16 weights uses tile registers, if the machine has them.
pub const fn used_for_bfloat16(m: usize) -> bool {
    m > FEW_ROWS
}
