//! `decompose_reduction` moves the init of a reduction to a block of its own. `rfactor` splits a reduction into partial results.

use std::sync::Arc;

use pliant_ir::tir::{
    BinOp, BlockData, Buffer, BufferData, Expr, ExprData, IterKind, IterVar, PrimFunc, Scope, Stmt,
    StmtData, Var,
};
use pliant_tir::index_arithmetic::linear_index;
use pliant_tir::statement_traversal::{loads, substitute, substitute_expr, uses_any};
use rustc_hash::FxHashMap;

use crate::buffers::allocate;
use crate::cache::flatten_sequences;
use crate::dependences::leaves;
use crate::error::Step;
use crate::loop_tree::{
    Loop, add_block, find_block, find_loop, fresh_block_name, loops_of_block, outermost_statement,
    path_to_block, replace, wrap_in_loops,
};

/// Moves the init of a block into a new block in front of the loop over `var`. This loop must enclose the block and all its
/// reduction loops. Returns the name of the new block.
pub(crate) fn decompose_reduction(f: &mut PrimFunc, name: &str, var: Var) -> Step<String> {
    let (stmt, block) = find_block(f, name)?;
    if block.init.is_none() {
        return Err(format!("the block '{name}' has no init to move out of the reduction loops"));
    }
    let loops = loops_of_block(f, name)?;
    let Some(position) = loops.iter().position(|l| l.var == var) else {
        return Err(format!("the loop '{}' does not enclose the block '{name}'", f.var(var).name));
    };
    let reduces = |f: &PrimFunc, l: &Loop| {
        block
            .iters
            .iter()
            .any(|it| it.kind != IterKind::Spatial && uses_any(f, it.binding, &|v| v == l.var))
    };
    if let Some(outer) = loops[..position].iter().find(|l| reduces(f, l)) {
        return Err(format!(
            "the loop '{0}' around the loop '{1}' runs over a reduction axis of the block '{name}'; pass the loop '{0}' or a loop \
             around it",
            f.var(outer.var).name,
            f.var(var).name
        ));
    }
    let (new_name, nest) = init_nest(f, &block, &loops[position..])?;
    let update = add_block(f, BlockData { init: None, ..block });
    replace(f, stmt, update);
    let target = find_loop(f, var)?;
    let both = f.seq(vec![nest, target.stmt]);
    replace(f, target.stmt, both);
    flatten_sequences(f);
    Ok(new_name.to_string())
}

/// Creates a block with the init of `block`, inside copies of those of the loops `inner` that the spatial axes use. The loops
/// `inner` are the innermost loops around the block. Returns the name of the new block and its loops.
pub(crate) fn init_nest(
    f: &mut PrimFunc,
    block: &BlockData,
    inner: &[Loop],
) -> Step<(Arc<str>, Stmt)> {
    let Some(init) = block.init else {
        return Err(format!("internal error: the block '{}' has no init", block.name));
    };
    check_elements_once(f, block, inner)?;
    let uses = |f: &PrimFunc, e: Expr, v: Var| uses_any(f, e, &|x| x == v);
    // The init runs over the loops inside that its axes use, with new variables.
    let mut new_loops: Vec<(Var, Expr)> = Vec::new();
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    for l in inner {
        let spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        if spatial.into_iter().any(|it| uses(f, it.binding, l.var)) {
            if f.as_int(l.min) != Some(0) {
                return Err(format!(
                    "the loop '{}' must start at 0, so that the init can run in a copy of it",
                    f.var(l.var).name
                ));
            }
            let fresh = f.size_var(format!("{}_init", f.var(l.var).name));
            values.insert(l.var, f.var_expr(fresh));
            new_loops.push((fresh, l.extent));
        }
    }
    let predicate = init_predicate(f, block, inner, &values)?;
    let mut iters: Vec<IterVar> = Vec::new();
    let mut axes: FxHashMap<Var, Expr> = FxHashMap::default();
    for it in block.iters.iter().filter(|it| it.kind == IterKind::Spatial) {
        let var = f.add_var(f.var(it.var).name.clone(), f.var(it.var).ty);
        axes.insert(it.var, f.var_expr(var));
        let binding = substitute_expr(f, it.binding, &values);
        iters.push(IterVar { var, binding, ..it.clone() });
    }
    let new_name = fresh_block_name(f, &format!("{}_init", block.name));
    let body = substitute(f, init, &axes);
    let init_block = BlockData {
        name: new_name.clone(),
        iters,
        predicate,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init: None,
        body,
        annotations: Vec::new(),
    };
    let init_block = add_block(f, init_block);
    Ok((new_name, wrap_in_loops(f, init_block, &new_loops)))
}

