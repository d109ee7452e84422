//! Converters of convolutions, including quantized and transposed ones.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType, Sym};

use super::super::quantization::{requantize_conv, subtract_zero_point};
use super::sliding_window::{MAX_PAD, Window, check_list_length, check_pads, check_sizes};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("CausalConvWithState", causal_conv),
    op("Conv", conv),
    op("ConvInteger", conv_integer),
    op("ConvTranspose", conv_transpose),
    op("QLinearConv", qlinear_conv),
];

/// The spatial dims of the filter, from the shape of the weight. If the attribute `kernel_shape` is present, it must be equal.
fn filter_shape(n: &mut Node<'_, '_>, weight: Expr) -> Result<Vec<i64>, Problem> {
    let dims = n.dims(weight)?;
    if let Some(filter) = n.attrs().ints("kernel_shape")? {
        if filter.len() + 2 != dims.len() {
            let (count, rank) = (filter.len(), dims.len());
            let message = format!(
                "'kernel_shape' has {count} sizes, but the weight (input 1) has rank {rank}, of which 2 dims are not spatial"
            );
            return Err(Problem::invalid(message));
        }
        for (&size, &weight_size) in filter.iter().zip(&dims[2..]) {
            let size = n.func().syms.int(size);
            n.require_equal(
                size,
                weight_size,
                "'kernel_shape' contains {}, but the size of the weight (input 1) in that dim is {}",
            )?;
        }
        return Ok(filter.to_vec());
    }
    let sizes: Option<Vec<i64>> = dims.iter().skip(2).map(|&d| n.func().syms.as_int(d)).collect();
    sizes.ok_or_else(|| {
        Problem::known_only_at_run_time("the spatial size of the weight (input 1)")
            .with_help("set the attribute 'kernel_shape' of the node")
    })
}

/// The name of the Relax operator for the number of spatial axes, such as `relax.nn.conv2d`.
fn op_for_rank(what: &str, axes: usize, tail: &str) -> Result<String, Problem> {
    match axes {
        1..=3 => Ok(format!("relax.nn.{what}{axes}d{tail}")),
        _ => Err(Problem::unsupported(format!(
            "the input has {axes} spatial dims, but only 1 to 3 are supported"
        ))),
    }
}

/// Requires the input to have `of_weight * groups` channels, where `of_weight` is the number of channels per group in the weight.
/// If the number of channels is non-constant, it is checked at run time.
fn with_channels(n: &mut Node<'_, '_>, x: Expr, of_weight: Sym, groups: i64) -> ExprResult {
    let groups = n.func().syms.int(groups);
    let channels = n.func().syms.mul(of_weight, groups);
    match n.func().syms.as_int(channels) {
        Some(_) => n.with_dim(x, 1, channels),
        None => Ok(x),
    }
}

/// Emits a convolution of `x` with `weight` that uses the node's attributes.
fn convolve(n: &mut Node<'_, '_>, x: Expr, weight: Expr) -> ExprResult {
    let groups = n.attrs().positive_int("group")?.unwrap_or(1);
    let of_weight = n.dims_with_min_rank(weight, 2)?[1];
    let x = with_channels(n, x, of_weight, groups)?;
    let filter = filter_shape(n, weight)?;
    let name = op_for_rank("conv", filter.len(), "")?;
    let (window, x) = Window::read(n, x, filter, 0.0)?;
    let attrs = window.conv_attrs().with("groups", AttrValue::Int(groups));
    n.op_with(&name, &[x, weight], attrs)
}

pub(in crate::ops) fn conv(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let y = convolve(n, x, weight)?;
    let bias = n.optional_tensor(2)?;
    Ok(vec![add_channel_bias(n, y, bias)?.into()])
}

