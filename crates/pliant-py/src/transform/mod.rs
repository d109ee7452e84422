//! Passes in Python: those of the tables by name, the user's own, sequences of both, and what runs them.
//!
//! Every run, of a pass alone or of a compilation, goes through `ModulePass::apply`: it alone skips, watches, verifies
//! and tells failures. A pass written in Python is a [`PyPass`](py_pass::PyPass) there, an instrument written in
//! Python a [`PyInstrument`](instrument::PyInstrument).

pub mod byoc;
pub mod context;
pub mod core_pass;
pub mod fusion;
pub mod graph_passes;
pub mod instrument;
pub mod param_value;
pub mod py_pass;

use pliant_pass::config;
use pyo3::prelude::*;

use crate::enter::enter;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::runtime::interrupt::Compiling;

/// Runs a pass on a module under a context: watched and verified as the context says. Its level and the names that are
/// disabled choose among the passes of a sequence only.
#[pyfunction]
pub fn apply_pass(
    one: &Bound<'_, PyAny>,
    module: &Bound<'_, PyAny>,
    context: &Bound<'_, PyAny>,
) -> Result<IRModule> {
    let py = one.py();
    let (module, homes) = match module.cast::<IRModule>() {
        Ok(module) => (module.get().snapshot(), module.get().homes().clone()),
        Err(_) => {
            return Err(Error::Type(format!(
                "a pass takes an IRModule, not {} (help: IRModule.from_expr(func) makes a module of a function)",
                module.get_type().name()?
            )));
        }
    };
    let pass = py_pass::to_pass(one, context)?;
    let ctx = context::of(context)?;
    let module = enter(py, || {
        let _compiling = Compiling::begin();
        Ok(pass.apply(module, &ctx)?)
    })?;
    // Functions that the pass left alone stay the same objects.
    Ok(IRModule::with_homes(module, homes))
}

/// The passes and pipelines by name: name, other names, what it does, and what it works on.
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

/// What to tell of a name that no pass or pipeline has; `None` for one that there is.
#[pyfunction]
pub fn unknown_pass(name: &str) -> Option<String> {
    pliant::unknown_pass(name)
}

/// The settings that a context takes: name, the values' type, what it does.
#[pyfunction]
pub fn config_table() -> Vec<(String, String, String)> {
    config::keys().into_iter().map(|k| (k.name, k.kind.name().to_string(), k.doc)).collect()
}

/// Registers a setting for passes of one's own.
#[pyfunction]
pub fn register_config(name: String, kind: &str, doc: String) -> Result<()> {
    let Some(kind) = config::ConfigKind::parse(kind) else {
        return Err(Error::Value(format!(
            "there is no type '{kind}' of settings (there are: bool, int, str, any)"
        )));
    };
    config::register(config::ConfigKey { name, kind, doc }).map_err(Error::Value)
}

/// Raises `ValueError` for a setting that does not exist or does not take the value.
#[pyfunction]
pub fn check_config(name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
    let value = crate::relax::convert::attr_value(value)?;
    config::check(name, &value).map_err(Error::Value)
}
