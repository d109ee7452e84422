//! Conversion of 8-bit, 4-bit and bfloat16 elements to vectors of float32.

use super::portable_vectors::Array;
use super::{Lanes, MathLanes};

/// Loads 8-bit, 4-bit and bfloat16 elements, and converts them to vectors of float32.
///
/// # Safety of the methods
/// The machine has the instructions of this vector type; the loaded bytes are readable.
#[expect(
    clippy::missing_safety_doc,
    reason = "the safety condition is the same for all methods, and the trait states it"
)]
pub trait Widen: MathLanes<Elem = f32> {
    /// Loads and converts int8 elements, one for each of the `N` lanes.
    unsafe fn bytes(from: *const u8) -> Self;
    /// Loads one byte for each of the `N` lanes. Converts their lower four bits to one vector and their upper four bits
    /// to another, as unsigned integers.
    unsafe fn nibbles(from: *const u8) -> [Self; 2];
    /// Loads one 32-bit word for each of the `N` lanes. Converts their lower 16 bits to one vector and their upper 16
    /// bits to another, as bfloat16.
    unsafe fn halves(from: *const u8) -> [Self; 2];
}

/// Implements [`Widen`] for a vector type element by element; the compiler vectorizes the loops.
macro_rules! plain {
    ($name:ty, $n:literal) => {
        impl Widen for $name {
            #[inline(always)]
            unsafe fn bytes(from: *const u8) -> Self {
                // SAFETY: guaranteed by the caller; likewise below.
                unsafe {
                    let bytes = from.cast::<[i8; $n]>().read_unaligned();
                    Self::load(bytes.map(f32::from).as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn nibbles(from: *const u8) -> [Self; 2] {
                // SAFETY: as above.
                unsafe {
                    let bytes = from.cast::<[u8; $n]>().read_unaligned();
                    [
                        Self::load(bytes.map(|b| f32::from(b & 15)).as_ptr()),
                        Self::load(bytes.map(|b| f32::from(b >> 4)).as_ptr()),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn halves(from: *const u8) -> [Self; 2] {
                // SAFETY: as above.
                unsafe {
                    let words = from.cast::<[[u8; 4]; $n]>().read_unaligned();
                    let words = words.map(u32::from_le_bytes);
                    [
                        Self::load(words.map(|w| f32::from_bits(w << 16)).as_ptr()),
                        Self::load(words.map(|w| f32::from_bits(w & 0xffff_0000)).as_ptr()),
                    ]
                }
            }
        }
    };
}

plain!(Array<f32, 4>, 4);
#[cfg(target_arch = "aarch64")]
plain!(super::neon_vectors::F32x4, 4);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86_vectors::{F32x8, F32x16};
    use super::Widen;

    impl Widen for F32x16 {
        #[inline(always)]
        unsafe fn bytes(from: *const u8) -> Self {
            // SAFETY: guaranteed by the caller; likewise below.
            unsafe {
                let bytes = _mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()));
                F32x16(_mm512_cvtepi32_ps(bytes))
            }
        }

        #[inline(always)]
        unsafe fn nibbles(from: *const u8) -> [Self; 2] {
            // SAFETY: as above.
            unsafe {
                let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
                let table = _mm512_setr_ps(
                    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0,
                    15.0,
                );
                // The table look-up uses only the lower four bits as index. It runs on another port than the
                // conversion.
                let low = _mm512_permutexvar_ps(bytes, table);
                let high = _mm512_srli_epi32::<4>(bytes);
                [F32x16(low), F32x16(_mm512_cvtepi32_ps(high))]
            }
        }

        #[inline(always)]
        unsafe fn halves(from: *const u8) -> [Self; 2] {
            // SAFETY: as above.
            unsafe {
                let words = _mm512_loadu_si512(from.cast());
                let high = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000_u32 as i32));
                let low = _mm512_slli_epi32::<16>(words);
                [F32x16(_mm512_castsi512_ps(low)), F32x16(_mm512_castsi512_ps(high))]
            }
        }
    }

    impl Widen for F32x8 {
        #[inline(always)]
        unsafe fn bytes(from: *const u8) -> Self {
            // SAFETY: guaranteed by the caller; likewise below.
            unsafe {
                let bytes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()));
                F32x8(_mm256_cvtepi32_ps(bytes))
            }
        }

        #[inline(always)]
        unsafe fn nibbles(from: *const u8) -> [Self; 2] {
            // SAFETY: as above.
            unsafe {
                let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
                let low = _mm256_and_si256(bytes, _mm256_set1_epi32(15));
                let high = _mm256_srli_epi32::<4>(bytes);
                [F32x8(_mm256_cvtepi32_ps(low)), F32x8(_mm256_cvtepi32_ps(high))]
            }
        }

        #[inline(always)]
        unsafe fn halves(from: *const u8) -> [Self; 2] {
            // SAFETY: as above.
            unsafe {
                let words = _mm256_loadu_si256(from.cast());
                let high = _mm256_and_si256(words, _mm256_set1_epi32(0xffff_0000_u32 as i32));
                let low = _mm256_slli_epi32::<16>(words);
                [F32x8(_mm256_castsi256_ps(low)), F32x8(_mm256_castsi256_ps(high))]
            }
        }
    }
}
