//! `pad_einsum`: rounds the extents of a block's axes up to multiples, so that its loops can be split without predicates.
//!
//! Blocks in front of the nest copy the operands to larger buffers, with zeros beyond the old extents. The block then computes a
//! larger result, whose part within the old extents another block copies to the old buffer.
//!
//! Zeros must not change the results. Beyond the old extents of spatial axes, the block computes elements that nobody copies, so
//! its value only has to be free of operations that may fail, such as integer division. Beyond the old extents of reduction axes,
//! the values must be 0, also if other operands are infinite or NaN. This holds if the value is a product, and if all its operands
//! are padded along the axis.

use pliant_ir::tir::{
    BinOp, BlockData, Buffer, BufferData, Expr, ExprData, Intrin, IterKind, PrimFunc, Scope, Stmt,
    StmtData, Var,
};
use pliant_tir::index_arithmetic::{ceil_div, is_multiple, not_negative, product};
use pliant_tir::statement_traversal::{for_each_value, loads};
use rustc_hash::FxHashMap;

use crate::buffers::add_temporary_of_shape;
use crate::cache::{flatten_sequences, replace_buffer};
use crate::compute_at::store_axes;
use crate::error::Step;
use crate::inline::as_var;
use crate::loop_tree::{
    Loop, add_block, fresh_block_name, is_local, loads_of, read_buffers, replace, simple_nest,
    wrap_in_loops, written_buffers,
};
use crate::new_nest::NewNest;
use crate::reductions::accumulation;

/// Rounds the extent of each axis of the block `name` up to a multiple of its entry in `padding`.
pub(crate) fn pad_einsum(f: &mut PrimFunc, name: &str, padding: &[i64]) -> Step<()> {
    let nest = simple_nest(f, name)?;
    let block = nest.block;
    check_padding(&block, padding)?;
    check_order(f, &block)?;
    let [target] = written_buffers(f, &block)[..] else {
        return Err(not_einsum(name, "it must write exactly one buffer"));
    };
    if block.init.is_none() && !loads_of(f, &block, target).is_empty() {
        return Err(not_einsum(name, "it reads the old contents of its result"));
    }
    let padded = padded_axes(f, &block, padding)?;
    let operands: Vec<Operand> = read_buffers(f, &block)
        .into_iter()
        .map(|buffer| operand(f, &block, buffer))
        .collect::<Step<_>>()?;
    check_value(f, &block, &padded)?;
    let axes = store_axes(f, &block, target)?;
    let result_axes: Vec<Option<Var>> = axes.into_iter().map(Some).collect();

    let mut before = Vec::new();
    let mut new_block = block.clone();
    for operand in &operands {
        if operand.axes.iter().flatten().any(|axis| padded.contains_key(axis)) {
            let large = padded_buffer(f, operand.buffer, &operand.axes, &padded);
            before.push(copy_in(f, &block, operand, large, &padded));
            new_block = replace_buffer(f, new_block, operand.buffer, large, false);
        }
    }
    let mut after = Vec::new();
    if result_axes.iter().flatten().any(|axis| padded.contains_key(axis)) {
        let large = padded_buffer(f, target, &result_axes, &padded);
        after.push(copy_out(f, &block, (target, large), &result_axes));
        new_block = replace_buffer(f, new_block, target, large, true);
    }
    let loops = padded_loops(f, &nest.loops, &mut new_block, &padded);
    let new_block = add_block(f, new_block);
    let new_nest = wrap_in_loops(f, new_block, &loops);
    let all = before.into_iter().chain([new_nest]).chain(after).collect();
    let all = f.seq(all);
    replace(f, nest.outermost, all);
    flatten_sequences(f);
    Ok(())
}

fn not_einsum(block: &str, why: &str) -> String {
    format!("the block '{block}' is no einsum, so it cannot be padded: {why}")
}

/// Fails unless there is one positive number for each axis.
fn check_padding(block: &BlockData, padding: &[i64]) -> Step<()> {
    if padding.len() != block.iters.len() {
        return Err(format!(
            "the padding must have one number for each of the {} axes of the block '{}', but has {}",
            block.iters.len(),
            block.name,
            padding.len()
        ));
    }
    match padding.iter().find(|&&n| !(1..=MAX_PADDING).contains(&n)) {
        Some(n) => {
            Err(format!("the padding must be from 1 to {MAX_PADDING}, but one number is {n}"))
        }
        None => Ok(()),
    }
}

/// Maximum multiple to which an extent is rounded up. Within this limit, extents do not overflow.
const MAX_PADDING: i64 = 1 << 32;

