//! Implements [`super::MathLanes`], the primitive operations from which functions such as `exp` are built, for arrays that need no
//! instructions of a particular processor.

use std::array::from_fn;

use super::portable_vectors::Array;
use super::{FromSingle, MathLanes};

macro_rules! math {
    ($elem:ty, $int:ty, $n:literal) => {
        impl MathLanes for Array<$elem, $n> {
            #[inline(always)]
            unsafe fn constant(value: f64) -> Self {
                Array([value as $elem; $n])
            }
            #[inline(always)]
            unsafe fn pattern(bits: i64) -> Self {
                Array([<$elem>::from_bits(bits as $int); $n])
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                Array(self.0.map(<$elem>::sqrt))
            }
            #[inline(always)]
            unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self {
                Array(from_fn(|i| if a.0[i] < b.0[i] { x.0[i] } else { y.0[i] }))
            }
            #[inline(always)]
            unsafe fn keep_nan(x: Self, y: Self) -> Self {
                Array(from_fn(|i| if x.0[i].is_nan() { x.0[i] } else { y.0[i] }))
            }
            #[inline(always)]
            unsafe fn any_lt(a: Self, b: Self) -> bool {
                (0..$n).any(|i| a.0[i] < b.0[i])
            }
            #[inline(always)]
            unsafe fn min2(self, x: Self) -> Self {
                Array(from_fn(|i| if self.0[i] < x.0[i] { self.0[i] } else { x.0[i] }))
            }
            #[inline(always)]
            unsafe fn max2(self, x: Self) -> Self {
                Array(from_fn(|i| if self.0[i] > x.0[i] { self.0[i] } else { x.0[i] }))
            }
            #[inline(always)]
            unsafe fn ishl(self, by: u8) -> Self {
                Array(self.0.map(|x| <$elem>::from_bits(x.to_bits() << by)))
            }
            #[inline(always)]
            unsafe fn ishr(self, by: u8) -> Self {
                Array(self.0.map(|x| <$elem>::from_bits(x.to_bits() >> by)))
            }
            math!(@float $elem, sub -, mul *, div /);
            math!(@int $elem, iadd wrapping_add, isub wrapping_sub);
            math!(@bits $elem, iand &, ior |);
        }
    };
    (@float $elem:ty, $($method:ident $op:tt),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, x: Self) -> Self {
                Array(from_fn(|i| self.0[i] $op x.0[i]))
            }
        )*
    };
    (@int $elem:ty, $($method:ident $op:ident),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, x: Self) -> Self {
                Array(from_fn(|i| <$elem>::from_bits(self.0[i].to_bits().$op(x.0[i].to_bits()))))
            }
        )*
    };
    (@bits $elem:ty, $($method:ident $op:tt),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, x: Self) -> Self {
                Array(from_fn(|i| <$elem>::from_bits(self.0[i].to_bits() $op x.0[i].to_bits())))
            }
        )*
    };
}

math!(f32, u32, 4);
math!(f64, u64, 2);

impl FromSingle for Array<f64, 2> {
    #[inline(always)]
    unsafe fn load_single(from: *const f32) -> Self {
        // SAFETY: the caller guarantees readable elements.
        Array(unsafe { from.cast::<[f32; 2]>().read_unaligned() }.map(f64::from))
    }
    #[inline(always)]
    unsafe fn store_single(self, to: *mut f32) {
        // SAFETY: the caller guarantees writable elements.
        unsafe { to.cast::<[f32; 2]>().write_unaligned(self.0.map(|x| x as f32)) }
    }
}
