//! [`rewrite_call`] and [`rewrite_rules`]: replace the matches of patterns by the results of callbacks, until no pattern matches.

use pliant_ir::Attrs;
use pliant_ir::op::{InferError, Op, OpRegistry};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};

use super::function_rewriter::{Replacement, Rewriter};
use super::pattern_matcher::Match;
use super::pattern_nodes::Pattern;
use super::rewrite_rule_set::RuleSet;
use super::variable_definitions::Defs;
use crate::argument_writing_functions::MayWrite;
use crate::binding_rewrites::Namer;
use crate::pass_error::PassError;

/// The context that the callback of a rewrite rule receives: the function that is rewritten, and the bindings that the callback
/// emits.
pub struct RewriteCx<'a> {
    /// The function being rewritten. The callback may add expressions and types to its arenas.
    pub func: &'a mut Function,
    /// The operator library, which infers the types of new calls.
    pub ops: &'a dyn OpRegistry,
    /// The definitions of the function's variables.
    pub defs: &'a Defs,
    /// The variable whose value was matched.
    pub var: Var,
    bindings: Vec<Binding>,
    namer: &'a mut Option<Namer>,
}

impl<'a> RewriteCx<'a> {
    /// Creates the context for a rewrite of the binding of `var`. `namer` generates the names of new variables; if it is `None`, it
    /// is set when the first name is needed.
    pub fn new(
        func: &'a mut Function,
        ops: &'a dyn OpRegistry,
        defs: &'a Defs,
        var: Var,
        namer: &'a mut Option<Namer>,
    ) -> Self {
        RewriteCx { func, ops, defs, var, bindings: Vec::new(), namer }
    }

    /// The bindings that the callback has emitted, in order.
    pub fn into_bindings(self) -> Vec<Binding> {
        self.bindings
    }

    /// Returns the value to which a variable is bound; operands that are not variables are returned unchanged. A variable is also
    /// returned unchanged if there may be a side effect between its binding and the matched binding, because the side effect may
    /// have overwritten the memory that the value reads.
    pub fn value(&self, e: Expr) -> Expr {
        self.defs.value_in_epoch(self.func, e, self.var)
    }

    /// Emits a binding of a value to a new variable, and returns the variable as an operand. The binding is inserted before the
    /// matched one.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let namer = self.namer.get_or_insert_with(|| Namer::new(self.func));
        namer.bind(self.func, "lv", value, &mut self.bindings)
    }

    /// Creates a call of an operator and infers its type. Arguments that are not operands are bound to variables first.
    ///
    /// # Errors
    /// The errors of the operator's type inference.
    pub fn call(&mut self, op: Op, args: &[Expr], attrs: Attrs) -> Result<Expr, PassError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        let attrs = self.ops.complete(op, attrs);
        let ty = self
            .ops
            .infer(self.func, op, &args, &attrs, &[])
            .map_err(|e: InferError| PassError::user(e.message))?;
        Ok(self.func.call(Callee::Op(op), &args, attrs, &[], ty))
    }

    /// Emits bindings whose variables already exist. The variables are renamed if necessary, so that their names are unique.
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

/// Replaces matches of a pattern by the results of `callback`, until the pattern does not match anymore. If the callback returns
/// `None`, the match is not replaced. Returns the number of replacements.
///
/// No match contains bindings on both sides of a call that may write to its operands. `writers` lists the functions of the module
/// that may write to their arguments; if it is `None`, every graph function is assumed to write.
///
/// # Errors
/// If the pattern can never match, the rule does not terminate, a replacement has an incompatible type, or the callback fails.
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

/// Replaces matches of several rules by the results of `callback`, until no rule matches anymore. For each value, the rules are
/// tried in order until one replaces it. [`Match::rule`] is the index of the rule that matched. Side effects and `writers` are
/// treated as by [`rewrite_call`].
///
/// # Errors
/// The same errors as [`rewrite_call`].
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
        let var = rewriter
            .current()
            .expect("the rewriter has a current binding after it has found a match")
            .var;
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
