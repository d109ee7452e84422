//! Rewriting with Python callbacks for each match, and with templates.

use std::sync::Arc;

use pliant_diag::codes;
use pliant_ir::relax::verify::verify_function;
use pliant_ir::relax::{Binding, Expr, Function as IrFunction};
use pliant_pass::MayWrite;
use pliant_pass::pattern::template::{Template, rewrite_templates};
use pliant_pass::pattern::{Match, Replacement, Rewriter, RuleSet};
use pyo3::prelude::*;

use super::{PatternNode, pairs, user};
use crate::enter::{enter, guard};
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::relax::classes::wrap;
use crate::relax::convert::needed;
use crate::relax::function::{Function, home_of, ir_function};
use crate::relax::home::Home;
use crate::relax::node::NodeRef;
use crate::relax::views::in_func;

/// Emits a replacement expression. Returns the bindings that it needs and its value.
fn emitted(home: &Arc<Home>, node: &NodeRef, dataflow: bool) -> Result<(Vec<Binding>, Expr)> {
    let mut state = home.lock();
    state.builder()?.begin_block(dataflow);
    let value = state.lower(node);
    let blocks = state.builder()?.end_blocks();
    let func = state.parts()?.0;
    let mut bindings = Vec::new();
    for block in blocks {
        bindings.append(&mut func.block_mut(block).bindings);
    }
    Ok((bindings, value?))
}

/// The function that a home holds after rewriting.
pub(super) fn sealed<'py>(
    py: Python<'py>,
    home: &Arc<Home>,
    old: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let func = {
        let mut state = home.lock();
        state.seal();
        state.finished().cloned()
    };
    let func = func.ok_or_else(|| Error::Internal("the function was just finished".into()))?;
    home.enter();
    named(py, func, old)
}

fn named<'py>(
    py: Python<'py>,
    func: Arc<IrFunction>,
    old: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let old = old.cast::<Function>().ok().map(|f| f.get());
    let name = old.and_then(Function::given_name).unwrap_or_else(|| "main".into());
    let new = Function::named(py, func, &name)?;
    if let Some(module) = old.and_then(|old| old.module(py)) {
        new.get().taken_from(&module);
    }
    Ok(new.into_any())
}

/// The functions known to work in place: those of the module that contains this function.
pub(super) fn writers(
    func: &Bound<'_, PyAny>,
    module: Option<&Bound<'_, IRModule>>,
) -> Option<MayWrite> {
    let own = func.cast::<Function>().ok().and_then(|f| f.get().module(func.py()));
    let module = module.or(own.as_ref())?.get().snapshot();
    Some(MayWrite::of(&module))
}

/// Replaces matches of patterns in a function with the results of `callback(rule, expr, pairs)`
/// until nothing matches. A result that is the expression itself or `None` leaves the match
/// unchanged. `module` is the module that contains the function. It is needed only if the function
/// was not taken from that module.
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
    let rules = RuleSet::new(patterns.iter().map(|p| p.pattern.clone()), ops).map_err(user)?;
    let home = home_of(&needed(func)?)?.derive()?;
    let mut rewriting = guard(|| {
        let writers = writers(func, module);
        let mut state = home.lock();
        Ok(Rewriter::new(state.parts()?.0, &rules, ops, writers.as_ref()))
    })?;
    loop {
        let next = guard(|| {
            let mut state = home.lock();
            let func = state.parts()?.0;
            let found = rewriting.next(func);
            let dataflow = rewriting.in_dataflow(func);
            Ok(found.map(|found| (found, dataflow)))
        })?;
        let Some((found, dataflow)) = next else { break };
        let root = rewriting.current().map(|b| b.value);
        let root = root.ok_or_else(|| Error::Internal("a match has a binding".into()))?;
        let expr = wrap(py, in_func(&home, root))?;
        let made = callback.call1((found.rule, &expr, pairs(py, &home, &found)?))?;
        if made.is_none() || made.is(&expr) {
            continue;
        }
        let node = needed(&made)?;
        guard(|| answer(&home, &mut rewriting, &found, &node, dataflow))?;
        py.check_signals()?;
    }
    let count = guard(|| {
        let mut state = home.lock();
        rewriting.finish(state.parts()?.0).map_err(user)
    })?;
    if count == 0 {
        return Ok(func.clone());
    }
    let new = sealed(py, &home, func)?;
    whole(&new)?;
    Ok(new)
}

/// Rejects a rewritten function that uses a variable outside its scope.
fn whole(func: &Bound<'_, PyAny>) -> Result<()> {
    let func = ir_function(&needed(func)?)?;
    let problems = verify_function(&func, None, pliant_ops::registry());
    match problems.iter().find(|p| p.code == codes::PL0203) {
        Some(problem) => {
            let text =
                format!("what the callback of rewrite_call gave cannot stand there: {problem}");
            Err(Error::Value(text))
        }
        None => Ok(()),
    }
}

fn answer(
    home: &Arc<Home>,
    rewriting: &mut Rewriter<'_>,
    found: &Match,
    node: &NodeRef,
    dataflow: bool,
) -> Result<()> {
    let (bindings, value) = emitted(home, node, dataflow)?;
    let mut state = home.lock();
    let func = state.parts()?.0;
    rewriting.replace(func, found, Replacement { bindings, value }).map_err(user)?;
    Ok(())
}

/// A rewrite rule that is given by two functions: a pattern and a replacement.
#[pyclass(frozen, module = "pliant.relax.dpl")]
pub struct TemplateRule(Template);

#[pymethods]
impl TemplateRule {
    #[new]
    fn new(pattern: &Bound<'_, PyAny>, replacement: &Bound<'_, PyAny>) -> Result<Self> {
        let (pattern, replacement) =
            (ir_function(&needed(pattern)?)?, ir_function(&needed(replacement)?)?);
        let template = guard(|| Template::new(&pattern, replacement).map_err(user))?;
        Ok(TemplateRule(template))
    }

    /// The pattern of the rule.
    #[getter]
    fn pattern(&self) -> PatternNode {
        PatternNode { pattern: self.0.pattern.clone() }
    }

    /// Applies rules to a function until none matches. `module` is the module that contains the
    /// function. It is needed only if the function was not taken from that module.
    #[staticmethod]
    #[pyo3(signature = (rules, func, module=None))]
    fn apply<'py>(
        rules: Vec<PyRef<'py, TemplateRule>>,
        func: &Bound<'py, PyAny>,
        module: Option<&Bound<'py, IRModule>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = func.py();
        let templates: Vec<Template> = rules.iter().map(|r| r.0.clone()).collect();
        let mut new = (*ir_function(&needed(func)?)?).clone();
        let writers = guard(|| Ok(writers(func, module)))?;
        let (count, new) = enter(py, || {
            let ops = pliant_ops::registry();
            let count = rewrite_templates(&mut new, &templates, ops, writers.as_ref());
            Ok((count.map_err(user)?, new))
        })?;
        if count == 0 { Ok(func.clone()) } else { named(py, Arc::new(new), func) }
    }
}
