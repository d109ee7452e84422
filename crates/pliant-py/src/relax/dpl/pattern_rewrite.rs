//! Rewrites functions with a Python callback for each match of a pattern, and with pairs of a pattern and a
//! replacement.

use std::sync::Arc;

use pliant_diag::error_codes;
use pliant_ir::relax::verify::verify_function;
use pliant_ir::relax::{Binding, Expr, Function as IrFunction};
use pliant_pass::MayWrite;
use pliant_pass::pattern::rewrite_templates::{Template, rewrite_templates};
use pliant_pass::pattern::{Match, Replacement, Rewriter, RuleSet};
use pyo3::prelude::*;

use super::{PatternNode, pairs, user_error};
use crate::error::{Error, Result};
use crate::gil_and_panics::{catch_panic, run_detached};
use crate::ir_module::IRModule;
use crate::relax::classes::wrap;
use crate::relax::detached_expr::NodeRef;
use crate::relax::expr_accessors::in_func;
use crate::relax::function::{Function, ir_function, owner_of};
use crate::relax::function_owner::FuncOwner;
use crate::relax::value_conversion::required_operand;

/// Emits a replacement expression. Returns the bindings that it needs and its value.
fn emit_replacement(
    owner: &Arc<FuncOwner>,
    node: &NodeRef,
    dataflow: bool,
) -> Result<(Vec<Binding>, Expr)> {
    let mut state = owner.lock();
    state.builder()?.begin_block(dataflow);
    let value = state.lower(node);
    let blocks = state.builder()?.end_blocks();
    let func = state.func_and_vars()?.0;
    let mut bindings = Vec::new();
    for block in blocks {
        bindings.append(&mut func.block_mut(block).bindings);
    }
    Ok((bindings, value?))
}

/// Ends the rewriting of the function that `owner` holds. Returns the result as a Python object with the name and module of
/// `old`.
pub(super) fn finished_rewrite<'py>(
    py: Python<'py>,
    owner: &Arc<FuncOwner>,
    old: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let func = {
        let mut state = owner.lock();
        state.finish_rewrite();
        state.finished().cloned()
    };
    let func = func.ok_or_else(|| {
        Error::Internal(
            "the rewrite has no result, because the new function was abandoned (this is a bug in Pliant; please report it)"
                .into(),
        )
    })?;
    owner.register();
    with_name_of(py, func, old)
}

fn with_name_of<'py>(
    py: Python<'py>,
    func: Arc<IrFunction>,
    old: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let old = old.cast::<Function>().ok().map(|f| f.get());
    let name = old.and_then(Function::known_name).unwrap_or_else(|| "main".into());
    let new = Function::named(py, func, &name)?;
    if let Some(module) = old.and_then(|old| old.module(py)) {
        new.get().set_module(&module);
    }
    Ok(new.into_any())
}

/// Returns the functions that may write to their arguments, in the module that contains `func`: `module`, or else the module from
/// which `func` was taken. Returns `None` if neither is known.
pub(super) fn may_write(
    func: &Bound<'_, PyAny>,
    module: Option<&Bound<'_, IRModule>>,
) -> Option<MayWrite> {
    let own_module = func.cast::<Function>().ok().and_then(|f| f.get().module(func.py()));
    let module = module.or(own_module.as_ref())?.get().snapshot();
    Some(MayWrite::of(&module))
}

/// The name, in error messages, of the argument that must be a function to be rewritten.
const REWRITTEN: &str = "the argument of a rewriter";

