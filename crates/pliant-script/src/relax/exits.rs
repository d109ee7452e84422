//! `return`, `break` and `continue`: which statements exit a list early, and how exits from loops
//! are encoded.
//!
//! A loop iteration is a function of the loop state, so every exit from it must produce a state.
//! `continue` produces the state of the next iteration. `break` sets the counter of a `for` to its
//! end, or a flag that the condition of a `while` reads. `return` does the same, and also stores
//! its value in the state; after the loop, an `if` on another flag returns that value.

use pliant_ir::relax::{Expr as IrExpr, ExprData, Type, TypeData, derive};
use pliant_ir::{DType, Sym};
use pliant_tensor::Tensor;

use super::branch::BranchEnd;
use super::stmt::{Flow, Rest};
use super::{FuncParser, Local};
use crate::errors::{Kind, Reported, Res};
use crate::python::ast::{Expr, ExprKind, Range, Stmt, StmtKind};

/// How an iteration ends.
pub(super) enum Leave {
    /// Continues with the next iteration.
    Next,
    /// Continues after the loop.
    Break,
    /// Returns the given value from the function.
    Return(IrExpr),
}

/// The exits that a loop body contains.
#[derive(Clone, Copy, Default)]
pub(super) struct Exits {
    pub breaks: bool,
    pub returns: bool,
}

impl Exits {
    /// Finds the exits in the body of a loop.
    pub fn of(body: &[Stmt<'_>]) -> Exits {
        Exits { breaks: may_break(body), returns: may_return(body) }
    }
}

/// The counter of a `for` loop.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub value: Sym,
    pub step: i64,
    pub end: Sym,
}

/// The loop iteration being parsed.
#[derive(Clone)]
pub(super) struct Turn<'s> {
    /// The names in the state, the counter first.
    pub names: Vec<&'s str>,
    /// The parameters.
    pub params: Vec<IrExpr>,
    pub counter: Option<Counter>,
    /// The value of the counter's name, if it differs from the count.
    pub shown: Option<Sym>,
    /// Whether the state has a flag that tells whether the loop continues.
    pub flagged: bool,
    /// Whether the state has a flag and a value for the result of the function.
    pub returns: bool,
    /// The types of the returned values.
    pub returned: Vec<Type>,
}

/// The part of the loop state for the function's result: whether there is one, the value, and its
/// type.
pub(super) struct LoopResult {
    pub flag: IrExpr,
    pub value: IrExpr,
    pub ty: Type,
}

