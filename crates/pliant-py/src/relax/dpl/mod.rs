//! The dataflow pattern language in Python: [`PatternNode`], matching and rewriting.
//!
//! The Python class `DFPattern` holds a [`PatternNode`] and defines the public names. The arguments
//! and results of callbacks are views of the function that is being rewritten.

mod context;
mod pattern;
mod rewrite;

pub use context::{pattern_match_block, pattern_rewrite_bindings};
pub use pattern::PatternNode;
pub use rewrite::{TemplateRule, pattern_rewrite_calls};

use std::sync::Arc;

use pliant_ir::relax::{Expr, ExprData, Var};
use pliant_pass::PassError;
use pliant_pass::pattern::Match;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::wrap;
use crate::relax::convert::needed;
use crate::relax::home::Home;
use crate::relax::views::in_func;

/// The result of a match as a list of pairs of pattern and expression.
pub(super) fn pairs<'py>(
    py: Python<'py>,
    home: &Arc<Home>,
    found: &Match,
) -> Result<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (pattern, e) in found.iter() {
        let key = Bound::new(py, PatternNode { pattern: pattern.clone() })?;
        list.append(PyTuple::new(py, [key.into_any(), wrap(py, in_func(home, e))?])?)?;
    }
    Ok(list)
}

/// An error of the pattern language as a `ValueError`, if the user caused it.
pub(super) fn user(error: PassError) -> Error {
    match error {
        PassError::User(_) => Error::Value(error.to_string()),
        other => other.into(),
    }
}

/// The variable of a home that a Python expression refers to.
pub(super) fn variable(home: &Arc<Home>, obj: &Bound<'_, PyAny>) -> Result<Var> {
    let node = needed(obj)?;
    let mut state = home.lock();
    let e: Expr = state.lower(&node)?;
    match state.func().map(|f| f.expr(e)) {
        Some(ExprData::Var(v)) => Ok(*v),
        _ => Err(Error::Type("a replaced value is named by its relax.Var".into())),
    }
}
