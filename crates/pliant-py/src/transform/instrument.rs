//! Instruments: those written in Rust as Python holds them, and those written in Python.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_pass::{DumpIr, Instrument, PassContext, PassError, PassInfo, Timing};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{Error, Result, import};
use crate::module::IRModule as PyModule;
use crate::transform::py_pass::raised;

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
    /// Measures passes.
    #[staticmethod]
    fn timing() -> Self {
        CoreInstrument { kind: Kind::Timing(Arc::new(Timing::new())) }
    }

    /// Writes the module after every pass into a directory.
    #[staticmethod]
    fn dump(dir: PathBuf) -> Self {
        CoreInstrument { kind: Kind::Dump(Arc::new(DumpIr::new(dir))) }
    }

    /// What was measured, as a table.
    fn render(&self) -> String {
        match &self.kind {
            Kind::Timing(timing) => timing.render(),
            Kind::Dump(_) => String::new(),
        }
    }

    /// What was measured: name, depth and seconds of each pass.
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

    /// Forgets what was measured.
    fn reset(&self) {
        if let Kind::Timing(timing) = &self.kind {
            timing.reset();
        }
    }
}

/// An instrument of a context: written in Rust, or an object with any of the methods `should_run`, `run_before_pass`
/// and `run_after_pass`.
///
/// # Errors
/// `TypeError` for a class where its instance is meant.
pub fn to_instrument(object: &Bound<'_, PyAny>) -> Result<Arc<dyn Instrument>> {
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Err(Error::Type(format!(
            "an instrument is an object, not a class (help: write {}())",
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
    /// Calls a method with the module and what is known of the pass; `None` where the object lacks it.
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
                let answer = callback.call1(args)?;
                // Only `should_run` is asked; one that says nothing does not mean no.
                Ok(Some(answer.is_none() || answer.is_truthy()?))
            };
            call().map_err(|e| {
                let class = object.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
                let origin = format!("{method} of the instrument {class} at pass '{}'", pass.name);
                raised(py, e, origin)
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
