//! Parsing of `if` statements. Both branches define the same variables or return the result of the
//! function.
//!
//! If one branch returns and the other continues, the statements after the `if` become part of the
//! continuing branch, and the result of the `if` is the result of the function. If both branches
//! may continue, the statements after the `if` are duplicated.

use pliant_ir::DType;
use pliant_ir::print::DISCARDED;
use pliant_ir::relax::while_loop::is_condition;
use pliant_ir::relax::{Expr as IrExpr, ExprData, Seq, Type, TypeData, type_lattice};
use pliant_sym::Proof;
use rustc_hash::FxHashSet;

use super::jump_statements::always_exits;
use super::statements::{Flow, RemainingStmts};
use super::unresolved_values::Val;
use super::{FuncParser, Local};
use crate::python::ast::{Expr, Range, Stmt, StmtKind};
use crate::python::with_stack_segment;
use crate::script_errors::{ErrorKind, Res};

/// Maximum number of `if`s in a function that duplicate the statements after them into both branches. An `if` inside duplicated
/// statements counts once for every copy.
const MAX_COPIES: u32 = 256;

/// Maximum nesting depth of `if` statements in which a branch returns early from the function. Successive `if`s of this kind count
/// as nested, because each of them contains the statements that follow it.
const MAX_EARLY: u32 = 180;

/// A branch of an `if` whose statements have been parsed.
pub(super) struct Branch<'s> {
    /// The names that this branch of an `if` defines, with their meanings at the end of the branch.
    defined: Vec<(&'s str, Local)>,
    /// The bindings of the branch and its result.
    seq: Seq,
    ty: Type,
    returned: bool,
}

