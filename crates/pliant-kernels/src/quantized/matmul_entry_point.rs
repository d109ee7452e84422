//! The entry point of the declared kernel `matmul_int8`.

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::matmul_int8::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_tensor::DType;

use super::{IntegerEpilogue, QuantizedGemm, run};
use crate::epilogue::Epilogue;
use crate::kernel_entry_points::Implementation;
use pliant_machine::isa::isa;

/// The address of the first element of the operand `name`; null if the call omits the operand.
pub(super) fn data<T>(call: &Call, name: &str) -> *const T {
    call.operand(name).map_or(null(), |view| view.data.cast_const().cast())
}

/// Returns the epilogue of a call with float32 results: column scales, a bias and an activation.
/// `scales` is the name of the operand that contains the scales.
pub(super) fn float_epilogue(call: &Call, scales: &str) -> Epilogue {
    Epilogue {
        column_scale: data(call, scales),
        bias: data(call, "bias"),
        ..Epilogue::of_call(call)
    }
}

/// The implementation of the kernel `matmul_int8`.
pub struct Int8Product;

impl Implementation for Int8Product {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let stride = |name: &str| call.operand(name).map_or(0, |view| view.strides()[0]);
        let out = call.operand("out").expect("a checked call has all required operands");
        let signed = call.operand("x").is_some_and(|view| view.dtype == DType::Int8);
        let epilogue = IntegerEpilogue {
            row_scales: data(call, "row_scales"),
            row_scales_stride: stride("row_scales"),
            float: float_epilogue(call, "column_scales"),
            ..IntegerEpilogue::default()
        };
        let product = QuantizedGemm {
            m: sizes.get("*rows"),
            n: sizes.get("columns"),
            k: sizes.get("inner"),
            a: data(call, "x"),
            a_row: sizes.get("inner"),
            a_signed: signed,
            a_zeros: data(call, "x_zeros"),
            a_zeros_stride: stride("x_zeros"),
            b: data(call, "weight"),
            width: sizes.get("width"),
            sums: data(call, "column_sums"),
            b_zeros: data(call, "weight_zeros"),
            // Sums are converted to float32 in place. The address of empty results may be null.
            c: if out.data.is_null() { std::ptr::dangling_mut() } else { out.data.cast() },
            c_row: sizes.get("columns"),
            epilogue: (out.dtype == DType::Float32).then_some(epilogue),
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory; the instructions are those of the
        // machine.
        unsafe { run(isa(), runtime, &product) }
    }
}
