//! Converters of `Pad` and `CenterCropPad`.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::sliding_window::{MAX_PAD, check_pads};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[op("CenterCropPad", center_crop_pad), op("Pad", pad)];

/// Emits a padding with zeros. `width` lists the amounts before and after axis 0, then before and
/// after axis 1, and so on.
pub(super) fn pad_with_zeros(n: &mut Node<'_, '_>, x: Expr, width: &[i64]) -> ExprResult {
    let attrs = Attrs::default()
        .with("pad_width", AttrValue::ints(width.iter().copied()))
        .with("pad_mode", AttrValue::str("constant"))
        .with("pad_value", AttrValue::float(0.0));
    n.op_with("relax.nn.pad", &[x], attrs)
}

/// Emits a padding of one axis by symbolic amounts, with a constant value.
pub(in crate::ops) fn pad_axis(
    n: &mut Node<'_, '_>,
    x: Expr,
    axis: usize,
    amounts: (Sym, Sym),
    value: Expr,
) -> ExprResult {
    let dims = n.dims(x)?;
    let zero = n.func().syms.int(0);
    let edge = |n: &mut Node<'_, '_>, size: Sym| -> Result<Option<Expr>, Problem> {
        if size == zero {
            return Ok(None);
        }
        let mut dims = dims.clone();
        dims[axis] = size;
        n.full(&dims, value).map(Some)
    };
    let (before, after) = (edge(n, amounts.0)?, edge(n, amounts.1)?);
    let parts: Vec<Expr> = before.into_iter().chain([x]).chain(after).collect();
    n.concat(&parts, axis as i64)
}

/// For one axis that `Pad` changes, the numbers of elements to remove and to add, each as a pair for the start and the end.
#[derive(Clone, Copy)]
struct AxisPadding {
    crop: (Sym, Sym),
    pad: (Sym, Sym),
}

/// Converts `Pad`. Its amounts and value are attributes before opset 11. A negative amount crops.
fn pad(n: &mut Node<'_, '_>) -> ConvertResult {
    let mode = n.attrs().choice("mode", &["constant", "reflect", "edge", "wrap"])?;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let value = match n.attrs().float("value")? {
        Some(v) => Some(v),
        None if !n.has_input(2) => Some(0.0),
        // A value that float64 cannot represent remains a tensor.
        None => n
            .const_floats(2)
            .and_then(|v| v.first().copied())
            .filter(|v| v.abs() < 2f64.powi(53) || !v.is_finite()),
    };
    if let (Some(value), Some(width)) = (value, constant_widths(n, rank)?) {
        return pad_constant_widths(n, x, &width, mode, value);
    }
    let dtype = n.dtype(x)?;
    let value = match value {
        Some(v) => n.scalar_as(v, dtype)?,
        None => {
            let v = n.tensor(2)?;
            n.reshape_to_scalar(v)?
        }
    };
    let mut y = x;
    for (axis, change) in axis_paddings(n, rank)?.into_iter().enumerate() {
        y = crop_and_pad(n, y, axis, change, mode, value)?;
    }
    Ok(vec![y.into()])
}

/// The amounts of padding before and after each axis; `None` unless all of them are constant.
fn constant_widths(n: &mut Node<'_, '_>, rank: usize) -> Result<Option<Vec<i64>>, Problem> {
    let pads = match n.attrs().ints("pads")? {
        Some(pads) => Some(pads.to_vec()),
        None => n.const_ints(1),
    };
    let Some(pads) = pads else { return Ok(None) };
    let axes = match n.const_ints(3) {
        Some(axes) => axes.iter().map(|&a| n.axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None if n.has_input(3) => return Ok(None),
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Problem::invalid(format!(
            "'pads' has {} numbers, but must have {}, two for each axis",
            pads.len(),
            2 * axes.len()
        )));
    }
    check_pads("pads", &pads)?;
    if let Some(again) = (1..axes.len()).find(|&i| axes[..i].contains(&axes[i])) {
        return Err(Problem::invalid(format!("'axes' contains axis {} twice", axes[again])));
    }
    let mut width = vec![0; 2 * rank];
    for (k, &axis) in axes.iter().enumerate() {
        (width[2 * axis], width[2 * axis + 1]) = (pads[k], pads[k + axes.len()]);
    }
    Ok(Some(width))
}

/// Emits the cropping and padding of all axes by constant amounts. The padding has a constant
/// value.
fn pad_constant_widths(
    n: &mut Node<'_, '_>,
    x: Expr,
    width: &[i64],
    mode: &str,
    value: f64,
) -> ConvertResult {
    let y = crop_constant_widths(n, x, width)?;
    let width: Vec<i64> = width.iter().map(|&w| w.max(0)).collect();
    if width.iter().all(|&w| w == 0) {
        return Ok(vec![y.into()]);
    }
    let mode = match mode {
        "edge" => "replicate",
        "wrap" => "circular",
        other => other,
    };
    let attrs = Attrs::default()
        .with("pad_width", AttrValue::ints(width))
        .with("pad_mode", AttrValue::str(mode))
        .with("pad_value", AttrValue::float(value));
    Ok(vec![n.op_with("relax.nn.pad", &[y], attrs)?.into()])
}

