//! [`bind_calls`]: calls out of loop functions that stand inside other expressions become variables, in the order in which
//! Python computes them.
//!
//! Expressions are hash-consed and may be computed more than once, in any order or not at all; a call of a packed or extern
//! function must not be. A call that is all of a value stays. Calls that a statement may not reach (in a branch of
//! `T.if_then_else`, or behind `and` and `or`) stay where they are, and so does all in the condition of a `while`.

use rustc_hash::FxHashMap;

use super::expr::{BinOp, Expr, ExprData, Var, VarTy};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::stmt::{Stmt, StmtData};
use super::visit::{for_each_operand, map_operands};

/// Binds the calls inside of expressions.
pub fn bind_calls(f: &mut PrimFunc) {
    let mut calls = Calls { f, counts: FxHashMap::default() };
    let body = calls.f.body;
    calls.f.body = calls.stmt(body);
}

struct Calls<'a> {
    f: &'a mut PrimFunc,
    /// How many calls each expression makes, as often as they stand in it; `None` where some may not be made.
    counts: FxHashMap<Expr, Option<u32>>,
}

impl Calls<'_> {
    /// The statement with its calls bound. Recurses into bodies, whose depth the readers of scripts bound.
    fn stmt(&mut self, s: Stmt) -> Stmt {
        let old = self.f.stmt(s).clone();
        let mut data = old.clone();
        let mut lets = Vec::new();
        match &mut data {
            StmtData::Seq(items) => items.iter_mut().for_each(|s| *s = self.stmt(*s)),
            StmtData::For { min, extent, body, .. } => {
                self.all(&mut [min, extent], &mut lets);
                *body = self.stmt(*body);
            }
            StmtData::While(_, body) | StmtData::Alloc(_, body) => *body = self.stmt(*body),
            StmtData::If(cond, then, otherwise) => {
                self.within(cond, &mut lets);
                *then = self.stmt(*then);
                otherwise.iter_mut().for_each(|s| *s = self.stmt(*s));
            }
            StmtData::Let(_, value, body) | StmtData::Assert(value, _, body) => {
                self.within(value, &mut lets);
                *body = self.stmt(*body);
            }
            StmtData::Evaluate(value) => self.within(value, &mut lets),
            StmtData::Store { indices, value, .. } => {
                if indices.iter().all(|&i| self.count(i) == Some(0)) {
                    self.within(value, &mut lets);
                } else {
                    // The value is computed before the place.
                    let mut exprs = vec![value];
                    exprs.extend(indices.iter_mut());
                    self.all(&mut exprs, &mut lets);
                }
            }
            StmtData::Block(block) => {
                block.body = self.stmt(block.body);
                block.init = block.init.map(|s| self.stmt(s));
            }
        }
        let made = self.f.add_stmt(data);
        lets.into_iter()
            .rev()
            .fold(made, |body, (var, value)| self.f.add_stmt(StmtData::Let(var, value, body)))
    }

    /// Binds the calls of expressions.
    fn all(&mut self, exprs: &mut [&mut Expr], lets: &mut Vec<(Var, Expr)>) {
        if exprs.iter().all(|e| self.count(**e).is_some()) {
            exprs.iter_mut().for_each(|e| **e = self.bound(**e, lets));
        }
    }

    /// Binds the calls inside an expression, which itself is computed once.
    fn within(&mut self, e: &mut Expr, lets: &mut Vec<(Var, Expr)>) {
        if self.count(*e).is_some() {
            *e = self.with_bound_operands(*e, lets);
        }
    }

    fn with_bound_operands(&mut self, e: Expr, lets: &mut Vec<(Var, Expr)>) -> Expr {
        if self.count(e) == Some(0) {
            return e;
        }
        let mut operands = Vec::new();
        for_each_operand(self.f.expr(e), |a| operands.push(a));
        let mut bound = operands.into_iter().map(|a| self.bound(a, lets)).collect::<Vec<_>>();
        bound.reverse();
        let data = map_operands(self.f.expr(e), |old| bound.pop().unwrap_or(old));
        self.f.add_expr(data)
    }

    /// The expression with variables for its calls.
    fn bound(&mut self, e: Expr, lets: &mut Vec<(Var, Expr)>) -> Expr {
        if self.count(e) == Some(0) {
            return e;
        }
        let e = self.with_bound_operands(e, lets);
        if !is_call(self.f, e) {
            return e;
        }
        let ty = self.f.expr_ty(e);
        let var = self.f.add_var("call", VarTy::Value(ty));
        lets.push((var, e));
        self.f.var_expr(var)
    }

    fn count(&mut self, root: Expr) -> Option<u32> {
        let mut stack = vec![(root, false)];
        while let Some((e, ready)) = stack.pop() {
            if self.counts.contains_key(&e) {
                continue;
            }
            let mut operands = Vec::new();
            for_each_operand(self.f.expr(e), |a| operands.push(a));
            if !ready {
                stack.push((e, true));
                stack.extend(operands.into_iter().map(|a| (a, false)));
                continue;
            }
            let strict = match self.f.expr(e) {
                ExprData::Call(Intrin::IfThenElse, ..)
                | ExprData::Binary(BinOp::And | BinOp::Or, ..) => 1,
                _ => operands.len(),
            };
            let own = u32::from(is_call(self.f, e));
            let made =
                operands.iter().enumerate().try_fold(own, |n, (i, a)| match self.counts[a] {
                    Some(0) => Some(n),
                    Some(m) if i < strict => Some(n.saturating_add(m)),
                    _ => None,
                });
            self.counts.insert(e, made);
        }
        self.counts[&root]
    }
}

fn is_call(f: &PrimFunc, e: Expr) -> bool {
    matches!(f.expr(e), ExprData::Call(Intrin::CallPacked | Intrin::CallExtern, ..))
}
