//! Pattern contexts: several patterns that are matched together, with constraints on which pattern uses the value of which other
//! pattern.

use std::sync::Arc;

use pliant_ir::relax::{Block, Var};
use pliant_pass::pattern::PatternContext;
use pliant_pass::pattern::rewrite_dataflow_blocks::{
    BlockMatches, BlockReplacement, dataflow_blocks, max_rewrites, nontermination_error,
    replace_in_block,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashSet;

use super::pattern_rewrite::{finished_rewrite, may_write};
use super::{PatternNode, pairs, replaced_var, user_error};
use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::binding_blocks::BindingBlock;
use crate::relax::classes::wrap;
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::detached_functions::BlockNode;
use crate::relax::expr_accessors::in_func;
use crate::relax::function::owner_of;
use crate::relax::function_owner::FuncOwner;
use crate::relax::value_conversion::required_operand;

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
    ctx.check(pliant_ops::registry()).map_err(user_error)?;
    Ok(ctx)
}

/// Matches a pattern context in a dataflow block. Returns pairs of pattern and expression, or `None` if there is no match.
#[pyfunction]
pub fn pattern_match_block<'py>(
    patterns: Vec<PyRef<'py, PatternNode>>,
    edges: Edges<'py>,
    same_shape: Vec<Vec<PyRef<'py, PatternNode>>>,
    block: &Bound<'py, BindingBlock>,
) -> Result<Option<Bound<'py, PyList>>> {
    let ctx = context(&patterns, &edges, &same_shape)?;
    let BlockNode::In(owner, id) = block.get().block.get() else {
        return Err(Error::Value(
            "the block does not belong to a function (help: take it from func.body.blocks)".into(),
        ));
    };
    let found = catch_panic(|| {
        let state = owner.lock();
        let Some(func) = state.func() else { return Ok(None) };
        Ok(ctx.match_block(func, *id, pliant_ops::registry(), &FxHashSet::default()))
    })?;
    found.map(|found| pairs(block.py(), owner, &found)).transpose()
}

/// Replaces matches of a pattern context in the dataflow blocks of a function. `callback(pairs, bindings)` returns a dict from
/// variables to their new values. An empty dict or `None` leaves the match unchanged.
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
    let owner =
        owner_of(&required_operand(func)?, "the argument func of relax.dpl.rewrite_bindings")?
            .derive()?;
    let blocks = catch_panic(|| Ok(dataflow_blocks(owner.lock().func_and_vars()?.0)))?;
    let ops = pliant_ops::registry();
    let may_write = catch_panic(|| Ok(may_write(func, None)))?;
    let mut count = 0;
    for block in blocks {
        let limit =
            count + catch_panic(|| Ok(max_rewrites(owner.lock().func_and_vars()?.0, block)))?;
        let mut skipped = FxHashSet::default();
        loop {
            let mut matches = catch_panic(|| {
                let mut state = owner.lock();
                Ok(BlockMatches::new(
                    state.func_and_vars()?.0,
                    &ctx,
                    block,
                    ops,
                    may_write.as_ref(),
                ))
            })?;
            let values = block_values(py, &owner, block)?;
            let mut replacements = Vec::new();
            while let Some(found) =
                catch_panic(|| Ok(matches.next(owner.lock().func_and_vars()?.0, &mut skipped)))?
            {
                replacements.extend(callback_result(
                    &owner,
                    callback,
                    &pairs(py, &owner, &found)?,
                    &values,
                )?);
                py.check_signals()?;
            }
            if replacements.is_empty() {
                break;
            }
            count += replacements.len();
            catch_panic(|| {
                let mut state = owner.lock();
                replace_in_block(state.func_and_vars()?.0, block, replacements, ops)
                    .map_err(user_error)
            })?;
            if count > limit {
                return Err(user_error(nontermination_error(count)));
            }
        }
    }
    if count == 0 { Ok(func.clone()) } else { finished_rewrite(py, &owner, func) }
}

/// Calls the Python callback for a match and returns its replacement, or `None` if the callback
/// leaves the match unchanged.
fn callback_result(
    owner: &Arc<FuncOwner>,
    callback: &Bound<'_, PyAny>,
    found: &Bound<'_, PyList>,
    values: &Bound<'_, PyDict>,
) -> Result<Option<BlockReplacement>> {
    let returned = callback.call1((found, values))?;
    if returned.is_none() {
        return Ok(None);
    }
    let returned = returned.cast::<PyDict>().map_err(|_| {
        Error::Type("the rewriter must return a dict from variables to expressions".into())
    })?;
    if returned.is_empty() { Ok(None) } else { replacement(owner, returned).map(Some) }
}

/// Returns the value of each variable that a block binds.
fn block_values<'py>(
    py: Python<'py>,
    owner: &Arc<FuncOwner>,
    block: Block,
) -> Result<Bound<'py, PyDict>> {
    let bindings = catch_panic(|| {
        let mut state = owner.lock();
        let func = state.func_and_vars()?.0;
        let list = func.block(block).bindings.clone();
        Ok(list.into_iter().map(|b| (func.var_expr(b.var), b.value)).collect::<Vec<_>>())
    })?;
    let dict = PyDict::new(py);
    for (var, value) in bindings {
        dict.set_item(wrap(py, in_func(owner, var))?, wrap(py, in_func(owner, value))?)?;
    }
    Ok(dict)
}

/// Converts a dict from variables to expressions to a replacement. Shared subexpressions are computed once.
fn replacement(owner: &Arc<FuncOwner>, returned: &Bound<'_, PyDict>) -> Result<BlockReplacement> {
    let mut vars: Vec<Var> = Vec::new();
    let mut values: Vec<NodeRef> = Vec::new();
    for (var, value) in returned {
        vars.push(replaced_var(owner, &var)?);
        values.push(required_operand(&value)?);
    }
    let all = NodeRef::new(Node::Tuple(values));
    catch_panic(|| {
        let mut state = owner.lock();
        state.builder()?.begin_block(true);
        let tuple = state.lower(&all);
        let blocks = state.builder()?.end_blocks();
        let tuple = tuple?;
        let func = state.func_and_vars()?.0;
        let mut replacements = BlockReplacement::default();
        for block in blocks {
            replacements.bindings.append(&mut func.block_mut(block).bindings);
        }
        let fields = func.tuple_fields(tuple).map(<[_]>::to_vec).unwrap_or_default();
        replacements.values = vars.into_iter().zip(fields).collect();
        Ok(replacements)
    })
}
