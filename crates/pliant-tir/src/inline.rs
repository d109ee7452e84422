//! InlineInjective: computes an elementwise stage that writes a temporary inside its readers, if that costs little or nothing.
//!
//! A stage is inlined if it has one reader or costs only a few operations. It is not inlined into a reduction that reads its
//! elements more than once, nor if a matrix product would no longer be recognized, or if much work would no longer be vectorized. A
//! stage that may leave elements of its buffer unwritten is not inlined either, since its readers see zeros there.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::full_writes::body_writes_whole;
use crate::room::has_deep_expr;
use crate::schedule::emit::vector_axis;
use crate::schedule::gemm;
use crate::schedule::stage::{Body, Item, Stage, is_var, parse, stage};
use crate::walk::{ExprRewriter, for_each_stmt, for_each_value, own_exprs, substitute_expr};

/// Maximum number of operations of a stage that may be computed more than once.
const CHEAP: usize = 8;

/// Inlines elementwise stages into their readers.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    // Each step removes one stage. The bound keeps the total time for huge functions close to linear.
    for _ in 0..256 {
        if !step(f) {
            break;
        }
    }
    Ok(())
}

fn step(f: &mut PrimFunc) -> bool {
    let Some(outline) = Outline::of(f) else { return false };
    let (allocs, items) = parse(f);
    if items.len() != outline.stmts.len() {
        return false;
    }
    for (i, item) in items.iter().enumerate() {
        let Item::Stage(producer) = item else { continue };
        let Some(buffer) = candidate(f, producer, i, &allocs, &items) else { continue };
        if !body_writes_whole(f, outline.stmts[i], buffer) {
            continue;
        }
        if let Some(new) = inline(f, producer, buffer, &outline.stmts[i + 1..], &items[i + 1..]) {
            let mut stmts = outline.stmts[..i].to_vec();
            stmts.extend(new);
            outline.rebuild(f, buffer, stmts);
            return true;
        }
    }
    false
}

/// The sequence of stages, with the allocations and root blocks around it.
struct Outline {
    wrappers: Vec<Stmt>,
    stmts: Vec<Stmt>,
}

impl Outline {
    fn of(f: &PrimFunc) -> Option<Outline> {
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
                    return (!nested).then(|| Outline { wrappers, stmts: list.clone() });
                }
                _ => return None,
            }
        }
    }

    fn rebuild(&self, f: &mut PrimFunc, gone: Buffer, stmts: Vec<Stmt>) {
        let mut body = f.add_stmt(StmtData::Seq(stmts));
        for &w in self.wrappers.iter().rev() {
            body = match f.stmt(w).clone() {
                StmtData::Alloc(b, _) if b == gone => body,
                StmtData::Alloc(b, _) => f.add_stmt(StmtData::Alloc(b, body)),
                StmtData::Block(mut b) => {
                    b.allocs.retain(|&a| a != gone);
                    b.body = body;
                    f.add_stmt(StmtData::Block(b))
                }
                _ => unreachable!("only allocations and root blocks wrap"),
            };
        }
        f.body = body;
    }
}

/// The temporary that stage number `at` writes, if the stage is elementwise and its only writer.
fn candidate(
    f: &PrimFunc,
    s: &Stage,
    at: usize,
    allocs: &[Buffer],
    items: &[Item],
) -> Option<Buffer> {
    let Body::Store { buffer, indices, value } = &s.body else { return None };
    let plain = indices.len() == s.axes.len()
        && indices.iter().zip(&s.axes).all(|(&i, a)| !a.reduce && is_var(f, i, a.var));
    if !plain || !s.guards.is_empty() || s.init.is_some() || !allocs.contains(buffer) {
        return None;
    }
    // A call that may write memory must run once for each element, at its position between the other stages.
    let mut effects = false;
    for_each_expr(f, *value, |e| {
        effects |= matches!(f.expr(e), ExprData::Call(Intrin::AddressOf | Intrin::CallPacked, ..));
    });
    if effects {
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
            // Inlining delays the producer's loads, so no later stage may write the buffers that it reads.
            if i > at && read.contains(&b) {
                return None;
            }
        }
    }
    (writers == 1 && !read.contains(buffer)).then_some(*buffer)
}

