//! The loop function of a convolution of integers: one call of the kernel `conv_int8`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_kernel_api::kernels::conv_int8::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor, TensorView};
use pliant_ops::{LegalizeError, te_call};

use super::matcher::{Convolution, Finished};
use crate::offload::integer_sums::Finish;
use crate::offload::rules::conv::kernel::window;
use crate::offload::rules::matmul_int8::weights::Weights;

/// The view of images, whose channels are last, with three spatial dims.
fn images<'a>(c: &Convolution, tensor: &'a Tensor) -> TensorView<'a> {
    (c.dims..3).fold(TensorView::from(tensor), |view, _| view.unsqueeze(1))
}

/// The sizes of the results.
fn sizes(c: &Convolution, x: &Tensor) -> Vec<Expr> {
    let size = |k: usize| {
        let reach = (c.kernel[k] - 1) * c.dilation[k];
        let last = &x.shape()[1 + k] + te::int(c.pads[k].0 + c.pads[k].1 - reach - 1);
        te::floordiv(&last, &te::int(c.strides[k])) + te::int(1)
    };
    (0..c.dims).map(size).collect()
}

/// What finishes the sums, in the order of the operands.
fn operands_of(f: &Finish) -> [(&'static str, Option<RelaxExpr>); 6] {
    let (divisor, shift) = f.bytes.as_ref().map_or((None, None), |b| (b.divisor, b.shift));
    [
        ("terms", f.terms),
        ("scale", f.rows),
        ("filter_scales", f.columns),
        ("bias", f.bias),
        ("out_scale", divisor),
        ("out_zero", shift),
    ]
}

/// The loop function and how it is called.
pub(super) fn call(
    func: &mut Function,
    found: &Finished,
    weights: &Weights,
) -> Result<TirCall, LegalizeError> {
    let (c, finish) = (&found.convolution, found.finish.as_ref());
    let mut operands = vec![c.x];
    operands.extend(c.zero);
    let quads = operands.len();
    operands.push(func.constant(weights.quads.clone()));
    operands.push(func.constant(weights.sums.clone()));
    operands.extend(weights.zeros.clone().map(|z| func.constant(z)));
    let first = operands.len();
    operands.extend(finish.map(operands_of).into_iter().flatten().filter_map(|(_, e)| e));
    let what = format!("conv{}d_int8", c.dims);
    te_call(func, &what, &operands, |t| {
        let x = &t[0];
        let mut shape = vec![x.shape()[0].clone()];
        shape.extend(sizes(c, x));
        shape.push(te::int(c.filters));
        let dtype = match finish {
            None => DType::Int32,
            Some(f) => f.bytes.as_ref().map_or(DType::Float32, |b| b.dtype),
        };
        Ok(te::extern_(&what, &[(shape, dtype)], |b, out| {
            let width = if c.is_depthwise() { te::int(1) } else { t[quads].shape()[2].clone() };
            let before: Vec<i64> = c.pads.iter().map(|pad| pad.0).collect();
            let mut call = te::KernelCall::new(&KERNEL)
                .operand("x", images(c, x))
                .optional("x_zero", c.zero.map(|_| TensorView::from(&t[1]).scalar()))
                .operand("weight", TensorView::from(&t[quads]).flatten())
                .operand("filter_sums", &t[quads + 1])
                .optional("weight_zeros", t[..first].get(quads + 2))
                .operand("out", images(c, &out[0]))
                .attr("groups", &[te::int(c.groups)])
                .attr("panel_width", &[width]);
            call = window(call, &c.kernel, &c.strides, &c.dilation, &before);
            if let Some(f) = finish {
                let given = operands_of(f).into_iter().filter(|(_, e)| e.is_some());
                for ((name, _), tensor) in given.zip(&t[first..]) {
                    let view = TensorView::from(tensor);
                    let scalar = matches!(name, "scale" | "out_scale" | "out_zero");
                    call = call.operand(name, if scalar { view.scalar() } else { view.flatten() });
                }
                call = f.activation.attributes(call);
                if let Some(bytes) = &f.bytes {
                    let limit = |v: f64| te::const_of(v, DType::Float64);
                    call = call
                        .attr("out_low", &[limit(bytes.limits.0)])
                        .attr("out_high", &[limit(bytes.limits.1)]);
                }
            }
            b.evaluate(call.finish());
        }))
    })
}
