//! Conversions between slices of float32 and of 16-bit floats. Results are rounded to nearest, ties to even.

use half::{bf16, f16};
use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use pliant_machine::isa::{Isa, Vectors};

/// A function that converts a slice of 16-bit floats to float32. The arguments are the runtime, the results, the operand, and the
/// number of elements. Returns a kernel status: 0 on success.
pub type WidenFn = unsafe extern "C" fn(*const KernelRuntime, *mut f32, *const u16, i64) -> i64;
/// A function that converts a slice of float32 to 16-bit floats. The arguments are the runtime, the results, the operand, and the
/// number of elements. Returns a kernel status: 0 on success.
pub type NarrowFn = unsafe extern "C" fn(*const KernelRuntime, *mut u16, *const f32, i64) -> i64;

/// Conversions of float16 with vector instructions of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    /// Converts float16 to float32 with AVX-512.
    ///
    /// # Safety
    /// The machine has AVX-512. `n` elements are readable at `from` and writable at `to`. Source
    /// and destination do not overlap.
    #[target_feature(enable = "avx512f")]
    pub unsafe extern "C" fn widen_avx512(
        _: *const KernelRuntime,
        to: *mut f32,
        from: *const u16,
        n: i64,
    ) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            convert_blocks::<16, u16, f32>(to, from, n, |from, to| {
                let x = _mm256_loadu_si256(from.cast());
                _mm512_storeu_ps(to, _mm512_cvtph_ps(x));
            });
        }
        STATUS_OK
    }

    /// Converts float32 to float16 with AVX-512.
    ///
    /// # Safety
    /// The conditions of [`widen_avx512`] hold.
    #[target_feature(enable = "avx512f")]
    pub unsafe extern "C" fn narrow_avx512(
        _: *const KernelRuntime,
        to: *mut u16,
        from: *const f32,
        n: i64,
    ) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            convert_blocks::<16, f32, u16>(to, from, n, |from, to| {
                let x = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(from));
                _mm256_storeu_si256(to.cast(), x);
            });
        }
        STATUS_OK
    }

    /// Converts float16 to float32 with F16C.
    ///
    /// # Safety
    /// The conditions of [`widen_avx512`] hold.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe extern "C" fn widen_f16c(
        _: *const KernelRuntime,
        to: *mut f32,
        from: *const u16,
        n: i64,
    ) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            convert_blocks::<8, u16, f32>(to, from, n, |from, to| {
                _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(from.cast())));
            });
        }
        STATUS_OK
    }

    /// Converts float32 to float16 with F16C.
    ///
    /// # Safety
    /// The conditions of [`widen_avx512`] hold.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe extern "C" fn narrow_f16c(
        _: *const KernelRuntime,
        to: *mut u16,
        from: *const f32,
        n: i64,
    ) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            convert_blocks::<8, f32, u16>(to, from, n, |from, to| {
                let x = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(from));
                _mm_storeu_si128(to.cast(), x);
            });
        }
        STATUS_OK
    }
}

/// Converts blocks of `N` elements with the function `block`. Incomplete last blocks are processed
/// in temporary arrays.
///
/// # Safety
/// `n` elements are readable and writable. `block` reads and writes `N` elements.
#[inline(always)]
unsafe fn convert_blocks<const N: usize, A: Copy + Default, B: Copy + Default>(
    to: *mut B,
    from: *const A,
    n: i64,
    block: impl Fn(*const A, *mut B),
) {
    let n = n.max(0) as usize;
    let whole = n / N * N;
    // SAFETY: guaranteed by the caller; offsets stay within the slices.
    unsafe {
        for at in (0..whole).step_by(N) {
            block(from.add(at), to.add(at));
        }
        if whole < n {
            let (mut a, mut b) = ([A::default(); N], [B::default(); N]);
            std::ptr::copy_nonoverlapping(from.add(whole), a.as_mut_ptr(), n - whole);
            block(a.as_ptr(), b.as_mut_ptr());
            std::ptr::copy_nonoverlapping(b.as_ptr(), to.add(whole), n - whole);
        }
    }
}

macro_rules! scalar_conversions {
    ($($name:ident: $from:ty => $to:ty = |$x:ident| $value:expr;)*) => {
        $(
            /// Converts a slice between float32 and a 16-bit float type, element by element.
            ///
            /// # Safety
            /// `n` elements are readable and writable; the slices do not overlap.
            pub(crate) unsafe extern "C" fn $name(_: *const KernelRuntime, to: *mut $to, from: *const $from, n: i64) -> i64 {
                for at in 0..n.max(0) as usize {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let $x = from.add(at).read_unaligned();
                        to.add(at).write_unaligned($value);
                    }
                }
                STATUS_OK
            }
        )*
    };
}

scalar_conversions! {
    widen_f16: u16 => f32 = |x| f16::from_bits(x).to_f32();
    narrow_f16: f32 => u16 = |x| f16::from_f32(x).to_bits();
    widen_bf16: u16 => f32 = |x| f32::from_bits(u32::from(x) << 16);
    narrow_bf16: f32 => u16 = |x| bf16::from_f32(x).to_bits();
}

/// Returns the function that converts float16 to float32 with an instruction set.
pub fn select_f16_to_f32(isa: Isa) -> WidenFn {
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 => x86::widen_avx512,
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx2 if std::arch::is_x86_feature_detected!("f16c") => x86::widen_f16c,
        _ => widen_f16,
    }
}

/// Returns the function that converts float32 to float16 with an instruction set.
pub fn select_f32_to_f16(isa: Isa) -> NarrowFn {
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 => x86::narrow_avx512,
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx2 if std::arch::is_x86_feature_detected!("f16c") => x86::narrow_f16c,
        _ => narrow_f16,
    }
}
