//! Resizing of 2D and 3D images.
//!
//! Without `scales`, the position in the data for a position in the result is a quotient of two
//! integers, so that floor and round detect ties exactly. Positions and weights are computed once
//! for each index of an axis, and all pixels at this index share them. If the width is the last dim
//! and does not shrink, interpolation is separable: whole rows are interpolated first, then
//! neighbours within a row.

use pliant_ir::op::DimTrait;
use pliant_ir::op::InferError;
use pliant_ir::{AttrValue, DType, Sym};

use super::super::nn::tensor_layouts::{self, Layout};
use super::super::reductions::accumulator;
use super::cubic_weights;
use super::resize_kernel::{self, Images};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::size_proofs;
use crate::te::{self, Check, Expr, Tensor};
use crate::type_inference::{InferCtx, Precision};

macro_rules! resize_op {
    ($name:literal, $n:literal, $layout:literal, $rounding:literal) => {
        OpDecl::new(
            concat!("relax.image.", $name),
            |ctx| infer(ctx, $n),
            "Resizes images as ONNX's Resize: with the nearest element (\"nearest_neighbor\", rounded by `rounding_method`), or \
            with a weighted average of the neighbours (\"linear\", \"cubic\"). `roi` (the start of each dim, then the end of \
            each dim) and `extrapolation_value` apply to \"tf_crop_and_resize\". `scales` has the ratio of output to input size \
            before rounding for each spatial dim. By default, it is the ratio of the sizes. The result has type `out_dtype`, by \
            default that of `data`. Positions are exact or float64, except in the modes \"torch_asymmetric\" and \
            \"torch_half_pixel\", which multiply by the reciprocal of the scale in float32 (float64 for float64 `data`), as PyTorch, and \
            ignore `rounding_method`.",
        )
        .operands(&["data", "size: size"])
        .attrs(&[
            ("roi", Default::None),
            ("layout", Default::Str($layout)),
            ("method", Default::Str("linear")),
            ("coordinate_transformation_mode", Default::Str("half_pixel")),
            ("rounding_method", Default::Str($rounding)),
            ("cubic_alpha", Default::Float(-0.75)),
            ("cubic_exclude", Default::Int(0)),
            ("extrapolation_value", Default::Float(0.0)),
            ("out_dtype", Default::None),
            ("scales", Default::None),
        ])
        .dims(DimTrait::Layout("layout"))
        .te(Pattern::Opaque, |ctx| te_resize(ctx, $n))
        .onnx(&["Resize", "Upsample"])
        .errors(
            "the layout is invalid or differs in rank from `data`, `size` has neither one value nor one per spatial dim, or \
            `scales` is set for \"tf_crop_and_resize\"",
        )
        .limits(tensor_layouts::LAYOUT_LIMITS)
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    resize_op!("resize2d", 2, "NCHW", "round"),
    resize_op!("resize3d", 3, "NCDHW", "").gradient_from_te(),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpolation {
    Nearest,
    Linear,
    Cubic,
}

const COORDINATE_MODES: [&str; 9] = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    TF_CROP_AND_RESIZE,
    TORCH_ASYMMETRIC,
    TORCH_HALF_PIXEL,
];
const TF_CROP_AND_RESIZE: &str = "tf_crop_and_resize";
const TORCH_ASYMMETRIC: &str = "torch_asymmetric";
const TORCH_HALF_PIXEL: &str = "torch_half_pixel";
const ROUNDINGS: [&str; 6] =
    ["", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"];

/// The attributes of a call of a resize operator.
struct ResizeAttrs {
    layout: Layout,
    method: Interpolation,
    mode: &'static str,
    rounding: &'static str,
    /// The first and last position of each dim in the region of interest, as fractions of the dim.
    roi: Vec<(f64, f64)>,
    alpha: f64,
    exclude_outside: bool,
    extrapolation_value: f64,
    /// The data type in which the modes of PyTorch compute positions.
    position_dtype: DType,
    /// For each dim, the factor by which its size changes. `None` if the call states no factors, so
    /// that they follow from the sizes.
    scales: Option<Vec<f64>>,
}

fn resize_attrs(ctx: &InferCtx<'_>, n: usize) -> Result<ResizeAttrs, InferError> {
    let methods = ["nearest_neighbor", "linear", "cubic"];
    let mode = COORDINATE_MODES[ctx.choice("coordinate_transformation_mode", &COORDINATE_MODES)?];
    let scales = scales_attr(ctx, n)?;
    if scales.is_some() && mode == TF_CROP_AND_RESIZE {
        return Err(ctx.error(
            "scales cannot be set if coordinate_transformation_mode is \"tf_crop_and_resize\"",
        ));
    }
    Ok(ResizeAttrs {
        layout: Layout::read(ctx, "layout", "NC", n)?,
        method: [Interpolation::Nearest, Interpolation::Linear, Interpolation::Cubic]
            [ctx.choice("method", &methods)?],
        mode,
        rounding: ROUNDINGS[ctx.choice("rounding_method", &ROUNDINGS)?],
        roi: roi_attr(ctx, n)?,
        alpha: ctx.finite_float("cubic_alpha")?,
        exclude_outside: ctx.bool("cubic_exclude")?,
        extrapolation_value: ctx.float("extrapolation_value")?,
        position_dtype: match ctx.tensor(0)?.dtype {
            Some(DType::Float64) => DType::Float64,
            _ => DType::Float32,
        },
        scales,
    })
}

/// The numbers of a list attribute; `None` for other values.
fn floats(value: &AttrValue) -> Option<Vec<f64>> {
    match value {
        AttrValue::List(items) => items.iter().map(AttrValue::as_float).collect(),
        _ => None,
    }
}

fn scales_attr(ctx: &InferCtx<'_>, n: usize) -> Result<Option<Vec<f64>>, InferError> {
    let value = ctx.attr("scales");
    if value.is_none() {
        return Ok(None);
    }
    let valid = |list: &Vec<f64>| list.len() == n && list.iter().all(|s| s.is_finite() && *s > 0.0);
    let error = || ctx.error(format!("scales must be a list of {n} positive numbers"));
    floats(&value).filter(valid).map(Some).ok_or_else(error)
}

fn roi_attr(ctx: &InferCtx<'_>, n: usize) -> Result<Vec<(f64, f64)>, InferError> {
    let bad = || ctx.error(format!("roi must be a number or a list of {} numbers", 2 * n));
    let list = match ctx.attr("roi") {
        AttrValue::None => return Ok(vec![(0.0, 0.0); n]),
        list @ AttrValue::List(_) => floats(&list).ok_or_else(bad)?,
        one => vec![one.as_float().ok_or_else(bad)?; 2 * n],
    };
    if list.len() != 2 * n {
        return Err(bad());
    }
    Ok((0..n).map(|k| (list[k], list[n + k])).collect())
}

fn infer(ctx: &mut InferCtx<'_>, n: usize) -> InferResult {
    let resize_attrs = resize_attrs(ctx, n)?;
    let (t, sizes) = (ctx.tensor(0)?, ctx.result_sizes(1)?);
    resize_attrs.layout.check(ctx, 0, &t)?;
    let dtype = ctx.dtype("out_dtype")?.or(t.dtype);
    ctx.element_value("extrapolation_value", dtype)?;
    if sizes.ndim.is_some_and(|m| m != 1 && m != n) {
        let m = sizes.ndim.unwrap_or(0);
        return Err(ctx.error(format!("operand 'size' has {m} values, but must have 1 or {n}")));
    }
    if ctx.precision == Precision::Tvm && ctx.opaque_shape_var(1).is_some() && sizes.ndim != Some(n)
    {
        return Err(ctx.error(format!("operand 'size' must be a shape of {n} values")));
    }
    let (Some(dims), Some(size)) = (t.dims, sizes.dims) else {
        return Ok(ctx.tensor_type(None, Some(resize_attrs.layout.ndim()), dtype));
    };
    let size = if size.len() == 1 { vec![size[0]; n] } else { size };
    for (k, (&to, from)) in size.iter().zip(resize_attrs.layout.spatial_of(&dims)).enumerate() {
        let (from, to) = (ctx.func.syms.as_int(from), ctx.func.syms.as_int(to));
        if from == Some(0) && to.is_some_and(|v| v > 0) {
            return Err(ctx.error(format!(
                "data has no elements to resize along spatial dim {k}: data is {ty}",
                ty = ctx.operand_type_text(0)
            )));
        }
    }
    let mut dims = dims;
    for (&axis, &size) in resize_attrs.layout.spatial_axes().iter().zip(&size) {
        dims[axis] = size;
    }
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

/// For each index along one axis of the result, the source elements in the data and their weights.
pub(super) struct SourceElements {
    /// For each index of the axis in the result, the float64 position in the input image from which it is interpolated.
    position: Tensor,
    /// The size of the axis in the input image.
    from: Expr,
    /// For each index of the axis in the result, the index of the nearest element of the input image or, for interpolation, of the
    /// element before the position.
    pub(super) base: Tensor,
    /// For each neighbour from which an element of the result is interpolated, the tensor of its weights, one per index of the
    /// axis. Empty if the nearest element is copied.
    pub(super) weights: Vec<Tensor>,
}

impl ResizeAttrs {
    /// The float64 position in the data for index `i` of dim `k` of the result. `from` and `to` are
    /// the sizes of the dim in the data and in the result.
    fn source_position(&self, k: usize, i: &Expr, from: &Expr, to: &Expr) -> Expr {
        if matches!(self.mode, TORCH_ASYMMETRIC | TORCH_HALF_PIXEL) {
            return self.torch_source_position(k, i, from, to);
        }
        if let Some(scales) = &self.scales {
            return self.scaled_source_position(scales[k], i, from, to);
        }
        let float64 = |e: &Expr| te::cast(e, DType::Float64);
        let c = |v: f64| te::const_of(v, DType::Float64);
        let quotient = |a: &Expr, b: &Expr| float64(a) / float64(b);
        let half = quotient(&((i * 2 + 1) * from - to), &(to * 2));
        let is_longer_than_one = te::gt(to, &te::int(1));
        // The divisor would be 0 for a single element, whose position is computed separately.
        let gaps = te::maximum(&(to - 1), &te::int(1));
        match self.mode {
            "pytorch_half_pixel" => te::select(&is_longer_than_one, &half, &c(0.0)),
            "align_corners" => quotient(&(i * &(from - 1)), &gaps),
            "asymmetric" => quotient(&(i * from), to),
            "tf_half_pixel_for_nn" => quotient(&((i * 2 + 1) * from), &(to * 2)),
            TF_CROP_AND_RESIZE => {
                let (start, end) = self.roi[k];
                let last = float64(&(from - 1));
                let along = c(start) * &last + float64(i) * c(end - start) * &last / float64(&gaps);
                te::select(&is_longer_than_one, &along, &(c(0.5 * (start + end)) * last))
            }
            _ => half,
        }
    }

    /// The position in the data for index `i` of dim `k` of the result, rounded as PyTorch's CPU implementation rounds it. The
    /// nearest element depends on this rounding: for a scale of 1.1, index 11 of the result is the product of 11 and the float32
    /// reciprocal of 1.1, which is not exactly 10.
    fn torch_source_position(&self, k: usize, i: &Expr, from: &Expr, to: &Expr) -> Expr {
        let dtype = self.position_dtype;
        let c = |v: f64| te::const_of(v, dtype);
        let ratio = match &self.scales {
            Some(scales) => c(1.0 / scales[k]),
            None => te::cast(from, dtype) / te::cast(to, dtype),
        };
        let index = te::cast(i, dtype);
        let position = match self.mode {
            TORCH_HALF_PIXEL => te::maximum(&(ratio * (index + c(0.5)) - c(0.5)), &c(0.0)),
            _ => ratio * index,
        };
        te::cast(&position, DType::Float64)
    }

    /// Whether dim `k` has a scale of exactly 1, so that its elements are copied. Equal sizes are
    /// not sufficient, because the result must not depend on whether the compiler knows that the
    /// sizes are equal. Copying and averaging differ for infinite neighbours (infinity times 0).
    fn copies_dim(&self, k: usize) -> bool {
        let scaled_length = self.scales.as_ref().is_some_and(|scales| scales[k] == 1.0);
        scaled_length && self.mode != "tf_half_pixel_for_nn"
    }

    /// The layout of the images for the library kernel; `None` if the kernel does not support this resizing.
    fn kernel_images(&self, from: DType, to: DType) -> Option<Images> {
        let is_averaged = matches!(from, DType::Float32 | DType::Float16 | DType::BFloat16);
        let is_supported = self.mode != TF_CROP_AND_RESIZE
            && !self.layout.is_blocked()
            && from == to
            && (self.method == Interpolation::Nearest || is_averaged);
        is_supported.then(|| Images::of_axes(&self.layout.spatial_axes(), self.layout.axis('C')))?
    }

    /// The float64 position in the data for index `i` of the result, by the formulas of ONNX's
    /// Resize. `scale` is the exact ratio of the sizes, before the size of the result was rounded.
    fn scaled_source_position(&self, scale: f64, i: &Expr, from: &Expr, to: &Expr) -> Expr {
        let float64 = |e: &Expr| te::cast(e, DType::Float64);
        let c = |v: f64| te::const_of(v, DType::Float64);
        let centre = || (float64(i) + c(0.5)) / c(scale);
        let scaled_length = float64(from) * c(scale);
        match self.mode {
            "pytorch_half_pixel" => {
                te::select(&te::gt(to, &te::int(1)), &(centre() - c(0.5)), &c(0.0))
            }
            // As in ONNX's reference implementation, this uses the output size before rounding.
            "align_corners" => {
                let gaps = te::select(
                    &te::eq(&scaled_length, &c(1.0)),
                    &c(1.0),
                    &(&scaled_length - c(1.0)),
                );
                float64(i) * (float64(&(from - 1)) / gaps)
            }
            "asymmetric" => float64(i) / c(scale),
            "tf_half_pixel_for_nn" => centre(),
            "half_pixel_symmetric" => {
                let offset = float64(from) / c(2.0) * (c(1.0) - float64(to) / &scaled_length);
                centre() - c(0.5) + offset
            }
            _ => centre() - c(0.5),
        }
    }

    /// The index of the element nearest to position `x`.
    fn nearest(&self, x: &Expr) -> Expr {
        let half = te::const_of(0.5, DType::Float64);
        let floor_of_float32 =
            |x: &Expr| te::floor(&te::cast(&te::cast(x, DType::Float32), DType::Float64));
        match self.mode {
            TORCH_ASYMMETRIC => return floor_of_float32(x),
            TORCH_HALF_PIXEL => return floor_of_float32(&(x + half)),
            _ => {}
        }
        match self.rounding {
            "round" => te::round(x),
            "round_prefer_floor" => te::ceil(&(x - half)),
            "round_prefer_ceil" => te::floor(&(x + half)),
            "ceil" => te::ceil(x),
            "" if self.mode == "align_corners" => te::round(x),
            _ => te::floor(x),
        }
    }

    fn source_elements(&self, k: usize, from: &Expr, to: &Expr, dtype: DType) -> SourceElements {
        let axis = ["d", "h", "w"][3 - self.roi.len() + k];
        let shape = || vec![to.clone()];
        let position = te::compute(shape(), format!("place_{axis}"), |i| {
            self.source_position(k, &i[0], from, to)
        });
        let base = te::compute(shape(), format!("base_{axis}"), |i| {
            let x = position.at(i);
            let at = if self.method == Interpolation::Nearest {
                self.nearest(&x)
            } else {
                te::floor(&x)
            };
            te::cast(&at, DType::Int64)
        });
        let fraction = |i: &[Expr]| {
            let x = position.at(i);
            te::cast(&(&x - te::floor(&x)), dtype)
        };
        let one = te::const_of(1.0, dtype);
        let weights = match self.method {
            Interpolation::Nearest => Vec::new(),
            Interpolation::Linear => (0..2)
                .map(|j| {
                    te::compute(shape(), format!("weight_{axis}{j}"), |i| {
                        if j == 0 { &one - fraction(i) } else { fraction(i) }
                    })
                })
                .collect(),
            Interpolation::Cubic => self.cubic(&base, from, &fraction, (axis, dtype)),
        };
        SourceElements { position, from: from.clone(), base, weights }
    }

    /// The weights of cubic interpolation. With the attribute `cubic_exclude`, the weights of
    /// elements outside of the data are 0, and the remaining weights are normalized.
    fn cubic(
        &self,
        base: &Tensor,
        from: &Expr,
        fraction: &dyn Fn(&[Expr]) -> Expr,
        (axis, dtype): (&str, DType),
    ) -> Vec<Tensor> {
        let zero = te::const_of(0.0, dtype);
        (0..4usize)
            .map(|j| {
                te::compute(base.shape().to_vec(), format!("weight_{axis}{j}"), |i| {
                    let all = cubic_weights::weights(&fraction(i), self.alpha, dtype);
                    if !self.exclude_outside {
                        return all[j].clone();
                    }
                    let inside_weights: Vec<Expr> = all
                        .iter()
                        .enumerate()
                        .map(|(m, w)| {
                            let at = base.at(i) + (m as i64 - 1);
                            let inside = te::and(&te::ge(&at, &te::int(0)), &te::lt(&at, from));
                            te::select(&inside, w, &zero)
                        })
                        .collect();
                    let sum = inside_weights[1..]
                        .iter()
                        .fold(inside_weights[0].clone(), |acc, w| acc + w);
                    &inside_weights[j] / sum
                })
            })
            .collect()
    }
}

impl SourceElements {
    /// Whether the position for index `i` of the axis is outside of the data.
    fn is_outside(&self, i: &Expr) -> Expr {
        let position = self.position.at(std::slice::from_ref(i));
        let last = te::cast(&(&self.from - 1), DType::Float64);
        let before = te::lt(&position, &te::const_of(0.0, DType::Float64));
        te::or(&before, &te::gt(&position, &last))
    }

    /// The index of the first of the neighbours from which an element is interpolated, relative to `base`.
    pub(super) fn first_neighbor(&self) -> i64 {
        if self.weights.len() == 4 { -1 } else { 0 }
    }

    /// The elements that contribute to index `i` of the axis, with their weights.
    fn elements(&self, i: &Expr) -> Vec<(Expr, Option<Expr>)> {
        let at = std::slice::from_ref(i);
        let (zero, last) = (te::int(0), &self.from - 1);
        let inside = |e: Expr| te::maximum(&zero, &te::minimum(&e, &last));
        if self.weights.is_empty() {
            return vec![(inside(self.base.at(at)), None)];
        }
        let first = self.first_neighbor();
        let weight = |(j, w): (usize, &Tensor)| {
            (inside(self.base.at(at) + (j as i64 + first)), Some(w.at(at)))
        };
        self.weights.iter().enumerate().map(weight).collect()
    }
}

fn te_resize(ctx: &mut LegalizeCtx<'_>, n: usize) -> TeResult {
    let (dims, out_dims) = (ctx.dims(0)?, ctx.out_dims(0)?);
    let (resize_attrs, dtype) = (resize_attrs(&ctx.infer(), n)?, ctx.out_dtype(0)?);
    let (source_sizes, to): (Vec<Sym>, Vec<Sym>) =
        (resize_attrs.layout.spatial_of(&dims), resize_attrs.layout.spatial_of(&out_dims));
    let (source_sizes, to) = (ctx.size_list(&source_sizes), ctx.size_list(&to));
    let x = ctx.tensor(0)?;
    let acc_dtype = match x.dtype() {
        d if d.is_float() => accumulator(d),
        _ => DType::Float32,
    };
    let sources: Vec<SourceElements> = (0..n)
        .map(|k| resize_attrs.source_elements(k, &source_sizes[k], &to[k], acc_dtype))
        .collect();
    let shape = ctx.size_list(&out_dims);
    let (axes, op) = (resize_attrs.layout.spatial_axes(), ctx.decl.name);
    let resized = (0..n).filter(|&k| !resize_attrs.copies_dim(k));
    let along: Vec<(usize, &SourceElements)> = resized.map(|k| (axes[k], &sources[k])).collect();
    let checks = source_sizes.iter().zip(&to).map(|(from, to)| {
        let cond = te::or(&te::ge(from, &te::int(1)), &te::eq(to, &te::int(0)));
        (cond, format!("{op}: data has no elements to resize along a spatial dim"))
    });
    let checks: Vec<_> = checks.filter(|(cond, _)| cond.as_int() != Some(1)).collect();
    if let Some(images) = resize_attrs.kernel_images(x.dtype(), dtype) {
        let axis = |k: usize| resize_kernel::Axis {
            source: &sources[k],
            size: &to[k],
            is_copied: resize_attrs.copies_dim(k),
        };
        return Ok(resize_kernel::resized(&x, &shape, images, [axis(0), axis(1)], &checks));
    }
    let read = |at: &[Expr]| te::cast(&x.at(at), acc_dtype);
    // Every stage that reads the data needs this check.
    let checked = |stage: Tensor| {
        checks.iter().cloned().fold(stage, |stage, (cond, message)| {
            stage.with_check(Check { axes: Vec::new(), cond, message: message.into() })
        })
    };
    let last = shape.len() - 1;
    // If rows become narrower, averaging whole rows first would compute elements that are never read.
    let is_not_narrowed = resize_attrs.scales.as_ref().is_some_and(|scales| scales[n - 1] >= 1.0)
        || size_proofs::at_most(ctx.func, dims[last], out_dims[last]) == Some(true);
    // Integer results are truncated averages, which rounding between two passes would change.
    let averages = resize_attrs.method != Interpolation::Nearest && dtype.is_float();
    let resizes_last_axis = along.last().is_some_and(|&(axis, _)| axis == last);
    let is_separable = averages && is_not_narrowed && resizes_last_axis && along.len() > 1;
    let (others, rest) = along.split_at(if is_separable { along.len() - 1 } else { 0 });
    let rows = is_separable.then(|| {
        let mut shape = shape.clone();
        shape[last] = source_sizes[n - 1].clone();
        checked(te::compute(shape, "resized_rows", |i| weighted_sum(&read, i, others)))
    });
    let out = te::compute(shape, "resize", |i| {
        let value = match &rows {
            Some(rows) => weighted_sum(&|at| rows.at(at), i, rest),
            None if resize_attrs.method == Interpolation::Nearest => {
                weighted_sum(&|at| x.at(at), i, rest)
            }
            None => weighted_sum(&read, i, rest),
        };
        let value = te::cast(&value, dtype);
        if resize_attrs.mode != TF_CROP_AND_RESIZE {
            return value;
        }
        let extrapolation_value = sources.iter().zip(&axes).map(|(s, &a)| s.is_outside(&i[a]));
        let extrapolation_value = extrapolation_value
            .fold(te::bool_const(false), |any, extrapolation_value| {
                te::or(&any, &extrapolation_value)
            });
        te::select(
            &extrapolation_value,
            &te::const_of(resize_attrs.extrapolation_value, dtype),
            &value,
        )
    });
    Ok(vec![checked(out)])
}

/// The weighted sum of the elements around position `i` of the result, along the axes in `along`.
/// On an axis without weights, the nearest element is used.
fn weighted_sum(
    read: &dyn Fn(&[Expr]) -> Expr,
    i: &[Expr],
    along: &[(usize, &SourceElements)],
) -> Expr {
    let mut terms: Vec<(Vec<Expr>, Option<Expr>)> = vec![(i.to_vec(), None)];
    for &(axis, source) in along {
        let elements = source.elements(&i[axis]);
        let each = |(at, weight): (Vec<Expr>, Option<Expr>)| {
            elements.iter().map(move |(position, axis_weight)| {
                let combined_weight = match (&weight, axis_weight) {
                    (Some(a), Some(b)) => Some(a * b),
                    (a, b) => a.clone().or_else(|| b.clone()),
                };
                let mut at = at.clone();
                at[axis] = position.clone();
                (at, combined_weight)
            })
        };
        terms = terms.into_iter().flat_map(each).collect();
    }
    let term = |(at, weight): (Vec<Expr>, Option<Expr>)| match weight {
        Some(weight) => read(&at) * weight,
        None => read(&at),
    };
    let sum = terms.into_iter().map(term).reduce(|sum, term| sum + term);
    sum.unwrap_or_else(|| read(i))
}