/// Converts `CausalConvWithState`: a depthwise convolution over a sequence and its past. The last elements become the past for the
/// next call.
fn causal_conv(n: &mut Node<'_, '_>) -> ConvertResult {
    let activation = n.attrs().choice("activation", &["none", "silu", "swish"])?;
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let (dims, dtype, w) = (n.dims_with_min_rank(x, 3)?, n.dtype(x)?, n.dims(weight)?);
    let (Some(groups), Some(filter)) = (
        w.first().and_then(|&c| n.func().syms.as_int(c)),
        w.get(2).and_then(|&k| n.func().syms.as_int(k)),
    ) else {
        return Err(Problem::known_only_at_run_time("the shape of the weight (input 1)")
            .with_help(
                "give all dims of the weight fixed sizes, in the model file or (for a model input) in the importer's argument dynamic_shapes",
            ));
    };
    let before = n.func().syms.int(filter - 1);
    let past = match n.optional_tensor(3)? {
        Some(past) => past,
        None => {
            let zero = n.scalar_as(0.0, dtype)?;
            n.full(&[dims[0], dims[1], before], zero)?
        }
    };
    let longer = n.concat(&[past, x], 2)?;
    let attrs = pliant_ir::Attrs::default().with("groups", AttrValue::Int(groups));
    let y = n.op_with("relax.nn.conv1d", &[longer, weight], attrs)?;
    let bias = n.optional_tensor(2)?;
    let mut y = add_channel_bias(n, y, bias)?;
    if activation != "none" {
        let wide = n.cast(y, DType::Float32)?;
        let gate = n.op("relax.sigmoid", &[wide])?;
        let gated = n.op("relax.multiply", &[wide, gate])?;
        y = n.cast(gated, dtype)?;
    }
    let length = n.dims(longer)?[2];
    let from = n.func().syms.sub(length, before);
    let state = n.slice_axis(longer, 2, from, length)?;
    Ok(vec![y.into(), state.into()])
}

/// Converts `ConvInteger`: subtracts the zero points and convolves in int32.
fn conv_integer(n: &mut Node<'_, '_>) -> ConvertResult {
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let (x_zero, w_zero) = (n.optional_tensor(2)?, n.optional_tensor(3)?);
    let (x, weight) =
        (subtract_zero_point(n, x, x_zero, 1)?, subtract_zero_point(n, weight, w_zero, 0)?);
    Ok(vec![convolve(n, x, weight)?.into()])
}

fn qlinear_conv(n: &mut Node<'_, '_>) -> ConvertResult {
    let [x, x_scale, x_zero, w] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.tensor(3)?];
    let [w_scale, w_zero, y_scale, y_zero] =
        [n.tensor(4)?, n.tensor(5)?, n.tensor(6)?, n.tensor(7)?];
    let (x, w) =
        (subtract_zero_point(n, x, Some(x_zero), 1)?, subtract_zero_point(n, w, Some(w_zero), 0)?);
    let sum = convolve(n, x, w)?;
    let bias = n.optional_tensor(8)?;
    let sum = add_channel_bias(n, sum, bias)?;
    Ok(vec![requantize_conv(n, sum, [x_scale, w_scale, y_scale], y_zero)?.into()])
}

/// Adds a bias with one element per channel, if present.
fn add_channel_bias(n: &mut Node<'_, '_>, y: Expr, bias: Option<Expr>) -> ExprResult {
    let Some(bias) = bias else { return Ok(y) };
    let dims = n.dims_with_min_rank(y, 2)?;
    let bias_size = n.vector_length(bias, "the bias")?;
    n.require_equal(bias_size, dims[1], "the bias has {} elements, but there are {} filters")?;
    let bias = n.reshape_along(bias, 1, dims.len())?;
    n.op("relax.add", &[y, bias])
}

