//! The vector types of AArch64: 128 bits, with fused multiply-add.

use std::arch::aarch64::*;

use super::Lanes;

macro_rules! lanes {
    ($(#[$doc:meta])* $name:ident = $vector:ty, [$elem:ty; $n:literal], $splat:ident, $load:ident, $store:ident, $fma:ident,
     $add:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(pub(super) $vector);

        impl Lanes for $name {
            type Elem = $elem;
            const N: usize = $n;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: every AArch64 machine has these instructions; likewise below.
                unsafe { $name($splat(0.0)) }
            }

            #[inline(always)]
            unsafe fn splat(x: $elem) -> Self {
                // SAFETY: as above.
                unsafe { $name($splat(x)) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller guarantees readable elements.
                unsafe { $name($load(from)) }
            }

            #[inline(always)]
            unsafe fn load_first(from: *const $elem, count: usize) -> Self {
                let mut elements = [0.0; $n];
                // SAFETY: the caller guarantees `count` readable elements; the array has room for them.
                unsafe {
                    std::ptr::copy_nonoverlapping(from, elements.as_mut_ptr(), count);
                    Self::load(elements.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller guarantees writable elements.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            unsafe fn store_first(self, to: *mut $elem, count: usize) {
                let mut elements = [0.0; $n];
                // SAFETY: the caller guarantees `count` writable elements; the array has as many.
                unsafe {
                    self.store(elements.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(elements.as_ptr(), to, count);
                }
            }

            #[inline(always)]
            unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($fma(y.0, self.0, x.0)) }
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
    /// A vector of 4 float32 in 128 bits.
    F32x4 = float32x4_t, [f32; 4], vdupq_n_f32, vld1q_f32, vst1q_f32, vfmaq_f32, vaddq_f32
);
lanes!(
    /// A vector of 2 float64 in 128 bits.
    F64x2 = float64x2_t, [f64; 2], vdupq_n_f64, vld1q_f64, vst1q_f64, vfmaq_f64, vaddq_f64
);
