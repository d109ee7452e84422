//! `return`, `break` and `continue`: finds statements that exit early, and encodes exits from loops
//! in the loop state.
//!
//! The body of a loop is a function from the state before an iteration to the state after it, so
//! every exit must produce a state. `continue` produces the state of the next iteration. `break`
//! sets the counter of a `for` loop to its end, or clears a flag that the condition of a `while`
//! loop reads. `return` ends the loop in the same way, stores its value in the state, and sets
//! another flag. If this flag is set, an `if` after the loop returns the value.

use pliant_ir::relax::{Expr as IrExpr, ExprData, Type, TypeData, type_lattice};
use pliant_ir::{DType, Sym};
use pliant_tensor::Tensor;

use super::if_statements::BranchEnd;
use super::statements::{Flow, RemainingStmts};
use super::{FuncParser, Local};
use crate::python::ast::{Expr, ExprKind, Range, Stmt, StmtKind};
use crate::script_errors::{ErrorKind, Reported, Res};

/// How an iteration of a loop ends.
pub(super) enum Exit {
    /// `continue`, or the end of the body: the loop continues with the next iteration.
    Continue,
    /// `break`: execution continues after the loop.
    Break,
    /// `return`: the function returns the given value.
    Return(IrExpr),
}

/// The kinds of early exits that a loop body contains.
#[derive(Clone, Copy, Default)]
pub(super) struct Exits {
    pub breaks: bool,
    pub returns: bool,
}

impl Exits {
    /// Finds the early exits in the body of a loop.
    pub fn of(body: &[Stmt<'_>]) -> Exits {
        Exits { breaks: may_break(body), returns: may_return(body) }
    }
}

/// The counter of a `for` loop: its current value, its step, and its end value.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub value: Sym,
    pub step: i64,
    pub end: Sym,
}

/// The loop iteration that is being parsed, and what its state contains.
#[derive(Clone)]
pub(super) struct Iteration<'s> {
    /// The names of the variables in the loop state. In a `for` loop, the counter is first.
    pub names: Vec<&'s str>,
    /// The parameters of the function that the loop body becomes: the state before the iteration.
    pub params: Vec<IrExpr>,
    pub counter: Option<Counter>,
    /// The value of the loop variable of a `for` loop, if it is not the counter itself but is computed from it.
    pub loop_var: Option<Sym>,
    /// Whether the loop state contains a flag that is true while the loop continues.
    pub flagged: bool,
    /// Whether the loop state contains the result of the function, and a flag that is true if there
    /// is a result.
    pub returns: bool,
    /// The types of the values of all `return` statements parsed so far in the body.
    pub returned: Vec<Type>,
}

/// The part of the loop state for the result of the function: whether there is a result, its value, and its type.
pub(super) struct LoopResult {
    pub flag: IrExpr,
    pub value: IrExpr,
    pub ty: Type,
}

