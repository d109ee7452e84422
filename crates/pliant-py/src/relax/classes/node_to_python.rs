//! [`wrap`]: converts a node to a Python object of the matching class.

use pliant_ir::relax::ExprData;
use pyo3::prelude::*;

use crate::error::Result;
use crate::relax::binding_blocks::{If, SeqExpr};
use crate::relax::classes::{
    Call, Constant, DataTypeImm, DataflowVar, ExternFunc, GlobalVar, PrimValue, ShapeExpr,
    StringImm, Tuple, TupleGetItem, Var, init,
};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::function::Function;

/// The Python class of an expression.
#[derive(Clone, Copy)]
enum Class {
    Var,
    DataflowVar,
    Global,
    Extern,
    Constant,
    Shape,
    Prim,
    Str,
    DType,
    Tuple,
    GetItem,
    Call,
    If,
    Func,
    Seq,
}

fn class_of(node: &NodeRef) -> Class {
    match node.get() {
        Node::Var(v) if v.0.dataflow => Class::DataflowVar,
        Node::Var(_) => Class::Var,
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            // An abandoned function has no expressions left. During its construction, only its variables were passed to
            // Python code.
            state.func().map_or(Class::Var, |f| match f.expr(*e) {
                ExprData::Var(v) if f.var(*v).dataflow => Class::DataflowVar,
                ExprData::Var(_) => Class::Var,
                ExprData::Global(_) => Class::Global,
                ExprData::Extern(_) => Class::Extern,
                ExprData::Constant(_) => Class::Constant,
                ExprData::Shape(_) => Class::Shape,
                ExprData::Int(..) | ExprData::Float(..) => Class::Prim,
                ExprData::Str(_) => Class::Str,
                ExprData::DType(_) => Class::DType,
                ExprData::Tuple(_) => Class::Tuple,
                ExprData::TupleGetItem(..) => Class::GetItem,
                ExprData::Call { .. } => Class::Call,
                ExprData::If { .. } => Class::If,
                ExprData::Func(_) => Class::Func,
            })
        }
        Node::Global(_) => Class::Global,
        Node::Extern(_) => Class::Extern,
        Node::Constant(_) | Node::Scalar(_) => Class::Constant,
        Node::Shape(_) => Class::Shape,
        Node::Prim(_) => Class::Prim,
        Node::Str(_) => Class::Str,
        Node::DType(_) => Class::DType,
        Node::Tuple(_) => Class::Tuple,
        Node::GetItem(..) => Class::GetItem,
        Node::Call(_) => Class::Call,
        Node::If(_) => Class::If,
        Node::Seq(_) => Class::Seq,
        Node::Func(_) | Node::Root(_) => Class::Func,
    }
}

/// Wraps a node as a Python object of the matching class.
///
/// # Errors
/// If tuples are nested too deeply, or an error of the Python interpreter.
pub fn wrap(py: Python<'_>, node: NodeRef) -> Result<Bound<'_, PyAny>> {
    let node = node.checked()?;
    macro_rules! make {
        ($class:ident) => {
            Bound::new(py, init(node).add_subclass($class))?.into_any()
        };
    }
    Ok(match class_of(&node) {
        Class::Var => make!(Var),
        Class::DataflowVar => {
            Bound::new(py, init(node).add_subclass(Var).add_subclass(DataflowVar))?.into_any()
        }
        Class::Global => make!(GlobalVar),
        Class::Extern => make!(ExternFunc),
        Class::Constant => make!(Constant),
        Class::Shape => make!(ShapeExpr),
        Class::Prim => make!(PrimValue),
        Class::Str => make!(StringImm),
        Class::DType => make!(DataTypeImm),
        Class::Tuple => make!(Tuple),
        Class::GetItem => make!(TupleGetItem),
        Class::Call => make!(Call),
        Class::If => make!(If),
        Class::Seq => make!(SeqExpr),
        Class::Func => Function::of_node(py, node, None)?.into_any(),
    })
}
