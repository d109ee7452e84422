//! Converters of `Resize` and `Upsample`. An image operator resizes the spatial axes together if it supports the attributes.
//! Otherwise, each axis is interpolated separately from the input elements near each position.
//!
//! Scales, sizes and regions may be non-constant. Positions are computed in float64, as the specification requires.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};
use crate::rational_dims::RationalTensor;

mod interpolation;

use interpolation::{
    antialiased, clamp_index, interpolate, is_outside, nearest_index, source_positions,
};

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

/// The attributes of a `Resize` node.
struct ResizeAttrs {
    mode: &'static str,
    transform: &'static str,
    nearest: &'static str,
    cubic: f64,
    exclude: bool,
    outside: f64,
    antialias: bool,
}

/// For one axis that is resized: input size, output size, scale and region.
#[derive(Clone, Copy)]
struct AxisResize {
    axis: usize,
    from: Sym,
    to: Sym,
    scale: Scale,
    /// The start and end of the resized region, as fractions of the axis.
    region: Option<(Expr, Expr)>,
}

/// The scale of an axis: the ratio of the output size to the input size.
#[derive(Clone, Copy)]
enum Scale {
    Known(f64),
    /// A scale that is a non-constant float64 scalar.
    NonConstant(Expr),
    /// A scale that is the quotient of the output size and the input size.
    SizeRatio,
}

impl AxisResize {
    /// Whether resizing copies every element of the axis unchanged, provided that there is no region. `one` is the size 1 as a
    /// symbolic integer.
    fn is_unchanged(&self, one: Sym) -> bool {
        let same = matches!(self.scale, Scale::Known(1.0) | Scale::SizeRatio) || self.from == one;
        self.from == self.to && same
    }
}

impl Scale {
    /// The scale of an axis as a float64 scalar. `from` and `to` are the sizes of the axis in the input and the output.
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

/// Converts a size to a float64 scalar.
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

/// Converts `Upsample`. Its scales are an attribute (opset 7) or an input (opset 9).
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

/// Reads the output sizes of the axes from input 3.
fn axes_from_sizes(
    n: &mut Node<'_, '_>,
    dims: &[Sym],
    axes: &[usize],
    policy: &str,
) -> Result<Vec<AxisResize>, Problem> {
    let sizes = n.sizes_input(3, Some(axes.len()))?;
    if sizes.len() != axes.len() {
        return Err(wrong_count("sizes", sizes.len(), axes));
    }
    let zero = n.func().syms.int(0);
    for &size in &sizes {
        n.require_at_most(zero, size, "the numbers in 'sizes' must be at least {}, but one is {}")?;
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
    let common = common.ok_or_else(|| {
        Problem::invalid("'axes' is empty, but 'keep_aspect_ratio_policy' needs at least one axis")
    })?;
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

/// Reads the scales of the axes from the attribute `scales` or from input `input`.
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
        let length = n.vector_length(scales, "'scales'")?;
        let wanted = n.func().syms.int(axes.len() as i64);
        n.require_equal(length, wanted, "'scales' has {} numbers, but {} axes are resized")?;
        let (zero, end) =
            (n.scalar_as(0.0, DType::Float64)?, n.scalar_as(f64::INFINITY, DType::Float64)?);
        let (above, below) =
            (n.op("relax.greater", &[scales, zero])?, n.op("relax.less", &[scales, end])?);
        let positive = n.op("relax.logical_and", &[above, below])?;
        n.require(positive, "'scales' must be positive and finite, but is {}", &[scales])?;
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
        return Err(wrong_count("scales", known.len(), axes));
    }
    for (&axis, scale) in axes.iter().zip(known) {
        if !scale.is_finite() || scale <= 0.0 {
            return Err(Problem::invalid(format!(
                "'scales' contains {scale}, but every scale must be positive and finite"
            )));
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

/// Creates the problem that an input has a wrong number of elements for the resized axes.
fn wrong_count(name: &str, count: usize, axes: &[usize]) -> Problem {
    let expected = axes.len();
    Problem::invalid(format!("'{name}' has {count} numbers, but {expected} axes are resized"))
}

/// Reads the scales of the axes if the model computes them as quotients of sizes. If the denominator is the size of the axis, the
/// numerator is used as the output size, so rounding cannot change it.
fn axes_from_quotients(
    n: &mut Node<'_, '_>,
    dims: &[Sym],
    axes: &[usize],
    scales: &RationalTensor,
) -> Result<Vec<AxisResize>, Problem> {
    if scales.numerators.elems.len() != axes.len() {
        return Err(wrong_count("scales", scales.numerators.elems.len(), axes));
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
                return Err(Problem::invalid(format!(
                    "'scales' contains {scale}, but every scale must be positive and finite"
                )));
            }
            None => {
                let scale = n.vector_element(scale_tensor, k)?;
                n.require_at_most(
                    zero,
                    over,
                    "the numerator of a quotient in 'scales' must be at least {}, but is {}",
                )?;
                let to = if under == from { over } else { non_constant_size(n, from, scale)? };
                (to, Scale::NonConstant(scale))
            }
        };
        list.push(AxisResize { axis, from, to, scale, region: None });
    }
    Ok(list)
}

/// Multiplies a size by a non-constant scale and rounds down. The product is computed in float32, as in ONNX Runtime.
fn non_constant_size(n: &mut Node<'_, '_>, from: Sym, scale: Expr) -> Result<Sym, Problem> {
    let (from, scale) = (n.size_scalar(from)?, n.cast(scale, DType::Float32)?);
    let from = n.cast(from, DType::Float32)?;
    let size = n.op("relax.multiply", &[from, scale])?;
    floor_to_size(n, size)
}

/// Multiplies a size by a constant scale and rounds down. The result remains symbolic if the scale is a simple fraction.
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

/// Resizes a tensor with the image operator if that supports the node, else axis by axis.
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

/// Resizes an image whose requested sizes include the batch and channel axes. If these two sizes do
/// not change at run time, the image operator is used, else each axis is resized separately.
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

/// Resizes a tensor by resizing its axes one after another.
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

/// The scales of the spatial dims if all of them are constants, and whether any of them is
/// fractional. Integer scales equal the quotients of the sizes, so they need not be passed to the
/// operator.
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

/// Emits a call of the image operator, which resizes all spatial axes.
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
