//! Walks over loop functions.

use super::expr::{Expr, ExprData};
use super::func::PrimFunc;

/// Calls `visit` with each operand of an expression, in order.
pub fn for_each_operand(data: &ExprData, mut visit: impl FnMut(Expr)) {
    match data {
        ExprData::Int(..) | ExprData::Float(..) | ExprData::Str(_) | ExprData::Var(_) => {}
        ExprData::Cast(_, a) | ExprData::Not(a) | ExprData::Broadcast(a, _) => visit(*a),
        ExprData::Binary(_, a, b) | ExprData::Ramp(a, b, _) => {
            visit(*a);
            visit(*b);
        }
        ExprData::Select(c, a, b) => {
            visit(*c);
            visit(*a);
            visit(*b);
        }
        ExprData::Load(_, args) | ExprData::Call(_, args, _) => {
            args.iter().copied().for_each(visit)
        }
    }
}

/// Calls `visit` with an expression and all expressions below it, each once, in the order of the text.
pub fn for_each_expr(f: &PrimFunc, e: Expr, mut visit: impl FnMut(Expr)) {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut stack = vec![e];
    let mut operands = Vec::new();
    while let Some(e) = stack.pop() {
        if seen.insert(e) {
            visit(e);
            for_each_operand(f.expr(e), |a| operands.push(a));
            stack.extend(operands.drain(..).rev());
        }
    }
}
