//! [`rewrite_call`]: applies rules with callbacks until none matches.

use pliant_ir::Attrs;
use pliant_ir::op::{InferError, Op, OpRegistry};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};

use super::defs::Defs;
use super::matcher::Match;
use super::node::Pattern;
use super::rewriter::{Replacement, Rewriter};
use super::rules::RuleSet;
use crate::error::PassError;
use crate::may_write::MayWrite;
use crate::rewrite::Namer;

/// The context of a rule's callback: the function, and the bindings to insert.
pub struct RewriteCx<'a> {
    /// The function being rewritten. The callback may add to its arenas.
    pub func: &'a mut Function,
    /// The operator library.
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

    /// The value of an operand. If it is a variable, this is the variable's value, unless memory
    /// that the value was computed from may be overwritten before the location of the rewrite.
    pub fn value(&self, e: Expr) -> Expr {
        self.defs.value_in_epoch(self.func, e, self.var)
    }

    /// Binds a value before the replaced one. Returns the variable as an operand.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        namer.bind(self.func, "lv", value, &mut self.bindings)
    }

    /// Creates a call of an operator with its inferred type. Operands that are not leaves are bound
    /// first.
    ///
    /// # Errors
    /// Those of the operator's type inference.
    pub fn call(&mut self, op: Op, args: &[Expr], attrs: Attrs) -> Result<Expr, PassError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        let attrs = self.ops.complete(op, attrs);
        let ty = self
            .ops
            .infer(self.func, op, &args, &attrs, &[])
            .map_err(|e: InferError| PassError::user(e.message))?;
        Ok(self.func.call(Callee::Op(op), &args, attrs, &[], ty))
    }

    /// Adds bindings whose variables the caller has added to the function. The variables get unique
    /// names.
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

/// Replaces matches of a pattern by the results of `callback`, until there are no more matches. If
/// the callback returns `None`, the match is kept. `writers` are those of the function's module. No
/// match spans a call of one of them or, if they are unknown, a call of any graph function. Returns
/// the number of replacements.
///
/// # Errors
/// A pattern that can never match, a rule that does not terminate, a replacement of an incompatible
/// type, and errors of the callback.
pub fn rewrite_call(
    func: &mut Function,
    pattern: &Pattern,
    ops: &dyn OpRegistry,
    writers: Option<&MayWrite>,
    callback: impl FnMut(&mut RewriteCx<'_>, &Match) -> Result<Option<Expr>, PassError>,
) -> Result<usize, PassError> {
    let rules = RuleSet::new([pattern.clone()], ops)?;
    rewrite_rules(func, &rules, ops, writers, callback)
}

/// As [`rewrite_call`], for several rules. [`Match::rule`] is the rule that matched. Rules are
/// tried in order, until one matches and replaces.
///
/// # Errors
/// As [`rewrite_call`].
pub fn rewrite_rules(
    func: &mut Function,
    rules: &RuleSet,
    ops: &dyn OpRegistry,
    writers: Option<&MayWrite>,
    mut callback: impl FnMut(&mut RewriteCx<'_>, &Match) -> Result<Option<Expr>, PassError>,
) -> Result<usize, PassError> {
    let mut rewriter = Rewriter::new(func, rules, ops, writers);
    let mut namer = None;
    while let Some(matched) = rewriter.next(func) {
        let var = rewriter.current().expect("a match has a binding").var;
        let mut cx = RewriteCx {
            func,
            ops,
            defs: rewriter.defs(),
            var,
            bindings: Vec::new(),
            namer: &mut namer,
        };
        let value = callback(&mut cx, &matched)?;
        let bindings = cx.bindings;
        if let Some(value) = value {
            rewriter.replace(func, &matched, Replacement { bindings, value })?;
        }
    }
    rewriter.finish(func)
}
