//! Products by constants of fewer bits as loop functions call them: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;

use super::{Format, NarrowGemm, pliant_gemm_narrow};

macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $element:ty, $format:expr) => {
        $(#[$doc])*
        ///
        /// Rows, columns and inner size; the left operand, whose rows are contiguous, and how far they are apart; the panels of
        /// the right operand and the columns of one; how many rows of it share a scale, the scales and whether there are zero
        /// points, and those, in panels of float32; the results, whose rows are contiguous, and how far they are apart. Returns
        /// a kernel status.
        ///
        /// # Safety
        /// As for [`super::run`]; the address of what is not there is not used.
        pub unsafe extern "C" fn $name(
            runtime: *const KernelRuntime,
            m: i64,
            n: i64,
            k: i64,
            a: *const f32,
            a_row: i64,
            b: *const $element,
            width: i64,
            group: i64,
            scales: *const f32,
            has_zeros: i64,
            zeros: *const f32,
            c: *mut f32,
            c_row: i64,
        ) -> i64 {
            let zeros = if has_zeros != 0 { zeros } else { null() };
            let (format, b) = ($format, b.cast());
            let g = NarrowGemm { m, n, k, a, a_row, format, b, width, group, scales, zeros, c, c_row };
            // SAFETY: the caller's promise.
            unsafe { pliant_gemm_narrow(runtime, &g) }
        }
    };
}

product! {
    /// Product by int8.
    pliant_product_bytes_f32, i8, Format::Bytes
}

product! {
    /// Product by numbers from 0 to 15.
    pliant_product_nibbles_f32, u8, Format::Nibbles
}

/// Product by bfloat16: as [`pliant_product_bytes_f32`], without scales and zero points.
///
/// # Safety
/// As for [`super::run`].
pub unsafe extern "C" fn pliant_product_bfloat16_f32(
    runtime: *const KernelRuntime,
    m: i64,
    n: i64,
    k: i64,
    a: *const f32,
    a_row: i64,
    b: *const u16,
    width: i64,
    c: *mut f32,
    c_row: i64,
) -> i64 {
    let (format, b, group) = (Format::BFloat16, b.cast(), i64::MAX);
    let (scales, zeros) = (null(), null());
    let g = NarrowGemm { m, n, k, a, a_row, format, b, width, group, scales, zeros, c, c_row };
    // SAFETY: the caller's promise.
    unsafe { pliant_gemm_narrow(runtime, &g) }
}
