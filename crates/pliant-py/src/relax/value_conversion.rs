//! Converts Python values to operands, attributes and struct infos of the graph level.

use pliant_ir::relax::type_lattice;
use pliant_ir::relax::{Expr, Function, Type};
use pliant_ir::{AttrValue, DType};
use pliant_ops::te;
use pliant_tensor::{Tensor, round_to_bf16, round_to_f16};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::nesting_limit::NestingLevel;
use crate::relax::classes::Expr as PyExpr;
use crate::relax::classes::struct_info::StructInfo;
use crate::relax::detached_expr::{Node, NodeRef, Scalar};
use crate::relax::struct_info::{SInfo, sinfo_of};
use crate::runtime::array_import::borrow_tensor;
use crate::runtime::shape_tuple::ShapeTuple;
use crate::tir::prim_expr::{PrimExpr, prim, try_prim};
use crate::tir::scalar_expr_classes::wrap;

/// Converts an integer to a rank-0 tensor.
///
/// # Errors
/// If the data type cannot hold the number.
pub fn int_tensor(v: i64, dtype: DType) -> Result<Tensor> {
    macro_rules! checked_scalar {
        ($($variant:ident => $ty:ty),*) => {
            match dtype {
                $(DType::$variant => {
                    let v = <$ty>::try_from(v).map_err(|_| Error::Value(format!("the integer {v} does not fit the data type {dtype}")))?;
                    return Ok(Tensor::scalar(v)?);
                })*
                _ => {}
            }
        };
    }
    checked_scalar!(Int8 => i8, Int16 => i16, Int32 => i32, Int64 => i64, UInt8 => u8, UInt16 => u16, UInt32 => u32, UInt64 => u64);
    match dtype {
        DType::Bool => Ok(Tensor::scalar(v != 0)?),
        _ => float_tensor(v as f64, dtype),
    }
}

/// Converts a number to a rank-0 tensor. For integer types, it is rounded towards zero.
///
/// # Errors
/// If the data type cannot hold the number.
pub fn float_tensor(v: f64, dtype: DType) -> Result<Tensor> {
    Ok(match dtype {
        DType::Float16 => Tensor::scalar(round_to_f16(v))?,
        DType::BFloat16 => Tensor::scalar(round_to_bf16(v))?,
        DType::Float32 => Tensor::scalar(v as f32)?,
        DType::Float64 => Tensor::scalar(v)?,
        _ => int_tensor(v as i64, dtype)?,
    })
}

/// Returns the result type of a call of a function value, such as a local function.
///
/// # Errors
/// If the arguments do not match the parameters.
pub fn call_result(func: &mut Function, callee: Expr, args: &[Expr]) -> Result<Type> {
    let callable = func.expr_ty(callee);
    let args: Vec<Type> = args.iter().map(|&a| func.expr_ty(a)).collect();
    type_lattice::derive_callable_ty(func, callable, &args).map_err(|e| Error::Compile(e.message))
}

/// Converts a Python value to an operand: an expression, a number, a shape, a string, an array, or
/// a tuple of these. Returns `None` for the Python object `None`.
///
/// # Errors
/// `TypeError` for any other object.
pub fn operand(obj: &Bound<'_, PyAny>) -> Result<Option<NodeRef>> {
    if let Ok(e) = obj.cast::<PyExpr>() {
        return Ok(Some(e.get().node.clone()));
    }
    if obj.is_none() {
        return Ok(None);
    }
    let node = if obj.is_instance_of::<PyBool>() {
        Node::Scalar(Scalar::Bool(obj.is_truthy()?))
    } else if obj.is_instance_of::<PyInt>() {
        match obj.extract::<u64>() {
            // The value fits only in uint64.
            Ok(v) if i64::try_from(v).is_err() => Node::Constant(Tensor::scalar(v)?),
            _ => Node::Scalar(Scalar::Int(to_int64(obj)?)),
        }
    } else if obj.is_instance_of::<PyFloat>() {
        Node::Scalar(Scalar::Float(obj.extract()?))
    } else if let Ok(s) = obj.cast::<PyString>() {
        Node::Str(s.to_string().into())
    } else if let Ok(e) = obj.cast::<PrimExpr>() {
        Node::Prim(e.get().expr.clone())
    } else if let Ok(shape) = obj.cast::<ShapeTuple>() {
        Node::Shape(shape.get().0.iter().map(|&d| pliant_ops::te::int(d)).collect())
    } else if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        sequence(obj)?
    } else if let Some(tensor) = borrow_tensor(obj)? {
        Node::Constant(immutable_tensor(tensor)?)
    } else {
        return Err(Error::Type(format!(
            "an operand must be an expression, an array, a number, a string, a shape or a tuple of these, not {}",
            obj.get_type().name()?
        )));
    };
    Ok(Some(NodeRef::new(node)))
}

/// Converts a Python int to an int64.
fn to_int64(obj: &Bound<'_, PyAny>) -> Result<i64> {
    obj.extract().map_err(|_| Error::Value(format!("the integer {obj} does not fit 64 bits")))
}

