//! Detection of reads of uninitialized memory. Builds with debug assertions fill memory that must be written before it
//! is read with a pattern (poison) that is NaN in every float type and an unusual value in every integer type. These
//! builds also check that no result contains the pattern.

use crate::Tensor;

/// The byte pattern that is repeated in poisoned memory. It is NaN as bfloat16, float16, float32 and float64. As int8, its bytes
/// are -11 and -1.
pub const POISON: [u8; 2] = 0xFFF5u16.to_le_bytes();

/// The byte pattern [`POISON`] repeated four times, as a 64-bit word.
pub const POISON_WORD: u64 = {
    let [a, b] = POISON;
    u64::from_le_bytes([a, b, a, b, a, b, a, b])
};

/// Whether this build fills memory with the byte pattern [`POISON`] before it is written for the first time: true for builds with
/// debug assertions.
pub const POISONS: bool = cfg!(debug_assertions);

/// Fills memory with the byte pattern [`POISON`] in builds with debug assertions, so that reads of uninitialized memory are
/// detected.
///
/// # Safety
/// The bytes must be writable.
#[inline]
pub unsafe fn poison(start: *mut u8, bytes: usize) {
    if POISONS {
        let words = bytes / 8;
        for i in 0..words {
            // SAFETY: guaranteed by the caller.
            unsafe { start.cast::<u64>().add(i).write_unaligned(POISON_WORD) };
        }
        for i in words * 8..bytes {
            // SAFETY: guaranteed by the caller.
            unsafe { start.add(i).write(POISON[i % 2]) };
        }
    }
}

impl Tensor {
    /// Whether the tensor contains poison: the bytes of [`POISON`], repeated. For elements of four or more bytes, one element that
    /// consists of poison is enough. For bools, one byte that is equal to one of the two bytes of [`POISON`] is enough, because no
    /// valid bool has such a byte. For other elements of one or two bytes, eight adjacent bytes must be poison, because a single
    /// element can have these bytes by chance.
    ///
    /// Returns false for tensors that are not contiguous. A program that computes the pattern deliberately, such as -655371 as
    /// int32, causes a false alarm in builds with debug assertions.
    pub fn contains_poison(&self) -> bool {
        let Ok(bytes) = self.as_bytes() else { return false };
        let word = POISON_WORD.to_le_bytes();
        if self.dtype().is_bool() {
            return bytes.iter().any(|b| POISON.contains(b));
        }
        let unit = if self.dtype().size() < 4 { 8 } else { self.dtype().size().min(8) };
        bytes.chunks_exact(unit).any(|chunk| chunk == &word[..unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Storage};

    fn poisoned(shape: &[i64], dtype: DType) -> Tensor {
        let tensor = Tensor::zeros(shape, dtype).expect("a small tensor");
        // SAFETY: the tensor has that many bytes.
        unsafe { poison(tensor.data_ptr(), tensor.nbytes()) };
        tensor
    }

    #[test]
    fn poison_is_found_in_tensors_of_every_type() {
        for dtype in DType::all() {
            let zeros = Tensor::zeros(&[16], dtype).expect("a small tensor");
            assert!(!zeros.contains_poison(), "{dtype}");
            assert_eq!(poisoned(&[16], dtype).contains_poison(), POISONS, "{dtype}");
        }
    }

    #[test]
    fn one_poisoned_element_is_found() {
        for dtype in [DType::Float32, DType::Float64, DType::Int32, DType::Int64, DType::Bool] {
            let storage = Storage::zeroed(9 * dtype.size()).expect("a small storage");
            let last = 8 * dtype.size() as i64;
            // SAFETY: the storage has nine elements.
            unsafe { poison(storage.as_ptr().offset(last as isize), dtype.size()) };
            let tensor = Tensor::from_storage(storage, 0, &[9], dtype).expect("it fits");
            assert_eq!(tensor.contains_poison(), POISONS, "{dtype}");
        }
    }

    #[test]
    fn all_bytes_are_poisoned() {
        for bytes in 0..20 {
            let mut memory = [0u8; 20];
            // SAFETY: the array has that many bytes.
            unsafe { poison(memory.as_mut_ptr(), bytes) };
            let written = memory.iter().zip(POISON.iter().cycle()).take_while(|(a, b)| a == b);
            assert_eq!(written.count(), if POISONS { bytes } else { 0 });
        }
    }
}
