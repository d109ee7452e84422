//! `split`: replaces a loop by a nest of loops. Iterations that do not fill the inner loops are handled by predicates or by a tail
//! loop.

use std::sync::Arc;

use pliant_ir::tir::{
    BinOp, BlockData, Expr, ForKind, IterKind, PrimFunc, Stmt, StmtData, Ty, Var, VarTy,
};
use pliant_tir::statement_traversal::{map_stmts, substitute, uses_any};
use rustc_hash::FxHashMap;

use crate::error::Step;
use crate::loop_tree::{
    Loop, add_block, blocks_in, find_loop, fresh_block_name, has_statements_outside_blocks,
    replace, wrap_in_loops,
};
use pliant_tir::index_arithmetic::{ceil_div, is_multiple, not_negative, product};

/// How a split handles an extent that is not a multiple of the inner extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Remainder {
    /// The nest runs too many iterations, and predicates of the blocks in it skip those beyond the extent.
    #[default]
    Predicate,
    /// A loop after the nest runs the remaining iterations.
    Tail,
}

/// Maximum product of the factors of a split. Within this limit, sums of the product and sizes do not overflow.
const MAX_FACTOR: i64 = 1 << 40;

/// Splits the loop over `var` into a nest with the extents `factors`, outermost first. At most one of them may be `None`; it is
/// inferred from the others. Returns the variables of the new loops.
pub(crate) fn split(
    f: &mut PrimFunc,
    var: Var,
    factors: &[Option<i64>],
    remainder: Remainder,
) -> Step<Vec<Var>> {
    let mut old = find_loop(f, var)?;
    old.extent = not_negative(f, old.extent);
    let name = f.var(var).name.clone();
    let inferred = inferred_position(factors, &name)?;
    if old.kind != ForKind::Serial {
        return Err(format!(
            "the loop '{name}' is {kind}, but only serial loops can be split; apply split before the loop is made {kind}",
            kind = old.kind.name()
        ));
    }
    let known: i64 =
        factors.iter().flatten().try_fold(1i64, |all, &n| all.checked_mul(n)).ok_or_else(|| {
            format!("the product of the factors of the loop '{name}' overflows 64 bits")
        })?;
    if known > MAX_FACTOR {
        return Err(format!(
            "the product of the factors of the loop '{name}' is more than {MAX_FACTOR}"
        ));
    }
    let fills = match inferred {
        Some(_) => is_multiple(f, old.extent, known),
        None => f.as_int(old.extent) == Some(known),
    };
    if inferred.is_none() && !fills && f.as_int(old.extent).is_none_or(|extent| extent > known) {
        return Err(format!(
            "the factors {} cover {known} iterations, but the loop '{name}' may have more; replace one of them by None",
            list(factors)
        ));
    }
    let with_tail = remainder == Remainder::Tail && !fills;
    if with_tail {
        check_tail(f, &old)?;
        if inferred != Some(0) {
            return Err(
                "a split with a tail must infer the outermost factor: factors=[None, ...]".into()
            );
        }
    }
    let known_expr = f.int(known);
    let extents: Vec<Expr> = factors
        .iter()
        .map(|factor| match factor {
            Some(n) => f.int(*n),
            None if with_tail => f.binary(BinOp::FloorDiv, old.extent, known_expr),
            None => ceil_div(f, old.extent, known),
        })
        .collect();
    let vars: Vec<Var> = (0..factors.len()).map(|i| f.size_var(format!("{name}_{i}"))).collect();
    let index = nest_index(f, &vars, &extents);
    let main = iteration(f, &old, index, (!fills && !with_tail).then_some(old.extent));
    let loops: Vec<(Var, Expr)> = vars.iter().copied().zip(extents.iter().copied()).collect();
    let mut new = wrap_in_loops(f, main, &loops);
    if with_tail {
        let tail = tail_loop(f, &old, &name, extents[0], known_expr);
        new = f.seq(vec![new, tail]);
    }
    replace(f, old.stmt, new);
    Ok(vars)
}

/// Returns the position of the factor that is inferred; `None` if all factors are known. Fails if the factors are invalid.
fn inferred_position(factors: &[Option<i64>], name: &str) -> Step<Option<usize>> {
    if factors.is_empty() {
        return Err(format!("the list of factors of the loop '{name}' is empty"));
    }
    if let Some(bad) = factors.iter().flatten().find(|&&n| n < 1) {
        return Err(format!("the factors of the loop '{name}' must be positive, but one is {bad}"));
    }
    let mut inferred = factors.iter().enumerate().filter(|(_, factor)| factor.is_none());
    let first = inferred.next().map(|(i, _)| i);
    if inferred.next().is_some() {
        return Err(format!("only one factor of the loop '{name}' can be None"));
    }
    Ok(first)
}

