//! Group and instance normalization. The statistics are computed over the normalized axes, and either over all channels of a
//! group or separately for each channel.

use pliant_ir::Sym;
use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;

use super::super::reductions::accumulator;
use super::layer_norm::{check_param, epsilon};
use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{require_divisible, require_float};
use crate::te::{self, Expr, IterVar, Tensor};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.group_norm",
        infer_group,
        "Group normalization (Wu and He, 2018): normalizes the channels of each group, over `axes`, to mean 0 and variance 1, \
        then applies `gamma` and `beta` per channel.",
    )
    .operands(&["data", "gamma", "beta"])
    .attrs(&[
        ("num_groups", Default::Required),
        ("channel_axis", Default::Required),
        ("axes", Default::Required),
        ("epsilon", Default::Float(1e-5)),
        ("center", Default::Bool(true)),
        ("scale", Default::Bool(true)),
    ])
    .lists(&[("axes", 1)])
    .dims(DimTrait::Named(&["channel_axis", "axes"]))
    .te(Pattern::CommReduce, te_group)
    .onnx(&["GroupNormalization"])
    .errors(
        "an axis is out of range, `axes` contains the channel axis, a parameter does not have one element per channel, or the \
        number of channels is not a multiple of `num_groups`",
    )
    .gradient_from_te(),
    OpDecl::new(
        "relax.nn.instance_norm",
        infer_instance,
        "Instance normalization (Ulyanov et al., 2016): normalizes each channel, over `axes`, to mean 0 and variance 1, then \
        applies `gamma` and `beta` per channel.",
    )
    .operands(&["data", "gamma", "beta"])
    .attrs(&[
        ("channel_axis", Default::Required),
        ("axes", Default::Required),
        ("epsilon", Default::Float(1e-5)),
        ("center", Default::Bool(true)),
        ("scale", Default::Bool(true)),
    ])
    .lists(&[("axes", 1)])
    .dims(DimTrait::Named(&["channel_axis", "axes"]))
    .te(Pattern::CommReduce, te_instance)
    .onnx(&["InstanceNormalization"])
    .errors("an axis is out of range, `axes` contains the channel axis, or a parameter does not have one element per channel")
    .gradient_from_te(),
];

/// Reads the channel axis and the axes over which statistics are computed from the attributes.
/// Rejects axes that contain the channel axis.
fn norm_axes(ctx: &InferCtx<'_>, ndim: usize) -> Result<(usize, Vec<usize>), InferError> {
    let channel = ctx.axis("channel_axis", ndim)?;
    let axes = ctx.axes("axes", ndim)?.unwrap_or_default();
    if axes.contains(&channel) {
        return Err(ctx.error(format!("axes must not name the channel axis, {channel}")));
    }
    Ok((channel, axes))
}

fn infer_common(ctx: &mut InferCtx<'_>) -> Result<Option<(usize, Sym)>, InferError> {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    let Some(ndim) = t.ndim else { return Ok(None) };
    let (channel, _) = norm_axes(ctx, ndim)?;
    for i in [1, 2] {
        check_param(ctx, i, &t, &[channel])?;
    }
    Ok(t.dims.map(|d| (channel, d[channel])))
}

