//! InlineInjective: inlines an elementwise stage that writes a temporary into the stages that read the temporary, if
//! recomputation is cheap. A stage is a loop nest around one block.
//!
//! A stage is inlined if it has one reader or only a few operations. It is not inlined into a reduction that reads its
//! elements more than once, nor if a matrix product would no longer be recognized, or if expensive operations would no
//! longer be vectorized. A stage that may leave elements of its buffer unwritten is not inlined either, because its
//! readers must read zeros for these elements.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashMap;

use crate::fully_written_buffers::stmt_fully_writes;
use crate::lowering_error::LowerError;
use crate::schedule::emit_stage_loops::vector_axis;
use crate::schedule::gemm;
use crate::schedule::loop_nest_stages::{Body, Item, Stage, is_var, parse_body, parse_stage};
use crate::stack_guard::has_deep_expr;
use crate::statement_traversal::{
    ExprRewriter, direct_exprs, for_each_stmt, for_each_value, substitute_expr,
};

/// Maximum cost of a value that several readers may recompute instead of loading it, as a number of operations
/// ([`operation_count`]).
const MAX_RECOMPUTED_COST: usize = 8;

/// Inlines elementwise stages into their readers.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    // Each iteration removes one stage. The bound keeps the compile time of huge functions close to linear.
    for _ in 0..256 {
        if !inline_one(f) {
            break;
        }
    }
    Ok(())
}

/// Inlines the first stage that can be inlined. Returns whether such a stage exists.
fn inline_one(f: &mut PrimFunc) -> bool {
    let Some(sequence) = StageSequence::of(f) else { return false };
    let (allocs, items) = parse_body(f);
    if items.len() != sequence.stmts.len() {
        return false;
    }
    for (i, item) in items.iter().enumerate() {
        let Item::Stage(producer) = item else { continue };
        let Some(buffer) = inlinable_buffer(f, producer, i, &allocs, &items) else { continue };
        if !stmt_fully_writes(f, sequence.stmts[i], buffer) {
            continue;
        }
        if let Some(new) =
            inline_into_readers(f, producer, buffer, &sequence.stmts[i + 1..], &items[i + 1..])
        {
            let mut stmts = sequence.stmts[..i].to_vec();
            stmts.extend(new);
            sequence.rebuild(f, buffer, stmts);
            return true;
        }
    }
    false
}

/// The body of a function as a sequence of stages inside allocations and root blocks.
struct StageSequence {
    wrappers: Vec<Stmt>,
    stmts: Vec<Stmt>,
}

impl StageSequence {
    fn of(f: &PrimFunc) -> Option<StageSequence> {
        let (mut wrappers, mut at) = (Vec::new(), f.body);
        loop {
            match f.stmt(at) {
                StmtData::Alloc(_, body) => {
                    wrappers.push(at);
                    at = *body;
                }
                StmtData::Block(b)
                    if b.iters.is_empty() && b.predicate.is_none() && b.init.is_none() =>
                {
                    wrappers.push(at);
                    at = b.body;
                }
                StmtData::Seq(list) => {
                    let nested = list.iter().any(|&s| matches!(f.stmt(s), StmtData::Seq(_)));
                    return (!nested).then(|| StageSequence { wrappers, stmts: list.clone() });
                }
                _ => return None,
            }
        }
    }

    /// Replaces the stages in the function's body by `stmts`. The allocations and root blocks around them stay, except for the
    /// allocation of `removed`.
    fn rebuild(&self, f: &mut PrimFunc, removed: Buffer, stmts: Vec<Stmt>) {
        let mut body = f.add_stmt(StmtData::Seq(stmts));
        for &w in self.wrappers.iter().rev() {
            body = match f.stmt(w).clone() {
                StmtData::Alloc(b, _) if b == removed => body,
                StmtData::Alloc(b, _) => f.add_stmt(StmtData::Alloc(b, body)),
                StmtData::Block(mut b) => {
                    b.allocs.retain(|&a| a != removed);
                    b.body = body;
                    f.add_stmt(StmtData::Block(b))
                }
                _ => unreachable!(
                    "the statements around a sequence of stages are allocations and root blocks"
                ),
            };
        }
        f.body = body;
    }
}

/// Returns the temporary buffer that the stage at position `at` writes, if the stage is elementwise and no other stage writes the
/// buffer.
fn inlinable_buffer(
    f: &PrimFunc,
    s: &Stage,
    at: usize,
    allocs: &[Buffer],
    items: &[Item],
) -> Option<Buffer> {
    let Body::Store { buffer, indices, value } = &s.body else { return None };
    let identity_indices = indices.len() == s.axes.len()
        && indices.iter().zip(&s.axes).all(|(&i, a)| !a.reduce && is_var(f, i, a.var));
    if !identity_indices || !s.guards.is_empty() || s.init.is_some() || !allocs.contains(buffer) {
        return None;
    }
    // A call that may write memory must run exactly once for each element, in the order of the stages.
    let mut has_effects = false;
    for_each_expr(f, *value, |e| {
        has_effects |=
            matches!(f.expr(e), ExprData::Call(Intrin::AddressOf | Intrin::CallPacked, ..));
    });
    if has_effects {
        return None;
    }
    let mut read = Vec::new();
    for_each_expr(f, *value, |e| {
        if let ExprData::Load(b, _) = f.expr(e) {
            read.push(*b);
        }
    });
    let mut writers = 0;
    for (i, item) in items.iter().enumerate() {
        let Item::Stage(other) = item else { return None };
        for (b, _, _) in other.accesses(f).into_iter().filter(|a| a.2) {
            writers += usize::from(b == *buffer);
            // Inlining delays the loads of the stage, so no later stage may write the buffers that it reads.
            if i > at && read.contains(&b) {
                return None;
            }
        }
    }
    (writers == 1 && !read.contains(buffer)).then_some(*buffer)
}

