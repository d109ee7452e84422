//! Products of 8-bit integers as loop functions call them: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use std::ptr::{null, null_mut};

use pliant_exec::abi::KernelRuntime;

use super::{QuantizedGemm, pliant_epilogue_int32, pliant_gemm_int8};
use crate::epilogue::Epilogue;

/// A product of these operands without results: sizes; the left operand, its rows and whether it is signed; the right one with its
/// columns of a panel and sums; zero points of the left one and of columns, which are there or not.
pub(super) fn operands(
    [m, n, k]: [i64; 3],
    (a, a_row, a_signed): (*const u8, i64, i64),
    (b, width, sums): (*const i8, i64, *const i32),
    (has_a_zeros, a_zeros, a_zeros_step): (i64, *const i32, i64),
    (has_b_zeros, b_zeros): (i64, *const i32),
) -> QuantizedGemm {
    QuantizedGemm {
        m,
        n,
        k,
        a,
        a_row,
        a_signed,
        a_zeros: if has_a_zeros != 0 { a_zeros } else { null() },
        a_zeros_step,
        b,
        width,
        sums,
        b_zeros: if has_b_zeros != 0 { b_zeros } else { null() },
        c: null_mut(),
        c_row: 0,
        has_epilogue: 0,
        epilogue: Epilogue { function: pliant_epilogue_int32, operands: null() },
    }
}

macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $element:ty, $signed:literal) => {
        $(#[$doc])*
        ///
        /// Rows, columns and inner size; the left operand, whose rows are contiguous, and how far they are apart; whether it
        /// has zero points, their address, and how far those of neighbouring rows are apart; the right operand in quads
        /// ([`super::pack_quads`]), the columns of a panel and the sums of the columns; whether columns have zero points,
        /// and their address; the results, whose rows are contiguous, and how far they are apart. Returns a kernel status.
        ///
        /// # Safety
        /// As for [`pliant_gemm_int8`]; the addresses of what is not there are not used.
        pub unsafe extern "C" fn $name(
            runtime: *const KernelRuntime,
            m: i64,
            n: i64,
            k: i64,
            a: *const $element,
            a_row: i64,
            has_a_zeros: i64,
            a_zeros: *const i32,
            a_zeros_step: i64,
            b: *const i8,
            width: i64,
            sums: *const i32,
            has_b_zeros: i64,
            b_zeros: *const i32,
            c: *mut i32,
            c_row: i64,
        ) -> i64 {
            let a_zeros = (has_a_zeros, a_zeros, a_zeros_step);
            let b_zeros = (has_b_zeros, b_zeros);
            let operands = operands([m, n, k], (a.cast(), a_row, $signed), (b, width, sums), a_zeros, b_zeros);
            let product = QuantizedGemm {
                // Empty results may have any address.
                c: if c.is_null() { null_mut::<i32>().wrapping_add(1) } else { c },
                c_row,
                ..operands
            };
            // SAFETY: the caller's promise.
            unsafe { pliant_gemm_int8(runtime, &raw const product) }
        }
    };
}

product! {
    /// Product of int8 by int8.
    pliant_product_int8, i8, 1
}

product! {
    /// Product of uint8 by int8.
    pliant_product_uint8, u8, 0
}
