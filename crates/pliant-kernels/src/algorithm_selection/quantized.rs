//! Rules for matrix products and depthwise convolutions of 8-bit integers.

/// Maximum inner size `k` of an 8-bit matrix product for which tile registers (AMX) are used. A copy of 32 rows of A then takes 2.1
/// MB, about the second-level cache of machines with tile registers. This value was not measured, because such deep matmuls are
/// rare.
pub const MAX_DEPTH: usize = 64 * 1024;
/// Estimated throughput of 8-bit matmuls with vectors, relative to float32, from which the size of the pieces of work is computed.
/// The measured ratio is 2.0 to 2.5, the theoretical maximum 4 (table "8-bit integers").
pub const VECTOR_SPEEDUP: usize = 4;
/// Estimated throughput of 8-bit matmuls with tile registers, relative to float32, from which the size of the pieces of work is
/// computed. The measured ratio is 2.7 to 7.1, and at most 14 to 16 (table "8-bit integers").
pub const TILE_SPEEDUP: usize = 16;
/// Maximum size in bytes of the copies of A for tile registers: an eighth of the second-level
/// cache. A single block of 32 rows may be larger. This value was not measured separately. The
/// whole kernel reaches 646 % of the float32 peak at 512 x 512 x 512 and 711 % at 1024 x 1024 x
/// 1024 (table "8-bit integers").
pub fn copied_bytes() -> usize {
    pliant_machine::Machine::host().l2_share(2)
}
/// Maximum number of blocks of 32 rows of A that are copied at once for tile registers, even if the
/// blocks are small. This value was not measured.
pub const MAX_COPIED_BLOCKS: usize = 8;
/// Approximate number of multiplications of depthwise 8-bit convolutions per microsecond: half as
/// many as for float32. This value was not measured.
pub fn depthwise_unit() -> usize {
    pliant_machine::Machine::host().rates.depthwise / 2
}

/// Returns the numbers of pieces into which the results and the panels of filters of a convolution
/// are divided. The convolution has `rows` results and `panels` panels, and takes about `units`
/// microseconds. Results are divided first, because every division of the panels repeats the im2col
/// copy of the inputs. The rule was not measured.
pub fn piece_grid(rows: usize, panels: usize, units: usize) -> (usize, usize) {
    use super::partition::{MAX_PIECES, MIN_PIECE_UNITS, pieces};
    use crate::matmul::row_tiling::TILE_ROWS;
    let wanted = units.clamp(1, MAX_PIECES);
    let max_pieces = pieces();
    let row_pieces =
        wanted.min(max_pieces.max(wanted / MIN_PIECE_UNITS)).min(rows.div_ceil(TILE_ROWS)).max(1);
    let panel_pieces = max_pieces.div_ceil(row_pieces).min(wanted / row_pieces).min(panels).max(1);
    (row_pieces, if row_pieces >= max_pieces { 1 } else { panel_pieces })
}
