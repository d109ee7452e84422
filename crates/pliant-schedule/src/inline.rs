//! `compute_inline` computes an elementwise block inside the blocks that read its result. `reverse_compute_inline` computes an
//! elementwise block inside the block that writes its operand.

use pliant_ir::tir::{Buffer, Expr, ExprData, Intrin, IterKind, PrimFunc, Stmt, StmtData, Var};
use pliant_tir::statement_traversal::{ExprRewriter, for_each_stmt, map_stmts, substitute_expr};
use rustc_hash::FxHashMap;

use crate::buffers::{is_parameter, remove_allocation};
use crate::dependences::{check_inputs_stay, leaves};
use crate::error::Step;
use crate::loop_tree::{
    add_block, blocks_in, find_block, loads_of, read_buffers, remove, written_buffers,
};
use pliant_ir::tir::BlockData;

/// An elementwise block: at each point of its axes, it stores one value to the element that has these axes as its indices. The axes
/// cover the whole buffer.
struct ElementwiseBlock {
    stmt: Stmt,
    block: BlockData,
    buffer: Buffer,
    /// For each dim of the buffer, the block axis that is the index of the store.
    axes: Vec<Var>,
    value: Expr,
}

/// Inlines an elementwise block: replaces each load of its result by the value that it computes, and removes the block and its
/// buffer.
pub(crate) fn compute_inline(f: &mut PrimFunc, name: &str) -> Step<()> {
    let producer = elementwise_block(f, name)?;
    check_temporary(f, producer.buffer, name)?;
    check_pure(f, producer.value, name)?;
    check_inputs_stay(f, producer.stmt, name)?;
    let buffer = producer.buffer;
    let body = f.body;
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == buffer => {
            let values = producer.axes.iter().copied().zip(indices.iter().copied()).collect();
            Some(substitute_expr(f, producer.value, &values))
        }
        _ => None,
    };
    f.body = ExprRewriter::new(&mut rule).stmt(f, body);
    forget_regions(f);
    let (stmt, _) = find_block(f, name)?;
    remove(f, stmt);
    if let Some(leaf) = leaves(f, f.body).into_iter().find(|leaf| leaf.reads.contains(&buffer)) {
        return Err(format!(
            "{other} passes the result of the block '{name}' to a called function, so the block cannot be inlined",
            other = leaf.name
        ));
    }
    remove_allocation(f, buffer);
    Ok(())
}