/// Emits the cropping of the axes with negative amounts. Slice ends are relative to the end of the axis, so that the symbolic
/// dims of the result contain no comparisons.
fn crop_constant_widths(n: &mut Node<'_, '_>, x: Expr, width: &[i64]) -> ExprResult {
    let dims = n.dims(x)?;
    let [mut axes, mut begin, mut end] = [const { Vec::new() }; 3];
    for (axis, &dim) in dims.iter().enumerate() {
        let (before, after) = (width[2 * axis].min(0), width[2 * axis + 1].min(0));
        if (before, after) == (0, 0) {
            continue;
        }
        let syms = &mut n.func().syms;
        let (from, crop) = (syms.int(-before), syms.int(-after));
        axes.push(syms.int(axis as i64));
        begin.push(from);
        end.push(syms.int(if after == 0 { i64::MAX } else { after }));
        check_crop(n, from, crop, dim)?;
    }
    if axes.is_empty() {
        return Ok(x);
    }
    let steps = vec![n.func().syms.int(1); axes.len()];
    let [axes, begin, end, steps] = [axes, begin, end, steps].map(|list| n.func().shape(&list));
    n.op("relax.strided_slice", &[x, axes, begin, end, steps])
}

/// Checks that an axis of `size` elements is long enough to crop `before` and `after` elements from its ends. Each end is checked
/// separately first, because the sum of both amounts may overflow.
fn check_crop(n: &mut Node<'_, '_>, before: Sym, after: Sym, size: Sym) -> Result<(), Problem> {
    let text = "negative pads remove {} elements from an axis of size {}";
    n.require_at_most(before, size, text)?;
    n.require_at_most(after, size, text)?;
    let all = n.func().syms.add(before, after);
    n.require_at_most(all, size, text)
}

