//! Horizontal sum and maximum of the lanes of a float32 vector.

use super::Lanes;

/// Maximum number of float32 lanes of a vector.
const WIDEST: usize = 16;

/// Vectors with a horizontal sum and maximum over the lanes. The order of summation depends on the
/// instruction set.
pub trait Reduce: Lanes<Elem = f32> {
    /// Returns the sum of the lanes.
    ///
    /// # Safety
    /// The machine has the instructions of this vector type.
    #[inline(always)]
    unsafe fn sum_lanes(self) -> f32 {
        let mut lanes = [0f32; WIDEST];
        // SAFETY: the array is as wide as any vector.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut half = Self::N / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
            half /= 2;
        }
        lanes[0]
    }

    /// Returns the maximum of the lanes; unspecified if a lane is NaN.
    ///
    /// # Safety
    /// The conditions of [`Reduce::sum_lanes`] hold.
    #[inline(always)]
    unsafe fn largest_lane(self) -> f32 {
        let mut lanes = [0f32; WIDEST];
        // SAFETY: as above.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut half = Self::N / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] = if lanes[i] > lanes[i + half] { lanes[i] } else { lanes[i + half] };
            }
            half /= 2;
        }
        lanes[0]
    }
}

impl Reduce for super::portable_vectors::Array<f32, 4> {}

#[cfg(target_arch = "aarch64")]
impl Reduce for super::neon_vectors::F32x4 {}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86_vectors::{F32x8, F32x16};
    use super::Reduce;

    impl Reduce for F32x16 {
        #[inline(always)]
        unsafe fn sum_lanes(self) -> f32 {
            // SAFETY: guaranteed by the caller.
            unsafe { _mm512_reduce_add_ps(self.0) }
        }

        #[inline(always)]
        unsafe fn largest_lane(self) -> f32 {
            // SAFETY: guaranteed by the caller.
            unsafe { _mm512_reduce_max_ps(self.0) }
        }
    }

    /// Defines the horizontal reduction of an x86-64 vector: combines the halves of the vector,
    /// then its quarters, then pairs.
    macro_rules! fold {
        ($vector:expr, $four:ident, $one:ident) => {{
            let half = $four(_mm256_castps256_ps128($vector), _mm256_extractf128_ps::<1>($vector));
            let pair = $four(half, _mm_movehl_ps(half, half));
            _mm_cvtss_f32($one(pair, _mm_shuffle_ps::<1>(pair, pair)))
        }};
    }

    impl Reduce for F32x8 {
        #[inline(always)]
        unsafe fn sum_lanes(self) -> f32 {
            // SAFETY: guaranteed by the caller.
            unsafe { fold!(self.0, _mm_add_ps, _mm_add_ss) }
        }

        #[inline(always)]
        unsafe fn largest_lane(self) -> f32 {
            // SAFETY: guaranteed by the caller.
            unsafe { fold!(self.0, _mm_max_ps, _mm_max_ss) }
        }
    }
}
