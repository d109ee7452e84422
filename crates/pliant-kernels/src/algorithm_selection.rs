//! The rules by which kernels choose their algorithm from the shape at run time, and the
//! measurements behind each rule.
//!
//! A kernel file describes how an implementation works. This file decides which implementation
//! runs, how it is blocked and into how many pieces the work is divided for the threads. Tile sizes
//! of micro-kernels (six rows by 64 columns, 32 rows of a tile register) are defined with the
//! micro-kernels. The rule by which groups of a convolution share weight panels is in
//! `pliant_tensor`, because the compiler also packs constants by it. [`convolution`] re-exports the
//! rule. The blocking of products in generated code is in
//! `pliant-tir/src/schedule/gemm_blocking.rs`.
//!
//! Sizes of blocks and numbers of pieces derive from the machine ([`pliant_machine`]). Other
//! constants are ratios of work, for example the number of rows from which a copy is cheaper than
//! reading in place.
//!
//! Quoted titles are tables in `docs/internals/measurements`. Measurements without the name of a
//! CPU are from the machine of those pages: Emerald Rapids, with AVX-512 and AMX, 48 KB of
//! first-level and 2 MB of second-level cache, two threads. Ratios "with one thread" compare builds
//! that differ in the rule. They ran alternately on a loaded machine, and vary by up to 10 %. "Not
//! measured" means that only the stated reason supports the value.
//!
//! | module | owns |
//! |---|---|
//! | [`partition`] | pieces of work for the worker team, and pieces of matrix products by packed panels |
//! | [`gemm`] | pieces of a batch of products with any strides |
//! | [`packed`] | block sizes of matrix products with a packed operand |
//! | [`row_copies`] | when rows of A (the left operand) are copied |
//! | [`non_constant`] | whether B (the right operand) is packed if both operands are non-constant |
//! | [`tile_registers`] | the choice between tile registers (AMX) and vector instructions |
//! | [`quantized`] | matrix products of 8-bit integers |
//! | [`low_precision_weights`] | matrix products by constants of 4, 8 or 16 bits |
//! | [`attention`] | blocks of rows and keys |
//! | [`convolution`] | tiles, lines, groups and Winograd blocks |
//! | [`recurrent`] | ranges of steps |
//! | [`arg_reduce`] | pieces of rows, and parts into which long rows are divided |
//! | [`fft`] | pieces of rows |
//! | [`resize`] | pieces of rows |
//! | [`softmax`] | pieces of rows |
//! | [`sort`] | algorithms and pieces of rows |
//! | [`transpose`] | tiles and pieces of copies |

use pliant_machine::Machine;

/// Rules for the division of work into pieces for the worker team.
pub mod partition {
    pub use pliant_machine::cost_model::MAX_PIECES;

    /// Number of multiply-adds that one thread computes per microsecond, the unit of work for the
    /// worker team. With a second thread, a loop of 1 us becomes 1.05 times as fast and a loop of 2
    /// us 1.33 times as fast, but a loop of 0.5 us becomes slower (table "The worker team").
    pub fn unit_work() -> usize {
        super::Machine::host().rates.multiply_adds
    }

    /// The number of pieces into which large amounts of work are divided.
    pub fn pieces() -> usize {
        super::Machine::host().pieces()
    }

    /// Minimum duration of a piece in microseconds, if the work has more than [`pieces`] pieces.
    /// Not measured: distributing a piece takes 0.4 us (table "The worker team"), which is
    /// negligible.
    pub const MIN_PIECE_UNITS: usize = 64;
    /// Minimum number of rows of a block, if a matrix product is divided by rows. The rows of a block share the reads of B.
    /// Blocks of 48 rows are 10 to 15 % slower.
    pub const MIN_BLOCK_ROWS: usize = 96;
    /// Number of rows of A up to which a matrix product is memory-bound: reading B takes as long as
    /// the multiplications. The cost estimate of a product with fewer rows assumes this number. One
    /// to four rows of 1024 x 1024 take 133 to 135 us with one thread, seven take 141 (table
    /// "Products with packed weights").
    pub const MEMORY_BOUND_ROWS: usize = 4;

    /// Whether a matrix product with `m` rows is divided by rows instead of by panels: if the rows
    /// fill two blocks of [`MIN_BLOCK_ROWS`]. Measured with two threads (table "Products with
    /// packed weights"), in percent of the peak: 256 rows divided by rows reach 96 to 97 %, and 64
    /// rows divided by panels 95 to 96 %.
    pub const fn cuts_rows_first(m: usize) -> bool {
        m >= 2 * MIN_BLOCK_ROWS
    }

    /// Whether all threads get equal numbers of panels, so that rows need not be divided, too.
    /// Measured only for few rows and six panels, which reach 53 to 76 % of the peak with two
    /// threads (table "Products with packed weights").
    pub fn panels_suffice(panels: usize) -> bool {
        panels >= pieces() / 2 && panels.is_multiple_of(pieces() / 4)
    }
}

/// Rules for batches of matrix products with any strides.
pub mod gemm {
    /// Number of multiplications between two polls of the interrupt flag: 0.1 seconds at 20 GFLOP/s. Not measured.
    pub const POLL_WORK: usize = 1 << 30;
    /// Maximum `k` of a matrix product with more work than [`POLL_WORK`] that is divided only by rows or columns. Products
    /// with a larger `k` are split along `k` first, so that the parts keep hundreds of rows and columns. Not measured.
    pub const MAX_UNSPLIT_K: usize = 8192;

