//! Transposed convolutions over 1 to 3 spatial dims: the data is upsampled by the strides with zeros, and then convolved with the
//! flipped filter.

use pliant_ir::op::InferError;

use super::super::reductions::accumulator;
use super::conv::{Layouts, conv_dtype, groups};
use super::conv_gradients;
use super::sliding_window::Window;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_divisible, shared_dim, te_converted};
use crate::size_proofs;
use crate::te::{self, Expr, Tensor};
use crate::type_inference::InferCtx;

macro_rules! conv_op {
    ($name:literal, $n:literal, $data:literal, $kernel:literal) => {
        OpDecl::new(
            concat!("relax.nn.", $name),
            |ctx| infer(ctx, $n),
            concat!(
                "Transposed convolution of data ",
                $data,
                " with filters ",
                $kernel,
                " (default layouts). In the filter layout, I is the number of input channels, and O is the number of output \
                 channels per group. The result has type `out_dtype`, by default that of the operands."
            ),
        )
        .operands(&["data", "weight"])
        .attrs(&[
            ("strides", Default::Ints(&[1; $n])),
            ("padding", Default::Ints(&[0; 2 * $n])),
            ("output_padding", Default::Ints(&[0; $n])),
            ("dilation", Default::Ints(&[1; $n])),
            ("groups", Default::Int(1)),
            ("data_layout", Default::Str($data)),
            ("kernel_layout", Default::Str($kernel)),
            ("out_layout", Default::None),
            ("out_dtype", Default::None),
        ])
        .lists(&[
            ("strides", $n),
            ("padding", 2 * $n),
            ("output_padding", $n),
            ("dilation", $n),
        ])
        .te(Pattern::OutEWiseFusable, |ctx| te_transpose(ctx, $n))
        .onnx(&["ConvTranspose"])
        .errors(
            "a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, the size \
            of the result would be negative, or `output_padding` is not less than the larger of stride and dilation",
        )
        .limits(super::tensor_layouts::LAYOUT_LIMITS)
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    conv_op!("conv1d_transpose", 1, "NCW", "IOW")
        .gradient(|g| conv_gradients::conv_transpose(g, 1)),
    conv_op!("conv2d_transpose", 2, "NCHW", "IOHW")
        .gradient(|g| conv_gradients::conv_transpose(g, 2)),
    conv_op!("conv3d_transpose", 3, "NCDHW", "IODHW")
        .gradient(|g| conv_gradients::conv_transpose(g, 3)),
];

/// The output padding of each spatial dim, which is added at its end. It must be less than the larger of stride and dilation.
fn output_padding(ctx: &InferCtx<'_>, window: &Window, n: usize) -> Result<Vec<i64>, InferError> {
    let extra = ctx.ints("output_padding", n, 0)?;
    for (k, &e) in extra.iter().enumerate() {
        let limit = window.strides[k].max(window.dilation[k]);
        if e >= limit {
            return Err(ctx.error(format!(
                "output_padding is {e}, but must be less than {limit}, the larger of stride and \
                 dilation"
            )));
        }
    }
    Ok(extra)
}

fn infer(ctx: &mut InferCtx<'_>, n: usize) -> InferResult {
    let (layouts, window) = (Layouts::read(ctx, n)?, Window::read(ctx, n)?);
    let (groups, dtype) = (groups(ctx)?, conv_dtype(ctx)?);
    let extra = output_padding(ctx, &window, n)?;
    let (Some(data), Some(filter)) = (ctx.tensor(0)?.dims, ctx.tensor(1)?.dims) else {
        return Ok(ctx.tensor_type(None, Some(layouts.out.ndim()), dtype));
    };
    let channels = layouts.data.size_of(&mut ctx.func.syms, &data, 'C');
    let (out_channels, in_channels) = layouts.filter_channels(&mut ctx.func.syms, &filter);
    if shared_dim(ctx, channels, in_channels).is_none() {
        let (c, i) = (ctx.dim_text(channels), ctx.dim_text(in_channels));
        return Err(ctx.error(format!(
            "data has {c} channels, but weight reads {i} channels: {types}",
            types = operand_types(ctx)
        )));
    }
    require_divisible(
        ctx,
        in_channels,
        groups,
        "the number of input channels of weight",
        "groups",
    )?;
    let (sizes, filter_sizes) =
        (layouts.data.spatial_of(&data), layouts.filter.spatial_of(&filter));
    let mut spatial = Vec::with_capacity(n);
    for k in 0..n {
        let span = window.span(ctx, k, filter_sizes[k]);
        let (before, after) = window.pads[k];
        let syms = &mut ctx.func.syms;
        let (one, by) = (syms.int(1), syms.int(window.strides[k]));
        let rest = syms.int(1 + extra[k] - before - after);
        let gaps = syms.sub(sizes[k], one);
        let gaps = syms.mul(gaps, by);
        let full = syms.add(gaps, span);
        let size = syms.add(full, rest);
        let minus = syms.int(-1);
        if size_proofs::at_most(ctx.func, size, minus) == Some(true) {
            let size = ctx.dim_text(size);
            return Err(ctx.error(format!(
                "the padding of {before} before and {after} after a spatial dim is too large: the size of the \
                 result would be {size}"
            )));
        }
        spatial.push(size);
    }
    let syms = &mut ctx.func.syms;
    let out_channels = syms.mul(out_channels, groups);
    let batch = layouts.data.size_of(syms, &data, 'N');
    let dims = layouts.out.dims(syms, ('N', batch), out_channels, &spatial);
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

fn te_transpose(ctx: &mut LegalizeCtx<'_>, n: usize) -> TeResult {
    let (mut data, filter, out) = (ctx.dims(0)?, ctx.dims(1)?, ctx.out_dims(0)?);
    let dtype = ctx.out_dtype(0)?;
    let infer = &mut ctx.infer();
    let (layouts, window, groups) =
        (Layouts::read(infer, n)?, Window::read(infer, n)?, groups(infer)?);
    let (out_channels, in_channels) = layouts.filter_channels(&mut infer.func.syms, &filter);
    let check = require_divisible(
        infer,
        in_channels,
        groups,
        "the number of input channels of weight",
        "groups",
    )?;
    layouts.data.set_size(&mut ctx.func.syms, &mut data, 'C', in_channels);
    let per_group = ctx.func.syms.floordiv(in_channels, groups);
    let one = ctx.func.syms.as_int(groups) == Some(1);
    let (per_group, out_channels) = (ctx.size(per_group), ctx.size(out_channels));
    let (x, w) = (ctx.tensor_with_dims(0, &data)?, ctx.tensor_with_dims(1, &filter)?);
    let shape = ctx.size_list(&out);
    let counts = ctx.size_list(&layouts.out.spatial_of(&out));
    let filter_sizes = ctx.size_list(&layouts.filter.spatial_of(&filter));
    let x = upsample_with_zeros(&x, &layouts.data.spatial_axes(), &window, &counts, &filter_sizes);
    let rc = te::reduce_axis(per_group.clone(), "rc");
    let rk: Vec<_> = filter_sizes
        .iter()
        .zip(["rz", "ry", "rx"].iter().skip(3 - n))
        .map(|(k, name)| te::reduce_axis(k.clone(), *name))
        .collect();
    let acc_dtype = accumulator(dtype);
    let conv = te::compute(shape, format!("conv{n}d_transpose"), |i| {
        let o = layouts.out.index_of(i, 'C');
        let (channel, filter_channel) = if one {
            (rc.var.expr(), o.clone())
        } else {
            (
                te::floordiv(&o, &out_channels) * &per_group + rc.var.expr(),
                te::floormod(&o, &out_channels),
            )
        };
        let (mut positions, mut steps) = (Vec::new(), Vec::new());
        for (k, &a) in layouts.out.spatial_axes().iter().enumerate() {
            positions.push(&i[a] + rk[k].var.expr() * window.dilation[k]);
            steps.push(&filter_sizes[k] - 1 - rk[k].var.expr());
        }
        let batch = layouts.out.index_of(i, 'N');
        let left = x.at(&layouts.data.indices(('N', batch), channel.clone(), &positions));
        let right = w.at(&layouts.filter.indices(('O', filter_channel), channel, &steps));
        let axes: Vec<_> = std::iter::once(&rc).chain(&rk).cloned().collect();
        te::sum(&(te::cast(&left, acc_dtype) * te::cast(&right, acc_dtype)), &axes)
    });
    let conv = check.map_or(conv.clone(), |c| conv.with_check(ctx.size_check(c)));
    Ok(vec![te_converted(conv, dtype)])
}

/// Inserts `stride - 1` zeros between the elements of the data, and pads the result with zeros as far as the windows extend.
fn upsample_with_zeros(
    x: &Tensor,
    axes: &[usize],
    window: &Window,
    counts: &[Expr],
    filter_sizes: &[Expr],
) -> Tensor {
    let mut shape = x.shape().to_vec();
    let span = |k: usize| (&filter_sizes[k] - 1) * window.dilation[k];
    for (k, &axis) in axes.iter().enumerate() {
        shape[axis] = &counts[k] + span(k);
    }
    te::compute(shape, "spread", |i| {
        let mut at = i.to_vec();
        let mut inside = Vec::new();
        for (k, &axis) in axes.iter().enumerate() {
            let (by, zero) = (te::int(window.strides[k]), te::int(0));
            let position = &i[axis] - span(k) + window.pads[k].0;
            inside.push(te::ge(&position, &zero));
            inside.push(te::eq(&te::floormod(&position, &by), &zero));
            at[axis] = te::floordiv(&position, &by);
            inside.push(te::lt(&at[axis], &x.shape()[axis]));
        }
        te::if_then_else(&te::all(&inside), &x.at(&at), &te::int_of(0, x.dtype()))
    })
}
