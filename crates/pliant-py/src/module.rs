//! `IRModule` in Python: named functions of both levels.

use std::sync::{Mutex, PoisonError};

use pliant_ir as ir;
use pliant_ir::print::{PrintOptions, highlight, print_module};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{Error, Result};
use crate::relax::builder::base_func;
use crate::relax::classes::{Expr, wrap};
use crate::relax::node::{Node, NodeRef};
use crate::relax::views::{attrs_dict, set_attrs, var_name, wrap_func};

/// A module: functions by global name. Functions are shared and never change; the table can.
#[pyclass(frozen, module = "pliant.ir", weakref, mapping)]
pub struct IRModule {
    module: Mutex<ir::IRModule>,
}

impl IRModule {
    /// A module as a Python object.
    pub fn wrap(module: ir::IRModule) -> IRModule {
        IRModule { module: Mutex::new(module) }
    }

    /// The module as it is now; functions are shared.
    pub fn snapshot(&self) -> ir::IRModule {
        self.module.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn edit<T>(&self, f: impl FnOnce(&mut ir::IRModule) -> T) -> T {
        f(&mut self.module.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The name of a function given as a string or a `GlobalVar`.
///
/// # Errors
/// `TypeError` for anything else.
pub fn name_of(obj: &Bound<'_, PyAny>) -> Result<String> {
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(s.to_string());
    }
    match obj.cast::<Expr>().map(|e| &e.get().node) {
        Ok(node) if matches!(node.get(), Node::Global(_)) => Ok(var_name(node)),
        Ok(node) if matches!(node.get(), Node::InFunc(..)) => Ok(var_name(node)),
        _ => Err(Error::Type(format!(
            "a function is named by a string or a GlobalVar, not {}",
            obj.repr()?
        ))),
    }
}

fn global_var<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
    wrap(py, NodeRef::new(Node::Global(name.into())))
}

#[pymethods]
impl IRModule {
    #[new]
    #[pyo3(signature = (functions=None, attrs=None))]
    fn new(
        functions: Option<&Bound<'_, PyDict>>,
        attrs: Option<&Bound<'_, PyAny>>,
    ) -> Result<Self> {
        let mut module = ir::IRModule::new();
        for (name, func) in functions.into_iter().flatten() {
            module.insert(name_of(&name)?, named_func(&func)?);
        }
        if let Some(attrs) = attrs.filter(|a| !a.is_none()) {
            set_attrs(&mut module.attrs, attrs, None)?;
        }
        Ok(IRModule::wrap(module))
    }

    /// A module of one function, which is called `main` unless it has a global symbol.
    #[staticmethod]
    fn from_expr(func: &Bound<'_, PyAny>) -> Result<Self> {
        let name: String = func.getattr("__name__")?.extract()?;
        let mut module = ir::IRModule::new();
        module.insert(name, named_func(func)?);
        Ok(IRModule::wrap(module))
    }

    fn __getitem__<'py>(&self, name: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let key = name_of(name)?;
        let module = self.snapshot();
        match module.get(&key) {
            Some(func) => wrap_func(name.py(), func, &key),
            None => Err(no_function(&module, &key)),
        }
    }

    fn __setitem__(&self, name: &Bound<'_, PyAny>, func: &Bound<'_, PyAny>) -> Result<()> {
        let (name, func) = (name_of(name)?, named_func(func)?);
        self.edit(|m| m.insert(name, func));
        Ok(())
    }

    fn __delitem__(&self, name: &Bound<'_, PyAny>) -> Result<()> {
        let key = name_of(name)?;
        match self.edit(|m| m.remove(&key)) {
            Some(_) => Ok(()),
            None => Err(no_function(&self.snapshot(), &key)),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> Result<bool> {
        let key = name_of(name)?;
        Ok(self.edit(|m| m.get(&key).is_some()))
    }

    fn __len__(&self) -> usize {
        self.edit(|m| m.functions.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let vars = self.get_global_vars(py)?;
        Ok(PyList::new(py, vars)?.as_any().try_iter()?.into_any())
    }

    /// The functions by their global variables.
    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, func) in &self.snapshot().functions {
            dict.set_item(global_var(py, name)?, wrap_func(py, func, name)?)?;
        }
        Ok(dict)
    }

    /// The functions with their global variables, in order.
    fn functions_items<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        self.snapshot()
            .functions
            .iter()
            .map(|(name, func)| Ok((global_var(py, name)?, wrap_func(py, func, name)?)))
            .collect()
    }

    /// The functions with their global variables, in order.
    fn items<'py>(&self, py: Python<'py>) -> Result<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        self.functions_items(py)
    }

    /// The global variable of that name.
    fn get_global_var<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        let module = self.snapshot();
        match module.get(name) {
            Some(_) => global_var(py, name),
            None => Err(no_function(&module, name)),
        }
    }

    /// The global variables, in order.
    fn get_global_vars<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.snapshot().functions.keys().map(|name| global_var(py, name)).collect()
    }

    /// Adds or replaces a function.
    fn update_func(&self, var: &Bound<'_, PyAny>, func: &Bound<'_, PyAny>) -> Result<()> {
        self.__setitem__(var, func)
    }

    /// Adds or replaces all functions of another module or a dict.
    fn update(&self, other: &Bound<'_, PyAny>) -> Result<()> {
        let other = match other.cast::<IRModule>() {
            Ok(m) => m.get().snapshot(),
            Err(_) => IRModule::new(Some(other.cast::<PyDict>()?), None)?.snapshot(),
        };
        self.edit(|m| {
            for (name, func) in other.functions {
                m.insert(name, func);
            }
        });
        Ok(())
    }

    /// The attributes.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        attrs_dict(py, &self.snapshot().attrs)
    }

    /// The module with one more attribute, or with a dict of them.
    #[pyo3(signature = (attr_key, attr_value=None))]
    fn with_attr(
        &self,
        attr_key: &Bound<'_, PyAny>,
        attr_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<IRModule> {
        let mut module = self.snapshot();
        set_attrs(&mut module.attrs, attr_key, attr_value)?;
        Ok(IRModule::wrap(module))
    }

    /// A module with the same functions.
    fn clone(&self) -> IRModule {
        IRModule::wrap(self.snapshot())
    }

    fn __copy__(&self) -> IRModule {
        self.clone()
    }

    /// The module as script. With `show_meta` large constants are written out.
    #[pyo3(signature = (*, name=None, show_meta=false))]
    fn script(&self, name: Option<&str>, show_meta: bool) -> String {
        let mut options = PrintOptions { show_meta, ..PrintOptions::default() };
        if let Some(name) = name {
            options.module_name = name.into();
        }
        print_module(&self.snapshot(), pliant_ops::registry(), &options)
    }

    /// Prints the script, in colours on a terminal.
    #[pyo3(signature = (style=None, black_format=None))]
    fn show(&self, py: Python<'_>, style: Option<&str>, black_format: Option<bool>) -> Result<()> {
        let _ = black_format;
        crate::error::import(py, "pliant._show", "show")?
            .call1((self.script(None, false), style))?;
        Ok(())
    }

    fn __str__(&self) -> String {
        self.script(None, false)
    }

    fn __repr__(&self) -> String {
        self.script(None, false)
    }
}