    /// Whether each matrix product of a batch is computed by one thread, because the batch has
    /// enough products for all threads. The limit was not measured. A batch of 12 products of 128 x
    /// 64 x 128, which are divided, reaches 93 % of the peak with two threads (table "Products of
    /// two non-constant operands").
    pub fn stays_whole(batch: usize) -> bool {
        batch >= 2 * super::partition::pieces()
    }

    /// Whether a matrix product is divided among threads by rows of A instead of by panels of B.
    /// This is the case if B has fewer than two panels, or fewer than four panels while A has rows
    /// for at least eight blocks of 96. In a division by panels, each panel is read and packed by
    /// only one thread. Not measured.
    pub const fn by_rows(m: usize, n: usize) -> bool {
        n < 128 || (m >= 8 * 96 && n < 256)
    }
}

/// Rules for matrix products with a packed operand.
pub mod packed {
    use pliant_machine::Machine;

    use crate::matmul::micro_kernel::ROWS;

    /// Size in bytes of a slice of a panel, which all slivers (groups of rows of A) of a block
    /// read. On Emerald Rapids, slices of 128 rows are as fast as slices of 160 or 192 rows (within
    /// 2 %), and 4 % faster than slices of 256 rows.
    pub fn slice_bytes() -> usize {
        Machine::host().slice_bytes()
    }
    /// Maximum depth (range of `k`) of a block of rows of A. A block of this depth stays in the
    /// second-level cache. A larger `k` is split into equal parts. Measured with one thread: at 264
    /// x 384 x 3000, parts of this depth take 0.97 of the time of parts of up to 6144; at `k` =
    /// 1500, they take the same time. Blocks of depth 512, with the loop over `k` outside of the
    /// loops over rows and panels, reached 88 % of the peak instead of 96 % at 504 x 384 x 384, and
    /// 82 % instead of 93 % at 252 x 3072 x 768.
    pub const BLOCK_DEPTH: usize = pliant_machine::cost_model::BLOCK_DEPTH;
    /// Maximum number of rows of a block of A.
    pub fn block_rows() -> usize {
        Machine::host().block_rows(BLOCK_DEPTH, ROWS)
    }
    /// Minimum size of B in bytes for which panels are prefetched: the size of a second-level
    /// cache, because a larger B is read from memory. For a smaller B, prefetching makes a matrix
    /// product of 4 x 384 x 384 take 1.23 times as long, and makes no difference for 7 and 16 rows
    /// (one thread). One and two rows are memory-bound in any case.
    pub fn prefetched_bytes() -> usize {
        Machine::host().caches.l2
    }
    /// Minimum number of rows of A for which a matrix product with a single sliver (group of rows
    /// of A) prefetches panels of a B that is read from memory. With four rows, the multiplications
    /// take about as long as reading B. Four rows of 3072 x 768 reach 90 % of the read bandwidth
    /// with one thread (table "Products with packed weights").
    pub const MIN_PREFETCH_ROWS: usize = 4;
}

/// Rules for copying rows of A.
pub mod row_copies {
    use crate::matmul::micro_kernel::LINE;

    /// Distance in bytes between addresses that map to the same set of a first-level cache: 64 sets of one line each. All current
    /// x86-64 cores have 64 sets, because the bits of an address within a page select the set.
    const SET_STRIDE: usize = 64 * LINE;
    /// Minimum number of panels of B for which rows of A are copied, since each panel reads the rows again. Not measured
    /// separately: copying takes about as long as one pass over the rows.
    const MIN_PANELS: usize = 4;
    /// Minimum number of rows of A for which rows are copied: more than twice the associativity of the first-level cache. Not
    /// measured.
    const MIN_ROWS: usize = 24;

    /// Whether copying rows of A with a stride of `row_stride` bytes for `panels` panels is faster than reading them in place.
    /// Measured speedups by copying: 1.05 to 1.14 at 2048 x 2048 x 2048 with one and two threads, 1.01 to 1.06 at 512 x 1024 x
    /// 1024 and 1024 x 1024 x 1024, none at 512 x 768 x 3072 and for 24 to 96 rows by 1024 x 1024. Rows whose stride is not a
    /// multiple of 4 KB are not copied.
    pub const fn is_faster(row_stride: usize, rows: usize, panels: usize) -> bool {
        panels >= MIN_PANELS
            && rows >= MIN_ROWS
            && row_stride != 0
            && row_stride.is_multiple_of(SET_STRIDE)
    }
}

