//! `tir.PrimFunc`: a loop function in Python, and its creation from tensors.

use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::print::{PrintOptions, print_prim_func};
use pliant_ir::tir;
use pliant_ops::te;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::expr_accessors::{attrs_dict, set_attrs};
use crate::relax::function::with_symbol;
use crate::te::tensor::Tensor;
use crate::tir::build_prim_func::{build_prim_func, with_new_body};
use crate::tir::prim_expr::prim;
use crate::tir::prim_func_body::PrimFuncBody;
use crate::tir::prim_func_objects::PrimFuncObjects;

/// A loop function (`tir.PrimFunc`).
#[pyclass(frozen, module = "pliant.tir", weakref)]
pub struct PrimFunc {
    /// The loop function in the IR.
    pub func: Arc<tir::PrimFunc>,
    objects: Arc<PrimFuncObjects>,
    name: Option<Arc<str>>,
}

impl PrimFunc {
    /// Wraps a loop function as a Python object with this name.
    pub fn named(func: Arc<tir::PrimFunc>, name: &str) -> PrimFunc {
        Self::of(PrimFuncObjects::of(func), Some(name.into()))
    }

    fn of(objects: Arc<PrimFuncObjects>, name: Option<Arc<str>>) -> PrimFunc {
        PrimFunc { func: objects.func.clone(), objects, name }
    }

    /// Returns the Python objects of the function's variables and buffers.
    pub fn objects(&self) -> Arc<PrimFuncObjects> {
        self.objects.clone()
    }

    /// Returns the body as a Python object.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub fn view<'py>(&self, py: Python<'py>) -> Result<&Bound<'py, PrimFuncBody>> {
        self.objects.body(py)
    }

    /// Returns the name of the function: its global symbol, or else the name under which it was
    /// parsed or taken from a module.
    pub fn name(&self) -> String {
        let symbol = self.func.attrs.get(GLOBAL_SYMBOL).and_then(|v| v.as_str());
        symbol.or(self.name.as_deref()).unwrap_or("main").to_string()
    }
}

/// Creates the loop function that computes the stages among `args` from the placeholders among
/// `args`.
#[pyfunction]
pub fn te_create_prim_func(args: Vec<Bound<'_, PyAny>>) -> Result<PrimFunc> {
    let args: Vec<te::Arg> = args.iter().map(argument).collect::<Result<_>>()?;
    let func =
        catch_panic(|| te::create_prim_func(&args).map_err(|e| Error::Compile(e.to_string())))?;
    Ok(PrimFunc::of(PrimFuncObjects::of(Arc::new(func)), None))
}

/// Copies the function with new parameters, buffers and variables, which no other function shares.
#[pyfunction]
pub fn tir_renew_defs(func: &Bound<'_, PrimFunc>) -> PrimFunc {
    let func = func.get();
    PrimFunc::of(PrimFuncObjects::of(Arc::new((*func.func).clone())), func.name.clone())
}

fn argument(obj: &Bound<'_, PyAny>) -> Result<te::Arg> {
    if let Ok(tensor) = obj.cast::<Tensor>() {
        return Ok(te::Arg::Tensor(tensor.get().tensor.clone()));
    }
    match prim(obj)?.as_var() {
        Some(var) => Ok(te::Arg::Var(var.clone())),
        None => Err(Error::Type(format!(
            "create_prim_func: an argument must be a te.Tensor or a tir.Var, not {}",
            obj.repr()?
        ))),
    }
}

#[pymethods]
impl PrimFunc {
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Functions are immutable, so the copy is the function itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// Creates a function with these parameters. A parameter in `buffer_map` is the handle of a buffer.
    #[new]
    #[pyo3(signature = (params, body, ret_type=None, buffer_map=None, attrs=None))]
    fn new(
        params: Vec<Bound<'_, PyAny>>,
        body: &Bound<'_, PyAny>,
        ret_type: Option<&Bound<'_, PyAny>>,
        buffer_map: Option<Bound<'_, PyDict>>,
        attrs: Option<&Bound<'_, PyAny>>,
    ) -> Result<PrimFunc> {
        // Loop functions return nothing, regardless of the given return type.
        let _ = ret_type;
        let buffer_map = buffer_map.unwrap_or_else(|| PyDict::new(body.py()));
        let func = PrimFunc::of(build_prim_func(&params, &buffer_map, body)?, None);
        match attrs.filter(|a| !a.is_none()) {
            Some(attrs) => func.with_attr(attrs, None),
            None => Ok(func),
        }
    }

