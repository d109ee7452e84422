//! Converters of image operators: grid sampling, regions of interest, non-maximum suppression, `Col2Im` and deformable convolution.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::sliding_window::{check_list_length, check_pads, check_sizes};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("AffineGrid", affine_grid),
    op("Col2Im", col2im),
    op("DeformConv", deform_conv),
    op("GridSample", grid_sample),
    op("MaxRoiPool", max_roi_pool),
    op("NonMaxSuppression", non_max_suppression),
    op("RoiAlign", roi_align),
];

/// Moves the coordinates of a sampling grid from the last dim, where ONNX has them, to the second
/// dim. With `back`, moves them in the opposite direction.
fn move_coordinates(n: &mut Node<'_, '_>, grid: Expr, back: bool) -> ExprResult {
    let rank = n.dims_with_min_rank(grid, 2)?.len();
    let mut order: Vec<usize> = (0..rank).collect();
    if back {
        order.remove(1);
        order.push(1);
    } else {
        order.insert(1, rank - 1);
        order.pop();
    }
    n.permute(grid, &order)
}

fn grid_sample(n: &mut Node<'_, '_>) -> ConvertResult {
    let names = ["linear", "bilinear", "nearest", "cubic", "bicubic"];
    let method = match n.attrs().choice("mode", &names)? {
        "nearest" => "nearest",
        "cubic" | "bicubic" => "bicubic",
        _ => "bilinear",
    };
    let padding = n.attrs().choice("padding_mode", &["zeros", "border", "reflection"])?;
    let align = n.attrs().int("align_corners")?.unwrap_or(0) != 0;
    let (x, grid) = (n.tensor(0)?, n.tensor(1)?);
    let rank = n.rank(x)?;
    let layout = match rank {
        4 => "NCHW",
        5 => "NCDHW",
        _ => {
            return Err(Problem::unsupported(format!(
                "the input has {rank} dims, but only 4 and 5 are supported"
            )));
        }
    };
    let grid = move_coordinates(n, grid, false)?;
    let attrs = Attrs::default()
        .with("method", AttrValue::str(method))
        .with("layout", AttrValue::str(layout))
        .with("padding_mode", AttrValue::str(padding))
        .with("align_corners", AttrValue::Bool(align));
    Ok(vec![n.op_with("relax.image.grid_sample", &[x, grid], attrs)?.into()])
}

fn affine_grid(n: &mut Node<'_, '_>) -> ConvertResult {
    let align = n.attrs().int("align_corners")?.unwrap_or(0) != 0;
    let theta = n.tensor(0)?;
    let sizes = n.sizes_input(1, None)?;
    if sizes.len() < 4 {
        let text = format!("'size' must have 4 or 5 numbers, but has {}", sizes.len());
        return Err(Problem::invalid(text));
    }
    let size = n.func().shape(&sizes[2..]);
    let attrs = Attrs::default().with("align_corners", AttrValue::Bool(align));
    let grid = n.op_with("relax.image.affine_grid", &[theta, size], attrs)?;
    Ok(vec![move_coordinates(n, grid, true)?.into()])
}

/// Prepends to each region of interest the index of the image to which it belongs.
fn prepend_image_index(n: &mut Node<'_, '_>, rois: Expr, images: Expr) -> ExprResult {
    let dtype = n.dtype(rois)?;
    let count = n.dims_with_min_rank(images, 1)?[0];
    let one = n.func().syms.int(1);
    let images = n.cast(images, dtype)?;
    let images = n.reshape(images, &[count, one])?;
    n.concat(&[images, rois], 1)
}

