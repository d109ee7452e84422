//! `Resize` and `Upsample`. An image operator resizes the spatial axes together if it supports the attributes. Otherwise, each axis
//! is interpolated separately from the input elements near each position.
//!
//! Scales, sizes and regions may be non-constant. Positions are computed in float64, as the specification requires.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use crate::error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};
use crate::rational_dims::RationalTensor;
use crate::value::Value;

pub(super) static OPS: &[OnnxOp] = &[op("Resize", resize), op("Upsample", upsample)];

const TRANSFORMS: [&str; 7] = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
];

const POLICIES: [&str; 3] = ["stretch", "not_larger", "not_smaller"];

/// The attributes of the node.
struct ResizeAttrs {
    mode: &'static str,
    transform: &'static str,
    nearest: &'static str,
    cubic: f64,
    exclude: bool,
    outside: f64,
    antialias: bool,
}

/// How one axis is resized.
#[derive(Clone, Copy)]
struct AxisResize {
    axis: usize,
    from: Sym,
    to: Sym,
    scale: Scale,
    /// The start and end of the region, as fractions of the axis.
    region: Option<(Expr, Expr)>,
}

/// The ratio of the output size to the input size.
#[derive(Clone, Copy)]
enum Scale {
    Known(f64),
    /// A non-constant float64 scalar.
    NonConstant(Expr),
    /// The quotient of output size and input size.
    SizeRatio,
}

impl AxisResize {
    /// Whether resizing copies every element of the axis unchanged. Regions are not considered.
    fn is_unchanged(&self, one: Sym) -> bool {
        let same = matches!(self.scale, Scale::Known(1.0) | Scale::SizeRatio) || self.from == one;
        self.from == self.to && same
    }
}

impl Scale {
    /// The scale as a float64 scalar.
    fn value(self, n: &mut Node<'_, '_>, from: Sym, to: Sym) -> ExprResult {
        match self {
            Scale::Known(v) => n.scalar_as(v, DType::Float64),
            Scale::NonConstant(e) => Ok(e),
            Scale::SizeRatio => {
                let (from, to) = (float_size(n, from)?, float_size(n, to)?);
                n.op("relax.divide", &[to, from])
            }
        }
    }
}

/// A size as a float64 scalar.
fn float_size(n: &mut Node<'_, '_>, size: Sym) -> ExprResult {
    let size = n.size_scalar(size)?;
    n.cast(size, DType::Float64)
}

