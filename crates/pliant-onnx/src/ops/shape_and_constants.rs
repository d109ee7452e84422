//! Converters of `Shape`, `Size`, `Range`, constants and `Identity`.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::size_proofs;
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use super::reshape_transpose::constant_dims;
use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value, element_count};
use crate::initializer_tensors;
use crate::node::{ConvertResult, Node};

pub(super) static OPS: &[OnnxOp] = &[
    op("Constant", constant),
    op("ConstantOfShape", constant_of_shape),
    op("Identity", identity),
    op("Range", range),
    op("Shape", shape),
    op("Size", size),
];

fn identity(n: &mut Node<'_, '_>) -> ConvertResult {
    Ok(vec![n.value(0)?])
}

fn constant(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let result = |t: Result<Tensor, pliant_tensor::TensorError>| {
        t.map(|t| vec![Value::Const(t)]).map_err(|e| Problem::invalid(e.to_string()))
    };
    if let Some(proto) = attrs.tensor("value")? {
        let limits = n.importer.limits;
        let read = initializer_tensors::read_tensor(proto, &mut n.importer.external, &limits);
        return Ok(vec![crate::graph_import::constant_value(proto, read?)]);
    }
    if let Some(v) = attrs.float("value_float")? {
        return result(Tensor::scalar(v as f32));
    }
    if let Some(v) = attrs.int("value_int")? {
        return result(Tensor::scalar(v));
    }
    if let Some(v) = attrs.floats("value_floats")? {
        return result(Tensor::from_slice(&[v.len() as i64], v));
    }
    if let Some(v) = attrs.ints("value_ints")? {
        return result(Tensor::from_slice(&[v.len() as i64], v));
    }
    if attrs.has("sparse_value") {
        let problem = Problem::unsupported(
            "the constant is a sparse tensor (attribute 'sparse_value'), which is not supported",
        );
        return Err(
            problem.with_help("store the constant as a dense tensor, in the attribute 'value'")
        );
    }
    let problem = Problem::unsupported("the constant consists of strings, which are not supported");
    Err(problem.with_help(
        "remove the string operators from the model, and apply them before the model runs",
    ))
}

/// Converts `Shape`, which can be limited to a range of axes since opset 15. The elements of the result are the symbolic dims.
fn shape(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let (start, end) = (attrs.int("start")?.unwrap_or(0), attrs.int("end")?);
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let rank = dims.len() as i64;
    let bound = |v: i64| if v < 0 { (v + rank).max(0) } else { v.min(rank) } as usize;
    let (start, end) = (bound(start), end.map_or(dims.len(), bound));
    Ok(vec![SymTensor::vector(dims[start.min(end)..end].to_vec()).into()])
}

fn size(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let count = n.func().syms.product(dims);
    Ok(vec![SymTensor::scalar(count).into()])
}

fn constant_of_shape(n: &mut Node<'_, '_>) -> ConvertResult {
    let value = match n.attrs().tensor("value")? {
        Some(proto) => {
            let limits = n.importer.limits;
            initializer_tensors::read_tensor(proto, &mut n.importer.external, &limits)?
        }
        None => Tensor::scalar(0f32).map_err(|e| Problem::invalid(e.to_string()))?,
    };
    let (dtype, value) =
        (value.dtype(), value.reshape(&[]).map_err(|e| Problem::invalid(e.to_string()))?);
    if n.symbolic(0).is_none() {
        let sizes = n.tensor(0)?;
        if n.constant_length(sizes)?.is_none() {
            let (shape, value) = (n.tensor_to_shape(sizes)?, n.importer.constant(&value));
            let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
            return Ok(vec![n.op_with("relax.full", &[shape, value], attrs)?.into()]);
        }
    }
    let dims = n.sizes_input(0, None)?;
    // A short integer vector may be part of a shape computation, so it remains symbolic.
    if dtype == DType::Int64
        && let Some(sizes) = constant_dims(n, &dims)
        && let Some(count) = element_count(&sizes)
        && count <= n.importer.limits.shape_elements
        && let Ok([v]) = value.as_slice::<i64>()
    {
        let elem = n.func().syms.int(*v);
        let elems = vec![elem; count];
        return Ok(vec![SymTensor { shape: sizes, elems, dtype }.into()]);
    }
    let value = n.importer.constant(&value);
    let shape = n.func().shape(&dims);
    let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
    Ok(vec![n.op_with("relax.full", &[shape, value], attrs)?.into()])
}

/// Checks that the step of a range is not 0, and that the difference of its bounds does not overflow.
fn check_bounds(n: &mut Node<'_, '_>, bounds: &[Sym]) -> Result<(), Problem> {
    let numbers: Vec<Option<i64>> = bounds.iter().map(|&b| n.func().syms.as_int(b)).collect();
    if let [Some(start), Some(limit), _] = numbers[..]
        && limit.checked_sub(start).and_then(i64::checked_abs).is_none()
    {
        let message = format!("the difference of the bounds {start} and {limit} overflows int64");
        return Err(Problem::invalid(message));
    }
    match numbers[2] {
        Some(0) => Err(Problem::invalid("the step 'delta' (input 2) must not be 0")),
        Some(_) => Ok(()),
        None => {
            let (step, zero) = (n.size_scalar(bounds[2])?, n.scalar(0i64)?);
            let nonzero = n.op("relax.not_equal", &[step, zero])?;
            n.require(nonzero, "the step 'delta' (input 2) must not be 0, but is {}", &[step])
        }
    }
}

