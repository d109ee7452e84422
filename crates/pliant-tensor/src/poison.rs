//! Poison for uninitialised memory: builds with debug assertions fill memory that must be written before it is read with
//! bytes that are NaN in every float type and unusual values in every integer type, and check that no result holds them.

use crate::Tensor;

/// Repeated, this is NaN as bfloat16, float16, float32 and float64; as int8, its bytes are -11 and -1.
pub const POISON: [u8; 2] = 0xFFF5u16.to_le_bytes();

/// [`POISON`] repeated, as the bytes of an integer.
pub const POISON_WORD: u64 = {
    let [a, b] = POISON;
    u64::from_le_bytes([a, b, a, b, a, b, a, b])
};

/// Whether this build poisons memory.
pub const POISONS: bool = cfg!(debug_assertions);

/// Fills memory that must be written before it is read with poison, in builds that poison memory.
///
/// # Safety
/// The bytes are writable.
#[inline]
pub unsafe fn poison(start: *mut u8, bytes: usize) {
    if POISONS {
        let words = bytes / 8;
        for i in 0..words {
            // SAFETY: the caller's promise.
            unsafe { start.cast::<u64>().add(i).write_unaligned(POISON_WORD) };
        }
        for i in words * 8..bytes {
            // SAFETY: the caller's promise.
            unsafe { start.add(i).write(POISON[i % 2]) };
        }
    }
}

impl Tensor {
    /// Whether an element is poison. An element of four or more bytes is if all its bytes match the pattern. Smaller ones can
    /// match by chance, so eight bytes in a row must match; a bool is poison if it is one of the two bytes.
    ///
    /// Only compact tensors are searched; other tensors return false. A program that computes the pattern on purpose, such
    /// as -655371 as int32, is a false alarm of builds with debug assertions.
    pub fn holds_poison(&self) -> bool {
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
        // SAFETY: the tensor has these bytes.
        unsafe { poison(tensor.data_ptr(), tensor.nbytes()) };
        tensor
    }

    #[test]
    fn poison_is_found_in_tensors_of_every_type() {
        for dtype in DType::all() {
            let zeros = Tensor::zeros(&[16], dtype).expect("a small tensor");
            assert!(!zeros.holds_poison(), "{dtype}");
            assert_eq!(poisoned(&[16], dtype).holds_poison(), POISONS, "{dtype}");
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
            assert_eq!(tensor.holds_poison(), POISONS, "{dtype}");
        }
    }

    #[test]
    fn all_bytes_are_poisoned() {
        for bytes in 0..20 {
            let mut memory = [0u8; 20];
            // SAFETY: the array has these bytes.
            unsafe { poison(memory.as_mut_ptr(), bytes) };
            let written = memory.iter().zip(POISON.iter().cycle()).take_while(|(a, b)| a == b);
            assert_eq!(written.count(), if POISONS { bytes } else { 0 });
        }
    }
}
