//! Vectors of all instruction sets behind one trait, so that each kernel is written once.
//!
//! The methods are inlined into functions that enable the instructions (`#[target_feature]`). In
//! other functions, the methods are slow, and their behaviour is undefined if the machine lacks the
//! instructions.

/// Instantiates a generic function over float32 vectors for an instruction set, with the
/// instructions enabled. Evaluates to a function pointer and the number of lanes. The function may
/// only be called if the machine has the instructions.
macro_rules! for_isa {
    (@ $lanes:ty, [$($feature:literal)?], $generic:ident, ($($arg:ident: $ty:ty),*)) => {{
        /// The generic function, compiled with the vectors of one instruction set.
        ///
        /// # Safety
        /// The machine has the instructions of this version.
        $(#[target_feature(enable = $feature)])?
        unsafe fn run($($arg: $ty),*) {
            // SAFETY: guaranteed by the caller.
            unsafe { $generic::<$lanes>($($arg),*) }
        }
        (run as unsafe fn($($ty),*), <$lanes as $crate::simd::Lanes>::N)
    }};
    ($isa:expr, $generic:ident $args:tt) => {
        match $isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            pliant_machine::Vectors::Avx512 => for_isa!(@ $crate::simd::x86_vectors::F32x16, ["avx512f"], $generic, $args),
            #[cfg(target_arch = "x86_64")]
            pliant_machine::Vectors::Avx2 => for_isa!(@ $crate::simd::x86_vectors::F32x8, ["avx2,fma"], $generic, $args),
            #[cfg(target_arch = "aarch64")]
            pliant_machine::Vectors::Neon => for_isa!(@ $crate::simd::neon_vectors::F32x4, [], $generic, $args),
            _ => for_isa!(@ $crate::simd::portable_vectors::Array<f32, 4>, [], $generic, $args),
        }
    };
}
pub(crate) use for_isa;

pub mod horizontal_reduce;
pub mod lane_permutation;
#[cfg(target_arch = "aarch64")]
mod neon_math;
#[cfg(target_arch = "aarch64")]
pub mod neon_vectors;
mod portable_math;
pub mod portable_vectors;
pub mod register_transpose;
pub mod widen_to_float32;
#[cfg(target_arch = "x86_64")]
mod x86_math;
#[cfg(target_arch = "x86_64")]
pub mod x86_vectors;

/// A vector of [`Lanes::N`] elements in a register.
pub trait Lanes: Copy {
    /// The element type of the vector.
    type Elem: Copy;
    /// The number of elements (lanes) of a vector.
    const N: usize;

    /// Returns a vector of zeros.
    ///
    /// # Safety
    /// The machine has the instructions of this vector type. The other methods have the same
    /// condition.
    unsafe fn zero() -> Self;

    /// Returns a vector with the value `x` in every lane.
    ///
    /// # Safety
    /// The conditions of [`Lanes::zero`] hold.
    unsafe fn splat(x: Self::Elem) -> Self;

    /// Loads elements from an address of any alignment.
    ///
    /// # Safety
    /// `N` elements are readable.
    unsafe fn load(from: *const Self::Elem) -> Self;

    /// Loads the first `count` elements, followed by zeros. Accesses no other elements.
    ///
    /// # Safety
    /// `count` elements are readable; `count` is at most `N`.
    unsafe fn load_first(from: *const Self::Elem, count: usize) -> Self;

    /// Stores all elements to an address of any alignment.
    ///
    /// # Safety
    /// `N` elements are writable.
    unsafe fn store(self, to: *mut Self::Elem);

    /// Stores the first `count` elements. Accesses no other elements.
    ///
    /// # Safety
    /// `count` elements are writable; `count` is at most `N`.
    unsafe fn store_first(self, to: *mut Self::Elem, count: usize);