/// Rules for matrix products of two non-constant operands.
pub mod non_constant {
    /// Number of rows of B (range of `k`) that are multiplied per pass, for panels of `columns`
    /// columns of float32. A slice of a panel of this depth takes an eighth of the second-level
    /// cache, at most 128 KB, and stays there together with A. The same depth limits the rows of an
    /// unpacked B, which every sliver (group of rows of A) reads again.
    ///
    /// Measured on Emerald Rapids with one thread and 512 rows per pass (table "Products of two
    /// non-constant operands"): 83 % of the peak at 512 x 512 x 512, 73 % at 1024 x 1024 x 1024. If
    /// one pass covers all of `k`, the time is the same if B is packed (8 to 64 rows of A) or if B
    /// is read in place for 6 rows of A. Reading in place then takes 1.2 to 1.4 times as long for
    /// 12 and 24 rows, and 1.5 to 1.9 times for 36 to 64 rows (512 columns, `k` of 1024 and 2048).
    pub fn depth(columns: usize) -> usize {
        let bytes = pliant_machine::Machine::host().l2_share(2).min(128 << 10);
        bytes / (columns.max(16) * size_of::<f32>())
    }
    /// Number of rows of A up to which reading B in place is cheaper than packing B, if the row stride of B is small. Time of
    /// reading in place relative to packing, with one thread: 512 columns and `k` of 256 to 2048: 0.5 to 0.6 for 6 rows, 0.7
    /// to 0.8 for 24, 0.9 for 48, 0.9 to 1.05 for 96 (1.2 at `k` = 4096). 64 columns: 0.4 for 6 to 48 rows.
    const IN_PLACE_ROWS: usize = 48;
    /// Maximum row stride of B in bytes that counts as small. Time of reading in place relative to packing: with a stride of 3
    /// KB, 0.9 for 48 rows of A. With 4 KB and more, where each row of B is in another page, 0.6 to 0.8 for 6 rows, 0.8 to 1.0
    /// for 12, 1.0 for 18, 1.0 to 1.35 for 24, 1.1 to 1.6 for 48.
    const SMALL_STRIDE: usize = 3 * 1024;
    /// Number of rows of A up to which reading B in place is cheaper than packing B, if the row stride of B is large.
    const LARGE_STRIDE_IN_PLACE_ROWS: usize = 12;
    /// Number of rows of A up to which dot products of rows of A and columns of B in place are faster than transposing B into
    /// panels, if the columns of B are contiguous and `k` is long. Time of transposing relative to dot products, with one
    /// thread and `k` of 256 to 2048: 2.1 to 3.5 for 4 rows, 1.3 to 1.7 for 8, 1.1 to 1.4 for 16, 0.9 to 1.0 for 24, 0.8 to
    /// 0.9 for 48. With 64 and 100 columns, the ratio is still 1.5 and 1.8 for so many rows.
    pub const DOT_ROWS: usize = 16;
    /// Minimum `k` that counts as long, for the choice between dot products and transposing B.
    const LONG_K: usize = 256;
    /// Number of rows of A up to which dot products are faster than transposing B for medium `k`. Time of transposing relative
    /// to dot products: `k` of 64: 0.9 to 1.1 for 3 and 4 rows, 0.7 for 5. `k` of 100 and 128: 1.1 to 1.4 for 5 rows, 1.0 to
    /// 1.15 for 8, 0.8 for 12.
    const MEDIUM_K_DOT_ROWS: usize = 4;
    /// Number of rows of A up to which dot products are faster than transposing B for short `k`. Time of transposing relative
    /// to dot products at `k` = 32: 1.0 for 2 rows, 0.8 for 3, 0.7 for 4.
    const SHORT_K_DOT_ROWS: usize = 2;
    /// Maximum `k` that counts as short, for the choice between dot products and transposing B.
    const SHORT_K: usize = 63;
    /// Maximum number of results of a matrix product for which the crate `gemm` chooses dot products. Larger products are
    /// passed to the crate in strips of this size. Time without strips relative to transposing: 3.4 for 3 rows by 1024 x 1024,
    /// 2 to 3 for 2 rows by 2048 x 512 and 3072 x 768.
    pub const MAX_DOT_RESULTS: usize = 16 * 16;

    /// Whether reading B in place is faster than packing it, if the rows of B are contiguous. A has
    /// `m` rows, and the row stride of B is `row_stride` bytes. The rule applies to panels that
    /// consist of whole vectors.
    pub const fn in_place_is_faster(m: usize, row_stride: usize) -> bool {
        m <= if row_stride <= SMALL_STRIDE { IN_PLACE_ROWS } else { LARGE_STRIDE_IN_PLACE_ROWS }
    }

    /// Whether transposing B into panels is faster than dot products, if the rows of B are not
    /// contiguous. A has `m` rows of `k` elements. Not measured with float64, nor with other
    /// instructions than AVX-512.
    pub const fn transposing_is_faster(m: usize, k: usize) -> bool {
        m > match k {
            0..=SHORT_K => SHORT_K_DOT_ROWS,
            LONG_K.. => DOT_ROWS,
            _ => MEDIUM_K_DOT_ROWS,
        }
    }
}