fn infer_instance(ctx: &mut InferCtx<'_>) -> InferResult {
    infer_common(ctx)?;
    let t = ctx.tensor(0)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn groups(ctx: &mut InferCtx<'_>) -> Result<Sym, InferError> {
    let groups = ctx.int("num_groups")?;
    ctx.check_range("num_groups", &[groups], 1)?;
    Ok(ctx.func.syms.int(groups))
}

fn infer_group(ctx: &mut InferCtx<'_>) -> InferResult {
    let groups = groups(ctx)?;
    if let Some((_, channels)) = infer_common(ctx)? {
        require_divisible(ctx, channels, groups, "the number of channels of data", "num_groups")?;
    }
    let t = ctx.tensor(0)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_instance(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    Ok(vec![normalize(ctx, "instance_norm", None)?])
}

fn te_group(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dims = ctx.dims(0)?;
    let infer = &mut ctx.infer();
    let (channel, _) = norm_axes(infer, dims.len())?;
    let groups = groups(infer)?;
    let check = require_divisible(
        infer,
        dims[channel],
        groups,
        "the number of channels of data",
        "num_groups",
    )?;
    let channels_per_group = ctx.func.syms.floordiv(dims[channel], groups);
    let grouped = (ctx.size(groups), ctx.size(channels_per_group));
    let out = normalize(ctx, "group_norm", Some(grouped))?;
    Ok(vec![check.map_or(out.clone(), |c| out.with_check(ctx.size_check(c)))])
}

/// Sums for a group normalization: each sum is over the normalized axes and the channels of one
/// group. The tensor of sums has the axes of the data that are not normalized. Its channel axis has
/// one element per group.
struct GroupSums {
    shape: Vec<Expr>,
    axes: Vec<usize>,
    channel: usize,
    /// The number of groups. `channels_per_group` is the number of channels in each group; if it is
    /// 1, each channel is normalized separately.
    groups: Expr,
    channels_per_group: Expr,
}

impl GroupSums {
    /// The axes that are not normalized, including the channel axis.
    fn kept_axes(&self) -> Vec<usize> {
        (0..self.shape.len()).filter(|a| !self.axes.contains(a)).collect()
    }

    /// Converts the indices `i` of an element of the data to the indices of the sum to which the
    /// element contributes.
    fn group_indices(&self, i: &[Expr]) -> Vec<Expr> {
        let group = |a: usize| {
            if a == self.channel {
                te::floordiv(&i[a], &self.channels_per_group)
            } else {
                i[a].clone()
            }
        };
        self.kept_axes().into_iter().map(group).collect()
    }

    /// Creates the stage that sums `f` over each group. `f` receives the indices of an element and
    /// of its group.
    fn stage(&self, name: &str, f: impl Fn(&[Expr], &[Expr]) -> Expr) -> Tensor {
        let kept = self.kept_axes();
        let shape = kept.iter().map(|&a| match a == self.channel {
            true => self.groups.clone(),
            false => self.shape[a].clone(),
        });
        let within = te::reduce_axis(self.channels_per_group.clone(), "kc");
        let over: Vec<IterVar> = self
            .axes
            .iter()
            .map(|&a| te::reduce_axis(self.shape[a].clone(), format!("k{a}")))
            .collect();
        // In the order of the axes, so that the innermost loop reads adjacent elements.
        let mut reduce: Vec<(usize, &IterVar)> = self.axes.iter().copied().zip(&over).collect();
        if !self.channels_per_group.is_const(1) {
            reduce.push((self.channel, &within));
        }
        reduce.sort_by_key(|(axis, _)| *axis);
        let reduce: Vec<IterVar> = reduce.into_iter().map(|(_, var)| var.clone()).collect();
        te::compute(shape.collect(), name, |out| {
            let mut i = vec![te::int(0); self.shape.len()];
            for (&a, index) in kept.iter().zip(out) {
                i[a] = index.clone();
            }
            if !self.channels_per_group.is_const(1) {
                i[self.channel] = &i[self.channel] * &self.channels_per_group + within.var.expr();
            }
            for (&a, axis) in self.axes.iter().zip(&over) {
                i[a] = axis.var.expr();
            }
            te::sum(&f(&i, out), &reduce)
        })
    }
}

/// Normalizes the data over groups of channels, or over each channel separately. `grouped` consists
/// of the number of groups and the number of channels per group.
fn normalize(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    grouped: Option<(Expr, Expr)>,
) -> Result<Tensor, LegalizeError> {
    let dims = ctx.dims(0)?;
    let infer = ctx.infer();
    let (channel, axes) = norm_axes(&infer, dims.len())?;
    let (center, scale) = (infer.bool("center")?, infer.bool("scale")?);
    let x = ctx.value(0)?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let epsilon = epsilon(ctx, acc_dtype)?;
    let channel_dims = [dims[channel]];
    let params: Vec<Value> =
        (1..3).map(|i| ctx.value_with_dims(i, &channel_dims)).collect::<Result<_, _>>()?;
    let (groups, channels_per_group) =
        grouped.unwrap_or_else(|| (x.shape()[channel].clone(), te::int(1)));
    let sums = GroupSums { shape: x.shape().to_vec(), axes, channel, groups, channels_per_group };
    let count = sums.axes.iter().fold(sums.channels_per_group.clone(), |c, &a| c * &sums.shape[a]);
    let count = te::cast(&count, acc_dtype);
    let at = |i: &[Expr]| te::cast(&x.at(i), acc_dtype);
    let sum = sums.stage(&format!("T_{name}_sum"), |i, _| at(i));
    let mean = te::compute(sum.shape().to_vec(), format!("T_{name}_mean"), |i| sum.at(i) / &count);
    let squares = sums.stage(&format!("T_{name}_squares"), |i, group| {
        let d = at(i) - mean.at(group);
        &d * &d
    });
    // Stages of their own, since each value is read once per element.
    let inverse_deviation =
        te::compute(squares.shape().to_vec(), format!("T_{name}_inverse_deviation"), |i| {
            te::rsqrt(&(squares.at(i) / &count + &epsilon))
        });
    Ok(te::compute(sums.shape.clone(), format!("T_{name}"), |i| {
        let group = sums.group_indices(i);
        let mut y = (at(i) - mean.at(&group)) * inverse_deviation.at(&group);
        let c = &i[channel..=channel];
        if scale {
            y = y * te::cast(&params[0].at(c), acc_dtype);
        }
        if center {
            y = y + te::cast(&params[1].at(c), acc_dtype);
        }
        te::cast(&y, dtype)
    }))
}
