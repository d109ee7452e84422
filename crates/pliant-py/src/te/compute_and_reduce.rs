//! `te.placeholder`, `te.compute`, `te.reduce_axis` and the reductions.

use pliant_ops::te;
use pliant_tensor::{CheckFailure, DType};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::array_import::parse_dtype;
use crate::te::statement_stages::{TupleReduction, compute_several, index_tuple};
use crate::te::tensor::Tensor;
use crate::tir::axes::{IterVar, iter_var_init, range};
use crate::tir::prim_expr::{prim, prim_list};
use crate::tir::scalar_expr_classes::wrap;

/// Creates a placeholder: a tensor that the caller passes.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, name="placeholder"))]
pub fn te_placeholder(
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    name: &str,
) -> Result<Tensor> {
    let dtype = dtype.map(parse_dtype).transpose()?.unwrap_or(DType::Float32);
    let shape = prim_list(shape)?;
    check_dims(&shape)?;
    Ok(Tensor { tensor: te::placeholder(shape, dtype, name) })
}

fn check_dims(shape: &[te::Expr]) -> Result<()> {
    match shape.iter().find(|d| d.ty().dtype.is_float() || d.as_int().is_some_and(|v| v < 0)) {
        Some(dim) => Err(Error::Shape(format!(
            "a dim of a tensor must be a non-negative integer, not {dim}"
        ))),
        None => Ok(()),
    }
}

/// Creates a tensor of the given shape whose element at `idx` is `fcompute(*idx)`. If `fcompute`
/// returns several values, the result is a list of tensors.
#[pyfunction]
#[pyo3(signature = (shape, fcompute, name="compute", varargs_names=None))]
pub fn te_compute<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    fcompute: &Bound<'py, PyAny>,
    name: &str,
    varargs_names: Option<Vec<String>>,
) -> Result<Bound<'py, PyAny>> {
    let shape = prim_list(shape)?;
    check_dims(&shape)?;
    let names = match varargs_names {
        Some(names) => names,
        None => axis_names(fcompute, shape.len())?,
    };
    let label = |k: usize| names.get(k).cloned().unwrap_or_else(|| format!("ax{k}"));
    let axes: Vec<te::Var> = (0..shape.len()).map(|k| te::Var::size(label(k))).collect();
    let value = fcompute.call1(index_tuple(py, &axes)?)?;
    if let Ok(list) = value.cast::<PyList>()
        && list.len() == 1
    {
        return compute_stage(&list.get_item(0)?, shape, &axes, name);
    }
    let is_sequence = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
    if is_sequence || value.is_instance_of::<TupleReduction>() {
        return compute_several(py, name, &shape, &axes, &value);
    }
    compute_stage(&value, shape, &axes, name)
}

/// Creates the tensor of a `te.compute` call. `value` is the value that the formula returned for the indices `axes`.
fn compute_stage<'py>(
    value: &Bound<'py, PyAny>,
    shape: Vec<te::Expr>,
    axes: &[te::Var],
    name: &str,
) -> Result<Bound<'py, PyAny>> {
    let body = prim(value)?;
    let tensor = te::compute_over(shape, name, axes, &body);
    Ok(Bound::new(value.py(), Tensor { tensor })?.into_any())
}

/// Adds a run-time check to a stage. For all indices of `shape`, `check(*idx)` returns a condition that must hold,
/// followed by the integers to show in the message. `failed` is the kind of error: `shape` or `index`.
#[pyfunction]
pub fn te_checked<'py>(
    tensor: &Bound<'py, Tensor>,
    shape: &Bound<'py, PyAny>,
    check: &Bound<'py, PyAny>,
    failed: &str,
    message: &str,
) -> Result<Bound<'py, Tensor>> {
    let failed = if failed == "index" { CheckFailure::Index } else { CheckFailure::Shape };
    let py = tensor.py();
    let axes = te::check_axes(&prim_list(shape)?);
    let vars: Vec<te::Var> = axes.iter().map(|a| a.var.clone()).collect();
    let returned = prim_list(&check.call1(index_tuple(py, &vars)?)?)?;
    let Some((holds, values)) = returned.split_first() else {
        return Err(Error::Value(
            "the function in the argument 'check' must return a condition as first value, but returned no values".into(),
        ));
    };
    let cond = te::explain(holds, values);
    let check = te::Check { axes, cond, message: failed.mark(message).into() };
    let tensor = tensor.borrow().tensor.with_check(check);
    Ok(Bound::new(py, Tensor { tensor })?)
}

