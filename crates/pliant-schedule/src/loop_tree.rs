//! Functions that find loops and blocks of a function, and that replace and remove statements.

use std::sync::Arc;

use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, ForKind, IterKind, IterVar, PrimFunc, Stmt, StmtData, Ty,
    Var, VarTy,
};
use pliant_tir::statement_traversal::{children, direct_exprs, for_each_stmt, map_children};

use crate::error::Step;

/// A loop of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The `For` statement of this loop.
    pub stmt: Stmt,
    /// The loop variable.
    pub var: Var,
    /// The first value of the loop variable.
    pub min: Expr,
    /// The number of iterations.
    pub extent: Expr,
    /// The way in which the iterations of the loop are executed, such as in parallel.
    pub kind: ForKind,
    /// The statement that every iteration executes.
    pub body: Stmt,
}

/// Returns the loop in a statement; `None` if the statement is not a loop.
pub(crate) fn as_loop(f: &PrimFunc, stmt: Stmt) -> Option<Loop> {
    match *f.stmt(stmt) {
        StmtData::For { var, min, extent, kind, body, .. } => {
            Some(Loop { stmt, var, min, extent, kind, body })
        }
        _ => None,
    }
}

/// Returns the statements from the body of the function down to the first statement for which `is_target` returns true, both
/// included. Empty if there is no such statement.
pub(crate) fn path_to(f: &PrimFunc, is_target: &dyn Fn(Stmt, &StmtData) -> bool) -> Vec<Stmt> {
    fn search(
        f: &PrimFunc,
        s: Stmt,
        is_target: &dyn Fn(Stmt, &StmtData) -> bool,
        path: &mut Vec<Stmt>,
    ) -> bool {
        path.push(s);
        let data = f.stmt(s);
        if is_target(s, data) || children(data).into_iter().any(|c| search(f, c, is_target, path)) {
            return true;
        }
        path.pop();
        false
    }
    let mut path = Vec::new();
    search(f, f.body, is_target, &mut path);
    path
}

/// Returns the statements from the body of the function down to the loop over a variable, both included.
///
/// # Errors
/// If the loop does not exist any more.
pub(crate) fn path_to_loop(f: &PrimFunc, var: Var) -> Step<Vec<Stmt>> {
    let is_loop =
        |_: Stmt, data: &StmtData| matches!(data, StmtData::For { var: v, .. } if *v == var);
    let path = path_to(f, &is_loop);
    if path.is_empty() {
        let name = &f.var(var).name;
        return Err(format!(
            "the loop '{name}' does not exist any more; a primitive has replaced it"
        ));
    }
    Ok(path)
}

/// Returns the loop over a variable.
///
/// # Errors
/// If the loop does not exist any more.
pub(crate) fn find_loop(f: &PrimFunc, var: Var) -> Step<Loop> {
    let path = path_to_loop(f, var)?;
    path.last().and_then(|&s| as_loop(f, s)).ok_or_else(|| {
        format!("internal error: the statement of the loop '{}' is not a loop", f.var(var).name)
    })
}

/// Returns the statements from the body of the function down to the block with this name, both included.
///
/// # Errors
/// If there is no such block.
pub(crate) fn path_to_block(f: &PrimFunc, name: &str) -> Step<Vec<Stmt>> {
    let is_block =
        |_: Stmt, data: &StmtData| matches!(data, StmtData::Block(b) if *b.name == *name);
    let path = path_to(f, &is_block);
    if path.is_empty() {
        let known: Vec<String> = block_names(f).iter().map(|n| format!("'{n}'")).collect();
        return Err(format!("there is no block '{name}'; the blocks are {}", known.join(", ")));
    }
    Ok(path)
}

/// Returns the statement and the data of the block with this name.
///
/// # Errors
/// If there is no such block.
pub(crate) fn find_block(f: &PrimFunc, name: &str) -> Step<(Stmt, BlockData)> {
    let path = path_to_block(f, name)?;
    match path.last().map(|&s| (s, f.stmt(s))) {
        Some((s, StmtData::Block(b))) => Ok((s, (**b).clone())),
        _ => Err(format!("there is no block '{name}'")),
    }
}

/// Returns the names of all blocks, in program order.
pub(crate) fn block_names(f: &PrimFunc) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for_each_stmt(f, f.body, &mut |_, data| {
        if let StmtData::Block(b) = data {
            names.push(b.name.clone());
        }
    });
    names
}

