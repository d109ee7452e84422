//! `Function` in Python: a function of a module, a local function, or a function that Python code built.

use std::sync::{Arc, OnceLock};

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::attr_values::FuncAttrs;
use pliant_ir::print::{PrintOptions, print_function};
use pliant_ir::relax::{self as ir, ExprData, Function as IrFunction};
use pliant_ir::{AttrValue, BaseFunc};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::ir_module::IRModule;
use crate::relax::classes::struct_info::wrap_info;
use crate::relax::classes::{Expr, init, wrap};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::detached_functions::{FuncNode, FuncParts, GlobalTypes, SeqNode};
use crate::relax::expr_accessors::{attrs_dict, in_func, set_attrs, text};
use crate::relax::function_owner::{FuncOwner, abandoned};
use crate::relax::struct_info::SInfo;
use crate::relax::value_conversion::{required_operand, sinfo};
use crate::te::prim_func::PrimFunc;

/// A graph function.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Function {
    name: Option<Arc<str>>,
    /// The module from which the function was taken, if any.
    module: OnceLock<Py<IRModule>>,
}

/// Where the data of a Python `Function` is stored.
enum Location {
    /// The function is in the arenas of this [`FuncOwner`], under this id.
    In(Arc<FuncOwner>, ir::FuncId),
    /// No [`FuncOwner`] holds the function, because Python code built it from parts.
    Free,
}

impl Function {
    fn initializer(node: NodeRef, name: Option<Arc<str>>) -> PyClassInitializer<Function> {
        init(node).add_subclass(Function { name, module: OnceLock::new() })
    }

    /// Creates the Python object for a function with this name.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn named<'py>(
        py: Python<'py>,
        func: Arc<IrFunction>,
        name: &str,
    ) -> PyResult<Bound<'py, Function>> {
        let node = NodeRef::new(Node::Root(FuncOwner::of(func)));
        Bound::new(py, Self::initializer(node, Some(name.into())))
    }

    /// Wraps a function node as a Python object.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn of_node<'py>(
        py: Python<'py>,
        node: NodeRef,
        name: Option<Arc<str>>,
    ) -> PyResult<Bound<'py, Function>> {
        Bound::new(py, Self::initializer(node, name))
    }

    /// Returns the name under which the function was parsed or taken from a module; `None` if it has no such name.
    pub fn known_name(&self) -> Option<Arc<str>> {
        self.name.clone()
    }

    /// Records the module from which the function was taken. Later calls have no effect.
    pub fn set_module(&self, module: &Bound<'_, IRModule>) {
        let _ = self.module.set(module.clone().unbind());
    }

    /// Returns the module from which the function was taken, and the function's name in this module. `None` if one of them is
    /// unknown.
    fn module_and_name<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, IRModule>, String)> {
        Some((self.module(py)?, self.known_name()?.to_string()))
    }

    /// Returns the module from which the function was taken; `None` if it was not taken from a module.
    pub fn module<'py>(&self, py: Python<'py>) -> Option<Bound<'py, IRModule>> {
        self.module.get().map(|module| module.bind(py).clone())
    }
}

/// Returns where the function of a node is stored.
fn location(node: &NodeRef) -> Location {
    match node.get() {
        Node::Root(owner) => {
            let root = owner.lock().func().map(|f| f.root());
            root.map_or(Location::Free, |root| Location::In(owner.clone(), root))
        }
        Node::InFunc(owner, e) => {
            let id = owner.lock().func().and_then(|f| match f.expr(*e) {
                ExprData::Func(id) => Some(*id),
                _ => None,
            });
            id.map_or(Location::Free, |id| Location::In(owner.clone(), id))
        }
        _ => Location::Free,
    }
}

/// Returns the parts of a function that Python code built.
fn parts(node: &NodeRef) -> Result<&FuncParts> {
    match node.get() {
        Node::Func(func) => Ok(func.data()),
        _ => Err(abandoned()),
    }
}

/// Returns the parts of a local function.
fn local_parts(owner: &Arc<FuncOwner>, id: ir::FuncId) -> Result<FuncParts> {
    let mut state = owner.lock();
    let func = state.func().map(|f| {
        let data = f.func(id).clone();
        let params: Vec<_> = data.params.iter().map(|&p| f.var_expr(p)).collect();
        (data, params)
    });
    let Some((data, params)) = func else {
        return Err(abandoned());
    };
    let ret = state.sinfo_of(data.ret_ty);
    Ok(FuncParts {
        params: params.into_iter().map(|e| in_func(owner, e)).collect(),
        body: NodeRef::new(Node::Seq(SeqNode::In(owner.clone(), data.body))),
        ret: Some(ret),
        pure: Some(data.pure),
        attrs: data.attrs,
        private: false,
        replace_ret: false,
    })
}