impl<'s> FuncParser<'_, 's> {
    /// Parses `break` and `continue`.
    pub(super) fn jump_stmt(&mut self, word: &str, range: Range) -> Res<Flow> {
        if self.turns.is_empty() {
            let message = format!("'{word}' stands outside of a loop");
            return Err(self.error(Kind::Structure, range, message));
        }
        if self.b.in_dataflow() {
            let message = format!("a dataflow block contains no '{word}'");
            return Err(self.error_help(Kind::Dataflow, range, message, "end the block before it"));
        }
        let leave = if word == "break" { Leave::Break } else { Leave::Next };
        self.leave(leave, range).map(Flow::Returned)
    }

    /// The result of the innermost function, for a `return` or for the end of an iteration.
    pub(super) fn leave(&mut self, leave: Leave, range: Range) -> Res<IrExpr> {
        let Some(turn) = self.turns.last().cloned() else {
            return match leave {
                Leave::Return(e) => Ok(e),
                _ => Err(Reported),
            };
        };
        self.b.set_span(self.cx.span(range));
        let returns = matches!(leave, Leave::Return(_));
        let mut values = Vec::with_capacity(turn.params.len());
        if let Some(counter) = turn.counter {
            let step = self.int(counter.step);
            let func = self.b.func_mut();
            let next = match leave {
                Leave::Next => func.syms.add(counter.value, step),
                _ => counter.end,
            };
            values.push(func.int_value(next, DType::Int64));
        }
        for (i, name) in turn.names.iter().enumerate().skip(values.len()) {
            // The other state is not read after a return.
            values.push(if returns { turn.params[i] } else { self.carried_value(name, range)? });
        }
        if turn.flagged {
            values.push(self.truth(matches!(leave, Leave::Next)));
        }
        if turn.returns {
            values.push(self.truth(returns));
            values.push(match leave {
                Leave::Return(e) => e,
                _ => self.b.func_mut().tuple(&[]),
            });
        }
        if let Leave::Return(e) = leave {
            let ty = self.b.func().expr_ty(e);
            self.turns.last_mut().ok_or(Reported)?.returned.push(ty);
        }
        Ok(match values.as_slice() {
            [one] => *one,
            _ => self.b.func_mut().tuple(&values),
        })
    }

    /// The value of a state name at the end of an iteration.
    fn carried_value(&mut self, name: &str, range: Range) -> Res<IrExpr> {
        match self.scope.get(name) {
            Some(Local::Var(e)) => Ok(*e),
            Some(Local::Sym(s)) => {
                let s = *s;
                Ok(self.b.func_mut().int_value(s, DType::Int64))
            }
            Some(Local::Broken) => Err(Reported),
            Some(Local::Hidden) => Err(self.error_help(
                Kind::Dataflow,
                range,
                format!("'{name}' of the next turn is local to its dataflow block"),
                format!("put it out of the block with R.output({name})"),
            )),
            _ => {
                let message = format!("'{name}' has no value at the end of the loop's body");
                Err(self.error(Kind::Structure, range, message))
            }
        }
    }

    pub(super) fn truth(&mut self, value: bool) -> IrExpr {
        let value = self.int(i64::from(value));
        self.b.func_mut().int_value(value, DType::Bool)
    }

    /// The type of the loop's returned value: the most specific one that covers all returned
    /// values, without symbols defined in the body.
    pub(super) fn returned_type(
        &mut self,
        returned: &[Type],
        outer_syms: usize,
        range: Range,
    ) -> Res<Type> {
        let mut joined: Option<Type> = None;
        for &ty in returned {
            let ty = derive::erase(self.b.func_mut(), ty, &|v| (v.as_u32() as usize) < outer_syms);
            let Some(before) = joined else {
                joined = Some(ty);
                continue;
            };
            let both = derive::lca(self.b.func_mut(), before, ty);
            if self.is_any(both) && !self.is_any(before) && !self.is_any(ty) && !self.result_is_any
            {
                let (a, b) = (self.ty_text(before), self.ty_text(ty));
                return Err(self.error_help(
                    Kind::Type,
                    range,
                    format!("the loop returns {a} in one place and {b} in another: no type but R.Object holds both"),
                    "return the same kind of value everywhere, or declare the result as R.Object",
                ));
            }
            joined = Some(both);
        }
        Ok(joined.unwrap_or_else(|| self.intern(TypeData::Any)))
    }

    /// Parses a loop that may return, and the statements after it, which are executed if it has not
    /// returned.
    pub(super) fn returning_loop(&mut self, stmt: &Stmt<'s>, rest: &Rest<'_, 's>) -> Res<Flow> {
        let Some(result) = self.loop_stmt(stmt)? else {
            return self.stmts_then(rest.stmts, rest.next);
        };
        self.early_return(stmt.range, |p| {
            let first = p.branch_of(|p| {
                let value = match p.is_any(result.ty) {
                    true => result.value,
                    false => {
                        let var = p.b.match_cast(result.value, result.ty, "gv");
                        p.b.func_mut().var_expr(var)
                    }
                };
                p.leave(Leave::Return(value), stmt.range).map(BranchEnd::Return)
            })?;
            let second = p.branch_of(|p| match p.stmts_then(rest.stmts, rest.next)? {
                Flow::Returned(e) => Ok(BranchEnd::Return(e)),
                Flow::Open => Ok(BranchEnd::Names),
            })?;
            p.choice(stmt, result.flag, &first, &second)
        })
    }

    /// The condition of a loop that a flag can end: the flag and `cond`.
    pub(super) fn flagged_condition(&mut self, flag: IrExpr, cond: &Expr<'s>) -> Res<IrExpr> {
        if matches!(cond.kind, ExprKind::Bool(true)) {
            return Ok(flag);
        }
        self.b.begin_seq();
        let mark = self.open_scope();
        let value = self.condition_value(cond);
        self.close_scope(mark);
        let result = value.unwrap_or(flag);
        let then_seq = self.b.end_seq(result);
        value?;
        let result_ty = self.b.func().expr_ty(result);
        let is_tensor = self.b.func().types.get(result_ty).is_tensor();
        self.b.begin_seq();
        let no = match is_tensor {
            true => match Tensor::scalar(false) {
                Ok(tensor) => self.b.func_mut().constant(tensor),
                Err(_) => flag,
            },
            false => flag,
        };
        let no_ty = self.b.func().expr_ty(no);
        let else_seq = self.b.end_seq(no);
        let ty = derive::lca(self.b.func_mut(), result_ty, no_ty);
        let data = ExprData::If { cond: flag, then_seq, else_seq };
        let value = self.b.func_mut().add_expr(data, ty);
        Ok(self.b.operand(value))
    }
}

/// Whether an `if` with these branches exits the list of statements in one branch but may also
/// continue.
pub(super) fn leaves_early(a: &[Stmt<'_>], b: &[Stmt<'_>]) -> bool {
    (may_leave(a) || may_leave(b)) && !(always_leaves(a) && always_leaves(b))
}

/// Whether statements may exit the function or the current iteration.
pub(super) fn may_leave(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) => true,
        StmtKind::If(_, a, b) => may_leave(a) || may_leave(b),
        _ => is_jump(s) || is_returning_loop(s),
    })
}

/// Whether a loop may return from the function.
pub(super) fn is_returning_loop(stmt: &Stmt<'_>) -> bool {
    match &stmt.kind {
        StmtKind::For(_, _, body) | StmtKind::While(_, body) => may_return(body),
        _ => false,
    }
}

fn is_jump(stmt: &Stmt<'_>) -> bool {
    matches!(stmt.kind, StmtKind::Other("break" | "continue"))
}

fn may_return(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) => true,
        StmtKind::If(_, a, b) => may_return(a) || may_return(b),
        _ => is_returning_loop(s),
    })
}

fn may_break(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Other("break") => true,
        StmtKind::If(_, a, b) => may_break(a) || may_break(b),
        _ => false,
    })
}

/// Whether every path through the statements exits.
pub(super) fn always_leaves(stmts: &[Stmt<'_>]) -> bool {
    match stmts.last().map(|s| (&s.kind, is_jump(s))) {
        Some((StmtKind::Return(_), _) | (_, true)) => true,
        Some((StmtKind::If(_, a, b), _)) => always_leaves(a) && always_leaves(b),
        _ => false,
    }
}
