//! The declaration of the kernel `conv_int8`: convolution of 8-bit integers.

use pliant_tensor::DType::{Float32, Int8, Int32, UInt8};

use super::activation;
use super::conv::{
    DILATIONS, GROUPS, KERNEL_SHAPE, PADDING, STRIDES, check_groups, flops, is_depthwise,
};
use super::matmul_int8::{check_float_operands, limit, requantize, scale};
use crate::reference::{Args, Number, Result, Windows, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

const SCALAR: Dims = Dims::Fixed(&["*one"]);
const FILTERS: Dims = Dims::Fixed(&["*filters"]);

/// The declaration of the kernel `conv_int8`: convolution of 8-bit integers.
pub static KERNEL: Kernel = Kernel {
    name: "conv_int8",
    doc: "Convolution of 8-bit integers (ONNX `ConvInteger`, `QLinearConv`) in up to 3 dims. The sums are those of \
          `(x - x_zero) * (weight - weight_zeros)`; padding is `x_zero`. A float32 result is \
          `activation((sums + terms) * scale * filter_scales + bias)`. An 8-bit result is this float32 result divided by \
          `out_scale`, rounded to an integer with ties to even, plus `out_zero`, clipped to `out_low` and `out_high`. Sums wrap \
          around at 32 bits.",
    operands: &[
        Operand::input(
            "x",
            Int8,
            Dims::Fixed(&["batch", "in_depth", "in_height", "in_width", "channels"]),
            "images",
        )
        .or(&[UInt8]),
        Operand::input("x_zero", Int32, SCALAR, "zero point of `x`; 0 if omitted").optional(),
        Operand::input("weight", Int8, Dims::Fixed(&["*weights"]), "packed weights"),
        Operand::input("filter_sums", Int32, FILTERS, "sums of the weights of each filter"),
        Operand::input("weight_zeros", Int32, FILTERS, "zero points of filters; 0 if omitted")
            .optional(),
        Operand::input("terms", Int32, FILTERS, "added to the sums; not for an int32 result")
            .optional(),
        Operand::input("scale", Float32, SCALAR, "the factor of all sums").optional(),
        Operand::input("filter_scales", Float32, FILTERS, "the factors of filters").optional(),
        Operand::input("bias", Float32, FILTERS, "added to each channel").optional(),
        Operand::input("out_scale", Float32, SCALAR, "scale of an 8-bit result; 1 if omitted")
            .optional(),
        Operand::input("out_zero", Float32, SCALAR, "zero point of an 8-bit result; 0 if omitted")
            .optional(),
        Operand::output(
            "out",
            Int32,
            Dims::Fixed(&["batch", "out_depth", "out_height", "out_width", "filters"]),
            "results",
        )
        .or(&[Float32, Int8, UInt8]),
    ],
    attrs: &[
        KERNEL_SHAPE,
        STRIDES,
        DILATIONS,
        PADDING,
        GROUPS,
        Attr::new(
            "panel_width",
            AttrType::Int(1, 64),
            AttrDefault::Required,
            "the number of filters of a panel of weights: 16, 32, 48 or 64; 1 in a depthwise convolution",
        ),
        activation::KIND,
        activation::LOW,
        activation::HIGH,
        activation::SLOPE,
        activation::OFFSET,
        limit("out_low", "the minimum of an 8-bit result"),
        limit("out_high", "the maximum of an 8-bit result"),
    ],
    derived: &[("weights", packed_len), ("one", |_, _| Some(1))],
    relations,
    flops,
    reference,
};

/// Returns the number of elements of the packed weights, including padding. The weights of each group are packed in panels. A
/// panel row contains a quad for each column: four weights that are adjacent along the inner dim `k`. In a depthwise convolution,
/// panels have one column. Returns `None` on overflow, or if an attribute is out of range.
fn packed_len(call: &Call, sizes: &Sizes) -> Option<i64> {
    let (groups, width) = (call.int("groups"), call.int("panel_width"));
    if groups < 1 || width < 1 {
        return None;
    }
    let channels = sizes.get("channels") / groups;
    let rows = call.ints("kernel_shape").iter().copied().try_fold(channels, i64::checked_mul)?;
    let panels = (sizes.get("filters") / groups).checked_add(width - 1)? / width;
    let quads = rows.checked_add(3)? / 4;
    [panels, quads, width, 4].into_iter().try_fold(groups, i64::checked_mul)
}

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    check_groups(call, sizes)?;
    let width = call.int("panel_width");
    if !is_depthwise(call, sizes) && width % 16 != 0 {
        return Err(format!(
            "attribute 'panel_width' is {width}, but must be the number of filters that the weight packs together: 16, 32, 48 or 64"
        ));
    }
    check_float_operands(
        call,
        &["terms", "scale", "filter_scales", "bias", "out_scale", "out_zero"],
    )
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let w = Windows::of_conv(args);
    let dtype = args.view("out")?.dtype;
    let zero = args.int_or("x_zero", &[0], 0)?;
    let (channels, [depth, height, width]) = (w.group.0, w.output);
    for [b, z, y, x, filter] in indices([w.batch, depth, height, width, w.filters]) {
        let weight_zero = args.int_or("weight_zeros", &[filter], 0)?;
        let mut sum = 0i64;
        for (number, tap) in (0..).zip(indices(w.kernel)) {
            let Some([i, j, k]) = w.position([z, y, x], tap) else { continue };
            args.step(channels as u64 + 1)?;
            for c in 0..channels {
                let from = [b, i, j, k, w.first_channel(filter) + c];
                let left = args.read_at("x", &from)?.int()?.wrapping_sub(zero);
                let at = weight_index(args, &w, (number, c, filter));
                let right = args.read_at("weight", &[at])?.int()?.wrapping_sub(weight_zero);
                sum = sum.wrapping_add(left.wrapping_mul(right));
            }
        }
        // Sums wrap around at 32 bits.
        let sum = sum.wrapping_add(args.int_or("terms", &[filter], 0)?) as i32;
        let value = if dtype == Int32 {
            Number::Int(sum.into())
        } else {
            let x = scale(args, sum, [("scale", 0), ("filter_scales", filter)], filter)?;
            if dtype == Float32 { Number::Float(x) } else { requantize(args, x)? }
        };
        args.set_at("out", &[b, z, y, x, filter], value)?;
    }
    Ok(())
}

/// Returns the index of a weight in the packed weights, for a filter position `tap`, a channel within the group, and a
/// filter.
fn weight_index(args: &Args<'_>, w: &Windows, (tap, channel, filter): (i64, i64, i64)) -> i64 {
    if is_depthwise(args.call, args.sizes) {
        return tap * w.filters + filter;
    }
    let ((channels, filters), width) = (w.group, args.call.int("panel_width"));
    let quads = (w.kernel.iter().product::<i64>() * channels + 3) / 4;
    let panels = (filters + width - 1) / width;
    let (group, column) = (filter / filters, filter % filters);
    let (row, panel) = (tap * channels + channel, group * panels + column / width);
    ((panel * quads + row / 4) * width + column % width) * 4 + row % 4
}