/// Script with the colours of a terminal.
#[pyfunction]
pub fn highlight_script(text: &str) -> String {
    highlight(text)
}

/// A function for a module's table, where public functions stay public.
fn named_func(obj: &Bound<'_, PyAny>) -> Result<ir::BaseFunc> {
    if let Ok(f) = obj.cast::<crate::te::prim_func::PrimFunc>() {
        return Ok(ir::BaseFunc::Prim(f.get().func.clone()));
    }
    base_func(obj)
}

fn no_function(module: &ir::IRModule, name: &str) -> Error {
    let known: Vec<&str> = module.functions.keys().map(|k| &**k).collect();
    Error::Key(format!("no function is called '{name}' (there are: {})", known.join(", ")))
}

/// The first difference between two modules or functions that is more than a name; `None` when there is none.
#[pyfunction]
pub fn structural_difference(
    lhs: &Bound<'_, PyAny>,
    rhs: &Bound<'_, PyAny>,
) -> Result<Option<String>> {
    let (a, b) = (Comparable::of(lhs)?, Comparable::of(rhs)?);
    let outcome = match (&a, &b) {
        (Comparable::Module(a), Comparable::Module(b)) => ir::equal::structural_equal(a, b),
        (Comparable::Func(ir::BaseFunc::Relax(a)), Comparable::Func(ir::BaseFunc::Relax(b))) => {
            ir::equal::equal_functions(a, b)
        }
        (Comparable::Func(ir::BaseFunc::Prim(a)), Comparable::Func(ir::BaseFunc::Prim(b))) => {
            ir::equal::equal_prim_funcs(a, b)
        }
        _ => {
            return Ok(Some(format!(
                "{} and {} are not of one kind",
                lhs.get_type().name()?,
                rhs.get_type().name()?
            )));
        }
    };
    Ok(outcome.err().map(|d| d.to_string()))
}

/// A hash that structurally equal modules and functions share.
#[pyfunction]
pub fn structural_hash(node: &Bound<'_, PyAny>) -> Result<u64> {
    Ok(match Comparable::of(node)? {
        Comparable::Module(m) => ir::equal::structural_hash(&m),
        Comparable::Func(ir::BaseFunc::Relax(f)) => ir::equal::hash_function(&f),
        Comparable::Func(ir::BaseFunc::Prim(f)) => ir::equal::hash_prim_func(&f),
    })
}

enum Comparable {
    Module(ir::IRModule),
    Func(ir::BaseFunc),
}

impl Comparable {
    fn of(obj: &Bound<'_, PyAny>) -> Result<Comparable> {
        match obj.cast::<IRModule>() {
            Ok(module) => Ok(Comparable::Module(module.get().snapshot())),
            Err(_) => named_func(obj).map(Comparable::Func),
        }
    }
}

/// What breaks the rules of the IR in a module, one line each; none for a well-formed one.
#[pyfunction]
pub fn verify_module(module: &Bound<'_, IRModule>) -> Result<Vec<String>> {
    let module = module.get().snapshot();
    let problems = ir::verify::verify_module(&module, pliant_ops::registry());
    Ok(problems.iter().map(ToString::to_string).collect())
}
