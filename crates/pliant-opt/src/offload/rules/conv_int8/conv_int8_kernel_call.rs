//! Creates the call of the kernel `conv_int8`.

use pliant_ir::AttrValue;
use pliant_ir::relax::Function;
use pliant_ir::relax::kernel_call::{NEW_AXIS, NewKernelCall};
use pliant_kernel_api::kernels::conv_int8::KERNEL;

use super::conv_int8_matcher::ConvolutionWithEpilogue;
use crate::offload::int8_epilogue::IntegerEpilogue;
use crate::offload::kernel_attributes::KernelAttributes;
use crate::offload::rules::matmul_int8::pack_constant_operand::PackedWeights;

/// Creates the kernel call for a convolution and its epilogue.
pub(super) fn kernel_call(
    func: &mut Function,
    matched: &ConvolutionWithEpilogue,
    weights: &PackedWeights,
) -> NewKernelCall {
    let c = &matched.convolution;
    let width = if c.is_depthwise() { 1 } else { weights.quads.shape()[2] };
    let padding_before: Vec<i64> = c.pads.iter().map(|pad| pad.0).collect();
    let missing = || std::iter::repeat_n(NEW_AXIS, 3 - c.dims);
    let axes = || std::iter::once(0).chain(missing()).chain(1..c.dims as i64 + 2);
    let call = NewKernelCall::new(&KERNEL)
        .operand("x", c.x)
        .optional("x_zero", c.zero)
        .operand("weight", func.constant(weights.quads.clone()))
        .operand("filter_sums", func.constant(weights.sums.clone()))
        .optional("weight_zeros", weights.zeros.clone().map(|zeros| func.constant(zeros)))
        .axes("x", axes())
        .axes("out", axes())
        .attribute("groups", AttrValue::Int(c.groups))
        .attribute("panel_width", AttrValue::Int(width))
        .window(&c.filter_size, &c.strides, &c.dilation, &padding_before);
    match &matched.epilogue {
        Some(epilogue) => add_epilogue(call, epilogue),
        None => call,
    }
}

/// Adds the operands and attributes of an epilogue to the kernel call.
fn add_epilogue(call: NewKernelCall, f: &IntegerEpilogue) -> NewKernelCall {
    let call = call
        .optional("terms", f.terms)
        .optional("scale", f.rows)
        .optional("filter_scales", f.columns)
        .optional("bias", f.bias);
    let call = f.activation.attributes(call);
    match &f.requantization {
        Some(requantization) => call
            .optional("out_scale", requantization.divisor)
            .optional("out_zero", requantization.shift)
            .float("out_low", requantization.limits.0)
            .float("out_high", requantization.limits.1),
        None => call,
    }
}
