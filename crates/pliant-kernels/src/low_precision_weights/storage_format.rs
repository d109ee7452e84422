//! The storage formats of low-precision weights.

use crate::simd::widen_to_float32::Widen;

/// A storage format of low-precision weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// int8 weights: one per byte.
    Bytes,
    /// uint4 weights: adjacent rows share bytes, two values per byte.
    Nibbles,
    /// bfloat16 weights: adjacent rows share 32-bit words, two values per word.
    BFloat16,
}

impl Format {
    /// Returns the size in bytes of a panel of `k` rows and `width` columns in this format.
    pub fn panel_bytes(self, k: usize, width: usize) -> usize {
        match self {
            Format::Bytes => k * width,
            Format::Nibbles => k.div_ceil(2) * width,
            Format::BFloat16 => k.div_ceil(2) * width * 4,
        }
    }
}

/// A storage format as a type parameter, so that the compiler specializes loops for each format.
pub(super) trait StorageFormat {
    /// Returns the byte offset, within a panel, of the elements of a column in rows `k` and `k + 1`, which are stored together. `k`
    /// is even.
    fn offset(k: usize, column: usize, width: usize) -> usize;

    /// Loads a vector from each of two adjacent rows, and converts both to float32. If `both` is
    /// false, only the first row exists, and the second vector is arbitrary.
    ///
    /// # Safety
    /// The machine has the instructions of `L`. The bytes of the first row, and if `both` is true
    /// also the bytes of the second row, are readable.
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
