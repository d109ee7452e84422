//! Scalar loops: emits loops that compute a stage point by point, after its init. Also vectorizes loops that copy elements in
//! statements that are not stages.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, ForKind, PrimFunc, Stmt, StmtData, Ty, Var};

use super::emit_stage_loops::{guarded_body, loop_nest, unsplit_loops, vector_axis};
use super::loop_nest_stages::{
    Axis, Body, Init, Stage, calls_non_vector_math_functions, loads_from,
};
use crate::statement_traversal::{direct_exprs, for_each_stmt, map_stmts, uses_any};

/// Emits the scalar loops of a stage. The init runs in front of the outermost reduction loop, so that it also runs if a
/// reduction axis is empty. If there are spatial axes inside this loop, the init gets its own loops over them.
///
/// In two cases, the init runs in the first iteration of the reduction loops instead: if the extents of these spatial
/// axes depend on reduction axes, or if there are such spatial axes and the init reads memory. If only the second
/// condition holds, a branch in front of the reduction loops also runs the init in its own loops if a reduction axis is
/// empty.
pub(super) fn scalar_loop_nest(f: &mut PrimFunc, s: &Stage) -> Stmt {
    let point = guarded_body(f, s);
    let Some(init) = init_stmt(f, s) else { return loop_nest(f, &s.axes, point) };
    let Some(outer) = s.axes.iter().position(|a| a.reduce) else {
        let body = f.add_stmt(StmtData::Seq(vec![init, point]));
        return loop_nest(f, &s.axes, body);
    };
    let (front, rest) = s.axes.split_at(outer);
    let spatial: Vec<Axis> = rest.iter().copied().filter(|a| !a.reduce).collect();
    let reduced = |v: Var| rest.iter().any(|a| a.reduce && a.var == v);
    let is_independent = !spatial.iter().any(|a| uses_any(f, a.extent, &reduced));
    if is_independent && (spatial.is_empty() || !stmt_reads_memory(f, init)) {
        let init = loop_nest(f, &spatial, init);
        let body = loop_nest(f, rest, point);
        let body = f.add_stmt(StmtData::Seq(vec![init, body]));
        return loop_nest(f, front, body);
    }
    let (mut first, mut empty) = (None, None);
    let zero = f.int(0);
    for a in rest.iter().filter(|a| a.reduce) {
        let v = f.var_expr(a.var);
        let (is_first, none) = (f.binary(BinOp::Eq, v, zero), f.binary(BinOp::Le, a.extent, zero));
        first = Some(first.map_or(is_first, |x| f.binary(BinOp::And, x, is_first)));
        empty = Some(empty.map_or(none, |x| f.binary(BinOp::Or, x, none)));
    }
    let (first, empty) =
        first.zip(empty).expect("a stage with an init has at least one reduction axis");
    let at_first = f.add_stmt(StmtData::If(first, init, None));
    let body = f.add_stmt(StmtData::Seq(vec![at_first, point]));
    let mut body = loop_nest(f, rest, body);
    if is_independent {
        let init_if_empty = loop_nest(f, &spatial, init);
        let init_if_empty = f.add_stmt(StmtData::If(empty, init_if_empty, None));
        body = f.add_stmt(StmtData::Seq(vec![init_if_empty, body]));
    }
    loop_nest(f, front, body)
}

/// Returns the init of a stage as a statement. Reduction axes in it are replaced by their first values. Returns `None`
/// if the stage has no init.
fn init_stmt(f: &mut PrimFunc, s: &Stage) -> Option<Stmt> {
    let init = match (s.init.as_ref()?, &s.body) {
        (Init::Value(e), Body::Store { buffer, indices, .. }) => f.store(*buffer, indices, *e),
        (Init::Other(s), _) => *s,
        (Init::Value(_), Body::Other(_)) => {
            unreachable!("only stages whose body is a store have an init value")
        }
    };
    let zero = f.int(0);
    let map = s.axes.iter().filter(|a| a.reduce).map(|a| (a.var, zero)).collect();
    Some(crate::statement_traversal::substitute(f, init, &map))
}

/// Vectorizes the innermost loops of a statement that only store adjacent elements of a buffer and read no other elements of it.
pub(super) fn vectorize_copies(f: &mut PrimFunc, s: Stmt) -> Stmt {
    map_stmts(f, s, &mut |f, s| {
        let StmtData::For { var, min, extent, kind: ForKind::Serial, body, .. } = *f.stmt(s) else {
            return None;
        };
        let StmtData::Store { buffer, indices, value } = f.stmt(body).clone() else { return None };
        let mut parts = indices.iter().copied().chain([extent]);
        if f.as_int(min) != Some(0)
            || f.expr_ty(min) != Ty::I64
            || parts.any(|e| loads_from(f, e, buffer))
            || may_read_stored_elements(f, value, var, (buffer, &indices))
            || calls_non_vector_math_functions(f, body)
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
        Some(unsplit_loops(f, &stage))
    })
}

/// Whether a value may read an element that another iteration of the loop over `var` stores. Reads of the element that the same
/// iteration stores do not count, nor do reads of elements that differ from all stored ones in an index that is the same for all
/// iterations, such as those of the previous row.
fn may_read_stored_elements(
    f: &PrimFunc,
    value: Expr,
    var: Var,
    (buffer, stored): (Buffer, &[Expr]),
) -> bool {
    let differs = |(&a, &b): (&Expr, &Expr)| {
        constant_difference(f, a, b).is_some_and(|d| d != 0) && !uses_any(f, b, &|v| v == var)
    };
    let mut found = false;
    for_each_expr(f, value, |e| {
        if let ExprData::Load(b, read) = f.expr(e)
            && *b == buffer
        {
            found |= **read != *stored && !read.iter().zip(stored).any(differs);
        }
    });
    found
}

/// Returns `a - b` if both are sums of the same expression and a constant; `None` otherwise.
fn constant_difference(f: &PrimFunc, a: Expr, b: Expr) -> Option<i64> {
    let split = |e: Expr| match *f.expr(e) {
        ExprData::Binary(BinOp::Add, base, offset) if f.as_int(offset).is_some() => {
            (Some(base), f.as_int(offset))
        }
        _ => match f.as_int(e) {
            Some(constant) => (None, Some(constant)),
            None => (Some(e), Some(0)),
        },
    };
    let ((base, offset), (other_base, other_offset)) = (split(a), split(b));
    if base != other_base {
        return None;
    }
    offset?.checked_sub(other_offset?)
}

/// Whether a statement reads any buffer.
fn stmt_reads_memory(f: &PrimFunc, s: Stmt) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| {
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..)));
        });
    });
    found
}
