//! `cache_read` and `cache_write` let a block access a copy of a buffer in another memory scope. `set_scope` changes the memory
//! scope of a buffer.

use pliant_ir::tir::{BlockData, Buffer, Expr, ExprData, PrimFunc, Scope, Stmt, StmtData};
use pliant_tir::statement_traversal::{ExprRewriter, children, map_stmts};

use crate::buffers::{add_temporary, buffer_at, is_parameter};
use crate::compute_at::store_axes;
use crate::dependences::leaves;
use crate::error::Step;
use crate::loop_tree::{
    add_block, blocks_in, find_block, fresh_block_name, loads_of, outermost_statement,
    path_to_block, read_buffers, replace, written_buffers,
};
use crate::new_nest::NewNest;

/// Copies the buffer at position `index` among the buffers that a block reads to a new buffer, from which the block then reads.
/// Returns the name of the block that copies.
pub(crate) fn cache_read(f: &mut PrimFunc, name: &str, index: usize, scope: Scope) -> Step<String> {
    let (_, block) = find_block(f, name)?;
    let source = buffer_at(f, &read_buffers(f, &block), index, "reads", name)?;
    let anchor = outermost_statement(f, name)?;
    if let Some(writer) = writer_in(f, anchor, source) {
        return Err(format!(
            "{writer} writes the buffer '{}' inside the outermost loop of the block '{name}', so the buffer cannot be copied \
             before this loop; apply cache_read before compute_at",
            f.buffer(source).name
        ));
    }
    let cached = format!("{}_{}", f.buffer(source).name, scope.name());
    let copy_name = fresh_block_name(f, &cached);
    let target = add_temporary(f, source, cached, scope);
    let (stmt, block) = find_block(f, name)?;
    let reader = replace_buffer(f, block, source, target, false);
    let reader = add_block(f, reader);
    replace(f, stmt, reader);
    let anchor = outermost_statement(f, name)?;
    let copy = copy_nest(f, &copy_name, source, target);
    let both = f.seq(vec![copy, anchor]);
    replace(f, anchor, both);
    flatten_sequences(f);
    Ok(copy_name.to_string())
}

/// Lets a block write to a new buffer instead of the buffer at position `index` among those that it writes. Another block copies
/// the new buffer to the old one. Returns the name of the block that copies.
pub(crate) fn cache_write(
    f: &mut PrimFunc,
    name: &str,
    index: usize,
    scope: Scope,
) -> Step<String> {
    let (stmt, block) = find_block(f, name)?;
    let target = buffer_at(f, &written_buffers(f, &block), index, "writes", name)?;
    let mut related = path_to_block(f, name)?;
    related.extend(blocks_in(f, stmt).into_iter().map(|(s, _)| s));
    let others = blocks_in(f, f.body)
        .into_iter()
        .filter(|(s, b)| !related.contains(s) && written_buffers(f, b).contains(&target));
    if let Some((_, other)) = others.into_iter().next() {
        return Err(format!(
            "the blocks '{name}' and '{}' both write the buffer '{}', but cache_write requires that only one block writes it; \
             apply cache_write before decompose_reduction and blockize",
            other.name,
            f.buffer(target).name
        ));
    }
    check_overwrites(f, &block, target)?;
    let anchor = outermost_statement(f, name)?;
    let reads_inside =
        leaves(f, anchor).iter().any(|leaf| leaf.stmt != stmt && leaf.reads.contains(&target));
    if reads_inside {
        return Err(format!(
            "another statement inside the outermost loop of the block '{name}' reads the buffer '{}', which would be written only \
             after this loop; apply cache_write before compute_at",
            f.buffer(target).name
        ));
    }
    let cached = format!("{}_{}", f.buffer(target).name, scope.name());
    let copy_name = fresh_block_name(f, &cached);
    let source = add_temporary(f, target, cached, scope);
    let (stmt, block) = find_block(f, name)?;
    let writer = replace_buffer(f, block, target, source, true);
    let writer = add_block(f, writer);
    replace(f, stmt, writer);
    let anchor = outermost_statement(f, name)?;
    let copy = copy_nest(f, &copy_name, source, target);
    let both = f.seq(vec![anchor, copy]);
    replace(f, anchor, both);
    flatten_sequences(f);
    Ok(copy_name.to_string())
}

