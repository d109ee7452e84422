//! Dependences between the statements of a function: which buffers they read and write, and whether a block can be moved.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, BlockData, Buffer, Expr, ExprData, Intrin, KernelCall, PrimFunc, Stmt, StmtData, Var,
};
use pliant_tir::accessed_region::{Accesses, DimRange, accessed_region, are_iterations_disjoint};
use pliant_tir::index_arithmetic::conjuncts;
use pliant_tir::statement_traversal::{children, direct_exprs, for_each_stmt};

use crate::error::Step;
use crate::loop_tree::{Loop, outermost, outermost_statement, path_to_loop};

/// A statement for which dependences are analyzed as a whole: a block, or a statement outside of blocks that stores or calls
/// functions.
pub(crate) struct Leaf {
    /// The analyzed statement: a block, or a statement outside of blocks.
    pub stmt: Stmt,
    /// The name of the block, or a description of the statement, for error messages.
    pub name: String,
    /// The buffers that the statement reads, including those that it also writes.
    pub reads: Vec<Buffer>,
    /// The buffers that the statement writes.
    pub writes: Vec<Buffer>,
    /// Whether the statement passes buffers to kernels or other functions.
    pub calls: bool,
}

impl Leaf {
    pub fn of(f: &PrimFunc, stmt: Stmt, name: String) -> Leaf {
        let (mut reads, mut writes, mut calls) = (Vec::new(), Vec::new(), false);
        for_each_stmt(f, stmt, &mut |_, data| {
            if let StmtData::Store { buffer, .. } = data {
                writes.push(*buffer);
            }
            direct_exprs(data, |e| calls |= expr_accesses(f, e, &mut reads, &mut writes));
            if let StmtData::Block(b) = data {
                let bindings = b.iters.iter().map(|it| it.binding).chain(b.predicate);
                bindings.for_each(|e| calls |= expr_accesses(f, e, &mut reads, &mut writes));
            }
        });
        for list in [&mut reads, &mut writes] {
            list.sort();
            list.dedup();
        }
        Leaf { stmt, name, reads, writes, calls }
    }

    /// Whether the statement reads or writes one of the buffers.
    pub fn touches(&self, buffers: &[Buffer]) -> bool {
        self.reads.iter().chain(&self.writes).any(|b| buffers.contains(b))
    }

    /// Returns the first buffer that the statement writes and that is in the list `buffers`; `None` if there is none.
    fn written(&self, buffers: &[Buffer]) -> Option<Buffer> {
        self.writes.iter().copied().find(|b| buffers.contains(b))
    }
}

/// Appends the buffers that an expression reads to `reads`, and the buffers that functions called in it may write to `writes`.
/// Returns whether the expression contains calls of kernels, linked functions or packed functions.
fn expr_accesses(f: &PrimFunc, e: Expr, reads: &mut Vec<Buffer>, writes: &mut Vec<Buffer>) -> bool {
    let mut calls = false;
    for_each_expr(f, e, |e| match f.expr(e) {
        ExprData::Load(buffer, _) => reads.push(*buffer),
        ExprData::Call(Intrin::CallKernel, ..) => {
            calls = true;
            let call = KernelCall::of(f, e);
            for (role, buffer) in call.iter().flat_map(KernelCall::buffers) {
                reads.push(buffer);
                if role.is_written() {
                    writes.push(buffer);
                }
            }
        }
        // The function may write through the addresses that it receives.
        ExprData::Call(Intrin::CallExtern | Intrin::CallPacked, args, _) => {
            calls = true;
            for &arg in args {
                for_each_expr(f, arg, |e| {
                    if let ExprData::Load(buffer, _) = f.expr(e) {
                        writes.push(*buffer);
                    }
                });
            }
        }
        _ => {}
    });
    calls
}

/// Returns the blocks in a statement, and the statements outside of blocks that store or call functions, in program order.
pub(crate) fn leaves(f: &PrimFunc, s: Stmt) -> Vec<Leaf> {
    fn collect(f: &PrimFunc, s: Stmt, out: &mut Vec<Leaf>) {
        match f.stmt(s) {
            StmtData::Block(b) if !b.iters.is_empty() => {
                out.push(Leaf::of(f, s, format!("the block '{}'", b.name)));
            }
            StmtData::Store { buffer, .. } => {
                let name = format!("a store to '{}' outside of blocks", f.buffer(*buffer).name);
                out.push(Leaf::of(f, s, name));
            }
            StmtData::Evaluate(_) | StmtData::While(..) => {
                out.push(Leaf::of(f, s, "a statement outside of blocks".into()));
            }
            data => children(data).into_iter().for_each(|c| collect(f, c, out)),
        }
    }
    let mut out = Vec::new();
    collect(f, s, &mut out);
    out
}

