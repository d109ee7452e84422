//! The loops of vector math functions (elementary functions over slices, and accumulations of slices): whole vectors, then a
//! masked vector for the remaining elements.
//!
//! Method: one vector at a time, in registers, with the algorithms of [`crate::math`]. For
//! measurements, see "Elementary functions" in `docs/internals/measurements/functions.md`.

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::vector_math_ops::Wide;
use super::{OneFn, TwoFn};
use crate::math::{MathOps, Real};
#[cfg(target_arch = "aarch64")]
use crate::simd::neon_vectors::{F32x4, F64x2};
use crate::simd::portable_vectors::Array;
#[cfg(target_arch = "x86_64")]
use crate::simd::x86_vectors::{F32x8, F32x16, F64x4, F64x8};
use crate::simd::{FromSingle, MathLanes};
use pliant_machine::isa::{Isa, Vectors};

/// An elementary function of one number.
pub trait Unary {
    /// The platform's math function, which is called for arguments beyond [`Real::TRIG_LIMIT`];
    /// `None` if `value` supports all arguments.
    const PLATFORM: Option<fn(f64) -> f64> = None;

    /// Returns the function's value for `x`, computed with the primitive operations of `b`.
    fn value<B: MathOps>(b: &mut B, x: &B::V) -> B::V;
}

/// An elementary function of two numbers.
pub trait Binary {
    /// Returns the function's value for `x` and `y`, computed with the primitive operations of `b`.
    fn value<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V;
}

/// An elementary function of two float32 numbers that is computed in float64.
pub trait InDouble {
    /// Returns the function's value for `x` and `y`, computed with the primitive operations of `b`. The result is valid for all
    /// operands.
    fn value<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> B::V;

    /// Computes the function with fewer operations; the result is valid for most operands. Also
    /// returns a check value, which is within [`InDouble::FAST_RANGE`] if the result is valid.
    fn fast<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> (B::V, B::V);

    /// The range of check values for which the result of [`InDouble::fast`] is valid.
    const FAST_RANGE: (f64, f64);
}