/// Rules for the choice between tile registers (AMX) and vector instructions.
pub mod tile_registers {
    /// Number of rows of A up to which tile registers are not used for low-precision weights:
    /// matmuls by integer weights then read the stored bits in place, and matmuls by bfloat16
    /// weights use vectors. Tile registers read as much of B for one row as for 16. Measured at
    /// 1024 x 1024 with one thread. Time of tile registers relative to vectors, for bfloat16
    /// weights: 1.2 for 1 row, 1.0 for 2, 0.63 for 4 (where A is also rounded to bfloat16). Time of
    /// vectors relative to tile registers: 2.1 for 5 rows. Time of converting slices to float32
    /// relative to reading in place, for 8-bit and 4-bit weights: 1.7 and 1.9 for 1 row, 1.0 for 4.
    /// Time of reading in place relative to converting: 1.2 for 5 rows, 1.3 for 8.
    pub const FEW_ROWS: usize = 4;
    /// Number of rows of A up to which matrix products of 8-bit integers do not use tile registers. Time of tile registers
    /// relative to vectors, with one thread, for B of 384 x 384 and larger: 1.1 to 1.7 for 1 row, 0.9 to 1.3 for 2, 0.8 to 1.2
    /// for 3, 0.64 to 0.97 for 4, 0.55 to 0.94 for 5. Exception: B of 3072 x 768 and 768 x 3072, which is read from memory,
    /// takes 1.06 and 1.17 for 4 rows in two of three runs.
    const FEW_BYTE_ROWS: usize = 3;
    /// Approximate number of rows of A whose multiplication with vectors takes as long as tile
    /// registers take to read B.
    const MEMORY_BOUND_ROWS: usize = 2;
    /// Minimum number of multiplications that amortises the set-up time of tile registers, 0.13 us.
    /// The first [`MEMORY_BOUND_ROWS`] rows of A are not counted. Time of tile registers relative
    /// to vectors: B of 64 x 64: 2.0 for 5 rows, 1.06 for 16, 0.88 for 24. B of 128 x 128: 1.1 for
    /// 5 rows, 0.95 for 6. B of 256 x 128: 1.14 for 4 rows, 1.0 for 5.
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
}

/// Rules for matrix products of 8-bit integers.
pub mod quantized {
    /// Maximum `k` for which tile registers are used. A copy of 32 rows of A then takes 2.1 MB, about the second-level cache
    /// of machines with tile registers. Not measured: such deep matmuls are rare.
    pub const MAX_DEPTH: usize = 64 * 1024;
    /// Estimated throughput of 8-bit matmuls with vectors, relative to float32, by which the size
    /// of pieces is chosen. The measured ratio is 2.0 to 2.5, the theoretical maximum 4 (table
    /// "8-bit integers").
    pub const VECTOR_SPEEDUP: usize = 4;
    /// Estimated throughput of 8-bit matmuls with tile registers, relative to float32, by which the
    /// size of pieces is chosen. The measured ratio is 2.7 to 7.1, and at most 14 to 16 (table
    /// "8-bit integers").
    pub const TILE_SPEEDUP: usize = 16;
    /// Maximum size in bytes of the copies of A for tile registers: an eighth of the second-level
    /// cache. A single block of 32 rows may be larger. This value was not measured separately. The
    /// whole kernel reaches 646 % of the float32 peak at 512 x 512 x 512 and 711 % at 1024 x 1024 x
    /// 1024 (table "8-bit integers").
    pub fn copied_bytes() -> usize {
        pliant_machine::Machine::host().l2_share(2)
    }
    /// Maximum number of blocks of 32 rows of A that are copied at once for tile registers, even if the blocks are small. Not
    /// measured.
    pub const MAX_COPIED_BLOCKS: usize = 8;
    /// Approximate number of multiplications of depthwise 8-bit convolutions per microsecond: half as many as for float32. Not
    /// measured.
    pub fn depthwise_unit() -> usize {
        pliant_machine::Machine::host().rates.depthwise / 2
    }

    /// Returns how many pieces a convolution is divided into, by results and by panels of filters.
    /// It has `rows` results and `panels` panels, and takes about `units` microseconds. Results are
    /// divided first, because every piece by panels repeats the im2col copy of the inputs. Not
    /// measured.
    pub fn piece_grid(rows: usize, panels: usize, units: usize) -> (usize, usize) {
        use super::partition::{MAX_PIECES, MIN_PIECE_UNITS, pieces};
        use crate::matmul::row_tiling::TILE_ROWS;
        let wanted = units.clamp(1, MAX_PIECES);
        let max_pieces = pieces();
        let row_pieces = wanted
            .min(max_pieces.max(wanted / MIN_PIECE_UNITS))
            .min(rows.div_ceil(TILE_ROWS))
            .max(1);
        let panel_pieces =
            max_pieces.div_ceil(row_pieces).min(wanted / row_pieces).min(panels).max(1);
        (row_pieces, if row_pieces >= max_pieces { 1 } else { panel_pieces })
    }
}

/// Rules for matrix products by constant weights of 4, 8 or 16 bits.
pub mod low_precision_weights {
    use pliant_machine::Machine;

    use crate::matmul::micro_kernel::ROWS;
    use crate::matmul::row_tiling::TILE_ROWS;

    /// Maximum value of [`depth`] on any machine, by which the kernels' scratch memory is sized.
    pub const MAX_DEPTH: usize = 128;

    /// Number of rows of a slice of B, along `k`, that is converted to float32. A slice of the
    /// widest panel, 64 columns, stays in the first-level cache. With slices of 128 rows on Emerald
    /// Rapids, matmuls with many rows of A take 0.96 to 1.02 of the time of float32 matmuls (table
    /// "Weights of 4, 8 and 16 bits"). With slices that exceed the cache and a division by rows,
    /// they take 1.25 of this time.
    pub fn depth() -> usize {
        let rows = Machine::host().slice_bytes() / (64 * size_of::<f32>());
        // Groups of 32 weights, the smallest common ones, stay whole.
        (rows / 32 * 32).clamp(32, MAX_DEPTH)
    }
    /// Maximum depth of a block of rows of A. A block of this depth stays in the second-level
    /// cache. Not measured separately.
    pub const MAX_A_DEPTH: usize = 1024;

