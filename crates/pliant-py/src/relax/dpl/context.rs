//! Contexts: several patterns with use constraints between them.

use std::sync::Arc;

use pliant_ir::relax::{Block, Var};
use pliant_pass::pattern::PatternContext;
use pliant_pass::pattern::block::{
    BlockMatches, BlockReplacement, dataflow_blocks, max_rewrites, nontermination_error,
    replace_in_block,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashSet;

use super::rewrite::{sealed, writers};
use super::{PatternNode, pairs, user, variable};
use crate::enter::guard;
use crate::error::{Error, Result};
use crate::relax::blocks::BindingBlock;
use crate::relax::classes::wrap;
use crate::relax::convert::needed;
use crate::relax::function::home_of;
use crate::relax::home::Home;
use crate::relax::node::{Node, NodeRef};
use crate::relax::seq::BlockNode;
use crate::relax::views::in_func;

type Edges<'py> = Vec<(PyRef<'py, PatternNode>, PyRef<'py, PatternNode>, i64, bool)>;

fn context(
    patterns: &[PyRef<'_, PatternNode>],
    edges: &Edges<'_>,
    same_shape: &[Vec<PyRef<'_, PatternNode>>],
) -> Result<PatternContext> {
    let mut ctx = PatternContext::new();
    for p in patterns {
        ctx.add(&p.pattern);
    }
    for (def, user, index, only) in edges {
        ctx.used_by(&def.pattern, &user.pattern, u32::try_from(*index).ok(), *only);
    }
    for list in same_shape {
        ctx.same_shape(list.iter().map(|p| p.pattern.clone()));
    }
    ctx.check(pliant_ops::registry()).map_err(user)?;
    Ok(ctx)
}

/// Matches a context in a dataflow block. Returns pairs of pattern and expression, or `None` if
/// there is no match.
#[pyfunction]
pub fn pattern_match_block<'py>(
    patterns: Vec<PyRef<'py, PatternNode>>,
    edges: Edges<'py>,
    same_shape: Vec<Vec<PyRef<'py, PatternNode>>>,
    block: &Bound<'py, BindingBlock>,
) -> Result<Option<Bound<'py, PyList>>> {
    let ctx = context(&patterns, &edges, &same_shape)?;
    let BlockNode::In(home, id) = block.get().block.get() else {
        return Err(Error::Value(
            "the block is of no function (help: take it from func.body.blocks)".into(),
        ));
    };
    let found = guard(|| {
        let state = home.lock();
        let Some(func) = state.func() else { return Ok(None) };
        Ok(ctx.match_block(func, *id, pliant_ops::registry(), &FxHashSet::default()))
    })?;
    found.map(|found| pairs(block.py(), home, &found)).transpose()
}

/// Replaces matches of a context in the dataflow blocks of a function. `callback(pairs, bindings)`
/// returns a dict from variables to their new values. An empty dict or `None` leaves the match
/// unchanged.
#[pyfunction]
pub fn pattern_rewrite_bindings<'py>(
    patterns: Vec<PyRef<'py, PatternNode>>,
    edges: Edges<'py>,
    same_shape: Vec<Vec<PyRef<'py, PatternNode>>>,
    callback: &Bound<'py, PyAny>,
    func: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let py = callback.py();
    let ctx = context(&patterns, &edges, &same_shape)?;
    let home = home_of(&needed(func)?)?.derive()?;
    let blocks = guard(|| Ok(dataflow_blocks(home.lock().parts()?.0)))?;
    let ops = pliant_ops::registry();
    let writers = guard(|| Ok(writers(func, None)))?;
    let mut count = 0;
    for block in blocks {
        let limit = count + guard(|| Ok(max_rewrites(home.lock().parts()?.0, block)))?;
        let mut leave = FxHashSet::default();
        loop {
            let mut matches = guard(|| {
                let mut state = home.lock();
                Ok(BlockMatches::new(state.parts()?.0, &ctx, block, ops, writers.as_ref()))
            })?;
            let values = block_values(py, &home, block)?;
            let mut with = Vec::new();
            while let Some(found) = guard(|| Ok(matches.next(home.lock().parts()?.0, &mut leave)))?
            {
                with.extend(answer(&home, callback, &pairs(py, &home, &found)?, &values)?);
                py.check_signals()?;
            }
            if with.is_empty() {
                break;
            }
            count += with.len();
            guard(|| {
                let mut state = home.lock();
                replace_in_block(state.parts()?.0, block, with, ops).map_err(user)
            })?;
            if count > limit {
                return Err(user(nontermination_error(count)));
            }
        }
    }
    if count == 0 { Ok(func.clone()) } else { sealed(py, &home, func) }
}

/// The replacement that the callback returns for a match, or `None` if it leaves the match
/// unchanged.
fn answer(
    home: &Arc<Home>,
    callback: &Bound<'_, PyAny>,
    found: &Bound<'_, PyList>,
    values: &Bound<'_, PyDict>,
) -> Result<Option<BlockReplacement>> {
    let made = callback.call1((found, values))?;
    if made.is_none() {
        return Ok(None);
    }
    let made = made.cast::<PyDict>().map_err(|_| {
        Error::Type("the rewriter returns a dict from variables to expressions".into())
    })?;
    if made.is_empty() { Ok(None) } else { replacement(home, made).map(Some) }
}

/// The values of the variables of a block.
fn block_values<'py>(
    py: Python<'py>,
    home: &Arc<Home>,
    block: Block,
) -> Result<Bound<'py, PyDict>> {
    let bindings = guard(|| {
        let mut state = home.lock();
        let func = state.parts()?.0;
        let list = func.block(block).bindings.clone();
        Ok(list.into_iter().map(|b| (func.var_expr(b.var), b.value)).collect::<Vec<_>>())
    })?;
    let dict = PyDict::new(py);
    for (var, value) in bindings {
        dict.set_item(wrap(py, in_func(home, var))?, wrap(py, in_func(home, value))?)?;
    }
    Ok(dict)
}

/// Converts a dict from variables to expressions to a replacement. Shared subexpressions are
/// computed once.
fn replacement(home: &Arc<Home>, made: &Bound<'_, PyDict>) -> Result<BlockReplacement> {
    let mut vars: Vec<Var> = Vec::new();
    let mut values: Vec<NodeRef> = Vec::new();
    for (var, value) in made {
        vars.push(variable(home, &var)?);
        values.push(needed(&value)?);
    }
    let all = NodeRef::new(Node::Tuple(values));
    guard(|| {
        let mut state = home.lock();
        state.builder()?.begin_block(true);
        let tuple = state.lower(&all);
        let blocks = state.builder()?.end_blocks();
        let tuple = tuple?;
        let func = state.parts()?.0;
        let mut with = BlockReplacement::default();
        for block in blocks {
            with.bindings.append(&mut func.block_mut(block).bindings);
        }
        let fields = func.tuple_fields(tuple).map(<[_]>::to_vec).unwrap_or_default();
        with.values = vars.into_iter().zip(fields).collect();
        Ok(with)
    })
}
