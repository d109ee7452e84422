//! Creates the calls of the kernel `conv`: one call in the graph function, or, for a transposed convolution, a loop function with
//! one call for each phase (subset of the results that one ordinary convolution computes). The phases write interleaved results.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::{AttrValue, DType};
use pliant_kernel_api::kernels::conv::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor, TensorView};
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Winograd;

use super::conv_matcher::Convolution;
use super::transposed_conv_phases::Phase;
use crate::common::image_layout_attributes::kernel_image_axes;
use crate::offload::kernel_attributes::KernelAttributes;

/// Creates the kernel call for a convolution with packed weights. `width` is the value of the kernel attribute `panel_width`,
/// which describes the format of the packed weights.
pub(super) fn graph_call(
    c: &Convolution,
    weights: RelaxExpr,
    width: i64,
    bias: Option<RelaxExpr>,
) -> NewKernelCall {
    let images = || kernel_image_axes(c.dims, c.channels_last);
    let mut call = NewKernelCall::new(&KERNEL)
        .operand("x", c.x)
        .operand("weight", weights)
        .optional("bias", bias)
        .optional("residual", c.residual)
        .axes("x", images())
        .axes("out", images());
    if c.residual.is_some() {
        call = call.axes("residual", images());
    }
    attributes(call, c, width)
}

/// Sets the attributes of a call of the kernel `conv` that computes the convolution `c`. `width` is the value of the attribute
/// `panel_width`, which describes the format of the packed weights.
fn attributes<C: KernelAttributes>(call: C, c: &Convolution, width: i64) -> C {
    let padding_before: Vec<i64> = c.pads.iter().map(|p| p.0).collect();
    let winograd = match c.active_winograd() {
        None => "none",
        Some(Winograd::Two) => "2x2",
        Some(Winograd::Four) => "4x4",
    };
    let call = call
        .attribute("groups", AttrValue::Int(c.groups))
        .attribute("panel_width", AttrValue::Int(width))
        .window(&c.filter_size, &c.strides, &c.dilation, &padding_before);
    c.activation.attributes(call).text("winograd", winograd)
}

/// Creates the loop function of a transposed convolution and a call of it. `weights` contains, for each phase, (packed weights,
/// value of the kernel attribute `panel_width`).
pub(super) fn transposed_call(
    func: &mut Function,
    c: &Convolution,
    output_padding: &[i64],
    phases: &[Phase],
    weights: &[(RelaxExpr, i64)],
    bias: Option<RelaxExpr>,
) -> Result<TirCall, LegalizeError> {
    let mut operands = vec![c.x];
    operands.extend(weights.iter().map(|(weights, _)| weights));
    operands.extend(bias);
    let name = format!("conv{}d_transpose_packed", c.dims);
    te_call(func, &name, &operands, |t| {
        let shape = result_shape(c, output_padding, &t[0]);
        let (panels, bias) = t[1..].split_at(weights.len());
        let write = |b: &mut te::Body, out: &[Tensor]| {
            for ((phase, (_, width)), weights) in phases.iter().zip(weights).zip(panels) {
                let call = te::KernelCall::new(&KERNEL)
                    .operand("x", image_view(c, &t[0]))
                    .operand("weight", weights)
                    .optional("bias", bias.first())
                    .operand("out", phase_view(phase, &out[0]));
                b.evaluate(attributes(call, &phase.convolution, *width).finish());
            }
        };
        Ok(te::extern_(&name, &[(shape, DType::Float32)], write))
    })
}

/// Returns the shape of the result of a transposed convolution.
fn result_shape(c: &Convolution, output_padding: &[i64], x: &Tensor) -> Vec<Expr> {
    let first = if c.channels_last { 1 } else { 2 };
    let sizes = x.shape()[first..first + c.dims].iter().enumerate().map(|(k, size)| {
        let extent = (c.filter_size[k] - 1) * c.dilation[k];
        let rest = extent + 1 + output_padding[k] - c.pads[k].0 - c.pads[k].1;
        (size - te::int(1)) * te::int(c.strides[k]) + te::int(rest)
    });
    let mut shape = vec![x.shape()[0].clone()];
    shape.extend(sizes);
    shape.insert(if c.channels_last { 1 + c.dims } else { 1 }, te::int(c.filters));
    shape
}

/// Returns a view of an image tensor with the dims (batch, channels, depth, height, width).
fn image_view<'a>(c: &Convolution, tensor: &'a Tensor) -> TensorView<'a> {
    TensorView::from(tensor).with_axes(&kernel_image_axes(c.dims, c.channels_last))
}

/// Returns a view of the results that one phase of a transposed convolution writes. A phase is the subset of the results that one
/// ordinary convolution computes.
fn phase_view<'a>(p: &Phase, out: &'a Tensor) -> TensorView<'a> {
    let c = &p.convolution;
    let mut view = image_view(c, out);
    for k in 0..c.dims {
        let (axis, first, step) = (5 - c.dims + k, p.first[k], p.step[k]);
        if step > 1 || first > 0 {
            let size = &view.dims()[axis] + te::int(step - 1 - first);
            view = view.slice(axis, first, step, te::floordiv(&size, &te::int(step)));
        }
    }
    view
}
