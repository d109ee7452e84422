//! Rules for transposes: sizes of tiles and of pieces of work.

/// Number of lines of a long tile. A line is a run of adjacent elements of one of the two tensors.
/// The tile accesses one cache line of each of its lines, and as many adjacent elements of the
/// other tensor as it has lines. Time of long tiles on Zen 3 with one thread: 0.38 to 0.57 ms for
/// channels last to first at 128 x 128 x 96 (square tiles: 0.90 to 1.2 ms), and 0.08 ms at 64 x 64
/// x 96 (square tiles: 0.11 ms). If the lines do not fit in their sets of the first-level cache,
/// long tiles are slower: 1.0 ms instead of 0.5 ms at 512 x 2048.
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
