//! Rules for transposes: sizes of tiles and of pieces of work.

/// The length of a long tile of a transpose, in elements; the width of the tile is one cache line.
/// A line is a run of adjacent elements of the source or of the destination. A long tile accesses a
/// few lines of one tensor over its whole length, and one cache line of each of `LONG_TILE_LINES`
/// lines of the other tensor. Time of long tiles on Zen 3 with one thread: 0.38 to 0.57 ms for
/// channels last to first at 128 x 128 x 96 (square tiles: 0.90 to 1.2 ms), and 0.08 ms at 64 x 64
/// x 96 (square tiles: 0.11 ms). If these cache lines do not fit in their sets of the first-level
/// cache, long tiles are slower: 1.0 ms instead of 0.5 ms at 512 x 2048.
pub const LONG_TILE_LINES: usize = 128;
/// Number of rows and of columns of a square tile of a transpose, for shapes for which long tiles
/// are slower.
pub const SQUARE_TILE: usize = 32;

/// Number of elements that a thread transposes per microsecond: a quarter of the number of elements that are copied per
/// microsecond.
pub fn unit() -> usize {
    pliant_machine::Machine::host().rates.copied / 4
}
/// Number of elements that a thread transposes as one piece of work, which takes about 16 microseconds.
pub fn piece() -> usize {
    16 * unit()
}
