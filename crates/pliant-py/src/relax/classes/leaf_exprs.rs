//! Expressions without operands: variables, references to functions, constants, shapes and scalars.

use pliant_ir::DType;
use pliant_ir::relax::ExprData;
use pliant_ops::te;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};

use super::struct_info::dims_of;
use super::{Expr, init, node_of, wrap};
use crate::error::{Error, Result};
use crate::relax::detached_expr::{FreeVar, Node, NodeRef};
use crate::relax::function_owner::abandoned;
use crate::relax::struct_info::{SInfo, sinfo_of};
use crate::relax::value_conversion::{immutable_tensor, sinfo};
use crate::runtime::array_import::{parse_dtype, to_tensor};
use crate::runtime::ndarray::NDArray;
use crate::tir::prim_expr::tuple_of;
use crate::tir::scalar_expr_classes::wrap as wrap_prim;

/// A variable of the graph level (`relax.Var`). Only a variable with a `struct_info` can be a
/// function parameter.
#[pyclass(extends = Expr, subclass, frozen, module = "pliant.relax")]
pub struct Var;

#[pymethods]
impl Var {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None, span=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(init(free_var(name_hint, struct_info, false)?).add_subclass(Var))
    }

    /// Returns the name of the variable.
    #[getter]
    fn name_hint(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }

    /// Returns the name of the variable.
    #[getter]
    fn name(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }

    /// Returns the variable itself, which serves as its own identity (`vid` in TVM).
    #[getter]
    fn vid(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }
}

fn free_var(name: &str, info: Option<&Bound<'_, PyAny>>, dataflow: bool) -> Result<NodeRef> {
    let info = info.filter(|i| !i.is_none()).map(sinfo).transpose()?;
    Ok(NodeRef::new(Node::Var(FreeVar::new(name, info, dataflow))))
}

/// A variable that is local to its dataflow block.
#[pyclass(extends = Var, frozen, module = "pliant.relax")]
pub struct DataflowVar;

#[pymethods]
impl DataflowVar {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None, span=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(init(free_var(name_hint, struct_info, true)?)
            .add_subclass(Var)
            .add_subclass(DataflowVar))
    }
}

/// A reference to a function of the module by name.
#[pyclass(extends = Expr, frozen, module = "pliant.ir")]
pub struct GlobalVar;

#[pymethods]
impl GlobalVar {
    #[new]
    fn new(name_hint: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Global(name_hint.into()))).add_subclass(GlobalVar)
    }

    /// Returns the name of the function.
    #[getter]
    fn name_hint(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }

    /// Returns the name of the function.
    #[getter]
    fn name(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }
}

/// A reference to a packed function by its registered name.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct ExternFunc;

#[pymethods]
impl ExternFunc {
    #[new]
    fn new(global_symbol: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Extern(global_symbol.into()))).add_subclass(ExternFunc)
    }

    /// Returns the name under which the packed function is registered.
    #[getter]
    fn global_symbol(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }
}

/// A tensor constant (`relax.Constant`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Constant;

#[pymethods]
impl Constant {
    #[new]
    #[pyo3(signature = (data, struct_info=None, span=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = (struct_info, span);
        let tensor = immutable_tensor(to_tensor(data, None)?)?;
        Ok(init(NodeRef::new(Node::Constant(tensor))).add_subclass(Constant))
    }

    /// Returns the elements of the constant as an array.
    #[getter]
    fn data(slf: PyRef<'_, Self>) -> Result<NDArray> {
        match node_of(&slf).get() {
            Node::Constant(t) => Ok(NDArray::wrap(t.as_read_only())),
            Node::InFunc(owner, e) => {
                let state = owner.lock();
                match state.func().map(|f| (f, f.expr(*e))) {
                    Some((f, ExprData::Constant(c))) => {
                        Ok(NDArray::wrap(f.const_tensor(*c).as_read_only()))
                    }
                    _ => Err(abandoned()),
                }
            }
            _ => Err(Error::Value(
                "this constant has no data yet, because its data type is chosen by the call that uses it; pass a dtype to \
                 relax.const, or read the data after the call is emitted"
                    .into(),
            )),
        }
    }
}

/// Creates a constant from a number, a list or an array.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn relax_const<'py>(
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    use pyo3::types::{PyBool, PyInt};
    let dtype = match dtype.filter(|d| !d.is_none()) {
        Some(d) => Some(parse_dtype(d)?),
        None if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => {
            Some(DType::Int32)
        }
        None => None,
    };
    let tensor = match (value.extract::<f64>(), dtype) {
        // NumPy has no bfloat16. A plain number is converted without NumPy.
        (Ok(v), Some(DType::BFloat16)) => {
            crate::relax::value_conversion::float_tensor(v, DType::BFloat16)?
        }
        _ => immutable_tensor(to_tensor(value, dtype)?)?,
    };
    wrap(value.py(), NodeRef::new(Node::Constant(tensor)))
}

/// A shape expression (`relax.ShapeExpr`): a list of sizes.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct ShapeExpr;

#[pymethods]
impl ShapeExpr {
    #[new]
    fn new(values: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        Ok(init(NodeRef::new(Node::Shape(dims_of(values)?))).add_subclass(ShapeExpr))
    }

    /// Returns the dims of the shape.
    #[getter]
    fn values<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        match sinfo_of(node_of(&slf)) {
            Some(SInfo::Shape(Some(dims), _)) => tuple_of(slf.py(), &dims),
            _ => Ok(PyTuple::empty(slf.py())),
        }
    }
}

/// An integer or float scalar.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct PrimValue;

#[pymethods]
impl PrimValue {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let e = crate::tir::prim_expr::prim(value)?;
        let e = if value.is_instance_of::<PyFloat>() { te::cast(&e, DType::Float64) } else { e };
        Ok(init(NodeRef::new(Node::Prim(e))).add_subclass(PrimValue))
    }

    /// Returns the value of the scalar as an expression.
    #[getter]
    fn value<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let py = slf.py();
        match (node_of(&slf).get(), sinfo_of(node_of(&slf))) {
            (Node::Prim(e), _) => Ok(wrap_prim(py, e.clone())?),
            (_, Some(SInfo::Prim(_, Some(e)))) => Ok(wrap_prim(py, e)?),
            _ => Err(Error::Value(
                "the attribute 'value' is not available, because the value of this scalar expression is known only at run time"
                    .into(),
            )),
        }
    }
}

/// A string as an expression (`relax.StringImm`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct StringImm;

#[pymethods]
impl StringImm {
    #[new]
    fn new(value: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Str(value.into()))).add_subclass(StringImm)
    }

    /// Returns the string.
    #[getter]
    fn value(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }
}

/// A data type as an expression (`relax.DataTypeImm`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct DataTypeImm;

#[pymethods]
impl DataTypeImm {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        Ok(init(NodeRef::new(Node::DType(parse_dtype(value)?))).add_subclass(DataTypeImm))
    }

    /// Returns the name of the data type.
    #[getter]
    fn value(slf: PyRef<'_, Self>) -> String {
        crate::relax::expr_accessors::name_or_text(node_of(&slf))
    }
}