/// Returns a name that no block of the function has: `name` itself, or `name` with a numeric suffix.
pub(crate) fn fresh_block_name(f: &PrimFunc, name: &str) -> Arc<str> {
    let used = block_names(f);
    if !used.iter().any(|n| **n == *name) {
        return name.into();
    }
    let numbered = (1..).map(|i| format!("{name}_{i}"));
    numbered.into_iter().find(|n| !used.iter().any(|u| **u == **n)).unwrap_or_default().into()
}

/// Returns all blocks inside a statement, each with its own statement.
pub(crate) fn blocks_in(f: &PrimFunc, s: Stmt) -> Vec<(Stmt, BlockData)> {
    let mut blocks = Vec::new();
    for_each_stmt(f, s, &mut |s, data| {
        if let StmtData::Block(b) = data {
            blocks.push((s, (**b).clone()));
        }
    });
    blocks
}

/// Returns the outermost blocks inside a statement, each with its own statement. Blocks inside of these blocks are not included.
pub(crate) fn outermost_blocks_in(f: &PrimFunc, s: Stmt) -> Vec<(Stmt, BlockData)> {
    match f.stmt(s) {
        StmtData::Block(b) => vec![(s, (**b).clone())],
        data => children(data).into_iter().flat_map(|c| outermost_blocks_in(f, c)).collect(),
    }
}

/// The name of the root block: the whole body of a function that has no other block of this name.
pub(crate) const ROOT: &str = "root";

/// Whether a name means the whole body of the function ([`ROOT`]).
pub(crate) fn is_body(f: &PrimFunc, name: &str) -> bool {
    name == ROOT && !block_names(f).iter().any(|n| **n == *ROOT)
}

/// Returns the loops around a block, outermost first. Loops around a block that contains this block are not included: the axes of
/// the outer block take their place.
///
/// # Errors
/// If there is no such block.
pub(crate) fn loops_of_block(f: &PrimFunc, name: &str) -> Step<Vec<Loop>> {
    if is_body(f, name) {
        return Ok(Vec::new());
    }
    let path = path_to_block(f, name)?;
    let around = &path[..path.len() - 1];
    let is_block = |s: &Stmt| matches!(f.stmt(*s), StmtData::Block(_));
    let scope = around.iter().rposition(is_block).map_or(0, |i| i + 1);
    Ok(loops_of(f, &around[scope..]))
}

/// Returns the loops among the statements of a path, outermost first.
pub(crate) fn loops_of(f: &PrimFunc, path: &[Stmt]) -> Vec<Loop> {
    path.iter().filter_map(|&s| as_loop(f, s)).collect()
}

/// Whether an expression uses variables that the body of the function defines: loop variables, block axes or variables of a `let`.
pub(crate) fn is_local(f: &PrimFunc, e: Expr) -> bool {
    let mut defined = rustc_hash::FxHashSet::default();
    for_each_stmt(f, f.body, &mut |_, data| match data {
        StmtData::For { var, .. } | StmtData::Let(var, ..) => drop(defined.insert(*var)),
        StmtData::Block(b) => defined.extend(b.iters.iter().map(|it| it.var)),
        _ => {}
    });
    pliant_tir::statement_traversal::uses_any(f, e, &|v| defined.contains(&v))
}

/// Whether a statement contains stores or calls that are not in a block.
pub(crate) fn has_statements_outside_blocks(f: &PrimFunc, s: Stmt) -> bool {
    match f.stmt(s) {
        StmtData::Block(_) => false,
        StmtData::Store { .. } | StmtData::Evaluate(_) | StmtData::While(..) => true,
        data => children(data).into_iter().any(|c| has_statements_outside_blocks(f, c)),
    }
}

/// Replaces the statement `old` in the function's body by `new`.
pub(crate) fn replace(f: &mut PrimFunc, old: Stmt, new: Stmt) {
    fn rebuild(f: &mut PrimFunc, s: Stmt, old: Stmt, new: Stmt) -> Stmt {
        if s == old { new } else { map_children(f, s, &mut |f, c| rebuild(f, c, old, new)) }
    }
    let body = f.body;
    f.body = rebuild(f, body, old, new);
}

