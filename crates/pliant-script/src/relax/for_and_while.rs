//! Parsing of `for` and `while` statements, which become calls of `R.while_loop`.
//!
//! The body of a loop becomes a local function over the loop state: the names that the body assigns and that have a value before
//! the loop. The module `loop_state` infers the types of the state, and `while_loop` emits the call.

use pliant_ir::relax::{Expr as IrExpr, Type, TypeData};
use pliant_ir::{DType, Sym, SymVar};
use rustc_hash::FxHashSet;

use super::if_statements::{Cond, assigned_anywhere};
use super::jump_statements::{Counter, Exit, Exits, Iteration, LoopResult, may_exit};
use super::loop_state::State;
use super::range_calls::LoopRange;
use super::statements::{Flow, RemainingStmts};
use super::{FuncParser, Local};
use crate::python::ast::{Expr, ExprKind, Range, Stmt, StmtKind};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Parses a loop. If the loop may contain a `return` of the enclosing function, returns the parts of the final loop state that
    /// tell whether the function returned and with which value; otherwise `None`.
    pub(super) fn loop_stmt(&mut self, stmt: &Stmt<'s>) -> Res<Option<LoopResult>> {
        self.no_loop_in_dataflow(stmt.range)?;
        match &stmt.kind {
            StmtKind::For(target, iter, body) => self.for_stmt(stmt, target, iter, body),
            StmtKind::While(cond, body) => self.while_stmt(stmt, cond, body),
            _ => Ok(None),
        }
    }

    /// Parses `for i in R.range(lo, hi, step):`.
    fn for_stmt(
        &mut self,
        stmt: &Stmt<'s>,
        target: &Expr<'s>,
        iter: &Expr<'s>,
        body: &[Stmt<'s>],
    ) -> Res<Option<LoopResult>> {
        let Some(counter) = target.as_name() else {
            let message = "a for loop of a graph function must have exactly one loop variable";
            return Err(self.error(ErrorKind::Structure, target.range, message));
        };
        let LoopRange { lo, hi, step, loop_var } = self.range_args(iter)?;
        let outer_syms = self.b.func().syms.vars().len();
        let mut state = self.carried_state(body, Some(counter));
        let func = self.b.func_mut();
        let first = func.int_value(lo, DType::Int64);
        let var = func.fresh_sym(counter);
        let (value, ty) = self.counter_type(var);
        state.names.insert(0, counter);
        state.inits.insert(0, first);
        state.types.insert(0, ty);
        state.own.insert(var);
        let counter = Counter { value, step, end: hi };
        let mut iteration = self.iteration(&mut state, Some(counter), body);
        iteration.loop_var = loop_var.map(|(first, step)| {
            let syms = &mut self.b.func_mut().syms;
            let way = syms.mul(value, step);
            syms.add(first, way)
        });
        let body_fn = self.parse_iteration(&mut state, &mut iteration, stmt.range, body)?;
        let (types, map) = self.renamed(&state);
        let at = map.get(&var).copied().unwrap_or(value);
        let cond_fn = self.loop_function(&state.names, &types, &mut |p, _| {
            let syms = &mut p.b.func_mut().syms;
            let goes_on = if step > 0 { syms.lt(at, hi) } else { syms.lt(hi, at) };
            Ok(p.b.func_mut().int_value(goes_on, DType::Bool))
        })?;
        let loop_e = self.emit_loop(cond_fn, body_fn, &state.inits, stmt.range)?;
        self.after_loop(&iteration, loop_e, outer_syms, stmt.range, body)
    }

    /// Parses `while cond:`.
    fn while_stmt(
        &mut self,
        stmt: &Stmt<'s>,
        cond: &Expr<'s>,
        body: &[Stmt<'s>],
    ) -> Res<Option<LoopResult>> {
        let outer_syms = self.b.func().syms.vars().len();
        let mut state = self.carried_state(body, None);
        let mut iteration = self.iteration(&mut state, None, body);
        if matches!(cond.kind, ExprKind::Bool(true)) && !iteration.flagged {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                stmt.range,
                "this loop never ends",
                "write the condition after 'while', or exit the loop with break or return",
            ));
        }
        let body_fn = self.parse_iteration(&mut state, &mut iteration, stmt.range, body)?;
        let (types, _) = self.renamed(&state);
        let cond_fn = self.loop_function(&state.names, &types, &mut |p, params| {
            p.define_state(&iteration.names, params);
            match iteration.flagged {
                true => p.flagged_condition(params[iteration.names.len()], cond),
                false => p.condition_value(cond),
            }
        })?;
        let loop_e = self.emit_loop(cond_fn, body_fn, &state.inits, stmt.range)?;
        self.after_loop(&iteration, loop_e, outer_syms, stmt.range, body)
    }

    /// Creates the record of the loop iteration that is about to be parsed. If exits by `break` or `return` in `body` need flags or
    /// the function's result in the loop state, adds them to `state`.
    fn iteration(
        &mut self,
        state: &mut State<'s>,
        counter: Option<Counter>,
        body: &[Stmt<'s>],
    ) -> Iteration<'s> {
        let (names, exits) = (state.names.clone(), Exits::of(body));
        let flagged = counter.is_none() && (exits.breaks || exits.returns);
        let flag = self.intern(TypeData::Prim { dtype: DType::Bool, value: None });
        let mut add = |name: &'static str, init: IrExpr, ty: Type| {
            state.names.push(name);
            state.inits.push(init);
            state.types.push(ty);
        };
        if flagged {
            add("goes_on", self.bool_const(true), flag);
        }
        if exits.returns {
            add("returned", self.bool_const(false), flag);
            let (unit, any) = (self.b.func_mut().tuple(&[]), self.intern(TypeData::Any));
            add("returned_value", unit, any);
        }
        let returns = exits.returns;
        let (params, returned) = (Vec::new(), Vec::new());
        Iteration { names, params, counter, loop_var: None, flagged, returns, returned }
    }

    /// Parses the loop body as a function from the state before an iteration to the state after it, and returns this function.
    /// Afterwards `iteration.returned` contains the types of the values that `return` statements in the body return.
    fn parse_iteration(
        &mut self,
        state: &mut State<'s>,
        iteration: &mut Iteration<'s>,
        range: Range,
        body: &[Stmt<'s>],
    ) -> Res<IrExpr> {
        self.body_with_stable_types(state, range, &mut |p, params| {
            p.define_state(&iteration.names, params);
            if let (Some(value), Some(&name)) = (iteration.loop_var, iteration.names.first()) {
                p.define(name, Local::Sym(value));
            }
            iteration.returned.clear();
            p.iterations.push(Iteration { params: params.to_vec(), ..iteration.clone() });
            let end = p.loop_body(body, range);
            iteration.returned =
                p.iterations.pop().map_or(Vec::new(), |iteration| iteration.returned);
            end
        })
    }

    pub(super) fn no_loop_in_dataflow(&self, range: Range) -> Res<()> {
        if !self.b.in_dataflow() {
            return Ok(());
        }
        let message = "loops are not allowed in a dataflow block";
        Err(self.error_help(
            ErrorKind::Dataflow,
            range,
            message,
            "end the dataflow block before the loop",
        ))
    }

    fn counter_type(&mut self, var: SymVar) -> (Sym, Type) {
        let value = self.b.func().syms.var(var);
        (value, self.intern(TypeData::Prim { dtype: DType::Int64, value: Some(value) }))
    }

    /// The initial loop state: the names that the body assigns and that have a value before the loop, with these values.
    fn carried_state(&mut self, body: &[Stmt<'s>], counter: Option<&str>) -> State<'s> {
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        let mut state = State {
            names: Vec::new(),
            inits: Vec::new(),
            types: Vec::new(),
            own: FxHashSet::default(),
        };
        for name in assigned.into_iter().filter(|n| Some(*n) != counter) {
            let init = match self.scope.get(name) {
                Some(Local::Var(e)) => *e,
                Some(Local::Sym(s)) => {
                    let s = *s;
                    self.b.func_mut().int_value(s, DType::Int64)
                }
                _ => continue,
            };
            let ty = self.b.func().expr_ty(init);
            state.names.push(name);
            state.inits.push(init);
            state.types.push(self.erase_shape(ty));
        }
        state
    }

    pub(super) fn define_state(&mut self, names: &[&'s str], params: &[IrExpr]) {
        for (name, &e) in names.iter().zip(params) {
            self.define(name, Local::Var(e));
        }
    }

    /// Parses the statements of a loop body. Returns the loop state at the end of the iteration.
    fn loop_body(&mut self, body: &[Stmt<'s>], range: Range) -> Res<IrExpr> {
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        for name in &assigned {
            *self.carried.entry(name).or_default() += 1;
        }
        // Reaching the end of the body ends the iteration, also in branches.
        let end = [Stmt { kind: StmtKind::Other("continue"), range }];
        let rest = RemainingStmts { stmts: &end, next: None };
        let flow = self.stmts_then(body, may_exit(body).then_some(&rest));
        for name in &assigned {
            if let Some(count) = self.carried.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.carried.remove(name);
                }
            }
        }
        match flow? {
            Flow::Open => self.exit_value(Exit::Continue, range),
            Flow::Returned(state) => Ok(state),
        }
    }

    /// Defines the names that are visible after the loop: names in the state have their last values, and names that only the body
    /// defines are undefined.
    fn after_loop(
        &mut self,
        iteration: &Iteration<'s>,
        value: IrExpr,
        outer_syms: usize,
        range: Range,
        body: &[Stmt<'s>],
    ) -> Res<Option<LoopResult>> {
        let (names, skip) = (&iteration.names, usize::from(iteration.counter.is_some()));
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        for name in names[..skip].iter().chain(&assigned) {
            if !self.scope.contains_key(name) {
                self.define(name, Local::InLoop);
            }
        }
        let count =
            names.len() + usize::from(iteration.flagged) + 2 * usize::from(iteration.returns);
        if names.len() == skip && !iteration.returns {
            self.b.emit_named(value, "_");
            return Ok(None);
        }
        if count == 1 {
            let var = self.b.emit_named(value, names[0]);
            let e = self.b.func_mut().var_expr(var);
            self.define(names[0], Local::Var(e));
            return Ok(None);
        }
        let tuple = self.b.emit_named(value, "gv");
        let tuple = self.b.func_mut().var_expr(tuple);
        for (i, name) in names.iter().enumerate().skip(skip) {
            let e = self.state_field(tuple, i, name);
            self.define(name, Local::Var(e));
        }
        if !iteration.returns {
            return Ok(None);
        }
        let flag = self.state_field(tuple, count - 2, "returned");
        let value = self.state_field(tuple, count - 1, "returned_value");
        let ty = self.returned_type(&iteration.returned, outer_syms, range)?;
        Ok(Some(LoopResult { flag, value, ty }))
    }

    fn state_field(&mut self, tuple: IrExpr, index: usize, name: &str) -> IrExpr {
        let field = self.b.func_mut().tuple_get_item(tuple, index as u32);
        let var = self.b.emit_named(field, name);
        self.b.func_mut().var_expr(var)
    }

    pub(super) fn condition_value(&mut self, cond: &Expr<'s>) -> Res<IrExpr> {
        match self.condition(cond)? {
            Cond::Expr(e) => Ok(e),
            Cond::Known(known) => {
                let value = self.int(i64::from(known));
                Ok(self.b.func_mut().int_value(value, DType::Bool))
            }
        }
    }
}