/// Fails if the loops in `loops` run the whole reduction of an element several times. The init must precede each of these
/// reductions, but `decompose_reduction` moves it into copies of the spatial loops, where it runs once for each element. Therefore
/// each loop must belong to an axis of the block, and different iterations of spatial loops must access different elements.
fn check_elements_once(f: &PrimFunc, block: &BlockData, loops: &[Loop]) -> Step<()> {
    for l in loops {
        let uses = |it: &IterVar| uses_any(f, it.binding, &|v| v == l.var);
        if !block.iters.iter().any(uses) {
            return Err(format!(
                "no axis of the block '{}' uses the loop '{}', so the loop repeats the reduction, but a separate init would run \
                 only once",
                block.name,
                f.var(l.var).name
            ));
        }
    }
    for it in block.iters.iter().filter(|it| it.kind == IterKind::Spatial) {
        let is_loop = |v: Var| loops.iter().any(|l| l.var == v);
        let Some(linear) = linear_index(f, it.binding, &is_loop) else { continue };
        let mut terms = linear.terms;
        terms.sort_by_key(|(_, factor)| factor.unsigned_abs());
        let mut span = Some(0i64);
        for (i, &(var, factor)) in terms.iter().enumerate() {
            if i > 0 && span.zip(factor.checked_abs()).is_none_or(|(span, factor)| factor <= span) {
                return Err(format!(
                    "the loops of the axis '{}' of the block '{}' compute some elements several times, but a separate init \
                     would run only once",
                    f.var(it.var).name,
                    block.name
                ));
            }
            let extent = loops.iter().find(|l| l.var == var).and_then(|l| f.as_int(l.extent));
            span = span.zip(extent).and_then(|(span, extent)| {
                span.checked_add(factor.checked_abs()?.checked_mul(extent.max(1) - 1)?)
            });
        }
    }
    Ok(())
}

/// Returns the predicate for the block into which the init of `block` moves: those conditions of the predicate of `block` that do
/// not depend on reduction loops. `inner` are the loops in front of which the init moves. `values` maps the variables of the
/// spatial loops among them to the new loops around the init. Fails if a condition depends on both spatial and reduction loops.
fn init_predicate(
    f: &mut PrimFunc,
    block: &BlockData,
    inner: &[Loop],
    values: &FxHashMap<Var, Expr>,
) -> Step<Option<Expr>> {
    let Some(predicate) = block.predicate else { return Ok(None) };
    let mut conditions = vec![predicate];
    let mut kept = Vec::new();
    while let Some(condition) = conditions.pop() {
        if let ExprData::Binary(BinOp::And, a, b) = *f.expr(condition) {
            conditions.extend([a, b]);
            continue;
        }
        let uses_dropped = |v: Var| inner.iter().any(|l| l.var == v) && !values.contains_key(&v);
        if !uses_any(f, condition, &uses_dropped) {
            kept.push(substitute_expr(f, condition, values));
            continue;
        }
        let uses_spatial = |v: Var| values.contains_key(&v);
        if uses_any(f, condition, &uses_spatial) {
            return Err(format!(
                "each condition in the predicate of the block '{}' must use either spatial or reduction loops, but one uses both",
                block.name
            ));
        }
    }
    Ok(kept.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b)))
}

