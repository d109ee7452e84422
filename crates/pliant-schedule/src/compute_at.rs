//! `compute_at` and `reverse_compute_at`: move a block into a loop of another loop nest. In each iteration, the block then computes
//! only the region that the iteration needs or provides.

use pliant_ir::tir::{
    BinOp, BlockData, Buffer, Expr, IterKind, IterVar, PrimFunc, Stmt, StmtData, Var,
};
use pliant_tir::statement_traversal::uses_any;

use crate::buffers::is_parameter;
use crate::cache::flatten_sequences;
use crate::dependences::{check_move_earlier, check_move_later, skips_iterations};
use crate::error::Step;
use crate::inline::as_var;
use crate::loop_tree::{
    Loop, add_block, blocks_in, find_block, find_loop, loads_of, loops_of, path_to_block,
    path_to_loop, read_buffers, remove, replace, wrap_in_loops, written_buffers,
};
use crate::reorder::with_body;
use pliant_tir::accessed_region::{
    Accesses, DimRange, EnclosingLoop, accessed_region, inside_condition,
};
use pliant_tir::index_arithmetic::sum;

/// Moves the block `name` to the start of the body of the loop over `var`, which must contain all blocks that read its result.
/// There, in each iteration, it computes only the region of its result that the iteration reads.
pub(crate) fn compute_at(f: &mut PrimFunc, name: &str, var: Var) -> Step<()> {
    let (stmt, block) = find_block(f, name)?;
    let target = find_loop(f, var)?;
    check_not_inside(f, name, var)?;
    let buffer = only_written_buffer(f, &block)?;
    let buffer_name = f.buffer(buffer).name.clone();
    if is_parameter(f, buffer) {
        return Err(format!(
            "the block '{name}' cannot be moved, because it writes the parameter '{buffer_name}': compute_at computes only the \
             elements that the loop reads"
        ));
    }
    let axes = store_axes(f, &block, buffer)?;
    let inside: Vec<Stmt> = blocks_in(f, target.stmt).into_iter().map(|(s, _)| s).collect();
    let mut has_reader = false;
    for (s, other) in blocks_in(f, f.body) {
        if s == stmt {
            continue;
        }
        if written_buffers(f, &other).contains(&buffer) {
            return Err(format!(
                "the block '{name}' cannot be moved, because the block '{}' also writes its result '{buffer_name}'",
                other.name
            ));
        }
        if !loads_of(f, &other, buffer).is_empty() {
            has_reader = true;
            if !inside.contains(&s) {
                return Err(format!(
                    "the block '{}' reads '{buffer_name}' outside of the loop '{}', so the block '{name}' cannot be moved into \
                     the loop",
                    other.name,
                    f.var(var).name
                ));
            }
        }
    }
    if !has_reader {
        return Err(format!(
            "the block '{name}' cannot be moved, because no block reads its result '{buffer_name}'"
        ));
    }
    check_move_later(f, stmt, name, &target)?;
    let region = accessed_region(f, target.body, buffer, Accesses::Loads);
    let nest = nest_over_region(f, &block, &axes, &region, &target)?;
    remove(f, stmt);
    let target = find_loop(f, var)?;
    let body = f.seq(vec![nest, target.body]);
    let new = with_body(f, target.stmt, body);
    replace(f, target.stmt, new);
    flatten_sequences(f);
    Ok(())
}

/// Moves the block `name` to the end of the body of the loop over `var`, which must contain the block that writes its operand.
/// There, in each iteration, it processes only the region of its operand that the iteration has written.
pub(crate) fn reverse_compute_at(f: &mut PrimFunc, name: &str, var: Var) -> Step<()> {
    let (stmt, block) = find_block(f, name)?;
    let target = find_loop(f, var)?;
    check_not_inside(f, name, var)?;
    let inside = blocks_in(f, target.stmt);
    let produced: Vec<Buffer> = inside.iter().flat_map(|(_, b)| written_buffers(f, b)).collect();
    let operands: Vec<Buffer> =
        read_buffers(f, &block).into_iter().filter(|b| produced.contains(b)).collect();
    let [operand] = operands[..] else {
        return Err(format!(
            "the block '{name}' cannot be moved into the loop '{}': it must read exactly one buffer that is written in this loop, \
             but reads {}",
            f.var(var).name,
            operands.len()
        ));
    };
    check_complete(f, operand, &target)?;
    let axes = load_axes(f, &block, operand)?;
    check_move_earlier(f, stmt, name, &target, operand)?;
    check_covered(f, operand, &target)?;
    let region = accessed_region(f, target.body, operand, Accesses::Stores);
    let nest = nest_over_region(f, &block, &axes, &region, &target)?;
    remove(f, stmt);
    let target = find_loop(f, var)?;
    let body = f.seq(vec![target.body, nest]);
    let new = with_body(f, target.stmt, body);
    replace(f, target.stmt, new);
    flatten_sequences(f);
    Ok(())
}