    /// Returns the parameters. A tensor parameter is a handle, and `buffer_map` contains its
    /// buffer.
    #[getter]
    fn params(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(self.view(py)?.get().params(py))
    }

    /// The return type, which is always `None`, because loop functions return nothing.
    #[getter]
    fn ret_type(&self) {}

    /// Returns the body of the function, which is a statement.
    #[getter]
    fn body(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(self.view(py)?.get().body(py))
    }

    /// Returns the buffer of each tensor parameter.
    #[getter]
    fn buffer_map(&self, py: Python<'_>) -> Result<Py<PyAny>> {
        Ok(self.view(py)?.get().buffer_map(py))
    }

    /// Returns the function with another body.
    fn with_body(&self, new_body: &Bound<'_, PyAny>) -> Result<PrimFunc> {
        let view = self.view(new_body.py())?.get();
        Ok(Self::of(with_new_body(&self.func, view, new_body)?, Some(self.name().into())))
    }

    /// Whether both are the same function object.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        self.__eq__(other)
    }

    /// Returns the attributes. A function that is not private has its name as the attribute
    /// `global_symbol`.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let name = self.name.as_deref().filter(|_| !self.func.private);
        attrs_dict(py, &with_symbol(self.func.attrs.clone(), name))
    }

    /// Whether the function is visible only in its module.
    #[getter]
    fn is_private(&self) -> bool {
        self.func.private
    }

    /// Returns the function with one more attribute, or with a dict of more attributes.
    #[pyo3(signature = (attr_key_or_dict, attr_value=None))]
    fn with_attr(
        &self,
        attr_key_or_dict: &Bound<'_, PyAny>,
        attr_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<PrimFunc> {
        let mut func = (*self.func).clone();
        let named = func.attrs.contains_key(GLOBAL_SYMBOL);
        set_attrs(&mut func.attrs, attr_key_or_dict, attr_value)?;
        // A private function that gets a global symbol becomes public.
        func.private &= named || !func.attrs.contains_key(GLOBAL_SYMBOL);
        Ok(Self::of(self.objects.with_same_body(func), self.name.clone()))
    }

    /// Returns the function with the attributes of a dict added.
    fn with_attrs(&self, attr_map: &Bound<'_, PyDict>) -> Result<PrimFunc> {
        self.with_attr(attr_map.as_any(), None)
    }

    /// Returns the function without an attribute. Without `global_symbol`, it is private.
    fn without_attr(&self, attr_key: &str) -> PrimFunc {
        let mut func = (*self.func).clone();
        func.attrs.shift_remove(attr_key);
        func.private |= attr_key == GLOBAL_SYMBOL;
        Self::of(self.objects.with_same_body(func), self.name.clone())
    }

    /// Returns the name of the function.
    #[getter]
    fn __name__(&self) -> String {
        self.name()
    }

    /// Returns the function as script text.
    #[pyo3(signature = (show_meta=false, name=None))]
    fn script(&self, show_meta: bool, name: Option<&str>) -> String {
        let options = PrintOptions { show_meta, ..PrintOptions::default() };
        let own_name = self.name();
        print_prim_func(name.unwrap_or(&own_name), &self.func, &options)
    }

    /// Prints the function as a script, with colours on a terminal.
    #[pyo3(signature = (style=None, black_format=None))]
    fn show(&self, py: Python<'_>, style: Option<&str>, black_format: Option<bool>) -> Result<()> {
        let _ = black_format;
        crate::error::import(py, "pliant._show_script", "show")?
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