/// Formats a list of factors for an error message.
fn list(factors: &[Option<i64>]) -> String {
    let texts: Vec<String> =
        factors.iter().map(|n| n.map_or("None".into(), |n| n.to_string())).collect();
    format!("[{}]", texts.join(", "))
}

/// Fails if the loop is a reduction loop of a block with an init. The init would run twice: in the main loops and in the tail loop.
fn check_tail(f: &PrimFunc, old: &Loop) -> Step<()> {
    let name = f.var(old.var).name.clone();
    for (_, block) in blocks_in(f, old.body) {
        let uses = |e: Expr| uses_any(f, e, &|v| v == old.var);
        let reduces = block.iters.iter().any(|it| it.kind == IterKind::Reduce && uses(it.binding));
        if reduces && block.init.is_some() {
            return Err(format!(
                "the loop '{name}' is a reduction loop of the block '{}', and a tail loop would run the init of the block again; \
                 apply decompose_reduction first, or split without a tail",
                block.name
            ));
        }
    }
    Ok(())
}

/// Returns the index of an iteration of a nest in row-major order: `(vars[0] * extents[1] + vars[1]) * extents[2] + ...`.
pub(crate) fn nest_index(f: &mut PrimFunc, vars: &[Var], extents: &[Expr]) -> Expr {
    let mut index = f.var_expr(vars[0]);
    for (&var, &extent) in vars[1..].iter().zip(&extents[1..]) {
        let var = f.var_expr(var);
        index = product(f, index, extent);
        index = f.add(index, var);
    }
    index
}

/// Returns the body of the loop `old` for the iteration with this index, counted from 0. With a `limit`, the body has no effect
/// unless the index is below the limit.
pub(crate) fn iteration(f: &mut PrimFunc, old: &Loop, index: Expr, limit: Option<Expr>) -> Stmt {
    let value = match f.as_int(old.min) {
        Some(0) => index,
        _ => f.add(old.min, index),
    };
    let mut body = substitute(f, old.body, &FxHashMap::from_iter([(old.var, value)]));
    let Some(limit) = limit else { return body };
    let inside = f.binary(BinOp::Lt, index, limit);
    if has_statements_outside_blocks(f, body) {
        return f.add_stmt(StmtData::If(inside, body, None));
    }
    body = outermost_blocks(f, body, &mut |f, mut block| {
        block.predicate = Some(match block.predicate {
            Some(p) => f.binary(BinOp::And, inside, p),
            None => inside,
        });
        block
    });
    body
}

/// Rewrites the outermost blocks of a statement with the callback. Blocks inside of other blocks are not rewritten separately.
pub(crate) fn outermost_blocks(
    f: &mut PrimFunc,
    s: Stmt,
    rewrite: &mut dyn FnMut(&mut PrimFunc, BlockData) -> BlockData,
) -> Stmt {
    if let StmtData::Block(block) = f.stmt(s).clone() {
        let block = rewrite(f, *block);
        return add_block(f, block);
    }
    pliant_tir::statement_traversal::map_children(f, s, &mut |f, c| outermost_blocks(f, c, rewrite))
}

/// Returns the tail loop of a split: the remaining iterations after the `outer * inner` iterations of the main loops. Its blocks
/// have new names.
fn tail_loop(f: &mut PrimFunc, old: &Loop, name: &Arc<str>, outer: Expr, inner: Expr) -> Stmt {
    let var = f.add_var(format!("{name}_tail"), VarTy::Value(Ty::I64));
    let done = f.mul(outer, inner);
    let rest = f.binary(BinOp::Sub, old.extent, done);
    let var_expr = f.var_expr(var);
    let index = f.add(done, var_expr);
    let body = iteration(f, old, index, None);
    let body = with_fresh_names(f, body, "tail");
    wrap_in_loops(f, body, &[(var, rest)])
}

/// Returns a copy of a statement with new loop variables. The names of its blocks get the suffix `suffix`.
pub(crate) fn with_fresh_names(f: &mut PrimFunc, s: Stmt, suffix: &str) -> Stmt {
    map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Block(mut block) => {
            block.name = fresh_block_name(f, &format!("{}_{suffix}", block.name));
            Some(add_block(f, *block))
        }
        StmtData::For { var, min, extent, kind, body, annotations } => {
            let data = f.var(var).clone();
            let fresh = f.add_var(data.name, data.ty);
            let value = f.var_expr(fresh);
            let body = substitute(f, body, &FxHashMap::from_iter([(var, value)]));
            let var = fresh;
            Some(f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations }))
        }
        _ => None,
    })
}
