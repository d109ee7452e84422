//! Converters of ONNX's normalizations, such as `BatchNormalization` and `LayerNormalization`.

use std::cmp::Ordering;

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::shared_operator_rules::wide_float;
use pliant_sym::Sym;

use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};
use crate::unsupported_features::UnsupportedFeatures;

pub(super) static OPS: &[OnnxOp] = &[
    op("BatchNormalization", batch_norm),
    op("GroupNormalization", group_norm),
    op("InstanceNormalization", instance_norm),
    op("LRN", lrn),
    op("LayerNormalization", layer_norm),
    op("LpNormalization", lp_norm),
    op("MeanVarianceNormalization", mean_variance_norm),
    op("RMSNormalization", rms_norm),
];

fn epsilon(n: &Node<'_, '_>) -> Result<f64, Problem> {
    Ok(n.attrs().float("epsilon")?.unwrap_or(1e-5))
}

/// Checks that a parameter of a normalization is a vector with one element per channel of a tensor with the given dims. Returns the
/// number of channels.
fn check_channels(n: &mut Node<'_, '_>, v: Expr, dims: &[Sym]) -> Result<Sym, Problem> {
    let what = n.tensor_label(v, "a scale, bias, mean or variance");
    let channel_count = n.vector_length(v, &what)?;
    // A tensor without a channel axis has one channel.
    let one = n.func().syms.int(1);
    let channels = dims.get(1).copied().unwrap_or(one);
    let text = format!("{what} has {{}} elements, but there are {{}} channels");
    n.require_equal(channel_count, channels, &text)?;
    Ok(channels)
}

/// Reshapes a vector with one element per channel so that it broadcasts with a tensor of the given dims.
fn per_channel(n: &mut Node<'_, '_>, v: Expr, dims: &[Sym]) -> ExprResult {
    let channels = check_channels(n, v, dims)?;
    let one = n.func().syms.int(1);
    let mut shape = vec![one; dims.len()];
    if let Some(channel_dim) = shape.get_mut(1) {
        *channel_dim = channels;
    }
    n.reshape(v, &shape)
}

/// Emits `(x - mean) / sqrt(var + epsilon)`.
fn normalize(n: &mut Node<'_, '_>, x: Expr, mean: Expr, var: Expr, eps: f64) -> ExprResult {
    let dtype = n.dtype(var)?;
    let eps = n.scalar_as(eps, dtype)?;
    let centred = n.op("relax.subtract", &[x, mean])?;
    let var = n.op("relax.add", &[var, eps])?;
    let scale = n.op("relax.sqrt", &[var])?;
    n.op("relax.divide", &[centred, scale])
}

/// Emits `scale / sqrt(var + epsilon)`.
fn scale_per_deviation(n: &mut Node<'_, '_>, scale: Expr, var: Expr, eps: f64) -> ExprResult {
    let dtype = n.dtype(var)?;
    let eps = n.scalar_as(eps, dtype)?;
    let var = n.op("relax.add", &[var, eps])?;
    let deviation = n.op("relax.sqrt", &[var])?;
    n.op("relax.divide", &[scale, deviation])
}

/// Emits the mean and the variance over the given axes. The reduced dims are kept as 1.
fn statistics(n: &mut Node<'_, '_>, x: Expr, axes: &[i64]) -> Result<(Expr, Expr), Problem> {
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints(axes.iter().copied()))
        .with("keepdims", AttrValue::Bool(true));
    let mean = n.op_with("relax.mean", &[x], attrs.clone())?;
    let centred = n.op("relax.subtract", &[x, mean])?;
    let squares = n.op("relax.multiply", &[centred, centred])?;
    Ok((mean, n.op_with("relax.mean", &[squares], attrs)?))
}

fn scale_and_shift(n: &mut Node<'_, '_>, x: Expr, scale: Expr, shift: Expr) -> ExprResult {
    let x = n.op("relax.multiply", &[x, scale])?;
    n.op("relax.add", &[x, shift])
}

