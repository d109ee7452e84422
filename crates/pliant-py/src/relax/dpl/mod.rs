//! The dataflow pattern language in Python: [`PatternNode`], matching and rewriting.
//!
//! The Python class `DFPattern` holds a [`PatternNode`] and defines the public names. The arguments and results of callbacks are
//! Python views of parts of the function that is being rewritten.

mod pattern;
mod pattern_context;
mod pattern_rewrite;

pub use pattern::PatternNode;
pub use pattern_context::{pattern_match_block, pattern_rewrite_bindings};
pub use pattern_rewrite::{TemplateRule, pattern_rewrite_calls};

use std::sync::Arc;

use pliant_ir::relax::{Expr, ExprData, Var};
use pliant_pass::PassError;
use pliant_pass::pattern::Match;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::wrap;
use crate::relax::expr_accessors::in_func;
use crate::relax::function_owner::FuncOwner;
use crate::relax::value_conversion::required_operand;

/// Converts the result of a pattern match to a Python list of pairs. Each pair is a pattern and the expression that it matched.
pub(super) fn pairs<'py>(
    py: Python<'py>,
    owner: &Arc<FuncOwner>,
    found: &Match,
) -> Result<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (pattern, e) in found.iter() {
        let key = Bound::new(py, PatternNode { pattern: pattern.clone() })?;
        list.append(PyTuple::new(py, [key.into_any(), wrap(py, in_func(owner, e))?])?)?;
    }
    Ok(list)
}

/// Converts an error of the pattern language that the user caused into a `ValueError`.
pub(super) fn user_error(error: PassError) -> Error {
    match error {
        PassError::User(_) => Error::Value(error.to_string()),
        other => other.into(),
    }
}

/// Returns the variable to which a Python expression refers, in the function that `owner` holds. A callback returns such
/// expressions to name the variables to be replaced.
pub(super) fn replaced_var(owner: &Arc<FuncOwner>, obj: &Bound<'_, PyAny>) -> Result<Var> {
    let node = required_operand(obj)?;
    let mut state = owner.lock();
    let e: Expr = state.lower(&node)?;
    match state.func().map(|f| f.expr(e)) {
        Some(ExprData::Var(v)) => Ok(*v),
        _ => Err(Error::Type(
            "the keys of the dict that the rewriter returns must be relax.Var objects of the function".into(),
        )),
    }
}