    /// Maximum number of rows of a block of A. A block of depth [`MAX_A_DEPTH`] takes half of the
    /// second-level cache. Blocks are larger than for packed float32 operands, since each block
    /// converts the slices of B again. Not measured separately.
    pub fn block_rows() -> usize {
        let rows = Machine::host().l2_share(8) / (MAX_A_DEPTH * size_of::<f32>());
        (rows / ROWS * ROWS).max(4 * ROWS)
    }
    /// Estimated throughput of bfloat16 matmuls with tile registers, relative to float32, by which
    /// the size of pieces is chosen. The measured ratio is 2.2 to 5.8 (table "Weights of 4, 8 and
    /// 16 bits"); 8 is half the estimate for 8-bit integers.
    pub const TILE_SPEEDUP: usize = 8;
    /// Number of columns of A that are converted to bfloat16 at once for tile registers; the
    /// corresponding rows of 32 columns of B take 32 KB, which stays in the first-level cache. The
    /// kernel as a whole is 5.65 times as fast as float32 at 512 x 1024 x 1024 (table "Weights of
    /// 4, 8 and 16 bits").
    pub const COPY_DEPTH: usize = 512;
    /// Number of rows of A that are converted to bfloat16 at once: with [`COPY_DEPTH`] columns, the copy takes 272 KB of the
    /// second-level cache. Not measured separately.
    pub const COPY_ROWS: usize = 8 * TILE_ROWS;

    /// Returns the number of pieces for a division by panels only; `None` if `rows` is 1 or there
    /// are too few panels. Otherwise, the matmul would be divided into `rows` blocks of rows and
    /// `pieces` pieces of panels, and each block of rows would convert the panels again. With
    /// blocks of rows, matmuls with many rows took 1.25 times as long as float32 matmuls, without
    /// them 1.05 times.
    pub fn panel_pieces(rows: usize, pieces: usize, panels: usize) -> Option<usize> {
        let min_pieces = super::partition::pieces();
        (rows > 1 && panels >= min_pieces).then(|| pieces.max(min_pieces).min(panels))
    }
}

/// Rules for attention: packing, and sizes of blocks of queries and keys.
pub mod attention {
    use pliant_machine::Machine;

    use crate::matmul::micro_kernel::ROWS as SLIVER;

    /// Maximum number of query rows for which scores are dot products with keys in place, without packing the keys. Time of
    /// packing relative to reading in place, with 512 keys, 12 heads of size 64 and one thread: 1.25 for 1 row, 1.1 for 2, 0.9
    /// for 4. A limit of 3 may be better, but was not measured.
    const FEW_ROWS: usize = 4;
    /// Maximum number of keys for which a block of rows keeps all its scores and is processed in
    /// one pass. With more keys, the block is processed in blocks of keys with a running maximum
    /// and sum, as in FlashAttention.
    ///
    /// On Emerald Rapids, the limit is 4096 keys; the scores of 24 rows then take 384 KB. Without
    /// the limit, 128 rows by 8192 keys take 1.6 times as long. Compared with a limit of 1024 (one
    /// thread, heads of size 64, percent of the peak): 56 to 58 % instead of 48 to 49 % at 1536,
    /// 2048 and 4096 keys, and 63 % instead of 49 % for 2048 causal keys. Two threads are similar,
    /// except 58 % instead of 54 % at 4096 keys.
    pub fn full_keys() -> usize {
        score_elements() / MIN_FULL_ROWS
    }

    /// Maximum number of scores of a block: three eighths of the second-level cache, at most 384 KB. With 192 KB on Zen
    /// 5, 512 rows by 8192 keys take 1.05 times as long.
    fn score_elements() -> usize {
        Machine::host().l2_share(6).min(384 << 10) / size_of::<f32>()
    }

    /// Number of keys in a block, if the keys are processed with a running sum. The number is a multiple of every panel width.
    /// A packed block of keys of size 32 takes 64 KB. Not measured separately.
    const KEY_BLOCK: usize = 512;
    /// Minimum number of rows of a block that keeps all its scores. Not measured separately.
    const MIN_FULL_ROWS: usize = 24;
    /// Maximum number of rows of a block that keeps all its scores. Blocks of 96 rows take 1.02 times as long at 128 keys,
    /// 1.09 times at 512 and 1.14 times at 1024 (one thread).
    const MAX_FULL_ROWS: usize = 48;
    /// Maximum number of query rows of any block. Only blocks that use a running sum have so many rows. Not measured
    /// separately.
    pub const MAX_ROWS: usize = 96;
    /// Minimum number of keys for which non-contiguous values are packed. 512 queries by 512 keys
    /// of size 64 took 6.6 ms with packing and 10.7 ms in place, where every sliver (group of query
    /// rows) accessed one page for each value (table "Attention"). Time of packing relative to
    /// reading in place, with one thread: 1.2 to 1.3 for 1 to 4 rows of 512 keys, and 1.06 to 1.09
    /// for 24 rows of 128 and 512 keys.
    const MIN_PACKED_KEYS: usize = 128;
    const MIN_PACKED_ROWS: usize = 24;
    /// Minimum number of query rows of a piece, if the rows of a head are divided into pieces. Each piece packs the keys
    /// again. Not measured separately.
    pub const MIN_PIECE_ROWS: usize = 24;
    /// Number of multiply-adds that take as long as the exponential of a score. Exponentials take a
    /// third of the time of attention with heads of size 32, and a fifth with size 64 (table
    /// "Attention").
    pub const EXP_PRODUCTS: usize = 16;