impl<'s> FuncParser<'_, 's> {
    /// Parses a `break` or `continue` statement.
    pub(super) fn jump_stmt(&mut self, word: &str, range: Range) -> Res<Flow> {
        if self.iterations.is_empty() {
            let message = format!("'{word}' is outside a loop");
            return Err(self.error(ErrorKind::Structure, range, message));
        }
        if self.b.in_dataflow() {
            let message = format!("'{word}' is not allowed in a dataflow block");
            return Err(self.error_help(
                ErrorKind::Dataflow,
                range,
                message,
                format!("end the dataflow block before the '{word}'"),
            ));
        }
        let exit = if word == "break" { Exit::Break } else { Exit::Continue };
        self.exit_value(exit, range).map(Flow::Returned)
    }

    /// The value that the innermost function of the IR returns for a `return` statement or at the end of an iteration. Inside a
    /// loop, this is the new loop state.
    pub(super) fn exit_value(&mut self, exit: Exit, range: Range) -> Res<IrExpr> {
        let Some(iteration) = self.iterations.last().cloned() else {
            return match exit {
                Exit::Return(e) => Ok(e),
                _ => Err(Reported),
            };
        };
        self.b.set_span(self.cx.span(range));
        let returns = matches!(exit, Exit::Return(_));
        let mut values = Vec::with_capacity(iteration.params.len());
        if let Some(counter) = iteration.counter {
            let step = self.int(counter.step);
            let func = self.b.func_mut();
            let next = match exit {
                Exit::Continue => func.syms.add(counter.value, step),
                _ => counter.end,
            };
            values.push(func.int_value(next, DType::Int64));
        }
        for (i, name) in iteration.names.iter().enumerate().skip(values.len()) {
            // After a return, the rest of the state is not read.
            values.push(if returns {
                iteration.params[i]
            } else {
                self.carried_value(name, range)?
            });
        }
        if iteration.flagged {
            values.push(self.bool_const(matches!(exit, Exit::Continue)));
        }
        if iteration.returns {
            values.push(self.bool_const(returns));
            values.push(match exit {
                Exit::Return(e) => e,
                _ => self.b.func_mut().tuple(&[]),
            });
        }
        if let Exit::Return(e) = exit {
            let ty = self.b.func().expr_ty(e);
            self.iterations.last_mut().ok_or(Reported)?.returned.push(ty);
        }
        Ok(match values.as_slice() {
            [one] => *one,
            _ => self.b.func_mut().tuple(&values),
        })
    }

    /// The value of a name of the loop state at the end of an iteration.
    fn carried_value(&mut self, name: &str, range: Range) -> Res<IrExpr> {
        match self.scope.get(name) {
            Some(Local::Var(e)) => Ok(*e),
            Some(Local::Sym(s)) => {
                let s = *s;
                Ok(self.b.func_mut().int_value(s, DType::Int64))
            }
            Some(Local::Broken) => Err(Reported),
            Some(Local::Hidden) => Err(self.error_help(
                ErrorKind::Dataflow,
                range,
                format!(
                    "'{name}' is needed by the next iteration, but is local to its dataflow block"
                ),
                format!("make it an output of the block: R.output({name})"),
            )),
            _ => {
                let message = format!(
                    "'{name}' is needed by the next iteration, but has no value at the end of the loop's body"
                );
                Err(self.error(ErrorKind::Structure, range, message))
            }
        }
    }

    pub(super) fn bool_const(&mut self, value: bool) -> IrExpr {
        let value = self.int(i64::from(value));
        self.b.func_mut().int_value(value, DType::Bool)
    }

    /// The type of the value that the loop returns: the most specific type that covers all returned values, without symbols defined
    /// in the body.
    pub(super) fn returned_type(
        &mut self,
        returned: &[Type],
        outer_syms: usize,
        range: Range,
    ) -> Res<Type> {
        let mut joined: Option<Type> = None;
        for &ty in returned {
            let ty =
                type_lattice::erase(self.b.func_mut(), ty, &|v| (v.as_u32() as usize) < outer_syms);
            let Some(before) = joined else {
                joined = Some(ty);
                continue;
            };
            let both = type_lattice::lca(self.b.func_mut(), before, ty);
            if self.is_any(both) && !self.is_any(before) && !self.is_any(ty) && !self.result_is_any
            {
                let (a, b) = (self.ty_text(before), self.ty_text(ty));
                return Err(self.error_help(
                    ErrorKind::Type,
                    range,
                    format!("the loop returns {a} in one place and {b} in another: only R.Object covers both"),
                    "return the same kind of value everywhere, or declare the result as R.Object",
                ));
            }
            joined = Some(both);
        }
        Ok(joined.unwrap_or_else(|| self.intern(TypeData::Any)))
    }

    /// Parses a loop that may return from the function, and the statements after it, which run if the loop did not return.
    pub(super) fn returning_loop(
        &mut self,
        stmt: &Stmt<'s>,
        rest: &RemainingStmts<'_, 's>,
    ) -> Res<Flow> {
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
                p.exit_value(Exit::Return(value), stmt.range).map(BranchEnd::Return)
            })?;
            let second = p.branch_of(|p| match p.stmts_then(rest.stmts, rest.next)? {
                Flow::Returned(e) => Ok(BranchEnd::Return(e)),
                Flow::Open => Ok(BranchEnd::Names),
            })?;
            p.choice(stmt, result.flag, &first, &second)
        })
    }

    /// The condition of a loop with a flag: the loop continues while both `flag` and `cond` are true.
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
        let ty = type_lattice::lca(self.b.func_mut(), result_ty, no_ty);
        let data = ExprData::If { cond: flag, then_seq, else_seq };
        let value = self.b.func_mut().add_expr(data, ty);
        Ok(self.b.operand(value))
    }
}

/// Whether an `if` with these two branches has both kinds of paths: paths that leave the enclosing
/// list of statements early, and paths that continue after the `if`.
pub(super) fn exits_early(a: &[Stmt<'_>], b: &[Stmt<'_>]) -> bool {
    (may_exit(a) || may_exit(b)) && !(always_exits(a) && always_exits(b))
}

/// Whether statements may exit the function or the current iteration.
pub(super) fn may_exit(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) => true,
        StmtKind::If(_, a, b) => may_exit(a) || may_exit(b),
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

/// Whether every path through the statements ends with `return`, `break` or `continue`.
pub(super) fn always_exits(stmts: &[Stmt<'_>]) -> bool {
    match stmts.last().map(|s| (&s.kind, is_jump(s))) {
        Some((StmtKind::Return(_), _) | (_, true)) => true,
        Some((StmtKind::If(_, a, b), _)) => always_exits(a) && always_exits(b),
        _ => false,
    }
}