/// Fails if a block is already inside the loop over `var`.
fn check_not_inside(f: &PrimFunc, block: &str, var: Var) -> Step<()> {
    let path = path_to_block(f, block)?;
    match loops_of(f, &path).iter().any(|l| l.var == var) {
        true => {
            Err(format!("the block '{block}' is inside of the loop '{}' already", f.var(var).name))
        }
        false => Ok(()),
    }
}

/// Fails unless the elements of a buffer that an iteration of the loop `target` writes are final after the iteration: neither this
/// loop nor a loop around it may run over a reduction axis of a block that writes the buffer.
fn check_complete(f: &PrimFunc, buffer: Buffer, target: &Loop) -> Step<()> {
    let path = path_to_loop(f, target.var)?;
    let around: Vec<Var> = loops_of(f, &path).iter().map(|l| l.var).collect();
    for (_, block) in blocks_in(f, target.stmt) {
        if !written_buffers(f, &block).contains(&buffer) {
            continue;
        }
        let uses = |e: Expr| uses_any(f, e, &|v| around.contains(&v));
        let axis = block.iters.iter().find(|it| it.kind != IterKind::Spatial && uses(it.binding));
        if let Some(axis) = axis {
            return Err(format!(
                "an iteration of the loop '{loop_name}' does not complete the buffer '{buffer}', so no block that reads the \
                 buffer can be moved into the loop: this loop or a loop around it runs over the reduction axis '{axis}' of the \
                 block '{block}'",
                loop_name = f.var(target.var).name,
                buffer = f.buffer(buffer).name,
                axis = f.var(axis.var).name,
                block = block.name
            ));
        }
    }
    Ok(())
}

/// Fails unless each block in the loop `target` that writes a buffer has axes that run over all elements of the buffer.
fn check_covered(f: &PrimFunc, buffer: Buffer, target: &Loop) -> Step<()> {
    let shape = &f.buffer(buffer).shape;
    for (stmt, block) in blocks_in(f, target.stmt) {
        if !written_buffers(f, &block).contains(&buffer) {
            continue;
        }
        if skips_iterations(f, stmt) {
            return Err(format!(
                "the block '{}' has a condition other than the bounds of its axes, so it may skip elements of '{buffer}', and no \
                 block that reads '{buffer}' can be moved into its loops",
                block.name,
                buffer = f.buffer(buffer).name
            ));
        }
        let axes = store_axes(f, &block, buffer)?;
        let covers = axes.iter().zip(shape).all(|(axis, &size)| {
            let it = block.iters.iter().find(|it| it.var == *axis);
            it.is_some_and(|it| it.extent == size && f.as_int(it.min) == Some(0))
        });
        if !covers {
            return Err(format!(
                "the axes of the block '{}' do not run over all elements of its result '{buffer}', so no block that reads \
                 '{buffer}' can be moved into its loops",
                block.name,
                buffer = f.buffer(buffer).name
            ));
        }
    }
    Ok(())
}

/// Returns the only buffer that a block writes. Fails if it writes several buffers.
fn only_written_buffer(f: &PrimFunc, block: &BlockData) -> Step<Buffer> {
    match written_buffers(f, block)[..] {
        [buffer] => Ok(buffer),
        ref all => Err(format!(
            "only a block that writes exactly one buffer can be moved, but the block '{}' writes {}",
            block.name,
            all.len()
        )),
    }
}

