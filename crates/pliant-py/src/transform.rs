//! Passes in Python: those of the table by name, and sequences.

use pliant::{CompileOptions, pass_context};
use pliant_opt::passes;
use pliant_pass::{CancelToken, ModulePass};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::interrupt::poll_signals;

/// A pass of the table.
#[pyclass(frozen, module = "pliant.transform")]
pub struct CorePass {
    info: &'static passes::PassInfo,
}

#[pymethods]
impl CorePass {
    /// The pass of that name or other name.
    #[new]
    fn new(name: &str) -> Result<Self> {
        match passes::find(name) {
            Some(info) => Ok(CorePass { info }),
            None => {
                let known: Vec<&str> = passes::PASSES.iter().map(|p| p.name).collect();
                Err(Error::Value(format!(
                    "no pass is called '{name}' (there are: {})",
                    known.join(", ")
                )))
            }
        }
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.info.name
    }

    /// What it does.
    #[getter]
    fn doc(&self) -> &'static str {
        self.info.doc
    }

    /// Runs the pass under the settings of a context.
    #[pyo3(signature = (module, settings))]
    fn run(
        &self,
        py: Python<'_>,
        module: &Bound<'_, IRModule>,
        settings: &Bound<'_, PyDict>,
    ) -> Result<IRModule> {
        apply(py, (self.info.make)(), module, settings)
    }

    fn __repr__(&self) -> String {
        format!("Pass({})", self.info.name)
    }
}

fn apply(
    py: Python<'_>,
    pass: Box<dyn ModulePass>,
    module: &Bound<'_, IRModule>,
    settings: &Bound<'_, PyDict>,
) -> Result<IRModule> {
    let mut options = CompileOptions::default();
    if let Some(level) = settings.get_item("opt_level")? {
        options.opt_level = Some(level.extract()?);
    }
    if let Some(list) = settings.get_item("disabled_pass")? {
        options.disabled_passes = list.extract()?;
    }
    if let Some(list) = settings.get_item("required_pass")? {
        options.required_passes = list.extract()?;
    }
    if let Some(config) = settings.get_item("config")? {
        for (k, v) in config.cast::<PyDict>()? {
            let value = crate::relax::convert::attr_value(&v)?;
            options.config.insert(k.extract::<String>()?.into(), value);
        }
    }
    options.cancel = CancelToken::with_poll(poll_signals);
    let ctx = pass_context(&options);
    let module = module.get().snapshot();
    let module = enter(py, || Ok(pass.apply(module, &ctx)?))?;
    Ok(IRModule::wrap(module))
}

/// The passes of the table: name, other names, what it does.
#[pyfunction]
pub fn pass_table() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    passes::PASSES.iter().map(|p| (p.name, p.aliases.to_vec(), p.doc)).collect()
}

/// Runs a named pipeline on a module.
#[pyfunction]
pub fn run_pipeline(
    py: Python<'_>,
    name: &str,
    module: &Bound<'_, IRModule>,
    settings: &Bound<'_, PyDict>,
) -> Result<IRModule> {
    match pliant_opt::pipeline(name) {
        Some(pipeline) => apply(py, Box::new(pipeline), module, settings),
        None => {
            let known = pliant_opt::pipelines::NAMES.join(", ");
            Err(Error::Value(format!("no pipeline is called '{name}' (there are: {known})")))
        }
    }
}