/// Fails unless a block is the only statement in its outermost loop, with only loops between the two. `rfactor` requires this,
/// because it inserts the block that combines the partial results after this loop.
fn check_alone(f: &PrimFunc, block: &BlockData, stmt: Stmt, buffer: Buffer) -> Step<()> {
    let anchor = outermost_statement(f, &block.name)?;
    let buffer = &f.buffer(buffer).name;
    if leaves(f, anchor).iter().any(|leaf| leaf.stmt != stmt) {
        return Err(format!(
            "rfactor requires that the outermost loop of the block '{}' contains no other statements, because they would run \
             before '{buffer}' is complete",
            block.name
        ));
    }
    let path = path_to_block(f, &block.name)?;
    let inside = path.iter().skip_while(|&&s| s != anchor).take_while(|&&s| s != stmt);
    if inside.into_iter().any(|&s| crate::loop_tree::as_loop(f, s).is_none()) {
        return Err(format!(
            "rfactor requires that only loops enclose the block '{}', but another kind of statement does",
            block.name
        ));
    }
    Ok(())
}

/// The parts of a reduction `C[..] = op(C[..], value)` whose result is initialized with `init`.
struct Reduction {
    buffer: Buffer,
    indices: Box<[Expr]>,
    op: BinOp,
    value: Expr,
    init: Expr,
}

/// Splits the reduction over the loop `var` into one partial result for each iteration, which another block combines. The buffer of
/// the partial results has the dims of the result and an additional dim for the loop, at position `factor_axis`. Returns the name
/// of the block that computes the partial results.
pub(crate) fn rfactor(f: &mut PrimFunc, var: Var, factor_axis: i64) -> Step<String> {
    let factored = find_loop(f, var)?;
    let loop_name = f.var(var).name.clone();
    let blocks = crate::loop_tree::blocks_in(f, factored.stmt);
    let [(stmt, block)] = &blocks[..] else {
        return Err(format!(
            "rfactor requires that the loop '{loop_name}' contains exactly one block, but it contains {}",
            blocks.len()
        ));
    };
    let (stmt, block) = (*stmt, block.clone());
    let reduction = reduction_of(f, &block)?;
    let loops = loops_of_block(f, &block.name)?;
    check_alone(f, &block, stmt, reduction.buffer)?;
    let uses = |it: &&IterVar| uses_any(f, it.binding, &|v| v == var);
    if block.iters.iter().find(uses).is_none_or(|it| it.kind != IterKind::Reduce) {
        return Err(format!(
            "rfactor requires a loop over a reduction axis, but the loop '{loop_name}' runs over no reduction axis of the block \
             '{}'",
            block.name
        ));
    }
    let rank = f.buffer(reduction.buffer).shape.len() as i64;
    let position = if factor_axis < 0 { factor_axis + rank + 1 } else { factor_axis };
    if !(0..=rank).contains(&position) {
        return Err(format!(
            "factor_axis, the position of the new dim, is {factor_axis}, but must be from {} to {rank}",
            -rank - 1
        ));
    }
    if f.as_int(factored.min) != Some(0) {
        return Err(format!("rfactor requires that the loop '{loop_name}' starts at 0"));
    }
    let position = position as usize;
    let partial = partial_buffer(f, reduction.buffer, position, factored.extent);
    let (rf_name, name) = (fresh_block_name(f, &format!("{}_rf", block.name)), block.name.clone());
    let target = (&rf_name, partial, position);
    let partial_block = partial_block(f, &block, &reduction, target, (&loops, &factored))?;
    let combining = combining_nest(f, &block, &reduction, partial, position, &loops, &factored)?;
    let partial_block = add_block(f, partial_block);
    replace(f, stmt, partial_block);
    let anchor = outermost_statement(f, &rf_name)?;
    let both = f.seq(vec![anchor, combining]);
    replace(f, anchor, both);
    allocate(f, partial);
    flatten_sequences(f);
    debug_assert!(find_block(f, &name).is_ok());
    Ok(rf_name.to_string())
}

/// An update `C[..] = op(C[..], value)`, where `value` does not read `C`.
pub(crate) struct Accumulation {
    buffer: Buffer,
    indices: Box<[Expr]>,
    /// The operator that combines the old result and the value.
    pub op: BinOp,
    /// The value of one iteration.
    pub value: Expr,
}