/// Converts `Range`. The result is symbolic if the bounds are, else it is computed at run time.
fn range(n: &mut Node<'_, '_>) -> ConvertResult {
    let known: Option<Vec<Sym>> =
        (0..3).map(|i| n.symbolic(i).and_then(|t| t.elems.first().copied())).collect();
    if let Some(bounds) = known.filter(|bounds| has_known_sign(n, bounds[2])) {
        check_bounds(n, &bounds)?;
        let dtype = n.symbolic(0).map_or(DType::Int64, |t| t.dtype);
        if let Some(elems) = enumerate_range(n, &bounds) {
            return Ok(vec![SymTensor { dtype, ..SymTensor::vector(elems) }.into()]);
        }
        let args: Vec<Expr> = bounds.iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        return Ok(vec![n.op_with("relax.arange", &args, attrs)?.into()]);
    }
    // `start + step * (0 .. count)`, where `count` is computed at run time.
    let inputs = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let dtype = n.dtype(inputs[0])?;
    // The count is computed in a wide dtype. The rounding error of a float32 step could change it.
    let count_dtype = if dtype.is_integer() { DType::Int64 } else { DType::Float64 };
    let mut wide = inputs;
    for bound in &mut wide {
        *bound = n.cast(*bound, count_dtype)?;
    }
    let [start, limit, step] = wide;
    let span = n.op("relax.subtract", &[limit, start])?;
    let zero_scalar = n.scalar_as(0.0, count_dtype)?;
    let nonzero = n.op("relax.not_equal", &[step, zero_scalar])?;
    n.require(nonzero, "the step 'delta' (input 2) must not be 0, but is {}", &[step])?;
    if dtype.is_integer() {
        // The difference and its negation must not overflow 64 bits.
        let min = n.scalar_as(-(2f64.powi(63)), count_dtype)?;
        let up = n.op("relax.greater_equal", &[limit, start])?;
        let is_up = n.op("relax.greater_equal", &[span, zero_scalar])?;
        let (same, some) =
            (n.op("relax.equal", &[up, is_up])?, n.op("relax.not_equal", &[span, min])?);
        let near = n.op("relax.logical_and", &[same, some])?;
        n.require(near, "the difference of the bounds {} and {} overflows int64", &[start, limit])?;
    }
    let count = if dtype.is_integer() {
        // Rounded up: `-((-span) // step)`.
        let minus = n.op("relax.negative", &[span])?;
        let down = n.op("relax.floor_divide", &[minus, step])?;
        n.op("relax.negative", &[down])?
    } else {
        let step_count = n.op("relax.divide", &[span, step])?;
        let finite = n.op("relax.isfinite", &[step_count])?;
        n.require(
            finite,
            "the range from {} to {} in steps of {} has no finite number of elements",
            &wide,
        )?;
        n.op("relax.ceil", &[step_count])?
    };
    let [start, _, step] = inputs;
    let count = n.cast(count, DType::Int64)?;
    let zero = n.scalar(0i64)?;
    let count = n.op("relax.maximum", &[count, zero])?;
    let one = n.func().syms.int(1);
    let count = n.reshape(count, &[one])?;
    let length = n.elements_as_symbols(count, 1)?;
    let zero = n.func().syms.int(0);
    let args: Vec<Expr> =
        [zero, length[0], one].iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
    let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
    let steps = n.op_with("relax.arange", &args, attrs)?;
    let steps = n.cast(steps, dtype)?;
    let scaled = n.op("relax.multiply", &[steps, step])?;
    Ok(vec![n.op("relax.add", &[scaled, start])?.into()])
}

/// The elements of a range, if there are few and their number is known. Such ranges are usually lists of axes.
fn enumerate_range(n: &mut Node<'_, '_>, bounds: &[Sym]) -> Option<Vec<Sym>> {
    let limit = n.importer.limits.shape_elements as i64;
    let syms = &mut n.func().syms;
    let (span, step) = (syms.sub(bounds[1], bounds[0]), syms.as_int(bounds[2])?);
    let span = syms.as_int(span)?;
    let whole = span.checked_div(step)?;
    let count = if span % step != 0 { whole + i64::from((span < 0) == (step < 0)) } else { whole };
    if count > limit {
        return None;
    }
    let at = |i: i64| {
        let offset = syms.int(i * step);
        syms.add(bounds[0], offset)
    };
    Some((0..count.max(0)).map(at).collect())
}

/// Whether the sign of a step is known. A step of 0 counts as known, because it is reported separately.
fn has_known_sign(n: &mut Node<'_, '_>, step: Sym) -> bool {
    let func = n.func();
    let (one, back) = (func.syms.int(1), func.syms.int(-1));
    func.syms.as_int(step).is_some()
        || size_proofs::at_most(func, one, step) == Some(true)
        || size_proofs::at_most(func, step, back) == Some(true)
}
