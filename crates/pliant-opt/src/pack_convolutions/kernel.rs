//! The loop function of a convolution: a call of `pliant_convolve_f32` for each of its phases.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{BinOp, Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};

use super::found::{Convolution, Weights};
use super::given;
use super::phases::Phase;
use crate::kernels::address;

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
                    Weights::Given(g) => given::packed(b, &phase.convolution, g, weights),
                };
                b.evaluate(kernel(phase, (&t[0], &packed, others), &out[0]));
            }
        };
        Ok(te::extern_(&name, &[(shape, DType::Float32)], write))
    })
}

/// Where the results of a phase begin, their sizes, and their strides.
fn places(p: &Phase, out: &Tensor) -> (Expr, Vec<Expr>, Vec<Expr>) {
    let c = &p.convolution;
    let (mut sizes, mut strides) = (spatial(c, out.shape()), strides(c, out.shape()));
    let mut first = vec![te::int(0); out.ndim()];
    for k in 0..c.dims {
        let (at, step) = (te::int(p.first[k]), te::int(p.step[k]));
        if p.first[k] > 0 {
            // A phase without results begins where there is something, or nowhere.
            let last = te::binary(BinOp::Max, &(&sizes[k] - te::int(1)), &te::int(0));
            first[k + if c.last { 1 } else { 2 }] = te::binary(BinOp::Min, &at, &last);
        }
        if p.step[k] > 1 {
            sizes[k] = te::floordiv(&(&sizes[k] + te::int(p.step[k] - 1 - p.first[k])), &step);
            let along = &mut strides[2 + 3 - c.dims + k];
            *along = &*along * step;
        }
    }
    (te::call(Intrin::AddressOf, vec![out.at(&first)]), sizes, strides)
}

/// The call of the kernel, for its input, its weights, and a bias and a residual where there are some.
fn kernel(p: &Phase, (x, weights, others): (&Tensor, &Tensor, &[Tensor]), out: &Tensor) -> Expr {
    let c = &p.convolution;
    let bias = c.bias.as_ref().map(|_| &others[0]);
    let residual = c.residual.map(|_| &others[others.len() - 1]);
    let (begin, sizes, places) = places(p, out);
    let mut args = vec![te::string("pliant_convolve_f32"), x.shape()[0].clone()];
    args.extend([c.channels, c.filters, c.groups].map(te::int));
    args.extend(three(spatial(c, x.shape()), 1));
    args.extend(three(sizes, 1));
    for list in [&c.kernel, &c.strides, &c.dilation] {
        args.extend(numbers(list, 1));
    }
    let before: Vec<i64> = c.pads.iter().map(|p| p.0).collect();
    args.extend(numbers(&before, 0));
    args.push(address(x));
    args.extend(strides(c, x.shape()));
    args.push(address(weights));
    args.push(match c {
        _ if c.is_depthwise() => te::int(1),
        _ if c.shares_panels() => te::int(c.filters / c.groups),
        _ => weights.shape()[2].clone(),
    });
    args.push(begin);
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
    args.extend(c.activation.args());
    // By how many numbers the kernels grew.
    args.push(te::int(c.turned().map_or(0, |form| form.side() as i64 - 3)));
    te::call_typed(Intrin::CallExtern, args, Ty::I64)
}
