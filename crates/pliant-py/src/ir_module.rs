//! `IRModule` in Python: named graph functions and loop functions.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir as ir;
use pliant_ir::print::{PrintOptions, highlight, print_module};
use pliant_opt::canonicalize::normalize_global_var::rename_functions;
use pliant_pass::PassContext;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::relax::block_builder::base_func;
use crate::relax::classes::{Expr, wrap};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::detached_functions::GlobalTypes;
use crate::relax::expr_accessors::{attrs_dict, name_or_text, set_attrs};
use crate::relax::function::{Function, global_types, signature_of, wrap_func};
use crate::relax::function_build_order::build_order;
use crate::relax::function_owner::FuncOwner;
use crate::relax::keep_functions_alive::RetainedOwners;
use crate::relax::normal_form::is_in_normal_form;
use crate::relax::value_conversion::attr_object;
use crate::tir::prim_func_objects::PrimFuncObjects;
use crate::tvm_compatibility;

/// A module: a mutable table of functions by global name. The functions are immutable, and several modules may share them.
#[pyclass(frozen, module = "pliant.ir", weakref, mapping)]
pub struct IRModule {
    module: Mutex<ir::IRModule>,
    owners: RetainedOwners,
    problems: InputProblems,
}

/// Violations of TVM's rules in the functions from which a module was created. Recorded only if `import tvm` is Pliant; otherwise,
/// invalid functions are rejected, and others are normalized.
#[derive(Default)]
struct InputProblems {
    /// The error of a function that is not valid. The module then has no functions.
    rejected: Option<String>,
    /// The names of the functions that were not in normal form.
    unnormalized: Vec<String>,
}

impl IRModule {
    /// Wraps a module of the compiler as a Python object.
    pub fn wrap(module: ir::IRModule) -> IRModule {
        Self::with_owners(module, RetainedOwners::default())
    }

    /// Wraps a module as a Python object that keeps the given function owners ([`FuncOwner`]) alive. Python objects for parts of
    /// these functions then stay valid.
    pub fn with_owners(module: ir::IRModule, owners: RetainedOwners) -> IRModule {
        IRModule { module: Mutex::new(module), owners, problems: InputProblems::default() }
    }

    /// Checks that all functions from which the module was created are part of it.
    ///
    /// # Errors
    /// The error of a function that is not valid.
    pub fn check_complete(&self) -> Result<()> {
        match &self.problems.rejected {
            Some(error) => Err(Error::Value(error.clone())),
            None => Ok(()),
        }
    }

    /// Returns the owners ([`FuncOwner`]) of the module's functions, which this object keeps alive.
    pub fn owners(&self) -> &RetainedOwners {
        &self.owners
    }

    /// Wraps a module that was derived from this one. Functions that are in both modules keep their
    /// owners ([`FuncOwner`]), so the Python objects for parts of these functions stay valid.
    fn with_shared_functions(&self, module: ir::IRModule) -> IRModule {
        Self::with_owners(module, self.owners.clone())
    }

