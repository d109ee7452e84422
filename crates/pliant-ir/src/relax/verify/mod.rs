//! The specification of graph functions, and its checker.
//!
//! # Structure
//! - Every expression has a type of its function (PL0201). Blocks, sequences and local functions occur exactly once (PL0221).
//!   Branches, functions and tuples are nested at most [`MAX_DEPTH`] deep (PL0220).
//! - A-normal form: the operands of a call, the fields of a tuple, the tuple of a field access, a condition and the result of a
//!   sequence are leaves (variables, names, constants, shapes, scalars, strings, data types) or tuples of such operands. `If` and
//!   local functions only occur as values of bindings, and the value of a `match_cast` is an operand (PL0202).
//!
//! # Scopes
//! - A variable is defined once in its function (PL0204) and only used where it is visible (PL0203): a parameter in the body of its
//!   function, the variable of a binding after the binding until the end of its sequence. The variables of local functions that are
//!   bound consecutively in a block are visible in all of their bodies, so that these can call themselves and each other.
//! - Dataflow variables are defined in dataflow blocks and not used outside of them (PL0205).
//! - A symbol is visible after a parameter or a `match_cast` has defined it: as a whole dim, as the value of a scalar, or as the
//!   only unknown symbol of a dim that is linear in it, such as `n * 2 + 1` (PL0209). Parameters see each other's symbols. The
//!   return type may use the symbols of the body.
//! - Globals are functions of the module (PL0210).
//!
//! # Effects
//! - Dataflow blocks contain no `If` and no local function (PL0206), and no call with side effects (PL0207).
//! - A function declared pure contains no call with side effects (PL0208), unless its attribute `relax.force_pure` is set, which
//!   the compiler trusts. Calls of packed functions and direct calls of loop functions have side effects.
//!
//! # Types
//! A provable mismatch is an error. A match that can be neither proved nor disproved is checked at run time.
//! - The value of a binding fits the type of its variable (PL0213), a result the declared type (PL0214), and the arguments the
//!   parameters in number (PL0211) and types (PL0212). A `match_cast` is not provably wrong (PL0216).
//! - A condition is a bool scalar or a bool tensor of rank 0 (PL0215). Accessed fields exist (PL0217). Callees are callable
//!   (PL0223).
//! - Operators are declared, and the number of operands matches the signature (PL0219).
//! - `call_tir(f, (inputs...), out_sinfo, tir_vars)`: `f` is a loop function whose parameters are the inputs, the outputs and the
//!   variables, in this order. Ranks, data types and constant dims agree as far as they are known. The types of the outputs are
//!   `ty_args`: one type, a tuple for several results (PL0218).
//! - `while_loop(cond, body, state...)`: `cond` and `body` are functions of the whole state, `cond` returns a bool scalar, and the
//!   result of `body` can be the state of the next iteration (PL0225); see [`super::while_loop`]. If a loop is inside a local
//!   function that is also its condition or body, the loop state contains no symbols of this function, because inside the
//!   function they belong to the current call.

mod calls;
mod scopes;

use std::rc::Rc;

use pliant_diag::{Diagnostic, Span, error_codes};
use pliant_sym::{Proof, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::expr::*;
use super::function::Function;
use super::type_lattice::{is_subtype, solvable_syms, visit_dims};
use super::types::{Type, TypeData};
use super::visit::{BindingLocation, Event, for_each_expr, func_run, type_vars, walk};
use super::while_loop::is_condition;
use crate::attr_values::is_forced_pure;
use crate::ir_module::IRModule;
use crate::op::OpRegistry;
use crate::print::type_text;
use crate::verify::MAX_PER_FUNCTION;

/// Maximum nesting depth of branches, local functions and tuples.
pub const MAX_DEPTH: usize = 200;

/// Finds all violations of the specification in a graph function, in the order of the text. Without a module, the names of global
/// functions are not checked.
pub fn verify_function(
    f: &Function,
    module: Option<&IRModule>,
    ops: &dyn OpRegistry,
) -> Vec<Diagnostic> {
    let mut v = Verifier::new(f, module, ops);
    if v.check_structure() {
        walk(f, f.root(), |event| v.event(event));
    }
    v.out
}

struct Verifier<'a> {
    f: &'a Function,
    module: Option<&'a IRModule>,
    ops: &'a dyn OpRegistry,
    out: Vec<Diagnostic>,
    /// A copy of the function, created on demand, in which proofs about types run. Proofs add terms
    /// to the arenas, and the verified function must not change.
    proof_copy: Option<Function>,
    force_pure: bool,
    /// The variables that the verifier has found definitions of so far.
    defined: FxHashSet<Var>,
    /// The variables that are visible at the point of the function that is being verified.
    visible: FxHashSet<Var>,
    /// The symbols that are visible at the point of the function that is being verified.
    syms: FxHashSet<SymVar>,
    /// For each open scope, the variables and symbols that become invisible at its end.
    scopes: Vec<Scope>,
    funcs: Vec<FuncId>,
    /// The enclosing local functions, outermost first: the variable of each, and the symbols that its parameters define.
    enclosing_funcs: Vec<(Var, Vec<SymVar>)>,
    /// The variables that the dataflow block being verified defines; `None` outside of dataflow blocks.
    dataflow: Option<Vec<Var>>,
    span: Span,
    /// Cache: the symbols in each type.
    type_syms: FxHashMap<Type, Rc<[SymVar]>>,
}

