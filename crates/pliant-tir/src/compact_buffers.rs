//! CompactBuffers: shrinks the allocated buffers of a function that a user has scheduled.
//!
//! A primitive such as `compute_at` moves the block that computes a buffer into a loop, but the buffer keeps its size. If all
//! accesses of a buffer are in one loop, and every iteration writes the elements that it reads, this pass allocates the buffer in
//! the loop, with the size of the region that one iteration uses.

use pliant_ir::tir::{
    Buffer, BufferData, Expr, ExprData, ForKind, Intrin, PrimFunc, Stmt, StmtData,
};
use rustc_hash::FxHashSet;

use crate::access_guards::reads_memory;
use crate::accessed_region::{
    Accesses, DimRange, accessed_region, are_iterations_disjoint, relative_index,
};
use crate::clear_scratch_buffers;
use crate::fully_written_buffers::stmt_fully_writes;
use crate::index_arithmetic::not_negative;
use crate::lowering_error::LowerError;
use crate::lowering_pipeline::is_scheduled;
use crate::statement_traversal::{
    ExprRewriter, accesses, children, direct_exprs, for_each_stmt, loads, loads_in, map_children,
    map_stmts,
};

/// Shrinks the allocated buffers of a function if a user has scheduled it.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if !is_scheduled(f) {
        return Ok(());
    }
    let mut allocated: Vec<(Stmt, Buffer)> = Vec::new();
    for_each_stmt(f, f.body, &mut |s, data| {
        if let StmtData::Alloc(buffer, _) = data {
            allocated.push((s, *buffer));
        }
    });
    for (_, buffer) in allocated {
        compact(f, buffer);
    }
    let body = f.body;
    f.body = make_shared_writes_serial(f, body);
    Ok(())
}

/// Makes a parallel or vectorized loop serial if its body stores to and loads from a temporary that is allocated outside of the
/// loop, unless different iterations provably access different elements. Iterations that share elements must not run at the same
/// time.
fn make_shared_writes_serial(f: &mut PrimFunc, s: Stmt) -> Stmt {
    let parameters: Vec<Buffer> = f.buffer_map.values().copied().collect();
    map_stmts(f, s, &mut |f, s| {
        let StmtData::For { var, min, extent, kind, body, annotations } = f.stmt(s).clone() else {
            return None;
        };
        if !matches!(kind, ForKind::Parallel | ForKind::Vectorized) {
            return None;
        }
        let (mut stored, mut local) = (FxHashSet::default(), FxHashSet::default());
        for_each_stmt(f, body, &mut |_, data| match data {
            StmtData::Store { buffer, .. } => drop(stored.insert(*buffer)),
            StmtData::Alloc(buffer, _) => drop(local.insert(*buffer)),
            _ => {}
        });
        let mut shared: Vec<Buffer> =
            stored.into_iter().filter(|b| !local.contains(b) && !parameters.contains(b)).collect();
        shared.sort();
        let is_shared = shared
            .into_iter()
            .any(|b| loads_in(f, body, b) && !are_iterations_disjoint(f, body, var, b));
        is_shared.then(|| {
            let kind = ForKind::Serial;
            f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations })
        })
    })
}

/// Zero-fills the buffers of a function that are not provably written before they are read, if a user has scheduled the function.
/// Runs after [`crate::partition_loops`], because conditions hide writes.
///
/// # Errors
/// None.
pub fn clear_unwritten(f: &mut PrimFunc) -> Result<(), LowerError> {
    if is_scheduled(f) {
        clear_scratch_buffers::run(f)?;
        crate::lower_block_init::run(f)?;
        crate::convert_blocks_to_loops::run(f)?;
    }
    Ok(())
}

