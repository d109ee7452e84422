//! `annotate` and `unannotate`: add annotations to loops and blocks, and remove them.

use std::sync::Arc;

use pliant_ir::AttrValue;
use pliant_ir::tir::{PrimFunc, StmtData, Var};

use crate::error::Step;
use crate::loop_tree::{add_block, find_block, find_loop, replace};

/// The annotations of a loop or block, as (key, value).
type Annotations = Vec<(Arc<str>, AttrValue)>;

/// Changes the annotations of the loop over `var` with the callback `edit`.
pub(crate) fn edit_loop(
    f: &mut PrimFunc,
    var: Var,
    edit: impl FnOnce(&mut Annotations) -> Step<()>,
) -> Step<()> {
    let old = find_loop(f, var)?;
    let StmtData::For { var, min, extent, kind, body, mut annotations } = f.stmt(old.stmt).clone()
    else {
        return Err(format!(
            "internal error: the statement of the loop '{}' is not a loop",
            f.var(var).name
        ));
    };
    edit(&mut annotations)?;
    let new = f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
    replace(f, old.stmt, new);
    Ok(())
}

/// Changes the annotations of the block `name` with the callback `edit`.
pub(crate) fn edit_block(
    f: &mut PrimFunc,
    name: &str,
    edit: impl FnOnce(&mut Annotations) -> Step<()>,
) -> Step<()> {
    let (stmt, mut block) = find_block(f, name)?;
    edit(&mut block.annotations)?;
    let new = add_block(f, block);
    replace(f, stmt, new);
    Ok(())
}

/// Adds the annotation `key` to a list, or replaces its value.
pub(crate) fn add(list: &mut Annotations, key: &str, value: AttrValue) -> Step<()> {
    list.retain(|(k, _)| **k != *key);
    list.push((key.into(), value));
    Ok(())
}

/// Removes the annotation `key` from a list. Fails if there is none.
pub(crate) fn remove(list: &mut Annotations, key: &str) -> Step<()> {
    let before = list.len();
    list.retain(|(k, _)| **k != *key);
    if list.len() == before {
        Err(format!("the loop or block has no annotation '{key}'"))
    } else {
        Ok(())
    }
}
