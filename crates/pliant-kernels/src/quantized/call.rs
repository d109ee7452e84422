//! The declared kernel `matmul_int8`.

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::matmul_int8::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_tensor::DType;

use super::finish::Finish;
use super::{QuantizedGemm, pliant_epilogue_int32, pliant_gemm_int8};
use crate::entry::Implementation;
use crate::epilogue::{Epilogue, Standard};

/// The address of an operand's first element; null if it is absent.
pub(super) fn data<T>(call: &Call, name: &str) -> *const T {
    call.operand(name).map_or(null(), |view| view.data.cast_const().cast())
}

/// The bias, column factors and activation of a call.
pub(super) fn standard(call: &Call, scales: &str) -> Standard {
    Standard {
        column_scale: data(call, scales),
        bias: data(call, "bias"),
        activation: call.int("activation"),
        low: call.float("low"),
        high: call.float("high"),
        slope: call.float("slope"),
        offset: call.float("offset"),
        ..Standard::default()
    }
}

/// Products of 8-bit integers.
pub struct Int8Product;

impl Implementation for Int8Product {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let step = |name: &str| call.operand(name).map_or(0, |view| view.strides()[0]);
        let out = call.operand("out").expect("the operand is required");
        let signed = call.operand("x").is_some_and(|view| view.dtype == DType::Int8);
        let finish = Finish {
            rows: data(call, "row_scales"),
            step: step("row_scales"),
            standard: standard(call, "column_scales"),
            ..Finish::default()
        };
        let floats = out.dtype == DType::Float32;
        let plain = Epilogue { function: pliant_epilogue_int32, operands: null() };
        let product = QuantizedGemm {
            m: sizes.get("*rows"),
            n: sizes.get("columns"),
            k: sizes.get("inner"),
            a: data(call, "x"),
            a_row: sizes.get("inner"),
            a_signed: i64::from(signed),
            a_zeros: data(call, "x_zeros"),
            a_zeros_step: step("x_zeros"),
            b: data(call, "weight"),
            width: sizes.get("width"),
            sums: data(call, "column_sums"),
            b_zeros: data(call, "weight_zeros"),
            // Sums are converted to float32 at their destination. Empty results may have any
            // address.
            c: if out.data.is_null() { std::ptr::dangling_mut() } else { out.data.cast() },
            c_row: sizes.get("columns"),
            has_epilogue: i64::from(floats),
            epilogue: if floats { finish.epilogue() } else { plain },
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory; the epilogue's
        // operands are valid until the product is complete.
        unsafe { pliant_gemm_int8(runtime, &raw const product) }
    }
}
