//! Convolution as loop functions call it: numbers and addresses, whose reach the bounds checks know
//! (`pliant_tir::strided`).

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;

use super::{Convolution, Image, pliant_convolution_f32};
use crate::epilogue::{Activation, Epilogue, Matrix, Standard, pliant_epilogue_f32};

/// Bias, residual, then an activation.
fn finish(
    bias: Option<*const f32>,
    before: Option<Matrix>,
    (activation, low, high): (i64, f64, f64),
) -> Standard {
    let bias = bias.unwrap_or(null());
    let before = before.unwrap_or(Matrix::NONE);
    Standard { bias, before, activation, low, high, ..Standard::default() }
}

fn image<P>(data: P, [batch, channel]: [i64; 2], pixel: [i64; 3]) -> Image<P> {
    Image { data, batch, channel, pixel }
}

/// Convolution of float32. Sizes as in [`Convolution`]: batches, channels, filters and groups, then three numbers each for the
/// input, the results, the kernel, strides, dilations and the zeros before the input. The input by its address and its strides
/// from batch to batch, channel to channel and along the dims; the weights and the columns of their panels; the results as the
/// input. Whether there is a bias, and its address; whether there is a residual, its address and its strides from batch to
/// batch and pixel to pixel, channels being neighbours; the number of the [`Activation`] and its limits; by how many numbers the
/// kernels grew when they were turned. Returns a kernel status.
///
/// # Safety
/// As for [`pliant_convolution_f32`]; the addresses of what is not there are not used.
pub unsafe extern "C" fn pliant_convolve_f32(
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
    x: *const f32,
    x_batch: i64,
    x_channel: i64,
    x_0: i64,
    x_1: i64,
    x_2: i64,
    weights: *const f32,
    width: i64,
    out: *mut f32,
    out_batch: i64,
    out_channel: i64,
    out_0: i64,
    out_1: i64,
    out_2: i64,
    has_bias: i64,
    bias: *const f32,
    has_residual: i64,
    residual: *const f32,
    residual_batch: i64,
    residual_row: i64,
    activation: i64,
    low: f64,
    high: f64,
    winograd: i64,
) -> i64 {
    let matrix = Matrix { data: residual, batch: residual_batch, row: residual_row };
    let (bias, before) = ((has_bias != 0).then_some(bias), (has_residual != 0).then_some(matrix));
    let plain = bias.is_none() && before.is_none() && activation == Activation::None as i64;
    let standard = finish(bias, before, (activation, low, high));
    let convolution = Convolution {
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
        x: image(x, [x_batch, x_channel], [x_0, x_1, x_2]),
        weights,
        width,
        winograd,
        out: image(out, [out_batch, out_channel], [out_0, out_1, out_2]),
        has_epilogue: i64::from(!plain),
        epilogue: Epilogue {
            function: pliant_epilogue_f32,
            operands: (&raw const standard).cast(),
        },
    };
    // SAFETY: the caller's promise; the epilogue's operands live until the call returns.
    unsafe { pliant_convolution_f32(runtime, &raw const convolution) }
}
