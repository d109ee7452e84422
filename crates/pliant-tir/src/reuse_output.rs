//! ReuseOutput: a matrix product that goes into a temporary, which only the elementwise stage of an output reads, goes
//! into that output, and the stage changes it in place.
//!
//! This needs a function whose tensors share no memory (`tir.noalias`): the output is written earlier than it
//! was.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData};

use crate::error::LowerError;
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
    let Some(stages) = stages else { return Ok(()) };
    for at in 1..stages.len() {
        if let Some((temporary, output)) = pair(f, &allocs, &stages, at) {
            replace(f, temporary, output);
        }
    }
    Ok(())
}

/// The temporary that can live in the output that stage number `at` writes, and that output.
fn pair(
    f: &mut PrimFunc,
    allocs: &[Buffer],
    stages: &[&Stage],
    at: usize,
) -> Option<(Buffer, Buffer)> {
    let Body::Store { buffer: output, indices, value } = &stages[at].body else { return None };
    let s = stages[at];
    let plain = indices.len() == s.axes.len()
        && indices.iter().zip(&s.axes).all(|(&i, a)| !a.reduce && is_var(f, i, a.var));
    let is_output = f.buffer_map.values().any(|b| b == output);
    if !plain || !is_output || s.init.is_some() || !s.checks.is_empty() {
        return None;
    }
    let elsewhere = |f: &PrimFunc, b: Buffer, from: usize| {
        let mut others = stages.iter().enumerate().skip(from).filter(|(i, _)| *i != at);
        others.any(|(_, s)| s.accesses(f).iter().any(|a| a.0 == b))
    };
    if elsewhere(f, *output, 0) {
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
            && !elsewhere(f, b, at + 1)
    };
    let mut candidates = read.iter().map(|r| r.0).filter(|&b| fits(f, b)).collect::<Vec<_>>();
    candidates.dedup();
    candidates.into_iter().find(|&b| is_product(f, &stages[..at], b)).map(|b| (b, *output))
}

/// Whether a matrix product, and nothing else before, uses a buffer.
fn is_product(f: &mut PrimFunc, before: &[&Stage], b: Buffer) -> bool {
    let mut users = before.iter().filter(|s| s.accesses(f).iter().any(|a| a.0 == b));
    match (users.next(), users.next()) {
        (Some(writer), None) => gemm::matches(f, writer),
        _ => false,
    }
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
