//! The storage formats of a right operand.

use crate::lanes::widen::Widen;

/// A storage format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// int8.
    Bytes,
    /// Unsigned 4-bit integers, two rows per byte.
    Nibbles,
    /// bfloat16, two rows per word.
    BFloat16,
}

impl Format {
    /// Bytes of a panel of `k` rows.
    pub fn panel_bytes(self, k: usize, width: usize) -> usize {
        match self {
            Format::Bytes => k * width,
            Format::Nibbles => k.div_ceil(2) * width,
            Format::BFloat16 => k.div_ceil(2) * width * 4,
        }
    }
}

/// A format as a type.
pub(super) trait Stored {
    /// The offset of a column of the pair of rows that starts at an even row.
    fn place(k: usize, column: usize, width: usize) -> usize;

    /// A vector from each of two rows; the second is unused if there is only one.
    ///
    /// # Safety
    /// The machine has the instructions; the bytes of the pair are readable, for both rows or only
    /// the first.
    unsafe fn pair<L: Widen>(from: *const u8, width: usize, both: bool) -> [L; 2];
}

pub(super) struct Bytes;
pub(super) struct Nibbles;
pub(super) struct BFloat16;

impl Stored for Bytes {
    #[inline(always)]
    fn place(k: usize, column: usize, width: usize) -> usize {
        k * width + column
    }

    #[inline(always)]
    unsafe fn pair<L: Widen>(from: *const u8, width: usize, both: bool) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let first = L::bytes(from);
            [first, if both { L::bytes(from.add(width)) } else { first }]
        }
    }
}

impl Stored for Nibbles {
    #[inline(always)]
    fn place(k: usize, column: usize, width: usize) -> usize {
        k / 2 * width + column
    }

    #[inline(always)]
    unsafe fn pair<L: Widen>(from: *const u8, _width: usize, _both: bool) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { L::nibbles(from) }
    }
}

impl Stored for BFloat16 {
    #[inline(always)]
    fn place(k: usize, column: usize, width: usize) -> usize {
        (k / 2 * width + column) * 4
    }

    #[inline(always)]
    unsafe fn pair<L: Widen>(from: *const u8, _width: usize, _both: bool) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { L::halves(from) }
    }
}
