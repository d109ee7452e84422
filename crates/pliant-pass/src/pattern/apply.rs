//! [`rewrite_call`]: rules with callbacks, applied to the end.

use pliant_ir::Attrs;
use pliant_ir::op::{InferError, Op, OpRegistry};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};

use super::defs::Defs;
use super::matcher::Match;
use super::node::Pattern;
use super::rewriting::{Replacement, Rewriting};
use super::rules::RuleSet;
use crate::error::PassError;
use crate::rewrite::Namer;
use crate::writers::Writers;

/// What a rule's callback works with: the function, and a place to put bindings.
pub struct RewriteCx<'a> {
    /// The function that is rewritten. Its arenas may be added to.
    pub func: &'a mut Function,
    /// The operators.
    pub ops: &'a dyn OpRegistry,
    /// The values of variables.
    pub defs: &'a Defs,
    /// The variable whose value was matched.
    pub var: Var,
    bindings: Vec<Binding>,
    namer: &'a mut Option<Namer>,
}

impl<'a> RewriteCx<'a> {
    /// The context of a rewrite of the binding of `var`. Names of variables come from `namer`, which is made on demand.
    pub fn new(
        func: &'a mut Function,
        ops: &'a dyn OpRegistry,
        defs: &'a Defs,
        var: Var,
        namer: &'a mut Option<Namer>,
    ) -> Self {
        RewriteCx { func, ops, defs, var, bindings: Vec::new(), namer }
    }

    /// The bindings that the rewrite has emitted, in order.
    pub fn into_bindings(self) -> Vec<Binding> {
        self.bindings
    }

    /// The value of an operand: that of the variable that it is, unless something may write into what it was computed of
    /// before the place of the rewrite.
    pub fn value(&self, e: Expr) -> Expr {
        self.defs.value_beside(self.func, e, self.var)
    }

    /// Binds a value before the one that is replaced; returns the variable as an operand.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        namer.bind(self.func, "lv", value, &mut self.bindings)
    }

    /// A call of an operator with its type inferred. Operands that are no leaves are bound first.
    ///
    /// # Errors
    /// What the operator's type rule says.
    pub fn call(&mut self, op: Op, args: &[Expr], attrs: Attrs) -> Result<Expr, PassError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        let attrs = self.ops.complete(op, attrs);
        let ty = self
            .ops
            .infer(self.func, op, &args, &attrs, &[])
            .map_err(|e: InferError| PassError::user(e.message))?;
        Ok(self.func.call(Callee::Op(op), &args, attrs, &[], ty))
    }

    /// Takes in bindings whose variables the caller has added to the function; they get names of their own.
    pub fn adopt(&mut self, bindings: Vec<Binding>) {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        for b in &bindings {
            let name = self.func.var(b.var).name.clone();
            self.func.var_mut(b.var).name = namer.fresh(&name);
        }
        self.bindings.extend(bindings);
    }

    fn operand(&mut self, e: Expr) -> Expr {
        match self.func.expr(e) {
            ExprData::Call { .. } | ExprData::TupleGetItem(..) | ExprData::If { .. } => {
                self.emit(e)
            }
            _ => e,
        }
    }
}

/// Replaces what a pattern matches by what `callback` makes of it, until nothing matches that it replaces. `None`
/// leaves a match alone. `writers` are those of the function's module: no match reaches over a call of one of them, nor,
/// without them, over the call of any graph function. Returns how many were replaced.
///
/// # Errors
/// A pattern that can never match, a rule that never ends, a replacement that does not fit, errors of the callback.
pub fn rewrite_call(
    func: &mut Function,
    pattern: &Pattern,
    ops: &dyn OpRegistry,
    writers: Option<&Writers>,
    callback: impl FnMut(&mut RewriteCx<'_>, &Match) -> Result<Option<Expr>, PassError>,
) -> Result<usize, PassError> {
    let rules = RuleSet::new([pattern.clone()], ops)?;
    rewrite_rules(func, &rules, ops, writers, callback)
}

/// [`rewrite_call`] for several rules at once; [`Match::rule`] tells which one matched. The first that matches
/// and replaces wins.
///
/// # Errors
/// As [`rewrite_call`].
pub fn rewrite_rules(
    func: &mut Function,
    rules: &RuleSet,
    ops: &dyn OpRegistry,
    writers: Option<&Writers>,
    mut callback: impl FnMut(&mut RewriteCx<'_>, &Match) -> Result<Option<Expr>, PassError>,
) -> Result<usize, PassError> {
    let mut rewriting = Rewriting::new(func, rules, ops, writers);
    let mut namer = None;
    while let Some(found) = rewriting.next(func) {
        let var = rewriting.current().expect("a match has a binding").var;
        let mut cx = RewriteCx {
            func,
            ops,
            defs: rewriting.defs(),
            var,
            bindings: Vec::new(),
            namer: &mut namer,
        };
        let value = callback(&mut cx, &found)?;
        let bindings = cx.bindings;
        if let Some(value) = value {
            rewriting.replace(func, &found, Replacement { bindings, value })?;
        }
    }
    rewriting.finish(func)
}