/// The symbolic amounts to crop and to pad at the ends of each axis.
fn axis_paddings(n: &mut Node<'_, '_>, rank: usize) -> Result<Vec<AxisPadding>, Problem> {
    let zero = n.func().syms.int(0);
    if !n.has_input(3)
        && let Some(t) = n.symbolic(1)
        && t.elems.len() == 2 * rank
        && t.elems
            .iter()
            .all(|&e| pliant_ops::size_proofs::at_most(n.func(), zero, e) == Some(true))
    {
        let change = |axis: usize| AxisPadding {
            crop: (zero, zero),
            pad: (t.elems[axis], t.elems[axis + rank]),
        };
        return Ok((0..rank).map(change).collect());
    }
    let pads = match n.attrs().ints("pads")? {
        Some(pads) => n.int_vector(pads)?,
        None => n.tensor(1)?,
    };
    let mut pads = n.cast(pads, DType::Int64)?;
    let count = n.vector_length(pads, "'pads'")?;
    let axes = n.optional_tensor(3)?;
    let named = match axes {
        Some(axes) => *n.dims_with_min_rank(axes, 1)?.first().unwrap_or(&zero),
        None => n.func().syms.int(rank as i64),
    };
    let want = n.func().syms.add(named, named);
    n.require_equal(count, want, "'pads' has {} numbers, but must have {}, two for each axis")?;
    // No axis is longer than `MAX_PAD`, and twice that amount fits in 63 bits.
    let (min, max) = (n.scalar(-MAX_PAD)?, n.scalar(MAX_PAD)?);
    let above = n.op("relax.greater_equal", &[pads, min])?;
    let below = n.op("relax.less_equal", &[pads, max])?;
    let in_range = n.op("relax.logical_and", &[above, below])?;
    n.require(
        in_range,
        &format!("'pads' contains {{}}, whose absolute value exceeds {MAX_PAD}"),
        &[pads],
    )?;
    if let Some(axes) = axes {
        // Scatter the amounts of the given axes into zeros.
        let size = n.func().syms.int(rank as i64);
        n.axes_mask(axes, size)?;
        let axes = n.normalize_axes(axes, size)?;
        let after = n.scalar(rank as i64)?;
        let after = n.op("relax.add", &[axes, after])?;
        let indices = n.concat(&[axes, after], 0)?;
        let zero_scalar = n.int_vector(&vec![0; 2 * rank])?;
        pads = n.op_with(
            "relax.scatter_elements",
            &[zero_scalar, indices, pads],
            ints_attr("axis", 0),
        )?;
    }
    let zero_scalar = n.scalar(0i64)?;
    let pad_amounts = n.op("relax.maximum", &[pads, zero_scalar])?;
    let crop_amounts = n.op("relax.subtract", &[pad_amounts, pads])?;
    let (pad_amounts, crop_amounts) = (
        n.elements_as_symbols(pad_amounts, 2 * rank)?,
        n.elements_as_symbols(crop_amounts, 2 * rank)?,
    );
    let named = match n.const_ints(3) {
        Some(axes) => axes.iter().map(|&a| n.axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    // Other axes do not change.
    let change = |axis: usize| match named.contains(&axis) {
        true => AxisPadding {
            crop: (crop_amounts[axis], crop_amounts[axis + rank]),
            pad: (pad_amounts[axis], pad_amounts[axis + rank]),
        },
        false => AxisPadding { crop: (zero, zero), pad: (zero, zero) },
    };
    Ok((0..rank).map(change).collect())
}

/// Emits the cropping and padding of one axis by symbolic amounts.
fn crop_and_pad(
    n: &mut Node<'_, '_>,
    x: Expr,
    axis: usize,
    change: AxisPadding,
    mode: &str,
    value: Expr,
) -> ExprResult {
    let zero = n.func().syms.int(0);
    let mut y = x;
    if change.crop != (zero, zero) {
        let size = n.dims(y)?[axis];
        check_crop(n, change.crop.0, change.crop.1, size)?;
        let to = n.func().syms.sub(size, change.crop.1);
        y = n.slice_axis(y, axis, change.crop.0, to)?;
    }
    if change.pad == (zero, zero) {
        return Ok(y);
    }
    if mode == "constant" {
        return pad_axis(n, y, axis, change.pad, value);
    }
    let indices = source_indices(n, y, axis, change.pad, mode)?;
    n.take(y, indices, axis)
}

/// For each position of the padded axis, the index of the input element that is copied to this position.
fn source_indices(
    n: &mut Node<'_, '_>,
    x: Expr,
    axis: usize,
    pads: (Sym, Sym),
    mode: &str,
) -> ExprResult {
    let size = n.dims(x)?[axis];
    let syms = &mut n.func().syms;
    let longer = syms.add(size, pads.0);
    let whole = syms.add(longer, pads.1);
    let one = syms.int(1);
    let last = syms.sub(size, one);
    let (zero, before) = (n.scalar(0i64)?, n.size_scalar(pads.0)?);
    let (size, last) = (n.size_scalar(size)?, n.size_scalar(last)?);
    let position = n.iota(whole)?;
    let position = n.op("relax.subtract", &[position, before])?;
    match mode {
        "edge" => {
            let low = n.op("relax.maximum", &[position, zero])?;
            n.op("relax.minimum", &[low, last])
        }
        "wrap" => n.op("relax.floor_mod", &[position, size]),
        _ => {
            // Reflection walks to the end and back: a period is twice the size, without the two ends.
            let (one, two) = (n.scalar(1i64)?, n.scalar(2i64)?);
            let round_trip = n.op("relax.multiply", &[last, two])?;
            let period = n.op("relax.maximum", &[round_trip, one])?;
            let forward = n.op("relax.floor_mod", &[position, period])?;
            let backward = n.op("relax.subtract", &[round_trip, forward])?;
            n.op("relax.minimum", &[forward, backward])
        }
    }
}

/// Converts `CenterCropPad`: crops or pads axes to the sizes in an input, equally at both ends.
fn center_crop_pad(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let (dims, dtype) = (n.dims(x)?, n.dtype(x)?);
    let axes: Vec<usize> = match n.attrs().ints("axes")? {
        Some(axes) => axes.iter().map(|&a| n.axis(a, dims.len())).collect::<Result<_, _>>()?,
        None => (0..dims.len()).collect(),
    };
    let sizes = n.sizes_input(1, Some(axes.len()))?;
    if sizes.len() != axes.len() {
        return Err(Problem::invalid(format!(
            "'shape' has {} numbers, but must have one for each of the {} axes",
            sizes.len(),
            axes.len()
        )));
    }
    let value = n.scalar_as(0.0, dtype)?;
    let mut y = x;
    for (&axis, want) in axes.iter().zip(sizes) {
        let syms = &mut n.func().syms;
        let (zero, two) = (syms.int(0), syms.int(2));
        let mut halves = |a: Sym, b: Sym| {
            let over = syms.sub(a, b);
            let over = syms.max(over, zero);
            let first = syms.floordiv(over, two);
            (first, syms.sub(over, first))
        };
        let (crop, pad) = (halves(dims[axis], want), halves(want, dims[axis]));
        y = crop_and_pad(n, y, axis, AxisPadding { crop, pad }, "constant", value)?;
    }
    Ok(vec![y.into()])
}
