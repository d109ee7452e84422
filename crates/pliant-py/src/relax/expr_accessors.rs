//! Functions that read the text, operands and attributes of an expression for its Python class.

use std::sync::Arc;

use pliant_ir::print::expr_text;
use pliant_ir::relax::{self as ir, Callee, ExprData};
use pliant_ir::{AttrValue, Attrs, OpRegistry};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::{Error, Result};
use crate::relax::classes::wrap;
use crate::relax::detached_expr::{CalleeNode, Node, NodeRef, Scalar};
use crate::relax::detached_functions::{BindingRef, SeqNode};
use crate::relax::function_owner::FuncOwner;
use crate::relax::struct_info::SInfo;
use crate::relax::value_conversion::{attr_object, attr_value};

/// Returns the text of an expression in script syntax.
pub fn text(node: &NodeRef) -> String {
    text_at_depth(node, 0)
}

fn text_at_depth(node: &NodeRef, depth: u32) -> String {
    const MAX_DEPTH: u32 = 20;
    if depth > MAX_DEPTH {
        return "...".to_string();
    }
    let list = |nodes: &[NodeRef]| {
        let parts: Vec<String> = nodes.iter().map(|n| text_at_depth(n, depth + 1)).collect();
        parts.join(", ")
    };
    match node.get() {
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            state.func().map_or_else(String::new, |f| expr_text(f, *e, pliant_ops::registry()))
        }
        Node::Var(v) => v.0.name.to_string(),
        Node::Global(name) => format!("cls.{name}"),
        Node::Extern(name) => format!("R.ExternFunc({name:?})"),
        Node::Constant(t) => format!("R.const({t:?})"),
        Node::Scalar(Scalar::Int(v)) => v.to_string(),
        Node::Scalar(Scalar::Float(v)) => format!("{v:?}"),
        Node::Scalar(Scalar::Bool(b)) => if *b { "True" } else { "False" }.to_string(),
        Node::Shape(dims) => {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            format!("R.shape([{}])", dims.join(", "))
        }
        Node::Prim(e) => format!("R.prim_value({e})"),
        Node::Str(s) => format!("R.str({s:?})"),
        Node::DType(d) => format!("R.dtype(\"{d}\")"),
        Node::Tuple(fields) => {
            format!("({}{})", list(fields), if fields.len() == 1 { "," } else { "" })
        }
        Node::GetItem(tuple, i) => format!("{}[{i}]", text_at_depth(tuple, depth + 1)),
        Node::Call(call) => {
            let callee = match &call.callee {
                CalleeNode::Op(op) => format!("R.{}", op.short_name()),
                CalleeNode::Expr(e) => text_at_depth(e, depth + 1),
            };
            format!("{callee}({})", list(&call.args))
        }
        Node::If(choice) => {
            let [cond, a, b] = choice.parts();
            let depth = depth + 1;
            format!(
                "if {}: {} else: {}",
                text_at_depth(&cond, depth),
                text_at_depth(&a, depth),
                text_at_depth(&b, depth)
            )
        }
        Node::Seq(seq) => seq_text(seq, depth + 1),
        Node::Func(func) => {
            let data = func.data();
            format!("lambda {}: {}", list(&data.params), text_at_depth(&data.body, depth + 1))
        }
        Node::Root(owner) => {
            let state = owner.lock();
            let names = state.func().map(|f| {
                let names: Vec<&str> = f.params().iter().map(|&p| &*f.var(p).name).collect();
                names.join(", ")
            });
            format!("lambda {}: ...", names.unwrap_or_default())
        }
    }
}

fn seq_text(seq: &SeqNode, depth: u32) -> String {
    const MAX_BINDINGS: usize = 20;
    let mut parts = Vec::new();
    for binding in seq.blocks().iter().flat_map(|b| b.bindings()) {
        if parts.len() == MAX_BINDINGS {
            parts.push("...".to_string());
            break;
        }
        parts.push(binding_text(&binding, depth));
    }
    if let Some(body) = seq.body() {
        parts.push(text_at_depth(&body, depth));
    }
    parts.join("; ")
}

/// Returns the text of a binding in script syntax.
pub fn binding_text(binding: &BindingRef, depth: u32) -> String {
    let name = binding.var().map(|v| name_or_text(&v)).unwrap_or_default();
    let value = binding.value().map(|v| text_at_depth(&v, depth)).unwrap_or_default();
    match binding.cast() {
        Some(info) => format!("{name} = R.match_cast({value}, {info})"),
        None => format!("{name} = {value}"),
    }
}

/// Returns the name of a variable or function, or the contents of a string.
pub fn name_or_text(node: &NodeRef) -> String {
    match node.get() {
        Node::Var(v) => v.0.name.to_string(),
        Node::Global(s) | Node::Extern(s) | Node::Str(s) => s.to_string(),
        Node::DType(d) => d.to_string(),
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            let Some(f) = state.func() else { return String::new() };
            match f.expr(*e) {
                ExprData::Var(v) => f.var(*v).name.to_string(),
                ExprData::Global(s) | ExprData::Extern(s) | ExprData::Str(s) => {
                    f.str(*s).to_string()
                }
                ExprData::DType(d) => d.to_string(),
                _ => String::new(),
            }
        }
        _ => String::new(),
    }
}