/// An element type of the slices.
trait Number: Real {
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Number for f32 {
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    fn to_f64(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    fn from_f64(x: f64) -> f64 {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Maximum number of float32 lanes of a vector.
const WIDEST: usize = 16;

/// Returns the value of the function `F` for each lane of `x`.
///
/// # Safety
/// The conditions of [`one`] hold.
#[inline(always)]
unsafe fn value<L: MathLanes<Elem: Number>, F: Unary>(x: L) -> L {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let mut ops = Wide::<L>::new();
        let y = F::value(&mut ops, &x);
        if let Some(platform) = F::PLATFORM {
            let limit = L::constant(<L::Elem as Real>::TRIG_LIMIT);
            let magnitude = x.iand(L::pattern(!<L::Elem as Real>::SIGN));
            if L::any_lt(limit, magnitude) {
                return with_platform_values(x, y, platform);
            }
        }
        y
    }
}

/// Returns `y`, with the lanes whose argument is beyond [`Real::TRIG_LIMIT`] replaced by results of
/// the platform's math function. So the result of a lane does not depend on the other lanes.
///
/// # Safety
/// The conditions of [`one`] hold.
#[inline(always)]
unsafe fn with_platform_values<L: MathLanes<Elem: Number>>(
    x: L,
    y: L,
    platform: fn(f64) -> f64,
) -> L {
    let (mut xs, mut ys) = ([L::Elem::from_f64(0.0); WIDEST], [L::Elem::from_f64(0.0); WIDEST]);
    // SAFETY: the caller guarantees the instructions; the arrays are as wide as any vector.
    unsafe {
        x.store(xs.as_mut_ptr());
        y.store(ys.as_mut_ptr());
        replace_large(&xs[..L::N], &mut ys, platform);
        L::load(ys.as_ptr())
    }
}

#[cold]
#[inline(never)]
fn replace_large<T: Number>(xs: &[T], ys: &mut [T], platform: fn(f64) -> f64) {
    for (x, y) in xs.iter().zip(ys) {
        if x.to_f64().abs() > T::TRIG_LIMIT {
            *y = T::from_f64(platform(x.to_f64()));
        }
    }
}

/// Applies the function `F` to each of `n` elements at `from`, and stores the results at `to`.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. `n` elements are readable and writable. The slices are
/// the same or do not overlap.
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

/// Reduces the slice of `n` elements at `from` into `result` with the commutative, associative function `F`, such as the maximum.
/// The initial value of `result` takes part in the reduction.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. `n` elements are readable at `from`, and one element
/// is readable and writable at `result`.
#[inline(always)]
unsafe fn accumulate<L: MathLanes<Elem: Number>, F: Binary>(
    result: *mut L::Elem,
    from: *const L::Elem,
    n: usize,
) {
    /// The number of accumulators. Several independent accumulators hide the latency of the function that combines elements.
    const ACCUMULATORS: usize = 4;
    // SAFETY: guaranteed by the caller; offsets stay within the slice, and the array has room for two of the widest vectors.
    unsafe {
        let mut ops = Wide::<L>::new();
        let mut acc = [L::splat(*result); ACCUMULATORS];
        let mut at = 0;
        while n - at >= ACCUMULATORS * L::N {
            for (k, acc) in acc.iter_mut().enumerate() {
                *acc = F::value(&mut ops, acc, &L::load(from.add(at + k * L::N)));
            }
            at += ACCUMULATORS * L::N;
        }
        while n - at >= L::N {
            acc[0] = F::value(&mut ops, &acc[0], &L::load(from.add(at)));
            at += L::N;
        }
        // The array is filled with the initial result, which all accumulators contain already.
        let mut lanes = [*result; 2 * WIDEST];
        std::ptr::copy_nonoverlapping(from.add(at), lanes.as_mut_ptr(), n - at);
        let [a, b, c, d] = acc;
        let (a, b) = (F::value(&mut ops, &a, &b), F::value(&mut ops, &c, &d));
        let total = F::value(&mut ops, &a, &b);
        let mut total = F::value(&mut ops, &total, &L::load(lanes.as_ptr()));
        let mut distance = L::N / 2;
        while distance > 0 {
            total.store(lanes.as_mut_ptr());
            total = F::value(&mut ops, &total, &L::load(lanes.as_ptr().add(distance)));
            distance /= 2;
        }
        total.store(lanes.as_mut_ptr());
        *result = lanes[0];
    }
}

/// Applies the function `F` to each of `n` pairs of elements at the same index of `left` and `right`, and stores the results at
/// `to`.
///
/// # Safety
/// The conditions of [`one`] hold.
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

/// Applies the function `F`, which is computed in float64, to corresponding lanes of `x` and `y`, which contain float32 numbers
/// converted to float64.
///
/// # Safety
/// The conditions of [`one`] hold.
#[inline(always)]
unsafe fn value_in_double<L: FromSingle, F: InDouble>(x: L, y: L) -> L {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let mut ops = Wide::<L>::new();
        let (value, check) = F::fast(&mut ops, &x, &y);
        let (low, high) = (L::constant(F::FAST_RANGE.0), L::constant(F::FAST_RANGE.1));
        if L::any_lt(check, low) || L::any_lt(high, check) {
            return F::value(&mut ops, &x, &y);
        }
        value
    }
}

/// Applies the function `F`, which is computed in float64, to each of `n` pairs of float32 elements at the same index of `left` and
/// `right`. Rounds the results to float32 and stores them at `to`.
///
/// # Safety
/// The conditions of [`one`] hold.
#[inline(always)]
unsafe fn two_in_double<L: FromSingle, F: InDouble>(
    to: *mut f32,
    (left, right): (*const f32, *const f32),
    n: usize,
) {
    let mut at = 0;
    // SAFETY: as for `one`; the arrays are as wide as any vector.
    unsafe {
        while n - at >= L::N {
            let (x, y) = (L::load_single(left.add(at)), L::load_single(right.add(at)));
            value_in_double::<L, F>(x, y).store_single(to.add(at));
            at += L::N;
        }
        if at < n {
            let (mut xs, mut ys) = ([1f32; WIDEST], [1f32; WIDEST]);
            std::ptr::copy_nonoverlapping(left.add(at), xs.as_mut_ptr(), n - at);
            std::ptr::copy_nonoverlapping(right.add(at), ys.as_mut_ptr(), n - at);
            let (x, y) = (L::load_single(xs.as_ptr()), L::load_single(ys.as_ptr()));
            value_in_double::<L, F>(x, y).store_single(xs.as_mut_ptr());
            std::ptr::copy_nonoverlapping(xs.as_ptr(), to.add(at), n - at);
        }
    }
}

/// Defines the C functions of one instruction set. The functions are generic over the elementary
/// function.
macro_rules! c_functions {
    ($module:ident, $single:ty, $double:ty $(, $feature:literal)?) => {
        mod $module {
            use super::*;

            c_functions!(@one one_f32, f32, Unary, one::<$single, F> $(, $feature)?);
            c_functions!(@one one_f64, f64, Unary, one::<$double, F> $(, $feature)?);
            c_functions!(@one accumulate_f32, f32, Binary, accumulate::<$single, F> $(, $feature)?);
            c_functions!(@one accumulate_f64, f64, Binary, accumulate::<$double, F> $(, $feature)?);
            c_functions!(@two two_f32, f32, Binary, two::<$single, F> $(, $feature)?);
            c_functions!(@two two_f64, f64, Binary, two::<$double, F> $(, $feature)?);
            c_functions!(@two in_double, f32, InDouble, two_in_double::<$double, F> $(, $feature)?);
        }
    };
    (@one $name:ident, $elem:ty, $bound:ident, $run:expr $(, $feature:literal)?) => {
        /// The C function for an elementary function of one operand, or for the accumulation of one operand.
        ///
        /// # Safety
        /// The conditions of [`one`] or [`accumulate`] hold.
        $(#[target_feature(enable = $feature)])?
        pub unsafe extern "C" fn $name<F: $bound>(
            _: *const KernelRuntime,
            to: *mut $elem,
            from: *const $elem,
            n: i64,
        ) -> i64 {
            // SAFETY: guaranteed by the caller.
            unsafe { $run(to, from, n.max(0) as usize) };
            STATUS_OK
        }
    };
    (@two $name:ident, $elem:ty, $bound:ident, $run:expr $(, $feature:literal)?) => {
        /// The C function for an elementary function of two operands.
        ///
        /// # Safety
        /// The conditions of [`one`] hold.
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
c_functions!(avx512, F32x16, F64x8, "avx512f");
#[cfg(target_arch = "x86_64")]
c_functions!(avx2, F32x8, F64x4, "avx2,fma");
#[cfg(target_arch = "aarch64")]
c_functions!(neon, F32x4, F64x2);
c_functions!(portable, Array<f32, 4>, Array<f64, 2>);

macro_rules! choose {
    ($($name:ident: $bound:ident => $result:ty;)*) => {
        $(
            /// Returns the `extern "C"` function of the elementary function `F`, compiled for an
            /// instruction set.
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
    accumulate_f32: Binary => OneFn<f32>;
    accumulate_f64: Binary => OneFn<f64>;
    in_double: InDouble => TwoFn<f32>;
}