/// Merges an elementwise block into the elementwise block that writes its operand, which must be a temporary buffer. The operand is
/// removed.
pub(crate) fn reverse_compute_inline(f: &mut PrimFunc, name: &str) -> Step<()> {
    let consumer = elementwise_block(f, name)?;
    check_pure(f, consumer.value, name)?;
    let temporaries: Vec<Buffer> =
        read_buffers(f, &consumer.block).into_iter().filter(|&b| !is_parameter(f, b)).collect();
    let [operand] = temporaries[..] else {
        return Err(format!(
            "the block '{name}' cannot be inlined: it must read exactly one temporary buffer, but reads {}",
            temporaries.len()
        ));
    };
    let operand_name = f.buffer(operand).name.clone();
    let loads = loads_of(f, &consumer.block, operand);
    let indices: Option<Vec<Var>> = match &loads[..] {
        [one] => one.iter().map(|&e| as_var(f, e)).collect(),
        _ => None,
    };
    let is_permutation = |indices: &Vec<Var>| {
        indices.len() == consumer.axes.len() && consumer.axes.iter().all(|v| indices.contains(v))
    };
    let indices = indices.filter(is_permutation).ok_or_else(|| {
        format!(
            "the block '{name}' must read '{operand_name}' exactly once, with each axis of the block as one of the indices"
        )
    })?;
    let blocks = blocks_in(f, f.body);
    let uses = |b: &BlockData| {
        written_buffers(f, b).contains(&operand) || !loads_of(f, b, operand).is_empty()
    };
    let others: Vec<&BlockData> =
        blocks.iter().map(|(_, b)| b).filter(|b| *b.name != *name && uses(b)).collect();
    let [producer] = others[..] else {
        return Err(format!(
            "the block '{name}' cannot be inlined: exactly one other block must use its operand '{operand_name}', but {} do",
            others.len()
        ));
    };
    let producer = elementwise_block(f, &producer.name.clone())?;
    check_between(f, producer.stmt, consumer.stmt, name)?;
    let operand_shape = f.buffer(operand).shape.clone();
    let same_range = indices.iter().zip(&operand_shape).all(|(axis, &size)| {
        let it = consumer.block.iters.iter().find(|it| it.var == *axis);
        it.is_some_and(|it| it.extent == size)
    });
    if !same_range {
        return Err(format!(
            "the block '{name}' cannot be inlined: the sizes of its axes must equal the dims of its operand '{operand_name}'"
        ));
    }
    // The element of the consumer's result that the producer's element becomes.
    let position: FxHashMap<Var, usize> =
        indices.iter().enumerate().map(|(dim, &axis)| (axis, dim)).collect();
    let result_axes: Vec<Var> =
        consumer.axes.iter().map(|axis| producer.axes[position[axis]]).collect();
    let axis_values: FxHashMap<Var, Expr> = consumer
        .axes
        .iter()
        .zip(&result_axes)
        .map(|(&axis, &value)| (axis, f.var_expr(value)))
        .collect();
    let value = substitute_expr(f, consumer.value, &axis_values);
    let mut rule = |f: &mut PrimFunc, e: Expr| {
        matches!(f.expr(e), ExprData::Load(b, _) if *b == operand).then_some(producer.value)
    };
    let value = ExprRewriter::new(&mut rule).expr(f, value);
    let store_indices: Vec<Expr> = result_axes.iter().map(|&axis| f.var_expr(axis)).collect();
    let body = f.store(consumer.buffer, &store_indices, value);
    let merged = BlockData { body, reads: None, writes: None, ..producer.block.clone() };
    let merged = add_block(f, merged);
    crate::loop_tree::replace(f, producer.stmt, merged);
    let (stmt, _) = find_block(f, name)?;
    remove(f, stmt);
    remove_allocation(f, operand);
    Ok(())
}

/// Fails unless the statement `consumer` can run at the position of `producer`: no statement between them may write a buffer that
/// `consumer` reads, or use a buffer that it writes.
fn check_between(f: &PrimFunc, producer: Stmt, consumer: Stmt, name: &str) -> Step<()> {
    let all = leaves(f, f.body);
    let position = |stmt: Stmt| all.iter().position(|leaf| leaf.stmt == stmt);
    let (Some(first), Some(last)) = (position(producer), position(consumer)) else {
        return Err(format!(
            "the block '{name}', or the block whose result it reads, is inside another block, so '{name}' cannot be inlined"
        ));
    };
    if first > last {
        return Err(format!(
            "the block '{name}' cannot be inlined, because it runs before {writer}, which writes its operand",
            writer = all[first].name
        ));
    }
    let moved = &all[last];
    for (i, leaf) in all.iter().enumerate().filter(|(i, _)| *i != first && *i != last) {
        let is_input = leaf.writes.iter().any(|b| moved.reads.contains(b));
        let is_result = leaf.reads.iter().chain(&leaf.writes).any(|b| moved.writes.contains(b));
        let shares_loop =
            leaves_share_loop(f, leaf.stmt, producer) || leaves_share_loop(f, leaf.stmt, consumer);
        if (is_input || is_result) && ((first..=last).contains(&i) || shares_loop) {
            return Err(format!(
                "the block '{name}' cannot be inlined into {writer}: {other} uses a buffer that '{name}' reads or writes, and \
                 runs between the two blocks or in the same loop as one of them",
                other = leaf.name,
                writer = all[first].name
            ));
        }
    }
    Ok(())
}

/// Whether two statements are in the same outermost loop.
fn leaves_share_loop(f: &PrimFunc, a: Stmt, b: Stmt) -> bool {
    let loops = |stmt: Stmt| {
        let path = crate::loop_tree::path_to(f, &|s, _| s == stmt);
        crate::loop_tree::loops_of(f, &path).first().map(|l| l.stmt)
    };
    loops(a).is_some() && loops(a) == loops(b)
}

