//! `te.placeholder`, `te.compute`, `te.reduce_axis` and the reductions.

use pliant_ops::te;
use pliant_tensor::DType;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};
use crate::runtime::import::parse_dtype;
use crate::te::tensor::{IterVar, Tensor, range};
use crate::tir::expr::{iter_var_init, prim, prim_list, wrap};

/// A tensor that the caller supplies.
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
        Some(dim) => Err(Error::Shape(format!("a dim is a non-negative integer, not {dim}"))),
        None => Ok(()),
    }
}

/// A tensor of that shape whose element at `idx` is `fcompute(*idx)`.
#[pyfunction]
#[pyo3(signature = (shape, fcompute, name="compute", varargs_names=None))]
pub fn te_compute(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fcompute: &Bound<'_, PyAny>,
    name: &str,
    varargs_names: Option<Vec<String>>,
) -> Result<Tensor> {
    let shape = prim_list(shape)?;
    check_dims(&shape)?;
    let names = match varargs_names {
        Some(names) => names,
        None => axis_names(fcompute, shape.len())?,
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut failure = None;
    let tensor = te::compute_named(shape, name, &names, |indices| {
        call_formula(py, fcompute, indices).unwrap_or_else(|e| {
            failure = Some(e);
            te::int(0)
        })
    });
    match failure {
        Some(e) => Err(e),
        None => Ok(Tensor { tensor }),
    }
}

fn call_formula(
    py: Python<'_>,
    fcompute: &Bound<'_, PyAny>,
    indices: &[te::Expr],
) -> Result<te::Expr> {
    let args: PyResult<Vec<_>> = indices.iter().map(|i| wrap(py, i.clone())).collect();
    let value = fcompute.call1(PyTuple::new(py, args?)?)?;
    if let Ok(list) = value.cast::<PyList>() {
        return match list.len() {
            1 => prim(&list.get_item(0)?),
            n => Err(Error::Unsupported(format!(
                "a stage with {n} outputs: write one te.compute each"
            ))),
        };
    }
    prim(&value)
}

/// The names of the formula's parameters, where there is one per dim.
fn axis_names(f: &Bound<'_, PyAny>, rank: usize) -> Result<Vec<String>> {
    let Ok(code) = f.getattr("__code__") else { return Ok(Vec::new()) };
    let count: usize = code.getattr("co_argcount")?.extract()?;
    let flags: u32 = code.getattr("co_flags")?.extract()?;
    const VARARGS: u32 = 4;
    let names: Vec<String> = code.getattr("co_varnames")?.extract()?;
    let method = usize::from(f.hasattr("__self__")? && !f.getattr("__self__")?.is_none());
    let defaults = match f.getattr("__defaults__")?.cast::<PyTuple>() {
        Ok(t) => t.len(),
        Err(_) => 0,
    };
    let own = count - method;
    if flags & VARARGS == 0 && (rank > own || rank < own - defaults.min(own)) {
        return Err(Error::Value(format!(
            "the formula takes {own} indices, but the shape has {rank} dims"
        )));
    }
    Ok(names[method..count].iter().take(rank).cloned().collect())
}

/// An axis to reduce over.
#[pyfunction]
#[pyo3(signature = (dom, name="rv"))]
pub fn te_reduce_axis<'py>(dom: &Bound<'py, PyAny>, name: &str) -> Result<Bound<'py, IterVar>> {
    let (min, extent) = range(dom)?;
    let axis = te::reduce_axis_from(min, extent, name);
    Ok(Bound::new(dom.py(), iter_var_init(axis))?)
}

/// A reduction by its name: `sum`, `prod`, `max` or `min`.
#[pyfunction]
pub fn te_reduce<'py>(
    name: &str,
    expr: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let axes = axes_of(axis)?;
    let source = prim(expr)?;
    let reduced = match name {
        "sum" => te::sum(&source, &axes),
        "prod" => te::prod(&source, &axes),
        "max" => te::max(&source, &axes),
        "min" => te::min(&source, &axes),
        _ => return Err(Error::Value(format!("no reduction is called '{name}'"))),
    };
    Ok(wrap(expr.py(), reduced)?)
}

/// A reduction with a function of two values and its neutral value.
#[pyfunction]
pub fn te_reduce_with<'py>(
    combine: &Bound<'py, PyAny>,
    identity: &Bound<'py, PyAny>,
    expr: &Bound<'py, PyAny>,
    axis: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let py = expr.py();
    let source = prim(expr)?;
    let identity = te::cast(&prim(identity)?, source.ty());
    let mut failure = None;
    let reducer = te::comm_reducer(identity, |x, y| {
        let combined = || -> Result<te::Expr> {
            prim(&combine.call1((wrap(py, x.clone())?, wrap(py, y.clone())?))?)
        };
        combined().unwrap_or_else(|e| {
            failure = Some(e);
            x.clone()
        })
    });
    match failure {
        Some(e) => Err(e),
        None => Ok(wrap(py, te::reduce(reducer, &source, &axes_of(axis)?, None))?),
    }
}

fn axes_of(axis: &Bound<'_, PyAny>) -> Result<Vec<te::IterVar>> {
    let one = |obj: &Bound<'_, PyAny>| match obj.cast::<IterVar>() {
        Ok(axis) => Ok(axis.get().iter.clone()),
        Err(_) => Err(Error::Type("an axis of a reduction is made by te.reduce_axis".into())),
    };
    if axis.is_instance_of::<IterVar>() {
        return Ok(vec![one(axis)?]);
    }
    axis.try_iter()?.map(|item| one(&item?)).collect()
}
