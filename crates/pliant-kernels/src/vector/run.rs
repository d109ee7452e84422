//! The loops over slices: whole vectors, then one whose last lanes are masked.
//!
//! Recipe: elementwise, one vector at a time in registers, by the sequences of [`crate::math`]. Measured: "Elementary functions" in
//! `docs/performance.md`.

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::wide::Wide;
use super::{OneFn, TwoFn};
#[cfg(target_arch = "aarch64")]
use crate::lanes::neon::{F32x4, F64x2};
use crate::lanes::portable::Array;
#[cfg(target_arch = "x86_64")]
use crate::lanes::x86::{F32x8, F32x16, F64x4, F64x8};
use crate::lanes::{FromSingle, MathLanes};
use crate::math::{MathOps, Real};
use pliant_machine::isa::{Isa, Vectors};

/// A function of one number.
pub trait Unary {
    /// The platform's function, for arguments beyond [`Real::TRIG_LIMIT`] where the sequence needs that.
    const PLATFORM: Option<fn(f64) -> f64> = None;

    /// The sequence.
    fn value<B: MathOps>(b: &mut B, x: &B::V) -> B::V;
}

/// A function of two numbers.
pub trait Binary {
    /// The sequence.
    fn value<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V;
}

/// A function of two float32 numbers that is computed in float64.
pub trait ByDouble {
    /// The sequence.
    fn value<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> B::V;

    /// A shorter one for most numbers, with the same values, and a number that is within [`ByDouble::PLAIN`] for these.
    fn plain<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> (B::V, B::V);

    /// The least and the largest such number.
    const PLAIN: (f64, f64);
}

/// An element type of the slices.
trait Number: Real {
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
}

impl Number for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn to(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn to(self) -> f64 {
        self
    }
}

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// The values of one vector.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn value<L: MathLanes<Elem: Number>, F: Unary>(x: L) -> L {
    // SAFETY: the caller guarantees instructions.
    unsafe {
        let mut ops = Wide::<L>::new();
        let y = F::value(&mut ops, &x);
        if let Some(platform) = F::PLATFORM {
            let limit = L::constant(<L::Elem as Real>::TRIG_LIMIT);
            let size = x.iand(L::pattern(!<L::Elem as Real>::SIGN));
            if L::any_lt(limit, size) {
                return beyond(x, y, platform);
            }
        }
        y
    }
}

/// `y`, but the platform's value in lanes whose argument is beyond the limit: each has the value that it would have alone.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn beyond<L: MathLanes<Elem: Number>>(x: L, y: L, platform: fn(f64) -> f64) -> L {
    let (mut xs, mut ys) = ([L::Elem::of(0.0); WIDEST], [L::Elem::of(0.0); WIDEST]);
    // SAFETY: the caller guarantees instructions; the arrays are as wide as any vector.
    unsafe {
        x.store(xs.as_mut_ptr());
        y.store(ys.as_mut_ptr());
        mend(&xs[..L::N], &mut ys, platform);
        L::load(ys.as_ptr())
    }
}

#[cold]
#[inline(never)]
fn mend<T: Number>(xs: &[T], ys: &mut [T], platform: fn(f64) -> f64) {
    for (x, y) in xs.iter().zip(ys) {
        if x.to().abs() > T::TRIG_LIMIT {
            *y = T::of(platform(x.to()));
        }
    }
}

/// A function over a slice.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. `n` elements are readable and writable; the
/// slices are the same or apart.
#[inline(always)]
unsafe fn one<L: MathLanes<Elem: Number>, F: Unary>(
    to: *mut L::Elem,
    from: *const L::Elem,
    n: usize,
) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller; offsets stay within the slices.
    unsafe {
        while n - at >= L::N {
            value::<L, F>(L::load(from.add(at))).store(to.add(at));
            at += L::N;
        }
        if at < n {
            let x = L::load_first(from.add(at), n - at);
            value::<L, F>(x).store_first(to.add(at), n - at);
        }
    }
}

/// A function over two slices.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn two<L: MathLanes<Elem: Number>, F: Binary>(
    to: *mut L::Elem,
    (left, right): (*const L::Elem, *const L::Elem),
    n: usize,
) {
    let mut at = 0;
    // SAFETY: as for `one`.
    unsafe {
        let mut ops = Wide::<L>::new();
        while n - at >= L::N {
            let (x, y) = (L::load(left.add(at)), L::load(right.add(at)));
            F::value(&mut ops, &x, &y).store(to.add(at));
            at += L::N;
        }
        if at < n {
            let (x, y) =
                (L::load_first(left.add(at), n - at), L::load_first(right.add(at), n - at));
            F::value(&mut ops, &x, &y).store_first(to.add(at), n - at);
        }
    }
}

