//! [`PyPass`]: a pass written in Python, as the Rust pass manager runs it.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_pass::{ModulePass, PassContext, PassError, Sequential};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::error::{Error, Result, import};
use crate::ir_module::IRModule as PyModule;
use crate::nesting_limit::NestingLevel;
use crate::runtime::ctrl_c_interrupts::set_signal_error;
use crate::transform::pass_context::RunningPass;
use crate::transform::rust_pass::CorePass;

/// A pass written in Python: an object with `transform_module(mod, ctx)`, or a callable that takes the module.
pub struct PyPass {
    object: Py<PyAny>,
    context: Py<PyAny>,
    has_method: bool,
    name: String,
    opt_level: u8,
    requires: Vec<Arc<dyn ModulePass>>,
}

/// Converts a Python pass, sequence, list of passes, name or callable to a pass.
///
/// # Errors
/// `TypeError` if the object cannot be called with a module, and an error for an unknown name.
pub fn to_pass(
    object: &Bound<'_, PyAny>,
    context: &Bound<'_, PyAny>,
) -> Result<Arc<dyn ModulePass>> {
    let _level = NestingLevel::enter("passes")?;
    let py = object.py();
    if let Ok(name) = object.cast::<PyString>() {
        return to_pass(&import(py, "pliant.transform", "get_pass")?.call1((name,))?, context);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return sequence(object, "sequential", 0, context);
    }
    if let Some(core) = object.getattr_opt("_core_pass")? {
        return Ok(core.cast::<CorePass>()?.get().pass.clone());
    }
    let sequential = import(py, "pliant.transform", "Sequential")?;
    if object.get_type().is(&sequential) {
        let info = object.getattr("info")?;
        let name: String = info.getattr("name")?.extract()?;
        let opt_level = info.getattr("opt_level")?.extract()?;
        return sequence(&object.getattr("passes")?, &name, opt_level, context);
    }
    Ok(Arc::new(PyPass::new(object, context)?))
}

fn sequence(
    passes: &Bound<'_, PyAny>,
    name: &str,
    opt_level: u8,
    context: &Bound<'_, PyAny>,
) -> Result<Arc<dyn ModulePass>> {
    let mut list: Vec<Box<dyn ModulePass>> = Vec::new();
    for object in passes.try_iter()? {
        list.push(Box::new(to_pass(&object?, context)?));
    }
    Ok(Arc::new(Sequential::new(name, list).with_opt_level(opt_level)))
}

impl PyPass {
    fn new(object: &Bound<'_, PyAny>, context: &Bound<'_, PyAny>) -> Result<PyPass> {
        let has_method = object.hasattr("transform_module")?;
        if object.is_instance_of::<pyo3::types::PyType>() || !(has_method || object.is_callable()) {
            return Err(not_a_pass(object)?);
        }
        let (mut name, mut opt_level) = (String::new(), 0);
        let mut requires = Vec::new();
        if let Some(info) = object.getattr_opt("info")?.filter(|info| !info.is_none()) {
            name = info.getattr("name")?.extract()?;
            opt_level = info.getattr("opt_level")?.extract()?;
            for required in info.getattr("required")?.try_iter()? {
                requires.push(to_pass(&required?, context)?);
            }
        }
        if name.is_empty() {
            name = match object.getattr_opt("__name__")? {
                Some(text) => text.extract()?,
                None => object.get_type().name()?.to_string(),
            };
        }
        let (object, context) = (object.clone().unbind(), context.clone().unbind());
        Ok(PyPass { object, context, has_method, name, opt_level, requires })
    }

    fn call(&self, py: Python<'_>, module: IRModule) -> PyResult<IRModule> {
        let module = Bound::new(py, PyModule::wrap(module))?;
        let object = self.object.bind(py);
        let result = if self.has_method {
            object.call_method1("transform_module", (module, self.context.bind(py)))?
        } else {
            object.call1((module,))?
        };
        match result.cast::<PyModule>() {
            Ok(module) => Ok(module.get().snapshot()),
            Err(_) => {
                let what = result.get_type().name()?;
                let help = if result.is_none() {
                    " (help: a pass ends with `return mod`)"
                } else {
                    " (help: a pass returns a module)"
                };
                Err(PyTypeError::new_err(format!(
                    "pass '{}' returned {what}, not an IRModule{help}",
                    self.name
                )))
            }
        }
    }
}

fn not_a_pass(object: &Bound<'_, PyAny>) -> Result<Error> {
    Ok(Error::Type(if object.is_instance_of::<pyo3::types::PyType>() {
        format!(
            "a pass must be an object, not a class (help: write {}(...))",
            object.getattr("__name__")?
        )
    } else {
        format!(
            "{} is not a pass: create one with module_pass, function_pass or relax.transform, or \
             pass a function from module to module",
            object.repr()?
        )
    }))
}

/// Creates the error of a pass that raised a Python exception. An exception that is not derived
/// from `Exception`, such as `KeyboardInterrupt`, stops the run like Ctrl-C.
pub fn pass_error(py: Python<'_>, error: PyErr, origin: String) -> PassError {
    if !error.is_instance_of::<PyException>(py) {
        set_signal_error(error);
        return PassError::Cancelled;
    }
    PassError::UserCode { origin, source: Arc::new(error), dump: None }
}

impl ModulePass for PyPass {
    fn name(&self) -> &str {
        &self.name
    }

    fn opt_level(&self) -> u8 {
        self.opt_level
    }

    fn requires(&self) -> &[Arc<dyn ModulePass>] {
        &self.requires
    }

    fn is_user_defined(&self) -> bool {
        true
    }

    fn run(&self, module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        Python::attach(|py| {
            let running = RunningPass::begin(self.context.clone_ref(py), ctx);
            let result = self.call(py, module);
            drop(running);
            result.map_err(|e| pass_error(py, e, String::new()))
        })
    }
}
