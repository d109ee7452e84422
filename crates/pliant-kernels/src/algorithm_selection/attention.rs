//! Rules for attention: packing, and sizes of blocks of queries and keys.

use pliant_machine::Machine;

use crate::matmul::micro_kernel::ROWS as SLIVER;

/// Maximum number of query rows for which scores are computed as dot products with keys that are
/// read in place, without packing the keys. Time of packing relative to reading in place, with 512
/// keys, 12 heads of size 64 and one thread: 1.25 for 1 row, 1.1 for 2, 0.9 for 4. A limit of 3 may
/// be better, but was not measured.
const FEW_ROWS: usize = 4;
/// Maximum number of keys for which a block of rows keeps all its scores and is processed in one
/// pass. With more keys, the block is processed in blocks of keys with a running maximum and sum,
/// as in FlashAttention.
///
/// On Emerald Rapids, the limit is 4096 keys; the scores of 24 rows then take 384 KB. Without the
/// limit, 128 rows by 8192 keys take 1.6 times as long. Compared with a limit of 1024 (one thread,
/// heads of size 64, percent of the peak): 56 to 58 % instead of 48 to 49 % at 1536, 2048 and 4096
/// keys, and 63 % instead of 49 % for 2048 causal keys. Two threads are similar, except 58 %
/// instead of 54 % at 4096 keys.
pub fn full_keys() -> usize {
    score_elements() / MIN_FULL_ROWS
}

/// Maximum number of attention scores that a block of query rows keeps in memory at once: three eighths of the second-level cache,
/// at most 384 KB. With 192 KB on Zen 5, 512 rows by 8192 keys take 1.05 times as long.
fn score_elements() -> usize {
    Machine::host().l2_share(6).min(384 << 10) / size_of::<f32>()
}

/// Number of keys in a block, if the keys are processed in several blocks with a running maximum and sum. The number is a multiple
/// of every panel width. A packed block of keys of size 32 takes 64 KB. This value was not measured separately.
const KEY_BLOCK: usize = 512;
/// Minimum number of query rows of a block that keeps its scores for all keys in memory at once ([`full_keys`]), instead of using a
/// running sum. This value was not measured separately.
const MIN_FULL_ROWS: usize = 24;
/// Maximum number of query rows of a block that keeps its scores for all keys in memory at once ([`full_keys`]), instead of using a
/// running sum. Blocks of 96 rows take 1.02 times as long at 128 keys, 1.09 times at 512 and 1.14 times at 1024 (one thread).
const MAX_FULL_ROWS: usize = 48;
/// Maximum number of query rows of any block. Blocks that keep their scores for all keys in memory have fewer rows; only blocks
/// that process the keys in parts, with a running sum, may have more. This value was not measured separately.
pub const MAX_ROWS: usize = 96;
/// Minimum number of keys for which non-contiguous values are packed. 512 queries by 512 keys of
/// size 64 took 6.6 ms with packing and 10.7 ms in place, where every sliver (group of query rows)
/// accessed one page for each value (table "Attention"). Time of packing relative to reading in
/// place, with one thread: 1.2 to 1.3 for 1 to 4 rows of 512 keys, and 1.06 to 1.09 for 24 rows of
/// 128 and 512 keys.
const MIN_PACKED_KEYS: usize = 128;
const MIN_PACKED_ROWS: usize = 24;
/// Minimum number of query rows of a piece of work, if the rows of a head are divided among
/// threads. Each piece packs the keys again. This value was not measured separately.
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

/// Returns the maximum number of query rows and the maximum number of keys of a block. A block
/// contains all keys, or only `KEY_BLOCK` keys if softmax uses a running maximum and sum.
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