/// The following statements with the producer computed inside them; `None` if that does not pay.
fn inline(
    f: &mut PrimFunc,
    producer: &Stage,
    buffer: Buffer,
    stmts: &[Stmt],
    items: &[Item],
) -> Option<Vec<Stmt>> {
    let Body::Store { value, .. } = &producer.body else { return None };
    let reads: usize = stmts.iter().map(|&s| reads_of(f, s, buffer)).sum();
    let cost = cost(f, *value);
    if reads == 0 || (reads > 1 && cost > CHEAP) {
        return None;
    }
    let rank = producer.axes.len();
    for (item, &s) in items.iter().zip(stmts) {
        let Item::Stage(reader) = item else { return None };
        if addressed(f, s, buffer) {
            return None;
        }
        // A reader with more axes would compute each value several times.
        let again = reads_of(f, s, buffer) > 0 && reader.axes.len() > rank;
        if again && cost > if reader.reduces() { 0 } else { CHEAP } {
            return None;
        }
    }
    let mut out = Vec::with_capacity(stmts.len());
    for &s in stmts {
        if reads_of(f, s, buffer) == 0 {
            out.push(s);
            continue;
        }
        let new = replace(f, s, producer, buffer, *value);
        let (old, made) = (stage(f, s)?, stage(f, new)?);
        if gemm::matches(f, &old) && !gemm::matches(f, &made)
            || loses_vectors(f, producer, &old, &made)
            || has_deep_expr(f, new)
        {
            return None;
        }
        out.push(new);
    }
    Some(out)
}

/// Whether inlining would turn much vectorized work into scalar work.
fn loses_vectors(f: &PrimFunc, producer: &Stage, reader: &Stage, joined: &Stage) -> bool {
    let heavy = |s: &Stage| match &s.body {
        Body::Store { value, .. } => cost(f, *value) > CHEAP && vector_axis(f, s).is_some(),
        Body::Other(_) => false,
    };
    vector_axis(f, joined).is_none() && (heavy(producer) || heavy(reader))
}

fn reads_of(f: &PrimFunc, s: Stmt, buffer: Buffer) -> usize {
    let mut n = 0;
    for_each_stmt(f, s, &mut |_, data| {
        own_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                n += usize::from(matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer));
            });
        });
    });
    n
}

/// Whether the address of an element of the buffer is taken.
fn addressed(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let of_buffer = |e: Expr| matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer);
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        own_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                found |= matches!(f.expr(e), ExprData::Call(Intrin::AddressOf, args, _) if of_buffer(args[0]));
            });
        });
    });
    found
}

/// The estimated number of operations of an expression, excluding its indices. A function counts as several operations.
pub(crate) fn cost(f: &PrimFunc, e: Expr) -> usize {
    let mut n = 0;
    for_each_value(f, e, |e| {
        n += match f.expr(e) {
            ExprData::Call(intrin, ..) if one_instruction(*intrin) => 1,
            ExprData::Call(Intrin::Sqrt | Intrin::Rsqrt, ..) => 4,
            ExprData::Call(..) => 16,
            ExprData::Binary(..) | ExprData::Select(..) | ExprData::Cast(..) | ExprData::Not(_) => {
                1
            }
            _ => 0,
        };
    });
    n
}

/// Whether an intrinsic takes about one instruction.
fn one_instruction(intrin: Intrin) -> bool {
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

fn replace(f: &mut PrimFunc, s: Stmt, producer: &Stage, buffer: Buffer, value: Expr) -> Stmt {
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == buffer => {
            let map: FxHashMap<_, _> =
                producer.axes.iter().zip(&*indices).map(|(a, &i)| (a.var, i)).collect();
            Some(substitute_expr(f, value, &map))
        }
        _ => None,
    };
    let mut s = ExprRewriter::new(&mut rule).stmt(f, s);
    // The annotations of what a block reads no longer hold.
    s = crate::walk::map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Block(mut b) if b.reads.is_some() => {
            b.reads = None;
            Some(f.add_stmt(StmtData::Block(b)))
        }
        _ => None,
    });
    s
}
