//! User-defined operators: a Python function creates the tensor expression of the operator, from which the type rule is derived.
//! The decorator `relax.op.register_op` (`python/pliant/relax/op/_user_operators.py`) calls this file, which adds the operator to
//! the registry of `pliant-ops` (`pliant-ops/src/user_defined_ops.rs`).

use pliant_ir::{AttrValue, Attrs};
use pliant_ops::te::{self, TeError};
use pliant_ops::{TeArg, UserOpSpec, register_user_op};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::{Error, Result};
use crate::nesting_limit::NestingLevel;
use crate::relax::value_conversion::{attr_object, attr_value};
use crate::te::tensor::Tensor;
use crate::tir::scalar_expr_classes::wrap;

/// Registers an operator with the names of its operands, its attributes, and its Python function. The default of each
/// attribute is given in a list, which is empty for a required attribute.
#[pyfunction]
pub fn register_te_op(
    name: String,
    operands: Vec<String>,
    attrs: Vec<(String, Vec<Bound<'_, PyAny>>)>,
    func: Py<PyAny>,
) -> Result<String> {
    let attr = |(key, default): (String, Vec<Bound<'_, PyAny>>)| {
        let default = default.first().map(attr_value).transpose()?;
        Ok((key, default))
    };
    let attrs: Vec<(String, Option<AttrValue>)> =
        attrs.into_iter().map(attr).collect::<Result<_>>()?;
    let te = move |args: &[TeArg], attrs: &Attrs| {
        Python::attach(|py| {
            call_user_function(func.bind(py), args, attrs)
                .map_err(|e| TeError::new(describe(py, &e.into())))
        })
    };
    let spec = UserOpSpec { name, operands, attrs, te: Box::new(te) };
    let op = register_user_op(spec).map_err(|e| Error::Value(e.message))?;
    Ok(op.short_name().to_string())
}

/// Registers a Python function that computes the gradient of calls of loop functions (`R.call_tir_with_grad`).
#[pyfunction]
pub fn register_te_gradient(name: &str, func: Py<PyAny>) {
    let te = move |args: &[TeArg], kwargs: &Attrs| {
        Python::attach(|py| {
            call_user_function(func.bind(py), args, kwargs)
                .map_err(|e| TeError::new(describe(py, &e.into())))
        })
    };
    pliant_ops::gradient::register_te_gradient(name, Box::new(te));
}

/// Calls the user's Python function with operands and attributes, and returns the tensors that it computes.
fn call_user_function(
    func: &Bound<'_, PyAny>,
    args: &[TeArg],
    attrs: &Attrs,
) -> Result<Vec<te::Tensor>> {
    let py = func.py();
    let args = args.iter().map(|a| te_arg_object(py, a)).collect::<Result<Vec<_>>>()?;
    let kwargs = PyDict::new(py);
    for (key, value) in &attrs.0 {
        kwargs.set_item(&**key, attr_object(py, value)?)?;
    }
    let result = func.call(PyTuple::new(py, args)?, Some(&kwargs))?;
    if let Ok(one) = result.cast::<Tensor>() {
        return Ok(vec![one.get().tensor.clone()]);
    }
    let wrong_result = || {
        let what = result.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        Error::Type(format!(
            "the function that defines the operator returned {what}, not a te.Tensor or a list of te.Tensor"
        ))
    };
    if !(result.is_instance_of::<PyList>() || result.is_instance_of::<PyTuple>()) {
        return Err(wrong_result());
    }
    result
        .try_iter()?
        .map(|one| match one?.cast::<Tensor>() {
            Ok(tensor) => Ok(tensor.get().tensor.clone()),
            Err(_) => Err(wrong_result()),
        })
        .collect()
}

/// Converts an operand to the Python object that the user's function receives.
fn te_arg_object<'py>(py: Python<'py>, arg: &TeArg) -> Result<Bound<'py, PyAny>> {
    let _level = NestingLevel::enter("operands")?;
    Ok(match arg {
        TeArg::Tensor(tensor) => Bound::new(py, Tensor { tensor: tensor.clone() })?.into_any(),
        TeArg::Scalar(value) => wrap(py, value.clone())?,
        TeArg::Shape(dims) => {
            let dims: PyResult<Vec<_>> = dims.iter().map(|d| wrap(py, d.clone())).collect();
            PyTuple::new(py, dims?)?.into_any()
        }
        TeArg::Tuple(fields) => {
            let fields = fields.iter().map(|f| te_arg_object(py, f)).collect::<Result<Vec<_>>>()?;
            PyTuple::new(py, fields)?.into_any()
        }
        TeArg::Str(text) => (**text).into_pyobject(py).map_err(PyErr::from)?.into_any(),
        TeArg::None => py.None().into_bound(py),
        TeArg::DType(dtype) => dtype.name().into_pyobject(py).map_err(PyErr::from)?.into_any(),
    })
}

/// Describes an exception of the user's Python function, with its source location.
fn describe(py: Python<'_>, error: &PyErr) -> String {
    let location = || -> PyResult<String> {
        let mut traceback = error.traceback(py).map(Bound::into_any);
        let mut location = String::new();
        while let Some(frame) = traceback.filter(|t| !t.is_none()) {
            let code = frame.getattr("tb_frame")?.getattr("f_code")?;
            let (file, line) = (code.getattr("co_filename")?, frame.getattr("tb_lineno")?);
            location = format!(" ({file}, line {line})");
            traceback = Some(frame.getattr("tb_next")?);
        }
        Ok(location)
    };
    format!("{error}{}", location().unwrap_or_default())
}
