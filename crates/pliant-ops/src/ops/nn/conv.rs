//! Convolutions over 1 to 3 spatial dims.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym, SymArena};

use super::super::reductions::accumulator;
use super::conv_gradients;
use super::sliding_window::Window;
use super::tensor_layouts::{self, Layout};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{require_divisible, require_number, shared_dim, te_converted};
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

macro_rules! conv_op {
    ($name:literal, $n:literal, $data:literal, $kernel:literal) => {
        OpDecl::new(
            concat!("relax.nn.", $name),
            |ctx| infer(ctx, $n),
            concat!(
                "Convolution of data ",
                $data,
                " with filters ",
                $kernel,
                " (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per \
                 spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats \
                 are accumulated in float32. The result has type `out_dtype`, by default that of the operands."
            ),
        )
        .operands(&["data", "weight"])
        .attrs(&[
            ("strides", Default::Ints(&[1; $n])),
            ("padding", Default::Ints(&[0; 2 * $n])),
            ("dilation", Default::Ints(&[1; $n])),
            ("groups", Default::Int(1)),
            ("data_layout", Default::Str($data)),
            ("kernel_layout", Default::Str($kernel)),
            ("out_layout", Default::None),
            ("out_dtype", Default::None),
        ])
        .lists(&[("strides", $n), ("padding", 2 * $n), ("dilation", $n)])
        .te(Pattern::OutEWiseFusable, |ctx| te_conv(ctx, $n))
        .onnx(&["Conv"])
        .errors(
            "a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, or the \
            size of the result would be negative",
        )
        .limits(tensor_layouts::LAYOUT_LIMITS)
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    conv_op!("conv1d", 1, "NCW", "OIW").gradient(|g| conv_gradients::conv(g, 1)),
    conv_op!("conv2d", 2, "NCHW", "OIHW").gradient(|g| conv_gradients::conv(g, 2)),
    conv_op!("conv3d", 3, "NCDHW", "OIDHW").gradient(|g| conv_gradients::conv(g, 3)),
];

/// The layouts of the tensors of a convolution.
pub struct Layouts {
    /// The layout of the data operand.
    pub data: Layout,
    /// The layout of the filter operand.
    pub filter: Layout,
    /// The layout of the convolution's result.
    pub out: Layout,
}

impl Layouts {
    /// Reads the layouts from the attributes and checks them against the operands' ranks.
    ///
    /// # Errors
    /// If an attribute is not a layout, or an operand has another rank.
    pub fn read(ctx: &InferCtx<'_>, n: usize) -> Result<Layouts, InferError> {
        let data = Layout::read(ctx, "data_layout", "NC", n)?;
        let filter = Layout::read(ctx, "kernel_layout", "OI", n)?;
        let out = Layout::of_output(ctx, &data, "NC", n)?;
        data.check(ctx, 0, &ctx.tensor(0)?)?;
        filter.check(ctx, 1, &ctx.tensor(1)?)?;
        Ok(Layouts { data, filter, out })
    }

    /// The numbers of output and of input channels of a filter with the dims `filter`.
    pub fn filter_channels(&self, syms: &mut SymArena, filter: &[Sym]) -> (Sym, Sym) {
        (self.filter.size_of(syms, filter, 'O'), self.filter.size_of(syms, filter, 'I'))
    }
}

/// The element type of the result: the attribute `out_dtype`, or the common type of the operands.
///
/// # Errors
/// If the operands' types differ and `out_dtype` is not set.
pub fn conv_dtype(ctx: &InferCtx<'_>) -> Result<Option<DType>, InferError> {
    require_number(ctx, 0, &ctx.tensor(0)?)?;
    match ctx.dtype("out_dtype")? {
        Some(dtype) => Ok(Some(dtype)),
        None => ctx.same_dtype(0, 1),
    }
}

/// The number of groups of a convolution, at least 1.
///
/// # Errors
/// If the number is less than 1.
pub fn groups(ctx: &mut InferCtx<'_>) -> Result<Sym, InferError> {
    let groups = ctx.int("groups")?;
    ctx.check_range("groups", &[groups], 1)?;
    Ok(ctx.func.syms.int(groups))
}

fn infer(ctx: &mut InferCtx<'_>, n: usize) -> InferResult {
    let (layouts, window) = (Layouts::read(ctx, n)?, Window::read(ctx, n)?);
    let (groups, dtype) = (groups(ctx)?, conv_dtype(ctx)?);
    let (Some(data), Some(filter)) = (ctx.tensor(0)?.dims, ctx.tensor(1)?.dims) else {
        return Ok(ctx.tensor_type(None, Some(layouts.out.ndim()), dtype));
    };
    let channels = layouts.data.size_of(&mut ctx.func.syms, &data, 'C');
    let (out_channels, in_channels) = layouts.filter_channels(&mut ctx.func.syms, &filter);
    let read = ctx.func.syms.mul(in_channels, groups);
    if shared_dim(ctx, channels, read).is_none() {
        let (c, i, g) = (ctx.dim_text(channels), ctx.dim_text(in_channels), ctx.dim_text(groups));
        return Err(ctx.error(format!(
            "data has {c} channels, but weight reads {i} channels in each of {g} groups: {types}",
            types = crate::shared_operator_rules::operand_types(ctx)
        )));
    }
    require_divisible(
        ctx,
        out_channels,
        groups,
        "the number of output channels of weight",
        "groups",
    )?;
    let (sizes, filter_sizes) =
        (layouts.data.spatial_of(&data), layouts.filter.spatial_of(&filter));
    let mut counts = Vec::with_capacity(n);
    for k in 0..n {
        counts.push(window.window_count(ctx, k, sizes[k], filter_sizes[k], false)?);
    }
    let syms = &mut ctx.func.syms;
    let batch = layouts.data.size_of(syms, &data, 'N');
    let dims = layouts.out.dims(syms, ('N', batch), out_channels, &counts);
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

/// Lowers a convolution. The number of channels of the data is assumed to match the filter. Unless
/// this is proved, the loop function checks it.
fn te_conv(ctx: &mut LegalizeCtx<'_>, n: usize) -> TeResult {
    let (mut data, filter, out) = (ctx.dims(0)?, ctx.dims(1)?, ctx.out_dims(0)?);
    let dtype = ctx.out_dtype(0)?;
    let infer = &mut ctx.infer();
    let (layouts, window, groups) =
        (Layouts::read(infer, n)?, Window::read(infer, n)?, groups(infer)?);
    let (out_channels, in_channels) = layouts.filter_channels(&mut infer.func.syms, &filter);
    let check = require_divisible(
        infer,
        out_channels,
        groups,
        "the number of output channels of weight",
        "groups",
    )?;
    let syms = &mut ctx.func.syms;
    let channels = syms.mul(in_channels, groups);
    layouts.data.set_size(syms, &mut data, 'C', channels);
    let per_group = syms.floordiv(out_channels, groups);
    let one = syms.as_int(groups) == Some(1);
    let (in_channels_size, per_group) = (ctx.size(in_channels), ctx.size(per_group));
    let (x, w) = (ctx.tensor_with_dims(0, &data)?, ctx.tensor_with_dims(1, &filter)?);
    let shape = ctx.size_list(&out);
    let counts = ctx.size_list(&layouts.out.spatial_of(&out));
    let filter_sizes = ctx.size_list(&layouts.filter.spatial_of(&filter));
    let zero = te::int_of(0, x.dtype());
    let x = window.padded(&x, &layouts.data.spatial_axes(), &counts, &filter_sizes, false, &zero);
    let rc = te::reduce_axis(in_channels_size.clone(), "rc");
    let rk: Vec<_> = filter_sizes
        .iter()
        .zip(["rz", "ry", "rx"].iter().skip(3 - n))
        .map(|(k, name)| te::reduce_axis(k.clone(), *name))
        .collect();
    let acc_dtype = accumulator(dtype);
    let conv = te::compute(shape, format!("conv{n}d"), |i| {
        let o = layouts.out.index_of(i, 'C');
        let channel = if one {
            rc.var.expr()
        } else {
            te::floordiv(&o, &per_group) * &in_channels_size + rc.var.expr()
        };
        let positions: Vec<Expr> = layouts
            .out
            .spatial_axes()
            .iter()
            .enumerate()
            .map(|(k, &a)| &i[a] * window.strides[k] + rk[k].var.expr() * window.dilation[k])
            .collect();
        let steps: Vec<Expr> = rk.iter().map(|r| r.var.expr()).collect();
        let batch = layouts.out.index_of(i, 'N');
        let left = x.at(&layouts.data.indices(('N', batch), channel, &positions));
        let right = w.at(&layouts.filter.indices(('O', o), rc.var.expr(), &steps));
        let axes: Vec<_> = std::iter::once(&rc).chain(&rk).cloned().collect();
        te::sum(&(te::cast(&left, acc_dtype) * te::cast(&right, acc_dtype)), &axes)
    });
    let conv = check.map_or(conv.clone(), |c| conv.with_check(ctx.size_check(c)));
    Ok(vec![te_converted(conv, dtype)])
}
