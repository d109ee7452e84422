//! Passes in Python: built-in passes by name, user-defined passes, sequences of both, and the functions that run them.
//!
//! Every run, of a single pass or of a compilation, goes through `ModulePass::apply`. Only this function skips passes,
//! calls instruments, verifies modules and reports failures. A pass written in Python is a [`PyPass`](python_pass::PyPass),
//! and an instrument written in Python is a [`PyInstrument`](instrument::PyInstrument).

pub mod external_codegen;
pub mod fuse_and_legalize;
pub mod graph_passes;
pub mod instrument;
pub mod param_value;
pub mod pass_context;
pub mod python_pass;
pub mod rust_pass;

use pliant_pass::pass_settings;
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::ir_module::IRModule;
use crate::runtime::ctrl_c_interrupts::CompileGuard;

/// Runs a pass on a module with the instruments and verification of a context. The optimization level and the disabled passes of
/// the context affect only passes that run as part of a sequence.
#[pyfunction]
pub fn apply_pass(
    one: &Bound<'_, PyAny>,
    module: &Bound<'_, PyAny>,
    context: &Bound<'_, PyAny>,
) -> Result<IRModule> {
    let py = one.py();
    let (module, owners) = match module.cast::<IRModule>() {
        Ok(module) => {
            module.get().check_complete()?;
            (module.get().snapshot(), module.get().owners().clone())
        }
        Err(_) => {
            return Err(Error::Type(format!(
                "a pass takes an IRModule, not {} (help: IRModule.from_expr(func) creates a module from a function)",
                module.get_type().name()?
            )));
        }
    };
    let pass = python_pass::to_pass(one, context)?;
    let ctx = pass_context::to_pass_context(context)?;
    let module = run_detached(py, || {
        let _compiling = CompileGuard::begin();
        Ok(pass.apply(module, &ctx)?)
    })?;
    // Functions that the pass did not change stay the same Python objects.
    Ok(IRModule::with_owners(module, owners))
}

/// Returns the passes and pipelines: name, aliases, description, and level (`graph`, `loop`, `pipeline` or `user`).
#[pyfunction]
pub fn pass_table() -> Vec<(&'static str, Vec<&'static str>, &'static str, &'static str)> {
    let level = |level| match level {
        pliant::PassLevel::Graph => "graph",
        pliant::PassLevel::Loop => "loop",
        pliant::PassLevel::Pipeline => "pipeline",
        pliant::PassLevel::User => "user",
    };
    let aliases = |name| pliant_opt::passes::find(name).map_or(&[][..], |p| p.aliases).to_vec();
    pliant::pass_list()
        .into_iter()
        .map(|p| (p.name, aliases(p.name), p.doc, level(p.level)))
        .collect()
}

/// Returns the error message for a name that is not a pass or pipeline; `None` for a known name.
#[pyfunction]
pub fn unknown_pass(name: &str) -> Option<String> {
    pliant::unknown_pass(name)
}

/// Returns the available settings of pass contexts: name, type of the values, and description of each.
#[pyfunction]
pub fn config_table() -> Vec<(String, String, String)> {
    pass_settings::keys().into_iter().map(|k| (k.name, k.kind.name().to_string(), k.doc)).collect()
}

/// Registers a setting of the pass context for user-defined passes.
#[pyfunction]
pub fn register_config(name: String, kind: &str, doc: String) -> Result<()> {
    let Some(kind) = pass_settings::ConfigKind::parse(kind) else {
        return Err(Error::Value(format!(
            "the type of a pass setting must be bool, int, str or any, not '{kind}'"
        )));
    };
    pass_settings::register(pass_settings::ConfigKey { name, kind, doc }).map_err(Error::Value)
}

/// Raises `ValueError` if a setting of the pass context does not exist or does not accept the value.
#[pyfunction]
pub fn check_config(name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
    let value = crate::relax::value_conversion::attr_value(value)?;
    pass_settings::check(name, &value).map_err(Error::Value)
}