/// A move of a block from one outermost statement of the function to another one, with the leaves ([`Leaf`]) that the move may
/// affect. An outermost statement is a direct part of the function's body, usually a loop nest.
struct BlockMove {
    block: Leaf,
    /// The statements ([`Leaf`]), other than the moved block, in the outermost statement that contains the moved block.
    around: Vec<Leaf>,
    /// The statements ([`Leaf`]) between the outermost statement that contains the moved block and the one that contains the target
    /// loop.
    between: Vec<Leaf>,
    /// The statements ([`Leaf`]) in the outermost statement that contains the target loop.
    at_target: Vec<Leaf>,
}

impl BlockMove {
    /// Collects the statements that the move of a block into the loop `target` may affect. Fails unless the loop is in another
    /// outermost statement than the block. That statement must be later in the program than the block if `is_later` is set, and
    /// earlier otherwise.
    fn new(
        f: &PrimFunc,
        block: Stmt,
        name: &str,
        target: &Loop,
        is_later: bool,
    ) -> Step<BlockMove> {
        let from = outermost_statement(f, name)?;
        let to = outermost(f, &path_to_loop(f, target.var)?).ok_or("the loop does not exist")?;
        if from == to {
            return Err(format!(
                "the block '{name}' cannot be moved into the loop '{}', because both are in the same outermost loop: a block can \
                 be moved only into another loop nest",
                f.var(target.var).name
            ));
        }
        let all = leaves(f, f.body);
        let inside = |outer: Stmt| -> Vec<Stmt> {
            leaves(f, outer).into_iter().map(|leaf| leaf.stmt).collect()
        };
        let (in_from, in_to) = (inside(from), inside(to));
        let position = |list: &[Stmt]| all.iter().position(|leaf| list.contains(&leaf.stmt));
        let Some(start) = position(&in_from) else {
            return Err(format!(
                "the block '{name}' contains no statements, so it cannot be moved"
            ));
        };
        let loop_name = &f.var(target.var).name;
        let Some(end) = position(&in_to) else {
            return Err(format!(
                "the loop '{loop_name}' contains no statements, so no block can be moved into it"
            ));
        };
        if (start < end) != is_later {
            return Err(match is_later {
                true => format!(
                    "compute_at moves a block only into a later loop, but the loop '{loop_name}' runs before the block '{name}'"
                ),
                false => format!(
                    "reverse_compute_at moves a block only into an earlier loop, but the loop '{loop_name}' runs after the block \
                     '{name}'"
                ),
            });
        }
        let (low, high) = (start.min(end), start.max(end));
        let (mut around, mut between, mut at_target) = (Vec::new(), Vec::new(), Vec::new());
        let mut moved = None;
        for (i, leaf) in all.into_iter().enumerate() {
            if leaf.stmt == block {
                moved = Some(leaf);
            } else if in_from.contains(&leaf.stmt) {
                around.push(leaf);
            } else if in_to.contains(&leaf.stmt) {
                at_target.push(leaf);
            } else if (low..high).contains(&i) {
                between.push(leaf);
            }
        }
        let path = crate::loop_tree::path_to(f, &|s, _| s == block);
        if path.iter().any(|&s| matches!(f.stmt(s), StmtData::If(..) | StmtData::While(..))) {
            return Err(format!(
                "the block '{name}' is inside an if or while statement, so it cannot be moved"
            ));
        }
        let block = moved.ok_or_else(|| {
            format!("the block '{name}' is inside another block, so it cannot be moved")
        })?;
        Ok(BlockMove { block, around, between, at_target })
    }
}

/// Fails if the statement `leaf` and the moved block `block` must keep their order: `leaf` writes a buffer that `block` reads or
/// writes, or `leaf` reads a buffer that `block` writes. If `may_read` is set, the latter is allowed.
fn check_leaf(f: &PrimFunc, leaf: &Leaf, block: &Leaf, may_read: bool) -> Step<()> {
    if let Some(buffer) = leaf.written(&block.reads) {
        return Err(format!(
            "{} writes '{}', which {} reads, so the order of the two must not change",
            leaf.name,
            f.buffer(buffer).name,
            block.name
        ));
    }
    let conflict = match may_read {
        true => leaf.written(&block.writes).is_some(),
        false => leaf.touches(&block.writes),
    };
    if conflict {
        return Err(format!(
            "{other} uses a buffer that {moved} writes, so the order of the two must not change",
            other = leaf.name,
            moved = block.name
        ));
    }
    Ok(())
}

