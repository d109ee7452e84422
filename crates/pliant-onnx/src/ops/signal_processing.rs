//! Converters of signal processing operators: Fourier transforms, windows and mel filters.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[
    op("BlackmanWindow", |n| cosine_window(n, &[0.42, -0.5, 0.08])),
    op("DFT", dft),
    op("HammingWindow", |n| cosine_window(n, &[25.0 / 46.0, -21.0 / 46.0])),
    op("HannWindow", |n| cosine_window(n, &[0.5, -0.5])),
    op("MelWeightMatrix", mel_weights),
    op("STFT", stft),
];

/// Converts a cosine window: `c0 + c1 cos(2 pi i / size) + c2 cos(4 pi i / size)`.
fn cosine_window(n: &mut Node<'_, '_>, coefficients: &[f64]) -> ConvertResult {
    let periodic = n.attrs().int("periodic")?.unwrap_or(1) != 0;
    let dtype = output_dtype(n)?;
    let size = n.size_input(0)?;
    let one = n.func().syms.int(1);
    let period = if periodic { size } else { n.func().syms.sub(size, one) };
    let (period, index) = (n.size_scalar(period)?, n.iota(size)?);
    let (period, index) = (n.cast(period, DType::Float64)?, n.cast(index, DType::Float64)?);
    let circle = n.scalar_as(std::f64::consts::TAU, DType::Float64)?;
    let index = n.op("relax.multiply", &[index, circle])?;
    let index = n.op("relax.divide", &[index, period])?;
    let zero = n.scalar_as(0.0, DType::Float64)?;
    let mut y = n.op("relax.multiply", &[index, zero])?;
    for (k, &coefficient) in coefficients.iter().enumerate() {
        let (k, coefficient) =
            (n.scalar_as(k as f64, DType::Float64)?, n.scalar_as(coefficient, DType::Float64)?);
        let angle = n.op("relax.multiply", &[index, k])?;
        let part = n.op("relax.cos", &[angle])?;
        let part = n.op("relax.multiply", &[part, coefficient])?;
        y = n.op("relax.add", &[y, part])?;
    }
    Ok(vec![n.cast(y, dtype)?.into()])
}

/// The dtype in the attribute `output_datatype`, or float32 if it is absent.
fn output_dtype(n: &Node<'_, '_>) -> Result<DType, Problem> {
    match n.attrs().int("output_datatype")? {
        Some(code) => crate::initializer_tensors::checked_dtype(code),
        None => Ok(DType::Float32),
    }
}

/// Converts a symbolic size to a scalar that can be an operand of a call.
fn size_operand(n: &mut Node<'_, '_>, size: Sym) -> Expr {
    n.func().int_value(size, DType::Int64)
}

/// Converts `DFT`. The axis is an attribute before opset 20, and an input since then.
fn dft(n: &mut Node<'_, '_>) -> ConvertResult {
    let inverse = n.attrs().int("inverse")?.unwrap_or(0) != 0;
    let onesided = n.attrs().int("onesided")?.unwrap_or(0) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims_with_min_rank(x, 2)?;
    let rank = dims.len();
    if n.func().syms.as_int(dims[rank - 1]).is_none() {
        // The last dim states whether the numbers are real (1) or complex (2).
        return Err(Problem::known_only_at_run_time(
            "the last dim of input 0 (1 for real, 2 for complex numbers)",
        )
        .with_help(
            "give the dim a fixed size, in the model file or (for a model input) in the importer's argument dynamic_shapes",
        ));
    }
    let mut args = vec![x];
    if n.has_input(1) {
        let length = n.size_input(1)?;
        args.push(size_operand(n, length));
    }
    let mut transform = |n: &mut Node<'_, '_>, axis: usize| {
        let attrs = ints_attr("axis", axis as i64)
            .with("inverse", AttrValue::Bool(inverse))
            .with("onesided", AttrValue::Bool(onesided));
        n.op_with("relax.signal.dft", &args, attrs)
    };
    if inverse && onesided {
        return real_inverse(n, x);
    }
    let y = if n.has_input(2) {
        n.select_by_axis(2, rank, rank - 1, &mut transform)?
    } else {
        let default = if n.opset < 20 { 1 } else { -2 };
        let axis = n.attrs().int("axis")?.unwrap_or(default);
        let axis = n.axis(axis, rank)?;
        transform(n, axis)?
    };
    Ok(vec![y.into()])
}