/// Whether a value contains a non-constant integer, such as a size variable or a shape with
/// symbolic sizes.
///
/// # Errors
/// If the nesting is too deep.
pub fn is_symbolic(obj: &Bound<'_, PyAny>) -> Result<bool> {
    let is_non_constant = |e: &te::Expr| e.as_int().is_none() && e.ty().dtype.is_integer();
    if let Ok(e) = obj.cast::<PrimExpr>() {
        return Ok(is_non_constant(&e.get().expr));
    }
    if let Ok(e) = obj.cast::<PyExpr>() {
        let node = &e.get().node;
        return Ok(match node.get() {
            Node::Prim(e) => is_non_constant(e),
            Node::Shape(dims) => dims.iter().any(is_non_constant),
            _ => match sinfo_of(node) {
                Some(SInfo::Prim(dtype, value)) => {
                    dtype.is_integer() && value.as_ref().is_none_or(is_non_constant)
                }
                Some(SInfo::Shape(dims, _)) => {
                    dims.as_ref().is_none_or(|d| d.iter().any(is_non_constant))
                }
                _ => false,
            },
        });
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        let _level = NestingLevel::enter("attributes")?;
        for item in obj.try_iter()? {
            if is_symbolic(&item?)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the tensor itself if it is read-only and contiguous, otherwise a copy, because the data of a constant
/// must not change later.
pub fn immutable_tensor(tensor: Tensor) -> Result<Tensor> {
    if tensor.is_read_only() && tensor.is_contiguous() { Ok(tensor) } else { Ok(tensor.copy()?) }
}

/// Converts a sequence of sizes to a shape, and a sequence of expressions to a tuple.
fn sequence(obj: &Bound<'_, PyAny>) -> Result<Node> {
    let _level = NestingLevel::enter("tuples")?;
    let items: Vec<Bound<'_, PyAny>> = obj.try_iter()?.collect::<PyResult<_>>()?;
    let exprs = items.iter().any(|i| i.is_instance_of::<PyExpr>());
    if !exprs {
        let dims: Result<Vec<_>> =
            items.iter().map(|i| Ok(try_prim(i)?.filter(|e| !e.ty().dtype.is_float()))).collect();
        let dims: Option<Vec<_>> = dims?.into_iter().collect();
        if let Some(dims) = dims {
            return Ok(Node::Shape(dims));
        }
    }
    let fields: Result<Vec<NodeRef>> = items.iter().map(required_operand).collect();
    Ok(Node::Tuple(fields?))
}

/// Converts a Python value to an operand that must be present.
///
/// # Errors
/// As for [`operand`], and `TypeError` for `None`.
pub fn required_operand(obj: &Bound<'_, PyAny>) -> Result<NodeRef> {
    operand(obj)?
        .ok_or_else(|| Error::Type("None cannot be an operand of a tensor operator".into()))
}

/// Converts the arguments of a call, given as a tuple or list, a `relax.Tuple`, or one expression.
///
/// # Errors
/// As for [`operand`].
pub fn arg_list(obj: &Bound<'_, PyAny>) -> Result<Vec<NodeRef>> {
    if let Ok(e) = obj.cast::<PyExpr>() {
        match e.get().node.get() {
            Node::Tuple(fields) => return Ok(fields.clone()),
            // A tuple of a function also means the list of its fields.
            _ if obj.is_instance_of::<crate::relax::classes::Tuple>() => {}
            _ => return Ok(vec![e.get().node.clone()]),
        }
    }
    obj.try_iter()?.map(|item| required_operand(&item?)).collect()
}

/// Converts a Python value to an attribute.
///
/// # Errors
/// `TypeError` for a value that cannot be an attribute.
pub fn attr_value(obj: &Bound<'_, PyAny>) -> Result<AttrValue> {
    let _level = NestingLevel::enter("attributes")?;
    if obj.is_none() {
        return Ok(AttrValue::None);
    }
    if obj.is_instance_of::<PyBool>() {
        return Ok(AttrValue::Bool(obj.is_truthy()?));
    }
    if obj.is_instance_of::<PyInt>() {
        return Ok(AttrValue::Int(to_int64(obj)?));
    }
    if obj.is_instance_of::<PyFloat>() {
        return Ok(AttrValue::float(obj.extract()?));
    }
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(AttrValue::str(&s.to_cow().map_err(Error::Python)?));
    }
    if let Ok(dict) = obj.cast::<PyDict>() {
        let items: Result<Vec<_>> = dict
            .iter()
            .map(|(k, v)| Ok((k.extract::<String>()?.into(), attr_value(&v)?)))
            .collect();
        return Ok(AttrValue::Map(items?));
    }
    if let Ok(e) = obj.cast::<PrimExpr>()
        && let Some(v) = e.get().expr.as_int()
    {
        return Ok(AttrValue::Int(v));
    }
    if let Ok(e) = obj.cast::<PyExpr>()
        && let Some(value) = expr_attr_value(&e.get().node)
    {
        return Ok(value);
    }
    if let Some(number) = numpy_number(obj)? {
        return attr_value(&number);
    }
    if let Ok(items) = obj.try_iter() {
        let items: Result<Vec<AttrValue>> = items.map(|i| attr_value(&i?)).collect();
        return Ok(AttrValue::List(items?));
    }
    if let Ok(v) = obj.call_method0("__index__") {
        return Ok(AttrValue::Int(to_int64(&v)?));
    }
    if let Ok(dtype) = crate::runtime::array_import::parse_dtype(obj) {
        return Ok(AttrValue::DType(dtype));
    }
    if obj.is_callable() {
        return index_map_text(obj);
    }
    Err(Error::Type(format!(
        "{} cannot be the value of an attribute, which must be a number, a string, a dtype, a list or a dict",
        obj.repr()?
    )))
}

/// Converts a constant expression to an attribute; `None` for other expressions.
fn expr_attr_value(node: &NodeRef) -> Option<AttrValue> {
    match node.get() {
        Node::Str(s) => Some(AttrValue::Str(s.clone())),
        Node::DType(d) => Some(AttrValue::DType(*d)),
        Node::Prim(e) => e.as_int().map(AttrValue::Int),
        Node::Shape(dims) => {
            let ints: Option<Vec<i64>> = dims.iter().map(te::Expr::as_int).collect();
            ints.map(AttrValue::ints)
        }
        _ => None,
    }
}

/// Returns the number in a NumPy scalar or in an array of rank 0. NumPy data types, which also have
/// an empty shape, are not numbers.
fn numpy_number<'py>(obj: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
    let no_dims = |shape: Bound<'py, PyAny>| shape.cast::<PyTuple>().is_ok_and(|t| t.is_empty());
    let number = obj.getattr("shape").is_ok_and(no_dims) && obj.hasattr("item")?;
    Ok(if number { Some(obj.call_method0("item")?) } else { None })
}

/// Converts an index map, given as a Python function of indices such as `lambda i, j: (j // 4, i)`,
/// to its text.
fn index_map_text(function: &Bound<'_, PyAny>) -> Result<AttrValue> {
    let py = function.py();
    let signature = py.import("inspect")?.call_method1("signature", (function,))?;
    let mut names: Vec<String> = Vec::new();
    for name in signature.getattr("parameters")?.try_iter()? {
        names.push(name?.extract()?);
    }
    let indices: Result<Vec<_>> =
        names.iter().map(|n| Ok(wrap(py, te::Var::size(n.as_str()).expr())?)).collect();
    let result = function.call1(PyTuple::new(py, indices?)?)?;
    let items: Vec<Bound<'_, PyAny>> = match result.try_iter() {
        Ok(items) => items.collect::<PyResult<_>>()?,
        Err(_) => vec![result],
    };
    let texts: Result<Vec<String>> = items.iter().map(|i| Ok(prim(i)?.to_string())).collect();
    Ok(AttrValue::str(&format!("lambda {}: ({})", names.join(", "), texts?.join(", "))))
}