/// Returns the owner of the function that this node represents. `what` names the node in errors,
/// such as "the argument func of relax.dpl.rewrite_call".
///
/// # Errors
/// `TypeError` if the node is not a function, and the errors of its conversion.
pub fn owner_of(node: &NodeRef, what: &str) -> Result<Arc<FuncOwner>> {
    match node.get() {
        Node::Root(owner) => Ok(owner.clone()),
        Node::Func(func) => func.owner(),
        Node::InFunc(owner, _) => {
            // A local function without captured variables can become a root function.
            let Location::In(_, id) = location(node) else {
                return Err(not_a_function(what));
            };
            FuncNode::new(local_parts(owner, id)?).owner()
        }
        _ => Err(not_a_function(what)),
    }
}

fn not_a_function(what: &str) -> Error {
    Error::Type(format!("{what} must be a function, but the expression is not a function"))
}

/// Converts a Python function to a function of the IR. `what` names the function in errors.
///
/// # Errors
/// As for [`owner_of`].
pub fn ir_function(node: &NodeRef, what: &str) -> Result<Arc<IrFunction>> {
    let owner = owner_of(node, what)?;
    let func = owner.lock().finished().cloned();
    func.ok_or_else(|| {
        Error::Value(
            "the function is not finished: call emit_func_output of its BlockBuilder first".into(),
        )
    })
}

/// Converts a Python function of a module to a function of the IR. `globals` returns the types of the module's functions, which
/// determine the types of calls by name.
///
/// # Errors
/// As for [`owner_of`].
pub fn ir_function_in(
    node: &NodeRef,
    globals: impl FnOnce() -> GlobalTypes,
) -> Result<Arc<IrFunction>> {
    if let Node::Func(func) = node.get() {
        func.owner_in_module(globals)?;
    }
    ir_function(node, "a function of a module")
}

/// Returns the types of a module's graph functions by name.
pub fn global_types(module: &pliant_ir::IRModule) -> GlobalTypes {
    module.relax_funcs().map(|(name, func)| (name.clone(), signature_of(func))).collect()
}

/// Returns the attributes of a function.
fn attrs_of(node: &NodeRef) -> FuncAttrs {
    match node.get() {
        Node::Root(owner) => owner.lock().func().map(|f| f.attrs.clone()).unwrap_or_default(),
        Node::Func(func) => func.data().attrs.clone(),
        _ => match location(node) {
            Location::In(owner, id) => {
                owner.lock().func().map(|f| f.func(id).attrs.clone()).unwrap_or_default()
            }
            Location::Free => FuncAttrs::default(),
        },
    }
}

fn symbol_of(node: &NodeRef) -> Option<String> {
    attrs_of(node).get(GLOBAL_SYMBOL).and_then(|v| v.as_str()).map(String::from)
}

/// Returns the same function with other attributes. `what` names the function in errors.
fn with_attrs(node: &NodeRef, attrs: FuncAttrs, what: &str) -> Result<NodeRef> {
    let made_public = attrs.contains_key(GLOBAL_SYMBOL) && symbol_of(node).is_none();
    match node.get() {
        Node::Func(func) => {
            let data = func.data().clone();
            let private = data.private && !made_public;
            let parts = FuncParts { attrs, private, ..data };
            Ok(NodeRef::new(Node::Func(FuncNode::new(parts))))
        }
        // A local function stays local, with its captured variables.
        Node::InFunc(..) => {
            let Location::In(owner, id) = location(node) else {
                return Err(not_a_function(what));
            };
            let parts = FuncParts { attrs, ..local_parts(&owner, id)? };
            Ok(NodeRef::new(Node::Func(FuncNode::new(parts))))
        }
        _ => {
            let mut func = (*ir_function(node, what)?).clone();
            func.attrs = attrs;
            func.private &= !made_public;
            Ok(NodeRef::new(Node::Root(owner_of(node, what)?.variant(Arc::new(func)))))
        }
    }
}

