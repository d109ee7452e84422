//! ReuseOutput: lets a matmul write directly to an output buffer. If a matmul writes a temporary that only an elementwise stage
//! reads, and this stage writes an output, the matmul writes to the output instead of the temporary, and the stage updates the
//! output in place.
//!
//! The function's tensors must not alias (`tir.noalias`), because the output is written earlier than before.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashMap;

use crate::fully_written_buffers::stmt_fully_writes;
use crate::lowering_error::LowerError;
use crate::schedule::gemm;
use crate::schedule::loop_nest_stages::{Body, Item, Stage, is_var, parse_body};
use crate::statement_traversal::{ExprRewriter, map_stmts};

/// Lets matmuls write to outputs instead of temporaries where possible.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if !matches!(f.attrs.get(NOALIAS), Some(AttrValue::Bool(true))) {
        return Ok(());
    }
    let (allocs, items) = parse_body(f);
    let stages: Option<Vec<&Stage>> = items
        .iter()
        .map(|i| match i {
            Item::Stage(s) => Some(s),
            Item::Other(_) => None,
        })
        .collect();
    let Some(stages) = stages.filter(|_| !allocs.is_empty()) else { return Ok(()) };
    let mut users = Users::default();
    for (at, stage) in stages.iter().enumerate() {
        for (buffer, ..) in stage.accesses(f) {
            users.entry(buffer).or_default().push(at);
        }
    }
    for at in 1..stages.len() {
        if let Some((temporary, output)) = reusable_output(f, &allocs, &stages, &users, at) {
            replace(f, temporary, output);
        }
    }
    Ok(())
}

/// For each buffer, the positions of the stages that read or write it, in program order.
type Users = FxHashMap<Buffer, Vec<usize>>;

/// Returns (temporary, output) if the stage at position `at` writes an output that can replace a temporary; `None` otherwise.
fn reusable_output(
    f: &mut PrimFunc,
    allocs: &[Buffer],
    stages: &[&Stage],
    users: &Users,
    at: usize,
) -> Option<(Buffer, Buffer)> {
    let Body::Store { buffer: output, indices, value } = &stages[at].body else { return None };
    let s = stages[at];
    let identity_indices = indices.len() == s.axes.len()
        && indices.iter().zip(&s.axes).all(|(&i, a)| !a.reduce && is_var(f, i, a.var));
    let is_output = f.buffer_map.values().any(|b| b == output);
    if !identity_indices || !is_output || s.init.is_some() || !s.guards.is_empty() {
        return None;
    }
    let used_elsewhere = |b: Buffer, from: usize| users[&b].iter().any(|&i| i >= from && i != at);
    if used_elsewhere(*output, 0) {
        return None;
    }
    let mut read: Vec<(Buffer, Box<[Expr]>)> = Vec::new();
    for_each_expr(f, *value, |e| {
        if let ExprData::Load(b, i) = f.expr(e) {
            read.push((*b, i.clone()));
        }
    });
    let can_replace = |f: &PrimFunc, b: Buffer| {
        let (t, o) = (f.buffer(b), f.buffer(*output));
        allocs.contains(&b)
            && (t.dtype, &t.shape, &t.strides) == (o.dtype, &o.shape, &o.strides)
            && t.elem_offset.is_none()
            && o.elem_offset.is_none()
            && read.iter().all(|(other, i)| *other != b || i == indices)
            && !used_elsewhere(b, at + 1)
    };
    let mut candidates =
        read.iter().map(|r| r.0).filter(|&b| can_replace(f, b)).collect::<Vec<_>>();
    candidates.dedup();
    candidates
        .into_iter()
        .find(|b| {
            // Before the stage, only one stage may use the temporary: the matrix product.
            let mut before: Vec<usize> = users[b].iter().copied().filter(|&i| i < at).collect();
            before.dedup();
            matches!(before[..], [writer] if gemm::is_matmul(f, stages[writer]))
        })
        // Otherwise the output might be read before it is written.
        .filter(|&b| stmt_fully_writes(f, f.body, b))
        .map(|b| (b, *output))
}

fn replace(f: &mut PrimFunc, temporary: Buffer, output: Buffer) {
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, i) if b == temporary => Some(f.load(output, &i)),
        _ => None,
    };
    let body = ExprRewriter::new(&mut rule).stmt(f, f.body);
    f.body = map_stmts(f, body, &mut |f: &mut PrimFunc, s: Stmt| match f.stmt(s).clone() {
        StmtData::Store { buffer, indices, value } if buffer == temporary => {
            Some(f.store(output, &indices, value))
        }
        StmtData::Alloc(b, body) if b == temporary => Some(body),
        StmtData::Block(mut b) => {
            b.allocs.retain(|&a| a != temporary);
            for r in b.reads.iter_mut().chain(&mut b.writes).flatten() {
                if r.buffer == temporary {
                    r.buffer = output;
                }
            }
            Some(f.add_stmt(StmtData::Block(b)))
        }
        _ => None,
    });
}