fn roi_align(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let height = attrs.int("output_height")?.unwrap_or(1);
    let width = attrs.int("output_width")?.unwrap_or(1);
    let samples = attrs.int("sampling_ratio")?.unwrap_or(0);
    let scale = attrs.float("spatial_scale")?.unwrap_or(1.0);
    let mode = attrs.choice("mode", &["avg", "max"])?;
    let aligned = n.opset >= 16
        && attrs.choice("coordinate_transformation_mode", &["half_pixel", "output_half_pixel"])?
            == "half_pixel";
    let [x, rois, images] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let rois = prepend_image_index(n, rois, images)?;
    let attrs = Attrs::default()
        .with("pooled_size", AttrValue::ints([height, width]))
        .with("spatial_scale", AttrValue::float(scale))
        .with("sample_ratio", AttrValue::Int(if samples > 0 { samples } else { -1 }))
        .with("aligned", AttrValue::Bool(aligned))
        .with("mode", AttrValue::str(mode));
    Ok(vec![n.op_with("relax.vision.roi_align", &[x, rois], attrs)?.into()])
}

fn max_roi_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let size = n.attrs().ints("pooled_shape")?.unwrap_or_default().to_vec();
    let scale = n.attrs().float("spatial_scale")?.unwrap_or(1.0);
    let args = [n.tensor(0)?, n.tensor(1)?];
    let attrs = Attrs::default()
        .with("pooled_size", AttrValue::ints(size))
        .with("spatial_scale", AttrValue::float(scale));
    Ok(vec![n.op_with("relax.vision.roi_pool", &args, attrs)?.into()])
}

/// Converts `NonMaxSuppression`. The result lists the selected boxes of each class, as rows (image, class, box).
fn non_max_suppression(n: &mut Node<'_, '_>) -> ConvertResult {
    let centred = n.attrs().int("center_point_box")?.unwrap_or(0) != 0;
    let (mut boxes, scores) = (n.tensor(0)?, n.tensor(1)?);
    let dtype = n.dtype(boxes)?;
    if centred {
        boxes = boxes_to_corners(n, boxes)?;
    }
    let mut limits = Vec::with_capacity(3);
    let defaults = [(DType::Int64, 0.0), (dtype, 0.0), (dtype, f64::NEG_INFINITY)];
    for (i, (dtype, value)) in defaults.into_iter().enumerate() {
        limits.push(match n.optional_tensor(2 + i)? {
            Some(input) => n.reshape_to_scalar(input)?,
            None => n.scalar_as(value, dtype)?,
        });
    }
    let args = [boxes, scores, limits[0], limits[1], limits[2]];
    let both = n.op("relax.vision.all_class_non_max_suppression", &args)?;
    let [rows, count] = n.tuple_fields(both, 2)[..] else { return Ok(Vec::new()) };
    let count = n.elements_as_symbols(count, 1)?[0];
    let zero = n.func().syms.int(0);
    Ok(vec![n.slice_axis(rows, 0, zero, count)?.into()])
}

/// Converts boxes from centre and size to the coordinates of two corners.
fn boxes_to_corners(n: &mut Node<'_, '_>, boxes: Expr) -> ExprResult {
    let dtype = n.dtype(boxes)?;
    let [zero, two, four] = [0, 2, 4].map(|v| n.func().syms.int(v));
    let (centre, size) = (n.slice_axis(boxes, 2, zero, two)?, n.slice_axis(boxes, 2, two, four)?);
    let half = n.scalar_as(0.5, dtype)?;
    let half = n.op("relax.multiply", &[size, half])?;
    let (low, high) =
        (n.op("relax.subtract", &[centre, half])?, n.op("relax.add", &[centre, half])?);
    n.concat(&[low, high], 2)
}

