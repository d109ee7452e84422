//! [`bind_calls`]: binds calls inside the expressions of loop functions to variables, in Python's evaluation order.
//!
//! Expressions are hash-consed and may be evaluated several times, in any order, or not at all. But calls of packed and extern
//! functions and of kernels must be evaluated exactly once. The pass handles these cases:
//! - A call that is the whole value of a statement is kept.
//! - `T.if_then_else`, `and` and `or` that contain calls become statements, which only execute the calls of the chosen alternative.
//! - A value that is read from memory before a call is also bound to a variable, because the call may write to memory.
//! - The condition of a `while` that contains calls is evaluated before the loop and at the end of every iteration.

use rustc_hash::{FxHashMap, FxHashSet};

use super::buffer::{Buffer, BufferData, Scope};
use super::expr::{BinOp, Expr, ExprData, Ty, Var, VarTy};
use super::func::PrimFunc;
use super::intrin::Intrin;
use super::stmt::{Stmt, StmtData};
use super::visit::{for_each_expr, for_each_operand, map_operands};

/// Binds the calls inside the expressions of a loop function to variables.
///
/// # Errors
/// If the predicate or an axis range of a block, or an alternative of a lane-wise select, contains a call, or an expression
/// contains more than [`MAX_CALLS`] calls. The message says how to avoid the problem.
pub fn bind_calls(f: &mut PrimFunc) -> Result<(), String> {
    let mut binder = CallBinder { f, counts: FxHashMap::default(), error: None };
    let body = binder.f.body;
    binder.f.body = binder.stmt(body);
    binder.error.map_or(Ok(()), Err)
}

struct CallBinder<'a> {
    f: &'a mut PrimFunc,
    /// Cache: the number of calls inside each expression. A shared call counts once per occurrence.
    counts: FxHashMap<Expr, u32>,
    /// The first error that was found while calls were bound; `None` if there is none.
    error: Option<String>,
}

/// Maximum number of calls in an expression. A call in a shared subexpression counts once per occurrence.
pub const MAX_CALLS: u32 = 500;

/// A step that is executed before a statement: a binding of a variable, an allocation, or another statement.
enum Prefix {
    Let(Var, Expr),
    Alloc(Buffer),
    Stmt(Stmt),
}