/// Converts an attribute to a Python value.
///
/// # Errors
/// An error of the Python interpreter.
pub fn attr_object<'py>(py: Python<'py>, value: &AttrValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AttrValue::None => py.None().into_bound(py),
        AttrValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
        AttrValue::Int(v) => v.into_pyobject(py)?.into_any(),
        AttrValue::Float(bits) => PyFloat::new(py, f64::from_bits(*bits)).into_any(),
        AttrValue::Str(s) => PyString::new(py, s).into_any(),
        AttrValue::DType(d) => PyString::new(py, d.name()).into_any(),
        AttrValue::List(items) => {
            let items: PyResult<Vec<_>> = items.iter().map(|i| attr_object(py, i)).collect();
            PyList::new(py, items?)?.into_any()
        }
        AttrValue::Map(items) => {
            let dict = PyDict::new(py);
            for (k, v) in items {
                dict.set_item(&**k, attr_object(py, v)?)?;
            }
            dict.into_any()
        }
    })
}

/// Converts a struct info argument: a struct info, or a callable that returns one if called without
/// arguments (`R.Object`, `R.Tensor`).
///
/// # Errors
/// `TypeError` for any other object.
pub fn sinfo(obj: &Bound<'_, PyAny>) -> Result<SInfo> {
    if let Ok(info) = obj.cast::<StructInfo>() {
        return info.get().info.clone().checked();
    }
    if obj.is_callable() {
        let returned = obj.call0()?;
        if let Ok(info) = returned.cast::<StructInfo>() {
            return info.get().info.clone().checked();
        }
    }
    Err(Error::Type(format!(
        "a struct info such as TensorStructInfo is required here, not {}",
        obj.get_type().name()?
    )))
}

/// Converts one struct info or a sequence of struct infos.
///
/// # Errors
/// As for [`sinfo`].
pub fn sinfo_list(obj: &Bound<'_, PyAny>) -> Result<Vec<SInfo>> {
    if obj.is_none() {
        return Ok(Vec::new());
    }
    if obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>() {
        return obj.try_iter()?.map(|i| sinfo(&i?)).collect();
    }
    Ok(vec![sinfo(obj)?])
}
