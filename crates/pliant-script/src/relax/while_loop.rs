//! Parsing of `R.while_loop(cond, body, *state)` and of its condition and body functions.

use pliant_ir::relax::type_lattice::type_syms;
use pliant_ir::relax::{Expr as IrExpr, Type, TypeData};
use pliant_ir::{Attrs, SymVar};
use rustc_hash::FxHashSet;

use super::FuncParser;
use super::loop_state::State;
use super::unresolved_values::Val;
use crate::python::ast::{Call, Expr, ExprKind, Lambda, Range};
use crate::script_errors::{ErrorKind, Res};

/// A callback that parses the body of a function. It receives the parser and the parameters of the
/// function, and returns the function's result as an operand.
pub(super) type ParseBody<'f, P> = &'f mut dyn FnMut(&mut P, &[IrExpr]) -> Res<IrExpr>;

impl<'s> FuncParser<'_, 's> {
    /// Parses `R.while_loop(cond, body, *state)`. `cond` and `body` are functions or lambdas.
    pub(super) fn while_loop(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let keyword = |name: &str| call.keywords.iter().find(|k| k.name == name).map(|k| &k.value);
        if let Some(k) = call.keywords.iter().find(|k| !matches!(k.name, "cond" | "body")) {
            let message = format!("R.while_loop has no parameter '{}'", k.name);
            return Err(self.error(ErrorKind::Arguments, k.range, message));
        }
        let mut positional = call.args.iter();
        let cond = keyword("cond").or_else(|| positional.next());
        let body = keyword("body").or_else(|| positional.next());
        let (Some(cond), Some(body)) = (cond, body) else {
            let message = "R.while_loop needs a condition and a body";
            return Err(self.error(ErrorKind::Arguments, e.range, message));
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
        let types = types.into_iter().map(|ty| self.erase_shape(ty)).collect();
        let own = FxHashSet::default();
        let mut state = State { names: Vec::new(), inits, types, own };
        let body_fn = match &body.kind {
            ExprKind::Lambda(lambda) => {
                self.no_loop_in_dataflow(body.range)?;
                state.names = self.lambda_params(lambda, state.inits.len(), body.range)?;
                let names = state.names.clone();
                self.body_with_stable_types(&mut state, body.range, &mut |p, params| {
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

    /// Sets the types of the loop state to the parameter types of the body function; `Any` if they
    /// are unknown.
    fn state_of(&mut self, body: IrExpr, state: &mut State<'s>) {
        let params = match self.ty_of(body) {
            TypeData::Callable { params: Some(params), .. } => params.to_vec(),
            _ => vec![self.intern(TypeData::Any); state.inits.len()],
        };
        // A symbol that does not occur in the initial values is defined by the body.
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
                "a lambda of R.while_loop takes {} parameters, but the loop has {count} state values",
                lambda.params.len()
            );
            return Err(self.error(ErrorKind::Arguments, range, message));
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

    /// Emits the call of `R.while_loop`. Functions without a name are first bound to variables.
    pub(super) fn emit_loop(
        &mut self,
        cond: IrExpr,
        body: IrExpr,
        inits: &[IrExpr],
        range: Range,
    ) -> Res<IrExpr> {
        self.b.set_span(self.cx.span(range));
        let mut operands = Vec::with_capacity(inits.len() + 2);
        for (f, hint) in [(cond, "cond"), (body, "body")] {
            let f = self.self_recursive_body(f, inits, range)?;
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

    /// Creates a local function with parameters of the given names and types. `read` parses its body.
    pub(super) fn loop_function(
        &mut self,
        names: &[&'s str],
        types: &[Type],
        read: ParseBody<'_, Self>,
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
        let pure = self.impure.is_none() || self.forced_pure();
        self.impure = outer;
        // Close the function even after an error, to keep the state of the builder consistent.
        let closing = result.as_ref().copied().unwrap_or(self.b.func_mut().tuple(&[]));
        let func = self.b.end_func(closing, None, pure);
        result.map(|_| func)
    }
}
