//! [`bind_calls`]: binds calls inside expressions of loop functions to variables, in Python's
//! evaluation order.
//!
//! Expressions are hash-consed and may be evaluated several times, in any order, or not at all.
//! Calls of packed and extern functions must be evaluated exactly once. A call that is a whole
//! value is kept. `T.if_then_else`, `and` and `or` that contain calls become statements, which only
//! execute the calls of the chosen branch. Values read before a call that may write are bound to
//! variables, too. The condition of a `while` that contains calls is evaluated before the loop and
//! at the end of every iteration.

use rustc_hash::{FxHashMap, FxHashSet};

use super::buffer::{Buffer, BufferData, Scope};
use super::expr::{BinOp, Expr, ExprData, Ty, Var, VarTy};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::stmt::{Stmt, StmtData};
use super::visit::{for_each_expr, for_each_operand, map_operands};

/// Binds the calls inside expressions.
///
/// # Errors
/// Calls are not supported in the predicate and the ranges of a block and in lane-wise selects, and
/// an expression may contain at most [`MAX_CALLS`]. The message explains how to avoid the problem.
pub fn bind_calls(f: &mut PrimFunc) -> Result<(), String> {
    let mut calls = Calls { f, counts: FxHashMap::default(), error: None };
    let body = calls.f.body;
    calls.f.body = calls.stmt(body);
    calls.error.map_or(Ok(()), Err)
}

struct Calls<'a> {
    f: &'a mut PrimFunc,
    /// The number of calls in expressions, counting every occurrence.
    counts: FxHashMap<Expr, u32>,
    error: Option<String>,
}

/// Maximum number of calls in an expression. Shared subexpressions can multiply their number.
pub const MAX_CALLS: u32 = 500;

/// A step that is executed before a statement.
enum Before {
    Let(Var, Expr),
    Alloc(Buffer),
    Do(Stmt),
}