    /// Whether keys are packed instead of read in place, for `rows` rows of queries.
    pub const fn packs_keys(rows: usize) -> bool {
        rows > FEW_ROWS
    }

    /// Whether non-contiguous values are packed instead of read in place, for `rows` rows of queries and `keys` keys.
    pub const fn packs_values(rows: usize, keys: usize) -> bool {
        keys >= MIN_PACKED_KEYS && rows >= MIN_PACKED_ROWS
    }

    /// Returns the maximum number of query rows and the maximum number of keys of a block. Blocks cover all keys, or a part of
    /// the keys with a running sum.
    pub fn block_size(keys: usize) -> (usize, usize) {
        let elements = score_elements();
        if keys <= full_keys() {
            (whole_slivers(elements / keys.max(1)).clamp(MIN_FULL_ROWS, MAX_FULL_ROWS), keys)
        } else {
            (whole_slivers(elements / 2 / KEY_BLOCK).clamp(MIN_FULL_ROWS, MAX_ROWS), KEY_BLOCK)
        }
    }

    /// Rounds a number of rows down to a multiple of the rows of a sliver (the rows of a register tile).
    fn whole_slivers(rows: usize) -> usize {
        rows / SLIVER * SLIVER
    }
}

/// Rules for convolutions: choice of the implementation, and sizes of blocks.
pub mod convolution {
    use pliant_machine::Machine;
    /// Whether groups of a grouped convolution share panels of weights.
    pub use pliant_tensor::may_share_panels;

    use super::partition::pieces;

    /// Maximum number of results of a block, per filter. All results of a block use the same slice
    /// of the weights, which has this many rows and, with 64 filters, takes three quarters of the
    /// first-level cache. On Emerald Rapids, blocks of 96 results with slices are 1.2 times as fast
    /// as without slices at 7 x 7 x 512, and as fast at other sizes. On Zen 5, blocks of 64 results
    /// take 1.05 to 1.2 times as long.
    pub fn block_pixels() -> usize {
        (Machine::host().caches.l1 / 4 * 3 / (64 * size_of::<f32>())).clamp(24, MAX_BLOCK_PIXELS)
    }
    /// Maximum value of [`block_pixels`] on any machine, by which the kernels' scratch memory is sized.
    pub const MAX_BLOCK_PIXELS: usize = 96;
    /// The number of pieces into which a convolution with only a few blocks of results is divided.
    /// Not measured.
    pub fn short_pieces() -> usize {
        2 * pieces()
    }
    /// Number of multiply-adds that a depthwise convolution computes per microsecond.
    pub fn depthwise_unit() -> usize {
        Machine::host().rates.depthwise
    }
    /// Number of elements that are copied per microsecond.
    pub fn copied_unit() -> usize {
        Machine::host().rates.copied
    }
    /// Maximum number of filters for which convolutions are computed by dot products over channels.
    pub const FEW_FILTERS: usize = 4;

    /// Whether a convolution by few filters is faster as dot products over channels than with panels of 16 filters, which
    /// would mostly be padding. Each dot product ends with a horizontal sum, which takes about as long as a few vector
    /// multiply-adds.
    pub const fn few_filters_are_faster(filters: usize, channels: usize, taps: usize) -> bool {
        filters <= FEW_FILTERS && channels >= 8 && channels.saturating_mul(taps) >= 64
    }

    /// Whether vectors of adjacent results are faster than vectors of channels or filters. The
    /// input is first copied to one plane for each channel. Time relative to the implementations
    /// with vectors of channels or filters, for 3 images of 74 x 91 with 3 x 3 filters and one
    /// thread (AMD EPYC with AVX-512): 0.34 for 3 channels and 3 filters, 0.15 for 1 channel and 1
    /// filter, 0.46 to 0.74 for 16 to 32 channels and 1 filter, 0.4 to 0.63 for 16 to 64 channels
    /// and 4 filters, 1.17 for 64 channels and 1 filter.
    pub const fn few_channels_are_faster(filters: usize, channels: usize, line: usize) -> bool {
        filters <= FEW_FILTERS && (channels <= 4 || line >= 8 && channels <= 16 * (filters + 1))
    }

    /// Number of taps of a filter row for which depthwise convolutions use the sweep, which loads each input once for all taps
    /// of a filter row.
    pub const SWEPT_TAPS: usize = 3;

    /// Whether a line of a depthwise convolution is computed as a sweep, which loads each input
    /// once for all taps of a filter row instead of once for each tap. Speedups by sweeps with one
    /// thread and AVX-512: 1.5 for lines of 28 to 112 pixels, 1.05 to 1.6 for 14 and 7 pixels; with
    /// AVX2: 1.2 to 1.4 and 0.9 to 1.1. With stride 2, where adjacent results share fewer inputs, a
    /// sweep took 1.2 times as long.
    pub const fn sweeps(taps: usize, stride: usize, dilation: usize) -> bool {
        taps == SWEPT_TAPS && stride == 1 && dilation == 1
    }

