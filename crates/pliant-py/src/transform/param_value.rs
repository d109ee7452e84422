//! Converts Python objects and graph-level constants to values to which `BindParams` can bind a parameter.

use pliant_ir::relax::{Expr as IrExpr, ExprData, Function};
use pliant_ops::te::{self, ExprKind};
use pliant_opt::params::bind_params::ParamValue;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyList, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::nesting_limit::NestingLevel;
use crate::relax::classes::Expr;
use crate::relax::detached_expr::{Node, NodeRef, Scalar};
use crate::relax::value_conversion::immutable_tensor;
use crate::runtime::array_import::to_tensor;
use crate::runtime::shape_tuple::ShapeTuple;

/// Converts an argument to a value for `BindParams`: a tensor (through DLPack or NumPy), a number,
/// a string, a `Shape`, a sequence of these, or an expression made of these.
///
/// # Errors
/// `TypeError` for expressions that need to be computed, and any error of the conversion to a
/// tensor.
pub fn param_value(obj: &Bound<'_, PyAny>) -> Result<ParamValue> {
    let _level = NestingLevel::enter("tuples")?;
    if let Ok(e) = obj.cast::<Expr>() {
        return node_value(&e.get().node)?.ok_or_else(|| {
            Error::Type(format!(
                "a parameter can be bound only to a constant: a tensor, a number, a shape, a string or a tuple of these, not {} \
                 (help: a function cannot use variables or computations of another function)",
                obj.to_string().trim()
            ))
        });
    }
    if let Ok(shape) = obj.cast::<ShapeTuple>() {
        return Ok(ParamValue::Shape(shape.get().0.to_vec()));
    }
    if let Ok(text) = obj.cast::<PyString>() {
        return Ok(ParamValue::Str(text.to_str()?.into()));
    }
    // Numbers and lists of numbers become tensors if the parameter is a tensor.
    let host_value = if obj.is_instance_of::<PyTuple>() || obj.is_instance_of::<PyList>() {
        let items: Result<_> = obj.try_iter()?.map(|item| param_value(&item?)).collect();
        Some(ParamValue::List(items?))
    } else if is_bool(obj)? {
        Some(ParamValue::Int(i64::from(obj.is_truthy()?)))
    } else if let Ok(value) = obj.call_method0("__index__") {
        let value: Option<i64> = value.extract().ok();
        let too_wide = || {
            Error::Value(format!(
                "the value {obj} of a parameter does not fit int64, the data type of integer scalars"
            ))
        };
        Some(ParamValue::Int(value.ok_or_else(too_wide)?))
    } else if obj.is_instance_of::<PyFloat>()
        || obj.get_type().hasattr("__float__")? && !obj.hasattr("__dlpack__")?
    {
        Some(ParamValue::Float(obj.extract()?))
    } else {
        None
    };
    // The module keeps the tensor, so it must not share memory that the caller may modify later.
    let tensor = to_tensor(obj, None).and_then(immutable_tensor);
    match (host_value, tensor) {
        (Some(host_value), Ok(tensor)) => Ok(ParamValue::Either(tensor, host_value.into())),
        (Some(host_value), Err(_)) => Ok(host_value),
        (None, tensor) => Ok(ParamValue::Tensor(tensor?)),
    }
}

/// Whether an object is a Python `bool` or a NumPy `bool_`.
fn is_bool(obj: &Bound<'_, PyAny>) -> Result<bool> {
    if obj.is_instance_of::<PyBool>() {
        return Ok(true);
    }
    let Some(dtype) = obj.getattr_opt("dtype")? else { return Ok(false) };
    Ok(dtype.to_string() == "bool"
        && obj.getattr_opt("shape")?.is_some_and(|s| s.len().is_ok_and(|n| n == 0)))
}

/// Returns the value of a constant expression; `None` for other expressions.
fn node_value(node: &NodeRef) -> Result<Option<ParamValue>> {
    let _level = NestingLevel::enter("tuples")?;
    Ok(match node.get() {
        Node::Constant(tensor) => Some(ParamValue::Tensor(immutable_tensor(tensor.clone())?)),
        Node::Scalar(Scalar::Int(value)) => Some(ParamValue::Int(*value)),
        Node::Scalar(Scalar::Float(value)) => Some(ParamValue::Float(*value)),
        Node::Scalar(Scalar::Bool(value)) => Some(ParamValue::Int(i64::from(*value))),
        Node::Shape(dims) => {
            dims.iter().map(te::Expr::as_int).collect::<Option<_>>().map(ParamValue::Shape)
        }
        Node::Prim(value) => match value.kind() {
            ExprKind::Int(value) => Some(ParamValue::Int(*value)),
            ExprKind::Float(value) => Some(ParamValue::Float(*value)),
            _ => None,
        },
        Node::Str(text) => Some(ParamValue::Str(text.clone())),
        Node::Tuple(fields) => {
            fields.iter().map(node_value).collect::<Result<Option<_>>>()?.map(ParamValue::Tuple)
        }
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            match state.func() {
                Some(func) => expr_value(func, *e)?,
                None => None,
            }
        }
        _ => None,
    })
}

fn expr_value(func: &Function, e: IrExpr) -> Result<Option<ParamValue>> {
    Ok(match func.expr(e) {
        ExprData::Constant(c) => {
            Some(ParamValue::Tensor(immutable_tensor(func.const_tensor(*c).clone())?))
        }
        ExprData::Int(value, _) => func.syms.as_int(*value).map(ParamValue::Int),
        ExprData::Float(bits, _) => Some(ParamValue::Float(f64::from_bits(*bits))),
        ExprData::Shape(dims) => {
            dims.iter().map(|&d| func.syms.as_int(d)).collect::<Option<_>>().map(ParamValue::Shape)
        }
        ExprData::Str(text) => Some(ParamValue::Str(func.str(*text).clone())),
        ExprData::Tuple(list) => {
            let fields = func.list(*list).iter().map(|&field| expr_value(func, field));
            fields.collect::<Result<Option<_>>>()?.map(ParamValue::Tuple)
        }
        _ => None,
    })
}
