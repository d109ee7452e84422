//! Scalar loops: stages that run point by point, with their init in front. Also vectorizes plain loops that only store.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, ForKind, PrimFunc, Stmt, StmtData, Ty, Var};

use super::emit::{nest, part, point, vector_axis};
use super::stage::{Axis, Body, Init, Stage, calls_out, loads};
use crate::walk::{for_each_stmt, map_stmts, own_exprs, uses_any};

/// The scalar loops of a stage. If possible, its init runs before the outermost reduction loop, in its own loops over the spatial
/// axes, so that it also runs if a reduction axis has no values. An init that reads memory and has spatial axes inside the
/// reduction runs at the first values of the reduction axes instead, and by itself if a reduction axis has no values.
pub(super) fn scalar_nest(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let point = point(f, s);
    let Some(init) = first_value(f, s) else { return nest(f, &s.axes, point) };
    let Some(outer) = s.axes.iter().position(|a| a.reduce) else {
        let body = f.add_stmt(StmtData::Seq(vec![init, point]));
        return nest(f, &s.axes, body);
    };
    let (front, rest) = s.axes.split_at(outer);
    let spatial: Vec<Axis> = rest.iter().copied().filter(|a| !a.reduce).collect();
    let reduced = |v: Var| rest.iter().any(|a| a.reduce && a.var == v);
    let apart = !spatial.iter().any(|a| uses_any(f, a.extent, &reduced));
    if apart && (spatial.is_empty() || !reads(f, init)) {
        let init = nest(f, &spatial, init);
        let body = nest(f, rest, point);
        let body = f.add_stmt(StmtData::Seq(vec![init, body]));
        return nest(f, front, body);
    }
    let (mut first, mut empty) = (None, None);
    let zero = f.int(0);
    for a in rest.iter().filter(|a| a.reduce) {
        let v = f.var_expr(a.var);
        let (is_first, none) = (f.binary(BinOp::Eq, v, zero), f.binary(BinOp::Le, a.extent, zero));
        first = Some(first.map_or(is_first, |x| f.binary(BinOp::And, x, is_first)));
        empty = Some(empty.map_or(none, |x| f.binary(BinOp::Or, x, none)));
    }
    let (first, empty) = first.zip(empty).expect("there is a reduction axis");
    let at_first = f.add_stmt(StmtData::If(first, init, None));
    let body = f.add_stmt(StmtData::Seq(vec![at_first, point]));
    let mut body = nest(f, rest, body);
    if apart {
        let alone = nest(f, &spatial, init);
        let alone = f.add_stmt(StmtData::If(empty, alone, None));
        body = f.add_stmt(StmtData::Seq(vec![alone, body]));
    }
    nest(f, front, body)
}

/// The init of a stage as a statement, at the first values of the reduction axes.
fn first_value(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    let init = match (s.init.as_ref()?, &s.body) {
        (Init::Value(e), Body::Store { buffer, indices, .. }) => f.store(*buffer, indices, *e),
        (Init::Other(s), _) => *s,
        (Init::Value(_), Body::Other(_)) => unreachable!("values start stores"),
    };
    let zero = f.int(0);
    let map = s.axes.iter().filter(|a| a.reduce).map(|a| (a.var, zero)).collect();
    Some(crate::walk::substitute(f, init, &map))
}

/// Vectorizes the innermost loops of a statement that only store adjacent elements of a buffer and read no other elements of it.
pub(super) fn copies(f: &mut PrimFunc, s: Stmt) -> Stmt {
    map_stmts(f, s, &mut |f, s| {
        let StmtData::For { var, min, extent, kind: ForKind::Serial, body, .. } = *f.stmt(s) else {
            return None;
        };
        let StmtData::Store { buffer, indices, value } = f.stmt(body).clone() else { return None };
        let mut parts = indices.iter().copied().chain([extent]);
        if f.as_int(min) != Some(0)
            || f.expr_ty(min) != Ty::I64
            || parts.any(|e| loads(f, e, buffer))
            || reads_elsewhere(f, value, (buffer, &indices))
            || calls_out(f, body)
        {
            return None;
        }
        let stage = Stage {
            name: "copy".into(),
            axes: vec![Axis { var, extent, reduce: false }],
            guards: Vec::new(),
            init: None,
            body: Body::Store { buffer, indices, value },
        };
        vector_axis(f, &stage)?;
        Some(part(f, &stage))
    })
}

/// Whether a value reads an element of the buffer other than the one at the indices.
fn reads_elsewhere(f: &PrimFunc, value: Expr, (buffer, indices): (Buffer, &[Expr])) -> bool {
    let mut found = false;
    for_each_expr(f, value, |e| {
        found |= matches!(f.expr(e), ExprData::Load(b, own) if *b == buffer && **own != *indices);
    });
    found
}

/// Whether a statement reads any buffer.
fn reads(f: &PrimFunc, s: Stmt) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        own_exprs(data, |e| {
            for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..)));
        });
    });
    found
}