/// Fails unless a block can move to the start of the body of the loop `target`, which is later in the program and contains all
/// statements that read the block's result.
pub(crate) fn check_move_later(f: &PrimFunc, block: Stmt, name: &str, target: &Loop) -> Step<()> {
    let moved = BlockMove::new(f, block, name, target, true)?;
    let others = moved.around.iter().chain(&moved.between);
    others.into_iter().try_for_each(|leaf| check_leaf(f, leaf, &moved.block, false))?;
    let inside: Vec<Stmt> = leaves(f, target.body).into_iter().map(|leaf| leaf.stmt).collect();
    for leaf in &moved.at_target {
        check_leaf(f, leaf, &moved.block, inside.contains(&leaf.stmt))?;
        if leaf.calls && leaf.touches(&moved.block.writes) {
            return Err(format!(
                "the block '{name}' cannot be moved, because {} passes its result to a called function, which may read the whole \
                 result",
                leaf.name
            ));
        }
    }
    // Statements behind the target must not read the result, which is only computed for the loop.
    let reads_later = leaves(f, f.body).into_iter().find(|leaf| {
        leaf.stmt != block && !inside.contains(&leaf.stmt) && leaf.touches(&moved.block.writes)
    });
    match reads_later {
        Some(leaf) => Err(format!(
            "the block '{name}' cannot move into the loop '{}', because {other} uses its result outside of this loop",
            f.var(target.var).name,
            other = leaf.name
        )),
        None => Ok(()),
    }
}

/// Fails unless a block can move to the end of the body of the loop `target`, which is earlier in the program and contains all
/// statements that write the block's operand `operand`.
pub(crate) fn check_move_earlier(
    f: &PrimFunc,
    block: Stmt,
    name: &str,
    target: &Loop,
    operand: Buffer,
) -> Step<()> {
    let mut moved = BlockMove::new(f, block, name, target, false)?;
    if let Some(&buffer) = moved.block.reads.iter().find(|b| moved.block.writes.contains(b)) {
        let buffer = &f.buffer(buffer).name;
        return Err(format!(
            "the block '{name}' both reads and writes '{buffer}', so it cannot be moved"
        ));
    }
    let inside: Vec<Stmt> = leaves(f, target.body).into_iter().map(|leaf| leaf.stmt).collect();
    if let Some(leaf) = leaves(f, f.body)
        .into_iter()
        .find(|leaf| leaf.writes.contains(&operand) && !inside.contains(&leaf.stmt))
    {
        return Err(format!(
            "the block '{name}' cannot be moved into the loop '{}', because {other} writes its operand '{}' outside of this loop",
            f.var(target.var).name,
            f.buffer(operand).name,
            other = leaf.name
        ));
    }
    let others = moved.around.iter().chain(&moved.between);
    others.into_iter().try_for_each(|leaf| check_leaf(f, leaf, &moved.block, false))?;
    moved.block.reads.retain(|&b| b != operand);
    moved.at_target.iter().try_for_each(|leaf| check_leaf(f, leaf, &moved.block, false))
}

/// Fails unless the readers of a block's result can compute it again from the inputs of the block: from the start of the outermost
/// statement that contains the block, no other statement may write a buffer that the block reads or writes. Also fails if an
/// earlier statement uses a buffer that the block writes.
pub(crate) fn check_inputs_stay(f: &PrimFunc, block: Stmt, name: &str) -> Step<()> {
    let start = outermost_statement(f, name)?;
    let first = leaves(f, start).first().map(|leaf| leaf.stmt);
    let all = leaves(f, f.body);
    let Some(moved) = all.iter().find(|leaf| leaf.stmt == block) else {
        return Err(format!("the block '{name}' is inside another block, so it cannot be inlined"));
    };
    let from = all.iter().position(|leaf| Some(leaf.stmt) == first).unwrap_or(0);
    let later = all[from..].iter().filter(|leaf| leaf.stmt != block);
    later.into_iter().try_for_each(|leaf| check_leaf(f, leaf, moved, true))?;
    // Statements in front would read elements that have not been written.
    match all[..from].iter().find(|leaf| leaf.touches(&moved.writes)) {
        Some(leaf) => Err(format!(
            "the block '{name}' cannot be inlined, because {other} runs before it and uses a buffer that it writes",
            other = leaf.name
        )),
        None => Ok(()),
    }
}

