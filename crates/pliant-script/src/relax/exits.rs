//! `return`, `break` and `continue`: which statements leave a list early, and what leaving the body of a loop gives.
//!
//! A turn of a loop is a function of the state, so whatever leaves it ends with a state. `continue` ends with the state of
//! the next turn. `break` ends a `for` with its counter at the end, and a `while` with a flag that its condition reads.
//! `return` does the same, and leaves its value in the state: after the loop, an `if` on another flag returns it.

use pliant_ir::relax::{Expr as IrExpr, ExprData, Type, TypeData, derive};
use pliant_ir::{DType, Sym};
use pliant_tensor::Tensor;

use super::branch::BranchEnd;
use super::stmt::{Flow, Rest};
use super::{FuncParser, Local};
use crate::errors::{Kind, Reported, Res};
use crate::python::ast::{Expr, ExprKind, Range, Stmt, StmtKind};

/// How a turn is left.
pub(super) enum Leave {
    /// For the next turn.
    Next,
    /// For what follows the loop.
    Break,
    /// With the result of the function.
    Return(IrExpr),
}

/// How the turns of a loop may be left.
#[derive(Clone, Copy, Default)]
pub(super) struct Exits {
    pub breaks: bool,
    pub returns: bool,
}

impl Exits {
    /// The exits in the body of a loop.
    pub fn of(body: &[Stmt<'_>]) -> Exits {
        Exits { breaks: may_break(body), returns: may_return(body) }
    }
}

/// The counter of a `for`.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub value: Sym,
    pub step: i64,
    pub end: Sym,
}

/// The turn that is read.
#[derive(Clone)]
pub(super) struct Turn<'s> {
    /// What it carries by name, the counter first.
    pub names: Vec<&'s str>,
    /// The parameters.
    pub params: Vec<IrExpr>,
    pub counter: Option<Counter>,
    /// What the counter's name means, where that is not the count.
    pub shown: Option<Sym>,
    /// Whether a flag says that the loop goes on.
    pub flagged: bool,
    /// Whether a flag and a value of the state are the result of the function.
    pub returns: bool,
    /// The types of what it returns.
    pub returned: Vec<Type>,
}

/// What a loop leaves of the function's result: whether there is one, the value, and its type.
pub(super) struct LoopResult {
    pub flag: IrExpr,
    pub value: IrExpr,
    pub ty: Type,
}

impl<'s> FuncParser<'_, 's> {
    /// `break` and `continue`.
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

    /// The result of the innermost function, which a `return` or the end of a turn gives.
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
            // Nobody reads the state of a loop that has returned.
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

    /// What a name of the state means at the end of a turn.
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

    /// The type of a loop's result: the least that holds everything it returns, without symbols of the turns.
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

    /// A loop that may return, and the statements after it: those are for the case that it has not.
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

    /// The condition of a loop that a flag may end: what `cond` says while the flag holds.
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

/// Whether an `if` of those branches leaves the list of statements in one of them, while some way through it goes on.
pub(super) fn leaves_early(a: &[Stmt<'_>], b: &[Stmt<'_>]) -> bool {
    (may_leave(a) || may_leave(b)) && !(always_leaves(a) && always_leaves(b))
}

/// Whether statements may leave the function, or the turn that they stand in.
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

/// Whether no way through the statements goes on after them.
pub(super) fn always_leaves(stmts: &[Stmt<'_>]) -> bool {
    match stmts.last().map(|s| (&s.kind, is_jump(s))) {
        Some((StmtKind::Return(_), _) | (_, true)) => true,
        Some((StmtKind::If(_, a, b), _)) => always_leaves(a) && always_leaves(b),
        _ => false,
    }
}
