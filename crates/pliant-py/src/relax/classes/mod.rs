//! The Python classes of graph-level expressions: `Expr` and its subclasses.

mod call_and_tuple_exprs;
mod expr;
mod leaf_exprs;
mod node_to_python;
pub mod struct_info;

pub use call_and_tuple_exprs::{Call, Tuple, TupleGetItem, callee_name};
pub use expr::{Expr, call_op};
pub use leaf_exprs::{
    Constant, DataTypeImm, DataflowVar, ExternFunc, GlobalVar, PrimValue, ShapeExpr, StringImm,
    Var, relax_const,
};
use pyo3::prelude::*;

use crate::relax::detached_expr::NodeRef;
pub use node_to_python::wrap;

/// Creates the base-class initializer that every expression class needs.
pub(super) fn init(node: NodeRef) -> PyClassInitializer<Expr> {
    PyClassInitializer::from(Expr { node })
}

/// Returns the node of a Python object whose class derives from `Expr`.
fn node_of<'a, T>(slf: &'a PyRef<'_, T>) -> &'a NodeRef
where
    T: pyo3::PyClass<BaseType = Expr>,
{
    &slf.as_super().node
}
