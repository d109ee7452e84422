//! Expansion of macros. The statements of a macro are parsed at every use, as if they were written there.
//!
//! A hygienic macro sees its arguments and the environment of its definition. Other macros also see the names at the point of use.
//! Names defined in a macro are local to the macro. If the last statement is a `return`, its value is the value of the macro call.

use super::statements::Flow;
use super::unresolved_values::Val;
use super::{Callees, FuncParser, Local};
use crate::host_environment::{HostEnv, HostValue};
use crate::name_visitor;
use crate::parser_context::ParseContext;
use crate::python::ast::{Call, Expr, FunctionDef, Range, StmtKind};
use crate::script_errors::{ErrorKind, Reported, Res};
use pliant_ir::DType;

/// A macro, defined by the script or by the surrounding Python program.
#[derive(Clone, Copy)]
pub(crate) struct MacroDef<'p, 's> {
    /// The function definition that the macro consists of.
    pub def: &'p FunctionDef<'s>,
    /// Whether names in the macro are resolved where the macro is defined (hygienic) or where it is used.
    pub hygienic: bool,
    /// The environment in which the macro is defined; `None` for macros of the script itself.
    pub env: Option<&'s dyn HostEnv>,
    /// Whether the macro is defined in the script itself.
    pub own: bool,
}

impl<'p, 's> Callees<'p, 's> {
    /// The macro to which a name refers, if any.
    pub fn macro_named(&self, cx: &ParseContext<'s>, name: &'s str) -> Option<MacroDef<'p, 's>> {
        if self.macros.is_empty() {
            return None;
        }
        if let Some(own) = self.macros.iter().find(|m| m.own && m.def.name == name) {
            return Some(*own);
        }
        match cx.lookup(name) {
            Some(HostValue::Macro(at)) => self.macros.get(at as usize).copied(),
            _ => None,
        }
    }
}

impl<'p, 's> FuncParser<'p, 's> {
    /// The macro that a call invokes, if any.
    pub(super) fn used_macro(&self, call: &Call<'s>) -> Option<MacroDef<'p, 's>> {
        let name = call.func.as_name().filter(|n| !self.scope.contains_key(n))?;
        self.callees.macro_named(self.cx, name)
    }

    /// Expands a macro call and returns its value.
    pub(super) fn expand(
        &mut self,
        used: MacroDef<'p, 's>,
        e: &Expr<'s>,
        call: &Call<'s>,
    ) -> Res<Val> {
        let name = used.def.name;
        if self.expanding.contains(&name) {
            return Err(self.recursive_macro(name, e.range));
        }
        let args = self.macro_args(used.def, e, call)?;
        let errors = self.cx.errors.count();
        let outer_scope = used
            .hygienic
            .then(|| (std::mem::take(&mut self.scope), std::mem::take(&mut self.undo)));
        let outer_use = self.last_use.clone();
        if used.hygienic {
            self.last_use.clear();
        } else {
            self.last_use.values_mut().for_each(|at| *at = u32::MAX);
        }
        name_visitor::names_read(&used.def.body, &mut |name, at| {
            let slot = self.last_use.entry(name).or_insert(at);
            *slot = at.max(*slot);
        });
        let iterations = std::mem::take(&mut self.iterations);
        self.expanding.push(name);
        let mark = self.open_scope();
        for (name, val) in args {
            let local = match val {
                Val::Expr(e) => Local::Var(e),
                Val::Sym(s, None) => Local::Sym(s),
                other => Local::Value(other),
            };
            self.define(name, local);
        }
        let val = match used.env.filter(|_| used.hygienic) {
            Some(env) => self.cx.in_env(env, || self.macro_body(used.def)),
            None => self.macro_body(used.def),
        };
        self.cx.errors.mark_macro_use(errors, self.range(e.range), name);
        self.close_scope(mark);
        self.expanding.pop();
        self.iterations = iterations;
        self.last_use = outer_use;
        if let Some((scope, undo)) = outer_scope {
            (self.scope, self.undo) = (scope, undo);
        }
        val
    }