/// Returns the names of the parameters of the formula `f`, which become the names of the axes.
/// Rejects a function whose number of parameters is not `rank`.
fn axis_names(f: &Bound<'_, PyAny>, rank: usize) -> Result<Vec<String>> {
    let Ok(code) = f.getattr("__code__") else { return Ok(Vec::new()) };
    let count: usize = code.getattr("co_argcount")?.extract()?;
    let flags: u32 = code.getattr("co_flags")?.extract()?;
    const VARARGS: u32 = 4;
    let names: Vec<String> = code.getattr("co_varnames")?.extract()?;
    let num_self = usize::from(f.hasattr("__self__")? && !f.getattr("__self__")?.is_none());
    let defaults = match f.getattr("__defaults__")?.cast::<PyTuple>() {
        Ok(t) => t.len(),
        Err(_) => 0,
    };
    let num_params = count - num_self;
    if flags & VARARGS == 0 && (rank > num_params || rank < num_params - defaults.min(num_params)) {
        return Err(Error::Value(format!(
            "te.compute: the function 'fcompute' takes {num_params} indices, but the shape has {rank} dims"
        )));
    }
    Ok(names[num_self..count].iter().take(rank).cloned().collect())
}

/// Creates an axis of a reduction.
#[pyfunction]
#[pyo3(signature = (dom, name="rv"))]
pub fn te_reduce_axis<'py>(dom: &Bound<'py, PyAny>, name: &str) -> Result<Bound<'py, IterVar>> {
    let (min, extent) = range(dom)?;
    let axis = te::reduce_axis_from(min, extent, name);
    Ok(Bound::new(dom.py(), iter_var_init(axis))?)
}

/// Creates a reduction by name: `sum`, `prod`, `max` or `min`. With `cond`, only the elements for
/// which `cond` holds are reduced.
#[pyfunction]
#[pyo3(signature = (name, expr, axis, cond=None, init=None))]
pub fn te_reduce<'py>(
    name: &str,
    expr: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
    cond: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let reducer = match name {
        "sum" => te::Reducer::Sum,
        "prod" => te::Reducer::Prod,
        "max" => te::Reducer::Max,
        "min" => te::Reducer::Min,
        _ => {
            return Err(Error::Value(format!(
                "there is no te reduction '{name}'; expected sum, prod, max or min"
            )));
        }
    };
    reduce(reducer, expr, axis, cond, init)
}

fn reduce<'py>(
    reducer: te::Reducer,
    expr: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
    cond: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut source = prim(expr)?;
    if matches!(reducer, te::Reducer::Sum | te::Reducer::Prod) && source.ty().dtype == DType::Bool {
        let text = "te.sum and te.prod do not accept bools: convert them first, as in te.sum(x.astype(\"int64\"), axis=k)";
        return Err(Error::Type(text.into()));
    }
    if let Some(cond) = cond {
        // An excluded element is replaced by the neutral value.
        let neutral = reducer.identity(source.ty().dtype);
        source = te::if_then_else(&te::cast(&prim(cond)?, te::Ty::BOOL), &source, &neutral);
    }
    let init = init.map(prim).transpose()?;
    Ok(wrap(expr.py(), te::reduce(reducer, &source, &axes_of(axis)?, init))?)
}

/// Creates a reduction that is defined by a function of two values, `combine`, and its neutral
/// value, `identity`.
#[pyfunction]
#[pyo3(signature = (combine, identity, expr, axis, cond=None, init=None))]
pub fn te_reduce_with<'py>(
    combine: &Bound<'py, PyAny>,
    identity: &Bound<'py, PyAny>,
    expr: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
    cond: Option<&Bound<'py, PyAny>>,
    init: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let py = expr.py();
    let ty = prim(expr)?.ty();
    let identity = te::cast(&prim(identity)?, ty);
    let mut failure = None;
    let reducer = te::comm_reducer(identity, |x, y| {
        let combined = || -> Result<te::Expr> {
            let combined_value = combine.call1((wrap(py, x.clone())?, wrap(py, y.clone())?))?;
            Ok(te::cast(&prim(&combined_value)?, ty))
        };
        combined().unwrap_or_else(|e| {
            failure = Some(e);
            x.clone()
        })
    });
    match failure {
        Some(e) => Err(e),
        None => reduce(reducer, expr, axis, cond, init),
    }
}

pub(super) fn axes_of(axis: &Bound<'_, PyAny>) -> Result<Vec<te::IterVar>> {
    let one = |obj: &Bound<'_, PyAny>| -> Result<te::IterVar> {
        match obj.cast::<IterVar>() {
            Ok(axis) => Ok(axis.get().iter.clone()),
            Err(_) => Err(Error::Type(format!(
                "an axis of a reduction must be created by te.reduce_axis, not an object of type {}",
                obj.get_type().name()?
            ))),
        }
    };
    if axis.is_instance_of::<IterVar>() {
        return Ok(vec![one(axis)?]);
    }
    axis.try_iter()?.map(|item| one(&item?)).collect()
}