fn batch_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let training = n.attrs().int("training_mode")?.unwrap_or(0) != 0;
    let eps = epsilon(n)?;
    let mut unsupported = UnsupportedFeatures::default();
    let names = ["running_mean", "running_var", "saved_mean", "saved_var"];
    for (i, name) in (1..).zip(names).filter(|&(i, _)| !training || i > 2) {
        unsupported = unsupported.output(n, i, name);
    }
    unsupported.into_result(
        "running statistics are updated only in training_mode=1 of opset 14 and later",
    )?;
    let input = n.tensor(0)?;
    let (input_dtype, dims) = (n.dtype(input)?, n.dims(input)?);
    let rank = dims.len();
    let mut all = vec![input];
    for i in 1..5 {
        let part = n.tensor(i)?;
        all.push(per_channel(n, part, &dims)?);
    }
    let running = [n.dtype(all[3])?, n.dtype(all[4])?];
    let all = to_common_type(n, all)?;
    let wide = wide_float(n.dtype(all[0])?);
    let all: Vec<Expr> = all.into_iter().map(|t| n.cast(t, wide)).collect::<Result<_, _>>()?;
    let (x, parts) = (all[0], &all[1..]);
    if !training {
        // Two operations per element, as in ONNX Runtime. The parameters are usually constants, so scale and shift are folded.
        let scale = scale_per_deviation(n, parts[0], parts[3], eps)?;
        let moved = n.op("relax.multiply", &[parts[2], scale])?;
        let shift = n.op("relax.subtract", &[parts[1], moved])?;
        let y = scale_and_shift(n, x, scale, shift)?;
        return Ok(vec![n.cast(y, input_dtype)?.into()]);
    }
    // Training: the running statistics are updated with those of the batch.
    let axes: Vec<i64> = (0..rank as i64).filter(|&a| a != 1).collect();
    let (mean, var) = statistics(n, x, &axes)?;
    let y = normalize(n, x, mean, var, eps)?;
    let y = scale_and_shift(n, y, parts[0], parts[1])?;
    let mut outputs = vec![n.cast(y, input_dtype)?.into()];
    let momentum = n.attrs().float("momentum")?.unwrap_or(0.9);
    for (old, now, dtype) in [(parts[2], mean, running[0]), (parts[3], var, running[1])] {
        let wide = n.dtype(old)?;
        let (momentum, rest) = (n.scalar_as(momentum, wide)?, n.scalar_as(1.0 - momentum, wide)?);
        let (a, b) =
            (n.op("relax.multiply", &[old, momentum])?, n.op("relax.multiply", &[now, rest])?);
        let moved = n.op("relax.add", &[a, b])?;
        let moved = n.cast(moved, dtype)?;
        let channels = n.dims_with_min_rank(moved, 2)?[1];
        outputs.push(n.reshape(moved, &[channels])?.into());
    }
    Ok(outputs)
}

/// Casts tensors to the widest of their dtypes. The common dtype of float16 and bfloat16 is float32.
pub(super) fn to_common_type(
    n: &mut Node<'_, '_>,
    tensors: Vec<Expr>,
) -> Result<Vec<Expr>, Problem> {
    let mut wide = n.dtype(tensors[0])?;
    for &t in &tensors[1..] {
        let input_dtype = n.dtype(t)?;
        wide = match input_dtype.size().cmp(&wide.size()) {
            Ordering::Greater => input_dtype,
            Ordering::Equal if input_dtype != wide => DType::Float32,
            _ => wide,
        };
    }
    tensors.into_iter().map(|t| n.cast(t, wide)).collect()
}

fn instance_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = Attrs::default().with("epsilon", AttrValue::float(epsilon(n)?));
    let x = n.tensor(0)?;
    let (scale, shift) = (n.tensor(1)?, n.tensor(2)?);
    channel_norm(n, "relax.nn.instance_norm", [x, scale, shift], attrs)
}

/// Converts `GroupNormalization`. Its scale and bias are per group before opset 21, and per channel since then.
fn group_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let groups = n.attrs().int("num_groups")?.unwrap_or(0);
    if groups < 1 {
        let text = format!("attribute 'num_groups' must be positive, but is {groups}");
        return Err(Problem::attribute(text));
    }
    let attrs = Attrs::default()
        .with("num_groups", AttrValue::Int(groups))
        .with("epsilon", AttrValue::float(epsilon(n)?));
    let x = n.tensor(0)?;
    let dims = n.dims_with_min_rank(x, 2)?;
    let groups = n.func().syms.int(groups);
    let each = n.func().syms.floordiv(dims[1], groups);
    let whole = n.func().syms.mul(each, groups);
    n.require_equal(
        dims[1],
        whole,
        "the input has {} channels, which is not a multiple of 'num_groups' (the next lower multiple is {})",
    )?;
    let mut factors = [n.tensor(1)?, n.tensor(2)?];
    if n.opset < 21 {
        let one = n.func().syms.int(1);
        for factor in &mut factors {
            let column = n.reshape(*factor, &[groups, one])?;
            let shape = n.func().shape(&[groups, each]);
            let repeated = n.op("relax.broadcast_to", &[column, shape])?;
            *factor = n.reshape(repeated, &[dims[1]])?;
        }
    }
    channel_norm(n, "relax.nn.group_norm", [x, factors[0], factors[1]], attrs)
}

