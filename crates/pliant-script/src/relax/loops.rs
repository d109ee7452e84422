//! Loops: `R.while_loop` with lambdas, and `for` and `while`, which are written as one.
//!
//! A loop's body becomes a local function over its state: the names that the body assigns and that have a value before the
//! loop. The state's types are those of the first values, widened where a turn gives something else: a dim that changes
//! becomes a symbol of the body's own. The body is read again with the wider types until they hold.

use pliant_ir::relax::derive::{erase_to_well_defined, is_subtype, prove_dims_equal, type_syms};
use pliant_ir::relax::{Expr as IrExpr, TensorShape, Type, TypeData};
use pliant_ir::{Attrs, DType, Op, Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::branch::{Cond, assigned_anywhere};
use super::exits::{Counter, Exits, Leave, LoopResult, Turn, may_leave};
use super::stmt::{Flow, Rest};
use super::value::Val;
use super::{FuncParser, Local};
use crate::dialect::Ns;
use crate::errors::{Kind, Reported, Res};
use crate::python::ast::{Call, Expr, ExprKind, Lambda, Range, Stmt, StmtKind};
use crate::python::on_stack;

/// How often bodies are read again in one function; loops nest, so that the inner ones are read on each reading of the
/// outer ones.
const MAX_REREADS: u32 = 2000;

/// Reads the body of a function over these parameters; its result is an operand.
type Read<'f, P> = &'f mut dyn FnMut(&mut P, &[IrExpr]) -> Res<IrExpr>;

const RESHAPE: Op = Op("relax.reshape");
const TENSOR_TO_SHAPE: Op = Op("relax.tensor_to_shape");

/// What a `for` counts.
struct Counting {
    lo: Sym,
    hi: Sym,
    step: i64,
    /// Where the name's value is another than the count: its first value and its step.
    shown: Option<(Sym, Sym)>,
}

/// What a loop carries from turn to turn.
struct State<'s> {
    names: Vec<&'s str>,
    /// The first values.
    inits: Vec<IrExpr>,
    types: Vec<Type>,
    /// Symbols of the body's own.
    own: FxHashSet<SymVar>,
}

