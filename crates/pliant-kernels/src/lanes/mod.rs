//! One vector register of each instruction set behind one trait, so that a kernel is written once.
//!
//! The methods are inlined into kernels that enable the instructions (`#[target_feature]`); called from elsewhere they
//! are slow, and undefined where the machine lacks them.

/// A function that is generic over vectors of float32, for those of an instruction set and with its instructions enabled; and
/// how many elements such a vector has. Calling it asks for a machine that has them.
macro_rules! for_isa {
    (@ $lanes:ty, [$($feature:literal)?], $generic:ident, ($($arg:ident: $ty:ty),*)) => {{
        /// # Safety
        /// The machine has the instructions.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run($($arg: $ty),*) {
            // SAFETY: the caller's promise.
            unsafe { $generic::<$lanes>($($arg),*) }
        }
        (run as unsafe fn($($ty),*), <$lanes as $crate::lanes::Lanes>::N)
    }};
    ($isa:expr, $generic:ident $args:tt) => {
        match $isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            pliant_machine::Vectors::Avx512 => for_isa!(@ $crate::lanes::x86::F32x16, ["avx512f"], $generic, $args),
            #[cfg(target_arch = "x86_64")]
            pliant_machine::Vectors::Avx2 => for_isa!(@ $crate::lanes::x86::F32x8, ["avx2,fma"], $generic, $args),
            #[cfg(target_arch = "aarch64")]
            pliant_machine::Vectors::Neon => for_isa!(@ $crate::lanes::neon::F32x4, [], $generic, $args),
            _ => for_isa!(@ $crate::lanes::portable::Array<f32, 4>, [], $generic, $args),
        }
    };
}
pub(crate) use for_isa;

#[cfg(target_arch = "aarch64")]
pub mod neon;
#[cfg(target_arch = "aarch64")]
mod neon_math;
pub mod permute;
pub mod portable;
mod portable_math;
pub mod reduce;
pub mod transpose;
pub mod widen;
#[cfg(target_arch = "x86_64")]
pub mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_math;

/// A vector of [`Lanes::N`] elements.
pub trait Lanes: Copy {
    /// The element type.
    type Elem: Copy;
    /// How many elements.
    const N: usize;

    /// All zeros.
    ///
    /// # Safety
    /// The machine has the instructions, here and below.
    unsafe fn zero() -> Self;

    /// One value in every lane.
    ///
    /// # Safety
    /// As for [`Lanes::zero`].
    unsafe fn splat(x: Self::Elem) -> Self;

    /// The elements from an address on, whatever its alignment.
    ///
    /// # Safety
    /// `N` elements are readable.
    unsafe fn load(from: *const Self::Elem) -> Self;

    /// The first `count` elements, zeros after them. Touches nothing beyond them.
    ///
    /// # Safety
    /// `count` elements are readable; `count` is at most `N`.
    unsafe fn load_first(from: *const Self::Elem, count: usize) -> Self;

    /// Writes all elements.
    ///
    /// # Safety
    /// `N` elements are writable.
    unsafe fn store(self, to: *mut Self::Elem);

    /// Writes the first `count` elements. Touches nothing beyond them.
    ///
    /// # Safety
    /// `count` elements are writable; `count` is at most `N`.
    unsafe fn store_first(self, to: *mut Self::Elem, count: usize);

    /// `self * x + y`, rounded once where the machine can.
    ///
    /// # Safety
    /// As for [`Lanes::zero`].
    unsafe fn mul_add(self, x: Self, y: Self) -> Self;

    /// `self + x`.
    ///
    /// # Safety
    /// As for [`Lanes::zero`].
    unsafe fn add(self, x: Self) -> Self;
}

/// Loads a whole vector, or without `WHOLE` its first `count` elements.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The elements are readable.
#[inline(always)]
pub unsafe fn load<L: Lanes, const WHOLE: bool>(from: *const L::Elem, count: usize) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if WHOLE { L::load(from) } else { L::load_first(from, count) } }
}

/// What elementary functions need beyond sums and products. Integers of a lane's bits travel in the same vectors.
///
/// # Safety of the methods
/// The machine has the instructions.
#[expect(clippy::missing_safety_doc, reason = "the one condition of all methods stands above")]
pub trait MathLanes: Lanes {
    /// A constant, rounded to the element type.
    unsafe fn constant(value: f64) -> Self;
    /// Lanes with these low bits.
    unsafe fn pattern(bits: i64) -> Self;
    /// `self - x`.
    unsafe fn sub(self, x: Self) -> Self;
    /// `self * x`.
    unsafe fn mul(self, x: Self) -> Self;
    /// `self / x`.
    unsafe fn div(self, x: Self) -> Self;
    /// Square root.
    unsafe fn sqrt(self) -> Self;
    /// `self < x ? self : x`: `x` where one is NaN.
    unsafe fn min2(self, x: Self) -> Self;
    /// `self > x ? self : x`: `x` where one is NaN.
    unsafe fn max2(self, x: Self) -> Self;
    /// `a < b ? x : y`.
    unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self;
    /// `y`, but NaN where `x` is.
    unsafe fn keep_nan(x: Self, y: Self) -> Self;
    /// Whether `a < b` in any lane.
    unsafe fn any_lt(a: Self, b: Self) -> bool;
    /// Integer sum.
    unsafe fn iadd(self, x: Self) -> Self;
    /// Integer difference.
    unsafe fn isub(self, x: Self) -> Self;
    /// Bitwise and.
    unsafe fn iand(self, x: Self) -> Self;
    /// Bitwise or.
    unsafe fn ior(self, x: Self) -> Self;
    /// Shift left.
    unsafe fn ishl(self, by: u8) -> Self;
    /// Logical shift right.
    unsafe fn ishr(self, by: u8) -> Self;

    /// `self * 2^n`, reaching infinity and the subnormals; `None` where the machine has no instruction for it.
    #[inline(always)]
    unsafe fn scale(self, _n: Self) -> Option<Self> {
        None
    }
}

/// Vectors of float64 that come from and go to memory as float32.
///
/// # Safety of the methods
/// As for [`MathLanes`]; the elements are readable or writable.
#[expect(clippy::missing_safety_doc, reason = "the one condition of all methods stands above")]
pub trait FromSingle: MathLanes<Elem = f64> {
    /// The elements from an address on.
    unsafe fn load_single(from: *const f32) -> Self;
    /// Writes all elements, rounded.
    unsafe fn store_single(self, to: *mut f32);
}