fn conv_transpose(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let groups = attrs.positive_int("group")?.unwrap_or(1);
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let of_weight = n.dims_with_min_rank(weight, 2)?[0];
    let x = with_channels(n, x, of_weight, 1)?;
    let filter = filter_shape(n, weight)?;
    let axes = filter.len();
    let name = op_for_rank("conv", axes, "_transpose")?;
    let mut extra = attrs.ints("output_padding")?.map_or_else(|| vec![0; axes], <[i64]>::to_vec);
    let strides = attrs.ints("strides")?.map_or_else(|| vec![1; axes], <[i64]>::to_vec);
    let dilations = attrs.ints("dilations")?.map_or_else(|| vec![1; axes], <[i64]>::to_vec);
    for (name, list) in
        [("output_padding", &extra), ("strides", &strides), ("dilations", &dilations)]
    {
        check_list_length(name, list, axes)?;
    }
    check_sizes([&filter, &strides, &dilations])?;
    check_pads("output_padding", &extra)?;
    let auto = attrs.choice("auto_pad", &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])?;
    let output_shape = attrs.ints("output_shape")?.map(<[i64]>::to_vec);
    if output_shape.as_ref().is_some_and(|w| w.len() != axes || w.iter().any(|&size| size < 1)) {
        return Err(Problem::invalid(format!(
            "'output_shape' must have {axes} sizes of at least 1, but is {:?}",
            output_shape.unwrap_or_default()
        )));
    }
    let pads = match (auto, output_shape) {
        ("NOTSET", None) => attrs.ints("pads")?.map_or_else(|| vec![0; 2 * axes], <[i64]>::to_vec),
        ("VALID", None) => vec![0; 2 * axes],
        (side, output_shape) => {
            let dims = n.dims_with_min_rank(x, axes + 2)?;
            let mut pads = vec![0; 2 * axes];
            for k in 0..axes {
                let extent = dilations[k] * (filter[k] - 1) + 1;
                let (total, extension) = match &output_shape {
                    // The output size is the input size times the stride.
                    None => crop_and_extension(
                        "auto_pad",
                        i128::from(extra[k] + extent),
                        i128::from(strides[k]),
                    )?,
                    Some(output_shape) => {
                        let size = n.func().syms.as_int(dims[k + 2]).ok_or_else(|| {
                            Problem::known_only_at_run_time(
                                "the spatial size of input 0, which attribute 'output_shape' requires,",
                            )
                        })?;
                        let steps = i128::from(size - 1) * i128::from(strides[k]);
                        let natural = steps + i128::from(extra[k] + extent);
                        crop_and_extension("output_shape", natural, i128::from(output_shape[k]))?
                    }
                };
                extra[k] += extension;
                let (smaller, extension) = (total / 2, total - total / 2);
                (pads[k], pads[k + axes]) =
                    if side == "SAME_UPPER" { (smaller, extension) } else { (extension, smaller) };
            }
            pads
        }
    };
    check_pads("pads", &pads)?;
    let ints = |v: Vec<i64>| AttrValue::ints(v);
    let attrs = pliant_ir::Attrs::default()
        .with("strides", ints(strides))
        .with("padding", ints(pads))
        .with("output_padding", ints(extra))
        .with("dilation", ints(dilations))
        .with("groups", AttrValue::Int(groups));
    let y = n.op_with(&name, &[x, weight], attrs)?;
    let bias = n.optional_tensor(2)?;
    Ok(vec![add_channel_bias(n, y, bias)?.into()])
}

/// The number of elements to crop from an output of size `natural`, and the number to append to it, to get the size `output_shape`.
/// `name` is the attribute that requires this size.
fn crop_and_extension(
    name: &str,
    natural: i128,
    output_shape: i128,
) -> Result<(i64, i64), Problem> {
    let part = |size: i128, change: &str| {
        let by = size;
        let size = i64::try_from(size.max(0)).ok().filter(|&size| size <= MAX_PAD);
        size.ok_or_else(|| {
            Problem::invalid(format!(
                "attribute '{name}' requires an output that is {by} elements {change} than the output without padding, but the \
                 difference must be at most {MAX_PAD}"
            ))
        })
    };
    Ok((part(natural - output_shape, "smaller")?, part(output_shape - natural, "larger")?))
}
