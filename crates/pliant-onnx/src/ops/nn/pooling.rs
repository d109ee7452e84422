//! Converters of ONNX's pooling operators, such as `MaxPool`.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use super::sliding_window::{Window, check_list_length, check_pads, check_sizes};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("AveragePool", average_pool),
    op("GlobalAveragePool", |n| global_pool(n, "relax.mean")),
    op("GlobalLpPool", global_lp_pool),
    op("GlobalMaxPool", |n| global_pool(n, "relax.max")),
    op("LpPool", lp_pool),
    op("MaxPool", max_pool),
    op("MaxUnpool", max_unpool),
];

/// Reads the attribute `kernel_shape`, which is required.
fn window_shape(n: &Node<'_, '_>) -> Result<Vec<i64>, Problem> {
    let window_dims = n.attrs().ints("kernel_shape")?;
    Ok(window_dims
        .ok_or_else(|| Problem::attribute("attribute 'kernel_shape' is missing"))?
        .to_vec())
}

/// The name of the Relax pooling operator for the number of spatial axes.
fn op_for_rank(what: &str, axes: usize) -> Result<String, Problem> {
    match axes {
        1..=3 => Ok(format!("relax.nn.{what}{axes}d")),
        _ => Err(Problem::unsupported(format!(
            "the input has {axes} spatial dims, but only 1 to 3 are supported"
        ))),
    }
}

fn max_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let wants_indices = n.proto.output.get(1).is_some_and(|o| !o.is_empty());
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let window_dims = window_shape(n)?;
    let name = op_for_rank("max_pool", window_dims.len())?;
    let x = n.tensor(0)?;
    let dtype = n.dtype(x)?;
    let min = match dtype {
        _ if dtype.is_float() => f64::NEG_INFINITY,
        _ if dtype.is_uint() => 0.0,
        _ => -(2f64.powi(dtype.bits() as i32 - 1)),
    };
    let (window, padded) = Window::read(n, x, window_dims, min)?;
    let y = n.op_with(&name, &[padded], window.pool_attrs(ceil, false))?;
    if !wants_indices {
        return Ok(vec![y.into()]);
    }
    Ok(vec![y.into(), maximum_indices(n, (x, padded), y, &window, min)?.into()])
}

/// Maximum number of elements of a window if the indices of the maxima are used, because each element needs a separate comparison.
const MAX_WINDOW_ELEMENTS: i64 = 1024;

