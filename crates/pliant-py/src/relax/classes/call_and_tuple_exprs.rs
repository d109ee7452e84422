//! Expressions with operands: calls, tuples and field accesses.

use pliant_ir::relax::ExprData;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::struct_info::info_tuple;
use super::{Expr, init, node_of, wrap};
use crate::error::Result;
use crate::relax::detached_expr::{CallNode, CalleeNode, Node, NodeRef};
use crate::relax::value_conversion::{arg_list, attr_value, required_operand, sinfo_list};

/// A tuple expression (`relax.Tuple`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Tuple;

#[pymethods]
impl Tuple {
    #[new]
    #[pyo3(signature = (fields, span=None))]
    fn new(
        fields: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let fields: Result<Vec<NodeRef>> =
            fields.try_iter()?.map(|f| required_operand(&f?)).collect();
        Ok(init(NodeRef::new(Node::Tuple(fields?)).checked()?).add_subclass(Tuple))
    }

    /// Returns the fields of the tuple expression.
    #[getter]
    fn fields<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        crate::relax::expr_accessors::operands(slf.py(), node_of(&slf))
    }
}

/// A read of one field of a tuple (`relax.TupleGetItem`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct TupleGetItem;

#[pymethods]
impl TupleGetItem {
    #[new]
    #[pyo3(signature = (tuple_value, index, span=None))]
    fn new(
        tuple_value: &Bound<'_, PyAny>,
        index: u32,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(init(NodeRef::new(Node::GetItem(required_operand(tuple_value)?, index)).checked()?)
            .add_subclass(TupleGetItem))
    }

    /// Returns the tuple from which the field is read.
    #[getter]
    fn tuple_value<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(crate::relax::expr_accessors::operands(slf.py(), node_of(&slf))?.get_item(0)?)
    }

    /// Returns the index of the field that is read.
    #[getter]
    fn index(slf: PyRef<'_, Self>) -> u32 {
        match node_of(&slf).get() {
            Node::GetItem(_, index) => *index,
            Node::InFunc(owner, e) => match owner.lock().func().map(|f| f.expr(*e)) {
                Some(ExprData::TupleGetItem(_, index)) => *index,
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// A call of an operator or a function (`relax.Call`).
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Call;

#[pymethods]
impl Call {
    #[new]
    #[pyo3(signature = (op, args, attrs=None, sinfo_args=None, span=None))]
    fn new(
        op: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        attrs: Option<&Bound<'_, pyo3::types::PyDict>>,
        sinfo_args: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let callee = callee_of(op)?;
        let mut list = pliant_ir::Attrs::default();
        for (k, v) in attrs.into_iter().flatten() {
            list.set(&k.extract::<String>()?, attr_value(&v)?);
        }
        let ty_args = sinfo_args.map(sinfo_list).transpose()?.unwrap_or_default();
        let call = CallNode { callee, args: arg_list(args)?, attrs: list, ty_args };
        Ok(init(NodeRef::new(Node::Call(call)).checked()?).add_subclass(Call))
    }

    /// Copies the call with another callee and other operands.
    #[pyo3(signature = (op, args, sinfo_args=None))]
    fn _rebuilt<'py>(
        slf: PyRef<'py, Self>,
        op: &Bound<'py, PyAny>,
        args: Vec<Bound<'py, PyAny>>,
        sinfo_args: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let args: Result<Vec<NodeRef>> = args.iter().map(required_operand).collect();
        let node = node_of(&slf);
        let mut attrs = pliant_ir::Attrs::default();
        crate::relax::expr_accessors::with_attrs(node, |list| {
            attrs = list.clone();
            Ok(())
        })?;
        let ty_args = match sinfo_args {
            Some(list) => sinfo_list(list)?,
            None => crate::relax::expr_accessors::ty_args(node),
        };
        let call = CallNode { callee: callee_of(op)?, args: args?, attrs, ty_args };
        wrap(slf.py(), NodeRef::new(Node::Call(call)))
    }

    /// Returns the called operator or function.
    #[getter]
    fn op<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        crate::relax::expr_accessors::callee(slf.py(), node_of(&slf))
    }

    /// Returns the operands of the call.
    #[getter]
    fn args<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        crate::relax::expr_accessors::operands(slf.py(), node_of(&slf))
    }

    /// Returns the attributes of the call.
    #[getter]
    fn attrs<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let mut call_attrs = pliant_ir::Attrs::default();
        crate::relax::expr_accessors::with_attrs(node_of(&slf), |attrs| {
            call_attrs = attrs.clone();
            Ok(())
        })?;
        crate::relax::expr_accessors::attrs_dict(slf.py(), call_attrs.0.iter().map(|(k, v)| (k, v)))
    }

    /// Returns the result types that were passed to the call explicitly; empty if there are none.
    #[getter]
    fn sinfo_args<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        info_tuple(slf.py(), &crate::relax::expr_accessors::ty_args(node_of(&slf)))
    }
}

fn callee_of(op: &Bound<'_, PyAny>) -> Result<CalleeNode> {
    Ok(match op.cast::<crate::relax::operators::OpFunction>() {
        Ok(op) => CalleeNode::Op(op.get().op),
        Err(_) => CalleeNode::Expr(required_operand(op)?),
    })
}

/// Converts the callee argument of a packed call: a global function, a packed function, or the name
/// of a packed function.
///
/// # Errors
/// `TypeError` for any other object.
pub fn callee_name(obj: &Bound<'_, PyAny>) -> Result<NodeRef> {
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(NodeRef::new(Node::Extern(s.to_string().into())));
    }
    required_operand(obj)
}