fn resize(n: &mut Node<'_, '_>) -> ConvertResult {
    let old = n.opset < 11;
    let attrs = n.attrs();
    let (transform, nearest) = match old {
        true => ("asymmetric", "floor"),
        false => (
            attrs.choice("coordinate_transformation_mode", &TRANSFORMS)?,
            attrs.choice(
                "nearest_mode",
                &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
            )?,
        ),
    };
    let resize_attrs = ResizeAttrs {
        mode: attrs.choice("mode", &["nearest", "linear", "cubic"])?,
        transform,
        nearest,
        cubic: attrs.float("cubic_coeff_a")?.unwrap_or(-0.75),
        exclude: attrs.int("exclude_outside")?.unwrap_or(0) != 0,
        outside: attrs.float("extrapolation_value")?.unwrap_or(0.0),
        antialias: attrs.int("antialias")?.unwrap_or(0) != 0,
    };
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axes: Vec<usize> = match n.attrs().ints("axes")? {
        Some(axes) => axes.iter().map(|&a| n.axis(a, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).collect(),
    };
    if let Some(twice) = axes.iter().enumerate().find(|(i, a)| axes[..*i].contains(a)) {
        return Err(Problem::invalid(format!("'axes' contains axis {} twice", twice.1)));
    }
    let policy = n.attrs().choice("keep_aspect_ratio_policy", &POLICIES)?;
    let by_size = !old && n.has_input(3) && n.const_ints(3).is_none_or(|s| !s.is_empty());
    let mut list = if by_size {
        axes_from_sizes(n, &dims, &axes, policy)?
    } else {
        axes_from_scales(n, &dims, &axes, if old { 1 } else { 2 })?
    };
    if resize_attrs.transform == "tf_crop_and_resize" {
        let roi = n.tensor(1)?;
        let roi = n.cast(roi, DType::Float64)?;
        for (k, axis) in list.iter_mut().enumerate() {
            axis.region = Some((n.vector_element(roi, k)?, n.vector_element(roi, k + axes.len())?));
        }
    }
    Ok(vec![resize_axes(n, x, &resize_attrs, &list)?.into()])
}

/// `Upsample`: the scales are an attribute (opset 7) or an input (opset 9).
fn upsample(n: &mut Node<'_, '_>) -> ConvertResult {
    let resize_attrs = ResizeAttrs {
        mode: n.attrs().choice("mode", &["nearest", "linear"])?,
        transform: "asymmetric",
        nearest: "floor",
        cubic: -0.75,
        exclude: false,
        outside: 0.0,
        antialias: false,
    };
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axes: Vec<usize> = (0..dims.len()).collect();
    let list = axes_from_scales(n, &dims, &axes, 1)?;
    Ok(vec![resize_axes(n, x, &resize_attrs, &list)?.into()])
}

// ---- sizes ----

/// Reads the output sizes from input 3.
fn axes_from_sizes(
    n: &mut Node<'_, '_>,
    dims: &[Sym],
    axes: &[usize],
    policy: &str,
) -> Result<Vec<AxisResize>, Problem> {
    let sizes = n.sizes_input(3, Some(axes.len()))?;
    if sizes.len() != axes.len() {
        return Err(Problem::invalid(format!("'sizes' must have {} numbers", axes.len())));
    }
    let zero = n.func().syms.int(0);
    for &size in &sizes {
        n.require_at_most(zero, size, "its sizes must be at least {}, but one is {}")?;
    }
    let plain = |(&axis, &to): (&usize, &Sym)| AxisResize {
        axis,
        from: dims[axis],
        to,
        scale: Scale::SizeRatio,
        region: None,
    };
    let mut list: Vec<AxisResize> = axes.iter().zip(&sizes).map(plain).collect();
    if policy == "stretch" {
        return Ok(list);
    }
    // With an aspect ratio policy, all axes have the smallest or the largest of the requested scales.
    let pick = if policy == "not_larger" { "relax.minimum" } else { "relax.maximum" };
    let mut common: Option<Expr> = None;
    for axis in &list {
        let scale = Scale::SizeRatio.value(n, axis.from, axis.to)?;
        common = Some(match common {
            None => scale,
            Some(common) => n.op(pick, &[common, scale])?,
        });
    }
    let common = common.ok_or_else(|| Problem::invalid("it has no axes to resize"))?;
    for axis in &mut list {
        let half = n.scalar_as(0.5, DType::Float64)?;
        let size = float_size(n, axis.from)?;
        let size = n.op("relax.multiply", &[size, common])?;
        let size = n.op("relax.add", &[size, half])?;
        axis.to = floor_to_size(n, size)?;
        axis.scale = Scale::NonConstant(common);
    }
    Ok(list)
}

/// Rounds a non-constant scalar down and returns it as a size.
fn floor_to_size(n: &mut Node<'_, '_>, size: Expr) -> Result<Sym, Problem> {
    let size = n.op("relax.floor", &[size])?;
    let size = n.cast(size, DType::Int64)?;
    let one = n.func().syms.int(1);
    let size = n.reshape(size, &[one])?;
    Ok(n.elements_as_symbols(size, 1)?[0])
}

/// Reads the scales from the attribute `scales` or from input `input`.
fn axes_from_scales(
    n: &mut Node<'_, '_>,
    dims: &[Sym],
    axes: &[usize],
    input: usize,
) -> Result<Vec<AxisResize>, Problem> {
    if let Value::Rational(scales) = n.input(input) {
        return axes_from_quotients(n, dims, axes, &scales);
    }
    let known = match n.attrs().floats("scales")? {
        Some(scales) => Some(scales.iter().map(|&s| f64::from(s)).collect()),
        None => n.const_floats(input),
    };
    let mut list = Vec::with_capacity(axes.len());
    let Some(known) = known else {
        let scales = n.tensor(input)?;
        let scales = n.cast(scales, DType::Float64)?;
        let (length, wanted) = (n.dims(scales)?, n.func().syms.int(axes.len() as i64));
        let [length] = length[..] else {
            return Err(Problem::invalid("'scales' must be a vector"));
        };
        n.require_equal(length, wanted, "'scales' has {} numbers for {} axes")?;
        let (zero, end) =
            (n.scalar_as(0.0, DType::Float64)?, n.scalar_as(f64::INFINITY, DType::Float64)?);
        let (above, below) =
            (n.op("relax.greater", &[scales, zero])?, n.op("relax.less", &[scales, end])?);
        let positive = n.op("relax.logical_and", &[above, below])?;
        n.require(positive, "its scales must be positive, but are {}", &[scales])?;
        for (k, &axis) in axes.iter().enumerate() {
            let scale = n.vector_element(scales, k)?;
            let to = non_constant_size(n, dims[axis], scale)?;
            list.push(AxisResize {
                axis,
                from: dims[axis],
                to,
                scale: Scale::NonConstant(scale),
                region: None,
            });
        }
        return Ok(list);
    };
    if known.len() != axes.len() {
        return Err(Problem::invalid(format!("'scales' must have {} numbers", axes.len())));
    }
    for (&axis, scale) in axes.iter().zip(known) {
        if !scale.is_finite() || scale <= 0.0 {
            return Err(Problem::invalid(format!("the scale {scale} is not positive")));
        }
        let to = scaled_size(n, dims[axis], scale)?;
        list.push(AxisResize {
            axis,
            from: dims[axis],
            to,
            scale: Scale::Known(scale),
            region: None,
        });
    }
    Ok(list)
}

/// Reads scales that the model computes from sizes. If a scale is the quotient of a size and the size of its axis, the output has
/// exactly that size, whatever the rounding.
fn axes_from_quotients(
    n: &mut Node<'_, '_>,
    dims: &[Sym],
    axes: &[usize],
    scales: &RationalTensor,
) -> Result<Vec<AxisResize>, Problem> {
    if scales.numerators.elems.len() != axes.len() {
        return Err(Problem::invalid(format!("'scales' must have {} numbers", axes.len())));
    }
    let scale_tensor = n.rational_to_tensor(scales)?;
    let scale_tensor = n.cast(scale_tensor, DType::Float64)?;
    let zero = n.func().syms.int(0);
    let mut list = Vec::with_capacity(axes.len());
    for (k, (&axis, (over, under))) in axes.iter().zip(scales.quotients()).enumerate() {
        let from = dims[axis];
        let (to, scale) = match RationalTensor::constant_quotient(n.func(), (over, under)) {
            Some(scale) if scale > 0.0 => (scaled_size(n, from, scale)?, Scale::Known(scale)),
            Some(scale) => {
                return Err(Problem::invalid(format!("the scale {scale} is not positive")));
            }
            None => {
                let scale = n.vector_element(scale_tensor, k)?;
                n.require_at_most(zero, over, "its scales must be at least {}, but one is of {}")?;
                let to = if under == from { over } else { non_constant_size(n, from, scale)? };
                (to, Scale::NonConstant(scale))
            }
        };
        list.push(AxisResize { axis, from, to, scale, region: None });
    }
    Ok(list)
}

/// A size times a non-constant scale, rounded down. The product is computed in float32, as in ONNX Runtime.
fn non_constant_size(n: &mut Node<'_, '_>, from: Sym, scale: Expr) -> Result<Sym, Problem> {
    let (from, scale) = (n.size_scalar(from)?, n.cast(scale, DType::Float32)?);
    let from = n.cast(from, DType::Float32)?;
    let size = n.op("relax.multiply", &[from, scale])?;
    floor_to_size(n, size)
}

/// A size times a constant scale, rounded down. It remains symbolic if the scale is a simple fraction.
fn scaled_size(n: &mut Node<'_, '_>, size: Sym, scale: f64) -> Result<Sym, Problem> {
    if let Some(size) = n.func().syms.as_int(size) {
        return Ok(n.func().syms.int((size as f32 * scale as f32).floor() as i64));
    }
    let whole = |d: &i64| (scale * *d as f64).fract() == 0.0 && scale * *d as f64 <= 1e6;
    if let Some(below) = (1..=64i64).find(whole) {
        let syms = &mut n.func().syms;
        let (above, below) = (syms.int((scale * below as f64) as i64), syms.int(below));
        let product = syms.mul(size, above);
        return Ok(syms.floordiv(product, below));
    }
    let scale = n.scalar_as(scale, DType::Float32)?;
    non_constant_size(n, size, scale)
}

// ---- the result ----

/// Resizes with the image operator if it supports the node, else axis by axis.
fn resize_axes(
    n: &mut Node<'_, '_>,
    x: Expr,
    attrs: &ResizeAttrs,
    list: &[AxisResize],
) -> ExprResult {
    if is_image(n, x, attrs, list)? {
        return resize_image(n, x, attrs, list);
    }
    let spatial: Vec<AxisResize> = list.iter().copied().filter(|a| a.axis > 1).collect();
    let others: Vec<AxisResize> = list.iter().copied().filter(|a| a.axis < 2).collect();
    let by_sizes = others.iter().all(|a| matches!(a.scale, Scale::SizeRatio) && a.region.is_none());
    if by_sizes && is_image(n, x, attrs, &spatial)? {
        return resize_image_or_axes(n, x, attrs, (list, &spatial, &others));
    }
    resize_by_axis(n, x, attrs, list)
}

/// Resizes an image whose requested sizes include batch and channels. These rarely change. If they do not at run time, the image
/// operator is used, else each axis is resized separately.
fn resize_image_or_axes(
    n: &mut Node<'_, '_>,
    x: Expr,
    attrs: &ResizeAttrs,
    (list, spatial, others): (&[AxisResize], &[AxisResize], &[AxisResize]),
) -> ExprResult {
    let mut dims = n.dims(x)?;
    let mut same: Option<Expr> = None;
    for axis in others {
        let (from, to) = (n.size_scalar(axis.from)?, n.size_scalar(axis.to)?);
        let equal = n.op("relax.equal", &[from, to])?;
        same = Some(match same {
            None => equal,
            Some(before) => n.op("relax.logical_and", &[before, equal])?,
        });
    }
    let Some(same) = same else { return resize_by_axis(n, x, attrs, list) };
    for axis in list {
        dims[axis.axis] = axis.to;
    }
    let dims: Vec<Option<Sym>> = dims.into_iter().map(Some).collect();
    let y = n.if_else(
        same,
        |n| resize_image(n, x, attrs, spatial),
        |n| resize_by_axis(n, x, attrs, list),
    )?;
    n.with_dims(y, &dims)
}

/// Resizes one axis after another.
fn resize_by_axis(
    n: &mut Node<'_, '_>,
    x: Expr,
    attrs: &ResizeAttrs,
    list: &[AxisResize],
) -> ExprResult {
    let dtype = n.dtype(x)?;
    let wide = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let mut y = if attrs.mode == "nearest" { x } else { n.cast(x, wide)? };
    let mut outside_region: Option<Expr> = None;
    let rank = n.rank(x)?;
    for axis in list {
        let one = n.func().syms.int(1);
        let crops = axis.region.is_some();
        if axis.is_unchanged(one) && !crops {
            continue;
        }
        let position = source_positions(n, attrs, axis)?;
        y = match attrs.mode {
            "nearest" => {
                let near = nearest_index(n, attrs, position)?;
                let near = clamp_index(n, near, axis.from)?;
                n.take(y, near, axis.axis)?
            }
            _ if attrs.antialias => antialiased(n, y, attrs, axis, position)?,
            _ => interpolate(n, y, attrs, axis, position)?,
        };
        if crops {
            let outside = is_outside(n, position, axis.from)?;
            let outside = n.reshape_along(outside, axis.axis, rank)?;
            outside_region = Some(match outside_region {
                None => outside,
                Some(before) => n.op("relax.logical_or", &[before, outside])?,
            });
        }
    }
    let mut y = n.cast(y, dtype)?;
    if let Some(outside_region) = outside_region {
        let value = n.scalar_as(attrs.outside, dtype)?;
        y = n.op("relax.where", &[outside_region, value, y])?;
    }
    Ok(y)
}

/// Whether the image operator supports the node: the input has 2 or 3 spatial dims, only these are resized, and the scales are
/// constants or quotients of sizes.
fn is_image(
    n: &mut Node<'_, '_>,
    x: Expr,
    attrs: &ResizeAttrs,
    list: &[AxisResize],
) -> Result<bool, Problem> {
    let one = n.func().syms.int(1);
    let constant = |a: &AxisResize| !matches!(a.scale, Scale::NonConstant(_));
    let spatial = |a: &AxisResize| a.axis > 1 || a.is_unchanged(one);
    let plain = list.iter().all(|a| a.region.is_none() && constant(a) && spatial(a));
    let averages = attrs.mode != "nearest";
    let rank = n.rank(x)?;
    if !matches!(rank, 4 | 5) || !plain || attrs.antialias || averages && !n.dtype(x)?.is_float() {
        return Ok(false);
    }
    let (scales, rounds) = image_scales(list, rank);
    Ok(!rounds || scales.is_some())
}

/// The scales of the spatial dims if all of them are constants, and whether one of them is fractional. Integer scales equal the
/// quotients of the sizes, so they need not be passed to the operator.
fn image_scales(list: &[AxisResize], rank: usize) -> (Option<Vec<f64>>, bool) {
    let scale = |k: usize| match list.iter().find(|a| a.axis == k).map(|a| a.scale) {
        None => Some(1.0),
        Some(Scale::Known(scale)) => Some(scale),
        Some(_) => None,
    };
    let scales: Vec<Option<f64>> = (2..rank).map(scale).collect();
    let rounds = scales.iter().flatten().any(|scale| scale.fract() != 0.0);
    (scales.into_iter().collect(), rounds)
}

/// Calls the image operator for all spatial axes.
fn resize_image(
    n: &mut Node<'_, '_>,
    x: Expr,
    resize_attrs: &ResizeAttrs,
    list: &[AxisResize],
) -> ExprResult {
    let (dims, rank) = (n.dims(x)?, n.rank(x)?);
    let op = if rank == 4 { "relax.image.resize2d" } else { "relax.image.resize3d" };
    let axis = |axis: usize| list.iter().find(|a| a.axis == axis);
    let size: Vec<Sym> = (2..rank).map(|k| axis(k).map_or(dims[k], |a| a.to)).collect();
    let (scales, rounds) = image_scales(list, rank);
    let scales = scales.filter(|_| rounds);
    let size = n.func().shape(&size);
    let method = match resize_attrs.mode {
        "nearest" => "nearest_neighbor",
        other => other,
    };
    let attrs = Attrs::default()
        .with("layout", AttrValue::str(["NCHW", "NCDHW"][rank - 4]))
        .with("method", AttrValue::str(method))
        .with("coordinate_transformation_mode", AttrValue::str(resize_attrs.transform))
        .with("rounding_method", AttrValue::str(resize_attrs.nearest))
        .with("cubic_alpha", AttrValue::float(resize_attrs.cubic))
        .with("cubic_exclude", AttrValue::Int(i64::from(resize_attrs.exclude)))
        .with(
            "scales",
            scales.map_or(AttrValue::None, |s| {
                AttrValue::List(s.into_iter().map(AttrValue::float).collect())
            }),
        );
    n.op_with(op, &[x, size], attrs)
}

/// For each output element, its position in the input, in float64.
fn source_positions(n: &mut Node<'_, '_>, attrs: &ResizeAttrs, axis: &AxisResize) -> ExprResult {
    let position = n.iota(axis.to)?;
    let position = n.cast(position, DType::Float64)?;
    let [zero, half, one, two] = [0.0, 0.5, 1.0, 2.0].map(|v| n.scalar_as(v, DType::Float64));
    let (zero, half, one, two) = (zero?, half?, one?, two?);
    let scale = axis.scale.value(n, axis.from, axis.to)?;
    let from = float_size(n, axis.from)?;
    let last = n.op("relax.subtract", &[from, one])?;
    let whole = n.op("relax.multiply", &[from, scale])?;
    let centred = |n: &mut Node<'_, '_>| {
        let centre = n.op("relax.add", &[position, half])?;
        n.op("relax.divide", &[centre, scale])
    };
    // The distance between adjacent positions if the ends of both axes are aligned.
    let step = |n: &mut Node<'_, '_>| {
        let steps = n.op("relax.subtract", &[whole, one])?;
        let is_single = n.op("relax.equal", &[steps, zero])?;
        let steps = n.op("relax.where", &[is_single, one, steps])?;
        let step = n.op("relax.divide", &[last, steps])?;
        Ok((is_single, step))
    };
    match attrs.transform {
        "asymmetric" => n.op("relax.divide", &[position, scale]),
        "tf_half_pixel_for_nn" => centred(n),
        "align_corners" => {
            let (_, step): (Expr, Expr) = step(n)?;
            n.op("relax.multiply", &[position, step])
        }
        "half_pixel_symmetric" => {
            let to = float_size(n, axis.to)?;
            let weight = n.op("relax.divide", &[to, whole])?;
            let rest = n.op("relax.subtract", &[one, weight])?;
            let middle = n.op("relax.divide", &[from, two])?;
            let offset = n.op("relax.multiply", &[middle, rest])?;
            let y = centred(n)?;
            let y = n.op("relax.subtract", &[y, half])?;
            n.op("relax.add", &[y, offset])
        }
        "tf_crop_and_resize" => {
            let (start, end) =
                axis.region.ok_or_else(|| Problem::invalid("it needs a region (input 1)"))?;
            let (is_single, step): (Expr, Expr) = step(n)?;
            let span = n.op("relax.subtract", &[end, start])?;
            let moved = n.op("relax.multiply", &[position, step])?;
            let moved = n.op("relax.multiply", &[moved, span])?;
            let middle = n.op("relax.multiply", &[span, last])?;
            let middle = n.op("relax.divide", &[middle, two])?;
            let moved = n.op("relax.where", &[is_single, middle, moved])?;
            let first = n.op("relax.multiply", &[start, last])?;
            n.op("relax.add", &[moved, first])
        }
        other => {
            let y = centred(n)?;
            let y = n.op("relax.subtract", &[y, half])?;
            if other != "pytorch_half_pixel" {
                return Ok(y);
            }
            // A single output element is at the first input position, not in the middle.
            let to = float_size(n, axis.to)?;
            let many = n.op("relax.greater", &[to, one])?;
            n.op("relax.where", &[many, y, zero])
        }
    }
}

/// Rounds each position to an index, according to `nearest_mode`.
fn nearest_index(n: &mut Node<'_, '_>, attrs: &ResizeAttrs, position: Expr) -> ExprResult {
    let half = n.scalar_as(0.5, DType::Float64)?;
    let near = match attrs.nearest {
        "floor" => n.op("relax.floor", &[position])?,
        "ceil" => n.op("relax.ceil", &[position])?,
        "round_prefer_ceil" => {
            let up = n.op("relax.add", &[position, half])?;
            n.op("relax.floor", &[up])?
        }
        _ => {
            let down = n.op("relax.subtract", &[position, half])?;
            n.op("relax.ceil", &[down])?
        }
    };
    n.cast(near, DType::Int64)
}

/// Clamps indices to an axis of the given size.
fn clamp_index(n: &mut Node<'_, '_>, position: Expr, size: Sym) -> ExprResult {
    let one = n.func().syms.int(1);
    let last = n.func().syms.sub(size, one);
    let (zero, last) = (n.scalar(0i64)?, n.size_scalar(last)?);
    let position = n.op("relax.maximum", &[position, zero])?;
    n.op("relax.minimum", &[position, last])
}

/// Whether positions are outside of the input.
fn is_outside(n: &mut Node<'_, '_>, position: Expr, size: Sym) -> ExprResult {
    let one = n.func().syms.int(1);
    let last = n.func().syms.sub(size, one);
    let last = float_size(n, last)?;
    let zero = n.scalar_as(0.0, DType::Float64)?;
    let (low, high) =
        (n.op("relax.less", &[position, zero])?, n.op("relax.greater", &[position, last])?);
    n.op("relax.logical_or", &[low, high])
}

/// The weight of an input element by its distance from the position, in float64.
fn interpolation_weight(n: &mut Node<'_, '_>, attrs: &ResizeAttrs, distance: Expr) -> ExprResult {
    let mut number = |v: f64| n.scalar_as(v, DType::Float64);
    let (zero, one, two) = (number(0.0)?, number(1.0)?, number(2.0)?);
    let a = attrs.cubic;
    let coefficients = [a + 2.0, -(a + 3.0), a, -5.0 * a, 8.0 * a, -4.0 * a].map(&mut number);
    let d = n.op("relax.abs", &[distance])?;
    if attrs.mode == "linear" {
        let y = n.op("relax.subtract", &[one, d])?;
        return n.op("relax.maximum", &[y, zero]);
    }
    let [c0, c1, c2, c3, c4, c5] = coefficients;
    // `(a + 2) d^3 - (a + 3) d^2 + 1` for `d <= 1`, `a d^3 - 5 a d^2 + 8 a d - 4 a` for `d <= 2`, else 0.
    let y = n.op("relax.multiply", &[d, c0?])?;
    let y = n.op("relax.add", &[y, c1?])?;
    let y = n.op("relax.multiply", &[y, d])?;
    let y = n.op("relax.multiply", &[y, d])?;
    let near = n.op("relax.add", &[y, one])?;
    let y = n.op("relax.multiply", &[d, c2?])?;
    let y = n.op("relax.add", &[y, c3?])?;
    let y = n.op("relax.multiply", &[y, d])?;
    let y = n.op("relax.add", &[y, c4?])?;
    let y = n.op("relax.multiply", &[y, d])?;
    let far = n.op("relax.add", &[y, c5?])?;
    let is_far = n.op("relax.less", &[d, two])?;
    let far = n.op("relax.where", &[is_far, far, zero])?;
    let is_near = n.op("relax.less_equal", &[d, one])?;
    n.op("relax.where", &[is_near, near, far])
}

/// Sets the weights of indices outside of the axis to zero.
fn zero_outside_weights(
    n: &mut Node<'_, '_>,
    weights: Expr,
    position: Expr,
    size: Sym,
) -> ExprResult {
    let (is_single, size) = (n.scalar(0i64)?, n.size_scalar(size)?);
    let (low, high) = (
        n.op("relax.greater_equal", &[position, is_single])?,
        n.op("relax.less", &[position, size])?,
    );
    let inside = n.op("relax.logical_and", &[low, high])?;
    let zero = n.scalar_as(0.0, DType::Float64)?;
    n.op("relax.where", &[inside, weights, zero])
}

/// Interpolates each position from the 2 (linear) or 4 (cubic) elements around it.
fn interpolate(
    n: &mut Node<'_, '_>,
    x: Expr,
    attrs: &ResizeAttrs,
    axis: &AxisResize,
    position: Expr,
) -> ExprResult {
    let (dtype, rank) = (n.dtype(x)?, n.rank(x)?);
    let floor = n.op("relax.floor", &[position])?;
    let taps: &[i64] = if attrs.mode == "linear" { &[0, 1] } else { &[-1, 0, 1, 2] };
    let mut parts = Vec::with_capacity(taps.len());
    let mut sum: Option<Expr> = None;
    for &tap in taps {
        let offset = n.scalar_as(tap as f64, DType::Float64)?;
        let index = n.op("relax.add", &[floor, offset])?;
        let distance = n.op("relax.subtract", &[index, position])?;
        let mut weight = interpolation_weight(n, attrs, distance)?;
        let index = n.cast(index, DType::Int64)?;
        if attrs.exclude {
            weight = zero_outside_weights(n, weight, index, axis.from)?;
            sum = Some(match sum {
                None => weight,
                Some(sum) => n.op("relax.add", &[sum, weight])?,
            });
        }
        parts.push((clamp_index(n, index, axis.from)?, weight));
    }
    let mut y: Option<Expr> = None;
    for (index, mut weight) in parts {
        if let Some(sum) = sum {
            weight = n.op("relax.divide", &[weight, sum])?;
        }
        let weight = n.cast(weight, dtype)?;
        let weight = n.reshape_along(weight, axis.axis, rank)?;
        let part = n.take(x, index, axis.axis)?;
        let part = n.op("relax.multiply", &[part, weight])?;
        y = Some(match y {
            None => part,
            Some(y) => n.op("relax.add", &[y, part])?,
        });
    }
    y.ok_or_else(|| Problem::invalid("it has no weights"))
}

/// Resizes one axis with antialiasing: the filter is as wide as an output element. It is applied as a matrix product with the
/// weights of all input elements.
fn antialiased(
    n: &mut Node<'_, '_>,
    x: Expr,
    resize_attrs: &ResizeAttrs,
    axis: &AxisResize,
    position: Expr,
) -> ExprResult {
    let (dtype, rank) = (n.dtype(x)?, n.rank(x)?);
    let scale = axis.scale.value(n, axis.from, axis.to)?;
    let one = n.scalar_as(1.0, DType::Float64)?;
    let scale = n.op("relax.minimum", &[scale, one])?;
    // How many elements beyond the edge a filter covers. They have the value of the edge.
    let margin = if resize_attrs.exclude {
        n.func().syms.int(0)
    } else {
        let width =
            n.scalar_as(if resize_attrs.mode == "linear" { 2.0 } else { 3.0 }, DType::Float64)?;
        let margin = n.op("relax.divide", &[width, scale])?;
        floor_to_size(n, margin)?
    };
    let whole = {
        let syms = &mut n.func().syms;
        let longer = syms.add(axis.from, margin);
        syms.add(longer, margin)
    };
    let elements = n.iota(whole)?;
    let margin = n.size_scalar(margin)?;
    let elements = n.op("relax.subtract", &[elements, margin])?;
    let columns = n.cast(elements, DType::Float64)?;
    let (columns, rows) = (n.reshape_along(columns, 1, 2)?, n.reshape_along(position, 0, 2)?);
    let distance = n.op("relax.subtract", &[columns, rows])?;
    let distance = n.op("relax.multiply", &[distance, scale])?;
    let weights = interpolation_weight(n, resize_attrs, distance)?;
    let attrs =
        Attrs::default().with("axis", AttrValue::Int(1)).with("keepdims", AttrValue::Bool(true));
    let sum = n.op_with("relax.sum", &[weights], attrs)?;
    let weights = n.op("relax.divide", &[weights, sum])?;
    let weights = n.cast(weights, dtype)?;
    let elements = clamp_index(n, elements, axis.from)?;
    let x = n.take(x, elements, axis.axis)?;
    // Transpose the axis to the second-to-last position, over which the matrix product sums.
    let mut order: Vec<usize> = (0..rank).filter(|&a| a != axis.axis).collect();
    order.insert((rank - 1).saturating_sub(1), axis.axis);
    if rank == 1 {
        return n.op("relax.matmul", &[weights, x]);
    }
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(to, &from)| back[from] = to);
    let x = n.permute(x, &order)?;
    let y = n.op("relax.matmul", &[weights, x])?;
    n.permute(y, &back)
}