/// Converts `Col2Im`: adds up patches, which are columns `(batch, channels * patch, positions)`, at their positions in the image.
fn col2im(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let (image, block) = (n.sizes_input(1, None)?, n.sizes_input(2, None)?);
    let axes = image.len();
    if axes == 0 {
        return Err(Problem::invalid("'image_shape' (input 1) is empty, so the image has no dims"));
    }
    let list = |n: &Node<'_, '_>, name: &str, count: usize, value: i64| {
        let input = n.attrs().ints(name)?;
        Ok::<_, Problem>(input.map_or_else(|| vec![value; count], <[i64]>::to_vec))
    };
    let (strides, dilations) = (list(n, "strides", axes, 1)?, list(n, "dilations", axes, 1)?);
    let pads = list(n, "pads", 2 * axes, 0)?;
    if dims.len() != 3 {
        let text = format!("the input must have 3 dims, but has {}", dims.len());
        return Err(Problem::invalid(text));
    }
    if block.len() != axes {
        return Err(Problem::invalid(format!(
            "'block_shape' (input 2) has {} sizes, but 'image_shape' (input 1) has {axes}",
            block.len()
        )));
    }
    check_list_length("strides", &strides, axes)?;
    check_list_length("dilations", &dilations, axes)?;
    check_list_length("pads", &pads, 2 * axes)?;
    check_sizes([&[], &strides, &dilations])?;
    check_pads("pads", &pads)?;
    let syms = &mut n.func().syms;
    let patch = syms.product(block.iter().copied());
    let channels = syms.floordiv(dims[1], patch);
    let planes = syms.mul(dims[0], channels);
    let mut patches = vec![planes];
    patches.extend(&block);
    for k in 0..axes {
        patches.push(patch_position_count(
            n,
            image[k],
            block[k],
            (strides[k], dilations[k]),
            &pads,
            k,
        ));
    }
    let patches = n.reshape(x, &patches)?;
    let size = n.func().shape(&image);
    let attrs = Attrs::default()
        .with("strides", AttrValue::ints(strides))
        .with("padding", AttrValue::ints(pads))
        .with("dilation", AttrValue::ints(dilations));
    let y = n.op_with("relax.image.col2im", &[patches, size], attrs)?;
    let full_shape = [&[dims[0], channels], image.as_slice()].concat();
    Ok(vec![n.reshape(y, &full_shape)?.into()])
}

/// The number of positions of a patch along axis `k` of the image.
fn patch_position_count(
    n: &mut Node<'_, '_>,
    image: Sym,
    block: Sym,
    (stride, dilation): (i64, i64),
    pads: &[i64],
    k: usize,
) -> Sym {
    let syms = &mut n.func().syms;
    let padding = syms.int(pads[k] + pads[k + pads.len() / 2]);
    let (one, dilation, stride) = (syms.int(1), syms.int(dilation), syms.int(stride));
    let extent = syms.sub(block, one);
    let extent = syms.mul(extent, dilation);
    let full_shape = syms.add(image, padding);
    let full_shape = syms.sub(full_shape, extent);
    let full_shape = syms.sub(full_shape, one);
    let steps = syms.floordiv(full_shape, stride);
    syms.add(steps, one)
}

