//! [`CorePass`]: the Python handle of a pass written in Rust.

use std::sync::Arc;

use pliant_pass::ModulePass;
use pyo3::prelude::*;

use crate::error::{Error, Result};

/// A pass written in Rust.
#[pyclass(frozen, module = "pliant.transform")]
pub struct CorePass {
    /// The wrapped pass.
    pub pass: Arc<dyn ModulePass>,
}

impl CorePass {
    /// Wraps a pass whose parameters are set. The constructors in [`super`] use this.
    pub fn of(pass: impl ModulePass + 'static) -> CorePass {
        CorePass { pass: Arc::new(pass) }
    }
}

#[pymethods]
impl CorePass {
    /// Creates the pass or pipeline with this name or alias.
    #[new]
    fn new(name: &str) -> Result<Self> {
        match pliant::find_pass(name) {
            Ok(pass) => Ok(CorePass { pass: pass.into() }),
            Err(error) => {
                let help = error.diagnostics().iter().find_map(|d| d.help.clone());
                let help = help.filter(|h| h.starts_with("did")).unwrap_or_else(|| {
                    "pliant.transform.list_passes() returns all names".to_string()
                });
                Err(Error::Value(format!("no pass is called '{name}' ({help})")))
            }
        }
    }

    /// Returns the name of the pass.
    #[getter]
    fn name(&self) -> &str {
        self.pass.name()
    }

    /// Returns the lowest optimization level at which a sequence runs the pass.
    #[getter]
    fn opt_level(&self) -> u8 {
        self.pass.opt_level()
    }

    fn __repr__(&self) -> String {
        format!("Pass({})", self.pass.name())
    }
}