/// The values of one vector of a function that is computed in float64.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn double_value<L: FromSingle, F: ByDouble>(x: L, y: L) -> L {
    // SAFETY: the caller guarantees instructions.
    unsafe {
        let mut ops = Wide::<L>::new();
        let (value, mark) = F::plain(&mut ops, &x, &y);
        let (least, most) = (L::constant(F::PLAIN.0), L::constant(F::PLAIN.1));
        if L::any_lt(mark, least) || L::any_lt(most, mark) {
            return F::value(&mut ops, &x, &y);
        }
        value
    }
}

/// A function over two slices of float32, computed in float64.
///
/// # Safety
/// As for [`one`].
#[inline(always)]
unsafe fn in_double<L: FromSingle, F: ByDouble>(
    to: *mut f32,
    (left, right): (*const f32, *const f32),
    n: usize,
) {
    let mut at = 0;
    // SAFETY: as for `one`; the arrays are as wide as any vector.
    unsafe {
        while n - at >= L::N {
            let (x, y) = (L::load_single(left.add(at)), L::load_single(right.add(at)));
            double_value::<L, F>(x, y).store_single(to.add(at));
            at += L::N;
        }
        if at < n {
            let (mut xs, mut ys) = ([1f32; WIDEST], [1f32; WIDEST]);
            std::ptr::copy_nonoverlapping(left.add(at), xs.as_mut_ptr(), n - at);
            std::ptr::copy_nonoverlapping(right.add(at), ys.as_mut_ptr(), n - at);
            let (x, y) = (L::load_single(xs.as_ptr()), L::load_single(ys.as_ptr()));
            double_value::<L, F>(x, y).store_single(xs.as_mut_ptr());
            std::ptr::copy_nonoverlapping(xs.as_ptr(), to.add(at), n - at);
        }
    }
}

/// The C functions of one instruction set, generic over the mathematical function.
macro_rules! forms {
    ($module:ident, $single:ty, $double:ty $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            forms!(@one one_f32, f32, $single $(, $feature)?);
            forms!(@one one_f64, f64, $double $(, $feature)?);
            forms!(@two two_f32, f32, Binary, two::<$single, F> $(, $feature)?);
            forms!(@two two_f64, f64, Binary, two::<$double, F> $(, $feature)?);
            forms!(@two by_double, f32, ByDouble, in_double::<$double, F> $(, $feature)?);
        }
    };
    (@one $name:ident, $elem:ty, $lanes:ty $(, $feature:literal)?) => {
        /// # Safety
        /// As for [`one`].
        $(#[target_feature(enable = $feature)])?
        pub unsafe extern "C" fn $name<F: Unary>(
            _: *const KernelRuntime,
            to: *mut $elem,
            from: *const $elem,
            n: i64,
        ) -> i64 {
            // SAFETY: guaranteed by the caller.
            unsafe { one::<$lanes, F>(to, from, n.max(0) as usize) };
            STATUS_OK
        }
    };
    (@two $name:ident, $elem:ty, $bound:ident, $run:expr $(, $feature:literal)?) => {
        /// # Safety
        /// As for [`one`].
        $(#[target_feature(enable = $feature)])?
        pub unsafe extern "C" fn $name<F: $bound>(
            _: *const KernelRuntime,
            to: *mut $elem,
            left: *const $elem,
            right: *const $elem,
            n: i64,
        ) -> i64 {
            // SAFETY: guaranteed by the caller.
            unsafe { $run(to, (left, right), n.max(0) as usize) };
            STATUS_OK
        }
    };
}

#[cfg(target_arch = "x86_64")]
forms!(avx512, F32x16, F64x8, "avx512f");
#[cfg(target_arch = "x86_64")]
forms!(avx2, F32x8, F64x4, "avx2,fma");
#[cfg(target_arch = "aarch64")]
forms!(neon, F32x4, F64x2);
forms!(portable, Array<f32, 4>, Array<f64, 2>);

macro_rules! choose {
    ($($name:ident: $bound:ident => $result:ty;)*) => {
        $(
            /// The form for an instruction set.
            pub fn $name<F: $bound>(isa: Isa) -> $result {
                match isa.vectors() {
                    #[cfg(target_arch = "x86_64")]
                    Vectors::Avx512 => avx512::$name::<F>,
                    #[cfg(target_arch = "x86_64")]
                    Vectors::Avx2 => avx2::$name::<F>,
                    #[cfg(target_arch = "aarch64")]
                    Vectors::Neon => neon::$name::<F>,
                    _ => portable::$name::<F>,
                }
            }
        )*
    };
}

choose! {
    one_f32: Unary => OneFn<f32>;
    one_f64: Unary => OneFn<f64>;
    two_f32: Binary => TwoFn<f32>;
    two_f64: Binary => TwoFn<f64>;
    by_double: ByDouble => TwoFn<f32>;
}