/// Returns the update `C[..] = op(C[..], value)` that is the body of a block. `None` for other bodies, and for operators with which
/// the result depends on the order of the values.
pub(crate) fn accumulation(f: &PrimFunc, block: &BlockData) -> Option<Accumulation> {
    let StmtData::Store { buffer, indices, value } = f.stmt(block.body).clone() else {
        return None;
    };
    let ExprData::Binary(op, a, b) = *f.expr(value) else { return None };
    let is_result =
        |e: Expr| matches!(f.expr(e), ExprData::Load(x, i) if *x == buffer && *i == indices);
    let value = match op {
        BinOp::Sub if is_result(a) => b,
        BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max if is_result(a) => b,
        BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max if is_result(b) => a,
        _ => return None,
    };
    (!loads(f, value, buffer)).then_some(Accumulation { buffer, indices, op, value })
}

/// Returns the reduction that a block computes. Fails if it computes none, or if its init is not the identity of the operator.
fn reduction_of(f: &PrimFunc, block: &BlockData) -> Step<Reduction> {
    let failure = || {
        format!(
            "the block '{}' is not a reduction C[..] = op(C[..], value) with an init, where op is +, *, min or max",
            block.name
        )
    };
    let Some(init) = block.init else { return Err(failure()) };
    let accumulation = accumulation(f, block).filter(|a| a.op != BinOp::Sub).ok_or_else(failure)?;
    let Accumulation { buffer, indices, op, value } = accumulation;
    let StmtData::Store { buffer: init_buffer, indices: init_indices, value: init } =
        f.stmt(init).clone()
    else {
        return Err(failure());
    };
    let is_identity = match (op, f.expr(init)) {
        // The init of a minimum or maximum may be applied several times.
        (BinOp::Min | BinOp::Max, ExprData::Float(..) | ExprData::Int(..)) => true,
        (BinOp::Add, ExprData::Float(bits, _)) => f64::from_bits(*bits) == 0.0,
        (BinOp::Mul, ExprData::Float(bits, _)) => f64::from_bits(*bits) == 1.0,
        (BinOp::Add, ExprData::Int(value, _)) => *value == 0,
        (BinOp::Mul, ExprData::Int(value, _)) => *value == 1,
        _ => false,
    };
    if init_buffer != buffer || init_indices != indices {
        return Err(failure());
    }
    if !is_identity {
        return Err(format!(
            "the init of the block '{}' must be the identity of its reduction: 0 for +, 1 for *, and a constant for min and max",
            block.name
        ));
    }
    Ok(Reduction { buffer, indices, op, value, init })
}

/// Adds the buffer of the partial results to the function: it has the dims of `result` and a dim of size `extent` at `position`.
fn partial_buffer(f: &mut PrimFunc, result: Buffer, position: usize, extent: Expr) -> Buffer {
    let BufferData { name, dtype, mut shape, .. } = f.buffer(result).clone();
    shape.insert(position, extent);
    f.add_buffer(BufferData {
        name: format!("{name}_rf").into(),
        dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Global,
    })
}

