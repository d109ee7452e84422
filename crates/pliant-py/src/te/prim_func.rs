//! `tir.PrimFunc`: a loop function in Python, and its making from tensors.

use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::print::{PrintOptions, print_prim_func};
use pliant_ir::tir;
use pliant_ops::te;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::enter::guard;
use crate::error::{Error, Result};
use crate::relax::views::{attrs_dict, set_attrs};
use crate::te::tensor::Tensor;
use crate::tir::expr::prim;

/// A loop function.
#[pyclass(frozen, module = "pliant.tir", weakref)]
pub struct PrimFunc {
    /// The function.
    pub func: Arc<tir::PrimFunc>,
    name: Option<Arc<str>>,
}

impl PrimFunc {
    /// A function as a Python object that knows what it was called.
    pub fn named(func: Arc<tir::PrimFunc>, name: &str) -> PrimFunc {
        PrimFunc { func, name: Some(name.into()) }
    }

    /// What the function is called: its global symbol, else the name that it was written or found under.
    pub fn name(&self) -> String {
        let symbol = self.func.attrs.get(GLOBAL_SYMBOL).and_then(|v| v.as_str());
        symbol.or(self.name.as_deref()).unwrap_or("main").to_string()
    }
}

/// The loop function that computes the stages among `args` from the placeholders among them.
#[pyfunction]
pub fn te_create_prim_func(args: Vec<Bound<'_, PyAny>>) -> Result<PrimFunc> {
    let args: Vec<te::Arg> = args.iter().map(argument).collect::<Result<_>>()?;
    let func = guard(|| te::create_prim_func(&args).map_err(|e| Error::Compile(e.to_string())))?;
    Ok(PrimFunc { func: Arc::new(func), name: None })
}

/// The body of a function in Python, made once while it is held.
fn view_of<'py>(func: &Bound<'py, PrimFunc>) -> Result<Bound<'py, PyAny>> {
    Ok(crate::error::import(func.py(), "pliant.tir._body", "body_of")?.call1((func,))?)
}

fn argument(obj: &Bound<'_, PyAny>) -> Result<te::Arg> {
    if let Ok(tensor) = obj.cast::<Tensor>() {
        return Ok(te::Arg::Tensor(tensor.get().tensor.clone()));
    }
    match prim(obj)?.as_var() {
        Some(var) => Ok(te::Arg::Var(var.clone())),
        None => {
            Err(Error::Type(format!("an argument is a tensor or a variable, not {}", obj.repr()?)))
        }
    }
}

#[pymethods]
impl PrimFunc {
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Functions never change, so each is its own copy.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// The names of the parameters.
    #[getter]
    fn params(&self) -> Vec<String> {
        self.func.params.iter().map(|&p| self.func.var(p).name.to_string()).collect()
    }

    /// The body: a statement.
    #[getter]
    fn body<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(view_of(slf)?.getattr("body")?)
    }

    /// The buffer of each tensor parameter.
    #[getter]
    fn buffer_map<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(view_of(slf)?.getattr("buffer_map")?)
    }

    /// The variables that the parameters are.
    #[getter]
    fn param_vars<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(view_of(slf)?.getattr("params")?)
    }

    /// The function with another body.
    fn with_body<'py>(
        slf: &Bound<'py, Self>,
        new_body: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let name = slf.get().name();
        Ok(view_of(slf)?.call_method1("rebuilt", (new_body, name))?)
    }

    /// The attributes.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        attrs_dict(py, &self.func.attrs)
    }

    /// Whether only its module calls it.
    #[getter]
    fn is_private(&self) -> bool {
        self.func.private
    }

    /// The function with one more attribute, or with a dict of them.
    #[pyo3(signature = (attr_key_or_dict, attr_value=None))]
    fn with_attr(
        &self,
        attr_key_or_dict: &Bound<'_, PyAny>,
        attr_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<PrimFunc> {
        let mut func = (*self.func).clone();
        let named = func.attrs.contains_key(GLOBAL_SYMBOL);
        set_attrs(&mut func.attrs, attr_key_or_dict, attr_value)?;
        // A private function that gets a name for the outside is public.
        func.private &= named || !func.attrs.contains_key(GLOBAL_SYMBOL);
        Ok(PrimFunc { func: Arc::new(func), name: self.name.clone() })
    }

    /// The function with the attributes of a dict as well.
    fn with_attrs(&self, attr_map: &Bound<'_, PyDict>) -> Result<PrimFunc> {
        self.with_attr(attr_map.as_any(), None)
    }

    /// The function without an attribute.
    fn without_attr(&self, attr_key: &str) -> PrimFunc {
        let mut func = (*self.func).clone();
        func.attrs.shift_remove(attr_key);
        PrimFunc { func: Arc::new(func), name: self.name.clone() }
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
        print_prim_func(name.unwrap_or(&own), &self.func, &options)
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
        other.cast::<PrimFunc>().is_ok_and(|o| Arc::ptr_eq(&o.get().func, &self.func))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.func) as usize
    }
}
