//! Products in tile registers (AMX of x86-64): registers of 16 rows of 64 bytes, and instructions that multiply one by another
//! and add the products to a third.
//!
//! Recipe: a block of C of up to 32 x 32 sums, or of up to 16 x 64, takes four registers; each step reads 64 bytes of k of
//! these rows of A, and as much of these columns of B, and starts four instructions of 16 K multiply-adds of bytes, or 8 K of
//! bfloat16. A is copied first, so that its rows begin lines of the caches (`quantized`, `narrow`). B is packed in words: four
//! rows of k of bytes, or two of bfloat16, are neighbours, so that panels packed for other instructions are read where they
//! lie. What a last step lacks comes from copies that end in zeros.
//!
//! Measured from the first-level cache: 8 to 10 times the peak of float32 with bfloat16, 14 to 16 times with bytes.
//!
//! The registers belong to a thread that asks for them ([`Tiles`]); a process asks the system for leave first
//! ([`is_available`]).
//!
//! | module | owns |
//! |---|---|
//! | `edge` | what a last step lacks of B, and the sums of a block |
//! | `kernels` | the instructions |
//! | `registers` | the registers of a thread |

mod edge;
mod kernels;
mod registers;

use std::sync::OnceLock;

use crate::product::rows::TILE_ROWS;
pub use edge::Edge;
pub use kernels::{Block, Stretch};
pub use registers::Tiles;

/// Bytes of a row of a register, which are words of 32 bits of 16 columns.
pub const LINE: usize = 64;
/// Rows of a register.
const ROWS: usize = TILE_ROWS / 2;
/// Columns of a register.
pub const COLUMNS: usize = 16;
/// Columns of a block at most where it has no more than 16 rows; else half of them.
pub const BLOCK_COLUMNS: usize = 4 * COLUMNS;

/// First column and width of each block of so many columns of at most so many rows.
pub fn strips(columns: usize, rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let most = if rows > ROWS { BLOCK_COLUMNS / 2 } else { BLOCK_COLUMNS };
    let mut next = 0;
    std::iter::from_fn(move || {
        let (at, left) = (next, columns.saturating_sub(next).div_ceil(COLUMNS));
        // One register, two or four.
        let width = COLUMNS << left.checked_ilog2()?;
        next += width.min(most);
        Some((at, width.min(most)))
    })
}

/// Whether the machine has tile registers for bytes and bfloat16, and the system lets this process use them. The first call
/// asks for leave, which holds for all threads; a system that was not asked stops a process at the first use.
pub fn is_available() -> bool {
    static LEAVE: OnceLock<bool> = OnceLock::new();
    *LEAVE.get_or_init(|| has_instructions() && asked_for_leave())
}

/// Whether the processor has the instructions, and those that rows are made ready with.
fn has_instructions() -> bool {
    // Leaf 7 exists on every processor with AVX-512.
    let edx = std::arch::x86_64::__cpuid_count(7, 0).edx;
    let (bfloat16, registers, bytes) = (edx >> 22 & 1, edx >> 24 & 1, edx >> 25 & 1);
    bfloat16 & registers & bytes == 1
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && std::arch::is_x86_feature_detected!("avx512bf16")
}

/// Asks Linux to save the registers of this process when it switches threads.
#[cfg(target_os = "linux")]
fn asked_for_leave() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes numbers alone. It fails where the system does not know it, or threads have small signal stacks.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn asked_for_leave() -> bool {
    false
}

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// bfloat16, with sums in float32. Numbers too small for a full fraction count as zeros, in operands and sums.
    BFloat16,
    /// uint8 by int8, with sums in int32.
    Unsigned,
    /// int8 by int8, with sums in int32.
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
