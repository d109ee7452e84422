//! Permutation of the lanes of float32 vectors, and gathering of elements at given offsets.

use super::Lanes;
use super::portable_vectors::Array;

/// Maximum number of float32 lanes of a vector, and the length of arrays with one index per lane.
pub const MAX_LANES: usize = 16;

/// Vectors whose lanes can be permuted.
pub trait Permute: Lanes<Elem = f32> {
    /// A permutation, loaded in a register in the form that the machine's instruction requires.
    type Order: Copy;

    /// Loads the permutation that moves lane `from[i]` to lane `i`. The first `N` indices are below
    /// `N`; the others are not read.
    ///
    /// # Safety
    /// The machine has the instructions of this vector type.
    unsafe fn order(from: &[u32; MAX_LANES]) -> Self::Order;

    /// Returns the lanes of `self` in permuted order.
    ///
    /// # Safety
    /// The conditions of [`Permute::order`] hold.
    unsafe fn permute(self, order: Self::Order) -> Self;

    /// Loads the elements at `offsets` (in elements) from the address `from`, one per lane.
    ///
    /// # Safety
    /// The conditions of [`Permute::order`] hold; the first `N` offsets are below 2^31, and their
    /// elements are readable.
    #[inline(always)]
    unsafe fn gather(from: *const f32, offsets: &[u32; MAX_LANES]) -> Self {
        let mut lanes = [0f32; MAX_LANES];
        for (lane, &offset) in lanes.iter_mut().zip(offsets).take(Self::N) {
            // SAFETY: guaranteed by the caller.
            *lane = unsafe { *from.add(offset as usize) };
        }
        // SAFETY: as above.
        unsafe { Self::load(lanes.as_ptr()) }
    }
}

impl Permute for Array<f32, 4> {
    type Order = [u32; 4];

    #[inline(always)]
    unsafe fn order(from: &[u32; MAX_LANES]) -> [u32; 4] {
        [from[0], from[1], from[2], from[3]]
    }

    #[inline(always)]
    unsafe fn permute(self, [a, b, c, d]: [u32; 4]) -> Self {
        let x = self.0;
        Array([x[a as usize % 4], x[b as usize % 4], x[c as usize % 4], x[d as usize % 4]])
    }
}

#[cfg(target_arch = "aarch64")]
impl Permute for super::neon_vectors::F32x4 {
    type Order = std::arch::aarch64::uint8x16_t;

    #[inline(always)]
    unsafe fn order(from: &[u32; MAX_LANES]) -> Self::Order {
        use std::arch::aarch64::*;
        // SAFETY: every AArch64 machine has these instructions; the array has four indices.
        unsafe {
            // The bytes of lane `i` are `4 * i` to `4 * i + 3`.
            let first = vmulq_n_u32(vld1q_u32(from.as_ptr()), 0x0404_0404);
            vreinterpretq_u8_u32(vaddq_u32(first, vdupq_n_u32(0x0302_0100)))
        }
    }

    #[inline(always)]
    unsafe fn permute(self, order: Self::Order) -> Self {
        use std::arch::aarch64::*;
        // SAFETY: as above.
        unsafe {
            let lanes = vqtbl1q_u8(vreinterpretq_u8_f32(self.0), order);
            super::neon_vectors::F32x4(vreinterpretq_f32_u8(lanes))
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86_vectors::{F32x8, F32x16};
    use super::{MAX_LANES, Permute};

    impl Permute for F32x16 {
        type Order = __m512i;

        #[inline(always)]
        unsafe fn order(from: &[u32; MAX_LANES]) -> __m512i {
            // SAFETY: guaranteed by the caller; likewise below; the array has 16 indices.
            unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn permute(self, order: __m512i) -> Self {
            // SAFETY: as above.
            unsafe { F32x16(_mm512_permutexvar_ps(order, self.0)) }
        }

        #[inline(always)]
        unsafe fn gather(from: *const f32, offsets: &[u32; MAX_LANES]) -> Self {
            // SAFETY: as above.
            unsafe {
                let offsets = _mm512_loadu_si512(offsets.as_ptr().cast());
                F32x16(_mm512_i32gather_ps::<4>(offsets, from))
            }
        }
    }

    impl Permute for F32x8 {
        type Order = __m256i;

        #[inline(always)]
        unsafe fn order(from: &[u32; MAX_LANES]) -> __m256i {
            // SAFETY: as above, for eight indices.
            unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
        }

        #[inline(always)]
        unsafe fn permute(self, order: __m256i) -> Self {
            // SAFETY: as above.
            unsafe { F32x8(_mm256_permutevar8x32_ps(self.0, order)) }
        }

        #[inline(always)]
        unsafe fn gather(from: *const f32, offsets: &[u32; MAX_LANES]) -> Self {
            // SAFETY: as above, for eight indices.
            unsafe {
                let offsets = _mm256_loadu_si256(offsets.as_ptr().cast());
                F32x8(_mm256_i32gather_ps::<4>(from, offsets))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_machine::isa::available;

    /// Permutes the elements of an array, as a test of [`Permute::permute`].
    ///
    /// # Safety
    /// The machine has the instructions of `L`. Both arrays have [`MAX_LANES`] elements.
    #[inline(always)]
    unsafe fn permuted<L: Permute>(order: &[u32; MAX_LANES], from: *const f32, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { L::load(from).permute(L::order(order)).store(to) }
    }

    /// Gathers elements of an array, as a test of [`Permute::gather`].
    ///
    /// # Safety
    /// The conditions of [`permuted`] hold; the offsets are inside the array.
    #[inline(always)]
    unsafe fn gathered<L: Permute>(offsets: &[u32; MAX_LANES], from: *const f32, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { L::gather(from, offsets).store(to) }
    }

    #[test]
    fn gather_loads_each_lane_from_its_offset() {
        let from: [f32; 99] = std::array::from_fn(|i| i as f32 + 0.5);
        let offsets: [u32; MAX_LANES] = std::array::from_fn(|i| (i as u32 * 37) % 99);
        for isa in available() {
            let (run, n) =
                for_isa!(isa, gathered(offsets: &[u32; MAX_LANES], from: *const f32, to: *mut f32));
            let mut to = [0f32; MAX_LANES];
            // SAFETY: the machine has the instructions, and the offsets are inside the array.
            unsafe { run(&offsets, from.as_ptr(), to.as_mut_ptr()) };
            assert!((0..n).all(|i| to[i] == from[offsets[i] as usize]), "{isa:?}");
        }
    }

    #[test]
    fn permute_takes_each_lane_from_its_index() {
        let from: [f32; MAX_LANES] = std::array::from_fn(|i| i as f32 + 0.5);
        for isa in available() {
            let (run, n) =
                for_isa!(isa, permuted(order: &[u32; MAX_LANES], from: *const f32, to: *mut f32));
            for step in 0..2 * n {
                let order: [u32; MAX_LANES] =
                    std::array::from_fn(|i| ((i * step + step / 3) % n) as u32);
                let mut to = [0f32; MAX_LANES];
                // SAFETY: the machine has the instructions, and each array has 16 elements.
                unsafe { run(&order, from.as_ptr(), to.as_mut_ptr()) };
                for (&lane, &index) in to.iter().zip(&order).take(n) {
                    assert_eq!(lane, from[index as usize], "{isa:?} {order:?}");
                }
            }
        }
    }
}
