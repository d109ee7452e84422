//! The storage formats of low-precision weights.

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

/// A storage format as a type, for generic functions.
pub(super) trait StorageFormat {
    /// The offset in bytes of a column of the pair of rows that starts at row `k`, which is even.
    fn offset(k: usize, column: usize, width: usize) -> usize;

    /// Loads and converts a vector of each of two rows. If not `both`, the second vector is arbitrary.
    ///
    /// # Safety
    /// The machine has the instructions. The bytes of the first row, and of the second if `both`, are readable.
    unsafe fn pair<L: Widen>(from: *const u8, width: usize, both: bool) -> [L; 2];
}

pub(super) struct Bytes;
pub(super) struct Nibbles;
pub(super) struct BFloat16;

impl StorageFormat for Bytes {
    #[inline(always)]
    fn offset(k: usize, column: usize, width: usize) -> usize {
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

impl StorageFormat for Nibbles {
    #[inline(always)]
    fn offset(k: usize, column: usize, width: usize) -> usize {
        k / 2 * width + column
    }

    #[inline(always)]
    unsafe fn pair<L: Widen>(from: *const u8, _width: usize, _both: bool) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { L::nibbles(from) }
    }
}

impl StorageFormat for BFloat16 {
    #[inline(always)]
    fn offset(k: usize, column: usize, width: usize) -> usize {
        (k / 2 * width + column) * 4
    }

    #[inline(always)]
    unsafe fn pair<L: Widen>(from: *const u8, _width: usize, _both: bool) -> [L; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { L::halves(from) }
    }
}
