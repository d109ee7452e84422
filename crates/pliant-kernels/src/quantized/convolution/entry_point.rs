//! The entry point of the declared kernel `conv_int8`.

use std::ptr::null_mut;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::conv_int8::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_tensor::DType;

use super::{Convolution, run};
use crate::convolution::shape_and_strides::Counts;
use crate::kernel_entry_points::Implementation;
use crate::quantized::IntegerEpilogue;
use crate::quantized::matmul_entry_point::{data, float_epilogue, requantization};
use pliant_machine::isa::isa;

/// The implementation of the kernel `conv_int8`.
pub struct Int8Conv;

impl Implementation for Int8Conv {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let out = call.operand("out").expect("a checked call has all required operands");
        let epilogue = IntegerEpilogue {
            terms: data(call, "terms"),
            row_scales: data(call, "scale"),
            row_scales_stride: 0,
            float: float_epilogue(call, "filter_scales"),
            // SAFETY: guaranteed by the caller for the operands.
            requantization: unsafe { requantization(call, sizes.get("filters")) },
        };
        let convolution = Convolution {
            counts: counts(call, sizes),
            x: data(call, "x"),
            signed: call.operand("x").is_some_and(|view| view.dtype == DType::Int8),
            x_zero: data(call, "x_zero"),
            weights: data(call, "weight"),
            width: call.int("panel_width"),
            sums: data(call, "filter_sums"),
            w_zeros: data(call, "weight_zeros"),
            out: if epilogue.requantization.is_some() { null_mut() } else { out.data.cast() },
            epilogue: (out.dtype != DType::Int32).then_some(epilogue),
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory; the instructions are those of the
        // machine.
        unsafe { run(isa(), runtime, &convolution) }
    }
}

fn counts(call: &Call, sizes: &Sizes) -> Counts {
    let size = |name| sizes.get(name);
    let three = |name| {
        call.ints(name).try_into().expect("the kernel declares three numbers for this attribute")
    };
    Counts {
        batch: size("batch"),
        channels: size("channels"),
        filters: size("filters"),
        groups: call.int("groups"),
        input: ["in_depth", "in_height", "in_width"].map(size),
        output: ["out_depth", "out_height", "out_width"].map(size),
        kernel: three("kernel_shape"),
        stride: three("strides"),
        dilation: three("dilations"),
        before: three("padding"),
    }
}