/// Returns the operands of an expression: the arguments of a call, the fields of a tuple, or the
/// tuple from which a field is read.
///
/// # Errors
/// An error of the Python interpreter.
pub fn operands<'py>(py: Python<'py>, node: &NodeRef) -> Result<Bound<'py, PyTuple>> {
    let nodes: Vec<NodeRef> = match node.get() {
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            let list = state.func().map(|f| match f.expr(*e) {
                ExprData::Tuple(list) | ExprData::Call { args: list, .. } => f.list(*list).to_vec(),
                ExprData::TupleGetItem(tuple, _) => vec![*tuple],
                _ => Vec::new(),
            });
            list.unwrap_or_default().into_iter().map(|e| in_func(owner, e)).collect()
        }
        _ => node.children().to_vec(),
    };
    let items: Result<Vec<_>> = nodes.into_iter().map(|n| wrap(py, n)).collect();
    Ok(PyTuple::new(py, items?)?)
}

/// Creates a node for an expression of the function that `owner` holds.
pub fn in_func(owner: &Arc<FuncOwner>, e: ir::Expr) -> NodeRef {
    NodeRef::new(Node::InFunc(owner.clone(), e))
}

/// Returns the callee of a call as a Python object.
///
/// # Errors
/// An error of the Python interpreter.
pub fn callee<'py>(py: Python<'py>, node: &NodeRef) -> Result<Bound<'py, PyAny>> {
    let op = |op: pliant_ir::Op| {
        Ok(Bound::new(py, crate::relax::operators::get_op(op.name())?)?.into_any())
    };
    match node.get() {
        Node::Call(call) => match &call.callee {
            CalleeNode::Op(o) => op(*o),
            CalleeNode::Expr(e) => wrap(py, e.clone()),
        },
        Node::InFunc(owner, e) => {
            let callee = match owner.lock().func().map(|f| f.expr(*e).clone()) {
                Some(ExprData::Call { callee, .. }) => callee,
                _ => return Err(Error::Type(
                    "only a call has an operator and arguments, but this expression is not a call"
                        .into(),
                )),
            };
            match callee {
                Callee::Op(o) => op(o),
                Callee::Expr(e) => wrap(py, in_func(owner, e)),
            }
        }
        _ => Err(Error::Type(
            "only a call has an operator and arguments, but this expression is not a call".into(),
        )),
    }
}

/// Calls `visit` with the attributes of a call expression.
///
/// # Errors
/// The error of `visit`.
pub fn with_attrs(node: &NodeRef, visit: impl FnOnce(&Attrs) -> Result<()>) -> Result<()> {
    match node.get() {
        // The attributes of a call that belongs to no function do not contain the defaults yet.
        Node::Call(call) => match &call.callee {
            CalleeNode::Op(op) => {
                let attrs = call.attrs.clone();
                visit(&match pliant_ops::registry().signature(*op) {
                    Some(signature) => signature.complete(attrs),
                    None => attrs,
                })
            }
            CalleeNode::Expr(_) => visit(&call.attrs),
        },
        Node::InFunc(owner, e) => {
            let attrs = {
                let state = owner.lock();
                match state.func().map(|f| (f, f.expr(*e))) {
                    Some((f, ExprData::Call { attrs, .. })) => f.call_attrs(*attrs).clone(),
                    _ => Attrs::default(),
                }
            };
            visit(&attrs)
        }
        _ => Ok(()),
    }
}

/// Returns the explicit result types of a call (`sinfo_args` in Python).
pub fn ty_args(node: &NodeRef) -> Vec<SInfo> {
    match node.get() {
        Node::Call(call) => call.ty_args.clone(),
        Node::InFunc(owner, e) => {
            let mut state = owner.lock();
            let tys = match state.func().map(|f| (f, f.expr(*e))) {
                Some((f, ExprData::Call { ty_args, .. })) => f.type_list(*ty_args).to_vec(),
                _ => Vec::new(),
            };
            tys.into_iter().map(|t| state.sinfo_of(t)).collect()
        }
        _ => Vec::new(),
    }
}

/// Converts attributes to a Python dict whose items can also be read as Python attributes.
///
/// # Errors
/// An error of the Python interpreter.
pub fn attrs_dict<'a, 'py>(
    py: Python<'py>,
    attrs: impl IntoIterator<Item = (&'a Arc<str>, &'a AttrValue)>,
) -> Result<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let dict = PyDict::new(py);
    for (k, v) in attrs {
        dict.set_item(&**k, attr_object(py, v)?)?;
    }
    Ok(CLASS.import(py, "pliant.ir.attrs", "Attrs")?.call1((dict,))?)
}

/// Sets the attribute `key_or_dict` to `value`, or sets all attributes of a dict.
///
/// # Errors
/// `TypeError` for a value that cannot be an attribute.
pub fn set_attrs(
    attrs: &mut pliant_ir::attr_values::FuncAttrs,
    key_or_dict: &Bound<'_, PyAny>,
    value: Option<&Bound<'_, PyAny>>,
) -> Result<()> {
    if let Ok(dict) = key_or_dict.cast::<PyDict>() {
        for (k, v) in dict {
            attrs.insert(k.extract::<String>()?.into(), attr_value(&v)?);
        }
        return Ok(());
    }
    let key: String = key_or_dict.extract()?;
    let Some(value) = value else {
        return Err(Error::Type(format!(
            "with_attr: attribute '{key}' needs a value as second argument"
        )));
    };
    attrs.insert(key.into(), attr_value(value)?);
    Ok(())
}