/// Computes the indices of the maxima `y`: for each window, the flat index of its maximum in the input `x`, in the order of dims
/// that `storage_order` states. Each position within the windows is compared with `y`, from the last position to the first, so
/// that the first of equal elements wins. `padded` is `x` with the explicit padding of `auto_pad`, and `min` is the padding value.
fn maximum_indices(
    n: &mut Node<'_, '_>,
    (x, padded): (Expr, Expr),
    y: Expr,
    window: &Window,
    min: f64,
) -> ExprResult {
    let columns_first = n.attrs().int("storage_order")?.unwrap_or(0) != 0;
    let (dims, out, dtype) = (n.dims(x)?, n.dims(y)?, n.dtype(x)?);
    let (rank, axes) = (dims.len(), window.filter.len());
    let min = n.scalar_as(min, dtype)?;
    let of_nan = if dtype.is_float() { Some(n.op("relax.isnan", &[y])?) } else { None };
    // Pad the end of each axis so that all windows are complete.
    let mut extended = padded;
    for k in 0..axes {
        let syms = &mut n.func().syms;
        let before = syms.int(window.pads[k]);
        let after = syms.int(
            window.pads[k + axes] + window.filter[k] * window.dilations[k] + window.strides[k],
        );
        extended = super::pad::pad_axis(n, extended, k + 2, (before, after), min)?;
    }
    let mut indices = n.scalar(0i64)?;
    let all = window.filter.iter().try_fold(1i64, |all, &size| all.checked_mul(size));
    let all = all.filter(|&all| all <= MAX_WINDOW_ELEMENTS).ok_or_else(|| {
        let text =
            format!("indices of the maxima (output 1) are not supported for windows of more than {MAX_WINDOW_ELEMENTS} elements");
        Problem::unsupported(text)
    })?;
    for at in (0..all).rev() {
        let (mut remaining, mut offset) = (at, vec![0; axes]);
        for k in (0..axes).rev() {
            offset[k] = remaining % window.filter[k] * window.dilations[k];
            remaining /= window.filter[k];
        }
        let part = window_elements(n, extended, &out, window, &offset)?;
        let mut is_maximum = n.op("relax.equal", &[part, y])?;
        if let Some(of_nan) = of_nan {
            let nan = n.op("relax.isnan", &[part])?;
            let both = n.op("relax.logical_and", &[of_nan, nan])?;
            is_maximum = n.op("relax.logical_or", &[is_maximum, both])?;
        }
        let mut index = n.scalar(0i64)?;
        let order: Vec<usize> =
            if columns_first { (0..axes).rev().collect() } else { (0..axes).collect() };
        for k in order {
            let coordinate = n.iota(out[k + 2])?;
            let coordinate = n.reshape_along(coordinate, k + 2, rank)?;
            let offset = n.func().syms.int(offset[k]);
            let shift = n.func().syms.sub(offset, window.before[k]);
            let (step, shift) = (n.scalar(window.strides[k])?, n.size_scalar(shift)?);
            let coordinate = n.op("relax.multiply", &[coordinate, step])?;
            let coordinate = n.op("relax.add", &[coordinate, shift])?;
            let size = n.size_scalar(dims[k + 2])?;
            // Padding equals the smallest value of the dtype, but is not a position of the input.
            let zero = n.scalar(0i64)?;
            for inside in [
                n.op("relax.greater_equal", &[coordinate, zero])?,
                n.op("relax.less", &[coordinate, size])?,
            ] {
                is_maximum = n.op("relax.logical_and", &[is_maximum, inside])?;
            }
            index = n.op("relax.multiply", &[index, size])?;
            index = n.op("relax.add", &[index, coordinate])?;
        }
        indices = n.op("relax.where", &[is_maximum, index, indices])?;
    }
    // Add the offset of the plane, which is one channel of one batch element.
    let planes = n.func().syms.mul(dims[0], dims[1]);
    let area = n.func().syms.product(dims[2..].iter().copied());
    let planes = n.iota(planes)?;
    let area = n.size_scalar(area)?;
    let planes = n.op("relax.multiply", &[planes, area])?;
    let mut shape = vec![n.func().syms.int(1); rank];
    (shape[0], shape[1]) = (dims[0], dims[1]);
    let planes = n.reshape(planes, &shape)?;
    n.op("relax.add", &[indices, planes])
}

/// Gathers the elements at one position within the window from every window of a pooling.
fn window_elements(
    n: &mut Node<'_, '_>,
    x: Expr,
    out: &[pliant_sym::Sym],
    window: &Window,
    offset: &[i64],
) -> ExprResult {
    let func = n.func();
    let axes = window.filter.len();
    let mut lists: [Vec<pliant_sym::Sym>; 4] = Default::default();
    for k in 0..axes {
        let (from, step) = (func.syms.int(offset[k]), func.syms.int(window.strides[k]));
        let span = func.syms.mul(out[k + 2], step);
        let to = func.syms.add(from, span);
        let axis = func.syms.int(k as i64 + 2);
        lists.iter_mut().zip([axis, from, to, step]).for_each(|(list, v)| list.push(v));
    }
    let lists = lists.map(|list| func.shape(&list));
    n.op("relax.strided_slice", &[x, lists[0], lists[1], lists[2], lists[3]])
}