/// Fails unless a block overwrites a whole buffer without reading its old contents. `cache_write` requires this, because its copy
/// replaces all elements.
fn check_overwrites(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<()> {
    let name = &f.buffer(buffer).name;
    if block.init.is_none() && !loads_of(f, block, buffer).is_empty() {
        return Err(format!(
            "the block '{}' reads the old contents of '{name}', but cache_write requires a block that overwrites the whole buffer \
             without reading it",
            block.name
        ));
    }
    let axes = store_axes(f, block, buffer)?;
    let covers = axes.iter().zip(&f.buffer(buffer).shape).all(|(axis, &size)| {
        let it = block.iters.iter().find(|it| it.var == *axis);
        it.is_some_and(|it| it.extent == size && f.as_int(it.min) == Some(0))
    });
    let path = path_to_block(f, &block.name)?;
    let is_conditional = path.iter().any(|&s| matches!(f.stmt(s), StmtData::If(..)));
    if !covers || is_conditional || (block.predicate.is_some() && block.init.is_none()) {
        return Err(format!(
            "the block '{}' does not write all elements of '{name}'; apply cache_write before its loops are split",
            block.name
        ));
    }
    Ok(())
}

/// Sets the memory scope of the buffer at position `index` among the buffers that a block writes.
pub(crate) fn set_scope(f: &mut PrimFunc, name: &str, index: usize, scope: Scope) -> Step<()> {
    let (_, block) = find_block(f, name)?;
    let buffer = buffer_at(f, &written_buffers(f, &block), index, "writes", name)?;
    if is_parameter(f, buffer) {
        let buffer = &f.buffer(buffer).name;
        return Err(format!(
            "the scope of '{buffer}' cannot be set, because the buffer is a parameter: the caller of the function allocates its \
             memory"
        ));
    }
    f.buffer_mut(buffer).scope = scope;
    Ok(())
}

/// Returns a description of the first block or statement inside `s` that writes a buffer; `None` if there is none.
fn writer_in(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Option<String> {
    let mut all = leaves(f, s).into_iter();
    all.find(|leaf| leaf.writes.contains(&buffer)).map(|leaf| leaf.name)
}

/// Returns `block` with the buffer `old` replaced by `new` in its loads and, if `stores` is set, also in its stores.
pub(crate) fn replace_buffer(
    f: &mut PrimFunc,
    block: BlockData,
    old: Buffer,
    new: Buffer,
    stores: bool,
) -> BlockData {
    let edit = |f: &mut PrimFunc, s: Stmt| {
        let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
            ExprData::Load(b, indices) if b == old => Some(f.load(new, &indices)),
            _ => None,
        };
        let s = ExprRewriter::new(&mut rule).stmt(f, s);
        if !stores {
            return s;
        }
        map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
            StmtData::Store { buffer, indices, value } if buffer == old => {
                Some(f.store(new, &indices, value))
            }
            _ => None,
        })
    };
    let init = block.init.map(|s| edit(f, s));
    let body = edit(f, block.body);
    BlockData { init, body, reads: None, writes: None, ..block }
}

/// Creates loops around a block that copies the whole buffer `source` to `target`.
fn copy_nest(f: &mut PrimFunc, name: &str, source: Buffer, target: Buffer) -> Stmt {
    let shape = f.buffer(source).shape.clone();
    let nest = NewNest::new(f, &shape);
    let value = f.load(source, &nest.axes);
    let body = f.store(target, &nest.axes, value);
    nest.finish(f, name.into(), None, body)
}

/// Merges each sequence that is an item of another sequence into the outer one.
pub(crate) fn flatten_sequences(f: &mut PrimFunc) {
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::Seq(list) = f.stmt(s).clone() else { return None };
        let is_nested = list.iter().any(|&c| matches!(f.stmt(c), StmtData::Seq(_)));
        is_nested.then(|| {
            let flat = list.iter().flat_map(|&c| match f.stmt(c) {
                StmtData::Seq(_) => children(f.stmt(c)),
                _ => vec![c],
            });
            let flat = flat.collect();
            f.seq(flat)
        })
    });
}
