//! Interpolation along one axis: source positions, weights and weighted sums.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::{AxisResize, ResizeAttrs, float_size, floor_to_size};
use crate::import_error::Problem;
use crate::node::{ExprResult, Node};

/// Computes for each output element its position in the input, in float64.
pub(super) fn source_positions(
    n: &mut Node<'_, '_>,
    attrs: &ResizeAttrs,
    axis: &AxisResize,
) -> ExprResult {
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
                axis.region.ok_or_else(|| Problem::invalid(
                    "coordinate_transformation_mode 'tf_crop_and_resize' requires the region 'roi' (input 1)",
                ))?;
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

/// Rounds each position to the index of an input element, according to `nearest_mode`.
pub(super) fn nearest_index(
    n: &mut Node<'_, '_>,
    attrs: &ResizeAttrs,
    position: Expr,
) -> ExprResult {
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

/// Clamps indices to the range of an axis of the given size.
pub(super) fn clamp_index(n: &mut Node<'_, '_>, position: Expr, size: Sym) -> ExprResult {
    let one = n.func().syms.int(1);
    let last = n.func().syms.sub(size, one);
    let (zero, last) = (n.scalar(0i64)?, n.size_scalar(last)?);
    let position = n.op("relax.maximum", &[position, zero])?;
    n.op("relax.minimum", &[position, last])
}

/// Computes whether positions are outside of the input.
pub(super) fn is_outside(n: &mut Node<'_, '_>, position: Expr, size: Sym) -> ExprResult {
    let one = n.func().syms.int(1);
    let last = n.func().syms.sub(size, one);
    let last = float_size(n, last)?;
    let zero = n.scalar_as(0.0, DType::Float64)?;
    let (low, high) =
        (n.op("relax.less", &[position, zero])?, n.op("relax.greater", &[position, last])?);
    n.op("relax.logical_or", &[low, high])
}

/// Computes the weight of an input element in float64, from the distance between the element and
/// the source position.
pub(super) fn interpolation_weight(
    n: &mut Node<'_, '_>,
    attrs: &ResizeAttrs,
    distance: Expr,
) -> ExprResult {
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
pub(super) fn zero_outside_weights(
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

/// Interpolates at each position from the 2 (linear) or 4 (cubic) input elements around the position.
pub(super) fn interpolate(
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
    y.ok_or_else(|| {
        Problem::internal(
            "the converter of Resize",
            "the interpolation along an axis has no weights",
        )
    })
}

/// Resizes one axis with antialiasing, where the filter is as wide as an output element. The filter is applied as a matrix product
/// with the weights of all input elements.
pub(super) fn antialiased(
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