/// Returns, for each dim of a buffer, the block axis that is the index of the block's stores in this dim. Fails unless all stores
/// have the same indices, which must be distinct spatial axes.
pub(crate) fn store_axes(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<Vec<Var>> {
    let mut all: Vec<Box<[Expr]>> = Vec::new();
    for s in block.init.into_iter().chain([block.body]) {
        pliant_tir::statement_traversal::for_each_stmt(f, s, &mut |_, data| {
            if let StmtData::Store { buffer: b, indices, .. } = data
                && *b == buffer
                && !all.contains(indices)
            {
                all.push(indices.clone());
            }
        });
    }
    distinct_axes(f, block, &all, &format!("store to '{}'", f.buffer(buffer).name))
}

/// Returns, for each dim of a buffer, the block axis that is the index of the block's loads in this dim. Fails unless all loads
/// have the same indices, which must be distinct spatial axes.
fn load_axes(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<Vec<Var>> {
    let what = format!("read '{}'", f.buffer(buffer).name);
    distinct_axes(f, block, &loads_of(f, block, buffer), &what)
}

/// Returns the block axes that are the indices of the only access in `accesses`. Fails if there are several accesses, or if the
/// indices are not distinct spatial axes. `what` describes the accesses for the error message.
fn distinct_axes(
    f: &PrimFunc,
    block: &BlockData,
    accesses: &[Box<[Expr]>],
    what: &str,
) -> Step<Vec<Var>> {
    let spatial =
        |v: &Var| block.iters.iter().any(|it| it.var == *v && it.kind == IterKind::Spatial);
    let axes: Option<Vec<Var>> = match accesses {
        [one] => one.iter().map(|&e| as_var(f, e).filter(spatial)).collect(),
        _ => None,
    };
    let is_distinct = |axes: &Vec<Var>| (1..axes.len()).all(|i| !axes[..i].contains(&axes[i]));
    axes.filter(is_distinct).ok_or_else(|| {
        format!(
            "the block '{}' must {what} exactly once, with a different spatial axis as each index",
            block.name
        )
    })
}

/// Returns the block inside new loops over a region of a buffer. The axis `axes[dim]` of the block runs over the range
/// `region[dim]`. The other axes run over their whole range.
fn nest_over_region(
    f: &mut PrimFunc,
    block: &BlockData,
    axes: &[Var],
    region: &[DimRange],
    target: &Loop,
) -> Step<Stmt> {
    if block.predicate.is_some() {
        return Err(format!(
            "the block '{}' cannot be moved, because it has a predicate (split adds them); move it before its loops are split",
            block.name
        ));
    }
    let path = path_to_loop(f, target.var)?;
    let enclosing = |l: &Loop| EnclosingLoop { var: l.var, min: l.min, extent: l.extent };
    let mut loops: Vec<EnclosingLoop> = loops_of(f, &path).iter().map(enclosing).collect();
    let mut new_loops: Vec<(Var, Expr)> = Vec::new();
    let mut iters: Vec<IterVar> = block.iters.clone();
    let mut conditions: Vec<Expr> = Vec::new();
    // The reduction axes are the innermost loops.
    let order: Vec<usize> = {
        let spatial = |i: &usize| iters[*i].kind == IterKind::Spatial;
        let (first, last): (Vec<usize>, Vec<usize>) = (0..iters.len()).partition(|i| spatial(i));
        first.into_iter().chain(last).collect()
    };
    for (number, &i) in order.iter().enumerate() {
        let dim = axes.iter().position(|&axis| axis == iters[i].var);
        let var = f.size_var(format!("ax{number}"));
        let var_expr = f.var_expr(var);
        let range = dim.map(|dim| &region[dim]).filter(|range| !range.is_whole);
        let (extent, binding) = match range {
            Some(range) => (range.extent, sum(f, range.min, var_expr)),
            None => (iters[i].extent, sum(f, iters[i].min, var_expr)),
        };
        new_loops.push((var, extent));
        iters[i].binding = binding;
        if range.is_some() {
            let min = f.int(0);
            loops.push(EnclosingLoop { var, min, extent });
            if f.as_int(iters[i].min) != Some(0) {
                return Err(format!(
                    "the axis '{}' of the block '{}' must start at 0, so that the block can be moved",
                    f.var(iters[i].var).name,
                    block.name
                ));
            }
            conditions.extend(inside_condition(f, binding, iters[i].extent, &loops));
        }
    }
    let predicate = conditions.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b));
    let moved = BlockData { iters, predicate, reads: None, writes: None, ..block.clone() };
    let moved = add_block(f, moved);
    Ok(wrap_in_loops(f, moved, &new_loops))
}