/// Returns the variable if an expression is a variable; `None` for other expressions.
pub(crate) fn as_var(f: &PrimFunc, e: Expr) -> Option<Var> {
    match f.expr(e) {
        ExprData::Var(var) => Some(*var),
        _ => None,
    }
}

/// Returns the parts of the block `name` if it is elementwise. Fails if it is not elementwise.
fn elementwise_block(f: &PrimFunc, name: &str) -> Step<ElementwiseBlock> {
    let (stmt, block) = find_block(f, name)?;
    let not_elementwise = |why: &str| format!("the block '{name}' is not elementwise: {why}");
    if block.init.is_some() || block.iters.iter().any(|it| it.kind != IterKind::Spatial) {
        return Err(not_elementwise("the block has axes that are not spatial, or an init"));
    }
    if block.predicate.is_some() {
        return Err(not_elementwise(
            "the block has a predicate; inline it before its loops are split",
        ));
    }
    let path = crate::loop_tree::path_to_block(f, name)?;
    if path.iter().any(|&s| matches!(f.stmt(s), StmtData::If(..) | StmtData::While(..))) {
        return Err(not_elementwise("the block is inside an if or while statement"));
    }
    let StmtData::Store { buffer, indices, value } = f.stmt(block.body).clone() else {
        return Err(not_elementwise("the body of the block is not a single store"));
    };
    let axes: Option<Vec<Var>> = indices.iter().map(|&e| as_var(f, e)).collect();
    let axes = axes.filter(|axes| {
        axes.len() == block.iters.len() && block.iters.iter().all(|it| axes.contains(&it.var))
    });
    let axes = axes.ok_or_else(|| {
        not_elementwise("the indices of the store are not the axes of the block, each once")
    })?;
    let shape = &f.buffer(buffer).shape;
    let covers = axes.iter().zip(shape).all(|(axis, &size)| {
        let it = block.iters.iter().find(|it| it.var == *axis);
        it.is_some_and(|it| it.extent == size && f.as_int(it.min) == Some(0))
    });
    if !covers {
        return Err(not_elementwise(
            "the axes of the block do not run over all elements of the buffer that it writes",
        ));
    }
    Ok(ElementwiseBlock { stmt, block, buffer, axes, value })
}

/// Fails unless a buffer is a temporary of the function that only one block writes.
fn check_temporary(f: &PrimFunc, buffer: Buffer, block: &str) -> Step<()> {
    let name = &f.buffer(buffer).name;
    if is_parameter(f, buffer) {
        return Err(format!(
            "the block '{block}' writes '{name}', a parameter of the function; only a block that writes a temporary buffer can be \
             inlined"
        ));
    }
    let writers = blocks_in(f, f.body)
        .iter()
        .filter(|(_, b)| written_buffers(f, b).contains(&buffer))
        .count();
    match writers {
        1 => Ok(()),
        _ => Err(format!(
            "the block '{block}' cannot be inlined, because {writers} blocks write its result '{name}'"
        )),
    }
}

/// Fails if a value contains calls of functions that may have side effects.
fn check_pure(f: &PrimFunc, value: Expr, block: &str) -> Step<()> {
    let mut calls = false;
    pliant_ir::tir::visit::for_each_expr(f, value, |e| {
        calls |= matches!(
            f.expr(e),
            ExprData::Call(Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel, ..)
        );
    });
    match calls {
        true => Err(format!(
            "the block '{block}' cannot be inlined, because it calls functions that may have side effects"
        )),
        false => Ok(()),
    }
}

/// Removes the declared read and write regions of all blocks, which are wrong after inlining.
pub(crate) fn forget_regions(f: &mut PrimFunc) {
    let mut is_declared = false;
    for_each_stmt(f, f.body, &mut |_, data| {
        if let StmtData::Block(b) = data {
            is_declared |= b.reads.is_some() || b.writes.is_some();
        }
    });
    if !is_declared {
        return;
    }
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Block(b) if b.reads.is_some() || b.writes.is_some() => {
            Some(add_block(f, BlockData { reads: None, writes: None, ..*b }))
        }
        _ => None,
    });
}
