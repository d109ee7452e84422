//! Parsing of statements in graph functions.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::UPPER_BOUND;
use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Expr as IrExpr, ExprData, TypeData, Var};

use super::jump_statements::{Exit, exits_early, is_returning_loop};
use super::unresolved_values::Val;
use super::{FuncParser, Local};
use crate::dialect_spellings::{Namespace, RelaxName, relax_name};
use crate::python::ast::{Call, Expr, ExprKind, Range, Stmt, StmtKind};
use crate::script_errors::{ErrorKind, Reported, Res};

/// How a list of statements ends: with a `return`, or by reaching its end.
#[derive(Debug)]
pub(super) enum Flow {
    /// Execution reaches the end of the list and continues after it.
    Open,
    /// The list ends with a `return` of this value.
    Returned(IrExpr),
}

/// The statements of a function that remain after a nested list of statements, as a linked list.
/// Each element contains the statements of one nesting level, the innermost first.
pub(super) struct RemainingStmts<'a, 's> {
    /// The statements directly after the list, at the same level.
    pub stmts: &'a [Stmt<'s>],
    /// The remaining statements after `stmts`, at the enclosing level.
    pub next: Option<&'a RemainingStmts<'a, 's>>,
}

impl<'s> FuncParser<'_, 's> {
    /// Parses statements in order. If a statement has an error, the names that it would define become unusable, and parsing
    /// continues with the next statement.
    pub(super) fn stmts(&mut self, stmts: &[Stmt<'s>]) -> Res<Flow> {
        // The statements of a macro are nested in the expression that uses it.
        let around = std::mem::take(&mut self.nesting);
        let flow = self.stmts_then(stmts, None);
        self.nesting = around;
        flow
    }

    /// Parses a list of statements and then `rest`, the statements that follow the list up to the end of the function.
    pub(super) fn stmts_then(
        &mut self,
        stmts: &[Stmt<'s>],
        rest: Option<&RemainingStmts<'_, 's>>,
    ) -> Res<Flow> {
        let mut failed = false;
        let mut at = 0;
        while let Some(stmt) = stmts.get(at) {
            at += 1;
            let flow = match &stmt.kind {
                StmtKind::If(cond, a, b) if exits_early(a, b) => {
                    let rest = RemainingStmts { stmts: &stmts[at..], next: rest };
                    let flow = self.returning_if(stmt, cond, a, b, &rest);
                    return if failed { Err(Reported) } else { flow };
                }
                _ if is_returning_loop(stmt) => {
                    let rest = RemainingStmts { stmts: &stmts[at..], next: rest };
                    let flow = self.returning_loop(stmt, &rest);
                    return if failed { Err(Reported) } else { flow };
                }
                StmtKind::FunctionDef(_) => {
                    let is_def = |s: &Stmt<'s>| matches!(s.kind, StmtKind::FunctionDef(_));
                    let run = stmts[at..].iter().take_while(|s| is_def(s)).count();
                    let run = &stmts[at - 1..at + run];
                    at += run.len() - 1;
                    self.local_functions(run).map(|()| Flow::Open)
                }
                _ => self.stmt(stmt),
            };
            match flow {
                Ok(Flow::Open) => {}
                Ok(done) => {
                    if let Some(next) = stmts.get(at).filter(|s| !matches!(s.kind, StmtKind::Pass))
                    {
                        let word = match stmt.kind {
                            StmtKind::Other(word) => word,
                            _ => "return",
                        };
                        let message = format!("no statement can follow a {word}");
                        return Err(self.error(ErrorKind::Structure, next.range, message));
                    }
                    return if failed { Err(Reported) } else { Ok(done) };
                }
                Err(Reported) => {
                    failed = true;
                    self.mark_broken(stmt);
                    if self.cx.errors.is_full() {
                        return Err(Reported);
                    }
                }
            }
        }
        match rest {
            _ if failed => Err(Reported),
            Some(rest) => self.stmts_then(rest.stmts, rest.next),
            None => Ok(Flow::Open),
        }
    }

    /// For a statement with an error: defines the names that the statement assigns as [`Local::Broken`], so that uses of these
    /// names report no further errors.
    fn mark_broken(&mut self, stmt: &Stmt<'s>) {
        let mut stack: Vec<&Expr<'s>> = match &stmt.kind {
            StmtKind::Assign(targets, _) => targets.iter().collect(),
            StmtKind::AnnAssign(target, ..) | StmtKind::AugAssign(target, ..) => vec![target],
            // Local functions mark their own names.
            StmtKind::FunctionDef(_) => return,
            StmtKind::For(_, _, body) | StmtKind::While(_, body) => {
                return body.iter().for_each(|s| self.mark_undefined_broken(s));
            }
            StmtKind::If(_, a, b) => {
                return a.iter().chain(b).for_each(|s| self.mark_undefined_broken(s));
            }
            // The nested statements are marked already.
            StmtKind::With(_, body) => {
                return body.iter().for_each(|s| self.mark_undefined_broken(s));
            }
            _ => return,
        };
        while let Some(e) = stack.pop() {
            match &e.kind {
                ExprKind::Name(name) => self.define(name, Local::Broken),
                _ => stack.extend(e.as_sequence().unwrap_or(&[])),
            }
        }
    }

    /// Defines the names that a statement assigns as [`Local::Broken`], as [`mark_broken`](Self::mark_broken) does, but skips
    /// names that are already defined.
    fn mark_undefined_broken(&mut self, stmt: &Stmt<'s>) {
        let mark = self.open_scope();
        self.mark_broken(stmt);
        let names = self.close_scope(mark);
        for (name, local) in names {
            if !self.scope.contains_key(name) {
                self.define(name, local);
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt<'s>) -> Res<Flow> {
        match &stmt.kind {
            StmtKind::Pass => Ok(Flow::Open),
            StmtKind::Expr(e) => self.expr_stmt(e).map(|()| Flow::Open),
            StmtKind::Assign(targets, value) => {
                let [target] = targets.as_slice() else {
                    return Err(self.error(
                        ErrorKind::Unsupported,
                        stmt.range,
                        "a chained assignment (a = b = value) is not supported: assign one target per statement",
                    ));
                };
                self.assign(target, value, None).map(|()| Flow::Open)
            }
            StmtKind::AnnAssign(target, annotation, Some(value)) => {
                self.assign(target, value, Some(annotation)).map(|()| Flow::Open)
            }
            StmtKind::AnnAssign(_, annotation, None) => Err(self.error(
                ErrorKind::Structure,
                annotation.range,
                "a variable with a type annotation must be assigned a value in the same statement",
            )),
            StmtKind::AugAssign(..) => Err(self.error_help(
                ErrorKind::Unsupported,
                stmt.range,
                "values of the graph are immutable, so they have no augmented assignment such as +=",
                "bind the result to a new variable: y = R.add(x, ...)",
            )),
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), stmt.range),
            StmtKind::If(cond, then, otherwise) => self.if_stmt(stmt, cond, then, otherwise),
            StmtKind::With(items, body) => self.with(stmt, items, body),
            StmtKind::FunctionDef(_) => {
                self.local_functions(std::slice::from_ref(stmt)).map(|()| Flow::Open)
            }
            StmtKind::For(..) | StmtKind::While(..) => self.loop_stmt(stmt).map(|_| Flow::Open),
            StmtKind::Other(word @ ("break" | "continue")) => self.jump_stmt(word, stmt.range),
            StmtKind::Assert(..) => Err(self.error_help(
                ErrorKind::Unsupported,
                stmt.range,
                "graph functions have no assert statement",
                "use R.assert_op(condition)",
            )),
            StmtKind::ClassDef(_)
            | StmtKind::Import(_)
            | StmtKind::ImportFrom(_)
            | StmtKind::Other(_) => {
                let word = self.cx.slice(stmt.range).split_whitespace().next().unwrap_or("this");
                let message = format!("'{word}' is not allowed in a graph function");
                Err(self.error(ErrorKind::Unsupported, stmt.range, message))
            }
        }
    }

    fn construct(&self, e: &Expr<'s>) -> Option<RelaxName> {
        if self.is_local(e) {
            return None;
        }
        match self.cx.path(e) {
            Some(p) if p.ns == Namespace::Relax => relax_name(&p.name),
            _ => None,
        }
    }

    // ---- bindings ----

    fn assign(
        &mut self,
        target: &Expr<'s>,
        value: &Expr<'s>,
        annotation: Option<&Expr<'s>>,
    ) -> Res<()> {
        if self.declares_symbol(value) {
            return self.declare_symbol(target);
        }
        if let (Some(names), Some(values)) = (target.as_sequence(), value.as_sequence())
            && names.len() == values.len()
            && values.iter().all(|v| self.declares_symbol(v))
        {
            return names.iter().try_for_each(|name| self.declare_symbol(name));
        }
        if let Some((name, call)) = self.match_call(value) {
            return self.assign_match(name, target, value, call, annotation);
        }
        let val = self.value(value)?;
        let Some(name) = target.as_name() else {
            return self.unpack(target, val, value.range);
        };
        if annotation.is_none() {
            if let Val::Module = val {
                self.define(name, Local::Module);
                return Ok(());
            }
            // `n2 = n * 2` defines a name for a symbolic integer, as in Python.
            if let Val::Sym(s, None) = val {
                self.define(name, Local::Sym(s));
                return Ok(());
            }
        }
        let var = self.bind(name, val, annotation, value.range, target.range)?;
        self.name_var(name, var);
        Ok(())
    }

    fn name_var(&mut self, name: &'s str, var: Var) {
        if name != "_" {
            let e = self.b.func_mut().var_expr(var);
            self.define(name, Local::Var(e));
        }
    }

    /// Binds a value to a variable called `name`.
    fn bind(
        &mut self,
        name: &str,
        val: Val,
        annotation: Option<&Expr<'s>>,
        range: Range,
        name_range: Range,
    ) -> Res<Var> {
        let value = self.expr_of(val, None, range)?;
        let value = self.normal(value);
        if let Some(annotation) = annotation {
            return self.bind_annotated(value, annotation, name, name_range);
        }
        self.b.set_span(self.cx.span(name_range));
        Ok(self.b.emit_named(value, name))
    }

    /// Binds the calls among the operands of a tuple to variables, because A-normal form does not allow calls as operands.
    fn normal(&mut self, value: IrExpr) -> IrExpr {
        match self.b.func().expr(value) {
            ExprData::Tuple(_) => self.b.operand(value),
            _ => value,
        }
    }

    fn assign_match(
        &mut self,
        name: RelaxName,
        target: &Expr<'s>,
        value: &Expr<'s>,
        call: &Call<'s>,
        annotation: Option<&Expr<'s>>,
    ) -> Res<()> {
        if let Some(targets) = target.as_sequence() {
            // `n, m = R.match_shape(x.shape)` defines the symbols n and m.
            for t in targets {
                self.declare_symbol(t)?;
            }
            let (value_e, ty) = self.match_parts(name, value, call, Some(targets))?;
            self.bind_match(value_e, ty, "_", value.range);
            return Ok(());
        }
        let Some(target_name) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "the result of a match_cast must be assigned to a name",
            ));
        };
        let (value_e, ty) = self.match_parts(name, value, call, None)?;
        let var = self.bind_match(value_e, ty, target_name, target.range);
        if let Some(annotation) = annotation {
            let want = self.annotation(annotation)?;
            let fits = pliant_ir::relax::type_lattice::is_subtype(self.b.func_mut(), ty, want);
            if fits == pliant_sym::Proof::No {
                let message = format!(
                    "the variable is annotated with the type {}, but its value has type {}",
                    self.ty_text(want),
                    self.ty_text(ty)
                );
                return Err(self.error(ErrorKind::Type, annotation.range, message));
            }
        }
        self.name_var(target_name, var);
        Ok(())
    }

    /// Binds the targets of `a, b = value` to the fields of the value.
    fn unpack(&mut self, target: &Expr<'s>, val: Val, range: Range) -> Res<()> {
        let Some(names) = target.as_sequence() else {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                target.range,
                "values of the graph are immutable: only names can be assigned",
                "write elements in a @T.prim_func",
            ));
        };
        if let Val::Seq(items) = val {
            if items.len() != names.len() {
                return Err(self.wrong_count(names.len(), items.len(), target.range));
            }
            for (name, item) in names.iter().zip(items) {
                self.assign_val(name, item, range)?;
            }
            return Ok(());
        }
        if let Some(dims) = self.as_dims(&val) {
            if dims.len() != names.len() {
                return Err(self.wrong_count(names.len(), dims.len(), target.range));
            }
            for (name, dim) in names.iter().zip(dims) {
                self.assign_val(name, Val::Sym(dim, None), range)?;
            }
            return Ok(());
        }
        let value = self.expr_of(val, None, range)?;
        self.b.set_span(self.cx.span(target.range));
        let tuple = self.b.operand(value);
        let count = match self.ty_of(tuple) {
            TypeData::Tuple(fields) => fields.len(),
            TypeData::Any => names.len(),
            _ => {
                let ty = self.b.func().expr_ty(tuple);
                let message = format!("a value of type {} cannot be unpacked", self.ty_text(ty));
                return Err(self.error(ErrorKind::Type, range, message));
            }
        };
        if count != names.len() {
            return Err(self.wrong_count(names.len(), count, target.range));
        }
        for (i, name) in names.iter().enumerate() {
            if name.as_name() != Some("_") {
                let field = self.b.func_mut().tuple_get_item(tuple, i as u32);
                self.assign_val(name, Val::Expr(field), range)?;
            }
        }
        Ok(())
    }

    fn assign_val(&mut self, target: &Expr<'s>, val: Val, range: Range) -> Res<()> {
        let Some(name) = target.as_name() else {
            return self.unpack(target, val, range);
        };
        if let Val::Sym(s, None) = val {
            self.define(name, Local::Sym(s));
            return Ok(());
        }
        let var = self.bind(name, val, None, range, target.range)?;
        self.name_var(name, var);
        Ok(())
    }

    fn wrong_count(&self, names: usize, values: usize, range: Range) -> Reported {
        self.error(
            ErrorKind::Value,
            range,
            format!("the assignment has {names} names, but {values} values"),
        )
    }

    // ---- expression statements ----

    fn expr_stmt(&mut self, e: &Expr<'s>) -> Res<()> {
        if let Some((name, call)) = self.match_call(e) {
            let (value, ty) = self.match_parts(name, e, call, None)?;
            self.bind_match(value, ty, "_", e.range);
            return Ok(());
        }
        if let Some(call) = e.as_call() {
            match self.construct(&call.func) {
                Some(RelaxName::Output) => return self.output(e, call),
                Some(RelaxName::FuncAttr) => return self.func_attr(e, call),
                _ => {}
            }
            if let Some(used) = self.used_macro(call) {
                return self.expand(used, e, call).map(drop);
            }
        }
        if matches!(e.kind, ExprKind::Host) && self.cx.slice(e.range) == "..." {
            return Ok(());
        }
        self.discarded = true;
        let val = self.value(e);
        self.discarded = false;
        let value = match val? {
            Val::Expr(value) if self.is_call(value) => value,
            _ => {
                return Err(self.error_help(
                    ErrorKind::Structure,
                    e.range,
                    "this statement has no effect",
                    "bind the value to a name, or call something",
                ));
            }
        };
        self.reject_unused_value(e, value)?;
        self.b.set_span(self.cx.span(e.range));
        self.b.emit_named(value, "_");
        Ok(())
    }

    /// Rejects a call whose result is not bound to a name, if the parser follows TVM and the call has a result.
    fn reject_unused_value(&self, e: &Expr<'s>, value: IrExpr) -> Res<()> {
        let has_result = match self.b.func().ty(value) {
            TypeData::Tuple(fields) => !fields.is_empty(),
            TypeData::Any => false,
            _ => true,
        };
        if !self.cx.follows_tvm() || !has_result {
            return Ok(());
        }
        Err(self.error_help(
            ErrorKind::Structure,
            e.range,
            "the result of this call is not used",
            "bind it to a name; _ = R.add(x, y) discards it",
        ))
    }

    fn func_attr(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<()> {
        let [arg] = call.args.as_slice() else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                "R.func_attr takes one argument: a dict from attribute names to values",
            ));
        };
        let Val::Map(items) = self.value(arg)? else {
            return Err(self.error(
                ErrorKind::Value,
                arg.range,
                "the argument of R.func_attr must be a dict from attribute names to values",
            ));
        };
        for (key, value) in items {
            let value = self.attr(&value, arg.range)?;
            if key == UPPER_BOUND {
                self.check_bounds(&value, arg.range)?;
            }
            self.b.attrs_mut().insert(key.as_str().into(), value);
        }
        Ok(())
    }

    /// Checks the value of the attribute `tir_var_upper_bound`, which contains maximum values for
    /// the sizes in the signature.
    fn check_bounds(&self, value: &AttrValue, range: Range) -> Res<()> {
        let refuse = |message: String| {
            let help = "write: R.func_attr({\"tir_var_upper_bound\": {\"n\": 1024}})";
            Err(self.error_help(
                ErrorKind::Value,
                range,
                format!("attribute {UPPER_BOUND}: {message}"),
                help,
            ))
        };
        let AttrValue::Map(items) = value else {
            return refuse("the value must be a dict from size names to maximum values".into());
        };
        let func = self.b.func();
        let params = func.params().iter();
        let sizes: Vec<&str> = params
            .flat_map(|&p| type_syms(func, func.var(p).ty))
            .map(|s| func.syms.name(s))
            .collect();
        for (name, bound) in items {
            if !matches!(bound, AttrValue::Int(0..)) {
                return refuse(format!(
                    "the bound of size '{name}' must be a non-negative integer"
                ));
            }
            // After lowering, there are no symbols left.
            if !sizes.is_empty() && !sizes.contains(&&**name) {
                return refuse(format!(
                    "no size in the types of the parameters is called '{name}'"
                ));
            }
        }
        Ok(())
    }

    fn return_stmt(&mut self, value: Option<&Expr<'s>>, range: Range) -> Res<Flow> {
        if self.b.in_dataflow() {
            return Err(self.error_help(
                ErrorKind::Dataflow,
                range,
                "'return' is not allowed in a dataflow block",
                "end the block with R.output(...) and return after it",
            ));
        }
        let Some(e) = value else {
            let unit = self.b.func_mut().tuple(&[]);
            return self.exit_value(Exit::Return(unit), range).map(Flow::Returned);
        };
        let val = self.value(e)?;
        let value = self.expr_of(val, None, e.range)?;
        self.b.set_span(self.cx.span(e.range));
        let value = self.b.operand(value);
        self.exit_value(Exit::Return(value), range).map(Flow::Returned)
    }

    // ---- dataflow blocks ----

    fn with(
        &mut self,
        stmt: &Stmt<'s>,
        items: &[(Expr<'s>, Option<Expr<'s>>)],
        body: &[Stmt<'s>],
    ) -> Res<Flow> {
        let dataflow = |p: &Self, e: &Expr<'s>| {
            let head = e.as_call().map_or(e, |c| &c.func);
            p.construct(head) == Some(RelaxName::Dataflow)
                || (head.as_name() == Some("dataflow") && !p.is_local(head))
        };
        match items {
            [(e, None)] if dataflow(self, e) => self.dataflow(stmt, body).map(|()| Flow::Open),
            _ => {
                let message =
                    "the only 'with' statement of a graph function is: with R.dataflow():";
                Err(self.error(ErrorKind::Unsupported, stmt.range, message))
            }
        }
    }

    fn dataflow(&mut self, stmt: &Stmt<'s>, body: &[Stmt<'s>]) -> Res<()> {
        if let Err(error) = self.b.begin_dataflow() {
            return Err(self.error(ErrorKind::Dataflow, stmt.range, error.message));
        }
        let mark = self.open_scope();
        let flow = self.check_last_output(body).and_then(|()| self.stmts(body));
        self.b.end_dataflow();
        // After the block, outputs, symbols and broken names stay visible. Other variables are hidden.
        for (name, local) in self.close_scope(mark) {
            let hidden = match &local {
                Local::Var(e) => match self.b.func().expr(*e) {
                    ExprData::Var(v) => self.b.func().var(*v).dataflow,
                    _ => false,
                },
                _ => false,
            };
            self.define(name, if hidden { Local::Hidden } else { local });
        }
        flow.map(|_| ())
    }

    /// Checks that no statement follows `R.output`, if the parser follows TVM.
    fn check_last_output(&self, body: &[Stmt<'s>]) -> Res<()> {
        let is_output = |stmt: &Stmt<'s>| match &stmt.kind {
            StmtKind::Expr(e) => {
                let call = e.as_call();
                call.is_some_and(|call| self.construct(&call.func) == Some(RelaxName::Output))
            }
            _ => false,
        };
        let Some(first) = body.iter().position(is_output) else { return Ok(()) };
        match body.get(first + 1) {
            Some(next) if self.cx.follows_tvm() => Err(self.error(
                ErrorKind::Dataflow,
                next.range,
                "R.output must be the last statement of its dataflow block",
            )),
            _ => Ok(()),
        }
    }

    /// Parses `R.output(x, y)`, which lists the outputs of a dataflow block.
    fn output(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<()> {
        if !self.b.in_dataflow() {
            return Err(self.error(
                ErrorKind::Dataflow,
                e.range,
                "R.output is only allowed in a dataflow block",
            ));
        }
        let own_vars = self.cx.follows_tvm().then(|| self.b.open_block_vars());
        for arg in &call.args {
            let Some(name) = arg.as_name() else {
                return Err(self.error(
                    ErrorKind::Dataflow,
                    arg.range,
                    "each argument of R.output must be a variable of its dataflow block",
                ));
            };
            let var = match self.scope.get(name) {
                Some(Local::Var(v)) => match self.b.func().expr(*v) {
                    ExprData::Var(v) => Some(*v),
                    _ => None,
                },
                Some(Local::Broken) => continue,
                Some(_) => None,
                None => return Err(self.unknown_name(name, arg.range)),
            };
            match var {
                Some(v) if own_vars.as_ref().is_none_or(|own| own.contains(&v)) => {
                    self.b.mark_output(v)
                }
                _ => {
                    let message = format!("'{name}' is not a variable of this dataflow block");
                    return Err(self.error(ErrorKind::Dataflow, arg.range, message));
                }
            }
        }
        Ok(())
    }
}
