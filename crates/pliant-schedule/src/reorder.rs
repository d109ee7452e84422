//! `reorder`: changes the order of loops in a nest. Each loop must directly contain the next one, and the innermost loop must
//! contain no statements outside of blocks.
//!
//! A new order is legal if it cannot change the results:
//! - If a statement writes elements that another one uses, both use them in the same iteration ([`crate::dependences`]).
//! - No reordered loop runs over an opaque axis of a block, since such an axis must run in order.
//! - No loop of the nest runs over both spatial and reduction axes of a block with an init.
//! - If the order of the reduction loops of a block changes, the block is an update with `+`, `-`, `*`, minimum or maximum, whose
//!   result does not depend on the order, except for rounding ([`crate::reductions`]).
//! - The range of no loop depends on a loop that would be inside it.

use pliant_ir::tir::{Expr, IterKind, IterVar, PrimFunc, Stmt, StmtData, Var};
use pliant_tir::statement_traversal::uses_any;

use crate::dependences::check_iterations_independent;
use crate::error::Step;
use crate::loop_tree::{
    Loop, blocks_in, find_loop, has_statements_outside_blocks, loops_of, path_to_loop, replace,
};
use crate::reductions::accumulation;

/// Reorders the loops of a nest: the loops in `order` take each other's positions, so that they have this order. The other loops of
/// the nest keep their positions.
pub(crate) fn reorder(f: &mut PrimFunc, order: &[Var]) -> Step<()> {
    let nest = nest_of(f, order)?;
    if let (Some(innermost), true) = (nest.last(), nest.len() > 1) {
        check_iterations_independent(f, innermost.body, None)?;
    }
    let name = |var: Var| f.var(var).name.clone();
    let body = nest.last().map_or(f.body, |l| l.body);
    if has_statements_outside_blocks(f, body) {
        return Err(format!(
            "the loop '{}' contains statements outside of blocks, so it cannot be reordered",
            name(nest[nest.len() - 1].var)
        ));
    }
    for (_, block) in blocks_in(f, body) {
        let opaque = |e: Expr| uses_any(f, e, &|v| order.contains(&v));
        let axis = block.iters.iter().find(|it| it.kind == IterKind::Opaque && opaque(it.binding));
        if let Some(axis) = axis {
            return Err(format!(
                "the axis '{}' of the block '{}' is opaque, so the order of its loops must not change",
                name(axis.var),
                block.name
            ));
        }
    }
    for l in &nest {
        check_one_kind(f, l.body, &[l.var])?;
    }
    // The listed loops take the positions of the listed loops, in the new order.
    let mut next = order.iter();
    let mut new_order: Vec<Loop> = Vec::with_capacity(nest.len());
    for l in &nest {
        let var = if order.contains(&l.var) { *next.next().unwrap_or(&l.var) } else { l.var };
        new_order.extend(nest.iter().find(|other| other.var == var));
    }
    check_reductions_commute(f, body, &nest, &new_order)?;
    for (i, l) in new_order.iter().enumerate() {
        let inner: Vec<Var> = new_order[i + 1..].iter().map(|l| l.var).collect();
        let depends = |e: Expr| uses_any(f, e, &|v| inner.contains(&v));
        if depends(l.extent) || depends(l.min) {
            return Err(format!(
                "the loops cannot be reordered, because the range of the loop '{}' depends on a loop that would then be inside it",
                name(l.var)
            ));
        }
    }
    let mut new = body;
    for l in new_order.iter().rev() {
        new = with_body(f, l.stmt, new);
    }
    replace(f, nest[0].stmt, new);
    Ok(())
}

/// Fails if the loops over `vars` run over both spatial and reduction axes of a block with an init. The init must run when the
/// reduction axes are at their first values.
pub(crate) fn check_one_kind(f: &PrimFunc, body: Stmt, vars: &[Var]) -> Step<()> {
    for (_, block) in blocks_in(f, body) {
        let used = |kind: bool| {
            block.iters.iter().any(|it| {
                (it.kind == IterKind::Spatial) == kind
                    && uses_any(f, it.binding, &|v| vars.contains(&v))
            })
        };
        if block.init.is_some() && used(true) && used(false) {
            return Err(format!(
                "the loop '{}' cannot be fused or reordered, because one loop must not run over both spatial and reduction axes \
                 of the block '{}', which has an init; apply decompose_reduction first",
                f.var(vars[0]).name,
                block.name
            ));
        }
    }
    Ok(())
}

/// Fails if the new order changes the order of a block's reduction loops and the result of the block may depend on this order.
fn check_reductions_commute(f: &PrimFunc, body: Stmt, old: &[Loop], new: &[Loop]) -> Step<()> {
    for (_, block) in blocks_in(f, body) {
        let reduces = |var: &Var| {
            let uses = |it: &&IterVar| uses_any(f, it.binding, &|v| v == *var);
            block.iters.iter().filter(uses).any(|it| it.kind == IterKind::Reduce)
        };
        let vars = |loops: &[Loop]| loops.iter().map(|l| l.var).filter(reduces).collect::<Vec<_>>();
        if vars(old) != vars(new) && accumulation(f, &block).is_none() {
            return Err(format!(
                "the loops cannot be reordered, because the result of the block '{}' may depend on the order of its reduction \
                 loops",
                block.name
            ));
        }
    }
    Ok(())
}

/// Returns the loops from the outermost to the innermost of the loops over `vars`, including the loops between them. Fails unless
/// these form a nest in which each loop contains only the next one.
fn nest_of(f: &PrimFunc, vars: &[Var]) -> Step<Vec<Loop>> {
    let name = |var: Var| f.var(var).name.clone();
    if vars.is_empty() {
        return Err("the list of loops to reorder is empty; pass at least one loop".into());
    }
    if let Some(i) = (1..vars.len()).find(|&i| vars[..i].contains(&vars[i])) {
        return Err(format!(
            "the list of loops to reorder contains the loop '{}' twice",
            name(vars[i])
        ));
    }
    let mut longest: Vec<Stmt> = Vec::new();
    for &var in vars {
        let path = path_to_loop(f, var)?;
        if path.len() > longest.len() {
            longest = path;
        }
    }
    let all = loops_of(f, &longest);
    if let Some(&outside) = vars.iter().find(|&&var| !all.iter().any(|l| l.var == var)) {
        let innermost = all.last().map_or_else(|| "?".into(), |l| name(l.var));
        return Err(format!(
            "the loops '{}' and '{innermost}' cannot be reordered, because they are not in one loop nest",
            name(outside)
        ));
    }
    let first = all.iter().position(|l| vars.contains(&l.var)).unwrap_or(0);
    let nest = all[first..].to_vec();
    for pair in nest.windows(2) {
        if pair[0].body != pair[1].stmt {
            return Err(format!(
                "the loops '{0}' and '{1}' cannot be reordered, because the body of '{0}' contains other statements besides '{1}'",
                name(pair[0].var),
                name(pair[1].var)
            ));
        }
    }
    // Each loop must still exist.
    vars.iter().try_for_each(|&var| find_loop(f, var).map(drop))?;
    Ok(nest)
}

/// Returns a copy of the loop `stmt` with the body `body`.
pub(crate) fn with_body(f: &mut PrimFunc, stmt: Stmt, body: Stmt) -> Stmt {
    let StmtData::For { var, min, extent, kind, annotations, .. } = f.stmt(stmt).clone() else {
        return stmt;
    };
    f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations })
}