/// Removes a statement, and each loop around it that would then be empty.
pub(crate) fn remove(f: &mut PrimFunc, removed: Stmt) {
    fn rebuild(f: &mut PrimFunc, s: Stmt, removed: Stmt) -> Option<Stmt> {
        if s == removed {
            return None;
        }
        match f.stmt(s).clone() {
            StmtData::Seq(list) => {
                let kept: Vec<Stmt> = list.iter().filter_map(|&c| rebuild(f, c, removed)).collect();
                match kept.len() {
                    0 if !list.is_empty() => None,
                    _ if kept == list => Some(s),
                    _ => Some(f.seq(kept)),
                }
            }
            StmtData::For { body, .. } | StmtData::Alloc(_, body) => {
                let is_for = as_loop(f, s).is_some();
                match rebuild(f, body, removed) {
                    None if is_for => None,
                    None => {
                        let empty = f.seq(Vec::new());
                        Some(map_children(f, s, &mut |_, _| empty))
                    }
                    Some(new) => Some(map_children(f, s, &mut |_, _| new)),
                }
            }
            _ => {
                let new = map_children(f, s, &mut |f, c| {
                    rebuild(f, c, removed).unwrap_or_else(|| f.seq(Vec::new()))
                });
                Some(new)
            }
        }
    }
    let body = f.body;
    f.body = rebuild(f, body, removed).unwrap_or_else(|| f.seq(Vec::new()));
}

/// Wraps a statement in serial loops from 0. `loops` lists (variable, extent) of each loop, outermost first.
pub(crate) fn wrap_in_loops(f: &mut PrimFunc, body: Stmt, loops: &[(Var, Expr)]) -> Stmt {
    loops.iter().rev().fold(body, |body, &(var, extent)| {
        let min = f.int(0);
        f.add_stmt(StmtData::For {
            var,
            min,
            extent,
            kind: ForKind::Serial,
            body,
            annotations: Vec::new(),
        })
    })
}

/// Adds a block to the statement arena of a function, and returns its statement.
pub(crate) fn add_block(f: &mut PrimFunc, block: BlockData) -> Stmt {
    f.add_stmt(StmtData::Block(Box::new(block)))
}

/// Calls `visit` with all expressions in the init and the body of a block, but not with those of its predicate, regions and axes.
pub(crate) fn for_each_body_expr(f: &PrimFunc, block: &BlockData, visit: &mut dyn FnMut(Expr)) {
    for s in block.init.into_iter().chain([block.body]) {
        for_each_stmt(f, s, &mut |_, data| {
            direct_exprs(data, |e| pliant_ir::tir::visit::for_each_expr(f, e, &mut *visit));
        });
    }
}

/// Returns the indices of each load from a buffer in a block, without duplicates.
pub(crate) fn loads_of(f: &PrimFunc, block: &BlockData, buffer: Buffer) -> Vec<Box<[Expr]>> {
    let mut loads = Vec::new();
    for_each_body_expr(f, block, &mut |e| {
        if let ExprData::Load(b, indices) = f.expr(e)
            && *b == buffer
            && !loads.contains(indices)
        {
            loads.push(indices.clone());
        }
    });
    loads
}

/// Returns the buffers that a block only reads, in the order of their first use. Buffers that it also writes, such as the result of
/// a reduction, are not included.
pub(crate) fn read_buffers(f: &PrimFunc, block: &BlockData) -> Vec<Buffer> {
    let written = written_buffers(f, block);
    let mut buffers = Vec::new();
    for_each_body_expr(f, block, &mut |e| {
        if let ExprData::Load(b, _) = f.expr(e)
            && !buffers.contains(b)
            && !written.contains(b)
        {
            buffers.push(*b);
        }
    });
    buffers
}

/// The buffers that a block writes, in the order of their first use.
pub(crate) fn written_buffers(f: &PrimFunc, block: &BlockData) -> Vec<Buffer> {
    let mut buffers = Vec::new();
    for s in block.init.into_iter().chain([block.body]) {
        for_each_stmt(f, s, &mut |_, data| {
            if let StmtData::Store { buffer, .. } = data
                && !buffers.contains(buffer)
            {
                buffers.push(*buffer);
            }
        });
    }
    buffers
}

/// Returns the name of the first block axis that is not spatial and whose binding uses the variable; `None` if there is none.
pub(crate) fn non_spatial_axis(f: &PrimFunc, block: &BlockData, var: Var) -> Option<Arc<str>> {
    let uses = |e: Expr| pliant_tir::statement_traversal::uses_any(f, e, &|v| v == var);
    let axis = block.iters.iter().find(|it| it.kind != IterKind::Spatial && uses(it.binding))?;
    Some(f.var(axis.var).name.clone())
}

