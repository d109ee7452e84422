//! The entry point of the declared kernel `matmul_int8`.

use std::ptr::{dangling_mut, null, null_mut};

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::matmul_int8::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_tensor::DType;

use super::{IntegerEpilogue, QuantizedGemm, Requantization, run};
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

/// Returns the parameters by which a call requantizes float32 results to 8-bit integers; `None` if
/// the results are not 8-bit integers. `row_stride` is the stride between rows of the results.
///
/// # Safety
/// The operands are readable.
pub(super) unsafe fn requantization(call: &Call, row_stride: i64) -> Option<Requantization> {
    let number = |name: &str, default: f32| match data::<f32>(call, name) {
        p if p.is_null() => default,
        // SAFETY: guaranteed by the caller; the check ensures an aligned address.
        p => unsafe { p.read() },
    };
    let out = call.operand("out").expect("a checked call has all required operands");
    matches!(out.dtype, DType::Int8 | DType::UInt8).then(|| Requantization {
        divisor: number("out_scale", 1.0),
        zero: number("out_zero", 0.0),
        limits: (call.float("out_low") as f32, call.float("out_high") as f32),
        signed: out.dtype == DType::Int8,
        out: (out.data.cast(), row_stride),
    })
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
            terms: data(call, "terms"),
            row_scales: data(call, "row_scales"),
            row_scales_stride: stride("row_scales"),
            float: float_epilogue(call, "column_scales"),
            // SAFETY: guaranteed by the caller for the operands.
            requantization: unsafe { requantization(call, sizes.get("columns")) },
        };
        let sums = match epilogue.requantization {
            Some(_) => null_mut(),
            // Sums are converted to float32 in place. The address of empty results may be null.
            None if out.data.is_null() => dangling_mut(),
            None => out.data.cast(),
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
            c: sums,
            c_row: sizes.get("columns"),
            epilogue: (out.dtype != DType::Int32).then_some(epilogue),
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory; the instructions are those of the
        // machine.
        unsafe { run(isa(), runtime, &product) }
    }
}
