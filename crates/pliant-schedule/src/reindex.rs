//! `reindex`: lets a block access a copy of a buffer whose dims are the axes of the block. The copy of an operand of a convolution
//! is known as im2col.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, Intrin, IterKind, PrimFunc, Scope, Stmt, StmtData, Var,
};
use pliant_tir::access_guards::reads_memory;
use pliant_tir::statement_traversal::{
    ExprRewriter, direct_exprs, for_each_stmt, loads, map_stmts, substitute_expr, uses_any,
};
use rustc_hash::FxHashMap;

use crate::buffers::{BufferSelector, add_temporary_of_shape};
use crate::cache::flatten_sequences;
use crate::error::Step;
use crate::index_map::BoundMap;
use crate::loop_tree::{
    add_block, find_block, fresh_block_name, is_local, loads_of, replace, simple_nest,
    written_buffers,
};
use crate::new_nest::NewNest;

/// Lets the block `name` access a copy of a buffer that has one dim for each axis with which the block indexes the buffer. Returns
/// the name of the block that copies.
pub(crate) fn reindex(f: &mut PrimFunc, name: &str, selector: &BufferSelector) -> Step<String> {
    let nest = simple_nest(f, name)?;
    let (stmt, block) = find_block(f, name)?;
    let buffer = selector.resolve(f, &block)?;
    let is_written = written_buffers(f, &block).contains(&buffer);
    let indices = only_access(f, &block, buffer)?;
    check_indices(f, &block, buffer, &indices)?;
    let used: Vec<usize> = (0..block.iters.len())
        .filter(|&i| indices.iter().any(|&e| uses_any(f, e, &|v| v == block.iters[i].var)))
        .collect();
    match is_written {
        true => check_written_once(f, &block, buffer, &indices)?,
        false => check_unconditional(f, &block, buffer)?,
    }
    let extents: Vec<Expr> = used.iter().map(|&i| block.iters[i].extent).collect();
    if extents.iter().any(|&e| is_local(f, e)) {
        return Err(format!(
            "an axis of the block '{name}' has an extent that depends on an outer loop or block, so no copy of '{}' can have it as \
             a dim",
            f.buffer(buffer).name
        ));
    }
    let copy_name = format!("{}_reindex", f.buffer(buffer).name);
    let copied =
        add_temporary_of_shape(f, buffer, copy_name.clone(), Scope::Global, extents.clone());
    let axes: Vec<Expr> = used.iter().map(|&i| f.var_expr(block.iters[i].var)).collect();
    let new = with_accesses(f, &block, buffer, copied, &axes);
    let new = add_block(f, new);

    let copy = NewNest::new(f, &extents);
    let values: FxHashMap<Var, Expr> =
        used.iter().map(|&i| block.iters[i].var).zip(copy.axes.iter().copied()).collect();
    let indices: Vec<Expr> = indices.iter().map(|&e| substitute_expr(f, e, &values)).collect();
    let body = match is_written {
        true => {
            let value = f.load(copied, &copy.axes);
            f.store(buffer, &indices, value)
        }
        false => {
            let value = f.load(buffer, &indices);
            f.store(copied, &copy.axes, value)
        }
    };
    let copy_name = fresh_block_name(f, &copy_name);
    let copy = copy.finish(f, copy_name.clone(), None, body);
    replace(f, stmt, new);
    let nest = if nest.loops.is_empty() { new } else { simple_nest(f, name)?.outermost };
    let both = if is_written { vec![nest, copy] } else { vec![copy, nest] };
    let both = f.seq(both);
    replace(f, nest, both);
    flatten_sequences(f);
    Ok(copy_name.to_string())
}