/// Returns the statements after a stage (the producer), with the value that the producer computes inlined into them; `None` if
/// this is not profitable.
fn inline_into_readers(
    f: &mut PrimFunc,
    producer: &Stage,
    buffer: Buffer,
    stmts: &[Stmt],
    items: &[Item],
) -> Option<Vec<Stmt>> {
    let Body::Store { value, .. } = &producer.body else { return None };
    let reads: usize = stmts.iter().map(|&s| count_loads(f, s, buffer)).sum();
    let cost = operation_count(f, *value);
    if reads == 0 || (reads > 1 && cost > MAX_RECOMPUTED_COST) {
        return None;
    }
    let rank = iterated_axes(f, producer);
    for (item, &s) in items.iter().zip(stmts) {
        let Item::Stage(reader) = item else { return None };
        if takes_address(f, s, buffer) {
            return None;
        }
        // A reader with more axes computes each value several times.
        let recomputes = count_loads(f, s, buffer) > 0 && iterated_axes(f, reader) > rank;
        if recomputes && cost > if reader.reduces() { 0 } else { MAX_RECOMPUTED_COST } {
            return None;
        }
    }
    let mut out = Vec::with_capacity(stmts.len());
    for &s in stmts {
        if count_loads(f, s, buffer) == 0 {
            out.push(s);
            continue;
        }
        let new = inline_into(f, s, producer, buffer, *value);
        let (old, fused) = (parse_stage(f, s)?, parse_stage(f, new)?);
        if gemm::is_matmul(f, &old) && !gemm::is_matmul(f, &fused)
            || loses_vectors(f, producer, &old, &fused)
            || has_deep_expr(f, new)
        {
            return None;
        }
        out.push(new);
    }
    Some(out)
}

/// Returns the number of axes of a stage with more than one iteration. Axes of unknown extent count.
fn iterated_axes(f: &PrimFunc, s: &Stage) -> usize {
    s.axes.iter().filter(|a| f.as_int(a.extent) != Some(1)).count()
}

/// Whether inlining would turn expensive vectorized operations into scalar operations.
fn loses_vectors(f: &PrimFunc, producer: &Stage, reader: &Stage, fused: &Stage) -> bool {
    let is_expensive = |s: &Stage| match &s.body {
        Body::Store { value, .. } => {
            operation_count(f, *value) > MAX_RECOMPUTED_COST && vector_axis(f, s).is_some()
        }
        Body::Other(_) => false,
    };
    vector_axis(f, fused).is_none() && (is_expensive(producer) || is_expensive(reader))
}

/// Returns the number of loads from a buffer in a statement.
fn count_loads(f: &PrimFunc, s: Stmt, buffer: Buffer) -> usize {
    let mut n = 0;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                n += usize::from(matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer));
            });
        });
    });
    n
}

/// Whether a statement takes the address of an element of a buffer.
fn takes_address(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let of_buffer = |e: Expr| matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer);
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                found |= matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, args, _) if of_buffer(args[0]));
            });
        });
    });
    found
}

/// Estimates the number of operations of an expression, not counting index arithmetic. A math function counts as several
/// operations.
pub(crate) fn operation_count(f: &PrimFunc, e: Expr) -> usize {
    let mut n = 0;
    for_each_value(f, e, |e| {
        n += match f.expr(e) {
            ExprData::Call(intrin, ..) if is_single_instruction(*intrin) => 1,
            ExprData::Call(Intrin::Sqrt | Intrin::Rsqrt, ..) => 4,
            ExprData::Binary(BinOp::Div, ..) => 4,
            ExprData::Call(..) => 16,
            ExprData::Binary(..) | ExprData::Select(..) | ExprData::Cast(..) | ExprData::Not(_) => {
                1
            }
            _ => 0,
        };
    });
    n
}

/// Whether an intrinsic costs about one instruction.
fn is_single_instruction(intrin: Intrin) -> bool {
    use Intrin::*;
    matches!(
        intrin,
        IfThenElse
            | Likely
            | Reinterpret
            | Abs
            | IsNan
            | IsInf
            | IsFinite
            | BitwiseAnd
            | BitwiseOr
            | BitwiseXor
            | BitwiseNot
    )
}

/// Replaces the loads from `buffer` in a statement by the expression `value`, which the stage `producer` computes.
fn inline_into(f: &mut PrimFunc, s: Stmt, producer: &Stage, buffer: Buffer, value: Expr) -> Stmt {
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == buffer => {
            let map: FxHashMap<_, _> =
                producer.axes.iter().zip(&*indices).map(|(a, &i)| (a.var, i)).collect();
            Some(substitute_expr(f, value, &map))
        }
        _ => None,
    };
    let mut s = ExprRewriter::new(&mut rule).stmt(f, s);
    // The read regions of blocks are no longer correct.
    s = crate::statement_traversal::map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Block(mut b) if b.reads.is_some() => {
            b.reads = None;
            Some(f.add_stmt(StmtData::Block(b)))
        }
        _ => None,
    });
    s
}
