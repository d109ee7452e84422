//! Parsing of statements in loop functions.

use std::sync::Arc;

use pliant_ir::tir::bind_calls::{contains_calls, may_change};
use pliant_ir::tir::{Buffer, Expr as IrExpr, Intrin, Stmt as IrStmt, StmtData, Ty, Var, VarTy};

use super::blocks::OpenBlock;
use super::expressions::Val;
use super::{Local, PrimParser};
use crate::python::ast::{BinOp, Call, Expr, ExprKind, Range, Stmt, StmtKind};
use crate::script_errors::{ErrorKind, Reported, Res};

/// A parsed element of a list of statements in a loop function. The scope of a `let` or an allocation is the rest of the list.
pub(super) enum Item {
    Stmt(IrStmt),
    Let(Var, IrExpr),
    Alloc(Buffer),
    Assert(IrExpr, Arc<str>),
}

impl<'s> PrimParser<'_, 's> {
    /// Parses a list of statements. `block` is the block that directly contains the list, if any.
    pub(super) fn stmts(
        &mut self,
        stmts: &[Stmt<'s>],
        mut block: Option<&mut OpenBlock>,
    ) -> Res<IrStmt> {
        let mark = self.open_scope();
        let mut items = Vec::with_capacity(stmts.len());
        let mut failed = false;
        for stmt in stmts {
            if self.stmt(stmt, block.as_deref_mut(), &mut items).is_err() {
                failed = true;
                self.mark_broken(stmt);
                if self.cx.errors.is_full() {
                    break;
                }
            }
        }
        // The names in the list of a block stay visible until the block ends. The caller closes that scope.
        if block.is_none() {
            self.close_scope(mark);
        }
        if failed { Err(Reported) } else { Ok(self.close_list(items)) }
    }

    fn close_list(&mut self, items: Vec<Item>) -> IrStmt {
        let mut list: Vec<IrStmt> = Vec::new();
        for item in items.into_iter().rev() {
            let data = match item {
                Item::Stmt(s) => {
                    list.push(s);
                    continue;
                }
                Item::Let(v, value) => StmtData::Let(v, value, self.rest(&mut list)),
                Item::Alloc(b) => StmtData::Alloc(b, self.rest(&mut list)),
                Item::Assert(cond, message) => {
                    StmtData::Assert(cond, message, self.rest(&mut list))
                }
            };
            list.push(self.f.add_stmt(data));
        }
        self.rest(&mut list)
    }

    fn rest(&mut self, list: &mut Vec<IrStmt>) -> IrStmt {
        let mut stmts = std::mem::take(list);
        stmts.reverse();
        self.f.seq(stmts)
    }

    fn mark_broken(&mut self, stmt: &Stmt<'s>) {
        let targets: Vec<&Expr<'s>> = match &stmt.kind {
            StmtKind::Assign(targets, _) => targets.iter().collect(),
            StmtKind::AnnAssign(target, ..) => vec![target],
            _ => return,
        };
        for t in targets {
            let names = t.as_sequence().unwrap_or(std::slice::from_ref(t));
            for name in names.iter().filter_map(Expr::as_name) {
                if !self.scope.contains_key(name) {
                    self.define(name, Local::Broken);
                }
            }
        }
    }

    fn stmt(
        &mut self,
        stmt: &Stmt<'s>,
        block: Option<&mut OpenBlock>,
        out: &mut Vec<Item>,
    ) -> Res<()> {
        match &stmt.kind {
            StmtKind::Pass | StmtKind::Return(None | Some(Expr { kind: ExprKind::None, .. })) => {
                Ok(())
            }
            StmtKind::Expr(e) => self.expr_stmt(e, block, out),
            StmtKind::Assign(targets, value) => {
                let [target] = targets.as_slice() else {
                    return Err(self.error(
                        ErrorKind::Unsupported,
                        stmt.range,
                        "a chained assignment (a = b = value) is not supported: assign one target per statement",
                    ));
                };
                self.assign(target, value, block, out)
            }
            StmtKind::AnnAssign(target, annotation, Some(value)) => {
                // The annotation of a buffer only repeats its allocation.
                if self.tir_call(annotation).is_some_and(|(name, _)| name == "Buffer") {
                    return self.assign(target, value, block, out);
                }
                let item = self.annotated_let(target, annotation, value)?;
                out.push(item);
                Ok(())
            }
            StmtKind::AnnAssign(_, annotation, None) => Err(self.error(
                ErrorKind::Structure,
                annotation.range,
                "a variable with a type annotation must be assigned a value in the same statement",
            )),
            StmtKind::AugAssign(target, op, value) => {
                let s = self.update(target, *op, value, stmt.range)?;
                out.push(Item::Stmt(s));
                Ok(())
            }
            StmtKind::For(target, iter, body) => {
                let s = self.for_stmt(target, iter, body)?;
                out.push(Item::Stmt(s));
                Ok(())
            }
            StmtKind::While(cond, body) => {
                let cond = self.cond(cond)?;
                let body = self.nested(body)?;
                out.push(Item::Stmt(self.f.add_stmt(StmtData::While(cond, body))));
                Ok(())
            }
            StmtKind::If(cond, then, otherwise) => {
                let cond = self.cond(cond)?;
                let then = self.nested(then);
                let otherwise =
                    if otherwise.is_empty() { None } else { Some(self.nested(otherwise)?) };
                let data = StmtData::If(cond, then?, otherwise);
                out.push(Item::Stmt(self.f.add_stmt(data)));
                Ok(())
            }
            StmtKind::With(items, body) => self.with(stmt, items, body, block, out),
            StmtKind::Assert(cond, message) => {
                let (cond, message) = self.assertion(cond, message.as_ref())?;
                out.push(Item::Assert(cond, message));
                Ok(())
            }
            StmtKind::Return(Some(e)) => Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "a loop function cannot return a value",
                "write the result to a buffer parameter",
            )),
            _ => {
                let word = self.cx.slice(stmt.range).split_whitespace().next().unwrap_or("this");
                let message = format!("'{word}' is not allowed in a loop function");
                Err(self.error(ErrorKind::Unsupported, stmt.range, message))
            }
        }
    }

    /// Parses a nested list of statements, with its own scope.
    fn nested(&mut self, body: &[Stmt<'s>]) -> Res<IrStmt> {
        let mark = self.open_scope();
        let s = self.stmts(body, None);
        self.close_scope(mark);
        s
    }

    fn assertion(
        &mut self,
        cond: &Expr<'s>,
        message: Option<&Expr<'s>>,
    ) -> Res<(IrExpr, Arc<str>)> {
        let text = match message {
            None => self.cx.slice(cond.range).to_string(),
            Some(e) => match self.val(e)? {
                Val::Str(s) => s,
                _ => {
                    return Err(self.error(
                        ErrorKind::Value,
                        e.range,
                        "the message of an assert statement must be a string",
                    ));
                }
            },
        };
        Ok((self.cond(cond)?, text.into()))
    }

    // ---- assignments ----

    fn assign(
        &mut self,
        target: &Expr<'s>,
        value: &Expr<'s>,
        mut block: Option<&mut OpenBlock>,
        out: &mut Vec<Item>,
    ) -> Res<()> {
        if let ExprKind::Subscript(head, index) = &target.kind {
            let (b, indices) = self.element(head, index, target.range)?;
            let val = self.val(value)?;
            let s = self.store(b, indices, val, value.range)?;
            out.push(Item::Stmt(s));
            return Ok(());
        }
        if self.is_axis(value) {
            return match block {
                Some(open) => self.axis(open, target, value),
                None => {
                    let message = "an axis can only be declared at the top of a block, before its other statements";
                    Err(self.error_help(
                        ErrorKind::Structure,
                        value.range,
                        message,
                        "write: with T.block(\"name\"): ...",
                    ))
                }
            };
        }
        if self.declares_size(value) {
            return self.declare_size(target);
        }
        if let (Some(names), Some(values)) = (target.as_sequence(), value.as_sequence()) {
            if names.len() != values.len() {
                let message = format!(
                    "the assignment has {} names, but {} values",
                    names.len(),
                    values.len()
                );
                return Err(self.error(ErrorKind::Arguments, target.range, message));
            }
            for (name, value) in names.iter().zip(values) {
                self.assign(name, value, block.as_deref_mut(), out)?;
            }
            return Ok(());
        }
        match self.tir_call(value).map(|(name, call)| (name, call.args.len())) {
            Some((name, _)) if name == "match_buffer" => return self.match_buffer(target, value),
            Some((name, _)) if is_alloc(&name) => {
                return self.alloc(&name, target, value, block, out);
            }
            Some((name, 1)) if matches!(name.as_str(), "bind" | "let" | "meta_var") => {
                let inner = value.as_call().and_then(|c| c.args.first());
                if let Some(inner) = inner {
                    return self.plain_let(target, inner, out);
                }
            }
            _ => {}
        }
        self.plain_let(target, value, out)
    }

    /// Parses `x = value`, which defines a constant that the parser evaluates, or a variable whose scope is the rest of the list.
    fn plain_let(&mut self, target: &Expr<'s>, value: &Expr<'s>, out: &mut Vec<Item>) -> Res<()> {
        let val = self.val(value)?;
        let Some(name) = target.as_name() else {
            let (Some(names), Val::Seq(items)) = (target.as_sequence(), val) else {
                return Err(self.error(
                    ErrorKind::Structure,
                    target.range,
                    "the target of an assignment must be a name or an element of a buffer",
                ));
            };
            if names.len() != items.len() {
                let message =
                    format!("the assignment has {} names, but {} values", names.len(), items.len());
                return Err(self.error(ErrorKind::Arguments, target.range, message));
            }
            for (name, item) in names.iter().zip(items) {
                if let Some(name) = name.as_name() {
                    self.let_val(name, item, target.range, out)?;
                }
            }
            return Ok(());
        };
        self.let_val(name, val, target.range, out)
    }

    fn let_val(&mut self, name: &'s str, val: Val, range: Range, out: &mut Vec<Item>) -> Res<()> {
        if matches!(self.scope.get(name), Some(Local::Var(_) | Local::Buffer(_))) {
            return Err(self.error_help(
                ErrorKind::Structure,
                range,
                format!("'{name}' is already defined: variables are immutable"),
                "use another name, or a buffer of one element: x = T.alloc_buffer((1,), \"float32\")",
            ));
        }
        let Val::Typed(value) = val else {
            self.define(name, Local::Const(val));
            return Ok(());
        };
        let ty = self.f.expr_ty(value);
        let var = self.f.add_var(name, VarTy::Value(ty));
        self.define(name, Local::Var(var));
        out.push(Item::Let(var, value));
        Ok(())
    }

    /// Parses `x: T.int64 = value` and `x: T.let[T.int32] = value`, which define a variable.
    fn annotated_let(
        &mut self,
        target: &Expr<'s>,
        annotation: &Expr<'s>,
        value: &Expr<'s>,
    ) -> Res<Item> {
        let Some(name) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "the target of an annotated assignment must be a name",
            ));
        };
        let annotation = match &annotation.kind {
            ExprKind::Subscript(head, ty) if self.tir_name(head).as_deref() == Some("let") => &**ty,
            _ => annotation,
        };
        let bare = matches!(self.tir_name(annotation).as_deref(), Some("let"));
        let handle = self.tir_name(annotation).as_deref() == Some("handle");
        let val = self.val(value)?;
        let (value, ty) = if bare || handle {
            let value = self.typed(val, None, value.range)?;
            let ty = if handle { VarTy::Handle } else { VarTy::Value(self.f.expr_ty(value)) };
            (value, ty)
        } else {
            let ty = self.ty(annotation)?;
            (self.convert(val, ty, &format!("'{name}'"), value.range)?, VarTy::Value(ty))
        };
        let var = self.f.add_var(name, ty);
        self.define(name, Local::Var(var));
        Ok(Item::Let(var, value))
    }

    fn alloc(
        &mut self,
        name: &str,
        target: &Expr<'s>,
        value: &Expr<'s>,
        block: Option<&mut OpenBlock>,
        out: &mut Vec<Item>,
    ) -> Res<()> {
        let Some(target) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "an allocated buffer must be assigned to a single name",
            ));
        };
        let b = self.allocation(target, value)?;
        match block {
            Some(open) if name != "decl_buffer" => open.allocs.push(b),
            _ => out.push(Item::Alloc(b)),
        }
        Ok(())
    }

    /// Evaluates an element access `A[i, j]` to the buffer and the indices.
    fn element(
        &mut self,
        head: &Expr<'s>,
        index: &Expr<'s>,
        range: Range,
    ) -> Res<(Buffer, Vec<IrExpr>)> {
        match self.val(head)? {
            Val::Buffer(b) => Ok((b, self.indices(b, index, range)?)),
            Val::Handle(_) => Err(self.error_help(
                ErrorKind::Type,
                head.range,
                "the elements of a handle cannot be accessed",
                "create a buffer first: A = T.match_buffer(a, (n,), \"float32\")",
            )),
            _ => Err(self.error(
                ErrorKind::Type,
                head.range,
                "only elements of buffers can be assigned",
            )),
        }
    }

    fn store(&mut self, b: Buffer, indices: Vec<IrExpr>, val: Val, range: Range) -> Res<IrStmt> {
        let lanes = indices.iter().map(|&i| self.f.expr_ty(i).lanes).max().unwrap_or(1);
        let data = self.f.buffer(b);
        let (ty, what) =
            (Ty::scalar(data.dtype).with_lanes(lanes), format!("buffer '{}'", data.name));
        let value = self.convert(val, ty, &what, range)?;
        Ok(self.f.store(b, &indices, value))
    }

    /// Parses `A[i] += value` and other augmented assignments.
    fn update(
        &mut self,
        target: &Expr<'s>,
        op: BinOp,
        value: &Expr<'s>,
        range: Range,
    ) -> Res<IrStmt> {
        let ExprKind::Subscript(head, index) = &target.kind else {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                target.range,
                "variables are immutable, so they have no augmented assignment such as +=",
                "use a buffer of one element: x = T.alloc_buffer((1,), \"float32\")",
            ));
        };
        let (b, indices) = self.element(head, index, target.range)?;
        let val = self.val(value)?;
        // The indices are evaluated once, before the value.
        let calls = indices.iter().any(|&i| contains_calls(&self.f, i))
            || matches!(val, Val::Typed(e) if contains_calls(&self.f, e));
        let mut once = Vec::new();
        let indices: Vec<IrExpr> = match calls {
            true => indices.into_iter().map(|i| self.evaluate_once(i, &mut once)).collect(),
            false => indices,
        };
        let old = self.f.load(b, &indices);
        let new = self.binary(op, Val::Typed(old), val, range)?;
        let store = self.store(b, indices, new, value.range)?;
        Ok(self.with_evaluated_once(once, store))
    }

    /// Prepares a value to be used several times. If repeated evaluation could have different
    /// results, the value is stored in a variable, which is added to `once` and returned. Other
    /// expressions are returned unchanged.
    pub(super) fn evaluate_once(&mut self, e: IrExpr, once: &mut Vec<(Var, IrExpr)>) -> IrExpr {
        if !may_change(&self.f, e) {
            return e;
        }
        let var = self.f.add_var("value", VarTy::Value(self.f.expr_ty(e)));
        once.push((var, e));
        self.f.var_expr(var)
    }

    /// Wraps a statement in the definitions of the variables from [`evaluate_once`](Self::evaluate_once).
    pub(super) fn with_evaluated_once(&mut self, once: Vec<(Var, IrExpr)>, s: IrStmt) -> IrStmt {
        let inside = |s, (var, value)| self.f.add_stmt(StmtData::Let(var, value, s));
        once.into_iter().rev().fold(s, inside)
    }

    // ---- expression statements ----

    fn expr_stmt(
        &mut self,
        e: &Expr<'s>,
        block: Option<&mut OpenBlock>,
        out: &mut Vec<Item>,
    ) -> Res<()> {
        if matches!(e.kind, ExprKind::Host) && self.cx.slice(e.range) == "..." {
            return Ok(());
        }
        let Some((name, call)) = self.tir_call(e) else {
            return Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "this statement has no effect",
                "write into a buffer, or call something with T.evaluate(...)",
            ));
        };
        if let Some(open) = block {
            if self.block_description(open, &name, call)? {
                return Ok(());
            }
        } else if matches!(
            name.as_str(),
            "reads" | "writes" | "where" | "block_attr" | "sblock_attr"
        ) {
            let message = format!("T.{name} is only allowed at the top of a block");
            return Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                message,
                "write: with T.block(\"name\"): ...",
            ));
        }
        match name.as_str() {
            "func_attr" => {
                let arg = self.only_argument(
                    call,
                    e.range,
                    "T.func_attr takes one argument: a dict from attribute names to constants",
                )?;
                let annotations = self.annotations(arg)?;
                self.f.attrs.extend(annotations);
                Ok(())
            }
            "evaluate" => {
                let arg = self.only_argument(
                    call,
                    e.range,
                    "T.evaluate takes one argument: the expression to evaluate",
                )?;
                let x = self.scalar(arg, None)?;
                out.push(Item::Stmt(self.f.add_stmt(StmtData::Evaluate(x))));
                Ok(())
            }
            "bind" => self.bind(call, e.range, out),
            "init" | "block" | "sblock" | "grid" | "serial" | "parallel" => {
                Err(self.opens_block(&name, e.range))
            }
            _ if Intrin::from_name(&name).is_some() || name.starts_with("call_") => {
                let x = self.scalar(e, None)?;
                out.push(Item::Stmt(self.f.add_stmt(StmtData::Evaluate(x))));
                Ok(())
            }
            _ => {
                // Evaluating the expression reports unknown names. A known name has no effect as a statement.
                self.val(e)?;
                Err(self.error(
                    ErrorKind::Structure,
                    e.range,
                    format!("the result of T.{name} is not used, so the statement has no effect"),
                ))
            }
        }
    }

    /// Returns the only argument of a call. Reports the error `message` if the call has no argument
    /// or several.
    fn only_argument<'c>(
        &self,
        call: &'c Call<'s>,
        range: Range,
        message: &'static str,
    ) -> Res<&'c Expr<'s>> {
        match call.args.as_slice() {
            [arg] => Ok(arg),
            _ => Err(self.error(ErrorKind::Arguments, range, message)),
        }
    }

    fn opens_block(&self, name: &str, range: Range) -> Reported {
        let message =
            format!("T.{name} opens a block of statements, so it cannot be a statement by itself");
        let help = if matches!(name, "init" | "block" | "sblock") { "with" } else { "for ... in" };
        self.error_help(
            ErrorKind::Structure,
            range,
            message,
            format!("write: {help} T.{name}(...):"),
        )
    }

    // ---- with ----

    fn with(
        &mut self,
        stmt: &Stmt<'s>,
        items: &[(Expr<'s>, Option<Expr<'s>>)],
        body: &[Stmt<'s>],
        block: Option<&mut OpenBlock>,
        out: &mut Vec<Item>,
    ) -> Res<()> {
        let Some(((context, target), rest)) = items.split_first() else { return Ok(()) };
        let Some((name, call)) = self.tir_call(context) else {
            let message = "'with' statements of a loop function open T.block, T.init, T.LetStmt, T.Assert or a loop";
            return Err(self.error(ErrorKind::Unsupported, context.range, message));
        };
        if !rest.is_empty() {
            return Err(self.error(
                ErrorKind::Unsupported,
                stmt.range,
                "a 'with' statement can only open one context",
            ));
        }
        let target = target.as_ref();
        let s = match name.as_str() {
            "block" | "sblock" => self.block_stmt(call, target, body, stmt.range)?,
            "init" => {
                let init = self.nested(body)?;
                return match block {
                    Some(open) => {
                        open.init = Some(init);
                        Ok(())
                    }
                    None => Err(self.error(
                        ErrorKind::Structure,
                        stmt.range,
                        "T.init is only allowed in a block",
                    )),
                };
            }
            "grid" | "serial" | "parallel" | "vectorized" | "unroll" => {
                let Some(target) = target else {
                    let message =
                        format!("T.{name} in a 'with' statement needs loop variables after 'as'");
                    return Err(self.error_help(
                        ErrorKind::Structure,
                        stmt.range,
                        message,
                        format!("write: for i in T.{name}(...):"),
                    ));
                };
                self.for_stmt(target, context, body)?
            }
            _ => self.scoped(&name, call, context, target, body)?,
        };
        out.push(Item::Stmt(s));
        Ok(())
    }

    /// Parses `with T.LetStmt(v) as x:`, `with T.let(x, v):`, `with T.Assert(c, m):`, `with T.decl_buffer(...) as B:`.
    fn scoped(
        &mut self,
        name: &str,
        call: &Call<'s>,
        context: &Expr<'s>,
        target: Option<&Expr<'s>>,
        body: &[Stmt<'s>],
    ) -> Res<IrStmt> {
        let mark = self.open_scope();
        let mut items = Vec::new();
        let opened = self.open_item(name, call, context, target, &mut items);
        let body = opened.and_then(|()| self.stmts(body, None));
        self.close_scope(mark);
        items.push(Item::Stmt(body?));
        Ok(self.close_list(items))
    }

    fn open_item(
        &mut self,
        name: &str,
        call: &Call<'s>,
        context: &Expr<'s>,
        target: Option<&Expr<'s>>,
        items: &mut Vec<Item>,
    ) -> Res<()> {
        match name {
            "LetStmt" | "let" | "Let" => {
                let keyword = call.keywords.iter().find(|k| k.name == "var").map(|k| &k.value);
                let (var, value) = match (name, call.args.as_slice()) {
                    ("let", [var, value]) => (Some(var), Some(value)),
                    (_, args) => (target.or(keyword), args.first()),
                };
                let (Some(var), Some(value)) = (var.and_then(Expr::as_name), value) else {
                    let message = format!("T.{name} needs the value of the variable and its name");
                    return Err(self.error(ErrorKind::Arguments, context.range, message));
                };
                let value = self.scalar(value, None)?;
                self.bind_name(var, value, items);
                Ok(())
            }
            "Assert" => {
                let Some(cond) = call.args.first() else {
                    return Err(self.error(
                        ErrorKind::Arguments,
                        context.range,
                        "T.Assert needs a condition as its first argument",
                    ));
                };
                let (cond, message) = self.assertion(cond, call.args.get(1))?;
                items.push(Item::Assert(cond, message));
                Ok(())
            }
            name if is_alloc(name) => {
                let Some(target) = target.and_then(Expr::as_name) else {
                    return Err(self.error(
                        ErrorKind::Structure,
                        context.range,
                        "an allocated buffer must be assigned to a single name",
                    ));
                };
                let b = self.allocation(target, context)?;
                items.push(Item::Alloc(b));
                Ok(())
            }
            _ => Err(self.unknown_construct(name, call.func.range)),
        }
    }
}

fn is_alloc(name: &str) -> bool {
    matches!(
        name,
        "alloc_buffer" | "sblock_alloc_buffer" | "decl_buffer" | "allocate" | "alloc_local"
    )
}
