//! The loop function of a convolution: a call of the kernel `conv` for each of its phases.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_kernel_api::kernels::conv::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor, TensorView};
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Winograd;

use super::matcher::{Convolution, Weights};
use super::non_constant;
use super::subpixel::Phase;

/// Three numbers, one for each dim of an image; `fill` for the dims that a smaller image lacks.
fn three(list: &[i64], fill: i64) -> Vec<Expr> {
    let missing = 3 - list.len();
    std::iter::repeat_n(fill, missing).chain(list.iter().copied()).map(te::int).collect()
}

/// Adds the attributes of the window that a convolution moves over an image; `before` is the padding at the start.
pub(crate) fn window<'a>(
    call: te::KernelCall<'a>,
    kernel: &[i64],
    strides: &[i64],
    dilation: &[i64],
    before: &[i64],
) -> te::KernelCall<'a> {
    call.attr("kernel_shape", &three(kernel, 1))
        .attr("strides", &three(strides, 1))
        .attr("dilations", &three(dilation, 1))
        .attr("padding", &three(before, 0))
}

/// The spatial sizes of an image.
fn spatial(c: &Convolution, shape: &[Expr]) -> Vec<Expr> {
    let first = if c.last { 1 } else { 2 };
    shape[first..first + c.dims].to_vec()
}

/// The shape of the results.
fn results(c: &Convolution, x: &Tensor) -> Vec<Expr> {
    let sizes = spatial(c, x.shape());
    let counts = sizes.iter().enumerate().map(|(k, size)| {
        let reach = (c.kernel[k] - 1) * c.dilation[k];
        if let Some(more) = &c.transposed {
            let rest = reach + 1 + more[k] - c.pads[k].0 - c.pads[k].1;
            return (size - te::int(1)) * te::int(c.strides[k]) + te::int(rest);
        }
        let last = size + te::int(c.pads[k].0 + c.pads[k].1 - reach - 1);
        te::floordiv(&last, &te::int(c.strides[k])) + te::int(1)
    });
    let mut shape = vec![x.shape()[0].clone()];
    if !c.last {
        shape.push(te::int(c.filters));
    }
    shape.extend(counts);
    if c.last {
        shape.push(te::int(c.filters));
    }
    shape
}

/// The loop function and how it is called. `weights` are the packed ones of each phase, or the operand of all.
pub(super) fn call(
    func: &mut Function,
    c: &Convolution,
    phases: &[Phase],
    weights: &[RelaxExpr],
    bias: Option<RelaxExpr>,
) -> Result<TirCall, LegalizeError> {
    let mut operands = vec![c.x];
    operands.extend(weights);
    operands.extend(bias);
    operands.extend(c.residual);
    let kind = if c.transposed.is_some() { "_transpose" } else { "" };
    let name = format!("conv{}d{kind}_packed", c.dims);
    te_call(func, &name, &operands, |t| {
        let shape = results(c, &t[0]);
        let (weights, others) = t[1..].split_at(weights.len());
        let write = |b: &mut te::Body, out: &[Tensor]| {
            for (phase, weights) in phases.iter().zip(weights.iter().cycle()) {
                let packed = match &phase.convolution.weights {
                    Weights::Constant(_) => weights.clone(),
                    Weights::Given(g) => non_constant::packed(b, &phase.convolution, g, weights),
                };
                b.evaluate(kernel(phase, (&t[0], &packed, others), &out[0]));
            }
        };
        Ok(te::extern_(&name, &[(shape, DType::Float32)], write))
    })
}

/// The view of images with the dims (batch, channels, depth, height, width).
fn images<'a>(c: &Convolution, tensor: &'a Tensor) -> TensorView<'a> {
    let mut view = TensorView::from(tensor);
    if c.last {
        let spatial = 1..=c.dims;
        view = view.permute(&[0, c.dims + 1].into_iter().chain(spatial).collect::<Vec<_>>());
    }
    (c.dims..3).fold(view, |view, _| view.unsqueeze(2))
}

/// The results of a phase.
fn results_of<'a>(p: &Phase, out: &'a Tensor) -> TensorView<'a> {
    let c = &p.convolution;
    let mut view = images(c, out);
    for k in 0..c.dims {
        let (axis, first, step) = (5 - c.dims + k, p.first[k], p.step[k]);
        if step > 1 || first > 0 {
            let size = &view.dims()[axis] + te::int(step - 1 - first);
            view = view.slice(axis, first, step, te::floordiv(&size, &te::int(step)));
        }
    }
    view
}

/// The call of the kernel, for its input, its weights, and a bias and a residual where there are some.
fn kernel(p: &Phase, (x, weights, others): (&Tensor, &Tensor, &[Tensor]), out: &Tensor) -> Expr {
    let c = &p.convolution;
    let bias = c.bias.as_ref().map(|_| &others[0]);
    let residual = c.residual.map(|_| images(c, &others[others.len() - 1]));
    let before: Vec<i64> = c.pads.iter().map(|p| p.0).collect();
    let width = match c {
        _ if c.is_depthwise() => te::int(1),
        _ if c.shares_panels() => te::int(c.filters / c.groups),
        _ => weights.shape()[2].clone(),
    };
    let call = te::KernelCall::new(&KERNEL)
        .operand("x", images(c, x))
        .operand("weight", TensorView::from(weights).flatten())
        .optional("bias", bias.map(|bias| TensorView::from(bias).flatten()))
        .optional("residual", residual)
        .operand("out", results_of(p, out))
        .attr("groups", &[te::int(c.groups)])
        .attr("panel_width", &[width]);
    let call = window(call, &c.kernel, &c.strides, &c.dilation, &before);
    let winograd = match c.turned() {
        None => "none",
        Some(Winograd::Two) => "2x2",
        Some(Winograd::Four) => "4x4",
    };
    c.activation.attributes(call).choice("winograd", winograd).finish()
}
