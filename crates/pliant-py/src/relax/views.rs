//! Looking at expressions and functions: texts, operands, blocks and bindings.

use std::sync::Arc;

use pliant_ir::print::{PrintOptions, expr_text, print_function};
use pliant_ir::relax::{self as ir, Callee, ExprData, Function as IrFunction};
use pliant_ir::{Attrs, BaseFunc};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::wrap;
use crate::relax::convert::{attr_object, attr_value};
use crate::relax::home::Home;
use crate::relax::infos::wrap_info;
use crate::relax::node::{CalleeNode, Node, NodeRef, Scalar};
use crate::relax::sinfo::SInfo;
use crate::te::prim_func::PrimFunc;

/// The text of an expression.
pub fn text(node: &NodeRef) -> String {
    write(node, 0)
}

fn write(node: &NodeRef, depth: u32) -> String {
    const MAX_DEPTH: u32 = 20;
    if depth > MAX_DEPTH {
        return "...".to_string();
    }
    let list = |nodes: &[NodeRef]| {
        let parts: Vec<String> = nodes.iter().map(|n| write(n, depth + 1)).collect();
        parts.join(", ")
    };
    match node.get() {
        Node::InFunc(home, e) => {
            let state = home.lock();
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
        Node::GetItem(tuple, i) => format!("{}[{i}]", write(tuple, depth + 1)),
        Node::Call(call) => {
            let callee = match &call.callee {
                CalleeNode::Op(op) => format!("R.{}", op.short_name()),
                CalleeNode::Expr(e) => write(e, depth + 1),
            };
            format!("{callee}({})", list(&call.args))
        }
    }
}

/// The name of a variable or function; the contents of a string.
pub fn var_name(node: &NodeRef) -> String {
    match node.get() {
        Node::Var(v) => v.0.name.to_string(),
        Node::Global(s) | Node::Extern(s) | Node::Str(s) => s.to_string(),
        Node::DType(d) => d.to_string(),
        Node::InFunc(home, e) => {
            let state = home.lock();
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

/// The operands: arguments of a call, fields of a tuple, the tuple of a field.
///
/// # Errors
/// Those of the interpreter.
pub fn operands<'py>(py: Python<'py>, node: &NodeRef) -> Result<Bound<'py, PyTuple>> {
    let nodes: Vec<NodeRef> = match node.get() {
        Node::InFunc(home, e) => {
            let state = home.lock();
            let list = state.func().map(|f| match f.expr(*e) {
                ExprData::Tuple(list) | ExprData::Call { args: list, .. } => f.list(*list).to_vec(),
                ExprData::TupleGetItem(tuple, _) => vec![*tuple],
                _ => Vec::new(),
            });
            list.unwrap_or_default().into_iter().map(|e| in_func(home, e)).collect()
        }
        _ => node.children().to_vec(),
    };
    let items: Result<Vec<_>> = nodes.into_iter().map(|n| wrap(py, n)).collect();
    Ok(PyTuple::new(py, items?)?)
}

/// An expression of a function as a node.
pub fn in_func(home: &Arc<Home>, e: ir::Expr) -> NodeRef {
    NodeRef::new(Node::InFunc(home.clone(), e))
}

/// What a call calls.
///
/// # Errors
/// Those of the interpreter.
pub fn callee<'py>(py: Python<'py>, node: &NodeRef) -> Result<Bound<'py, PyAny>> {
    let op = |op: pliant_ir::Op| Ok(Bound::new(py, crate::relax::op::get_op(op.0)?)?.into_any());
    match node.get() {
        Node::Call(call) => match &call.callee {
            CalleeNode::Op(o) => op(*o),
            CalleeNode::Expr(e) => wrap(py, e.clone()),
        },
        Node::InFunc(home, e) => {
            let callee = match home.lock().func().map(|f| f.expr(*e).clone()) {
                Some(ExprData::Call { callee, .. }) => callee,
                _ => return Err(Error::Type("the expression is no call".into())),
            };
            match callee {
                Callee::Op(o) => op(o),
                Callee::Expr(e) => wrap(py, in_func(home, e)),
            }
        }
        _ => Err(Error::Type("the expression is no call".into())),
    }
}