impl CallBinder<'_> {
    /// Binds the calls of a statement. Recurses into bodies, whose depth is limited by the parser.
    fn stmt(&mut self, s: Stmt) -> Stmt {
        let mut data = self.f.stmt(s).clone();
        let mut before = Vec::new();
        match &mut data {
            StmtData::Seq(items) => items.iter_mut().for_each(|s| *s = self.stmt(*s)),
            StmtData::For { min, extent, body, .. } => {
                let bounds = self.bind_in_order(&[*min, *extent], &mut before);
                (*min, *extent) = (bounds[0], bounds[1]);
                *body = self.stmt(*body);
            }
            StmtData::While(cond, body) if self.has_calls(*cond) => {
                let cond = *cond;
                let body = self.stmt(*body);
                return self.while_with_calls(cond, body);
            }
            StmtData::While(_, body) | StmtData::Alloc(_, body) => *body = self.stmt(*body),
            StmtData::If(cond, then, otherwise) => {
                *cond = self.bind_operands(*cond, &mut before);
                *then = self.stmt(*then);
                otherwise.iter_mut().for_each(|s| *s = self.stmt(*s));
            }
            StmtData::Let(_, value, body) | StmtData::Assert(value, _, body) => {
                *value = self.bind_operands(*value, &mut before);
                *body = self.stmt(*body);
            }
            StmtData::Evaluate(value) => *value = self.bind_operands(*value, &mut before),
            StmtData::Store { indices, value, .. } => {
                // The value is evaluated before the indices.
                if indices.iter().all(|&i| !self.has_calls(i) && !reads(self.f, i)) {
                    *value = self.bind_operands(*value, &mut before);
                } else {
                    let exprs: Vec<Expr> =
                        std::iter::once(*value).chain(indices.to_vec()).collect();
                    let bound = self.bind_in_order(&exprs, &mut before);
                    *value = bound[0];
                    indices.copy_from_slice(&bound[1..]);
                }
            }
            StmtData::Block(block) => {
                let fixed = block.iters.iter().flat_map(|i| [i.min, i.extent]);
                for e in fixed.chain(block.predicate) {
                    if self.has_calls(e) {
                        self.reject(format!(
                            "block '{}' calls a function in T.where or in the range of an axis (help: assign the result \
                             to a variable in front of the block, and use the variable)",
                            block.name
                        ));
                    }
                }
                let bindings: Vec<Expr> = block.iters.iter().map(|i| i.binding).collect();
                let bound = self.bind_in_order(&bindings, &mut before);
                block.iters.iter_mut().zip(bound).for_each(|(iter, e)| iter.binding = e);
                block.body = self.stmt(block.body);
                block.init = block.init.map(|s| self.stmt(s));
            }
        }
        let stmt = self.f.add_stmt(data);
        self.prepend(before, stmt)
    }

    /// Creates a `while` loop whose condition contains calls. They are evaluated before the loop and at the end of every iteration.
    fn while_with_calls(&mut self, cond: Expr, body: Stmt) -> Stmt {
        let (flag, zero) = (self.temporary("again", Ty::BOOL), self.f.int(0));
        let mut evaluate_condition = || {
            let mut before = Vec::new();
            let value = self.bind_operands(cond, &mut before);
            let store = self.f.store(flag, &[zero], value);
            self.prepend(before, store)
        };
        let (first, next) = (evaluate_condition(), evaluate_condition());
        let body = self.f.seq(vec![body, next]);
        let again = self.f.load(flag, &[zero]);
        let repeat = self.f.add_stmt(StmtData::While(again, body));
        let all = self.f.seq(vec![first, repeat]);
        self.f.add_stmt(StmtData::Alloc(flag, all))
    }

    /// Creates a local buffer for one value of the given type.
    fn temporary(&mut self, name: &str, ty: Ty) -> Buffer {
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

    fn reject(&mut self, reason: String) {
        self.error.get_or_insert(reason);
    }

    /// Returns a statement that executes the steps `before` and then `s`.
    fn prepend(&mut self, before: Vec<Prefix>, s: Stmt) -> Stmt {
        before.into_iter().rev().fold(s, |s, step| match step {
            Prefix::Let(var, value) => self.f.add_stmt(StmtData::Let(var, value, s)),
            Prefix::Alloc(buffer) => self.f.add_stmt(StmtData::Alloc(buffer, s)),
            Prefix::Stmt(first) => self.f.seq(vec![first, s]),
        })
    }

    /// Binds the calls among the operands of the expression to variables. If the expression itself is a call, it is kept.
    fn bind_operands(&mut self, e: Expr, before: &mut Vec<Prefix>) -> Expr {
        if !self.has_calls(e) {
            return e;
        }
        if let Some((cond, then, otherwise)) = self.as_conditional(e) {
            return self.bind_conditional(e, (cond, then, otherwise), before);
        }
        let mut operands = Vec::new();
        for_each_operand(self.f.expr(e), |a| operands.push(a));
        let mut bound = self.bind_in_order(&operands, before);
        bound.reverse();
        let data = map_operands(self.f.expr(e), |old| bound.pop().unwrap_or(old));
        self.f.add_expr(data)
    }

    /// Binds the calls in expressions that are evaluated one after another. If a later expression contains a call, also binds
    /// each earlier expression that reads memory, because the call could overwrite what it reads.
    fn bind_in_order(&mut self, exprs: &[Expr], before: &mut Vec<Prefix>) -> Vec<Expr> {
        let last = exprs.iter().rposition(|&e| self.has_calls(e));
        let mut out = Vec::with_capacity(exprs.len());
        for (i, &e) in exprs.iter().enumerate() {
            let e = self.bind(e, before);
            let before_call = last.is_some_and(|last| i < last) && reads(self.f, e);
            out.push(if before_call { self.new_variable("value", e, before) } else { e });
        }
        out
    }

    /// Binds an expression to a new variable.
    fn new_variable(&mut self, name: &str, e: Expr, before: &mut Vec<Prefix>) -> Expr {
        let ty = self.f.expr_ty(e);
        let var = self.f.add_var(name, VarTy::Value(ty));
        before.push(Prefix::Let(var, e));
        self.f.var_expr(var)
    }

    /// Binds the calls inside an expression, and the expression itself if it is a call.
    fn bind(&mut self, e: Expr, before: &mut Vec<Prefix>) -> Expr {
        let e = self.bind_operands(e, before);
        if !is_call(self.f, e) {
            return e;
        }
        self.new_variable("call", e, before)
    }

    /// Decomposes a conditional expression into the condition and its two alternatives. `None` unless an alternative contains
    /// calls.
    fn as_conditional(&mut self, e: Expr) -> Option<(Expr, Expr, Expr)> {
        let truth = |f: &mut PrimFunc, v| f.add_expr(ExprData::Int(v, Ty::BOOL));
        match self.f.expr(e).clone() {
            ExprData::Call(Intrin::IfThenElse, args, _)
                if self.has_calls(args[1]) || self.has_calls(args[2]) =>
            {
                Some((args[0], args[1], args[2]))
            }
            ExprData::Binary(BinOp::And, a, b) if self.has_calls(b) => {
                Some((a, b, truth(self.f, 0)))
            }
            ExprData::Binary(BinOp::Or, a, b) if self.has_calls(b) => {
                Some((a, truth(self.f, 1), b))
            }
            _ => None,
        }
    }

    /// Converts a conditional expression to an `if` statement that stores the value in a local buffer. Returns a load from this
    /// buffer.
    fn bind_conditional(
        &mut self,
        e: Expr,
        (cond, then, otherwise): (Expr, Expr, Expr),
        before: &mut Vec<Prefix>,
    ) -> Expr {
        let cond = self.bind(cond, before);
        if self.f.expr_ty(cond).lanes != 1 {
            self.reject(
                "a conditional expression with a function call has a vector of conditions, which is not supported (help: loop \
                 over the elements, and test one scalar condition for each)"
                    .into(),
            );
        }
        let ty = self.f.expr_ty(e);
        let result = self.temporary("chosen", ty);
        let (zero, one) = (self.f.int(0), self.f.int(1));
        let index = match ty.lanes {
            1 => zero,
            lanes => self.f.add_expr(ExprData::Ramp(zero, one, lanes)),
        };
        let mut side = |e: Expr| {
            let mut before = Vec::new();
            let value = self.bind_operands(e, &mut before);
            let store = self.f.store(result, &[index], value);
            self.prepend(before, store)
        };
        let (then, otherwise) = (side(then), side(otherwise));
        let choose = self.f.add_stmt(StmtData::If(cond, then, Some(otherwise)));
        before.extend([Prefix::Alloc(result), Prefix::Stmt(choose)]);
        self.f.load(result, &[index])
    }

    /// Whether an expression contains calls. Records an error and returns false if there are more than [`MAX_CALLS`] of them.
    fn has_calls(&mut self, root: Expr) -> bool {
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
            self.reject(format!(
                "an expression contains {count} function calls, more than {MAX_CALLS} (help: assign the results of \
                 some calls to variables in front of the expression)"
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

/// Whether an expression contains calls or reads memory, so that its value may change between evaluations.
pub fn may_change(f: &PrimFunc, e: Expr) -> bool {
    reads(f, e) || contains_calls(f, e)
}

/// Whether an expression calls a packed or extern function or a kernel.
pub fn contains_calls(f: &PrimFunc, e: Expr) -> bool {
    let mut contains = false;
    for_each_expr(f, e, |e| contains |= is_call(f, e));
    contains
}

/// Whether an expression reads memory. Taking the address of an element does not read memory, but computing its indices may.
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