impl<'s> FuncParser<'_, 's> {
    // ---- statements ----

    /// A loop; what it leaves of the function's result, if it may return.
    pub(super) fn loop_stmt(&mut self, stmt: &Stmt<'s>) -> Res<Option<LoopResult>> {
        self.no_loop_in_dataflow(stmt.range)?;
        match &stmt.kind {
            StmtKind::For(target, iter, body) => self.for_stmt(stmt, target, iter, body),
            StmtKind::While(cond, body) => self.while_stmt(stmt, cond, body),
            _ => Ok(None),
        }
    }

    /// `for i in R.range(lo, hi, step):`.
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

    /// `while cond:`.
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

    /// What the turns of a loop over that state have in common. The state gets flags and a value for what leaves turns
    /// early.
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

    /// The body as a function; `turn` knows afterwards what it returns.
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

    fn no_loop_in_dataflow(&self, range: Range) -> Res<()> {
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

    /// `R.range(hi)`, `R.range(lo, hi)`, `R.range(lo, hi, step)`.
    fn range_args(&mut self, iter: &Expr<'s>) -> Res<Counting> {
        let call = iter.as_call().filter(|call| match self.cx.path(&call.func) {
            Some(path) => path.ns == Ns::Relax && path.name == "range",
            None => call.func.as_name() == Some("range") && !self.scope.contains_key("range"),
        });
        let Some(call) = call else {
            return Err(self.error_help(
                Kind::Unsupported,
                iter.range,
                "a graph function loops over a range of integers",
                "write: for i in R.range(n):",
            ));
        };
        let mut args = Vec::with_capacity(3);
        for arg in &call.args {
            args.push(self.integer(arg)?);
        }
        let (lo, hi, step) = match *args.as_slice() {
            [hi] => (self.int(0), hi, None),
            [lo, hi] => (lo, hi, None),
            [lo, hi, step] => (lo, hi, Some(step)),
            _ => {
                let message = "R.range takes one to three integers";
                return Err(self.error(Kind::Arguments, iter.range, message));
            }
        };
        let syms = &mut self.b.func_mut().syms;
        let Some(step) = step else { return Ok(Counting { lo, hi, step: 1, shown: None }) };
        match syms.as_int(step) {
            Some(0) => {
                let message = "the step of R.range is not 0";
                Err(self.error(Kind::Value, iter.range, message))
            }
            Some(step) => Ok(Counting { lo, hi, step, shown: None }),
            None => {
                // The turns are counted: -((lo - hi) // step), which fails for a step of 0.
                let way = syms.sub(lo, hi);
                let back = syms.floordiv(way, step);
                let turns = syms.neg(back);
                let first = syms.int(0);
                Ok(Counting { lo: first, hi: turns, step: 1, shown: Some((lo, step)) })
            }
        }
    }

    /// An integer scalar as a symbolic integer; where its value is not known while parsing, a symbol is matched with it.
    fn integer(&mut self, e: &Expr<'s>) -> Res<Sym> {
        let val = self.value(e)?;
        if let Some(s) = self.as_sym(&val) {
            return Ok(s);
        }
        let value = self.operand(val, None, e.range)?;
        match *self.ty_of(value) {
            TypeData::Prim { dtype, .. } if dtype.is_integer() => {
                let func = self.b.func_mut();
                let var = func.fresh_sym("m");
                let sym = func.syms.var(var);
                let ty = func.intern(TypeData::Prim { dtype, value: Some(sym) });
                self.b.set_span(self.cx.span(e.range));
                self.b.match_cast(value, ty, "gv");
                Ok(sym)
            }
            TypeData::Tensor { dtype: Some(DType::Int64), .. }
                if self.b.func().rank_of(self.b.func().expr_ty(value)) == Some(0) =>
            {
                self.element(value, e.range)
            }
            _ => {
                let ty = self.b.func().expr_ty(value);
                let message = format!("expected an integer scalar, found {}", self.ty_text(ty));
                let help = "sizes are n or x.shape[0]; a parameter n: R.Prim(\"int64\") serves too";
                Err(self.error_help(Kind::Value, e.range, message, help))
            }
        }
    }

    /// The element of an int64 tensor of rank 0, as a symbol that is matched with it.
    fn element(&mut self, tensor: IrExpr, range: Range) -> Res<Sym> {
        let one = self.int(1);
        let shape = self.b.func_mut().shape(&[one]);
        let row = self.emit_op(RESHAPE, &[tensor, shape], Attrs::default(), &[], range)?;
        let row = self.b.operand(row);
        let sizes = self.emit_op(TENSOR_TO_SHAPE, &[row], Attrs::default(), &[], range)?;
        let sizes = self.b.operand(sizes);
        let func = self.b.func_mut();
        let var = func.fresh_sym("m");
        let sym = func.syms.var(var);
        let ty = func.intern(TypeData::Shape { dims: Some([sym].into()), ndim: Some(1) });
        self.b.match_cast(sizes, ty, "gv");
        Ok(sym)
    }

    /// The names that the body assigns and that mean a value before it, with those values.
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

    fn define_state(&mut self, names: &[&'s str], params: &[IrExpr]) {
        for (name, &e) in names.iter().zip(params) {
            self.define(name, Local::Var(e));
        }
    }

    /// The statements of a turn; the state that it ends with.
    fn loop_body(&mut self, body: &[Stmt<'s>], range: Range) -> Res<IrExpr> {
        let mut assigned = Vec::new();
        assigned_anywhere(body, &mut assigned);
        for name in &assigned {
            *self.carried.entry(name).or_default() += 1;
        }
        // The end of the body is the end of the turn, for branches that go on to it as well.
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

    /// What names mean after the loop: the state its last values, what only the body defines nothing.
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

    // ---- the operator ----

    /// `R.while_loop(cond, body, *state)`; `cond` and `body` are functions or lambdas.
    pub(super) fn while_loop(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let keyword = |name: &str| call.keywords.iter().find(|k| k.name == name).map(|k| &k.value);
        if let Some(k) = call.keywords.iter().find(|k| !matches!(k.name, "cond" | "body")) {
            let message = format!("R.while_loop has no parameter '{}'", k.name);
            return Err(self.error(Kind::Arguments, k.range, message));
        }
        let mut positional = call.args.iter();
        let cond = keyword("cond").or_else(|| positional.next());
        let body = keyword("body").or_else(|| positional.next());
        let (Some(cond), Some(body)) = (cond, body) else {
            let message = "R.while_loop needs a condition and a body";
            return Err(self.error(Kind::Arguments, e.range, message));
        };
        let mut inits = Vec::new();
        for arg in positional {
            match self.sequence(std::slice::from_ref(arg))? {
                Val::Seq(items) => {
                    for item in items {
                        inits.push(self.operand(item, None, arg.range)?);
                    }
                }
                other => inits.push(self.operand(other, None, arg.range)?),
            }
        }
        let types = inits.iter().map(|&e| self.b.func().expr_ty(e)).collect::<Vec<_>>();
        let types = types.into_iter().map(|ty| self.forget_shape(ty)).collect();
        let own = FxHashSet::default();
        let mut state = State { names: Vec::new(), inits, types, own };
        let body_fn = match &body.kind {
            ExprKind::Lambda(lambda) => {
                self.no_loop_in_dataflow(body.range)?;
                state.names = self.lambda_params(lambda, state.inits.len(), body.range)?;
                let names = state.names.clone();
                self.fixed_body(&mut state, body.range, &mut |p, params| {
                    p.lambda_body(lambda, &names, params)
                })?
            }
            _ => {
                let f = self.function_value(body)?;
                self.state_of(f, &mut state);
                f
            }
        };
        let cond_fn = match &cond.kind {
            ExprKind::Lambda(lambda) => {
                self.no_loop_in_dataflow(cond.range)?;
                let names = self.lambda_params(lambda, state.inits.len(), cond.range)?;
                let (types, _) = self.renamed(&state);
                self.loop_function(&names, &types, &mut |p, params| {
                    p.define_state(&names, params);
                    p.condition_value(&lambda.body)
                })?
            }
            _ => self.function_value(cond)?,
        };
        self.emit_loop(cond_fn, body_fn, &state.inits, e.range)
    }

    fn function_value(&mut self, e: &Expr<'s>) -> Res<IrExpr> {
        let val = self.value(e)?;
        self.operand(val, None, e.range)
    }

    /// The types that the parameters of a body have, as far as they are known.
    fn state_of(&mut self, body: IrExpr, state: &mut State<'s>) {
        let params = match self.ty_of(body) {
            TypeData::Callable { params: Some(params), .. } => params.to_vec(),
            _ => vec![self.intern(TypeData::Any); state.inits.len()],
        };
        // A symbol that the first values do not mention is one of the body's own.
        let func = self.b.func();
        let outside: FxHashSet<SymVar> =
            state.types.iter().flat_map(|&ty| type_syms(func, ty)).collect();
        let own = params.iter().flat_map(|&ty| type_syms(func, ty));
        state.own = own.filter(|v| !outside.contains(v)).collect();
        if params.len() == state.types.len() {
            state.types = params;
        }
    }

    fn lambda_params(
        &mut self,
        lambda: &Lambda<'s>,
        count: usize,
        range: Range,
    ) -> Res<Vec<&'s str>> {
        if lambda.params.len() != count {
            let message = format!(
                "the lambda takes {} parameters, but the loop has {count} state values",
                lambda.params.len()
            );
            return Err(self.error(Kind::Arguments, range, message));
        }
        Ok(lambda.params.clone())
    }

    fn lambda_body(
        &mut self,
        lambda: &Lambda<'s>,
        names: &[&'s str],
        params: &[IrExpr],
    ) -> Res<IrExpr> {
        self.define_state(names, params);
        let val = self.value(&lambda.body)?;
        self.operand(val, None, lambda.body.range)
    }

    // ---- functions ----

    /// Binds the functions that have no name yet, and calls the operator.
    fn emit_loop(
        &mut self,
        cond: IrExpr,
        body: IrExpr,
        inits: &[IrExpr],
        range: Range,
    ) -> Res<IrExpr> {
        self.b.set_span(self.cx.span(range));
        let mut operands = Vec::with_capacity(inits.len() + 2);
        for (f, hint) in [(cond, "cond"), (body, "body")] {
            let f = self.turning(f, inits, range)?;
            let is_func = matches!(self.b.func().expr(f), pliant_ir::relax::ExprData::Func(_));
            operands.push(if is_func {
                let var = self.b.emit_named(f, hint);
                self.b.func_mut().var_expr(var)
            } else {
                f
            });
        }
        operands.extend(inits);
        self.emit_op(pliant_ir::op::WHILE_LOOP, &operands, Attrs::default(), &[], range)
    }

    /// A local function over parameters of those types.
    pub(super) fn loop_function(
        &mut self,
        names: &[&'s str],
        types: &[Type],
        read: Read<'_, Self>,
    ) -> Res<IrExpr> {
        self.b.begin_func();
        let scope = self.open_scope();
        let mut params = Vec::with_capacity(types.len());
        for (name, &ty) in names.iter().zip(types) {
            let var = self.b.param(name, ty);
            params.push(self.b.func_mut().var_expr(var));
        }
        let outer = self.impure.take();
        let result = read(self, &params);
        self.close_scope(scope);
        let pure = self.impure.is_none();
        self.impure = outer;
        // The function is closed in any case, so that the builder stays balanced.
        let closing = result.as_ref().copied().unwrap_or(self.b.func_mut().tuple(&[]));
        let func = self.b.end_func(closing, None, pure);
        result.map(|_| func)
    }

    /// The body as a function, read until the state's types hold from turn to turn.
    fn fixed_body(
        &mut self,
        state: &mut State<'s>,
        range: Range,
        read: Read<'_, Self>,
    ) -> Res<IrExpr> {
        loop {
            let mark = self.b.mark_names();
            let names = state.names.clone();
            let func = on_stack(|| self.loop_function(&names, &state.types, read))?;
            let results = self.results(func, state.types.len(), range)?;
            let mut wider = Vec::with_capacity(results.len());
            for ((&ty, &result), name) in state.types.iter().zip(&results).zip(&names) {
                wider.push(self.widen(ty, result, name, &mut state.own));
            }
            if wider == state.types {
                return Ok(func);
            }
            state.types = wider;
            self.b.give_back_names(mark);
            self.rereads += 1;
            if self.rereads > MAX_REREADS {
                return Err(self.error_help(
                    Kind::Unsupported,
                    range,
                    "loops are nested too deep to find the types of what they carry",
                    "move the inner loops into functions of their own",
                ));
            }
        }
    }

    /// The types of the state after a turn of that body.
    fn results(&mut self, body: IrExpr, count: usize, range: Range) -> Res<Vec<Type>> {
        let TypeData::Callable { ret, .. } = *self.ty_of(body) else { return Err(Reported) };
        match self.b.func().types.get(ret) {
            _ if count == 1 => Ok(vec![ret]),
            TypeData::Tuple(fields) if fields.len() == count => Ok(fields.to_vec()),
            TypeData::Any => Ok(vec![ret; count]),
            _ => {
                let ty = self.ty_text(ret);
                let message = format!(
                    "the body must return the {count} state values as a tuple, but returns {ty}"
                );
                Err(self.error(Kind::Type, range, message))
            }
        }
    }

    /// The state's types with other symbols for the body's own, and which stand for which.
    fn renamed(&mut self, state: &State<'s>) -> (Vec<Type>, FxHashMap<SymVar, Sym>) {
        self.renamed_types(&state.types, &state.own)
    }

    /// Types with other symbols for some of theirs, and which stand for which.
    pub(super) fn renamed_types(
        &mut self,
        types: &[Type],
        own: &FxHashSet<SymVar>,
    ) -> (Vec<Type>, FxHashMap<SymVar, Sym>) {
        let func = self.b.func_mut();
        let mut map = FxHashMap::default();
        for &ty in types {
            for v in type_syms(func, ty) {
                let sym = if own.contains(&v) {
                    if map.contains_key(&v) {
                        continue;
                    }
                    let name = func.syms.name(v).to_string();
                    let new = func.fresh_sym(&name);
                    func.syms.var(new)
                } else {
                    func.syms.var(v)
                };
                map.insert(v, sym);
            }
        }
        let sym = |v: SymVar| map.get(&v).copied();
        let types = types.iter();
        let types = types.map(|&ty| erase_to_well_defined(func, ty, &sym, &|v| Some(v))).collect();
        (types, map)
    }

    /// The type that holds `ty` and, after a turn, `result`: the same where it fits, else with symbols of the body's own
    /// for the dims that differ.
    fn widen(&mut self, ty: Type, result: Type, name: &str, own: &mut FxHashSet<SymVar>) -> Type {
        if ty == result || is_subtype(self.b.func_mut(), result, ty).is_yes() {
            return ty;
        }
        let types = &self.b.func().types;
        let data = match (types.get(ty).clone(), types.get(result).clone()) {
            (TypeData::Tensor { shape, dtype }, TypeData::Tensor { dtype: e, .. }) => {
                let dtype = dtype.filter(|&d| e == Some(d));
                let rank = self.b.func().rank_of(ty);
                let shape = match rank {
                    Some(_) if rank == self.b.func().rank_of(result) => match shape {
                        TensorShape::Dims(dims) => {
                            TensorShape::Dims(self.widen_dims(&dims, result, name, own))
                        }
                        other => other,
                    },
                    _ => TensorShape::Unknown,
                };
                TypeData::Tensor { shape, dtype }
            }
            (TypeData::Shape { dims: Some(dims), ndim }, TypeData::Shape { ndim: m, .. })
                if ndim == m =>
            {
                TypeData::Shape { dims: Some(self.widen_dims(&dims, result, name, own)), ndim }
            }
            (TypeData::Shape { .. }, TypeData::Shape { .. }) => {
                TypeData::Shape { dims: None, ndim: None }
            }
            (TypeData::Prim { dtype, value }, TypeData::Prim { dtype: e, .. }) if dtype == e => {
                let known = value.filter(|&v| self.is_own(v, own));
                let value = match known {
                    None if dtype.is_integer() => Some(self.own_sym(name, own)),
                    known => known,
                };
                TypeData::Prim { dtype, value }
            }
            (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
                let fields = x.iter().zip(&y);
                TypeData::Tuple(fields.map(|(&a, &b)| self.widen(a, b, name, own)).collect())
            }
            (TypeData::Callable { .. }, TypeData::Callable { .. }) => {
                return pliant_ir::relax::derive::lca(self.b.func_mut(), ty, result);
            }
            _ => TypeData::Any,
        };
        self.intern(data)
    }

    fn widen_dims(
        &mut self,
        dims: &[Sym],
        result: Type,
        name: &str,
        own: &mut FxHashSet<SymVar>,
    ) -> Box<[Sym]> {
        let after = self.b.func().types.get(result).dims().map(<[Sym]>::to_vec);
        let mut out = Vec::with_capacity(dims.len());
        for (i, &dim) in dims.iter().enumerate() {
            let same = match &after {
                Some(after) => prove_dims_equal(self.b.func_mut(), dim, after[i]).is_yes(),
                None => false,
            };
            out.push(if same || self.is_own(dim, own) {
                dim
            } else {
                self.own_sym(&format!("{name}_{i}"), own)
            });
        }
        out.into()
    }

    fn is_own(&self, sym: Sym, own: &FxHashSet<SymVar>) -> bool {
        self.b.func().syms.as_var(sym).is_some_and(|v| own.contains(&v))
    }

    fn own_sym(&mut self, name: &str, own: &mut FxHashSet<SymVar>) -> Sym {
        let func = self.b.func_mut();
        let var = func.fresh_sym(name);
        own.insert(var);
        func.syms.var(var)
    }
}
