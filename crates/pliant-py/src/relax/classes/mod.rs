//! The Python classes of graph-level expressions: `Expr` and its subclasses.

mod calls;
mod expr;
mod leaves;
pub mod struct_info;
mod wrap;

pub use calls::{Call, Tuple, TupleGetItem, callee_name};
pub use expr::{Expr, call_op};
pub use leaves::{
    Constant, DataTypeImm, DataflowVar, ExternFunc, GlobalVar, PrimValue, ShapeExpr, StringImm,
    Var, relax_const,
};
use pyo3::prelude::*;

use crate::relax::node::NodeRef;
pub use wrap::wrap;

/// The base-class initialiser for every expression object.
pub(super) fn init(node: NodeRef) -> PyClassInitializer<Expr> {
    PyClassInitializer::from(Expr { node })
}

/// The node of a Python object whose class derives from `Expr`.
fn node_of<'a, T>(slf: &'a PyRef<'_, T>) -> &'a NodeRef
where
    T: pyo3::PyClass<BaseType = Expr>,
{
    &slf.as_super().node
}
