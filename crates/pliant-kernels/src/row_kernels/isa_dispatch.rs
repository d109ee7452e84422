//! Compiles the loops of a computation for each instruction set, and selects one of the compiled
//! versions at run time.

use pliant_machine::isa::{Isa, Vectors};

/// A computation whose loops are compiled for each instruction set.
pub(super) trait Vectorized {
    /// The type of the computation's result.
    type Output;

    /// Computes the result. Implementations must be `#[inline(always)]`, so that they are compiled
    /// for the caller's instructions.
    ///
    /// # Safety
    /// The conditions that the implementation states for its `run` hold.
    unsafe fn run(self) -> Self::Output;
}

/// Runs the version of a computation that is compiled for an instruction set.
///
/// # Safety
/// The machine has the instructions of `isa`, and the conditions of [`Vectorized::run`] hold.
pub(super) unsafe fn vectorized<V: Vectorized>(isa: Isa, computation: V) -> V::Output {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match isa.vectors() {
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 if has_avx512_for_small_elements() => with_avx512(computation),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 | Vectors::Avx2 => with_avx2(computation),
            _ => computation.run(),
        }
    }
}

/// Runs a computation that is compiled for AVX2.
///
/// # Safety
/// The conditions of [`vectorized`] hold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn with_avx2<V: Vectorized>(computation: V) -> V::Output {
    // SAFETY: guaranteed by the caller.
    unsafe { computation.run() }
}

/// Runs a computation that is compiled for AVX-512.
///
/// # Safety
/// The conditions of [`vectorized`] hold.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn with_avx512<V: Vectorized>(computation: V) -> V::Output {
    // SAFETY: guaranteed by the caller.
    unsafe { computation.run() }
}

/// Whether the machine also has the AVX-512 instructions for 8-bit and 16-bit elements.
#[cfg(target_arch = "x86_64")]
fn has_avx512_for_small_elements() -> bool {
    std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512dq")
}