/// Fails if the block has an opaque axis, or is an update without an init.
fn check_order(f: &PrimFunc, block: &BlockData) -> Step<()> {
    if block.iters.iter().any(|it| it.kind == IterKind::Opaque) {
        return Err(not_einsum(&block.name, "it has an opaque axis"));
    }
    let reduces = block.iters.iter().any(|it| it.kind == IterKind::Reduce);
    let is_sum = accumulation(f, block).is_some_and(|sum| sum.op == BinOp::Add);
    match reduces && !(is_sum && block.init.is_some()) {
        true => Err(not_einsum(
            &block.name,
            "a block with reduction axes must be a sum C[..] = C[..] + value with an init; apply pad_einsum before \
             decompose_reduction",
        )),
        false => Ok(()),
    }
}

/// Returns the axes whose extents change, each with its new extent. Fails if an extent is computed in the function's body.
fn padded_axes(f: &mut PrimFunc, block: &BlockData, padding: &[i64]) -> Step<FxHashMap<Var, Expr>> {
    let mut padded = FxHashMap::default();
    for (it, &multiple) in block.iters.iter().zip(padding) {
        if is_multiple(f, it.extent, multiple) {
            continue;
        }
        if is_local(f, it.extent) {
            let axis = &f.var(it.var).name;
            return Err(not_einsum(
                &block.name,
                &format!("the extent of its axis '{axis}' depends on an outer loop or block"),
            ));
        }
        let extent = not_negative(f, it.extent);
        let tiles = ceil_div(f, extent, multiple);
        let multiple = f.int(multiple);
        padded.insert(it.var, product(f, tiles, multiple));
    }
    Ok(padded)
}

/// Fails unless zeros as operands beyond the old extents preserve the result.
fn check_value(f: &PrimFunc, block: &BlockData, padded: &FxHashMap<Var, Expr>) -> Step<()> {
    let StmtData::Store { value, .. } = *f.stmt(block.body) else {
        return Err(not_einsum(&block.name, "its body must be a single store"));
    };
    let mut unsafe_part = None;
    for_each_value(f, value, |e| {
        let is_safe = match f.expr(e) {
            ExprData::Int(..) | ExprData::Float(..) | ExprData::Cast(..) | ExprData::Load(..) => {
                true
            }
            ExprData::Var(v) => block.iters.iter().any(|it| it.var == *v),
            ExprData::Binary(op, ..) => {
                matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max)
            }
            _ => false,
        };
        if !is_safe {
            unsafe_part = Some(e);
        }
    });
    if let Some(e) = unsafe_part {
        let text = pliant_ir::print::tir_expr_text(f, e);
        return Err(not_einsum(
            &block.name,
            &format!(
                "its value may contain only sums, differences, products, minima and maxima of elements, but not '{text}'"
            ),
        ));
    }
    let axes = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    for it in axes.filter(|it| padded.contains_key(&it.var)) {
        let name = &f.var(it.var).name;
        let term = accumulation(f, block).map(|sum| sum.value);
        if !term.is_some_and(|term| vanishes(f, term, it.var)) {
            return Err(not_einsum(
                &block.name,
                &format!(
                    "beyond the end of the reduction axis '{name}', its value must be 0 if the padded operands are 0, so it must \
                     be a product whose operands all have '{name}' as an index"
                ),
            ));
        }
    }
    Ok(())
}

/// Whether a value is a product of elements that all have the axis as an index, so that it is 0 if these elements are 0. Products
/// may contain finite constants.
fn vanishes(f: &PrimFunc, value: Expr, axis: Var) -> bool {
    match *f.expr(value) {
        ExprData::Load(_, ref indices) => indices.iter().any(|&i| as_var(f, i) == Some(axis)),
        ExprData::Cast(_, a) => vanishes(f, a, axis),
        ExprData::Binary(BinOp::Mul, a, b) => {
            let is_finite = |e: Expr| match *f.expr(e) {
                ExprData::Int(..) => true,
                ExprData::Float(bits, _) => f64::from_bits(bits).is_finite(),
                _ => false,
            };
            match (is_finite(a), is_finite(b)) {
                (true, _) => vanishes(f, b, axis),
                (_, true) => vanishes(f, a, axis),
                _ => vanishes(f, a, axis) && vanishes(f, b, axis),
            }
        }
        _ => false,
    }
}

/// A buffer that the block reads with indices that are axes or constants.
struct Operand {
    buffer: Buffer,
    /// For each dim, the axis that is the index; `None` if the index is constant.
    axes: Vec<Option<Var>>,
}

