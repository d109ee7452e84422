//! Passes that offload parts of a graph to external code generators, with patterns and generators written in Python.

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_ir::AttrValue;
use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::relax::{Expr, Function as IrFunction};
use pliant_opt::offload::byoc::backend_patterns::{
    FusionPattern, PatternCheck, get_pattern, patterns_with_prefix, register_patterns,
};
use pliant_opt::offload::byoc::code_generator_registry::{
    ExternalCodegen, ExternalFunction, Generated, TargetOptions, codegens, register_codegen,
};
use pliant_opt::offload::fuse_ops_by_pattern::FuseOpsByPattern;
use pliant_opt::offload::offload_rule::RuleInfo;
use pliant_opt::offload::rules::registered_patterns::pattern_rule;
use pliant_opt::offload::rules::{check_rule_name, register_rule, remove_rule, rules};
use pliant_opt::offload::run_codegen::RunCodegen;
use pliant_pass::{PassContext, PassError};
use pliant_vm::register_func;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{Error, Result};
use crate::ir_module::IRModule;
use crate::relax::classes::wrap;
use crate::relax::dpl::PatternNode;
use crate::relax::expr_accessors::in_func;
use crate::relax::function::Function;
use crate::relax::function_owner::FuncOwner;
use crate::relax::value_conversion::{attr_object, attr_value};
use crate::runtime::packed_functions::from_callable;
use crate::transform::python_pass::pass_error;
use crate::transform::rust_pass::CorePass;

/// A named pattern: `(name, pattern, {name: subpattern}, check)`.
type PatternSpec<'py> =
    (String, PyRef<'py, PatternNode>, Vec<(String, PyRef<'py, PatternNode>)>, Option<Py<PyAny>>);

fn fusion_pattern(spec: PatternSpec<'_>) -> FusionPattern {
    let (name, pattern, annotations, check) = spec;
    let mut out = FusionPattern::new(name, pattern.pattern.clone());
    for (name, part) in annotations {
        out = out.with_annotation(name, &part.pattern);
    }
    match check {
        Some(check) => out.with_check(move |found| run_check(&check, found)),
        None => out,
    }
}

/// Calls the Python check of a pattern with the details of a match: the matched value, its named subexpressions and
/// the bindings inside.
fn run_check(check: &Py<PyAny>, found: &mut PatternCheck<'_>) -> Result<bool, PassError> {
    Python::attach(|py| {
        let accepted = (|| -> Result<bool> {
            let owner = FuncOwner::of(found.func.clone());
            let view = |e: Expr| wrap(py, in_func(&owner, e));
            let parts = PyDict::new(py);
            for (name, pattern) in found.annotations {
                if let Some(e) = found.matched.get(pattern) {
                    parts.set_item(name, view(e)?)?;
                }
            }
            let bindings = PyDict::new(py);
            for b in found.members {
                bindings.set_item(view(found.func.var_expr(b.var))?, view(b.value)?)?;
            }
            Ok(check.bind(py).call1((view(found.root.value)?, parts, bindings))?.is_truthy()?)
        })();
        accepted.map_err(|e| pass_error(py, e.into(), String::new()))
    })
}

