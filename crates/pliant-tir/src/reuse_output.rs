//! ReuseOutput: if a matrix product writes a temporary that only the elementwise stage of an output reads, the product writes into
//! this output instead, and the stage updates it in place.
//!
//! The function's tensors must share no memory (`tir.noalias`), since the output is written earlier than before.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData};
use rustc_hash::FxHashMap;

use crate::error::LowerError;
use crate::full_writes::body_writes_whole;
use crate::schedule::gemm;
use crate::schedule::stage::{Body, Item, Stage, is_var, parse};
use crate::walk::{ExprRewriter, map_stmts};

/// Replaces temporaries by outputs.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if !matches!(f.attrs.get(NOALIAS), Some(AttrValue::Bool(true))) {
        return Ok(());
    }
    let (allocs, items) = parse(f);
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
        if let Some((temporary, output)) = pair(f, &allocs, &stages, &users, at) {
            replace(f, temporary, output);
        }
    }
    Ok(())
}

/// The stages that read or write each buffer, in order.
type Users = FxHashMap<Buffer, Vec<usize>>;

/// The temporary that can be replaced by the output that stage number `at` writes, and this output.
fn pair(
    f: &mut PrimFunc,
    allocs: &[Buffer],
    stages: &[&Stage],
    users: &Users,
    at: usize,
) -> Option<(Buffer, Buffer)> {
    let Body::Store { buffer: output, indices, value } = &stages[at].body else { return None };
    let s = stages[at];
    let plain = indices.len() == s.axes.len()
        && indices.iter().zip(&s.axes).all(|(&i, a)| !a.reduce && is_var(f, i, a.var));
    let is_output = f.buffer_map.values().any(|b| b == output);
    if !plain || !is_output || s.init.is_some() || !s.guards.is_empty() {
        return None;
    }
    let elsewhere = |b: Buffer, from: usize| users[&b].iter().any(|&i| i >= from && i != at);
    if elsewhere(*output, 0) {
        return None;
    }
    let mut read: Vec<(Buffer, Box<[Expr]>)> = Vec::new();
    for_each_expr(f, *value, |e| {
        if let ExprData::Load(b, i) = f.expr(e) {
            read.push((*b, i.clone()));
        }
    });
    let fits = |f: &PrimFunc, b: Buffer| {
        let (t, o) = (f.buffer(b), f.buffer(*output));
        allocs.contains(&b)
            && (t.dtype, &t.shape, &t.strides) == (o.dtype, &o.shape, &o.strides)
            && t.elem_offset.is_none()
            && o.elem_offset.is_none()
            && read.iter().all(|(other, i)| *other != b || i == indices)
            && !elsewhere(b, at + 1)
    };
    let mut candidates = read.iter().map(|r| r.0).filter(|&b| fits(f, b)).collect::<Vec<_>>();
    candidates.dedup();
    candidates
        .into_iter()
        .find(|b| {
            // Before the stage, only the product uses the temporary.
            let mut before: Vec<usize> = users[b].iter().copied().filter(|&i| i < at).collect();
            before.dedup();
            matches!(before[..], [writer] if gemm::matches(f, stages[writer]))
        })
        // Otherwise the output might be read before it is written.
        .filter(|&b| body_writes_whole(f, f.body, b))
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
