//! Portable vectors: arrays of 16 bytes, which the compiler maps to the vectors of the target.

use super::Lanes;

/// A vector of `N` elements, stored as an array, which needs no instructions of a particular processor.
#[derive(Clone, Copy)]
pub struct Array<T, const N: usize>(pub(super) [T; N]);

macro_rules! array {
    ($elem:ty, $n:literal) => {
        impl Lanes for Array<$elem, $n> {
            type Elem = $elem;
            const N: usize = $n;

            #[inline(always)]
            unsafe fn zero() -> Self {
                Array([0.0; $n])
            }

            #[inline(always)]
            unsafe fn splat(x: $elem) -> Self {
                Array([x; $n])
            }

            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller guarantees readable elements.
                Array(unsafe { from.cast::<[$elem; $n]>().read_unaligned() })
            }

            #[inline(always)]
            unsafe fn load_first(from: *const $elem, count: usize) -> Self {
                let mut elements = [0.0; $n];
                for (i, x) in elements.iter_mut().enumerate().take(count) {
                    // SAFETY: the caller guarantees `count` readable elements.
                    *x = unsafe { from.add(i).read_unaligned() };
                }
                Array(elements)
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller guarantees writable elements.
                unsafe { to.cast::<[$elem; $n]>().write_unaligned(self.0) }
            }

            #[inline(always)]
            unsafe fn store_first(self, to: *mut $elem, count: usize) {
                for (i, x) in self.0.into_iter().enumerate().take(count) {
                    // SAFETY: the caller guarantees `count` writable elements.
                    unsafe { to.add(i).write_unaligned(x) };
                }
            }

            #[inline(always)]
            unsafe fn mul_add(self, x: Self, y: Self) -> Self {
                // Not `f32::mul_add`, which is a slow call if the target has no such instruction.
                Array(std::array::from_fn(|i| self.0[i] * x.0[i] + y.0[i]))
            }

            #[inline(always)]
            unsafe fn add(self, x: Self) -> Self {
                Array(std::array::from_fn(|i| self.0[i] + x.0[i]))
            }
        }
    };
}

array!(f32, 4);
array!(f64, 2);