/// Converts `DFT` with `inverse` and `onesided`: transforms one half of a spectrum to a real signal. The other half is the complex
/// conjugate of the first.
fn real_inverse(n: &mut Node<'_, '_>, x: Expr) -> ConvertResult {
    let (dims, dtype) = (n.dims(x)?, n.dtype(x)?);
    let rank = dims.len();
    let length = if n.has_input(1) { Some(n.size_input(1)?) } else { None };
    let mut transform = |n: &mut Node<'_, '_>, axis: usize| {
        let (zero, one, two) = (n.func().syms.int(0), n.func().syms.int(1), n.func().syms.int(2));
        let length = match length {
            Some(length) => length,
            None => {
                let last = n.func().syms.sub(dims[axis], one);
                n.func().syms.mul(last, two)
            }
        };
        // Truncate or zero-pad the spectrum to the number of bins for the signal length.
        let two_sym = n.func().syms.floordiv(length, two);
        let bins = n.func().syms.add(two_sym, one);
        let missing = n.func().syms.sub(bins, dims[axis]);
        let missing = n.func().syms.max(missing, zero);
        let nothing = n.scalar_as(0.0, dtype)?;
        let x = super::nn::pad::pad_axis(n, x, axis, (zero, missing), nothing)?;
        let x = n.slice_axis(x, axis, zero, bins)?;
        let (index, size) = (n.iota(length)?, n.size_scalar(length)?);
        let mirrored = n.op("relax.subtract", &[size, index])?;
        let bin_count = n.size_scalar(bins)?;
        let in_spectrum = n.op("relax.less", &[index, bin_count])?;
        let positions = n.op("relax.where", &[in_spectrum, index, mirrored])?;
        let (one_scalar, minus) = (n.scalar_as(1.0, dtype)?, n.scalar_as(-1.0, dtype)?);
        let sign = n.op("relax.where", &[in_spectrum, one_scalar, minus])?;
        let sign = n.reshape_along(sign, axis, rank)?;
        let spectrum = n.take(x, positions, axis)?;
        let real = n.slice_axis(spectrum, rank - 1, zero, one)?;
        let imaginary = n.slice_axis(spectrum, rank - 1, one, two)?;
        let imaginary = n.op("relax.multiply", &[imaginary, sign])?;
        let spectrum = n.concat(&[real, imaginary], rank as i64 - 1)?;
        let attrs = ints_attr("axis", axis as i64).with("inverse", AttrValue::Bool(true));
        let y = n.op_with("relax.signal.dft", &[spectrum], attrs)?;
        n.slice_axis(y, rank - 1, zero, one)
    };
    if n.has_input(2) {
        return Ok(vec![n.select_by_axis(2, rank, rank - 1, &mut transform)?.into()]);
    }
    let default = if n.opset < 20 { 1 } else { -2 };
    let axis = n.attrs().int("axis")?.unwrap_or(default);
    let axis = n.axis(axis, rank)?;
    Ok(vec![transform(n, axis)?.into()])
}

fn stft(n: &mut Node<'_, '_>) -> ConvertResult {
    let onesided = n.attrs().int("onesided")?.unwrap_or(1) != 0;
    let mut signal = n.tensor(0)?;
    if n.rank(signal)? == 2 {
        let text =
            "the signal (input 0) has 2 dims, but must have 3: (batch, samples, 1) if it is real";
        n.tolerate(Problem::invalid(text).with_help("add a last dim of size 1 with Unsqueeze"));
        let attrs = Attrs::default().with("axis", AttrValue::List([AttrValue::Int(2)].into()));
        signal = n.op_with("relax.expand_dims", &[signal], attrs)?;
    }
    let step = n.size_input(1)?;
    let mut args = vec![signal, size_operand(n, step)];
    if n.has_input(2) || n.has_input(3) {
        args.push(n.tensor_or_null(2)?);
    }
    if n.has_input(3) {
        let length = n.size_input(3)?;
        if n.has_input(2) {
            let window = n.dims_with_min_rank(args[2], 1)?[0];
            let text = "the window (input 2) has {} elements, but the frame length (input 3) is {}";
            n.require_equal(window, length, text)?;
        }
        args.push(size_operand(n, length));
    }
    let attrs = Attrs::default().with("onesided", AttrValue::Bool(onesided));
    Ok(vec![n.op_with("relax.signal.stft", &args, attrs)?.into()])
}