/// Calls `visit` with the attributes of a call.
///
/// # Errors
/// Those of `visit`.
pub fn with_attrs(node: &NodeRef, visit: impl FnOnce(&Attrs) -> Result<()>) -> Result<()> {
    match node.get() {
        Node::Call(call) => visit(&call.attrs),
        Node::InFunc(home, e) => {
            let attrs = {
                let state = home.lock();
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

/// The result types that a call gives.
pub fn ty_args(node: &NodeRef) -> Vec<SInfo> {
    match node.get() {
        Node::Call(call) => call.ty_args.clone(),
        Node::InFunc(home, e) => {
            let mut state = home.lock();
            let tys = match state.func().map(|f| (f, f.expr(*e))) {
                Some((f, ExprData::Call { ty_args, .. })) => f.type_list(*ty_args).to_vec(),
                _ => Vec::new(),
            };
            tys.into_iter().map(|t| state.sinfo_of(t)).collect()
        }
        _ => Vec::new(),
    }
}

// ---- functions ----

/// A graph function.
#[pyclass(frozen, module = "pliant.relax", weakref)]
pub struct Function {
    /// The function.
    pub func: Arc<IrFunction>,
    home: Arc<Home>,
    name: Option<Arc<str>>,
}

impl Function {
    /// A function as a Python object.
    pub fn wrap(func: Arc<IrFunction>) -> Function {
        let home = Home::done(func.clone());
        Function { func, home, name: None }
    }

    /// A function as a Python object that knows what it was called.
    pub fn named(func: Arc<IrFunction>, name: &str) -> Function {
        Function { name: Some(name.into()), ..Function::wrap(func) }
    }

    /// What the function is called: its global symbol, else the name that it was written or found under.
    pub fn name(&self) -> String {
        let symbol = self.func.attrs.get("global_symbol").and_then(|v| v.as_str());
        symbol.or(self.name.as_deref()).unwrap_or("main").to_string()
    }

    fn var(&self, v: ir::Var) -> Option<NodeRef> {
        self.func.find_var_expr(v).map(|e| in_func(&self.home, e))
    }
}

#[pymethods]
impl Function {
    /// The parameters.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        let mut list = Vec::new();
        for &v in self.func.params() {
            match self.var(v) {
                Some(node) => list.push(wrap(py, node)?),
                None => {
                    // A parameter that nothing reads has no expression of its own.
                    let info = self.home.lock().sinfo_of(self.func.var(v).ty);
                    let name = self.func.var(v).name.clone();
                    let data = crate::relax::node::FreeVarData {
                        name,
                        sinfo: Some(info),
                        dataflow: false,
                    };
                    let var = crate::relax::node::FreeVar(Arc::new(data));
                    list.push(wrap(py, NodeRef::new(Node::Var(var)))?);
                }
            }
        }
        Ok(list)
    }

    /// The body.
    #[getter]
    fn body(&self) -> SeqExpr {
        SeqExpr { home: self.home.clone(), func: self.func.clone(), seq: self.func.body() }
    }

    /// The type of the result.
    #[getter]
    fn ret_struct_info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let info = self.home.lock().sinfo_of(self.func.ret_ty());
        wrap_info(py, info)
    }

    /// The type of the function.
    #[getter]
    fn struct_info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap_info(py, signature_of(&self.func))
    }

    /// Whether calls have no effect but their result.
    #[getter]
    fn is_pure(&self) -> bool {
        self.func.is_pure()
    }

    /// The attributes.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        attrs_dict(py, &self.func.attrs)
    }

    /// The function with one more attribute, or with a dict of them.
    #[pyo3(signature = (attr_key_or_dict, attr_value=None))]
    fn with_attr(
        &self,
        attr_key_or_dict: &Bound<'_, PyAny>,
        attr_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<Function> {
        let mut func = (*self.func).clone();
        set_attrs(&mut func.attrs, attr_key_or_dict, attr_value)?;
        Ok(Function { name: self.name.clone(), ..Function::wrap(Arc::new(func)) })
    }

    /// What the function is called.
    #[getter]
    fn __name__(&self) -> String {
        self.name()
    }

    /// The function as script.
    #[pyo3(signature = (show_meta=false, name=None))]
    fn script(&self, show_meta: bool, name: Option<&str>) -> String {
        let options = PrintOptions { show_meta, ..PrintOptions::default() };
        let own = self.name();
        print_function(name.unwrap_or(&own), &self.func, pliant_ops::registry(), &options)
    }

    /// Prints the script, in colours on a terminal.
    #[pyo3(signature = (style=None, black_format=None))]
    fn show(&self, py: Python<'_>, style: Option<&str>, black_format: Option<bool>) -> Result<()> {
        let _ = black_format;
        crate::error::import(py, "pliant._show", "show")?
            .call1((self.script(false, None), style))?;
        Ok(())
    }

    fn __str__(&self) -> String {
        self.script(false, None)
    }

    fn __repr__(&self) -> String {
        self.script(false, None)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Function>().is_ok_and(|o| Arc::ptr_eq(&o.get().func, &self.func))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.func) as usize
    }
}