impl<'s> FuncParser<'_, 's> {
    pub(super) fn if_stmt(
        &mut self,
        stmt: &Stmt<'s>,
        cond: &Expr<'s>,
        then: &[Stmt<'s>],
        otherwise: &[Stmt<'s>],
    ) -> Res<Flow> {
        if self.b.in_dataflow() {
            return Err(self.error_help(
                ErrorKind::Dataflow,
                stmt.range,
                "'if' is not allowed in a dataflow block",
                "end the dataflow block before the 'if'",
            ));
        }
        let cond_e = match self.condition(cond)? {
            Cond::Known(known) => return self.stmts(if known { then } else { otherwise }),
            Cond::Expr(e) => e,
        };
        let joined = self.joined_names(stmt, then, otherwise)?;
        let first = self.branch(then, &joined, None)?;
        let second = self.branch(otherwise, &joined, None)?;
        if first.returned != second.returned {
            return Err(self.error(
                ErrorKind::Structure,
                stmt.range,
                "one branch of this 'if' returns a value, but the other does not",
            ));
        }
        let ty = self.annotated_type(&joined, then, otherwise)?;
        let ty = match ty {
            Some(ty) => ty,
            None if first.returned => self.joined_type(stmt, &[], &first, &second)?,
            None => self.joined_type(stmt, &joined, &first, &second)?,
        };
        let data = ExprData::If { cond: cond_e, then_seq: first.seq, else_seq: second.seq };
        let value = self.b.func_mut().add_expr(data, ty);
        self.b.set_span(self.cx.span(stmt.range));
        if first.returned {
            return Ok(Flow::Returned(self.b.operand(value)));
        }
        self.hide_branch_names(&first, &second, &joined);
        self.define_joined(&joined, value);
        Ok(Flow::Open)
    }

    /// Parses an `if` with one branch that may return from the function, and another branch that
    /// may continue after the `if`.
    pub(super) fn returning_if(
        &mut self,
        stmt: &Stmt<'s>,
        cond: &Expr<'s>,
        then: &[Stmt<'s>],
        otherwise: &[Stmt<'s>],
        rest: &RemainingStmts<'_, 's>,
    ) -> Res<Flow> {
        if self.b.in_dataflow() {
            let message = "'if' is not allowed in a dataflow block";
            return Err(self.error(ErrorKind::Dataflow, stmt.range, message));
        }
        let cond_e = match self.condition(cond)? {
            Cond::Known(known) => {
                return self.stmts_then(if known { then } else { otherwise }, Some(rest));
            }
            Cond::Expr(e) => e,
        };
        if !always_exits(then) && !always_exits(otherwise) {
            self.copies += 1;
        }
        self.early_return(stmt.range, |p| {
            let first = p.branch(then, &[], Some(rest))?;
            let second = p.branch(otherwise, &[], Some(rest))?;
            p.choice(stmt, cond_e, &first, &second)
        })
    }

    /// Calls `read`, which parses the branches of an `if` with an early return. Reports an error if such `if`s are nested too
    /// deeply.
    pub(super) fn early_return(
        &mut self,
        range: Range,
        read: impl FnOnce(&mut Self) -> Res<Flow>,
    ) -> Res<Flow> {
        if self.copies > MAX_COPIES || self.early >= MAX_EARLY {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                range,
                "the function returns early in too many places",
                "move a part of it into a separate function",
            ));
        }
        self.early += 1;
        let flow = with_stack_segment(|| read(self));
        self.early -= 1;
        flow
    }

    /// Creates an `if` expression from two branches that both return. Its value is the result of the function.
    pub(super) fn choice(
        &mut self,
        stmt: &Stmt<'s>,
        cond: IrExpr,
        first: &Branch<'s>,
        second: &Branch<'s>,
    ) -> Res<Flow> {
        if !(first.returned && second.returned) {
            return Err(self.error_help(
                ErrorKind::Structure,
                stmt.range,
                "a branch of this 'if' returns a value, but the function can end without one",
                "end the function with a return statement",
            ));
        }
        let ty = self.joined_type(stmt, &[], first, second)?;
        let data = ExprData::If { cond, then_seq: first.seq, else_seq: second.seq };
        let value = self.b.func_mut().add_expr(data, ty);
        self.b.set_span(self.cx.span(stmt.range));
        Ok(Flow::Returned(self.b.operand(value)))
    }

    /// Evaluates a condition. A condition that is known at parse time selects its branch, as in Python.
    pub(super) fn condition(&mut self, cond: &Expr<'s>) -> Res<Cond> {
        let val = self.value(cond)?;
        if let Val::Bool(known) = val {
            return Ok(Cond::Known(known));
        }
        let e = self.operand(val, None, cond.range)?;
        self.check_cond(e, cond.range)?;
        Ok(Cond::Expr(e))
    }

    /// The most specific type that covers the results of both branches. If these types are unrelated, this is an error unless an
    /// annotation states a type that covers both.
    fn joined_type(
        &mut self,
        stmt: &Stmt<'s>,
        joined: &[&str],
        first: &Branch<'s>,
        second: &Branch<'s>,
    ) -> Res<Type> {
        let (a, b) = (self.erase_shape(first.ty), self.erase_shape(second.ty));
        let ty = type_lattice::lca(self.b.func_mut(), a, b);
        let types = &self.b.func().types;
        let lost = |a: Type, b: Type, ty: Type| {
            matches!(types.get(ty), TypeData::Any)
                && !matches!(types.get(a), TypeData::Any)
                && !matches!(types.get(b), TypeData::Any)
        };
        let clash = match (types.get(a), types.get(b), types.get(ty)) {
            (TypeData::Tuple(x), TypeData::Tuple(y), TypeData::Tuple(z))
                if joined.len() > 1 && x.len() == y.len() =>
            {
                let mut fields = x.iter().zip(y).zip(z).zip(joined);
                fields
                    .find(|(((a, b), ty), _)| lost(**a, **b, **ty))
                    .map(|(((a, b), _), name)| (*a, *b, format!("'{name}'")))
            }
            _ => lost(a, b, ty).then(|| {
                (a, b, joined.first().map_or("the result".into(), |name| format!("'{name}'")))
            }),
        };
        match clash {
            Some((a, b, what)) if !(joined.is_empty() && self.result_is_any) => {
                let (a, b) = (self.ty_text(a), self.ty_text(b));
                Err(self.error_help(
                    ErrorKind::Type,
                    stmt.range,
                    format!("{what} is {a} in one branch and {b} in the other: only R.Object covers both"),
                    "return the same kind of value from both, or annotate it as R.Object",
                ))
            }
            _ => Ok(ty),
        }
    }

    fn check_cond(&self, cond: IrExpr, range: Range) -> Res<()> {
        let ty = self.b.func().expr_ty(cond);
        if is_condition(self.b.func(), ty) {
            return Ok(());
        }
        let message =
            format!("the condition must be a scalar bool, but has type {}", self.ty_text(ty));
        Err(self.error(ErrorKind::Type, range, message))
    }

    /// The variables that the `if` defines for the statements after it. These are the names that
    /// are read later. If no name is read later, it is the name that both branches assign last. A
    /// name assigned in only one branch keeps its previous value in the other branch.
    fn joined_names(
        &mut self,
        stmt: &Stmt<'s>,
        a: &[Stmt<'s>],
        b: &[Stmt<'s>],
    ) -> Res<Vec<&'s str>> {
        let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
        assigned(a, &mut in_a);
        assigned(b, &mut in_b);
        let end = end_of(b).max(end_of(a));
        let later = |name: &str| {
            self.carried.contains_key(name) || self.last_use.get(name).is_some_and(|&at| at >= end)
        };
        let mut anywhere = Vec::new();
        assigned_anywhere(a, &mut anywhere);
        assigned_anywhere(b, &mut anywhere);
        let set = |names: &[&'s str]| names.iter().copied().collect::<FxHashSet<&str>>();
        let (set_a, set_b) = (set(&in_a), set(&in_b));
        let both = |name: &str| set_a.contains(name) && set_b.contains(name);
        let known =
            |name: &str| matches!(self.scope.get(name), Some(Local::Var(_) | Local::Sym(_)));
        let live: Vec<&'s str> =
            anywhere.into_iter().filter(|n| later(n) && (both(n) || known(n))).collect();
        if !live.is_empty() {
            return Ok(live);
        }
        let last = match (in_a.last(), in_b.last()) {
            (Some(x), Some(y)) if x == y => vec![*x],
            _ if self.is_discarded(a) && self.is_discarded(b) => vec![DISCARDED],
            _ => Vec::new(),
        };
        // If the names of a branch are only used inside it, it defines nothing for the statements after the `if`.
        let effects = |s: &[Stmt<'s>]| {
            let mut names = Vec::new();
            assigned_anywhere(s, &mut names);
            !names.into_iter().any(later)
        };
        // Two branches without results define nothing, nor do two branches that return.
        if last.is_empty() && !(always_exits(a) && always_exits(b)) {
            if b.is_empty() && !effects(a) {
                return Err(self.error_help(
                    ErrorKind::Structure,
                    stmt.range,
                    "an 'if' needs an 'else'",
                    "both branches must define the variable that is used afterwards",
                ));
            }
            let common = set_a.intersection(&set_b).next().is_some();
            if !common && !effects(a) && !effects(b) {
                return Err(self.error_help(
                    ErrorKind::Structure,
                    stmt.range,
                    "the branches of this 'if' define no variable in common",
                    "assign the result to the same name in both",
                ));
            }
        }
        Ok(last)
    }

    /// Whether the last statement of a branch is `_: R.Tuple = R.tuple()`. The printer ends both branches with this
    /// statement if the `if` defines no variable.
    fn is_discarded(&self, branch: &[Stmt<'s>]) -> bool {
        let annotated = branch.last().filter(|last| annotation_of(last).is_some());
        annotated.and_then(plain_assignment).is_some_and(|(target, value)| {
            target == DISCARDED && self.match_call(value).is_none() && !self.declares_symbol(value)
        })
    }

    fn branch(
        &mut self,
        body: &[Stmt<'s>],
        joined: &[&'s str],
        rest: Option<&RemainingStmts<'_, 's>>,
    ) -> Res<Branch<'s>> {
        self.branch_of(|p| match p.branch_body(body, joined, rest)? {
            BranchEnd::Names if joined.is_empty() && rest.is_some() => Ok(BranchEnd::Names),
            BranchEnd::Names => p.joined_value(joined).map(BranchEnd::Value),
            end => Ok(end),
        })
    }

    /// Parses a branch as a sequence of bindings with its own scope. `read` parses the statements of the branch.
    pub(super) fn branch_of(
        &mut self,
        read: impl FnOnce(&mut Self) -> Res<BranchEnd>,
    ) -> Res<Branch<'s>> {
        self.b.begin_seq();
        let mark = self.open_scope();
        let ended = read(self);
        let defined = self.close_scope(mark);
        let returned = matches!(ended, Ok(BranchEnd::Return(_)));
        let result = match ended {
            Ok(BranchEnd::Return(e) | BranchEnd::Value(e)) => e,
            // Close the sequence even after an error, to keep the state of the builder consistent.
            _ => self.b.func_mut().tuple(&[]),
        };
        let ty = self.b.func().expr_ty(result);
        let seq = self.b.end_seq(result);
        ended.map(|_| Branch { defined, seq, ty, returned })
    }

    /// Parses the statements of a branch. If the last statement assigns the name of the `if`'s
    /// result, its right-hand side becomes the result of the branch.
    fn branch_body(
        &mut self,
        body: &[Stmt<'s>],
        joined: &[&'s str],
        rest: Option<&RemainingStmts<'_, 's>>,
    ) -> Res<BranchEnd> {
        if let ([name], Some((last, before))) = (joined, body.split_last())
            && let Some((target, value)) = plain_assignment(last)
            && target == *name
            && self.match_call(value).is_none()
            && !self.declares_symbol(value)
        {
            self.stmts(before)?;
            let val = self.value(value)?;
            let e = self.expr_of(val.clone(), None, value.range)?;
            if !self.is_call(e) && !matches!(self.b.func().expr(e), ExprData::TupleGetItem(..)) {
                return Ok(BranchEnd::Value(self.b.operand(e)));
            }
            self.b.set_span(self.cx.span(value.range));
            // The name belongs to the variable defined by the whole `if`.
            let var = match annotation_of(last) {
                Some(annotation) => self.bind_annotated(e, annotation, "gv", last.range)?,
                None => self.b.emit(e),
            };
            return Ok(BranchEnd::Value(self.b.func_mut().var_expr(var)));
        }
        match self.stmts_then(body, rest)? {
            Flow::Returned(e) => Ok(BranchEnd::Return(e)),
            Flow::Open => Ok(BranchEnd::Names),
        }
    }

    fn joined_value(&mut self, joined: &[&'s str]) -> Res<IrExpr> {
        let mut values = Vec::with_capacity(joined.len());
        for name in joined {
            match self.scope.get(name) {
                Some(Local::Var(e)) => values.push(*e),
                Some(Local::Sym(s)) => {
                    let s = *s;
                    values.push(self.b.func_mut().int_value(s, DType::Int64));
                }
                _ => return Err(crate::script_errors::Reported),
            }
        }
        Ok(match values.as_slice() {
            [one] => *one,
            _ => self.b.func_mut().tuple(&values),
        })
    }

    /// The annotated type of the name that both branches assign last; `None` if one of the two
    /// annotations is missing, or if they differ.
    fn annotated_type(
        &mut self,
        joined: &[&'s str],
        a: &[Stmt<'s>],
        b: &[Stmt<'s>],
    ) -> Res<Option<Type>> {
        let ([name], Some(x), Some(y)) = (joined, a.last(), b.last()) else { return Ok(None) };
        let both = [x, y].map(|s| match plain_assignment(s) {
            Some((target, _)) if target == *name => annotation_of(s),
            _ => None,
        });
        let [Some(x), Some(y)] = both else { return Ok(None) };
        let (x, y) = (self.annotation(x)?, self.annotation(y)?);
        Ok((x == y).then_some(x))
    }

    fn hide_branch_names(&mut self, a: &Branch<'s>, b: &Branch<'s>, joined: &[&'s str]) {
        for (name, local) in a.defined.iter().chain(&b.defined) {
            if !joined.contains(name)
                && !self.scope.contains_key(name)
                && matches!(local, Local::Var(_))
            {
                self.define(name, Local::OneBranch);
            }
        }
    }

    fn define_joined(&mut self, joined: &[&'s str], value: IrExpr) {
        match joined {
            [] => {
                self.b.emit_named(value, "_");
            }
            [DISCARDED] => {
                self.b.emit_named(value, DISCARDED);
            }
            [name] => {
                let var = self.b.emit_named(value, name);
                let e = self.b.func_mut().var_expr(var);
                self.define(name, Local::Var(e));
            }
            names => {
                let tuple = self.b.emit_named(value, "gv");
                let tuple = self.b.func_mut().var_expr(tuple);
                for (i, name) in names.iter().enumerate() {
                    let field = self.b.func_mut().tuple_get_item(tuple, i as u32);
                    let var = self.b.emit_named(field, name);
                    let e = self.b.func_mut().var_expr(var);
                    self.define(name, Local::Var(e));
                }
            }
        }
    }

    /// Checks the result of a function against the annotated result type, in the same way as a binding with an annotation.
    pub(super) fn check_result(&mut self, result: IrExpr, want: Type, range: Range) -> Res<IrExpr> {
        let have = self.b.func().expr_ty(result);
        match type_lattice::is_subtype(self.b.func_mut(), have, want) {
            Proof::Yes => Ok(result),
            Proof::Unknown if self.same_but_for_functions(have, want) => Ok(result),
            Proof::Unknown => {
                let result = self.b.operand(result);
                self.b.set_span(self.cx.span(range));
                let var = self.b.match_cast(result, want, "gv");
                Ok(self.b.func_mut().var_expr(var))
            }
            Proof::No => {
                let message = format!(
                    "the function is declared to return a value of type {}, but returns a value of type {}",
                    self.ty_text(want),
                    self.ty_text(have)
                );
                Err(self.error(ErrorKind::Type, range, message))
            }
        }
    }
}

/// The evaluated condition of an `if`.
pub(super) enum Cond {
    /// The condition is known at parse time.
    Known(bool),
    /// The condition is a Boolean scalar that is computed at run time.
    Expr(IrExpr),
}

/// How a branch ends: with a `return`, with a value, or only with definitions of names.
pub(super) enum BranchEnd {
    Return(IrExpr),
    Value(IrExpr),
    Names,
}

fn plain_assignment<'e, 's>(stmt: &'e Stmt<'s>) -> Option<(&'s str, &'e Expr<'s>)> {
    match &stmt.kind {
        StmtKind::Assign(targets, value) => match targets.as_slice() {
            [target] => Some((target.as_name()?, value)),
            _ => None,
        },
        StmtKind::AnnAssign(target, _, Some(value)) => Some((target.as_name()?, value)),
        _ => None,
    }
}

fn annotation_of<'e, 's>(stmt: &'e Stmt<'s>) -> Option<&'e Expr<'s>> {
    match &stmt.kind {
        StmtKind::AnnAssign(_, annotation, _) => Some(annotation),
        _ => None,
    }
}

/// Appends to `out` the names that are defined on every path through the statements, in order.
fn assigned<'s>(stmts: &[Stmt<'s>], out: &mut Vec<&'s str>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Assign(targets, _) => targets.iter().for_each(|t| target_names(t, out)),
            StmtKind::AnnAssign(target, ..) => target_names(target, out),
            StmtKind::With(_, body) => assigned(body, out),
            StmtKind::FunctionDef(def) => out.push(def.name),
            StmtKind::If(_, a, b) => {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                assigned(a, &mut x);
                assigned(b, &mut y);
                let y: FxHashSet<&str> = y.into_iter().collect();
                out.extend(x.into_iter().filter(|n| y.contains(n)));
            }
            _ => {}
        }
    }
}

/// Appends to `out` the names that may be defined anywhere in the statements, including nested branches and loops. Lists each name
/// once, in order.
pub(super) fn assigned_anywhere<'s>(stmts: &[Stmt<'s>], out: &mut Vec<&'s str>) {
    let mut names = Vec::new();
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::If(_, a, b) => {
                assigned_anywhere(a, &mut names);
                assigned_anywhere(b, &mut names);
            }
            StmtKind::With(_, body) | StmtKind::For(_, _, body) | StmtKind::While(_, body) => {
                assigned_anywhere(body, &mut names);
            }
            _ => assigned(std::slice::from_ref(stmt), &mut names),
        }
    }
    let mut seen: FxHashSet<&str> = out.iter().copied().collect();
    out.extend(names.into_iter().filter(|n| seen.insert(n)));
}

fn target_names<'s>(target: &Expr<'s>, out: &mut Vec<&'s str>) {
    match target.as_name() {
        Some("_") => {}
        Some(name) => out.push(name),
        None => target.as_sequence().unwrap_or(&[]).iter().for_each(|t| target_names(t, out)),
    }
}

/// The byte offset at which a list of statements ends.
fn end_of(stmts: &[Stmt<'_>]) -> u32 {
    let Some(last) = stmts.last() else { return 0 };
    let inner = match &last.kind {
        StmtKind::If(_, a, b) => end_of(a).max(end_of(b)),
        StmtKind::With(_, body) | StmtKind::For(_, _, body) | StmtKind::While(_, body) => {
            end_of(body)
        }
        StmtKind::FunctionDef(def) => end_of(&def.body),
        _ => 0,
    };
    inner.max(last.range.end)
}