/// Converts `MaxUnpool`: writes the elements into a tensor of zeros at the positions in the index input.
fn max_unpool(n: &mut Node<'_, '_>) -> ConvertResult {
    let window_dims = window_shape(n)?;
    let axes = window_dims.len();
    let (x, indices) = (n.tensor(0)?, n.tensor(1)?);
    let (dims, dtype) = (n.dims(x)?, n.dtype(x)?);
    let strides = n.attrs().ints("strides")?.map_or_else(|| vec![1; axes], <[i64]>::to_vec);
    let pads = n.attrs().ints("pads")?.map_or_else(|| vec![0; 2 * axes], <[i64]>::to_vec);
    if dims.len() != axes + 2 {
        return Err(Problem::invalid(format!(
            "the input has {} dims, but must have {}, because 'kernel_shape' has {axes} sizes",
            dims.len(),
            axes + 2
        )));
    }
    check_list_length("strides", &strides, axes)?;
    check_list_length("pads", &pads, 2 * axes)?;
    check_sizes([&window_dims, &strides, &[]])?;
    check_pads("pads", &pads)?;
    let mut inner = dims.clone();
    for k in 0..axes {
        let syms = &mut n.func().syms;
        let (one, stride) = (syms.int(1), syms.int(strides[k]));
        let steps = syms.sub(dims[k + 2], one);
        let span = syms.mul(steps, stride);
        let extra = syms.int(window_dims[k] - pads[k] - pads[k + axes]);
        inner[k + 2] = syms.add(span, extra);
    }
    let total = n.func().syms.product(inner.iter().copied());
    let count = n.func().syms.product(dims.iter().copied());
    let (x, indices) = (n.reshape(x, &[count])?, n.reshape(indices, &[count])?);
    let zero = n.scalar_as(0.0, dtype)?;
    let empty = n.full(&[total], zero)?;
    let y = n.op_with(
        "relax.scatter_elements",
        &[empty, indices, x],
        crate::node::ints_attr("axis", 0),
    )?;
    let mut y = n.reshape(y, &inner)?;
    if n.has_input(2) {
        let zero_scalar = n.func().syms.int(0);
        let wanted = n.sizes_input(2, Some(dims.len()))?;
        if wanted.len() != dims.len() {
            let (actual, rank) = (wanted.len(), dims.len());
            let message = format!(
                "'output_shape' (input 2) has {actual} sizes, but the input has {rank} dims"
            );
            return Err(Problem::invalid(message));
        }
        for (axis, want) in wanted.into_iter().enumerate() {
            let missing = n.func().syms.sub(want, inner[axis]);
            y = super::pad::pad_axis(n, y, axis, (zero_scalar, missing), zero)?;
        }
    }
    Ok(vec![y.into()])
}

fn average_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let count = n.attrs().int("count_include_pad")?.unwrap_or(0) != 0;
    let window_dims = window_shape(n)?;
    let name = op_for_rank("avg_pool", window_dims.len())?;
    let x = n.tensor(0)?;
    let (window, padded) = Window::read(n, x, window_dims.clone(), 0.0)?;
    let y = n.op_with(&name, &[padded], window.pool_attrs(ceil, count))?;
    if padded == x || count {
        return Ok(vec![y.into()]);
    }
    // The explicit padding was counted as part of the windows. Divide by the fraction of each window that is in the input.
    let dtype = n.dtype(x)?;
    let ones = Attrs::default().with("dtype", AttrValue::DType(dtype));
    let ones = n.op_with("relax.ones_like", &[x], ones)?;
    let (window, ones) = Window::read(n, ones, window_dims, 0.0)?;
    let fraction = n.op_with(&name, &[ones], window.pool_attrs(ceil, true))?;
    Ok(vec![n.op("relax.divide", &[y, fraction])?.into()])
}

/// Reads the exponent `p` of the p-norm.
fn norm_exponent(n: &Node<'_, '_>) -> Result<i64, Problem> {
    match n.attrs().int("p")?.unwrap_or(2) {
        p if p > 0 => Ok(p),
        p => Err(Problem::attribute(format!("attribute 'p' must be positive, but is {p}"))),
    }
}