/// Emits a normalization over all pixels of an image with channels first, with a scale and a bias for each channel.
fn channel_norm(
    n: &mut Node<'_, '_>,
    op: &str,
    [x, scale, shift]: [Expr; 3],
    attrs: Attrs,
) -> ConvertResult {
    let dims = n.dims(x)?;
    for factor in [scale, shift] {
        check_channels(n, factor, &dims)?;
    }
    let rank = dims.len() as i64;
    let attrs =
        attrs.with("channel_axis", AttrValue::Int(1)).with("axes", AttrValue::ints(2..rank));
    Ok(vec![n.op_with(op, &[x, scale, shift], attrs)?.into()])
}

/// Converts `LayerNormalization` over the axes from `axis` on. Mean and inverse deviation are optional outputs.
fn layer_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let eps = epsilon(n)?;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(-1), rank)?;
    let axes: Vec<i64> = (axis as i64..rank as i64).collect();
    let scale = n.tensor(1)?;
    let wants_more = n.proto.output.iter().skip(1).any(|o| !o.is_empty());
    let (dims, shift) = (n.dims(x)?, n.optional_tensor(2)?);
    let mut whole = true;
    for parameter in [Some(scale), shift].into_iter().flatten() {
        whole &= !may_broadcast(n, parameter, &dims[axis..])?;
    }
    if whole && !wants_more {
        let attrs = Attrs::default()
            .with("axes", AttrValue::ints(axes))
            .with("center", AttrValue::Bool(shift.is_some()))
            .with("epsilon", AttrValue::float(eps));
        // Without `center`, the operator does not read its last operand.
        let operands = [x, scale, shift.unwrap_or(scale)];
        return Ok(vec![n.op_with("relax.nn.layer_norm", &operands, attrs)?.into()]);
    }
    let dtype = n.dtype(x)?;
    let in_type = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let wide = n.cast(x, in_type)?;
    let (mean, var) = statistics(n, wide, &axes)?;
    let (eps, one) = (n.scalar_as(eps, in_type)?, n.scalar_as(1.0, in_type)?);
    let var = n.op("relax.add", &[var, eps])?;
    let deviation = n.op("relax.sqrt", &[var])?;
    let inverse = n.op("relax.divide", &[one, deviation])?;
    let y = n.op("relax.subtract", &[wide, mean])?;
    let y = n.op("relax.multiply", &[y, inverse])?;
    let y = n.cast(y, dtype)?;
    let mut y = n.op_unidirectional("relax.multiply", y, scale, "the scale")?;
    if let Some(shift) = n.optional_tensor(2)? {
        y = n.op_unidirectional("relax.add", y, shift, "the bias")?;
    }
    // Mean and inverse deviation have the dtype that `stash_type` selects.
    let stash = match n.attrs().int("stash_type")?.unwrap_or(1) {
        1 => DType::Float32,
        code => crate::initializer_tensors::checked_dtype(code)?,
    };
    let (mean, inverse) = (n.cast(mean, stash)?, n.cast(inverse, stash)?);
    Ok(vec![y.into(), mean.into(), inverse.into()])
}

/// Whether the parameter (such as a scale) may need broadcasting to a tensor of the given dims: its rank differs, or one of its
/// dims differs and may be 1.
fn may_broadcast(n: &mut Node<'_, '_>, parameter: Expr, dims: &[Sym]) -> Result<bool, Problem> {
    let parameter_dims = n.dims(parameter)?;
    let syms = &n.func().syms;
    let one = |(&parameter_dims, &dim): (&Sym, &Sym)| {
        parameter_dims != dim && syms.as_int(parameter_dims).is_none_or(|size| size == 1)
    };
    Ok(parameter_dims.len() != dims.len() || parameter_dims.iter().zip(dims).any(one))
}

fn rms_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let eps = epsilon(n)?;
    let (x, scale) = (n.tensor(0)?, n.tensor(1)?);
    // The result has the dtype of the scale.
    let (rank, dtype) = (n.rank(x)?, n.dtype(scale)?);
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(-1), rank)?;
    let attrs = Attrs::default()
        .with("axes", AttrValue::ints(axis as i64..rank as i64))
        .with("epsilon", AttrValue::float(eps));
    let both = to_common_type(n, vec![x, scale])?;
    let (x, scale) = (both[0], both[1]);
    let dims = n.dims(x)?;
    let y = if may_broadcast(n, scale, &dims[axis..])? {
        let wide = n.dtype(x)?;
        let one = n.scalar_as(1.0, wide)?;
        let ones = n.full(&dims[axis..], one)?;
        let y = n.op_with("relax.nn.rms_norm", &[x, ones], attrs)?;
        n.op_unidirectional("relax.multiply", y, scale, "the scale")?
    } else {
        n.op_with("relax.nn.rms_norm", &[x, scale], attrs)?
    };
    Ok(vec![n.cast(y, dtype)?.into()])
}