    /// Returns the current state of the module. The functions are shared, not copied.
    pub fn snapshot(&self) -> ir::IRModule {
        self.module.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wraps a function of the module as a Python object. As long as the module lives, Python objects for the same expression of
    /// the function compare equal.
    fn wrap_retained<'py>(
        &self,
        py: Python<'py>,
        func: &ir::BaseFunc,
        name: &str,
    ) -> Result<Bound<'py, PyAny>> {
        match func {
            ir::BaseFunc::Relax(f) => {
                self.owners.retain_owner(FuncOwner::of(f.clone()), &self.snapshot())
            }
            ir::BaseFunc::Prim(f) => {
                self.owners.retain_prim_func(PrimFuncObjects::of(f.clone()), &self.snapshot())
            }
        }
        wrap_func(py, func, name)
    }

    fn edit<T>(&self, f: impl FnOnce(&mut ir::IRModule) -> T) -> T {
        f(&mut self.module.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The name of a function, given as a string or a `GlobalVar`.
///
/// # Errors
/// `TypeError` for any other object.
pub fn global_name(obj: &Bound<'_, PyAny>) -> Result<String> {
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(s.to_string());
    }
    match obj.cast::<Expr>().map(|e| &e.get().node) {
        Ok(node) if matches!(node.get(), Node::Global(_)) => Ok(name_or_text(node)),
        Ok(node) if matches!(node.get(), Node::InFunc(..)) => Ok(name_or_text(node)),
        _ => Err(Error::Type(format!(
            "the name of a function must be a string or a GlobalVar, not {}",
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
        let entries: Result<Vec<_>> = functions
            .into_iter()
            .flatten()
            .map(|(name, func)| Ok((Arc::from(global_name(&name)?), func)))
            .collect();
        let entries = entries?;
        let (built, problems) = build_checked(&entries)?;
        for (name, func) in entries.iter().zip(built) {
            module.insert(name.0.clone(), func);
        }
        let owners = RetainedOwners::default();
        for (_, func) in &entries {
            owners.retain_object(func, &module);
        }
        if let Some(attrs) = attrs.filter(|a| !a.is_none()) {
            set_attrs(&mut module.attrs, attrs, None)?;
        }
        Ok(IRModule { problems, ..IRModule::with_owners(module, owners) })
    }

    /// Creates a module with one function. Its name is `main` unless it has a global symbol.
    #[staticmethod]
    fn from_expr(func: &Bound<'_, PyAny>) -> Result<Self> {
        let name: String = func.getattr("__name__")?.extract()?;
        let mut module = ir::IRModule::new();
        let (built, problems) = build_checked(&[(name.clone().into(), func.clone())])?;
        built.into_iter().for_each(|built| module.insert(name.clone(), built));
        let owners = RetainedOwners::default();
        owners.retain_object(func, &module);
        Ok(IRModule { problems, ..IRModule::with_owners(module, owners) })
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let key = global_name(name)?;
        let module = slf.get().snapshot();
        let Some(func) = module.get(&key) else { return Err(unknown_function(&module, &key)) };
        let func = slf.get().wrap_retained(name.py(), func, &key)?;
        if let Ok(func) = func.cast::<Function>() {
            func.get().set_module(slf);
        }
        Ok(func)
    }

    fn __setitem__(&self, name: &Bound<'_, PyAny>, func: &Bound<'_, PyAny>) -> Result<()> {
        let name = global_name(name)?;
        let built = named_func(func, || global_types(&self.snapshot()))?;
        self.edit(|m| m.insert(name, built));
        self.owners.retain_object(func, &self.snapshot());
        Ok(())
    }

    fn __delitem__(&self, name: &Bound<'_, PyAny>) -> Result<()> {
        let key = global_name(name)?;
        match self.edit(|m| m.remove(&key)) {
            Some(_) => Ok(()),
            None => Err(unknown_function(&self.snapshot(), &key)),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> Result<bool> {
        let key = global_name(name)?;
        Ok(self.edit(|m| m.get(&key).is_some()))
    }

    fn __len__(&self) -> usize {
        self.edit(|m| m.functions.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let vars = self.get_global_vars(py)?;
        Ok(PyList::new(py, vars)?.as_any().try_iter()?.into_any())
    }

    /// A dict from global variables to functions.
    #[getter]
    fn functions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, func) in &self.snapshot().functions {
            dict.set_item(global_var(py, name)?, self.wrap_retained(py, func, name)?)?;
        }
        Ok(dict)
    }

    /// Returns pairs of global variable and function, in definition order.
    fn functions_items<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        self.snapshot()
            .functions
            .iter()
            .map(|(name, func)| Ok((global_var(py, name)?, self.wrap_retained(py, func, name)?)))
            .collect()
    }

    /// Returns pairs of global variable and function, in definition order.
    fn items<'py>(&self, py: Python<'py>) -> Result<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        self.functions_items(py)
    }

    /// Returns the global variable with this name.
    fn get_global_var<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        let module = self.snapshot();
        match module.get(name) {
            Some(_) => global_var(py, name),
            None => Err(unknown_function(&module, name)),
        }
    }

    /// Returns the global variables of all functions, in definition order.
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

    /// Returns the attributes of the module as a dict.
    #[getter(attrs)]
    fn attributes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        attrs_dict(py, &self.snapshot().attrs)
    }

    /// Returns a copy of the module with one more attribute, or with a dict of more attributes.
    #[pyo3(signature = (attr_key, attr_value=None))]
    fn with_attr(
        &self,
        attr_key: &Bound<'_, PyAny>,
        attr_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<IRModule> {
        let mut module = self.snapshot();
        set_attrs(&mut module.attrs, attr_key, attr_value)?;
        Ok(self.with_shared_functions(module))
    }

    /// Returns a copy of the module with the attributes of a dict added.
    fn with_attrs(&self, attr_map: &Bound<'_, PyDict>) -> Result<IRModule> {
        self.with_attr(attr_map.as_any(), None)
    }

    /// Returns a copy of the module without the attribute of this name.
    fn without_attr(&self, attr_key: &str) -> IRModule {
        let mut module = self.snapshot();
        module.attrs.shift_remove(attr_key);
        self.with_shared_functions(module)
    }

    /// Returns the module attribute of this name, or `None` if there is none.
    fn get_attr<'py>(&self, py: Python<'py>, attr_key: &str) -> Result<Option<Bound<'py, PyAny>>> {
        let value = self.snapshot().attrs.get(attr_key).map(|v| attr_object(py, v)).transpose()?;
        Ok(value)
    }

    /// Returns the attributes of the module as a dict.
    fn get_attrs<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.attributes(py)
    }

    /// Global information other than functions, such as virtual devices in TVM. Always empty, because there is one device.
    #[getter]
    fn global_infos<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }

    /// Returns the global variables of all functions, in definition order.
    fn keys<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.get_global_vars(py)
    }

    /// Returns the functions, in definition order.
    fn values<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.snapshot()
            .functions
            .iter()
            .map(|(name, func)| self.wrap_retained(py, func, name))
            .collect()
    }

    /// Returns the function with this name, or `default` if there is none.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        name: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let key = global_name(name)?;
        match self.snapshot().get(&key) {
            Some(func) => Ok(Some(self.wrap_retained(name.py(), func, &key)?)),
            None => Ok(default),
        }
    }

    /// Returns a module in which functions are renamed, also in all calls. `replacements` maps old
    /// names or `GlobalVar`s to new ones.
    fn replace_global_vars(&self, replacements: &Bound<'_, PyDict>) -> Result<IRModule> {
        let mut module = self.snapshot();
        let mut renamed: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
        for (old, new) in replacements {
            let (old, new) = (global_name(&old)?, global_name(&new)?);
            if module.get(&old).is_none() {
                return Err(unknown_function(&module, &old));
            }
            if old != new {
                renamed.insert(old.into(), new.into());
            }
        }
        let ctx = PassContext::new(pliant_ops::registry());
        rename_functions(&mut module, &renamed, &ctx)?;
        Ok(self.with_shared_functions(module))
    }

    /// Returns a module with the same functions, which can be changed separately.
    fn clone(&self) -> IRModule {
        self.with_shared_functions(self.snapshot())
    }

    fn __copy__(&self) -> IRModule {
        self.clone()
    }

    /// Returns a new module with the same functions. This is a deep copy, since functions are immutable.
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> IRModule {
        self.clone()
    }

    /// Returns the module as script text. With `show_meta`, the text includes large constants.
    #[pyo3(signature = (*, name=None, show_meta=false))]
    fn script(&self, name: Option<&str>, show_meta: bool) -> String {
        let mut options = PrintOptions { show_meta, ..PrintOptions::default() };
        if let Some(name) = name {
            options.module_name = name.into();
        }
        print_module(&self.snapshot(), pliant_ops::registry(), &options)
    }

    /// Prints the module as a script, with colours on a terminal.
    #[pyo3(signature = (style=None, black_format=None))]
    fn show(&self, py: Python<'_>, style: Option<&str>, black_format: Option<bool>) -> Result<()> {
        let _ = black_format;
        crate::error::import(py, "pliant._show_script", "show")?
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

/// Adds terminal colours to script text.
#[pyfunction]
pub fn highlight_script(text: &str) -> String {
    highlight(text)
}

/// Converts a Python object to a function, to be added to a module under a name. A loop function without a global symbol stays
/// public. [`base_func`] would make such a loop function private.
fn named_func(
    obj: &Bound<'_, PyAny>,
    globals: impl FnOnce() -> GlobalTypes,
) -> Result<ir::BaseFunc> {
    if let Ok(f) = obj.cast::<crate::te::prim_func::PrimFunc>() {
        return Ok(ir::BaseFunc::Prim(f.get().func.clone()));
    }
    base_func(obj, globals)
}

/// Builds the functions of a new module, in the order of `entries`. Each function may call any other.
fn build_functions(entries: &[(Arc<str>, Bound<'_, PyAny>)]) -> Result<Vec<ir::BaseFunc>> {
    let (mut globals, order) = build_order(entries);
    let mut built: Vec<Option<ir::BaseFunc>> = vec![None; entries.len()];
    for i in order {
        let (name, obj) = &entries[i];
        let func = named_func(obj, || globals.clone())?;
        if let Some(func) = func.as_relax() {
            globals.insert(name.clone(), signature_of(func));
        }
        built[i] = Some(func);
    }
    Ok(built.into_iter().flatten().collect())
}

/// Builds functions, and records violations of TVM's rules if `import tvm` is Pliant.
fn build_checked(
    entries: &[(Arc<str>, Bound<'_, PyAny>)],
) -> Result<(Vec<ir::BaseFunc>, InputProblems)> {
    if !tvm_compatibility::is_enabled() {
        return Ok((build_functions(entries)?, InputProblems::default()));
    }
    let in_normal_form = |func: &Bound<'_, PyAny>| match func.cast::<Function>() {
        Ok(func) => is_in_normal_form(&func.as_super().get().node),
        Err(_) => true,
    };
    let unnormalized = entries.iter().filter(|(_, func)| !in_normal_form(func));
    let unnormalized = unnormalized.map(|(name, _)| name.to_string()).collect();
    match build_functions(entries) {
        Ok(built) => Ok((built, InputProblems { rejected: None, unnormalized })),
        Err(Error::Value(error)) => {
            Ok((Vec::new(), InputProblems { rejected: Some(error), unnormalized }))
        }
        Err(other) => Err(other),
    }
}

fn unknown_function(module: &ir::IRModule, name: &str) -> Error {
    let known: Vec<&str> = module.functions.keys().map(|k| &**k).collect();
    Error::Key(format!("the module has no function '{name}' (it has: {})", known.join(", ")))
}

/// The first structural difference between two modules or functions, or `None` if there is none. Names are ignored.
#[pyfunction]
pub fn structural_difference(
    lhs: &Bound<'_, PyAny>,
    rhs: &Bound<'_, PyAny>,
) -> Result<Option<String>> {
    let (a, b) = (Comparable::of(lhs)?, Comparable::of(rhs)?);
    let outcome = match (&a, &b) {
        (Comparable::Module(a), Comparable::Module(b)) => {
            ir::structural_equality::structural_equal(a, b)
        }
        (Comparable::Func(ir::BaseFunc::Relax(a)), Comparable::Func(ir::BaseFunc::Relax(b))) => {
            ir::structural_equality::equal_functions(a, b)
        }
        (Comparable::Func(ir::BaseFunc::Prim(a)), Comparable::Func(ir::BaseFunc::Prim(b))) => {
            ir::structural_equality::equal_prim_funcs(a, b)
        }
        _ => {
            return Ok(Some(format!(
                "the left side is a {}, but the right side is a {}",
                lhs.get_type().name()?,
                rhs.get_type().name()?
            )));
        }
    };
    Ok(outcome.err().map(|d| d.to_string()))
}

/// Returns a hash of the structure of a module or function. Structurally equal modules or functions have equal hashes.
#[pyfunction]
pub fn structural_hash(node: &Bound<'_, PyAny>) -> Result<u64> {
    Ok(match Comparable::of(node)? {
        Comparable::Module(m) => ir::structural_equality::structural_hash(&m),
        Comparable::Func(ir::BaseFunc::Relax(f)) => ir::structural_equality::hash_function(&f),
        Comparable::Func(ir::BaseFunc::Prim(f)) => ir::structural_equality::hash_prim_func(&f),
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
            Err(_) => named_func(obj, GlobalTypes::default).map(Comparable::Func),
        }
    }
}

/// The violations of the IR's rules in a module, one line each. Empty for a well-formed module.
#[pyfunction]
pub fn verify_module(module: &Bound<'_, IRModule>) -> Result<Vec<String>> {
    let module = module.get().snapshot();
    let problems = ir::verify::verify_module(&module, pliant_ops::registry());
    Ok(problems.iter().map(ToString::to_string).collect())
}

/// The violations of TVM's rules in the functions from which a module was created, one line each. Empty unless `import tvm` is
/// Pliant.
#[pyfunction]
pub fn module_input_problems(module: &Bound<'_, IRModule>) -> Vec<String> {
    let InputProblems { rejected, unnormalized } = &module.get().problems;
    let unnormalized =
        unnormalized.iter().map(|name| format!("the function '{name}' is not in normal form"));
    rejected.iter().cloned().chain(unnormalized).collect()
}

/// The violations of the IR's rules in a function, one line each. Names of other functions in the module are not
/// checked.
#[pyfunction]
pub fn verify_function(func: &Bound<'_, PyAny>) -> Result<Vec<String>> {
    let problems = match named_func(func, GlobalTypes::default)? {
        ir::BaseFunc::Relax(f) => {
            ir::relax::verify::verify_function(&f, None, pliant_ops::registry())
        }
        ir::BaseFunc::Prim(f) => ir::tir::verify::verify_prim_func(&f),
    };
    Ok(problems.iter().map(ToString::to_string).collect())
}

/// Returns the groups of mutually recursive graph functions, as lists of names.
#[pyfunction]
pub fn recursive_groups(module: &Bound<'_, IRModule>) -> Vec<Vec<String>> {
    let groups =
        pliant_opt::analysis::recursive_functions::recursive_groups(&module.get().snapshot());
    groups.iter().map(|g| g.iter().map(ToString::to_string).collect()).collect()
}