/// Adds `name` to the attributes as the `global_symbol` of a public function, unless they already
/// contain one.
pub fn with_symbol(mut attrs: FuncAttrs, name: Option<&str>) -> FuncAttrs {
    if let Some(name) = name.filter(|_| !attrs.contains_key(GLOBAL_SYMBOL)) {
        attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str(name));
    }
    attrs
}

#[pymethods]
impl Function {
    /// Creates a function with the given parameters and body. Without an explicit result type, the function has the type of its
    /// body as result type.
    #[new]
    #[pyo3(signature = (params, body, ret_struct_info=None, is_pure=true, attrs=None, span=None, *, private=false))]
    fn new(
        params: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        ret_struct_info: Option<&Bound<'_, PyAny>>,
        is_pure: Option<bool>,
        attrs: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
        private: bool,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let mut list = FuncAttrs::default();
        if let Some(attrs) = attrs.filter(|a| !a.is_none()) {
            set_attrs(&mut list, attrs, None)?;
        }
        let params: Result<Vec<NodeRef>> =
            params.try_iter()?.map(|p| required_operand(&p?)).collect();
        let parts = FuncParts {
            params: params?,
            body: required_operand(body)?,
            ret: ret_struct_info.filter(|r| !r.is_none()).map(sinfo).transpose()?,
            pure: is_pure,
            attrs: list,
            private,
            replace_ret: false,
        };
        let node = NodeRef::new(Node::Func(FuncNode::new(parts))).checked()?;
        Ok(Self::initializer(node, None))
    }