/// Returns a buffer that the block reads. Fails unless the block reads it with one list of indices, which are axes and constants.
fn operand(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Step<Operand> {
    let name = &f.buffer(buffer).name;
    let all = loads_of(f, block, buffer);
    let [indices] = &all[..] else {
        return Err(not_einsum(
            &block.name,
            &format!("it must read '{name}' with one list of indices, but uses {}", all.len()),
        ));
    };
    let mut axes = Vec::new();
    for &index in indices {
        let axis = as_var(f, index).filter(|v| block.iters.iter().any(|it| it.var == *v));
        if axis.is_none() && f.as_int(index).is_none() || loads(f, index, buffer) {
            return Err(not_einsum(
                &block.name,
                &format!(
                    "each index of '{name}' must be an axis or a constant, but one is '{}'",
                    pliant_ir::print::tir_expr_text(f, index)
                ),
            ));
        }
        axes.push(axis);
    }
    Ok(Operand { buffer, axes })
}

/// Adds a buffer like `buffer`, but with the padded extents in the dims that a padded axis indexes.
fn padded_buffer(
    f: &mut PrimFunc,
    buffer: Buffer,
    axes: &[Option<Var>],
    padded: &FxHashMap<Var, Expr>,
) -> Buffer {
    let BufferData { name, mut shape, .. } = f.buffer(buffer).clone();
    for (size, axis) in shape.iter_mut().zip(axes) {
        if let Some(&extent) = axis.as_ref().and_then(|axis| padded.get(axis)) {
            *size = extent;
        }
    }
    add_temporary_of_shape(f, buffer, format!("{name}_pad"), Scope::Global, shape)
}

/// Creates loops around a block that copies an operand to the buffer `large`, with zeros beyond the old extents of padded axes.
fn copy_in(
    f: &mut PrimFunc,
    block: &BlockData,
    operand: &Operand,
    large: Buffer,
    padded: &FxHashMap<Var, Expr>,
) -> Stmt {
    let shape = f.buffer(large).shape.clone();
    let copy = NewNest::new(f, &shape);
    let indices = copy.axes.clone();
    let mut value = f.load(operand.buffer, &indices);
    let dims = operand.axes.iter().zip(&indices);
    let mut conditions = Vec::new();
    for (axis, &index) in dims.filter_map(|(axis, index)| Some((axis.as_ref()?, index))) {
        let it = block.iters.iter().find(|it| it.var == *axis && padded.contains_key(axis));
        if let Some(it) = it {
            conditions.push(f.binary(BinOp::Lt, index, it.extent));
        }
    }
    if let Some(inside) = conditions.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b)) {
        let zero = f.const_of(0.0, f.buffer(large).dtype);
        value = f.call(Intrin::IfThenElse, &[inside, value, zero]);
    }
    let body = f.store(large, &indices, value);
    let name = fresh_block_name(f, &f.buffer(large).name.clone());
    copy.finish(f, name, None, body)
}

/// Creates loops around a block that copies the elements within the old extents from the padded result `large` to `target`.
fn copy_out(
    f: &mut PrimFunc,
    block: &BlockData,
    (target, large): (Buffer, Buffer),
    axes: &[Option<Var>],
) -> Stmt {
    let extent = |axis: &Option<Var>| {
        block.iters.iter().find(|it| Some(it.var) == *axis).map(|it| it.extent)
    };
    let extents: Vec<Expr> = axes.iter().filter_map(extent).collect();
    let copy = NewNest::new(f, &extents);
    let indices = copy.axes.clone();
    let value = f.load(large, &indices);
    let body = f.store(target, &indices, value);
    let name = fresh_block_name(f, &f.buffer(large).name.clone());
    copy.finish(f, name, None, body)
}

/// Sets the extents of the padded axes of a block and returns its loops with the same extents, outermost first.
fn padded_loops(
    f: &PrimFunc,
    loops: &[Loop],
    block: &mut BlockData,
    padded: &FxHashMap<Var, Expr>,
) -> Vec<(Var, Expr)> {
    let mut new: Vec<(Var, Expr)> = loops.iter().map(|l| (l.var, l.extent)).collect();
    for it in &mut block.iters {
        if let Some(&extent) = padded.get(&it.var) {
            it.extent = extent;
            let bound = new.iter_mut().find(|(var, _)| as_var(f, it.binding) == Some(*var));
            bound.into_iter().for_each(|(_, old)| *old = extent);
        }
    }
    new
}