    /// Returns `self * x + y`, fused if the machine has such an instruction.
    ///
    /// # Safety
    /// The conditions of [`Lanes::zero`] hold.
    unsafe fn mul_add(self, x: Self, y: Self) -> Self;

    /// Returns the sums `self + x` of corresponding lanes.
    ///
    /// # Safety
    /// The conditions of [`Lanes::zero`] hold.
    unsafe fn add(self, x: Self) -> Self;
}

/// Loads a whole vector if `WHOLE` is true, otherwise only its first `count` elements, followed by zeros.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The elements are readable.
#[inline(always)]
pub unsafe fn load<L: Lanes, const WHOLE: bool>(from: *const L::Elem, count: usize) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { if WHOLE { L::load(from) } else { L::load_first(from, count) } }
}

/// The vector operations from which elementary functions are built. Float vectors can also contain
/// integers of the same width per lane.
///
/// # Safety of the methods
/// The machine has the instructions of the vector type.
#[expect(
    clippy::missing_safety_doc,
    reason = "the safety condition is the same for all methods, and the trait states it"
)]
pub trait MathLanes: Lanes {
    /// Returns a vector with a constant in every lane, rounded to the element type.
    unsafe fn constant(value: f64) -> Self;
    /// Returns a vector with an integer in every lane: the low bits of `bits`.
    unsafe fn pattern(bits: i64) -> Self;
    /// Returns the differences `self - x` of corresponding lanes.
    unsafe fn sub(self, x: Self) -> Self;
    /// Returns the products `self * x` of corresponding lanes.
    unsafe fn mul(self, x: Self) -> Self;
    /// Returns the quotients `self / x` of corresponding lanes.
    unsafe fn div(self, x: Self) -> Self;
    /// Returns the square root of each lane.
    unsafe fn sqrt(self) -> Self;
    /// Returns `self < x ? self : x` for each lane: `x` if one of them is NaN.
    unsafe fn min2(self, x: Self) -> Self;
    /// Returns `self > x ? self : x` for each lane: `x` if one of them is NaN.
    unsafe fn max2(self, x: Self) -> Self;
    /// Returns `a < b ? x : y` for each lane.
    unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self;
    /// Returns `y`, but NaN in the lanes in which `x` is NaN.
    unsafe fn keep_nan(x: Self, y: Self) -> Self;
    /// Whether `a < b` in any lane.
    unsafe fn any_lt(a: Self, b: Self) -> bool;
    /// Returns the sums of corresponding lanes, as integers.
    unsafe fn iadd(self, x: Self) -> Self;
    /// Returns the differences of corresponding lanes, as integers.
    unsafe fn isub(self, x: Self) -> Self;
    /// Returns the bitwise and of two vectors.
    unsafe fn iand(self, x: Self) -> Self;
    /// Returns the bitwise or of two vectors.
    unsafe fn ior(self, x: Self) -> Self;
    /// Shifts the integer in each lane left by `by` bits.
    unsafe fn ishl(self, by: u8) -> Self;
    /// Shifts the unsigned integer in each lane right by `by` bits.
    unsafe fn ishr(self, by: u8) -> Self;

    /// Returns `self * 2^n` for each lane, including overflow and subnormal results. Returns `None` if the machine has
    /// no such instruction.
    #[inline(always)]
    unsafe fn scale(self, _n: Self) -> Option<Self> {
        None
    }
}

/// Vectors of float64 that can be loaded from float32 memory and stored to float32 memory.
///
/// # Safety of the methods
/// The conditions of [`MathLanes`] hold; the elements are readable or writable.
#[expect(
    clippy::missing_safety_doc,
    reason = "the safety condition is the same for all methods, and the trait states it"
)]
pub trait FromSingle: MathLanes<Elem = f64> {
    /// Loads float32 elements and converts them to float64.
    unsafe fn load_single(from: *const f32) -> Self;
    /// Rounds all elements to float32 and stores them.
    unsafe fn store_single(self, to: *mut f32);
}
