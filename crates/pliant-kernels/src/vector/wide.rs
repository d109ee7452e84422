//! The sequences' operations on the vectors of an instruction set.

use std::marker::PhantomData;

use crate::lanes::MathLanes;
use crate::math::{MathOps, Real, add_to_exponent, scale_by_parts};

/// Computes with vectors `L` at once.
pub struct Wide<L>(PhantomData<L>);

impl<L> Wide<L> {
    /// What computes.
    ///
    /// # Safety
    /// The machine has the instructions of `L`, and the caller has enabled them.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Wide(PhantomData)
    }
}

/// Methods that are one of the vector's.
macro_rules! same {
    ($($name:ident($($arg:ident),*) = $method:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(&mut self, $($arg: &L),*) -> L {
                // SAFETY: whoever made this promised the instructions, here and below.
                unsafe { L::$method($(*$arg),*) }
            }
        )*
    };
}

impl<L: MathLanes<Elem: Real>> MathOps for Wide<L> {
    type Real = L::Elem;
    type V = L;

    same! {
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
        // No closure: it would not have the instructions enabled. SAFETY: as above.
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