fn mean_variance_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let axes = n.attrs().ints("axes")?.map_or_else(|| vec![0, 2, 3], <[i64]>::to_vec);
    let x = n.tensor(0)?;
    let y = n.in_wide_float(x, |n, x| {
        let (mean, var) = statistics(n, x, &axes)?;
        let centred = n.op("relax.subtract", &[x, mean])?;
        let deviation = n.op("relax.sqrt", &[var])?;
        let dtype = n.dtype(deviation)?;
        // The constant is added to the deviation, not to the variance, as in ONNX's function body for this operator.
        let min = n.scalar_as(1e-9, dtype)?;
        let deviation = n.op("relax.add", &[deviation, min])?;
        n.op("relax.divide", &[centred, deviation])
    })?;
    Ok(vec![y.into()])
}

/// Converts `LpNormalization`: divides by the norm along an axis. Where the norm is 0, the result is 0.
fn lp_norm(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(-1);
    let p = n.attrs().int("p")?.unwrap_or(2);
    let x = n.tensor(0)?;
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints([axis]))
        .with("keepdims", AttrValue::Bool(true));
    if !(1..=2).contains(&p) {
        return Err(Problem::attribute(format!("attribute 'p' must be 1 or 2, but is {p}")));
    }
    let y = n.in_wide_float(x, |n, x| {
        let size = if p == 1 { n.op("relax.abs", &[x])? } else { n.op("relax.multiply", &[x, x])? };
        let sum = n.op_with("relax.sum", &[size], attrs)?;
        let norm = if p == 1 { sum } else { n.op("relax.sqrt", &[sum])? };
        let dtype = n.dtype(x)?;
        let (zero, one) = (n.scalar_as(0.0, dtype)?, n.scalar_as(1.0, dtype)?);
        let is_zero = n.op("relax.equal", &[norm, zero])?;
        let safe = n.op("relax.where", &[is_zero, one, norm])?;
        n.op("relax.divide", &[x, safe])
    })?;
    Ok(vec![y.into()])
}

/// Converts `LRN`: divides by a power of the sum of squares over neighbouring channels.
fn lrn(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let size = attrs.int("size")?.unwrap_or(0);
    let alpha = attrs.float("alpha")?.unwrap_or(1e-4);
    let (beta, bias) = (attrs.float("beta")?.unwrap_or(0.75), attrs.float("bias")?.unwrap_or(1.0));
    if size < 1 {
        let text = format!("attribute 'size' must be positive, but is {size}");
        return Err(Problem::attribute(text));
    }
    let x = n.tensor(0)?;
    let dims = n.dims_with_min_rank(x, 2)?;
    let y =
        n.in_wide_float(x, |n, x| local_response_norm(n, x, &dims, size, [alpha, bias, beta]))?;
    Ok(vec![y.into()])
}

/// Maximum number of channels in a window of `LRN`. The limit exists because each channel is a separate addition.
const MAX_WINDOW_CHANNELS: i64 = 1024;

/// Emits `x / (bias + alpha / size * sum of squares) ** beta`, where the sum is over a window of `size` channels.
fn local_response_norm(
    n: &mut Node<'_, '_>,
    x: Expr,
    dims: &[Sym],
    size: i64,
    [alpha, bias, beta]: [f64; 3],
) -> ExprResult {
    let dtype = n.dtype(x)?;
    let squares = n.op("relax.multiply", &[x, x])?;
    let (mut before, mut after) = ((size - 1) / 2, size - 1 - (size - 1) / 2);
    // The window ends at the first and at the last channel.
    if let Some(channels) = n.func().syms.as_int(dims[1]) {
        let max_value = (channels - 1).max(0);
        (before, after) = (before.min(max_value), after.min(max_value));
    }
    let window = before + after + 1;
    if window > MAX_WINDOW_CHANNELS {
        let text = format!(
            "attribute 'size' makes each sum span {window} channels, but at most {MAX_WINDOW_CHANNELS} are supported"
        );
        return Err(Problem::unsupported(text));
    }
    let mut width = vec![0; 2 * dims.len()];
    (width[2], width[3]) = (before, after);
    let padded = super::pad::pad_with_zeros(n, squares, &width)?;
    let mut sum: Option<Expr> = None;
    for k in 0..window {
        let from = n.func().syms.int(k);
        let to = n.func().syms.add(from, dims[1]);
        let part = n.slice_axis(padded, 1, from, to)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => n.op("relax.add", &[sum, part])?,
        });
    }
    let sum = sum.ok_or_else(|| Problem::attribute("attribute 'size' must be positive"))?;
    let [share, bias, beta] = [alpha / size as f64, bias, beta].map(|v| n.scalar_as(v, dtype));
    let y = n.op("relax.multiply", &[sum, share?])?;
    let y = n.op("relax.add", &[y, bias?])?;
    let y = n.op("relax.power", &[y, beta?])?;
    n.op("relax.divide", &[x, y])
}