/// Replaces matches of patterns in a function with the results of `callback(rule, expr, pairs)` until nothing matches.
/// A result that is the expression itself or `None` leaves the match unchanged. `module` is the module that contains
/// the function. It is needed only if the function was not taken from that module.
#[pyfunction]
#[pyo3(signature = (patterns, callback, func, module=None))]
pub fn pattern_rewrite_calls<'py>(
    patterns: Vec<PyRef<'py, PatternNode>>,
    callback: &Bound<'py, PyAny>,
    func: &Bound<'py, PyAny>,
    module: Option<&Bound<'py, IRModule>>,
) -> Result<Bound<'py, PyAny>> {
    let py = callback.py();
    let ops = pliant_ops::registry();
    let rules =
        RuleSet::new(patterns.iter().map(|p| p.pattern.clone()), ops).map_err(user_error)?;
    let owner = owner_of(&required_operand(func)?, REWRITTEN)?.derive()?;
    let mut rewriter = catch_panic(|| {
        let may_write = may_write(func, module);
        let mut state = owner.lock();
        Ok(Rewriter::new(state.func_and_vars()?.0, &rules, ops, may_write.as_ref()))
    })?;
    loop {
        let next = catch_panic(|| {
            let mut state = owner.lock();
            let func = state.func_and_vars()?.0;
            let found = rewriter.next(func);
            let dataflow = rewriter.in_dataflow(func);
            Ok(found.map(|found| (found, dataflow)))
        })?;
        let Some((found, dataflow)) = next else { break };
        let root = rewriter.current().map(|b| b.value);
        let root = root.ok_or_else(|| {
            Error::Internal("a rewrite rule matched an expression that is not bound to a variable (this is a bug in Pliant)".into())
        })?;
        let expr = wrap(py, in_func(&owner, root))?;
        let returned = callback.call1((found.rule, &expr, pairs(py, &owner, &found)?))?;
        if returned.is_none() || returned.is(&expr) {
            continue;
        }
        let node = required_operand(&returned)?;
        catch_panic(|| apply_replacement(&owner, &mut rewriter, &found, &node, dataflow))?;
        py.check_signals()?;
    }
    let count = catch_panic(|| {
        let mut state = owner.lock();
        rewriter.finish(state.func_and_vars()?.0).map_err(user_error)
    })?;
    if count == 0 {
        return Ok(func.clone());
    }
    let new = finished_rewrite(py, &owner, func)?;
    check_scopes(&new)?;
    Ok(new)
}

/// Rejects a rewritten function that uses a variable outside its scope.
fn check_scopes(func: &Bound<'_, PyAny>) -> Result<()> {
    let func = ir_function(&required_operand(func)?, "the rewritten function")?;
    let problems = verify_function(&func, None, pliant_ops::registry());
    match problems.iter().find(|p| p.code == error_codes::PL0203) {
        Some(problem) => {
            let text = format!(
                "the expression that the callback of rewrite_call returned is invalid at this position: {problem}"
            );
            Err(Error::Value(text))
        }
        None => Ok(()),
    }
}

fn apply_replacement(
    owner: &Arc<FuncOwner>,
    rewriter: &mut Rewriter<'_>,
    found: &Match,
    node: &NodeRef,
    dataflow: bool,
) -> Result<()> {
    let (bindings, value) = emit_replacement(owner, node, dataflow)?;
    let mut state = owner.lock();
    let func = state.func_and_vars()?.0;
    rewriter.replace(func, found, Replacement { bindings, value }).map_err(user_error)?;
    Ok(())
}

/// A rewrite rule given by two functions: the body of the first is the pattern, and the body of the second is the replacement.
#[pyclass(frozen, module = "pliant.relax.dpl")]
pub struct TemplateRule(Template);

#[pymethods]
impl TemplateRule {
    #[new]
    fn new(pattern: &Bound<'_, PyAny>, replacement: &Bound<'_, PyAny>) -> Result<Self> {
        let (pattern, replacement) = (
            ir_function(&required_operand(pattern)?, "the function pattern of a rewriter")?,
            ir_function(&required_operand(replacement)?, "the function replacement of a rewriter")?,
        );
        let template = catch_panic(|| Template::new(&pattern, replacement).map_err(user_error))?;
        Ok(TemplateRule(template))
    }

    /// Returns the pattern of the rule.
    #[getter]
    fn pattern(&self) -> PatternNode {
        PatternNode { pattern: self.0.pattern.clone() }
    }

    /// Applies rules to a function until none matches. `module` is the module that contains the function. It is needed
    /// only if the function was not taken from that module.
    #[staticmethod]
    #[pyo3(signature = (rules, func, module=None))]
    fn apply<'py>(
        rules: Vec<PyRef<'py, TemplateRule>>,
        func: &Bound<'py, PyAny>,
        module: Option<&Bound<'py, IRModule>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = func.py();
        let templates: Vec<Template> = rules.iter().map(|r| r.0.clone()).collect();
        let mut new = (*ir_function(&required_operand(func)?, REWRITTEN)?).clone();
        let may_write = catch_panic(|| Ok(may_write(func, module)))?;
        let (count, new) = run_detached(py, || {
            let ops = pliant_ops::registry();
            let count = rewrite_templates(&mut new, &templates, ops, may_write.as_ref());
            Ok((count.map_err(user_error)?, new))
        })?;
        if count == 0 { Ok(func.clone()) } else { with_name_of(py, Arc::new(new), func) }
    }
}