/// Allocates a buffer in the innermost loop that contains all its accesses, with the size that an iteration uses.
fn compact(f: &mut PrimFunc, buffer: Buffer) {
    let body = f.body;
    let mut new_body = None;
    for_each_stmt(f, body, &mut |_, data| {
        if let StmtData::Alloc(b, inner) = data
            && *b == buffer
        {
            new_body = Some(*inner);
        }
    });
    let Some((user, loops)) = new_body.and_then(|inner| innermost_user(f, inner, buffer)) else {
        return;
    };
    if loops == 0 || takes_address(f, user, buffer) {
        return;
    }
    let region = accessed_region(f, user, buffer, Accesses::All);
    let BufferData { name, dtype, scope, .. } = f.buffer(buffer).clone();
    // Loops inside may have no iterations.
    let shape = region.iter().map(|range| not_negative(f, range.extent)).collect();
    let small = f.add_buffer(BufferData {
        name,
        dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope,
    });
    let rewritten = with_buffer(f, user, buffer, small, &region);
    // Conditions on indices only restrict the elements, so an iteration that would write what it reads without them does so with
    // them.
    let unconditional = map_stmts(f, rewritten, &mut |f, s| match *f.stmt(s) {
        StmtData::If(condition, then, None) if !reads_memory(f, condition) => Some(then),
        StmtData::Assert(condition, _, body) if !reads_memory(f, condition) => Some(body),
        _ => None,
    });
    if !stmt_fully_writes(f, unconditional, small) {
        return;
    }
    let allocation = f.add_stmt(StmtData::Alloc(small, rewritten));
    let body = f.body;
    f.body = replace(f, body, (user, allocation), buffer);
}

/// Whether a statement takes the address of a buffer, so that it may access any element.
fn takes_address(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
            pliant_ir::tir::visit::for_each_expr(f, e, |e| {
                if let ExprData::Call(Intrin::AddressOf | Intrin::CallKernel, args, _) = f.expr(e) {
                    found |= args.iter().any(|&arg| loads(f, arg, buffer));
                }
            });
        });
    });
    found
}

/// Returns the innermost statement that contains all accesses of a buffer, and the number of loops around it inside `s`.
fn innermost_user(f: &PrimFunc, s: Stmt, buffer: Buffer) -> Option<(Stmt, usize)> {
    let (mut at, mut loops, mut result) = (s, 0, None);
    loop {
        let data = f.stmt(at);
        let mut is_direct = false;
        direct_exprs(data, |e| is_direct |= loads(f, e, buffer));
        let users: Vec<Stmt> =
            children(data).into_iter().filter(|&c| accesses(f, c, buffer)).collect();
        match (data, &users[..]) {
            (StmtData::For { .. }, [one]) if !is_direct => {
                loops += 1;
                at = *one;
                result = Some((at, loops));
            }
            (
                StmtData::Seq(_)
                | StmtData::Alloc(..)
                | StmtData::Let(..)
                | StmtData::If(..)
                | StmtData::Assert(..),
                [one],
            ) if !is_direct => at = *one,
            _ => return result,
        }
    }
}

/// Returns a statement in which the buffer `small` replaces the buffer `large`. Indices become relative to the start of `region`,
/// the part of `large` that `small` contains.
fn with_buffer(
    f: &mut PrimFunc,
    s: Stmt,
    large: Buffer,
    small: Buffer,
    region: &[DimRange],
) -> Stmt {
    let mut inner = FxHashSet::default();
    for_each_stmt(f, s, &mut |_, data| {
        if let StmtData::For { var, .. } = data {
            inner.insert(*var);
        }
    });
    let relative = |f: &mut PrimFunc, indices: &[Expr]| -> Vec<Expr> {
        let ranges = indices.iter().zip(region);
        ranges
            .map(|(&index, range)| relative_index(f, index, range, &|v| inner.contains(&v)))
            .collect()
    };
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == large => {
            let indices = relative(f, &indices);
            Some(f.load(small, &indices))
        }
        _ => None,
    };
    let s = ExprRewriter::new(&mut rule).stmt(f, s);
    map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer, indices, value } if buffer == large => {
            let indices = relative(f, &indices);
            Some(f.store(small, &indices, value))
        }
        _ => None,
    })
}

/// Replaces the statement `old` by `new` inside `s`, and removes the allocation of the buffer `removed`.
fn replace(f: &mut PrimFunc, s: Stmt, (old, new): (Stmt, Stmt), removed: Buffer) -> Stmt {
    if s == old {
        return new;
    }
    match *f.stmt(s) {
        StmtData::Alloc(b, body) if b == removed => replace(f, body, (old, new), removed),
        _ => map_children(f, s, &mut |f, c| replace(f, c, (old, new), removed)),
    }
}