    /// Approximate number of lines of a piece of a grouped convolution. Each piece fills a new line buffer, which has two more
    /// lines for 3 x 3 filters. Not measured.
    const BAND_LINES: usize = 16;
    /// Minimum number of lines of a piece of a grouped convolution, if the convolution has fewer
    /// pieces than [`short_pieces`]. Not measured. With 3 x 3 filters, four lines of results need
    /// six rows of inputs.
    const MIN_BAND_LINES: usize = 4;
    /// Maximum panel width, in columns (filters), of a group that has its own panels, for the
    /// implementation of grouped convolution with few filters per group: two vectors of 512 bits.
    /// For 3 x 3 filters with stride 1 and 32 groups, this implementation is 12 times as fast as
    /// the GEMM for 4 channels per group, 5 times for 8, 3 times for 16 and 2 times for 32.
    const MAX_GROUP_WIDTH: i64 = 32;
    /// Maximum number of elements of a line buffer, unless even a minimal part of a line needs more: half of a first-level cache.
    /// Not measured.
    pub fn line_elements() -> usize {
        Machine::host().caches.l1 / 2 / size_of::<f32>()
    }

    /// Whether the sums of a group's panel of `width` columns stay in registers over all taps.
    pub const fn sums_fit_registers(width: i64) -> bool {
        width <= MAX_GROUP_WIDTH
    }

    /// Returns the number of bands (ranges of lines) into which an image of `lines` lines is divided in a grouped convolution,
    /// if each band is further divided into `other_pieces` pieces.
    pub fn bands(lines: usize, other_pieces: usize) -> usize {
        let bands = lines.div_ceil(BAND_LINES).max(short_pieces().div_ceil(other_pieces));
        bands.min(lines.div_ceil(MIN_BAND_LINES))
    }

    /// Maximum number of input elements of a Winograd block, unless [`MIN_TILES`] need more: a second-level cache, at most 1
    /// MB. On Emerald Rapids, Winograd convolution as a whole is 1.5 to 2.1 times as fast as the implicit GEMM for images of
    /// 56 x 56 to 14 x 14 (`convolution/winograd`). With 512 KB on Zen 5, convolutions take up to 1.05 times as long.
    fn block_elements() -> usize {
        Machine::host().caches.l2.min(1 << 20) / size_of::<f32>()
    }
    /// Maximum number of tiles of a Winograd block. Each tile is a row of A in the matrix products,
    /// which reach 81 % and more of the peak from 16 rows on (table "Products with packed
    /// weights").
    const MAX_TILES: usize = 96;
    const MIN_TILES: usize = 24;
    /// Approximate number of elements to which the Winograd input transform is applied per
    /// microsecond: half of the number of elements that are copied per microsecond. Not measured.
    pub fn transformed_unit() -> usize {
        Machine::host().rates.copied / 2
    }

    /// Returns the number of tiles of a Winograd block, for transformed tiles of `elements` elements and `channels` channels.
    pub fn block_tiles(elements: usize, channels: usize) -> usize {
        (block_elements() / (elements * channels.max(1))).clamp(MIN_TILES, MAX_TILES)
    }

    /// Whether each thread computes whole Winograd blocks. It does so if there are enough blocks for all threads, or too
    /// little work to synchronise the threads twice. Otherwise, the threads transform the inputs together and then share the
    /// panels of each block. Not measured separately.
    pub fn by_blocks(blocks: usize, units: usize) -> bool {
        blocks >= pieces() || units < 2 * pieces()
    }
}

/// Rules for recurrent layers: sizes of blocks and pieces of work.
pub mod recurrent {
    /// Maximum number of rows (inputs of time steps) that are multiplied by the input weights at once. With few rows, the
    /// weights are read too often. With many rows, the results are evicted from the caches before the steps use them. Not
    /// measured separately; "Recurrent layers" measures the whole layer.
    pub const INPUT_BLOCK_ROWS: usize = 256;
    /// Maximum number of rows (sequences) of a piece. With so many rows, the sums of 64 columns take three quarters of the
    /// first-level cache. Not measured separately.
    pub fn piece_rows() -> usize {
        super::convolution::block_pixels()
    }
    /// Maximum value of [`piece_rows`] on any machine, by which the kernels' scratch memory is sized.
    pub const MAX_PIECE_ROWS: usize = super::convolution::MAX_BLOCK_PIXELS;
}

/// Rules for argmin and argmax of rows.
pub mod arg_reduce {
    /// Minimum number of columns for which argmin and argmax process one row at a time instead of several rows side by side.
    /// On Zen 5 with AVX-512, rows side by side take 0.57 ns per element; one row at a time takes 0.47 ns per element for 128
    /// elements and 0.23 ns for 1000.
    pub const MIN_ROW_AT_A_TIME_COLUMNS: usize = 96;
    /// Number of elements that are compared per microsecond, about as many as are copied.
    pub fn unit() -> usize {
        pliant_machine::Machine::host().rates.copied
    }
    /// Number of elements of a piece of work, which takes a thread about 4 microseconds.
    pub fn piece() -> usize {
        4 * unit()
    }
    /// Returns the number of parts into which each row is divided. It is one if there are enough rows for all threads.
    pub fn parts(rows: usize, columns: usize) -> usize {
        let pieces = super::partition::pieces();
        if rows >= pieces { 1 } else { (columns / piece()).clamp(1, pieces) }
    }
}

