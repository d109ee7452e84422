//! `for` and `while` statements, which are translated to `R.while_loop`.
//!
//! The body of a loop becomes a local function over the loop state: the names that the body assigns
//! and that have a value before the loop. `state` infers the types of the state; `while_loop` emits
//! the operator.

use pliant_ir::relax::{Expr as IrExpr, Type, TypeData};
use pliant_ir::{DType, Sym, SymVar};
use rustc_hash::FxHashSet;

use super::branch::{Cond, assigned_anywhere};
use super::exits::{Counter, Exits, Leave, LoopResult, Turn, may_leave};
use super::range::Counting;
use super::state::State;
use super::stmt::{Flow, Rest};
use super::{FuncParser, Local};
use crate::errors::{Kind, Res};
use crate::python::ast::{Expr, ExprKind, Range, Stmt, StmtKind};

impl<'s> FuncParser<'_, 's> {
    /// Parses a loop. If it may return, the result describes the function's result in the loop
    /// state.
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
            let message = "a loop counts one name";
            return Err(self.error(Kind::Structure, target.range, message));
        };
        let Counting { lo, hi, step, shown } = self.range_args(iter)?;
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
        let mut turn = self.turn(&mut state, Some(counter), body);
        turn.shown = shown.map(|(first, step)| {
            let syms = &mut self.b.func_mut().syms;
            let way = syms.mul(value, step);
            syms.add(first, way)
        });
        let body_fn = self.turns_of(&mut state, &mut turn, stmt.range, body)?;
        let (types, map) = self.renamed(&state);
        let at = map.get(&var).copied().unwrap_or(value);
        let cond_fn = self.loop_function(&state.names, &types, &mut |p, _| {
            let syms = &mut p.b.func_mut().syms;
            let goes_on = if step > 0 { syms.lt(at, hi) } else { syms.lt(hi, at) };
            Ok(p.b.func_mut().int_value(goes_on, DType::Bool))
        })?;
        let loop_e = self.emit_loop(cond_fn, body_fn, &state.inits, stmt.range)?;
        self.after_loop(&turn, loop_e, outer_syms, stmt.range, body)
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
        let mut turn = self.turn(&mut state, None, body);
        if matches!(cond.kind, ExprKind::Bool(true)) && !turn.flagged {
            return Err(self.error_help(
                Kind::Unsupported,
                stmt.range,
                "this loop never ends",
                "write the condition behind 'while', or leave the loop with break or return",
            ));
        }
        let body_fn = self.turns_of(&mut state, &mut turn, stmt.range, body)?;
        let (types, _) = self.renamed(&state);
        let cond_fn = self.loop_function(&state.names, &types, &mut |p, params| {
            p.define_state(&turn.names, params);
            match turn.flagged {
                true => p.flagged_condition(params[turn.names.len()], cond),
                false => p.condition_value(cond),
            }
        })?;
        let loop_e = self.emit_loop(cond_fn, body_fn, &state.inits, stmt.range)?;
        self.after_loop(&turn, loop_e, outer_syms, stmt.range, body)
    }

    /// Describes an iteration of a loop with the given state. Adds flags and a value to the state
    /// for early exits.
    fn turn(
        &mut self,
        state: &mut State<'s>,
        counter: Option<Counter>,
        body: &[Stmt<'s>],
    ) -> Turn<'s> {
        let (names, exits) = (state.names.clone(), Exits::of(body));
        let flagged = counter.is_none() && (exits.breaks || exits.returns);
        let flag = self.intern(TypeData::Prim { dtype: DType::Bool, value: None });
        let mut add = |name: &'static str, init: IrExpr, ty: Type| {
            state.names.push(name);
            state.inits.push(init);
            state.types.push(ty);
        };
        if flagged {
            add("goes_on", self.truth(true), flag);
        }
        if exits.returns {
            add("returned", self.truth(false), flag);
            let (unit, any) = (self.b.func_mut().tuple(&[]), self.intern(TypeData::Any));
            add("returned_value", unit, any);
        }
        let returns = exits.returns;
        let (params, returned) = (Vec::new(), Vec::new());
        Turn { names, params, counter, shown: None, flagged, returns, returned }
    }

    /// Parses the body as a function. Afterwards `turn` contains the types of the returned values.
    fn turns_of(
        &mut self,
        state: &mut State<'s>,
        turn: &mut Turn<'s>,
        range: Range,
        body: &[Stmt<'s>],
    ) -> Res<IrExpr> {
        self.fixed_body(state, range, &mut |p, params| {
            p.define_state(&turn.names, params);
            if let (Some(value), Some(&name)) = (turn.shown, turn.names.first()) {
                p.define(name, Local::Sym(value));
            }
            turn.returned.clear();
            p.turns.push(Turn { params: params.to_vec(), ..turn.clone() });
            let end = p.loop_body(body, range);
            turn.returned = p.turns.pop().map_or(Vec::new(), |turn| turn.returned);
            end
        })
    }

    pub(super) fn no_loop_in_dataflow(&self, range: Range) -> Res<()> {
        if !self.b.in_dataflow() {
            return Ok(());
        }
        let message = "a dataflow block contains no loop";
        Err(self.error_help(Kind::Dataflow, range, message, "end the block before it"))
    }

    fn counter_type(&mut self, var: SymVar) -> (Sym, Type) {
        let value = self.b.func().syms.var(var);
        (value, self.intern(TypeData::Prim { dtype: DType::Int64, value: Some(value) }))
    }

    /// The names that the body assigns and that have a value before the loop, with those values.
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
            state.types.push(self.forget_shape(ty));
        }
        state
    }

    pub(super) fn define_state(&mut self, names: &[&'s str], params: &[IrExpr]) {
        for (name, &e) in names.iter().zip(params) {
            self.define(name, Local::Var(e));
        }
    }

    /// Parses the statements of the body. Returns the state at the end of the iteration.
    fn loop_body(&mut self, body: &[Stmt<'s>], range: Range) -> Res<IrExpr> {
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        for name in &assigned {
            *self.carried.entry(name).or_default() += 1;
        }
        // The end of the body ends the iteration, also for branches that reach it.
        let end = [Stmt { kind: StmtKind::Other("continue"), range }];
        let rest = Rest { stmts: &end, next: None };
        let flow = self.stmts_then(body, may_leave(body).then_some(&rest));
        for name in &assigned {
            if let Some(count) = self.carried.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.carried.remove(name);
                }
            }
        }
        match flow? {
            Flow::Open => self.leave(Leave::Next, range),
            Flow::Returned(state) => Ok(state),
        }
    }

    /// Defines names after the loop: those in the state have their last values, those only defined
    /// in the body are undefined.
    fn after_loop(
        &mut self,
        turn: &Turn<'s>,
        value: IrExpr,
        outer_syms: usize,
        range: Range,
        body: &[Stmt<'s>],
    ) -> Res<Option<LoopResult>> {
        let (names, skip) = (&turn.names, usize::from(turn.counter.is_some()));
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        for name in names[..skip].iter().chain(&assigned) {
            if !self.scope.contains_key(name) {
                self.define(name, Local::InLoop);
            }
        }
        let count = names.len() + usize::from(turn.flagged) + 2 * usize::from(turn.returns);
        if names.len() == skip && !turn.returns {
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
        if !turn.returns {
            return Ok(None);
        }
        let flag = self.state_field(tuple, count - 2, "returned");
        let value = self.state_field(tuple, count - 1, "returned_value");
        let ty = self.returned_type(&turn.returned, outer_syms, range)?;
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