/// Fails unless the iterations of a loop with the body `body` can run in any order. For each buffer that one statement of the body
/// writes and another one uses, one of two conditions must hold. Either different iterations of the loop over `var` (if given)
/// access different elements of the buffer. Or, in each iteration, the other statement accesses only elements that the first one
/// writes in the same iteration, and reads them only afterwards.
pub(crate) fn check_iterations_independent(
    f: &mut PrimFunc,
    body: Stmt,
    var: Option<Var>,
) -> Step<()> {
    let all = leaves(f, body);
    for (j, writer) in all.iter().enumerate() {
        for &buffer in &writer.writes {
            let is_user = |leaf: &Leaf| leaf.touches(&[buffer]);
            let users = all.iter().enumerate().filter(|(i, leaf)| *i != j && is_user(leaf));
            let users: Vec<(usize, &Leaf)> = users.collect();
            if users.is_empty()
                || var.is_some_and(|var| are_iterations_disjoint(f, body, var, buffer))
            {
                continue;
            }
            for (i, user) in users {
                let stmts = (writer.stmt, user.stmt);
                let reads = |f: &mut PrimFunc, selected| {
                    reads_what_is_written(f, stmts, body, buffer, selected)
                };
                // A statement in front of the writer uses elements of an earlier iteration, unless it writes them before.
                let is_local = !user.calls
                    && !writer.calls
                    && !skips_iterations(f, writer.stmt)
                    && match j < i {
                        true => reads(f, Accesses::All),
                        false => !user.reads.contains(&buffer) && reads(f, Accesses::Stores),
                    };
                if !is_local {
                    return Err(format!(
                        "{} and {} may use the same elements of '{}' in different iterations, so the order of the iterations must \
                         not change",
                        writer.name,
                        user.name,
                        f.buffer(buffer).name
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether a block may skip elements in the ranges of its axes, because the block, a block inside it or an `if` statement inside it
/// has a condition other than the bounds of the block's own axes.
pub(crate) fn skips_iterations(f: &PrimFunc, block: Stmt) -> bool {
    let mut skips = false;
    for_each_stmt(f, block, &mut |_, data| match data {
        StmtData::Block(block) => skips |= has_other_conditions(f, block),
        StmtData::If(..) => skips = true,
        _ => {}
    });
    skips
}

/// Whether the predicate of a block has a condition other than the bounds of the block's axes.
fn has_other_conditions(f: &PrimFunc, block: &BlockData) -> bool {
    let mut conditions = Vec::new();
    if let Some(predicate) = block.predicate {
        conjuncts(f, predicate, &mut conditions);
    }
    let is_bound = |e: &Expr| match *f.expr(*e) {
        ExprData::Binary(BinOp::Lt, a, b) => {
            block.iters.iter().any(|it| it.binding == a && it.extent == b)
        }
        ExprData::Binary(BinOp::Ge, a, b) => {
            block.iters.iter().any(|it| it.binding == a && it.min == b)
        }
        _ => false,
    };
    !conditions.iter().all(is_bound)
}

/// Whether the elements of a buffer that the statement `reader` accesses in one iteration of a loop with the body `body` are among
/// the elements that the statement `writer` stores in this iteration. `selected` states whether loads, stores or both of `reader`
/// are considered.
fn reads_what_is_written(
    f: &mut PrimFunc,
    (writer, reader): (Stmt, Stmt),
    body: Stmt,
    buffer: Buffer,
    selected: Accesses,
) -> bool {
    let written = accessed_region_of(f, body, writer, buffer, Accesses::Stores);
    let read = accessed_region_of(f, body, reader, buffer, selected);
    written.iter().zip(&read).all(|(w, r)| contains(f, w, r))
}

/// Whether the range `outer` provably contains the range `inner`.
fn contains(f: &PrimFunc, outer: &DimRange, inner: &DimRange) -> bool {
    if outer.is_whole || (outer.min == inner.min && outer.extent == inner.extent) {
        return true;
    }
    let ((terms, start), (inner_terms, inner_start)) = (&outer.min_terms, &inner.min_terms);
    if inner.is_whole || terms != inner_terms || inner_start < start {
        return false;
    }
    match (f.as_int(outer.extent), f.as_int(inner.extent)) {
        (Some(outer), Some(inner)) => inner_start + inner <= start + outer,
        _ => outer.extent == inner.extent && start == inner_start,
    }
}

/// Returns the region of `buffer` that the statement `leaf` accesses in one iteration of a loop with the body `body`, as a range
/// for each dim. `selected` states whether loads, stores or both are considered.
fn accessed_region_of(
    f: &mut PrimFunc,
    body: Stmt,
    leaf: Stmt,
    buffer: Buffer,
    selected: Accesses,
) -> Vec<DimRange> {
    // The loops between the body and the leaf vary.
    let path = crate::loop_tree::path_to(f, &|s, _| s == leaf);
    let below = path.iter().position(|&s| s == body).map_or(0, |i| i);
    let mut nest = leaf;
    for &s in path[below..].iter().rev() {
        if crate::loop_tree::as_loop(f, s).is_some() {
            nest = crate::reorder::with_body(f, s, nest);
        }
    }
    accessed_region(f, nest, buffer, selected)
}