/// Rules for discrete Fourier transforms: sizes of pieces of work.
pub mod fft {
    /// The estimated number of operations of a Fourier transform of a row of `length` numbers:
    /// `length * (log2(length) + 4)`.
    pub fn row_operations(length: usize) -> usize {
        length.saturating_mul(length.max(1).ilog2() as usize + 4)
    }
    /// Number of operations of a Fourier transform that a thread computes per microsecond. On Zen
    /// 5, a row of 256 real numbers takes 0.7 us.
    pub fn unit() -> usize {
        pliant_machine::Machine::host().rates.copied
    }
    /// Number of operations of a piece of work, which takes a thread about 16 microseconds.
    pub fn piece() -> usize {
        16 * unit()
    }
}

/// Rules for resizing images: sizes of pieces of work.
pub mod resize {
    /// Number of elements that are copied per microsecond.
    pub fn unit() -> usize {
        pliant_machine::Machine::host().rates.copied
    }
    /// Number of elements of a piece of work, which takes a thread about as long as 16 microseconds
    /// of copying. Each piece also resizes the input rows that its first row shares with the
    /// previous piece.
    pub fn piece() -> usize {
        16 * unit()
    }
}

/// Rules for softmax: sizes of pieces of work.
pub mod softmax {
    /// Number of elements for which softmax is computed per microsecond: an exponential, a sum, two differences and a product
    /// take about as long as 32 multiply-adds. On Zen 5 with AVX-512, a thread takes 0.33 ns per element for rows of 256
    /// elements, and 1.3 ns for rows of 4.
    pub fn unit() -> usize {
        pliant_machine::Machine::host().rates.multiply_adds / 32
    }
    /// Number of elements of a piece of work, which takes a thread about 16 microseconds.
    pub fn piece() -> usize {
        16 * unit()
    }
}

/// Rules for sorting rows: choice of the algorithm, and sizes of pieces.
pub mod sort {
    use pliant_machine::Machine;

    /// The algorithm by which a row is sorted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Algorithm {
        /// A sorting network, which sorts several rows at a time.
        Network,
        /// Insertion of each element into a short sorted list, which contains the first elements in
        /// sorted order so far.
        Top,
        /// Collection of candidates for the requested elements, which are reduced to the best ones
        /// block by block, and then sorted.
        Candidates,
        /// Selection of the requested elements from the whole row, which are then sorted.
        Select,
    }

    /// Maximum number of elements that a sorting network sorts.
    pub const MAX_NETWORK: usize = 64;
    /// Maximum length of the sorted list of [`Algorithm::Top`]. A list of 16 elements takes 1.5
    /// times as long as [`Algorithm::Candidates`] for rows of 256 elements, and 0.8 times as long
    /// for rows of 4096.
    const MAX_TOP: usize = 8;

    /// Chooses the algorithm for rows of `columns` elements, if the first `wanted` elements in sorted order are requested.
    pub fn algorithm(columns: usize, wanted: usize) -> Algorithm {
        match wanted {
            _ if columns <= MAX_NETWORK => Algorithm::Network,
            _ if wanted > columns / 8 => Algorithm::Select,
            ..=MAX_TOP => Algorithm::Top,
            _ => Algorithm::Candidates,
        }
    }
    /// Number of elements that an algorithm processes per microsecond. Times per element on Zen 5
    /// with AVX-512: 4 to 6 ns for a sorting network of 4 to 32 elements, 1.3 ns for a sorted list
    /// of 5 of 256 elements, 2.9 ns for candidates of 32 of 256 elements, and 10 to 11 ns for a
    /// sort of 256 or 4096 elements.
    pub fn unit(algorithm: Algorithm) -> usize {
        let copied = Machine::host().rates.copied;
        let unit = match algorithm {
            Algorithm::Network => copied / 16,
            Algorithm::Top => copied / 4,
            Algorithm::Candidates => copied / 8,
            Algorithm::Select => copied / 48,
        };
        unit.max(1)
    }
    /// Number of elements of a piece of work, which takes a thread about 16 microseconds.
    pub fn piece(unit: usize) -> usize {
        16 * unit
    }
    /// Number of strided rows whose elements are copied together to contiguous rows before sorting: 256 KB of float32, which
    /// fit in a second-level cache. Not measured.
    pub const fn gathered_rows(columns: usize) -> usize {
        (1 << 16) / columns
    }
}

/// Rules for transposes: sizes of tiles and of pieces of work.
pub mod transpose {
    /// Number of lines of a long tile. A tile accesses one cache line of each line of one tensor,
    /// and this many adjacent elements of the other tensor. Time of long tiles on Zen 3 with one
    /// thread: 0.38 to 0.57 ms for channels last to first at 128 x 128 x 96 (square tiles: 0.90 to
    /// 1.2 ms), and 0.08 ms at 64 x 64 x 96 (square tiles: 0.11 ms). If the lines do not fit in
    /// their sets of the first-level cache, long tiles are slower: 1.0 ms instead of 0.5 ms at 512
    /// x 2048.
    pub const LONG_TILE_LINES: usize = 128;
    /// Number of rows and of columns of a square tile of a transpose.
    pub const SQUARE_TILE: usize = 32;

    /// Number of elements that are transposed per microsecond: a quarter of the number of elements that are copied per
    /// microsecond.
    pub fn unit() -> usize {
        pliant_machine::Machine::host().rates.copied / 4
    }
    /// Number of elements of a piece of work, which takes a thread about 16 microseconds.
    pub fn piece() -> usize {
        16 * unit()
    }
}