/// Creates the block that computes the partial results. Its axes are the spatial axes of the original block and one axis for each
/// loop over its reduction axes. The axis of the loop `factored` is spatial, the axes of the other loops are reduction axes.
fn partial_block(
    f: &mut PrimFunc,
    block: &BlockData,
    reduction: &Reduction,
    (name, partial, position): (&Arc<str>, Buffer, usize),
    (loops, factored): (&[Loop], &Loop),
) -> Step<BlockData> {
    let (spatial, reduce): (Vec<IterVar>, Vec<IterVar>) =
        block.iters.iter().cloned().partition(|it| it.kind == IterKind::Spatial);
    let mut iters = spatial;
    let mut axes: FxHashMap<Var, Expr> = FxHashMap::default();
    for l in loops {
        if !reduce.iter().any(|it| uses_any(f, it.binding, &|v| v == l.var)) {
            continue;
        }
        let var = f.size_var(format!("v{}", f.var(l.var).name));
        axes.insert(l.var, f.var_expr(var));
        let kind = if l.var == factored.var { IterKind::Spatial } else { IterKind::Reduce };
        let binding = f.var_expr(l.var);
        iters.push(IterVar { var, min: l.min, extent: l.extent, kind, binding });
    }
    let is_other_loop = |v: Var| loops.iter().any(|l| l.var == v) && !axes.contains_key(&v);
    if block.predicate.is_some_and(|e| uses_any(f, e, &is_other_loop)) {
        return Err(format!(
            "rfactor requires that the predicate of the block '{}' uses only reduction loops, but it uses another loop",
            block.name
        ));
    }
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    for it in &reduce {
        values.insert(it.var, substitute_expr(f, it.binding, &axes));
    }
    let mut indices: Vec<Expr> = reduction.indices.to_vec();
    indices.insert(position, axes[&factored.var]);
    let value = substitute_expr(f, reduction.value, &values);
    let old = f.load(partial, &indices);
    let combined = f.binary(reduction.op, old, value);
    let mut body = f.store(partial, &indices, combined);
    if let Some(predicate) = block.predicate {
        let inside = substitute_expr(f, predicate, &axes);
        body = f.add_stmt(StmtData::If(inside, body, None));
    }
    let init = f.store(partial, &indices, reduction.init);
    let (init, body) = match iters.iter().any(|it| it.kind == IterKind::Reduce) {
        true => (Some(init), body),
        false => (None, f.seq(vec![init, body])),
    };
    Ok(BlockData {
        name: name.clone(),
        iters,
        predicate: None,
        reads: None,
        writes: None,
        init,
        body,
        ..block.clone()
    })
}

/// Creates the block that combines the partial results, inside new loops over its axes.
fn combining_nest(
    f: &mut PrimFunc,
    block: &BlockData,
    reduction: &Reduction,
    partial: Buffer,
    position: usize,
    loops: &[Loop],
    factored: &Loop,
) -> Step<Stmt> {
    let mut new_loops: Vec<(Var, Expr)> = Vec::new();
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    for l in loops {
        let spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
        if spatial.into_iter().any(|it| uses_any(f, it.binding, &|v| v == l.var)) {
            if f.as_int(l.min) != Some(0) {
                return Err(format!(
                    "rfactor requires that the loop '{}' starts at 0",
                    f.var(l.var).name
                ));
            }
            let fresh = f.size_var(f.var(l.var).name.clone());
            values.insert(l.var, f.var_expr(fresh));
            new_loops.push((fresh, l.extent));
        }
    }
    let outer = f.size_var(f.var(factored.var).name.clone());
    let outer_expr = f.var_expr(outer);
    new_loops.push((outer, factored.extent));
    let mut iters: Vec<IterVar> = Vec::new();
    let mut axes: FxHashMap<Var, Expr> = FxHashMap::default();
    for it in block.iters.iter().filter(|it| it.kind == IterKind::Spatial) {
        let var = f.add_var(f.var(it.var).name.clone(), f.var(it.var).ty);
        axes.insert(it.var, f.var_expr(var));
        let binding = substitute_expr(f, it.binding, &values);
        iters.push(IterVar { var, binding, ..it.clone() });
    }
    let reduce = f.size_var(format!("v{}", f.var(factored.var).name));
    let zero = f.int(0);
    iters.push(IterVar {
        var: reduce,
        min: zero,
        extent: factored.extent,
        kind: IterKind::Reduce,
        binding: outer_expr,
    });
    let mut indices: Vec<Expr> = Vec::new();
    for &index in &reduction.indices {
        indices.push(substitute_expr(f, index, &axes));
    }
    let mut partial_indices = indices.clone();
    partial_indices.insert(position, f.var_expr(reduce));
    let (old, value) = (f.load(reduction.buffer, &indices), f.load(partial, &partial_indices));
    let combined = f.binary(reduction.op, old, value);
    let body = f.store(reduction.buffer, &indices, combined);
    let init = f.store(reduction.buffer, &indices, reduction.init);
    let combining = BlockData {
        name: block.name.clone(),
        iters,
        predicate: None,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init: Some(init),
        body,
        annotations: block.annotations.clone(),
    };
    let combining = add_block(f, combining);
    Ok(wrap_in_loops(f, combining, &new_loops))
}