/// Converts `DeformConv`: a convolution that reads the input at positions displaced by an offset input.
fn deform_conv(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let groups = attrs.positive_int("group")?.unwrap_or(1);
    let offset_groups = attrs.positive_int("offset_group")?.unwrap_or(1);
    let list = |name: &str, count: usize, value: i64| {
        let list = attrs.ints(name)?.map_or_else(|| vec![value; count], <[i64]>::to_vec);
        check_list_length(name, &list, count).map(|()| list)
    };
    let (strides, dilations, pads) =
        (list("strides", 2, 1)?, list("dilations", 2, 1)?, list("pads", 4, 0)?);
    check_sizes([&[], &strides, &dilations])?;
    check_pads("pads", &pads)?;
    let [x, w, offset] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let (dims, filter, offset_dims) = (n.dims(x)?, n.dims(w)?, n.dims(offset)?);
    let ([b, c, h, width], [out, each, kh, kw], [_, _, oh, ow]) =
        (dims.as_slice(), filter.as_slice(), offset_dims.as_slice())
    else {
        return Err(Problem::unsupported(format!(
            "the input, the weight and the offsets have {}, {} and {} dims, but each must have 4, \
             because only images of 2 spatial dims are supported",
            dims.len(),
            filter.len(),
            offset_dims.len()
        )));
    };
    let (b, c, h, width, out, each) = (*b, *c, *h, *width, *out, *each);
    let (kh, kw, oh, ow) = (*kh, *kw, *oh, *ow);
    // Half-precision floats cannot represent all positions in a large image.
    let dtype = match n.dtype(offset)? {
        DType::Float64 => DType::Float64,
        _ => DType::Float32,
    };
    let offset = n.cast(offset, dtype)?;
    let syms = &mut n.func().syms;
    let (groups, offset_groups) = (syms.int(groups), syms.int(offset_groups));
    let (one, two) = (syms.int(1), syms.int(2));
    let patch = syms.mul(kh, kw);
    let images = syms.mul(b, offset_groups);
    let channels = syms.floordiv(c, offset_groups);
    let rows = syms.mul(patch, oh);
    let area = syms.mul(oh, ow);
    // The input position of each filter element and output element, per axis: (images, kh, kw, oh, ow).
    let offset = n.reshape(offset, &[images, kh, kw, two, oh, ow])?;
    let mut axes = Vec::with_capacity(2);
    for (k, (block, count)) in [(kh, oh), (kw, ow)].into_iter().enumerate() {
        let (tap, position) = (n.iota(block)?, n.iota(count)?);
        let (tap, position) =
            (n.reshape_along(tap, 1 + k, 5)?, n.reshape_along(position, 3 + k, 5)?);
        let (step, stride, before) =
            (n.scalar(dilations[k])?, n.scalar(strides[k])?, n.scalar(pads[k])?);
        let tap = n.op("relax.multiply", &[tap, step])?;
        let position = n.op("relax.multiply", &[position, stride])?;
        let position = n.op("relax.add", &[position, tap])?;
        let position = n.op("relax.subtract", &[position, before])?;
        let position = n.cast(position, dtype)?;
        let coordinate = n.func().syms.int(k as i64);
        let next = n.func().syms.int(k as i64 + 1);
        let displacement = n.slice_axis(offset, 3, coordinate, next)?;
        let displacement = n.reshape(displacement, &[images, kh, kw, oh, ow])?;
        let position = n.op("relax.add", &[position, displacement])?;
        axes.push(n.reshape(position, &[images, one, rows, ow])?);
    }
    let grid = n.concat(&[axes[1], axes[0]], 1)?;
    let x = n.reshape(x, &[images, channels, h, width])?;
    let attrs = Attrs::default()
        .with("method", AttrValue::str("bilinear"))
        .with("layout", AttrValue::str("NCHW"))
        .with("padding_mode", AttrValue::str("zeros"))
        .with("pixel_coordinates", AttrValue::Bool(true));
    let sampled = n.op_with("relax.image.grid_sample", &[x, grid], attrs)?;
    let mut sampled = n.reshape(sampled, &[images, channels, patch, area])?;
    if let Some(mask) = n.optional_tensor(4)? {
        let mask = n.reshape(mask, &[images, one, patch, area])?;
        sampled = n.op("relax.multiply", &[sampled, mask])?;
    }
    let syms = &mut n.func().syms;
    let (deep, per_group) = (syms.mul(each, patch), syms.floordiv(out, groups));
    let sampled = n.reshape(sampled, &[b, groups, deep, area])?;
    let w = n.reshape(w, &[one, groups, per_group, deep])?;
    let y = n.op("relax.matmul", &[w, sampled])?;
    let mut y = n.reshape(y, &[b, out, oh, ow])?;
    if let Some(bias) = n.optional_tensor(3)? {
        let bias = n.reshape_along(bias, 1, 4)?;
        y = n.op("relax.add", &[y, bias])?;
    }
    Ok(vec![y.into()])
}
