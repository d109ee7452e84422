//! `explore_module`: compiles a module and returns the page of the explorer.

use pliant::{Exploration, RunOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::ir_module::IRModule;
use crate::runtime::ctrl_c_interrupts::CompileGuard;
use crate::runtime::executable_and_model::compile_options;
use crate::runtime::virtual_machine::MonitoredVm;

/// Compiles a module with the options in the keyword arguments, and returns an HTML page that shows the compilation. If
/// `args` is not
/// `None`, the page also shows the times of `runs` runs of `main`, or of the only graph function, with these arguments.
#[pyfunction]
#[pyo3(signature = (module, kwargs, title, args=None, runs=10))]
pub fn explore_module(
    py: Python<'_>,
    module: &Bound<'_, IRModule>,
    kwargs: &Bound<'_, PyDict>,
    title: &str,
    args: Option<&Bound<'_, PyTuple>>,
    runs: u32,
) -> Result<String> {
    let options = compile_options(py, kwargs)?;
    let module = module.get().snapshot();
    let mut exploration = run_detached(py, || {
        let _compiling = CompileGuard::begin();
        Ok(Exploration::compile(module, &options)?)
    })?;
    if let Some(args) = args {
        let signatures = exploration.compiled().signatures();
        let entry = match signatures {
            [only] => Some(only),
            _ => signatures.iter().find(|s| s.name == "main"),
        };
        let Some(entry) = entry.map(|s| s.name.clone()) else {
            return Err(Error::Type("the module has no function 'main' to profile".into()));
        };
        if runs == 0 {
            return Err(Error::Value(
                "explore: the argument 'runs' must be at least 1, not 0".into(),
            ));
        }
        let monitored = MonitoredVm::new(exploration.compiled().vm()?);
        let values = monitored.arguments(&entry, args)?;
        let unlimited = RunOptions::default();
        run_detached(py, || Ok(exploration.profile(&entry, &values, runs, &unlimited)?))?;
    }
    run_detached(py, || Ok(exploration.page(title)))
}