/// Converts `MelWeightMatrix`: triangular filters over the spectrum, whose corners are evenly spaced on the mel scale.
fn mel_weights(n: &mut Node<'_, '_>) -> ConvertResult {
    let dtype = output_dtype(n)?;
    let (bins, length) = (n.size_input(0)?, n.size_input(1)?);
    let mut scalars = Vec::with_capacity(3);
    for i in 2..5 {
        let x = n.tensor(i)?;
        let x = n.reshape_to_scalar(x)?;
        scalars.push(n.cast(x, DType::Float64)?);
    }
    let [rate, low, high] = scalars[..] else {
        let text = format!("the node must have 5 inputs, but has {}", n.len());
        return Err(Problem::invalid(text));
    };
    let mut number = |v: f64| n.scalar_as(v, DType::Float64);
    let (zero, one, ten) = (number(0.0)?, number(1.0)?, number(10.0)?);
    let (factor, corner) = (number(2595.0)?, number(700.0)?);
    let log_ten = number(std::f64::consts::LN_10)?;
    let mel = |n: &mut Node<'_, '_>, hertz: Expr| {
        let y = n.op("relax.divide", &[hertz, corner])?;
        let y = n.op("relax.add", &[y, one])?;
        let y = n.op("relax.log", &[y])?;
        let y = n.op("relax.divide", &[y, log_ten])?;
        n.op("relax.multiply", &[y, factor])
    };
    let (low, high): (Expr, Expr) = (mel(n, low)?, mel(n, high)?);
    // The corners of the triangles: bins + 2 points on the mel scale, as indices of spectral lines.
    let (two, two_sym) = (n.func().syms.int(2), n.func().syms.int(2));
    let corners = n.func().syms.add(bins, two);
    let one_size = n.func().syms.int(1);
    let (index, steps) = (n.iota(corners)?, n.size_scalar(corners)?);
    let (index, steps) = (n.cast(index, DType::Float64)?, n.cast(steps, DType::Float64)?);
    let span = n.op("relax.subtract", &[high, low])?;
    let step = n.op("relax.divide", &[span, steps])?;
    let index = n.op("relax.multiply", &[index, step])?;
    let index = n.op("relax.add", &[index, low])?;
    let index = n.op("relax.divide", &[index, factor])?;
    let hertz = n.op("relax.power", &[ten, index])?;
    let hertz = n.op("relax.subtract", &[hertz, one])?;
    let hertz = n.op("relax.multiply", &[hertz, corner])?;
    let lines = n.size_scalar(length)?;
    let lines = n.cast(lines, DType::Float64)?;
    let lines = n.op("relax.add", &[lines, one])?;
    let bin = n.op("relax.multiply", &[hertz, lines])?;
    let bin = n.op("relax.divide", &[bin, rate])?;
    let bin = n.op("relax.floor", &[bin])?;
    let corner_from = |n: &mut Node<'_, '_>, first: i64| {
        let from = n.func().syms.int(first);
        let to = n.func().syms.add(from, bins);
        n.slice_axis(bin, 0, from, to)
    };
    let (left, middle, right): (Expr, Expr, Expr) =
        (corner_from(n, 0)?, corner_from(n, 1)?, corner_from(n, 2)?);
    let rows = n.func().syms.floordiv(length, two_sym);
    let rows = n.func().syms.add(rows, one_size);
    let row = n.iota(rows)?;
    let row = n.cast(row, DType::Float64)?;
    let row = n.reshape_along(row, 0, 2)?;
    // A triangle side of zero width is a step at the centre.
    let side = |n: &mut Node<'_, '_>, above: (Expr, Expr), below: (Expr, Expr), step: &str| {
        let above = n.op("relax.subtract", &[above.0, above.1])?;
        let below = n.op("relax.subtract", &[below.0, below.1])?;
        let is_flat = n.op("relax.equal", &[below, zero])?;
        let below = n.op("relax.where", &[is_flat, one, below])?;
        let slope = n.op("relax.divide", &[above, below])?;
        let step = n.op(step, &[row, middle])?;
        let step = n.cast(step, DType::Float64)?;
        n.op("relax.where", &[is_flat, step, slope])
    };
    let rising: Expr = side(n, (row, left), (middle, left), "relax.greater_equal")?;
    let falling: Expr = side(n, (right, row), (right, middle), "relax.less_equal")?;
    let y = n.op("relax.minimum", &[rising, falling])?;
    let y = n.op("relax.maximum", &[y, zero])?;
    Ok(vec![n.cast(y, dtype)?.into()])
}