/// Converts `LpPool`, the p-norm of each window: `(window size * mean(|x| ** p)) ** (1 / p)`. An average pooling computes
/// the mean.
fn lp_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let p = norm_exponent(n)?;
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let window_dims = window_shape(n)?;
    let name = op_for_rank("avg_pool", window_dims.len())?;
    let x = n.tensor(0)?;
    let y = n.in_wide_float(x, |n, x| window_norms(n, &name, x, (window_dims, p, ceil)))?;
    Ok(vec![y.into()])
}

/// Emits the p-norm of each window.
fn window_norms(
    n: &mut Node<'_, '_>,
    name: &str,
    x: Expr,
    (window_dims, p, ceil): (Vec<i64>, i64, bool),
) -> ExprResult {
    let dtype = n.dtype(x)?;
    let (window, x) = Window::read(n, x, window_dims, 0.0)?;
    let count = window.filter.iter().map(|&size| size as f64).product::<f64>();
    let [power, root, count] = [
        n.scalar_as(p as f64, dtype)?,
        n.scalar_as(1.0 / p as f64, dtype)?,
        n.scalar_as(count, dtype)?,
    ];
    let y = n.op("relax.abs", &[x])?;
    let y = n.op("relax.power", &[y, power])?;
    let y = if ceil {
        mean_of_extended_windows(n, name, y, &window)?
    } else {
        n.op_with(name, &[y], window.pool_attrs(false, true))?
    };
    let y = n.op("relax.multiply", &[y, count])?;
    n.op("relax.power", &[y, root])
}

/// Emits the mean of each window with `ceil_mode`. The last windows may extend beyond the padding, where zeros are assumed.
fn mean_of_extended_windows(
    n: &mut Node<'_, '_>,
    name: &str,
    x: Expr,
    window: &Window,
) -> ExprResult {
    let rounded_up = n.op_with(name, &[x], window.pool_attrs(true, true))?;
    let (out, dtype) = (n.dims(rounded_up)?, n.dtype(x)?);
    let zero = n.scalar_as(0.0, dtype)?;
    let axes = window.filter.len();
    let mut extended = x;
    for k in 0..axes {
        let extent = window.filter[k] * window.dilations[k] + window.strides[k];
        let syms = &mut n.func().syms;
        let padding = (syms.int(window.pads[k]), syms.int(window.pads[k + axes] + extent));
        extended = super::pad::pad_axis(n, extended, k + 2, padding, zero)?;
    }
    let plain = Window { pads: vec![0; 2 * axes], ..window.clone() };
    let mut y = n.op_with(name, &[extended], plain.pool_attrs(false, true))?;
    let zero_scalar = n.func().syms.int(0);
    for (axis, &size) in out.iter().enumerate().skip(2) {
        y = n.slice_axis(y, axis, zero_scalar, size)?;
    }
    Ok(y)
}

fn global_lp_pool(n: &mut Node<'_, '_>) -> ConvertResult {
    let p = norm_exponent(n)?;
    let x = n.tensor(0)?;
    let rank = n.rank(x)? as i64;
    let y = n.in_wide_float(x, |n, x| {
        let dtype = n.dtype(x)?;
        let (power, root) = (n.scalar_as(p as f64, dtype)?, n.scalar_as(1.0 / p as f64, dtype)?);
        let y = n.op("relax.abs", &[x])?;
        let y = n.op("relax.power", &[y, power])?;
        let attrs = Attrs::default()
            .with("axis", AttrValue::ints(2..rank))
            .with("keepdims", AttrValue::Bool(true));
        let y = n.op_with("relax.sum", &[y], attrs)?;
        n.op("relax.power", &[y, root])
    })?;
    Ok(vec![y.into()])
}

/// Converts a global pooling, which reduces all spatial axes to size 1.
fn global_pool(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    let x: Expr = n.tensor(0)?;
    let rank = n.rank(x)? as i64;
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints(2..rank))
        .with("keepdims", AttrValue::Bool(true));
    Ok(vec![n.op_with(op, &[x], attrs)?.into()])
}