#[derive(Default)]
struct Scope {
    vars: Vec<Var>,
    syms: Vec<SymVar>,
}

impl<'a> Verifier<'a> {
    fn new(f: &'a Function, module: Option<&'a IRModule>, ops: &'a dyn OpRegistry) -> Self {
        Verifier {
            f,
            module,
            ops,
            out: Vec::new(),
            proof_copy: None,
            force_pure: is_forced_pure(&f.attrs),
            defined: FxHashSet::default(),
            visible: FxHashSet::default(),
            syms: FxHashSet::default(),
            scopes: Vec::new(),
            funcs: Vec::new(),
            enclosing_funcs: Vec::new(),
            dataflow: None,
            span: Span::NONE,
            type_syms: FxHashMap::default(),
        }
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>) {
        if self.out.len() < MAX_PER_FUNCTION {
            self.out.push(Diagnostic::error(code, message).with_span(self.span));
        }
    }

    fn error_help(&mut self, code: &'static str, message: impl Into<String>, help: &str) {
        if self.out.len() < MAX_PER_FUNCTION {
            self.out.push(Diagnostic::error(code, message).with_span(self.span).with_help(help));
        }
    }

    fn name(&self, v: Var) -> &'a str {
        &self.f.var(v).name
    }

    fn ty_text(&self, ty: Type) -> String {
        type_text(self.f, ty)
    }

    /// Returns whether `a` is provably a subtype of `b`.
    fn fits(&mut self, a: Type, b: Type) -> Proof {
        if a == b {
            return Proof::Yes;
        }
        is_subtype(self.proof_copy.get_or_insert_with(|| self.f.clone()), a, b)
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::EnterFunc(id) => self.enter_func(id),
            Event::LeaveFunc(_) => {
                self.funcs.pop();
                self.leave_scope();
            }
            Event::EnterSeq(_) => self.scopes.push(Scope::default()),
            Event::Result(seq) => self.check_result(seq),
            Event::EnterBlock(b) => {
                if self.f.block(b).dataflow {
                    self.dataflow = Some(Vec::new());
                }
            }
            Event::LeaveBlock(b) => {
                if self.f.block(b).dataflow {
                    for v in self.dataflow.take().unwrap_or_default() {
                        self.visible.remove(&v);
                    }
                }
            }
            Event::EnterBinding(location, b) => self.enter_binding(location, b),
            Event::LeaveBinding(_, b) => self.leave_binding(b),
        }
    }

    fn enter_func(&mut self, id: FuncId) {
        self.funcs.push(id);
        self.scopes.push(Scope::default());
        let f = self.f;
        let params = &f.func(id).params;
        let tys: Vec<Type> = params.iter().map(|&p| f.var(p).ty).collect();
        let mut own = solvable_syms(f, &tys, &|v| self.syms.contains(&v));
        own.retain(|s| !self.syms.contains(s));
        for &s in &own {
            self.define_sym(s);
        }
        if let Some((_, syms)) = self.enclosing_funcs.last_mut() {
            *syms = own;
        }
        for &p in params {
            self.span = f.var(p).span;
            self.check_ty(f.var(p).ty);
            if f.var(p).dataflow {
                self.error(
                    error_codes::PL0205,
                    format!("parameter '{}' is a dataflow variable, which only a dataflow block can define", self.name(p)),
                );
            }
            self.define(p);
        }
    }

    fn check_result(&mut self, seq: Seq) {
        let f = self.f;
        let result = f.seq(seq).result;
        if self.operand(result, "the result of a function or branch") {
            self.expr(result);
        }
        if let Some(&id) = self.funcs.last() {
            let func = f.func(id);
            if func.body == seq {
                self.check_ty(func.ret_ty);
                let have = f.expr_ty(result);
                if self.fits(have, func.ret_ty).is_no() {
                    let (have, want) = (self.ty_text(have), self.ty_text(func.ret_ty));
                    self.error(
                        error_codes::PL0214,
                        format!("the function returns a value of type {have}, but is declared to return {want}"),
                    );
                }
            }
        }
        self.leave_scope();
    }

    /// Checks the value of a binding, before its variable becomes visible.
    fn enter_binding(&mut self, location: BindingLocation, b: Binding) {
        let f = self.f;
        self.span = f.var(b.var).span;
        match f.expr(b.value) {
            ExprData::If { cond, .. } => {
                if self.dataflow.is_some() {
                    let name = self.name(b.var);
                    self.error(
                        error_codes::PL0206,
                        format!("variable '{name}' is bound to an 'if' in a dataflow block, which cannot contain branches"),
                    );
                }
                if self.operand(*cond, "the condition of a branch") {
                    self.expr(*cond);
                    self.check_condition(*cond);
                }
            }
            ExprData::Func(_) => {
                if self.dataflow.is_some() {
                    let name = self.name(b.var);
                    self.error(
                        error_codes::PL0206,
                        format!("variable '{name}' is bound to a local function in a dataflow block, which cannot contain local functions"),
                    );
                }
                for other in func_run(f, &f.block(location.block).bindings, location.index) {
                    self.define(other.var);
                }
                self.enclosing_funcs.push((b.var, Vec::new()));
            }
            _ => {
                if b.cast.is_some() {
                    self.operand(b.value, "the value of a match_cast");
                }
                self.expr(b.value);
            }
        }
    }

    /// Checks the types of a binding, and makes its variable visible.
    fn leave_binding(&mut self, b: Binding) {
        let f = self.f;
        self.span = f.var(b.var).span;
        let (have, want) = (f.expr_ty(b.value), f.var(b.var).ty);
        if let Some(cast) = b.cast.expand() {
            for s in solvable_syms(f, &[cast], &|v| self.syms.contains(&v)) {
                self.define_sym(s);
            }
            self.check_ty(cast);
            if self.fits(have, cast).is_no() {
                let (name, have, cast) = (self.name(b.var), self.ty_text(have), self.ty_text(cast));
                self.error(
                    error_codes::PL0216,
                    format!("the match_cast of '{name}' always fails: the value has type {have}, which does not fit {cast}"),
                );
            }
        }
        self.check_ty(want);
        let source = b.cast.expand().unwrap_or(have);
        if self.fits(source, want).is_no() {
            let (name, have, want) = (self.name(b.var), self.ty_text(source), self.ty_text(want));
            self.error(
                error_codes::PL0213,
                format!(
                    "variable '{name}' is declared with type {want}, but its value has type {have}"
                ),
            );
        }
        if let ExprData::If { then_seq, else_seq, .. } = f.expr(b.value) {
            for seq in [*then_seq, *else_seq] {
                let have = f.expr_ty(f.seq(seq).result);
                if self.fits(have, want).is_no() {
                    let (name, have, want) =
                        (self.name(b.var), self.ty_text(have), self.ty_text(want));
                    self.error(
                        error_codes::PL0214,
                        format!("a branch of the 'if' bound to '{name}' returns a value of type {have}, which does not fit the type {want} of '{name}'"),
                    );
                }
            }
        }
        if matches!(f.expr(b.value), ExprData::Func(_)) {
            self.enclosing_funcs.pop();
        } else {
            self.define(b.var);
        }
    }

    fn check_condition(&mut self, cond: Expr) {
        let f = self.f;
        let ty = f.expr_ty(cond);
        let ok = is_condition(f, ty);
        if !ok {
            let text = self.ty_text(ty);
            self.error(
                error_codes::PL0215,
                format!("the condition of an 'if' has type {text}, but must be a bool scalar"),
            );
        }
    }

    // ---- expressions ----

    /// Whether an expression is an operand: a leaf or a tuple of operands. Reports an error if it is not. `what` describes the
    /// expression in the message.
    fn operand(&mut self, e: Expr, what: &str) -> bool {
        let f = self.f;
        let mut stack = vec![(e, 0)];
        while let Some((e, depth)) = stack.pop() {
            match f.expr(e) {
                ExprData::Tuple(_) if depth >= MAX_DEPTH => {
                    self.error(
                        error_codes::PL0220,
                        format!("tuples are nested deeper than the maximum of {MAX_DEPTH} levels"),
                    );
                    return false;
                }
                ExprData::Tuple(list) => {
                    stack.extend(f.list(*list).iter().map(|&x| (x, depth + 1)))
                }
                ExprData::Call { .. }
                | ExprData::TupleGetItem(..)
                | ExprData::If { .. }
                | ExprData::Func(_) => {
                    self.error_help(
                        error_codes::PL0202,
                        format!("{what} must be a variable, a constant or a tuple of these, not a nested call, field access, branch or function"),
                        "bind the value to a variable first",
                    );
                    return false;
                }
                _ => {}
            }
        }
        true
    }

    /// Checks an expression and its operands against the specification.
    fn expr(&mut self, e: Expr) {
        let f = self.f;
        let ok = match f.expr(e) {
            ExprData::Call { callee, args, .. } => {
                let mut ok = true;
                if let Callee::Expr(c) = callee {
                    ok &= self.operand(*c, "the called function");
                }
                for &a in f.list(*args) {
                    ok &= self.operand(a, "an argument of a call");
                }
                ok
            }
            ExprData::TupleGetItem(t, _) => self.operand(*t, "the tuple of a field access"),
            ExprData::Tuple(_) => self.operand(e, "a field of a tuple"),
            _ => true,
        };
        if !ok {
            return;
        }
        let mut parts = Vec::new();
        for_each_expr(f, e, |e| parts.push(e));
        for e in parts {
            self.node(e);
        }
    }

    fn node(&mut self, e: Expr) {
        let f = self.f;
        match f.expr(e) {
            ExprData::Var(v) => self.use_var(*v),
            ExprData::Global(s) => {
                let name = f.str(*s);
                if self.module.is_some_and(|m| m.get(name).is_none()) {
                    self.error(error_codes::PL0210, format!("the module has no function '{name}'"));
                }
            }
            ExprData::Shape(dims) => dims.iter().for_each(|&d| self.use_sym(d)),
            ExprData::Int(v, _) => self.use_sym(*v),
            ExprData::TupleGetItem(t, i) => {
                if let TypeData::Tuple(fields) = f.ty(*t)
                    && *i as usize >= fields.len()
                {
                    let n = fields.len();
                    self.error(
                        error_codes::PL0217,
                        format!("field {i} of a tuple is accessed, but the tuple has {n} fields"),
                    );
                }
            }
            ExprData::Call { ty_args, .. } => {
                for &t in f.type_list(*ty_args) {
                    self.check_ty(t);
                }
                self.check_call(e);
            }
            _ => {}
        }
    }

    /// Checks that the symbols and shape variables of a type are visible.
    fn check_ty(&mut self, ty: Type) {
        for v in type_vars(self.f, ty) {
            self.use_var(v);
            if !matches!(self.f.var_ty(v), TypeData::Shape { .. } | TypeData::Any) {
                let name = self.name(v);
                self.error(
                    error_codes::PL0201,
                    format!(
                        "the shape of a tensor type is variable '{name}', which is not a shape"
                    ),
                );
            }
        }
        let f = self.f;
        let syms = self.type_syms.entry(ty).or_insert_with(|| {
            let mut out = Vec::new();
            visit_dims(f, ty, false, &mut |d| out.extend(f.syms.free_vars(d)));
            out.sort();
            out.dedup();
            out.into()
        });
        for &s in syms.clone().iter() {
            self.use_sym_var(s);
        }
    }
}