/// Creates the pass `FuseOpsByPattern` with patterns from Python.
#[pyfunction]
pub fn fuse_ops_by_pattern(
    patterns: Vec<Bound<'_, PyAny>>,
    bind_constants: bool,
    annotate_codegen: bool,
) -> Result<CorePass> {
    let mut list = Vec::new();
    for item in patterns {
        list.push(match item.cast::<PyString>() {
            Ok(name) => registered_pattern(&name.to_string())?,
            Err(_) => fusion_pattern(item.extract::<PatternSpec<'_>>()?),
        });
    }
    Ok(CorePass::of(FuseOpsByPattern { patterns: list, bind_constants, annotate_codegen }))
}

fn registered_pattern(name: &str) -> Result<FusionPattern> {
    get_pattern(name).ok_or_else(|| {
        let names: Vec<String> = patterns_with_prefix("").into_iter().map(|p| p.name).collect();
        let help =
            pliant_diag::spelling_suggestions::did_you_mean(name, names.iter().map(String::as_str));
        let help = help.map(|h| format!(" (help: {h})")).unwrap_or_default();
        Error::Value(format!("no fusion pattern is registered as '{name}'{help}"))
    })
}

/// Adds patterns to the global table of backend patterns.
#[pyfunction]
pub fn register_backend_patterns(patterns: Vec<PatternSpec<'_>>) {
    register_patterns(patterns.into_iter().map(fusion_pattern).collect());
}

/// Returns the names of the registered patterns that start with `prefix`, in the order in which
/// they are tried.
#[pyfunction]
pub fn backend_patterns(prefix: &str) -> Vec<String> {
    patterns_with_prefix(prefix).into_iter().map(|p| p.name).collect()
}

/// Creates the pass `RunCodegen` with options for the backends.
#[pyfunction]
pub fn run_codegen(
    target_options: &Bound<'_, PyDict>,
    entry_functions: Option<Vec<String>>,
) -> Result<CorePass> {
    let mut target_options_map: IndexMap<Arc<str>, TargetOptions> = IndexMap::new();
    for (backend, options) in target_options {
        let mut backend_options = TargetOptions::new();
        let options = options.cast::<PyDict>().map_err(|_| {
            Error::Type(
                "RunCodegen: target_options must map the name of each backend to a dict of its options".into(),
            )
        })?;
        for (key, value) in options {
            backend_options.insert(key.extract::<String>()?.into(), attr_value(&value)?);
        }
        target_options_map.insert(backend.extract::<String>()?.into(), backend_options);
    }
    Ok(CorePass::of(RunCodegen { target_options: target_options_map, entry_functions }))
}

/// A code generator written in Python. `generate(functions, options, module)` returns for each function the name of a
/// packed function or a callable.
struct PyCodegen(Py<PyAny>);

impl ExternalCodegen for PyCodegen {
    fn generate(
        &self,
        functions: &[ExternalFunction<'_>],
        options: &TargetOptions,
        _: &PassContext,
    ) -> Result<Vec<Generated>, PassError> {
        Python::attach(|py| {
            self.call(py, functions, options).map_err(|e| pass_error(py, e.into(), String::new()))
        })
    }
}

impl PyCodegen {
    fn call(
        &self,
        py: Python<'_>,
        functions: &[ExternalFunction<'_>],
        options: &TargetOptions,
    ) -> Result<Vec<Generated>> {
        let Some(first) = functions.first() else { return Ok(Vec::new()) };
        let list = PyList::empty(py);
        for f in functions {
            let mut func: IrFunction = (*f.func).clone();
            func.attrs.insert(GLOBAL_SYMBOL.into(), AttrValue::str(&f.name));
            list.append(Function::named(py, Arc::new(func), &f.name)?)?;
        }
        let dict = PyDict::new(py);
        for (key, value) in options {
            dict.set_item(&**key, attr_object(py, value)?)?;
        }
        let module = Bound::new(py, IRModule::wrap(first.module.clone()))?;
        let returned = self.0.bind(py).call1((list, dict, module))?;
        let returned: Vec<Bound<'_, PyAny>> = returned.try_iter()?.collect::<PyResult<_>>()?;
        returned
            .into_iter()
            .zip(functions)
            .map(|(item, f)| register_kernel(&item, &f.name))
            .collect()
    }
}

/// Returns the packed function for an item that a code generator returned: a registered function
/// given by name, or a callable, which is registered under a new name.
fn register_kernel(item: &Bound<'_, PyAny>, name: &str) -> Result<Generated> {
    if let Ok(symbol) = item.cast::<PyString>() {
        return Ok(Generated::symbol(symbol.to_string()));
    }
    if !item.is_callable() {
        return Err(Error::Type(format!(
            "each kernel that a code generator returns must be a callable or the name of a packed function, not {}",
            item.get_type().name()?
        )));
    }
    // Programs from several modules may coexist, so each function gets a unique name.
    let func = from_callable(item.clone().unbind());
    let symbol = (0u64..)
        .map(|i| if i == 0 { name.to_string() } else { format!("{name}_{i}") })
        .find(|symbol| register_func(symbol, func.clone(), false));
    Ok(Generated::symbol(symbol.unwrap_or_default()))
}

/// Registers the code generator of a backend.
#[pyfunction]
pub fn register_backend_codegen(name: &str, generate: Py<PyAny>) {
    // The previous generator is a Python object, so it must be dropped with the GIL held.
    drop(register_codegen(name, Arc::new(PyCodegen(generate))));
}

/// Returns the names of the backends with code generators.
#[pyfunction]
pub fn backend_codegens() -> Vec<String> {
    codegens()
}

/// Adds an offload rule: matches of a pattern become calls of a packed function, given by name or as a callable. The
/// packed function takes the expressions that `inputs` matched and the memory of the result.
#[pyfunction]
pub fn register_offload_rule(
    row: PatternSpec<'_>,
    inputs: Vec<PyRef<'_, PatternNode>>,
    kernel: &Bound<'_, PyAny>,
    doc: String,
) -> Result<()> {
    let pattern = fusion_pattern(row);
    let inputs: Vec<_> = inputs.iter().map(|node| node.pattern.clone()).collect();
    let rule = |symbol: String| {
        pattern_rule(pattern.clone(), inputs.clone(), symbol, doc.clone()).map_err(Error::Value)
    };
    // The function is only registered if the rule is valid.
    check_rule_name(&pattern.name).map_err(Error::Value)?;
    rule(pattern.name.clone())?;
    let symbol = register_kernel(kernel, &pattern.name)?.symbol;
    register_rule(rule(symbol)?).map(drop).map_err(Error::Value)
}

/// Removes a registered offload rule. Returns whether a rule had that name.
#[pyfunction]
pub fn remove_offload_rule(name: &str) -> bool {
    remove_rule(name).is_some()
}

/// Returns the offload rules in the order in which they are tried: name, pass, kernel, and the description of each rule.
#[pyfunction]
pub fn offload_rules() -> Vec<(String, &'static str, String, String)> {
    let text = |text: &str| text.to_string();
    let row = |rule: RuleInfo| {
        (
            text(&rule.name),
            rule.stage.pass(),
            text(rule.kernel.as_deref().unwrap_or_default()),
            text(&rule.doc),
        )
    };
    rules().into_iter().map(row).collect()
}
