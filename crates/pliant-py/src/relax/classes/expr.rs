//! `Expr`: the base class of graph-level expressions, and Python's operators on them.

use pliant_ir::Op;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::struct_info::wrap_info;
use super::{ShapeExpr, Tuple, wrap};
use crate::error::{Error, Result};
use crate::relax::detached_expr::{CallNode, CalleeNode, Node, NodeRef};
use crate::relax::operator_call_check::check_call;
use crate::relax::struct_info::{SInfo, sinfo_of};
use crate::relax::value_conversion::{attr_value, operand, required_operand};

/// An expression of the graph level.
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct Expr {
    /// The expression in the representation of this crate.
    pub node: NodeRef,
}

fn binary<'py>(
    op: &'static str,
    a: &NodeRef,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> Result<Bound<'py, PyAny>> {
    let py = other.py();
    let b = match operand(other) {
        Ok(Some(b)) => b,
        _ => return Ok(py.NotImplemented().into_bound(py)),
    };
    let args = if reflected { vec![b, a.clone()] } else { vec![a.clone(), b] };
    checked(py, call_op(op, args))
}

/// Checks the arguments of a call of a built-in operator and wraps the call.
fn checked(py: Python<'_>, call: NodeRef) -> Result<Bound<'_, PyAny>> {
    if let Node::Call(call) = call.get() {
        check_call(call)?;
    }
    wrap(py, call)
}

/// Creates a call of a library operator, given by its full name.
pub fn call_op(op: &'static str, args: Vec<NodeRef>) -> NodeRef {
    NodeRef::new(Node::Call(CallNode {
        callee: CalleeNode::Op(Op::new(op)),
        args,
        attrs: Default::default(),
        ty_args: Vec::new(),
    }))
}

/// Returns the fields of a tuple expression or the sizes of a shape expression; `None` for other
/// expressions.
fn literal_parts<'py>(expr: &Bound<'py, Expr>) -> Result<Option<Bound<'py, PyAny>>> {
    if expr.is_instance_of::<Tuple>() {
        return Ok(Some(expr.getattr("fields")?));
    }
    if expr.is_instance_of::<ShapeExpr>() {
        return Ok(Some(expr.getattr("values")?));
    }
    Ok(None)
}