/// Returns the indices with which a block accesses a buffer. Fails if it uses several lists of indices.
fn only_access(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<Box<[Expr]>> {
    let mut all = loads_of(f, block, buffer);
    for s in block.init.into_iter().chain([block.body]) {
        for_each_stmt(f, s, &mut |_, data| {
            if let StmtData::Store { buffer: b, indices, .. } = data
                && *b == buffer
                && !all.contains(indices)
            {
                all.push(indices.clone());
            }
        });
    }
    match <[_; 1]>::try_from(all) {
        Ok([one]) => Ok(one),
        Err(all) => Err(format!(
            "the block '{}' must access '{}' with one list of indices, but uses {}",
            block.name,
            f.buffer(buffer).name,
            all.len()
        )),
    }
}

/// Fails if an index uses another variable of the function's body than an axis of the block, or reads memory.
fn check_indices(f: &PrimFunc, block: &BlockData, buffer: Buffer, indices: &[Expr]) -> Step<()> {
    for &index in indices {
        let mut is_fixed = !reads_memory(f, index);
        for_each_expr(f, index, |e| {
            if let ExprData::Var(v) = f.expr(e) {
                is_fixed &= block.iters.iter().any(|it| it.var == *v) || !is_local(f, e);
            }
        });
        if !is_fixed {
            return Err(format!(
                "the index '{}' of '{}' in the block '{}' must be computed from the axes of the block and sizes",
                pliant_ir::print::tir_expr_text(f, index),
                f.buffer(buffer).name,
                block.name
            ));
        }
    }
    Ok(())
}

/// Fails unless the block overwrites each element of a buffer at most once, without reading its old contents.
fn check_written_once(
    f: &mut PrimFunc,
    block: &BlockData,
    buffer: Buffer,
    indices: &[Expr],
) -> Step<()> {
    let buffer_name = f.buffer(buffer).name.clone();
    if block.init.is_none() && !loads_of(f, block, buffer).is_empty() {
        return Err(format!(
            "the block '{}' reads the old contents of '{buffer_name}', but reindex requires a block that overwrites its result",
            block.name
        ));
    }
    check_unconditional(f, block, buffer)?;
    let spatial: Vec<_> = block.iters.iter().filter(|it| it.kind == IterKind::Spatial).collect();
    let vars: Vec<Var> = spatial.iter().map(|it| it.var).collect();
    let is_other = |v: Var| block.iters.iter().any(|it| it.var == v) && !vars.contains(&v);
    if indices.iter().any(|&e| uses_any(f, e, &is_other)) {
        return Err(format!(
            "the indices of '{buffer_name}' in the block '{}' use an axis that is not spatial",
            block.name
        ));
    }
    let names: Vec<String> = vars.iter().map(|&v| f.var(v).name.to_string()).collect();
    let extents: Vec<Expr> = spatial.iter().map(|it| it.extent).collect();
    BoundMap::of(f, &vars, &extents, &names, indices).map(drop).map_err(|why| {
        format!(
            "the block '{}' may write an element of '{buffer_name}' several times: {why}",
            block.name
        )
    })
}

/// Fails if a block accesses a buffer only under a condition: the copy would access elements that do not exist.
fn check_unconditional(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<()> {
    let mut is_conditional = false;
    for s in block.init.into_iter().chain([block.body]) {
        for_each_stmt(f, s, &mut |_, data| {
            is_conditional |= matches!(data, StmtData::If(..) | StmtData::While(..));
            direct_exprs(data, |e| {
                for_each_expr(f, e, |e| {
                    if let ExprData::Call(Intrin::IfThenElse, ..) = f.expr(e) {
                        is_conditional |= loads(f, e, buffer);
                    }
                });
            });
        });
    }
    match is_conditional {
        true => Err(format!(
            "the block '{}' accesses '{}' under a condition, but the copy would access all elements",
            block.name,
            f.buffer(buffer).name
        )),
        false => Ok(()),
    }
}

/// Returns a block in which all accesses of the buffer `old` access `new` with the indices `axes`.
fn with_accesses(
    f: &mut PrimFunc,
    block: &BlockData,
    old: Buffer,
    new: Buffer,
    axes: &[Expr],
) -> BlockData {
    let mut edit = |s: Stmt| {
        let mut rule = |f: &mut PrimFunc, e: Expr| {
            let is_access = matches!(f.expr(e), ExprData::Load(b, _) if *b == old);
            is_access.then(|| f.load(new, axes))
        };
        let s = ExprRewriter::new(&mut rule).stmt(f, s);
        map_stmts(f, s, &mut |f, s| match *f.stmt(s) {
            StmtData::Store { buffer, value, .. } if buffer == old => {
                Some(f.store(new, axes, value))
            }
            _ => None,
        })
    };
    let init = block.init.map(&mut edit);
    let body = edit(block.body);
    BlockData { init, body, reads: None, writes: None, ..block.clone() }
}
