//! `get_producers`, `get_consumers` and `get_child_blocks`: the relations between the blocks of a function.
//!
//! Blocks are related if they have the same *scope*: the innermost block that contains them, or the whole function.

use std::sync::Arc;

use pliant_ir::tir::{BlockData, PrimFunc, Stmt, StmtData};
use pliant_tir::statement_traversal::children;

use crate::dependences::Leaf;
use crate::error::Step;
use crate::loop_tree::{find_block, is_body, outermost_blocks_in, path_to_block};

/// Returns the names of the blocks that precede the block `name` in its scope, and write a buffer that it reads or writes.
pub(crate) fn producers(f: &PrimFunc, name: &str) -> Step<Vec<Arc<str>>> {
    let siblings = siblings(f, name)?;
    let position = position(f, &siblings, name)?;
    let (_, block) = &siblings[position];
    let before = siblings[..position].iter();
    let writes = |leaf: &Leaf| {
        leaf.writes.iter().any(|b| block.reads.contains(b) || block.writes.contains(b))
    };
    Ok(before.filter(|(_, leaf)| writes(leaf)).map(|(name, _)| name.clone()).collect())
}

/// Returns the names of the blocks that follow the block `name` in its scope, and read or write a buffer that it writes.
pub(crate) fn consumers(f: &PrimFunc, name: &str) -> Step<Vec<Arc<str>>> {
    let siblings = siblings(f, name)?;
    let position = position(f, &siblings, name)?;
    let (_, block) = &siblings[position];
    let after = siblings[position + 1..].iter();
    let uses = |leaf: &Leaf| leaf.touches(&block.writes);
    Ok(after.filter(|(_, leaf)| uses(leaf)).map(|(name, _)| name.clone()).collect())
}

/// Returns the names of the blocks directly inside the block `name`, in program order.
pub(crate) fn child_blocks(f: &PrimFunc, name: &str) -> Step<Vec<Arc<str>>> {
    if is_body(f, name) {
        return Ok(outermost_blocks_in(f, f.body).into_iter().map(|(_, b)| b.name).collect());
    }
    let (_, block) = find_block(f, name)?;
    Ok(blocks_of(f, &block).into_iter().map(|(_, name)| name).collect())
}

/// Returns the blocks directly inside a block, each with its statement.
fn blocks_of(f: &PrimFunc, block: &BlockData) -> Vec<(Stmt, Arc<str>)> {
    let parts = children(&StmtData::Block(Box::new(block.clone()))).into_iter();
    let blocks = parts.flat_map(|s| outermost_blocks_in(f, s));
    blocks.map(|(s, b)| (s, b.name)).collect()
}

/// Returns the blocks in the scope of the block `name`, in program order, with the buffers that they read and write.
fn siblings(f: &PrimFunc, name: &str) -> Step<Vec<(Arc<str>, Leaf)>> {
    let path = path_to_block(f, name)?;
    let around = &path[..path.len() - 1];
    let scope = around.iter().rev().find_map(|&s| match f.stmt(s) {
        StmtData::Block(b) => Some((**b).clone()),
        _ => None,
    });
    let blocks = match scope {
        Some(block) => blocks_of(f, &block),
        None => outermost_blocks_in(f, f.body).into_iter().map(|(s, b)| (s, b.name)).collect(),
    };
    Ok(blocks.into_iter().map(|(s, name)| (name, Leaf::of(f, s, String::new()))).collect())
}

fn position(f: &PrimFunc, siblings: &[(Arc<str>, Leaf)], name: &str) -> Step<usize> {
    let found = siblings.iter().position(|(n, _)| **n == *name);
    found.ok_or_else(|| match find_block(f, name) {
        Err(message) => message,
        Ok(_) => format!("internal error: the block '{name}' is not in its scope"),
    })
}