    /// Reports a macro that uses itself, directly or through other macros.
    pub(super) fn recursive_macro(&self, name: &str, range: Range) -> Reported {
        let message = format!("macro '{name}' uses itself: macros cannot recurse");
        let help = "write a loop, or a function that calls itself";
        self.error_help(ErrorKind::Structure, range, message, help)
    }

    /// Parses the statements of a macro. Returns the value of its final `return`, or `Val::None` if there is none.
    fn macro_body(&mut self, def: &FunctionDef<'s>) -> Res<Val> {
        let (result, stmts) = match def.body.split_last() {
            Some((last, before)) => match &last.kind {
                StmtKind::Return(value) => (value.as_ref(), before),
                _ => (None, &def.body[..]),
            },
            None => (None, &[][..]),
        };
        if let Flow::Returned(value) = self.stmts(stmts)? {
            return Ok(Val::Expr(value));
        }
        match result {
            Some(e) => self.value_of(e),
            None => Ok(Val::None),
        }
    }

    /// Maps the parameter names of a macro to the arguments of its use.
    fn macro_args(
        &mut self,
        def: &FunctionDef<'s>,
        e: &Expr<'s>,
        call: &Call<'s>,
    ) -> Res<Vec<(&'s str, Val)>> {
        if let Some(range) = def.unsupported {
            let message = "the parameters of a macro have neither defaults nor '*'";
            return Err(self.error(ErrorKind::Unsupported, range, message));
        }
        let mut given: Vec<Option<&Expr<'s>>> = vec![None; def.params.len()];
        let name = def.name;
        let wrong = |p: &Self, message: String| {
            let names: Vec<&str> = def.params.iter().map(|p| p.name).collect();
            let help = format!("the macro takes the parameters {}", names.join(", "));
            Err(p.error_help(ErrorKind::Arguments, e.range, message, help))
        };
        if call.args.len() > given.len() {
            let (many, args) = (given.len(), call.args.len());
            return wrong(
                self,
                format!("macro '{name}' takes {many} arguments, but {args} are given"),
            );
        }
        for (slot, arg) in given.iter_mut().zip(&call.args) {
            *slot = Some(arg);
        }
        for k in &call.keywords {
            match def.params.iter().position(|p| p.name == k.name) {
                None => {
                    return wrong(self, format!("macro '{name}' has no parameter '{}'", k.name));
                }
                Some(at) if given[at].is_some() => {
                    return wrong(
                        self,
                        format!(
                            "the call of macro '{name}' passes the parameter '{}' twice",
                            k.name
                        ),
                    );
                }
                Some(at) => given[at] = Some(&k.value),
            }
        }
        let mut out = Vec::with_capacity(given.len());
        for (param, arg) in def.params.iter().zip(given) {
            let Some(arg) = arg else {
                return wrong(
                    self,
                    format!(
                        "the call of macro '{name}' does not pass the parameter '{}'",
                        param.name
                    ),
                );
            };
            let val = self.value(arg)?;
            self.b.set_span(self.cx.span(arg.range));
            out.push((param.name, self.bound(val)));
        }
        Ok(out)
    }

    /// Binds the calls in the value of a macro argument to variables, so that each call is executed once even if the macro uses the
    /// argument several times.
    fn bound(&mut self, val: Val) -> Val {
        match val {
            Val::Expr(e) => Val::Expr(self.b.operand(e)),
            Val::Seq(items) => Val::Seq(items.into_iter().map(|v| self.bound(v)).collect()),
            other => other,
        }
    }

    /// The data type that an expression denotes, which may be an argument of a macro.
    pub(super) fn dtype(&self, e: &Expr<'s>) -> Res<Option<DType>> {
        match e.as_name().and_then(|n| self.scope.get(n)) {
            Some(Local::Value(Val::Str(name))) => self.cx.dtype_name(name, e.range).map(Some),
            Some(Local::Value(Val::DType(d))) => Ok(Some(*d)),
            Some(Local::Value(Val::None)) => Ok(None),
            _ => self.cx.dtype(e),
        }
    }
}