/// Returns the outermost statement on the path to a loop or block that is not an allocation, a root block (a block without axes) or
/// a sequence. This is usually the outermost loop of a nest.
pub(crate) fn outermost(f: &PrimFunc, path: &[Stmt]) -> Option<Stmt> {
    let is_wrapper = |s: Stmt| match f.stmt(s) {
        StmtData::Alloc(..) | StmtData::Seq(_) => true,
        StmtData::Block(b) => b.iters.is_empty(),
        _ => false,
    };
    let (last, around) = path.split_last()?;
    Some(around.iter().copied().find(|&s| !is_wrapper(s)).unwrap_or(*last))
}

/// Returns the outermost statement around a block that is neither an allocation nor a root block nor a sequence, such as its
/// outermost loop; the block itself if there is none ([`outermost`]).
pub(crate) fn outermost_statement(f: &PrimFunc, block: &str) -> Step<Stmt> {
    let path = path_to_block(f, block)?;
    outermost(f, &path).ok_or_else(|| format!("the block '{block}' has no statements"))
}

/// Fails unless a block axis has the data type int64.
pub(crate) fn check_int64_axis(f: &PrimFunc, it: &IterVar, block: &str) -> Step<()> {
    match f.var(it.var).ty {
        VarTy::Value(ty) if ty == Ty::I64 => Ok(()),
        _ => Err(format!(
            "the axis '{}' of the block '{block}' must have the data type int64",
            f.var(it.var).name
        )),
    }
}

/// A block that is alone in its loops, each of which is the value of one axis.
pub(crate) struct SimpleNest {
    /// The outermost loop; the block itself if there are no loops.
    pub outermost: Stmt,
    /// The loops, outermost first.
    pub loops: Vec<Loop>,
    /// The block. Each of its axes starts at 0 and is bound to the variable of one loop, whose extent is that of the axis.
    pub block: BlockData,
}

/// Returns a block that is alone in its loops, each of which is the value of one axis.
///
/// # Errors
/// If there is no such block, if other statements are in its loops, if a loop is not serial, or if the axes are not the loops.
pub(crate) fn simple_nest(f: &PrimFunc, name: &str) -> Step<SimpleNest> {
    let (stmt, block) = find_block(f, name)?;
    let loops = loops_of_block(f, name)?;
    let bodies = loops.iter().skip(1).map(|l| l.stmt).chain([stmt]);
    if let Some((l, _)) = loops.iter().zip(bodies).find(|(l, inner)| l.body != *inner) {
        return Err(format!(
            "the loop '{}' around the block '{name}' contains other statements, but the primitive replaces the loops of the block",
            f.var(l.var).name
        ));
    }
    if let Some(l) = loops.iter().find(|l| l.kind != ForKind::Serial) {
        return Err(format!(
            "the loop '{}' around the block '{name}' is {}, but the primitive replaces the loops of the block by serial ones; apply \
             it first",
            f.var(l.var).name,
            l.kind.name()
        ));
    }
    if block.predicate.is_some() {
        return Err(format!(
            "the block '{name}' has a predicate, but the primitive requires a block whose axes are its loops; apply it before \
             split, or fuse with factors that divide the extents"
        ));
    }
    block.iters.iter().try_for_each(|it| check_int64_axis(f, it, name))?;
    let is_loop = |it: &IterVar| {
        let bound = |l: &&Loop| matches!(f.expr(it.binding), ExprData::Var(v) if *v == l.var);
        let mut matching = loops.iter().filter(bound);
        matching.next().is_some_and(|l| {
            let is_zero = |e| f.as_int(e) == Some(0);
            l.extent == it.extent && is_zero(l.min) && is_zero(it.min)
        })
    };
    if let Some(it) = block.iters.iter().find(|it| !is_loop(it)) {
        return Err(format!(
            "the axis '{}' of the block '{name}' is bound to '{}', but the primitive requires that each axis is bound to one loop \
             with the same range from 0",
            f.var(it.var).name,
            pliant_ir::print::tir_expr_text(f, it.binding)
        ));
    }
    let uses = |v: Var, it: &IterVar| matches!(f.expr(it.binding), ExprData::Var(w) if *w == v);
    let count = |v: Var| block.iters.iter().filter(|it| uses(v, it)).count();
    if let Some(l) = loops.iter().find(|l| count(l.var) != 1) {
        return Err(format!(
            "{} axes of the block '{name}' are bound to the loop '{}', but the primitive requires exactly one",
            count(l.var),
            f.var(l.var).name
        ));
    }
    Ok(SimpleNest { outermost: loops.first().map_or(stmt, |l| l.stmt), loops, block })
}