impl Calls<'_> {
    /// Binds the calls of a statement. Recurses into bodies, whose depth is limited by the parser.
    fn stmt(&mut self, s: Stmt) -> Stmt {
        let mut data = self.f.stmt(s).clone();
        let mut before = Vec::new();
        match &mut data {
            StmtData::Seq(items) => items.iter_mut().for_each(|s| *s = self.stmt(*s)),
            StmtData::For { min, extent, body, .. } => {
                let bounds = self.in_order(&[*min, *extent], &mut before);
                (*min, *extent) = (bounds[0], bounds[1]);
                *body = self.stmt(*body);
            }
            StmtData::While(cond, body) if self.makes(*cond) => {
                let cond = *cond;
                let body = self.stmt(*body);
                return self.repeated(cond, body);
            }
            StmtData::While(_, body) | StmtData::Alloc(_, body) => *body = self.stmt(*body),
            StmtData::If(cond, then, otherwise) => {
                *cond = self.within(*cond, &mut before);
                *then = self.stmt(*then);
                otherwise.iter_mut().for_each(|s| *s = self.stmt(*s));
            }
            StmtData::Let(_, value, body) | StmtData::Assert(value, _, body) => {
                *value = self.within(*value, &mut before);
                *body = self.stmt(*body);
            }
            StmtData::Evaluate(value) => *value = self.within(*value, &mut before),
            StmtData::Store { indices, value, .. } => {
                // The value is evaluated before the indices.
                if indices.iter().all(|&i| !self.makes(i) && !reads(self.f, i)) {
                    *value = self.within(*value, &mut before);
                } else {
                    let exprs: Vec<Expr> =
                        std::iter::once(*value).chain(indices.to_vec()).collect();
                    let bound = self.in_order(&exprs, &mut before);
                    *value = bound[0];
                    indices.copy_from_slice(&bound[1..]);
                }
            }
            StmtData::Block(block) => {
                let fixed = block.iters.iter().flat_map(|i| [i.min, i.extent]);
                for e in fixed.chain(block.predicate) {
                    if self.makes(e) {
                        self.refuse(format!(
                            "block '{}' calls a function in T.where or in the range of an axis (help: bind the call to a \
                             variable in front of the block)",
                            block.name
                        ));
                    }
                }
                let bindings: Vec<Expr> = block.iters.iter().map(|i| i.binding).collect();
                let bound = self.in_order(&bindings, &mut before);
                block.iters.iter_mut().zip(bound).for_each(|(iter, e)| iter.binding = e);
                block.body = self.stmt(block.body);
                block.init = block.init.map(|s| self.stmt(s));
            }
        }
        let made = self.f.add_stmt(data);
        self.after(before, made)
    }

    /// A loop whose condition contains calls.
    fn repeated(&mut self, cond: Expr, body: Stmt) -> Stmt {
        let (place, zero) = (self.place("again", Ty::BOOL), self.f.int(0));
        let mut tested = || {
            let mut before = Vec::new();
            let value = self.within(cond, &mut before);
            let store = self.f.store(place, &[zero], value);
            self.after(before, store)
        };
        let (first, next) = (tested(), tested());
        let body = self.f.seq(vec![body, next]);
        let again = self.f.load(place, &[zero]);
        let turns = self.f.add_stmt(StmtData::While(again, body));
        let all = self.f.seq(vec![first, turns]);
        self.f.add_stmt(StmtData::Alloc(place, all))
    }

    /// Memory for one value of the given type.
    fn place(&mut self, name: &str, ty: Ty) -> Buffer {
        let lanes = self.f.int(i64::from(ty.lanes));
        self.f.add_buffer(BufferData {
            name: name.into(),
            dtype: ty.dtype,
            shape: vec![lanes],
            strides: Vec::new(),
            elem_offset: None,
            scope: Scope::Local,
        })
    }

    fn refuse(&mut self, why: String) {
        self.error.get_or_insert(why);
    }

    /// Prepends steps to a statement.
    fn after(&mut self, before: Vec<Before>, s: Stmt) -> Stmt {
        before.into_iter().rev().fold(s, |s, step| match step {
            Before::Let(var, value) => self.f.add_stmt(StmtData::Let(var, value, s)),
            Before::Alloc(buffer) => self.f.add_stmt(StmtData::Alloc(buffer, s)),
            Before::Do(first) => self.f.seq(vec![first, s]),
        })
    }

    /// Binds the calls inside the expression to variables. The expression itself is evaluated once.
    fn within(&mut self, e: Expr, before: &mut Vec<Before>) -> Expr {
        if !self.makes(e) {
            return e;
        }
        if let Some((cond, then, otherwise)) = self.choice(e) {
            return self.chosen(e, (cond, then, otherwise), before);
        }
        let mut operands = Vec::new();
        for_each_operand(self.f.expr(e), |a| operands.push(a));
        let mut bound = self.in_order(&operands, before);
        bound.reverse();
        let data = map_operands(self.f.expr(e), |old| bound.pop().unwrap_or(old));
        self.f.add_expr(data)
    }

    /// Binds the calls in expressions that are evaluated in order, and values that are read before
    /// a call.
    fn in_order(&mut self, exprs: &[Expr], before: &mut Vec<Before>) -> Vec<Expr> {
        let last = exprs.iter().rposition(|&e| self.makes(e));
        let mut out = Vec::with_capacity(exprs.len());
        for (i, &e) in exprs.iter().enumerate() {
            let e = self.bound(e, before);
            let early = last.is_some_and(|last| i < last) && reads(self.f, e);
            out.push(if early { self.variable("value", e, before) } else { e });
        }
        out
    }

    fn variable(&mut self, name: &str, e: Expr, before: &mut Vec<Before>) -> Expr {
        let ty = self.f.expr_ty(e);
        let var = self.f.add_var(name, VarTy::Value(ty));
        before.push(Before::Let(var, e));
        self.f.var_expr(var)
    }

    /// Binds the expression if it is a call, and the calls inside it.
    fn bound(&mut self, e: Expr, before: &mut Vec<Before>) -> Expr {
        let e = self.within(e, before);
        if !is_call(self.f, e) {
            return e;
        }
        self.variable("call", e, before)
    }

    /// The condition and the alternatives of an expression that evaluates only one of them.
    fn choice(&mut self, e: Expr) -> Option<(Expr, Expr, Expr)> {
        let truth = |f: &mut PrimFunc, v| f.add_expr(ExprData::Int(v, Ty::BOOL));
        match self.f.expr(e).clone() {
            ExprData::Call(Intrin::IfThenElse, args, _)
                if self.makes(args[1]) || self.makes(args[2]) =>
            {
                Some((args[0], args[1], args[2]))
            }
            ExprData::Binary(BinOp::And, a, b) if self.makes(b) => Some((a, b, truth(self.f, 0))),
            ExprData::Binary(BinOp::Or, a, b) if self.makes(b) => Some((a, truth(self.f, 1), b)),
            _ => None,
        }
    }

    /// The result of a conditional: a memory location that a statement has written.
    fn chosen(
        &mut self,
        e: Expr,
        (cond, then, otherwise): (Expr, Expr, Expr),
        before: &mut Vec<Before>,
    ) -> Expr {
        let cond = self.bound(cond, before);
        if self.f.expr_ty(cond).lanes != 1 {
            self.refuse(
                "a choice by lanes calls a function in one side (help: choose in a loop)".into(),
            );
        }
        let ty = self.f.expr_ty(e);
        let place = self.place("chosen", ty);
        let (zero, one) = (self.f.int(0), self.f.int(1));
        let at = match ty.lanes {
            1 => zero,
            lanes => self.f.add_expr(ExprData::Ramp(zero, one, lanes)),
        };
        let mut side = |e: Expr| {
            let mut before = Vec::new();
            let value = self.within(e, &mut before);
            let store = self.f.store(place, &[at], value);
            self.after(before, store)
        };
        let (then, otherwise) = (side(then), side(otherwise));
        let choose = self.f.add_stmt(StmtData::If(cond, then, Some(otherwise)));
        before.extend([Before::Alloc(place), Before::Do(choose)]);
        self.f.load(place, &[at])
    }

    /// Whether an expression contains calls. Reports an error if there are too many.
    fn makes(&mut self, root: Expr) -> bool {
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
            let own = u32::from(is_call(self.f, e));
            let count = operands.iter().fold(own, |n, a| n.saturating_add(self.counts[a]));
            self.counts.insert(e, count);
        }
        let count = self.counts[&root];
        if count > MAX_CALLS {
            self.refuse(format!(
                "an expression makes {count} calls, more than {MAX_CALLS} (help: bind parts of it to variables)"
            ));
        }
        (1..=MAX_CALLS).contains(&count)
    }
}

fn is_call(f: &PrimFunc, e: Expr) -> bool {
    matches!(
        f.expr(e),
        ExprData::Call(Intrin::CallPacked | Intrin::CallExtern | Intrin::CallKernel, ..)
    )
}

/// Whether an expression contains calls or reads memory, so that its value may change.
pub fn may_change(f: &PrimFunc, e: Expr) -> bool {
    reads(f, e) || makes_calls(f, e)
}

/// Whether an expression calls a packed or extern function.
pub fn makes_calls(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= is_call(f, e));
    found
}

/// Whether an expression reads memory. Taking an address does not, but its indices may.
fn reads(f: &PrimFunc, root: Expr) -> bool {
    let (mut stack, mut seen) = (vec![root], FxHashSet::default());
    while let Some(e) = stack.pop() {
        match f.expr(e) {
            ExprData::Load(..) => return true,
            ExprData::Call(Intrin::AddressOf, args, _) => {
                args.iter().for_each(|&a| for_each_operand(f.expr(a), |i| stack.push(i)));
            }
            data if seen.insert(e) => for_each_operand(data, |a| stack.push(a)),
            _ => {}
        }
    }
    false
}
