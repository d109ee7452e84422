//! Implements the primitive operations of elementary functions ([`MathOps`]) with the vectors of an
//! instruction set.

use std::marker::PhantomData;

use crate::math::{MathOps, Real, add_to_exponent, scale_by_parts};
use crate::simd::MathLanes;

/// Implements [`MathOps`] with vectors `L`.
pub struct Wide<L>(PhantomData<L>);

impl<L> Wide<L> {
    /// Creates an implementation of [`MathOps`] with vectors `L`.
    ///
    /// # Safety
    /// The machine has the instructions of `L`, and the caller has enabled them.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Wide(PhantomData)
    }
}

/// Implements methods of [`MathOps`] by calls of the vector type's methods of the same names.
macro_rules! delegate {
    ($($name:ident($($arg:ident),*) = $method:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(&mut self, $($arg: &L),*) -> L {
                // SAFETY: guaranteed by the caller of `new`; likewise below.
                unsafe { L::$method($(*$arg),*) }
            }
        )*
    };
}

impl<L: MathLanes<Elem: Real>> MathOps for Wide<L> {
    type Real = L::Elem;
    type V = L;

    delegate! {
        add(a, b) = add;
        sub(a, b) = sub;
        mul(a, b) = mul;
        div(a, b) = div;
        sqrt(a) = sqrt;
        fma(a, b, c) = mul_add;
        min2(a, b) = min2;
        max2(a, b) = max2;
        select_lt(a, b, x, y) = select_lt;
        keep_nan(x, y) = keep_nan;
        iadd(a, b) = iadd;
        isub(a, b) = isub;
        iand(a, b) = iand;
        ior(a, b) = ior;
    }

    #[inline(always)]
    fn f(&mut self, value: f64) -> L {
        // SAFETY: as above.
        unsafe { L::constant(value) }
    }

    #[inline(always)]
    fn i(&mut self, value: i64) -> L {
        // SAFETY: as above.
        unsafe { L::pattern(value) }
    }

    #[inline(always)]
    fn bits(&mut self, a: &L) -> L {
        *a
    }

    #[inline(always)]
    fn float_of_bits(&mut self, a: &L) -> L {
        *a
    }

    #[inline(always)]
    fn ishl(&mut self, a: &L, by: u8) -> L {
        // SAFETY: as above.
        unsafe { a.ishl(by) }
    }

    #[inline(always)]
    fn ishr(&mut self, a: &L, by: u8) -> L {
        // SAFETY: as above.
        unsafe { a.ishr(by) }
    }

    #[inline(always)]
    fn scale(&mut self, y: &L, n: &L, t: &L) -> L {
        // Not a closure, which would lack the enabled instructions. SAFETY: as above.
        match unsafe { y.scale(*n) } {
            Some(scaled) => scaled,
            None => scale_by_parts(self, y, n, t),
        }
    }

    #[inline(always)]
    fn scale_normal(&mut self, y: &L, n: &L, t: &L) -> L {
        // SAFETY: as above.
        match unsafe { y.scale(*n) } {
            Some(scaled) => scaled,
            None => add_to_exponent(self, y, t),
        }
    }
}
