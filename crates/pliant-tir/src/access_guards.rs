//! Guards are checks in front of a statement, and bindings of the variables that the checks use. The checks ensure that the
//! accesses of the statement stay inside their buffers.
//!
//! A value that is loaded from memory and determines an address is loaded once and bound to a variable. The check and the access
//! both use the variable, so the access uses the checked value even if another thread changes the memory in between.
//! [`crate::lowered_form_verifier`] rejects checks that read memory.

use std::sync::Arc;

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Var, VarTy};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::statement_traversal::{map_operands, uses_any};

/// A check in front of a statement that ensures that an access stays inside its buffer, or the binding of a variable that such
/// checks and the statement use.
#[derive(Clone, Debug)]
pub enum Guard {
    /// A binding of a variable to a value. The guarded statement and later guards of the same list use the variable.
    Bind(Var, Expr),
    /// A run-time check of a condition. If the condition does not hold, the loop function fails with the message.
    Check(Expr, Arc<str>),
}

impl Guard {
    /// Returns the expression that the guard evaluates: the value that it binds, or the condition that it checks.
    pub fn expr(&self) -> Expr {
        match self {
            Guard::Bind(_, e) | Guard::Check(e, _) => *e,
        }
    }

    /// Returns the guard with its expression replaced by the result of `map`.
    #[must_use]
    pub fn map(&self, map: impl FnOnce(Expr) -> Expr) -> Guard {
        match self {
            Guard::Bind(var, e) => Guard::Bind(*var, map(*e)),
            Guard::Check(e, message) => Guard::Check(map(*e), message.clone()),
        }
    }
}

/// Whether any of the guards (run-time checks and bindings) depends on the variable `var`, directly or through a variable that
/// another guard in the list binds.
pub fn any_depends_on(f: &PrimFunc, guards: &[Guard], var: Var) -> bool {
    guards.iter().any(|g| uses_any(f, g.expr(), &|v| v == var))
}

/// Whether an expression uses a variable that one of the guards (run-time checks and bindings) binds.
pub fn uses_guard_variable(f: &PrimFunc, guards: &[Guard], e: Expr) -> bool {
    let bound = |v: Var| guards.iter().any(|g| matches!(g, Guard::Bind(var, _) if *var == v));
    uses_any(f, e, &bound)
}

/// Splits a statement into the guards (`T.let` bindings and assertions) around it and the innermost statement.
pub fn split_guards(f: &PrimFunc, mut s: Stmt) -> (Vec<Guard>, Stmt) {
    let mut guards = Vec::new();
    loop {
        s = match f.stmt(s) {
            StmtData::Let(var, value, body) => {
                guards.push(Guard::Bind(*var, *value));
                *body
            }
            StmtData::Assert(condition, message, body) => {
                guards.push(Guard::Check(*condition, message.clone()));
                *body
            }
            _ => return (guards, s),
        };
    }
}

/// Wraps a statement in guards: run-time checks of its accesses, and bindings of the variables that the checks use. Repeated checks
/// of the same condition are dropped.
pub fn wrap(f: &mut PrimFunc, guards: &[Guard], s: Stmt) -> Stmt {
    let mut seen = FxHashSet::default();
    let mut once = |g: &&Guard| match g {
        Guard::Check(condition, _) => seen.insert(*condition),
        Guard::Bind(..) => true,
    };
    let guards: Vec<&Guard> = guards.iter().filter(|g| once(g)).collect();
    guards.into_iter().rev().fold(s, |s, guard| match guard {
        Guard::Bind(var, value) => f.add_stmt(StmtData::Let(*var, *value, s)),
        Guard::Check(condition, message) => {
            f.add_stmt(StmtData::Assert(*condition, message.clone(), s))
        }
    })
}

/// Whether an expression reads memory.
pub fn reads_memory(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(..)));
    found
}

/// The values that are loaded from memory and bound to variables in front of one statement, and the expressions that use them.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    vars: FxHashMap<Expr, Var>,
    /// Maps expressions that read memory to the same expressions with their loads replaced by variables.
    rewritten: FxHashMap<Expr, Expr>,
    /// Maps expressions to their guarded forms, whose accesses have run-time checks. In a guarded form, values that are loaded from
    /// memory and checked are replaced by the variables to which guards bind them.
    guarded: FxHashMap<Expr, Expr>,
}

impl Bindings {
    /// Returns the form of an expression in which loaded values that are checked are replaced by the variables to which guards bind
    /// them; `None` if no checks were added for the accesses of the expression yet.
    pub fn guarded(&self, e: Expr) -> Option<Expr> {
        self.guarded.get(&e).copied()
    }

    /// Records `new` as the guarded form of the expression `e` ([`Bindings::guarded()`]).
    pub fn set_guarded(&mut self, e: Expr, new: Expr) {
        self.guarded.insert(e, new);
    }

    /// Returns a variable that is bound to the expression `e` in front of the statement. If there is no such variable yet, adds its
    /// binding to `guards`.
    pub fn bind(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        let var = *self.vars.entry(e).or_insert_with(|| {
            let var = f.add_var("loaded", VarTy::Value(f.expr_ty(e)));
            guards.push(Guard::Bind(var, e));
            var
        });
        f.var_expr(var)
    }

    /// Replaces each load in an expression, and each conditional that contains a load, by a variable that a guard binds. The
    /// arithmetic around them is kept, so that proofs about it still succeed.
    pub fn bind_loads(&mut self, f: &mut PrimFunc, e: Expr, guards: &mut Vec<Guard>) -> Expr {
        if let Some(&known) = self.rewritten.get(&e) {
            return known;
        }
        let new = match f.expr(e) {
            ExprData::Load(..) => self.bind(f, e, guards),
            // Only the chosen side may be evaluated, so the loads in the sides cannot be bound separately.
            ExprData::Call(Intrin::IfThenElse, ..) if reads_memory(f, e) => self.bind(f, e, guards),
            _ => map_operands(f, e, |f, a| self.bind_loads(f, a, guards)),
        };
        self.rewritten.insert(e, new);
        new
    }
}
