//! Visits the names in the syntax tree of a script.

use crate::python::ast::{Expr, ExprKind, Stmt, StmtKind};

/// Calls `visit` with every name that the statements read, and the byte offset of the name.
pub(crate) fn names_read<'s>(stmts: &[Stmt<'s>], visit: &mut impl FnMut(&'s str, u32)) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Expr(e) | StmtKind::Return(Some(e)) => names_in(e, visit),
            StmtKind::Assign(targets, value) => {
                targets.iter().for_each(|t| names_in_target(t, visit));
                names_in(value, visit);
            }
            StmtKind::AnnAssign(target, annotation, value) => {
                names_in_target(target, visit);
                names_in(annotation, visit);
                value.iter().for_each(|e| names_in(e, visit));
            }
            StmtKind::AugAssign(target, _, value) => {
                names_in(target, visit);
                names_in(value, visit);
            }
            StmtKind::If(cond, a, b) => {
                names_in(cond, visit);
                names_read(a, visit);
                names_read(b, visit);
            }
            StmtKind::For(_, iter, body) => {
                names_in(iter, visit);
                names_read(body, visit);
            }
            StmtKind::While(cond, body) => {
                names_in(cond, visit);
                names_read(body, visit);
            }
            StmtKind::With(items, body) => {
                items.iter().for_each(|(e, _)| names_in(e, visit));
                names_read(body, visit);
            }
            StmtKind::FunctionDef(def) => {
                def.params
                    .iter()
                    .filter_map(|p| p.annotation.as_ref())
                    .for_each(|e| names_in(e, visit));
                def.returns.iter().for_each(|e| names_in(e, visit));
                names_read(&def.body, visit);
            }
            StmtKind::ClassDef(def) => names_read(&def.body, visit),
            StmtKind::Assert(cond, message) => {
                names_in(cond, visit);
                message.iter().for_each(|e| names_in(e, visit));
            }
            StmtKind::Return(None)
            | StmtKind::Pass
            | StmtKind::Import(_)
            | StmtKind::ImportFrom(_)
            | StmtKind::Other(_) => {}
        }
    }
}

/// Visits the names that the target of an assignment reads. The target `A[i]` reads `A` and `i`; a plain name is only written.
fn names_in_target<'s>(e: &Expr<'s>, visit: &mut impl FnMut(&'s str, u32)) {
    match &e.kind {
        ExprKind::Name(_) => {}
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().for_each(|e| names_in_target(e, visit));
        }
        _ => names_in(e, visit),
    }
}

/// Calls `visit` with every name in an expression, including attribute names, and the byte offset of the name.
pub(crate) fn names_in<'s>(e: &Expr<'s>, visit: &mut impl FnMut(&'s str, u32)) {
    match &e.kind {
        ExprKind::Name(name) => visit(name, e.range.start),
        ExprKind::Attribute(value, name, range) => {
            visit(name, range.start);
            names_in(value, visit);
        }
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            items.iter().for_each(|e| names_in(e, visit))
        }
        ExprKind::Dict(items) => items.iter().for_each(|(k, v)| {
            names_in(k, visit);
            names_in(v, visit);
        }),
        ExprKind::Subscript(a, b)
        | ExprKind::Binary(_, a, b)
        | ExprKind::And(a, b)
        | ExprKind::Or(a, b) => {
            names_in(a, visit);
            names_in(b, visit);
        }
        ExprKind::Slice(a, b, c) => {
            [a, b, c].into_iter().flatten().for_each(|e| names_in(e, visit));
        }
        ExprKind::Call(call) => {
            names_in(&call.func, visit);
            call.args.iter().for_each(|e| names_in(e, visit));
            call.keywords.iter().for_each(|k| names_in(&k.value, visit));
        }
        ExprKind::Unary(_, a) | ExprKind::Starred(a) => names_in(a, visit),
        ExprKind::Compare(first, rest) => {
            names_in(first, visit);
            rest.iter().for_each(|(_, e)| names_in(e, visit));
        }
        ExprKind::Lambda(lambda) => names_in(&lambda.body, visit),
        ExprKind::IfExp(parts) => parts.iter().for_each(|e| names_in(e, visit)),
        ExprKind::Int(_)
        | ExprKind::BigInt(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Bool(_)
        | ExprKind::None
        | ExprKind::Host => {}
    }
}