#[pymethods]
impl Expr {
    /// Always `None`: Python objects do not record source locations. Constructors accept the argument for compatibility
    /// with TVM.
    #[getter]
    fn span(&self) -> Option<Py<PyAny>> {
        None
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Expressions are immutable, so the copy is the expression itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.add", &self.node, other, false)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.add", &self.node, other, true)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.subtract", &self.node, other, false)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.subtract", &self.node, other, true)
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.multiply", &self.node, other, false)
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.multiply", &self.node, other, true)
    }

    fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.divide", &self.node, other, false)
    }

    fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.divide", &self.node, other, true)
    }

    fn __floordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.floor_divide", &self.node, other, false)
    }

    fn __rfloordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.floor_divide", &self.node, other, true)
    }

    fn __mod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.mod", &self.node, other, false)
    }

    fn __rmod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.mod", &self.node, other, true)
    }

    fn __pow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = modulo;
        binary("relax.power", &self.node, other, false)
    }

    fn __rpow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = modulo;
        binary("relax.power", &self.node, other, true)
    }

    fn __matmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.matmul", &self.node, other, false)
    }

    fn __rmatmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.matmul", &self.node, other, true)
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        checked(py, call_op("relax.negative", vec![self.node.clone()]))
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        checked(py, call_op("relax.abs", vec![self.node.clone()]))
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> Result<Bound<'py, PyAny>> {
        let py = other.py();
        let name = match op {
            CompareOp::Lt => "relax.less",
            CompareOp::Le => "relax.less_equal",
            CompareOp::Gt => "relax.greater",
            CompareOp::Ge => "relax.greater_equal",
            CompareOp::Eq | CompareOp::Ne => {
                let same = other.cast::<Expr>().is_ok_and(|o| self.node.same(&o.get().node));
                let result = same == matches!(op, CompareOp::Eq);
                return Ok(pyo3::types::PyBool::new(py, result).to_owned().into_any());
            }
        };
        binary(name, &self.node, other, false)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        self.node.key().hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a field of a tuple. If this is a tuple expression, returns the expression of the field itself, not a
    /// `TupleGetItem`.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let (py, this) = (index.py(), slf.get());
        if let Some(parts) = literal_parts(slf)? {
            return Ok(parts.get_item(index)?);
        }
        let i: u32 = index.extract().map_err(|_| {
            Error::Type("the index of a tuple field must be a non-negative int".into())
        })?;
        match sinfo_of(&this.node) {
            Some(SInfo::Tuple(fields)) if i as usize >= fields.len() => {
                return Err(Error::Index(format!(
                    "the tuple has {} fields, so index {i} is out of range",
                    fields.len()
                )));
            }
            Some(SInfo::Tensor(..) | SInfo::Prim(..)) => {
                return Err(Error::Type(crate::relax::lower_expr::NOT_A_TUPLE.into()));
            }
            _ => {}
        }
        wrap(py, NodeRef::new(Node::GetItem(this.node.clone(), i)))
    }

    fn __len__(slf: &Bound<'_, Self>) -> Result<usize> {
        if let Some(parts) = literal_parts(slf)? {
            return Ok(parts.len()?);
        }
        match sinfo_of(&slf.get().node) {
            Some(SInfo::Tuple(fields)) => Ok(fields.len()),
            _ => Err(Error::Type(
                "len() requires a tuple of known length, but the expression is not a tuple".into(),
            )),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(parts) = literal_parts(slf)? {
            return Ok(parts.try_iter()?.into_any());
        }
        let fields: Result<Vec<_>> = (0..Self::__len__(slf)? as u32)
            .map(|i| wrap(py, NodeRef::new(Node::GetItem(this.node.clone(), i))))
            .collect();
        Ok(PyTuple::new(py, fields?)?.as_any().try_iter()?.into_any())
    }

    /// The truth value in Python. Functions, tuples and shapes are true. For tensors and scalars,
    /// whose values are unknown, this raises an exception.
    fn __bool__(&self) -> Result<bool> {
        let unknown_truth = match self.node.get() {
            Node::Scalar(_) | Node::Prim(_) | Node::Constant(_) => true,
            Node::Var(_) | Node::InFunc(..) | Node::GetItem(..) | Node::Call(_) => {
                matches!(
                    sinfo_of(&self.node),
                    None | Some(SInfo::Object | SInfo::Tensor(..) | SInfo::Prim(..))
                )
            }
            _ => false,
        };
        if !unknown_truth {
            return Ok(true);
        }
        Err(Error::Type(
            "the truth value of a tensor expression is known only at run time; use R.where or an If"
                .into(),
        ))
    }

    /// Creates a call of this function value.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        let list: Result<Vec<NodeRef>> = args.iter().map(|a| required_operand(&a)).collect();
        let call = CallNode {
            callee: CalleeNode::Expr(self.node.clone()),
            args: list?,
            attrs: Default::default(),
            ty_args: Vec::new(),
        };
        wrap(args.py(), NodeRef::new(Node::Call(call)))
    }

    fn __repr__(&self) -> String {
        crate::relax::expr_accessors::text(&self.node)
    }

    /// Returns the type of the expression.
    #[getter]
    fn struct_info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match sinfo_of(&self.node) {
            Some(info) => wrap_info(py, info),
            None => Err(Error::Value(
                "the struct info of the expression is not known yet: emit the expression first"
                    .into(),
            )),
        }
    }

    /// Returns the type of the expression, or `None` if it is not known yet.
    #[getter]
    fn struct_info_<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        sinfo_of(&self.node).map(|info| wrap_info(py, info)).transpose()
    }

    /// Returns the type of the expression. Later TVM versions use this name for `struct_info`.
    #[getter]
    fn ty<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.struct_info(py)
    }

    /// Whether both Python objects represent the same expression.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Expr>().is_ok_and(|o| self.node.same(&o.get().node))
    }

    /// Creates a call that converts the elements to another data type.
    fn astype<'py>(&self, dtype: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let attrs = pliant_ir::Attrs::default().with("dtype", attr_value(dtype)?);
        let call = CallNode {
            callee: CalleeNode::Op(Op::new("relax.astype")),
            args: vec![self.node.clone()],
            attrs,
            ty_args: Vec::new(),
        };
        checked(dtype.py(), NodeRef::new(Node::Call(call)))
    }
}
