//! One vector register of each instruction set behind one trait, so that a kernel is written once.
//!
//! The methods are inlined into kernels that enable the instructions (`#[target_feature]`); called from elsewhere they
//! are slow, and undefined where the machine lacks them.

#[cfg(target_arch = "aarch64")]
pub mod neon;
pub mod portable;
#[cfg(target_arch = "x86_64")]
pub mod x86;

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
