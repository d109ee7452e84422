//! The vector types of x86-64: 512 bits with masks, and 256 bits with fused multiply-add.

use std::arch::x86_64::*;

use super::Lanes;

/// Defines a vector type. `mask` selects the first `count` lanes.
macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident = $vector:ty, [$elem:ty; $n:literal], $zero:ident, $splat:ident, $fma:ident, $add:ident,
     |$count:ident| $mask:expr, |$from:ident, $m:ident| $load_first:expr,
     |$to:ident, $m2:ident, $value:ident| $store_first:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(pub(super) $vector);

        impl Lanes for $name {
            type Elem = $elem;
            const N: usize = $n;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller guarantees the instructions; likewise below.
                unsafe { $name($zero()) }
            }

            #[inline(always)]
            unsafe fn splat(x: $elem) -> Self {
                // SAFETY: as above.
                unsafe { $name($splat(x)) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller guarantees readable elements.
                unsafe { $name(from.cast::<$vector>().read_unaligned()) }
            }

            #[inline(always)]
            unsafe fn load_first($from: *const $elem, $count: usize) -> Self {
                // SAFETY: as above; masked lanes are not accessed.
                unsafe {
                    let $m = $mask;
                    $name($load_first)
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller guarantees writable elements.
                unsafe { to.cast::<$vector>().write_unaligned(self.0) }
            }

            #[inline(always)]
            unsafe fn store_first(self, $to: *mut $elem, $count: usize) {
                // SAFETY: as above; masked lanes are not accessed.
                unsafe {
                    let $m2 = $mask;
                    let $value = self.0;
                    $store_first
                }
            }

            #[inline(always)]
            unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($fma(self.0, x.0, y.0)) }
            }

            #[inline(always)]
            unsafe fn add(self, x: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($add(self.0, x.0)) }
            }
        }
    };
}

lanes!(
    /// A vector of 16 float32 in 512 bits.
    F32x16 = __m512, [f32; 16], _mm512_setzero_ps, _mm512_set1_ps,
    _mm512_fmadd_ps, _mm512_add_ps,
    |count| ((1u32 << count) - 1) as __mmask16,
    |from, m| _mm512_maskz_loadu_ps(m, from),
    |to, m, value| _mm512_mask_storeu_ps(to, m, value)
);
lanes!(
    /// A vector of 8 float64 in 512 bits.
    F64x8 = __m512d, [f64; 8], _mm512_setzero_pd, _mm512_set1_pd,
    _mm512_fmadd_pd, _mm512_add_pd,
    |count| ((1u32 << count) - 1) as __mmask8,
    |from, m| _mm512_maskz_loadu_pd(m, from),
    |to, m, value| _mm512_mask_storeu_pd(to, m, value)
);
lanes!(
    /// A vector of 8 float32 in 256 bits.
    F32x8 = __m256, [f32; 8], _mm256_setzero_ps, _mm256_set1_ps,
    _mm256_fmadd_ps, _mm256_add_ps,
    |count| _mm256_cmpgt_epi32(
        _mm256_set1_epi32(count as i32),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
    ),
    |from, m| _mm256_maskload_ps(from, m),
    |to, m, value| _mm256_maskstore_ps(to, m, value)
);
lanes!(
    /// A vector of 4 float64 in 256 bits.
    F64x4 = __m256d, [f64; 4], _mm256_setzero_pd, _mm256_set1_pd,
    _mm256_fmadd_pd, _mm256_add_pd,
    |count| _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)),
    |from, m| _mm256_maskload_pd(from, m),
    |to, m, value| _mm256_maskstore_pd(to, m, value)
);
