//! Poison for uninitialised memory: with the feature `poison`, memory that must be written before it is read is filled
//! with bytes that are NaN in every float type and unusual values in every integer type, so that tests notice reads.

/// Repeated, this is NaN as bfloat16, float16, float32 and float64; as int8, its bytes are -11 and -1.
pub const POISON: [u8; 2] = 0xFFF5u16.to_le_bytes();

/// Whether this build poisons memory.
pub const POISONS: bool = cfg!(feature = "poison");

/// Fills memory that must be written before it is read with poison, if the feature is enabled.
///
/// # Safety
/// The bytes are writable.
#[inline]
pub unsafe fn poison(start: *mut u8, bytes: usize) {
    if POISONS {
        for i in 0..bytes {
            // SAFETY: the caller's promise.
            unsafe { start.add(i).write(POISON[i % 2]) };
        }
    }
}