    /// Returns the function with parameters bound to constants. `binding_map` maps variables or
    /// names to tensors, arrays or constants.
    fn bind_params<'py>(
        slf: &Bound<'py, Self>,
        binding_map: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let bind = crate::error::import(slf.py(), "pliant.relax._bind", "bind_params")?;
        Ok(bind.call1((slf, binding_map, slf.get().module_and_name(slf.py())))?)
    }

    /// Returns the function with symbolic sizes replaced. `binding_map` maps variables or names to
    /// numbers or expressions over sizes.
    fn bind_symbolic_vars<'py>(
        slf: &Bound<'py, Self>,
        binding_map: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let bind = crate::error::import(slf.py(), "pliant.relax._bind", "bind_symbolic_vars")?;
        Ok(bind.call1((slf, binding_map, slf.get().module_and_name(slf.py())))?)
    }

    /// Returns the parameters of the function.
    #[getter]
    fn params<'py>(slf: PyRef<'py, Self>) -> Result<Vec<Bound<'py, PyAny>>> {
        let node = &slf.as_super().node;
        let nodes: Vec<NodeRef> = match location(node) {
            Location::In(owner, id) => {
                let state = owner.lock();
                let list = |f: &IrFunction| {
                    let params = f.func(id).params.iter();
                    params.map(|&p| in_func(&owner, f.var_expr(p))).collect()
                };
                state.func().map(list).unwrap_or_default()
            }
            Location::Free => parts(node)?.params.clone(),
        };
        nodes.into_iter().map(|n| wrap(slf.py(), n)).collect()
    }

    /// Returns the body of the function.
    #[getter]
    fn body<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let node = &slf.as_super().node;
        let body = match location(node) {
            Location::In(owner, id) => {
                let seq = owner.lock().func().map(|f| f.func(id).body);
                let seq = seq.ok_or_else(abandoned)?;
                NodeRef::new(Node::Seq(SeqNode::In(owner, seq)))
            }
            Location::Free => parts(node)?.body.clone(),
        };
        wrap(slf.py(), body)
    }

    /// Returns the result type of the function.
    #[getter]
    fn ret_struct_info<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let node = &slf.as_super().node;
        let (owner, id) = match location(node) {
            Location::In(owner, id) => (owner, Some(id)),
            Location::Free => match &parts(node)?.ret {
                Some(ret) => return wrap_info(slf.py(), ret.clone()),
                None => (owner_of(node, "the object on which ret_struct_info is read")?, None),
            },
        };
        let mut state = owner.lock();
        let ty = state.func().map(|f| f.func(id.unwrap_or(f.root())).ret_ty);
        let info = ty.map_or(SInfo::Object, |ty| state.sinfo_of(ty));
        drop(state);
        wrap_info(slf.py(), info)
    }

    /// Whether calls of the function have no side effects.
    #[getter]
    fn is_pure(slf: PyRef<'_, Self>) -> Result<bool> {
        let node = &slf.as_super().node;
        Ok(match location(node) {
            Location::In(owner, id) => owner.lock().func().is_some_and(|f| f.func(id).pure),
            Location::Free => match parts(node)?.pure {
                Some(pure) => pure,
                None => ir_function(node, "the object on which is_pure is read")?.is_pure(),
            },
        })
    }

    /// Whether the function is visible only in its module.
    #[getter]
    fn private(slf: PyRef<'_, Self>) -> bool {
        let node = &slf.as_super().node;
        match node.get() {
            Node::Root(owner) => owner.lock().func().is_some_and(|f| f.private),
            Node::Func(func) => func.data().private,
            _ => false,
        }
    }

    /// Returns the attributes of the function. A function that is not private has its name as the
    /// attribute `global_symbol`.
    #[getter]
    fn attrs<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let (py, node) = (slf.py(), &slf.as_super().node);
        let attrs = attrs_of(node);
        // A local function has no public name.
        let is_root = matches!(node.get(), Node::Root(_) | Node::Func(_));
        let name = slf.name.clone().filter(|_| is_root);
        let name = name.filter(|_| !Self::private(slf));
        attrs_dict(py, &with_symbol(attrs, name.as_deref()))
    }

    /// Returns the function with one more attribute, or with a dict of more attributes.
    #[pyo3(signature = (attr_key_or_dict, attr_value=None))]
    fn with_attr<'py>(
        slf: PyRef<'py, Self>,
        attr_key_or_dict: &Bound<'py, PyAny>,
        attr_value: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, Function>> {
        let node = &slf.as_super().node;
        let mut attrs = attrs_of(node);
        set_attrs(&mut attrs, attr_key_or_dict, attr_value)?;
        let node = with_attrs(node, attrs, "the object on which with_attr is called")?;
        Ok(Self::of_node(slf.py(), node, slf.name.clone())?)
    }

    /// Returns the function with the attributes of a dict added.
    fn with_attrs<'py>(
        slf: PyRef<'py, Self>,
        attr_map: &Bound<'py, PyDict>,
    ) -> Result<Bound<'py, Function>> {
        Self::with_attr(slf, attr_map.as_any(), None)
    }

    /// Returns the function without an attribute. Without `global_symbol`, it is equal to a
    /// function that was built without a name.
    fn without_attr<'py>(slf: PyRef<'py, Self>, attr_key: &str) -> Result<Bound<'py, Function>> {
        let node = &slf.as_super().node;
        let mut attrs = attrs_of(node);
        attrs.shift_remove(attr_key);
        let node = with_attrs(node, attrs, "the object on which without_attr is called")?;
        let name = slf.name.clone().filter(|_| attr_key != GLOBAL_SYMBOL);
        Ok(Self::of_node(slf.py(), node, name)?)
    }

    /// Returns the function with other parameters and another body. The declared result type is
    /// replaced if the type of the body contradicts it.
    fn _rebuilt<'py>(
        slf: PyRef<'py, Self>,
        params: &Bound<'py, PyAny>,
        body: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, Function>> {
        let py = slf.py();
        let node = slf.as_super().node.clone();
        let (name, private) = (
            slf.name.clone(),
            matches!(node.get(), Node::Root(owner) if owner.lock().func().is_some_and(|f| f.private)),
        );
        let (ret, pure) = match location(&node) {
            Location::In(owner, id) => {
                let mut state = owner.lock();
                let data = state.func().map(|f| (f.func(id).ret_ty, f.func(id).pure));
                let (ret, pure) = data.unzip();
                (ret.map(|ty| state.sinfo_of(ty)), pure)
            }
            Location::Free => (parts(&node)?.ret.clone(), parts(&node)?.pure),
        };
        let params: Result<Vec<NodeRef>> =
            params.try_iter()?.map(|p| required_operand(&p?)).collect();
        let data = FuncParts {
            params: params?,
            body: required_operand(body)?,
            ret,
            pure,
            attrs: attrs_of(&node),
            private,
            replace_ret: true,
        };
        Ok(Self::of_node(py, NodeRef::new(Node::Func(FuncNode::new(data))).checked()?, name)?)
    }

    /// Whether this is a whole function, not a local function inside another one.
    #[getter]
    fn _is_whole(slf: PyRef<'_, Self>) -> bool {
        matches!(slf.as_super().node.get(), Node::Root(_))
    }

    /// If Python code built the function from parts, returns the function after building its IR function. In it, calls by name get
    /// the types of the functions in the module of `builder`. Any other function is returned unchanged.
    #[pyo3(signature = (builder=None))]
    fn _finished<'py>(
        slf: Bound<'py, Self>,
        builder: Option<&Bound<'py, crate::relax::block_builder::BlockBuilder>>,
    ) -> Result<Bound<'py, Function>> {
        let node = slf.as_super().get().node.clone();
        let owner = match (node.get(), builder) {
            (Node::Root(_), _) => return Ok(slf),
            (Node::Func(func), Some(builder)) => {
                func.owner_in_module(|| builder.get().globals())?
            }
            _ => owner_of(&node, "the function to be finished")?,
        };
        let name = slf.get().name.clone();
        Ok(Self::of_node(slf.py(), NodeRef::new(Node::Root(owner)), name)?)
    }

    /// Copies the function with new variables and size variables.
    fn _copied<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, Function>> {
        let func = ir_function(&slf.as_super().node, "the function to be copied")?;
        let copy = Arc::new(ir::visit::copy_function(&func));
        let node = NodeRef::new(Node::Root(FuncOwner::of(copy)));
        Ok(Self::of_node(slf.py(), node, slf.name.clone())?)
    }

    /// Returns the name of the function: its global symbol, or else the name under which it was
    /// parsed or taken from a module.
    #[getter]
    fn __name__(slf: PyRef<'_, Self>) -> String {
        let symbol = symbol_of(&slf.as_super().node);
        symbol.or_else(|| slf.name.as_deref().map(String::from)).unwrap_or_else(|| "main".into())
    }

    /// Returns the function as script text.
    #[pyo3(signature = (show_meta=false, name=None))]
    fn script(slf: PyRef<'_, Self>, show_meta: bool, name: Option<&str>) -> Result<String> {
        let node = slf.as_super().node.clone();
        let own_name = Self::__name__(slf);
        let options = PrintOptions { show_meta, ..PrintOptions::default() };
        let func = ir_function(&node, "the object on which script is called")?;
        Ok(print_function(name.unwrap_or(&own_name), &func, pliant_ops::registry(), &options))
    }

    /// Prints the function as a script, with colours on a terminal.
    #[pyo3(signature = (style=None, black_format=None))]
    fn show(slf: PyRef<'_, Self>, style: Option<&str>, black_format: Option<bool>) -> Result<()> {
        let _ = black_format;
        let py = slf.py();
        let script = Self::script(slf, false, None)?;
        crate::error::import(py, "pliant._show_script", "show")?.call1((script, style))?;
        Ok(())
    }

    fn __str__(slf: PyRef<'_, Self>) -> String {
        Self::__repr__(slf)
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        let node = slf.as_super().node.clone();
        // A function that captures variables of another one cannot be printed as a script by itself.
        Self::script(slf, false, None).unwrap_or_else(|_| text(&node))
    }
}

