//! The loop function of a convolution: one call of `pliant_convolve_f32`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};

use super::found::{Activation, Convolution};

fn address(t: &Tensor) -> Expr {
    te::call(Intrin::AddressOf, vec![t.at(&vec![te::int(0); t.ndim()])])
}

/// Sizes of the spatial dims of an image, ones before them.
fn three(list: Vec<Expr>, fill: i64) -> Vec<Expr> {
    let missing = 3 - list.len();
    (0..missing).map(|_| te::int(fill)).chain(list).collect()
}

fn numbers(list: &[i64], fill: i64) -> Vec<Expr> {
    three(list.iter().map(|&v| te::int(v)).collect(), fill)
}

/// The spatial sizes of an image.
fn spatial(c: &Convolution, shape: &[Expr]) -> Vec<Expr> {
    let first = if c.last { 1 } else { 2 };
    shape[first..first + c.dims].to_vec()
}

/// From batch to batch, channel to channel and along three dims.
fn strides(c: &Convolution, shape: &[Expr]) -> Vec<Expr> {
    let after = |at: usize| shape[at + 1..].iter().fold(te::int(1), |acc, d| acc * d);
    let (channel, first) = if c.last { (c.dims + 1, 1) } else { (1, 2) };
    let along = (0..c.dims).map(|k| after(first + k)).collect();
    let mut out = vec![after(0), after(channel)];
    out.extend(three(along, 0));
    out
}

/// The shape of the results.
fn results(c: &Convolution, x: &Tensor) -> Vec<Expr> {
    let sizes = spatial(c, x.shape());
    let counts = sizes.iter().enumerate().map(|(k, size)| {
        let reach = (c.kernel[k] - 1) * c.dilation[k];
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

/// The loop function and how it is called.
pub(super) fn call(
    func: &mut Function,
    c: &Convolution,
    weights: RelaxExpr,
    bias: Option<RelaxExpr>,
) -> Result<TirCall, LegalizeError> {
    let mut operands = vec![c.x, weights];
    operands.extend(bias);
    operands.extend(c.residual);
    let name = format!("conv{}d_packed", c.dims);
    te_call(func, &name, &operands, |t| {
        let shape = results(c, &t[0]);
        let write = |b: &mut te::Body, out: &[Tensor]| b.evaluate(kernel(c, t, &out[0]));
        Ok(te::extern_(&name, &[(shape, DType::Float32)], write))
    })
}

/// The call of the kernel.
fn kernel(c: &Convolution, t: &[Tensor], out: &Tensor) -> Expr {
    let (x, weights) = (&t[0], &t[1]);
    let bias = c.bias.as_ref().map(|_| &t[2]);
    let residual = c.residual.map(|_| &t[t.len() - 1]);
    let mut args = vec![te::string("pliant_convolve_f32"), x.shape()[0].clone()];
    args.extend([c.channels, c.filters, c.groups].map(te::int));
    args.extend(three(spatial(c, x.shape()), 1));
    args.extend(three(spatial(c, out.shape()), 1));
    for list in [&c.kernel, &c.strides, &c.dilation] {
        args.extend(numbers(list, 1));
    }
    let before: Vec<i64> = c.pads.iter().map(|p| p.0).collect();
    args.extend(numbers(&before, 0));
    args.push(address(x));
    args.extend(strides(c, x.shape()));
    args.push(address(weights));
    args.push(if c.is_depthwise() { te::int(1) } else { weights.shape()[2].clone() });
    args.push(address(out));
    let places = strides(c, out.shape());
    args.extend(places.iter().cloned());
    args.push(te::int(i64::from(bias.is_some())));
    // What is not there has the address of something that is.
    args.push(address(bias.unwrap_or(weights)));
    args.push(te::int(i64::from(residual.is_some())));
    args.push(address(residual.unwrap_or(weights)));
    let (batch, row) = if residual.is_some() {
        (places[0].clone(), te::int(c.filters))
    } else {
        (te::int(0), te::int(0))
    };
    args.extend([batch, row]);
    let (number, low, high) = match c.activation {
        Activation::None => (0, 0.0, 0.0),
        Activation::Relu => (1, 0.0, 0.0),
        Activation::Clip(low, high) => (2, low, high),
    };
    args.push(te::int(number));
    args.extend([low, high].map(|v| te::const_of(v, DType::Float64)));
    args.push(te::int(i64::from(c.is_winograd())));
    te::call_typed(Intrin::CallExtern, args, Ty::I64)
}
