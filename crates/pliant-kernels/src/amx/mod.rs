//! Matrix products in the tile registers of x86-64 (AMX). A register has 16 rows of 64 bytes.
//! Instructions multiply two registers and add the product to a third.
//!
//! Method: a block of C of up to 32 x 32 sums, or of up to 16 x 64, takes four registers. Each step
//! reads 64 bytes along `k` from each row of A and each column of B, and issues four instructions
//! of 16 K multiply-adds of 8-bit integers, or 8 K multiply-adds of bfloat16. A is copied first, so
//! that its rows start at cache lines (`quantized`, `low_precision_weights`). B is packed in 32-bit
//! words, each with four adjacent values of k of 8-bit integers, or two of bfloat16. This is the
//! same packing as for vectors, so panels are read in place. An incomplete last step reads copies
//! that are padded with zeros.
//!
//! With operands in the first-level cache, the measured peak is 8 to 10 times the peak of float32
//! for bfloat16, and 14 to 16 times for 8-bit integers.
//!
//! A thread configures its registers before use, and releases them ([`TileRegisters`]). A process
//! must first request permission from the operating system
//! ([`pliant_machine::isa::Isa::is_available`]).
//!
//! | module | owns |
//! |---|---|
//! | `edge_tile_buffers` | buffers for the padded last step of B and the sums of a block |
//! | `assembly_kernels` | the instructions that multiply a block |
//! | `tile_registers` | the tile registers of a thread |

mod assembly_kernels;
mod edge_tile_buffers;
mod tile_registers;

use crate::matmul::row_tiling::TILE_ROWS;
pub use assembly_kernels::{Block, KRange};
pub use edge_tile_buffers::Edge;
pub use tile_registers::TileRegisters;

/// Number of bytes of a row of a tile register. A row has 16 columns of one 32-bit word each.
pub const LINE: usize = 64;
/// Number of rows of a tile register.
const ROWS: usize = TILE_ROWS / 2;
/// Number of columns of a tile register, in 32-bit words.
pub const COLUMNS: usize = 16;
/// Maximum number of columns of a block. Only blocks of at most 16 rows may have so many columns;
/// blocks with more rows have at most half as many.
pub const BLOCK_COLUMNS: usize = 4 * COLUMNS;

/// Divides `columns` columns of B into strips, each of which is multiplied by blocks of up to `rows` rows. A strip has at most
/// [`BLOCK_COLUMNS`] columns if `rows` is at most 16, otherwise at most half as many. Returns the first column and the width of
/// each strip.
pub fn strips(columns: usize, rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let max_width = if rows > ROWS { BLOCK_COLUMNS / 2 } else { BLOCK_COLUMNS };
    let mut next = 0;
    std::iter::from_fn(move || {
        let (at, registers) = (next, columns.saturating_sub(next).div_ceil(COLUMNS));
        // One, two or four registers.
        let width = COLUMNS << registers.checked_ilog2()?;
        next += width.min(max_width);
        Some((at, width.min(max_width)))
    })
}

/// The element types of the operands of a matrix product in tile registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Operands of type bfloat16, with sums in float32. Subnormal operands and sums count as zeros.
    BFloat16,
    /// A of type uint8 and B of type int8, with sums in int32.
    Unsigned,
    /// A and B of type int8, with sums in int32.
    Signed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_the_columns() {
        let all = |columns, rows| strips(columns, rows).collect::<Vec<_>>();
        assert_eq!(all(0, 1), []);
        assert_eq!(all(1, 1), [(0, 16)]);
        assert_eq!(all(64, 16), [(0, 64)]);
        assert_eq!(all(64, 17), [(0, 32), (32, 32)]);
        assert_eq!(all(48, 16), [(0, 32), (32, 16)]);
        assert_eq!(all(33, 32), [(0, 32), (32, 16)]);
    }
}