/// Returns the type of a function, in a form that is independent of the function's arenas.
pub fn signature_of(func: &Arc<IrFunction>) -> SInfo {
    owner_signature(&FuncOwner::of(func.clone()))
}

/// Returns the type of the whole function that a [`FuncOwner`] holds.
pub fn owner_signature(owner: &Arc<FuncOwner>) -> SInfo {
    let mut state = owner.lock();
    let Some((params, ret, pure)) = state.func().map(|f| {
        let params: Vec<ir::Type> = f.params().iter().map(|&p| f.var(p).ty).collect();
        (params, f.ret_ty(), f.is_pure())
    }) else {
        return SInfo::Object;
    };
    let params = params.into_iter().map(|ty| state.sinfo_of(ty)).collect();
    let ret = state.sinfo_of(ret);
    SInfo::Func(Some(params), Arc::new(ret), pure)
}

/// Wraps a graph function or loop function as a Python object.
///
/// # Errors
/// An error of the Python interpreter.
pub fn wrap_func<'py>(py: Python<'py>, func: &BaseFunc, name: &str) -> Result<Bound<'py, PyAny>> {
    Ok(match func {
        BaseFunc::Relax(f) => Function::named(py, f.clone(), name)?.into_any(),
        BaseFunc::Prim(f) => Bound::new(py, PrimFunc::named(f.clone(), name))?.into_any(),
    })
}
