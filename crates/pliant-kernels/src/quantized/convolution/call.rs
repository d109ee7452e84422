//! Convolutions of 8-bit integers as loop functions call them: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use std::ptr::{null, null_mut};

use pliant_exec::abi::KernelRuntime;

use super::{Bytes, Convolution, Finish, run};
use crate::convolution::shape::Counts;
use crate::epilogue::Standard;
use crate::isa::isa;

/// An address, or none where a number is 0.
fn given<T>(has: i64, p: *const T) -> *const T {
    if has != 0 { p } else { null() }
}

/// The number at an address, or another one where there is none.
///
/// # Safety
/// What is there is readable.
unsafe fn number(has: i64, p: *const f32, other: f32) -> f32 {
    // SAFETY: the caller's promise.
    if has != 0 { unsafe { p.read_unaligned() } } else { other }
}

/// An entry point: the type of the input and whether it is signed; that of the results; the arguments of what becomes of the sums,
/// and how they make it and where sums are written.
macro_rules! convolve {
    ($(#[$doc:meta])* $name:ident, ($x:ty, $signed:literal) -> $out:ty, ($($arg:ident: $ty:ty),*), |$to:ident| $finish:expr) => {
        $(#[$doc])*
        ///
        /// Sizes as [`crate::convolution::Convolution`] has them: batches, channels, filters and groups, then three numbers each
        /// for the input, the results, the kernel, strides, dilations and what is before the input. The input, which is dense with
        /// its channels last; whether it has a zero point, and its address. The weights in quads ([`crate::quantized::pack_quads`])
        /// of each group, or taps by channels where each channel has a filter of its own; columns of a panel; sums of the filters'
        /// weights; whether filters have zero points, and their address. What becomes of the sums, each with whether it is there:
        /// terms of the filters before the cast to float32, one factor of all, factors of the filters, a bias; the number of the
        /// activation and its limits; for bytes, what they are divided by, the zero point that is added to what is rounded, and
        /// the limits of that. The results, as the input. Returns a kernel status.
        ///
        /// # Safety
        /// The runtime lives; all addressed elements are valid, and all of each panel; the results overlap no operand; the
        /// addresses of what is not there are not used.
        pub unsafe extern "C" fn $name(
            runtime: *const KernelRuntime,
            batch: i64,
            channels: i64,
            filters: i64,
            groups: i64,
            input_0: i64,
            input_1: i64,
            input_2: i64,
            output_0: i64,
            output_1: i64,
            output_2: i64,
            kernel_0: i64,
            kernel_1: i64,
            kernel_2: i64,
            stride_0: i64,
            stride_1: i64,
            stride_2: i64,
            dilation_0: i64,
            dilation_1: i64,
            dilation_2: i64,
            before_0: i64,
            before_1: i64,
            before_2: i64,
            x: *const $x,
            has_zero: i64,
            zero: *const i32,
            weights: *const i8,
            width: i64,
            sums: *const i32,
            has_w_zeros: i64,
            w_zeros: *const i32,
            $($arg: $ty,)*
            out: *mut $out,
        ) -> i64 {
            let counts = Counts {
                batch,
                channels,
                filters,
                groups,
                input: [input_0, input_1, input_2],
                output: [output_0, output_1, output_2],
                kernel: [kernel_0, kernel_1, kernel_2],
                stride: [stride_0, stride_1, stride_2],
                dilation: [dilation_0, dilation_1, dilation_2],
                before: [before_0, before_1, before_2],
            };
            let $to = (out, filters);
            let (out, finish): (*mut i32, Option<Finish>) = $finish;
            let convolution = Convolution {
                counts,
                x: x.cast(),
                signed: $signed,
                x_zero: given(has_zero, zero),
                weights,
                width,
                sums,
                w_zeros: given(has_w_zeros, w_zeros),
                out,
                finish,
            };
            // SAFETY: the caller's promise; the instructions are those of the machine.
            unsafe { run(isa(), &*runtime, &convolution) }
        }
    };
}

/// Whose results are sums.
macro_rules! sums {
    ($(#[$doc:meta])* $name:ident, $x:tt) => {
        convolve! { $(#[$doc])* $name, $x -> i32, (), |to| (to.0, None) }
    };
}

/// Whose results are finished: as float32, or as bytes.
macro_rules! finished {
    ($(#[$doc:meta])* $name:ident, $x:tt -> $out:ty, ($($arg:ident: $ty:ty),*), |$to:ident, $f:ident| $finish:expr) => {
        convolve! {
            $(#[$doc])* $name, $x -> $out,
            (has_terms: i64, terms: *const i32, has_scale: i64, scale: *const f32, has_columns: i64, columns: *const f32,
             has_bias: i64, bias: *const f32, activation: i64, low: f64, high: f64 $(, $arg: $ty)*),
            |$to| {
                let standard = Standard {
                    column_scale: given(has_columns, columns),
                    bias: given(has_bias, bias),
                    activation,
                    low,
                    high,
                    ..Standard::default()
                };
                let $f = Finish {
                    sums: given(has_terms, terms),
                    rows: given(has_scale, scale),
                    standard,
                    ..Finish::default()
                };
                $finish
            }
        }
    };
}

macro_rules! floats {
    ($(#[$doc:meta])* $name:ident, $x:tt) => {
        finished! { $(#[$doc])* $name, $x -> f32, (), |to, f| (to.0.cast(), Some(f)) }
    };
}

macro_rules! bytes {
    ($(#[$doc:meta])* $name:ident, $x:tt -> ($out:ty, $signed:literal)) => {
        finished! {
            $(#[$doc])* $name, $x -> $out,
            (has_divisor: i64, divisor: *const f32, has_shift: i64, shift: *const f32, least: f64, most: f64),
            |to, f| {
                // SAFETY: the caller's promise.
                let divisor = unsafe { number(has_divisor, divisor, 1.0) };
                // SAFETY: the same.
                let zero = unsafe { number(has_shift, shift, 0.0) };
                let bytes = Bytes {
                    divisor,
                    zero,
                    limits: (least as f32, most as f32),
                    signed: $signed,
                    out: (to.0.cast(), to.1),
                };
                (null_mut(), Some(Finish { bytes: Some(bytes), ..f }))
            }
        }
    };
}

sums! {
    /// Convolution of int8 with sums of int32.
    pliant_convolve_int8, (i8, true)
}
sums! {
    /// Convolution of uint8 with sums of int32.
    pliant_convolve_uint8, (u8, false)
}
floats! {
    /// Convolution of int8 as float32.
    pliant_convolve_int8_f32, (i8, true)
}
floats! {
    /// Convolution of uint8 as float32.
    pliant_convolve_uint8_f32, (u8, false)
}
bytes! {
    /// Convolution of int8 as int8.
    pliant_convolve_int8_int8, (i8, true) -> (i8, true)
}
bytes! {
    /// Convolution of int8 as uint8.
    pliant_convolve_int8_uint8, (i8, true) -> (u8, false)
}
bytes! {
    /// Convolution of uint8 as int8.
    pliant_convolve_uint8_int8, (u8, false) -> (i8, true)
}
bytes! {
    /// Convolution of uint8 as uint8.
    pliant_convolve_uint8_uint8, (u8, false) -> (u8, false)
}
