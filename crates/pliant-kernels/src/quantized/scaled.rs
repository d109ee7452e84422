//! Products of 8-bit integers whose sums are finished, as loop functions call them.

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;

use super::call::operands;
use super::finish::Finish;
use super::{QuantizedGemm, pliant_gemm_int8};
use crate::epilogue::Standard;

macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $element:ty, $signed:literal) => {
        $(#[$doc])*
        ///
        /// The operands of the product as [`super::pliant_product_int8`] takes them; whether there are factors of rows, their
        /// address, and how far those of neighbouring rows are apart; whether there are factors of columns, and their address;
        /// whether there is a bias, and its address; the number of the activation and its limits
        /// ([`crate::epilogue::Activation`]); the results, whose rows are contiguous, and how far they are apart. Returns a
        /// kernel status.
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
            has_rows: i64,
            rows: *const f32,
            rows_step: i64,
            has_columns: i64,
            columns: *const f32,
            has_bias: i64,
            bias: *const f32,
            activation: i64,
            low: f64,
            high: f64,
            c: *mut f32,
            c_row: i64,
        ) -> i64 {
            let given = |has: i64, p: *const f32| if has != 0 { p } else { null() };
            let standard = Standard {
                column_scale: given(has_columns, columns),
                bias: given(has_bias, bias),
                activation,
                low,
                high,
                ..Standard::default()
            };
            let finish = Finish { rows: given(has_rows, rows), step: rows_step, standard,
                    ..Finish::default() };
            let a_zeros = (has_a_zeros, a_zeros, a_zeros_step);
            let b_zeros = (has_b_zeros, b_zeros);
            let operands = operands([m, n, k], (a.cast(), a_row, $signed), (b, width, sums), a_zeros, b_zeros);
            let product = QuantizedGemm {
                // Sums are written where they become float32.
                c: c.cast(),
                c_row,
                has_epilogue: 1,
                epilogue: finish.epilogue(),
                ..operands
            };
            // SAFETY: the caller's promise; the epilogue's operands live until the product is there.
            unsafe { pliant_gemm_int8(runtime, &raw const product) }
        }
    };
}

product! {
    /// Product of int8 by int8 as float32.
    pliant_product_int8_f32, i8, 1
}

product! {
    /// Product of uint8 by int8 as float32.
    pliant_product_uint8_f32, u8, 0
}
