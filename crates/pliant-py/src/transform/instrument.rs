//! Instruments of passes: Python handles of instruments written in Rust, and instruments written in Python.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_pass::{DumpIr, Instrument, PassContext, PassError, PassInfo, Timing};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result, import};
use crate::ir_module::IRModule as PyModule;
use crate::transform::python_pass::pass_error;

/// An instrument written in Rust.
#[pyclass(frozen, module = "pliant.ir.instrument")]
pub struct CoreInstrument {
    kind: Kind,
}

enum Kind {
    Timing(Arc<Timing>),
    Dump(Arc<DumpIr>),
}

#[pymethods]
impl CoreInstrument {
    /// Creates an instrument that measures the duration of passes.
    #[staticmethod]
    fn timing() -> Self {
        CoreInstrument { kind: Kind::Timing(Arc::new(Timing::new())) }
    }

    /// Creates an instrument that writes the module after every pass into a directory.
    #[staticmethod]
    fn dump(dir: PathBuf) -> Self {
        CoreInstrument { kind: Kind::Dump(Arc::new(DumpIr::new(dir))) }
    }

    /// Returns the measurements as a table.
    fn render(&self) -> String {
        match &self.kind {
            Kind::Timing(timing) => timing.render(),
            Kind::Dump(_) => String::new(),
        }
    }

    /// Returns the measurements: name, nesting depth and duration in seconds of each pass.
    fn entries(&self) -> Vec<(String, usize, f64)> {
        match &self.kind {
            Kind::Timing(timing) => timing
                .entries()
                .into_iter()
                .map(|e| (e.name, e.depth, e.duration.as_secs_f64()))
                .collect(),
            Kind::Dump(_) => Vec::new(),
        }
    }

    /// Clears the measurements.
    fn reset(&self) {
        if let Kind::Timing(timing) = &self.kind {
            timing.reset();
        }
    }
}

/// Converts an element of a context's list of instruments: an instrument written in Rust, or an
/// object with any of the methods `should_run`, `run_before_pass` and `run_after_pass`.
///
/// # Errors
/// `TypeError` if the object is a class and not an instance.
pub fn to_instrument(object: &Bound<'_, PyAny>) -> Result<Arc<dyn Instrument>> {
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Err(Error::Type(format!(
            "an instrument must be an object, not a class (help: write {}())",
            object.getattr("__name__")?
        )));
    }
    if let Ok(core) = object.getattr("_core").and_then(|c| Ok(c.cast_into::<CoreInstrument>()?)) {
        return Ok(match &core.get().kind {
            Kind::Timing(timing) => timing.clone(),
            Kind::Dump(dump) => dump.clone(),
        });
    }
    Ok(Arc::new(PyInstrument(object.clone().unbind())))
}

/// An instrument written in Python.
pub struct PyInstrument(Py<PyAny>);

impl PyInstrument {
    /// Calls a method with the module and information on the pass. Returns `None` if the object does not have the
    /// method.
    fn call(
        &self,
        method: &str,
        pass: &PassInfo<'_>,
        module: &IRModule,
    ) -> Result<Option<bool>, PassError> {
        Python::attach(|py| {
            let object = self.0.bind(py);
            let call = || -> PyResult<Option<bool>> {
                let Some(callback) = object.getattr_opt(method)? else { return Ok(None) };
                let info = import(py, "pliant.transform", "PassInfo")?
                    .call1((pass.name, pass.opt_level))?;
                let module = Bound::new(py, PyModule::wrap(module.clone()))?;
                let args = PyTuple::new(py, [module.into_any(), info])?;
                let returned = callback.call1(args)?;
                // Only the result of `should_run` is used. `None` does not mean false.
                Ok(Some(returned.is_none() || returned.is_truthy()?))
            };
            call().map_err(|e| {
                let class = object.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                let origin = format!("{method} of the instrument {class} at pass '{}'", pass.name);
                pass_error(py, e, origin)
            })
        })
    }
}

impl Instrument for PyInstrument {
    fn should_run(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        _: &PassContext,
    ) -> Result<bool, PassError> {
        Ok(self.call("should_run", pass, module)?.unwrap_or(true))
    }

    fn before(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        _: &PassContext,
    ) -> Result<(), PassError> {
        self.call("run_before_pass", pass, module).map(|_| ())
    }

    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        _: &PassContext,
    ) -> Result<(), PassError> {
        self.call("run_after_pass", pass, module).map(|_| ())
    }
}