/// The type of a function, free-standing.
pub fn signature_of(func: &Arc<IrFunction>) -> SInfo {
    let home = Home::done(func.clone());
    let mut state = home.lock();
    let params = func.params().iter().map(|&p| state.sinfo_of(func.var(p).ty)).collect();
    let ret = state.sinfo_of(func.ret_ty());
    SInfo::Func(Some(params), Arc::new(ret), func.is_pure())
}

/// Attributes as a dict.
///
/// # Errors
/// Those of the interpreter.
pub fn attrs_dict<'py>(
    py: Python<'py>,
    attrs: &pliant_ir::attrs::FuncAttrs,
) -> Result<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (k, v) in attrs {
        dict.set_item(&**k, attr_object(py, v)?)?;
    }
    Ok(dict)
}

/// Sets one attribute, or those of a dict.
///
/// # Errors
/// `TypeError` for values that cannot be attributes.
pub fn set_attrs(
    attrs: &mut pliant_ir::attrs::FuncAttrs,
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
        return Err(Error::Type(format!("attribute '{key}' needs a value")));
    };
    attrs.insert(key.into(), attr_value(value)?);
    Ok(())
}

/// A function of either level as an object.
///
/// # Errors
/// Those of the interpreter.
pub fn wrap_func<'py>(py: Python<'py>, func: &BaseFunc, name: &str) -> Result<Bound<'py, PyAny>> {
    Ok(match func {
        BaseFunc::Relax(f) => Bound::new(py, Function::named(f.clone(), name))?.into_any(),
        BaseFunc::Prim(f) => Bound::new(py, PrimFunc::named(f.clone(), name))?.into_any(),
    })
}

/// A sequence of binding blocks and its result.
#[pyclass(frozen, module = "pliant.relax")]
pub struct SeqExpr {
    home: Arc<Home>,
    func: Arc<IrFunction>,
    seq: ir::Seq,
}

#[pymethods]
impl SeqExpr {
    /// The blocks.
    #[getter]
    fn blocks(&self) -> Vec<BindingBlock> {
        let blocks = &self.func.seq(self.seq).blocks;
        let one = |&block| BindingBlock { home: self.home.clone(), func: self.func.clone(), block };
        blocks.iter().map(one).collect()
    }

    /// The result.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, in_func(&self.home, self.func.seq(self.seq).result))
    }
}

/// A binding block.
#[pyclass(frozen, module = "pliant.relax")]
pub struct BindingBlock {
    home: Arc<Home>,
    func: Arc<IrFunction>,
    block: ir::Block,
}

#[pymethods]
impl BindingBlock {
    /// Whether it is a dataflow block.
    #[getter]
    fn is_dataflow(&self) -> bool {
        self.func.block(self.block).dataflow
    }

    /// The bindings.
    #[getter]
    fn bindings(&self) -> Vec<Binding> {
        let bindings = &self.func.block(self.block).bindings;
        let one = |&binding| Binding { home: self.home.clone(), func: self.func.clone(), binding };
        bindings.iter().map(one).collect()
    }
}

/// A binding: a variable and its value, or a `match_cast`.
#[pyclass(frozen, module = "pliant.relax")]
pub struct Binding {
    home: Arc<Home>,
    func: Arc<IrFunction>,
    binding: ir::Binding,
}

#[pymethods]
impl Binding {
    /// The variable.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let v = self.binding.var;
        if let Some(e) = self.func.find_var_expr(v) {
            return wrap(py, in_func(&self.home, e));
        }
        let info = self.home.lock().sinfo_of(self.func.var(v).ty);
        let data = self.func.var(v);
        let free = crate::relax::node::FreeVarData {
            name: data.name.clone(),
            sinfo: Some(info),
            dataflow: data.dataflow,
        };
        wrap(py, NodeRef::new(Node::Var(crate::relax::node::FreeVar(Arc::new(free)))))
    }

    /// The value.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, in_func(&self.home, self.binding.value))
    }

    /// The type that a `match_cast` checks; `None` for other bindings.
    #[getter]
    fn struct_info<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        let Some(ty) = self.binding.cast.expand() else { return Ok(None) };
        let info = self.home.lock().sinfo_of(ty);
        Ok(Some(wrap_info(py, info)?))
    }

    fn __repr__(&self) -> String {
        let name = &self.func.var(self.binding.var).name;
        format!("{name} = {}", expr_text(&self.func, self.binding.value, pliant_ops::registry()))
    }
}
