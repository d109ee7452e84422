//! [`RuleSet`]: the patterns of rewrite rules, indexed by the operator whose calls they match.

use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_ir::{Op, OpRegistry};
use rustc_hash::FxHashMap;

use super::impossible_patterns::check;
use super::pattern_matcher::{Match, Search, Syms};
use super::pattern_nodes::Pattern;
use super::pattern_table::{
    CALL, CONSTANT, FIELD, LEAF, NAME, NodeId, OTHER, PatternTable, SHAPE, TUPLE,
};
use super::variable_definitions::Defs;
use crate::pass_error::PassError;

/// The pattern of one rewrite rule as a flat table.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub pattern: Pattern,
    pub table: PatternTable,
    pub root: NodeId,
}

/// The patterns of rewrite rules, in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    pub(crate) rules: Vec<Rule>,
    /// Maps each operator that a rule requires to the indices of all rules that may match its calls, including the rules in
    /// `any_op`. For other operators, only the rules in `any_op` are tried.
    by_op: FxHashMap<Op, Vec<u32>>,
    /// The indices of the rules that may match calls of any operator.
    any_op: Vec<u32>,
    /// The indices of the rules that may match values other than operator calls, each with the bit set of the kinds of values
    /// that the rule may match.
    others: Vec<(u32, u16)>,
}

impl RuleSet {
    /// Creates a rule set from the patterns of the rules.
    ///
    /// # Errors
    /// If some patterns can never match: all reasons why.
    pub fn new(
        patterns: impl IntoIterator<Item = Pattern>,
        ops: &dyn OpRegistry,
    ) -> Result<Self, PassError> {
        let mut set = RuleSet::default();
        let mut errors = Vec::new();
        for pattern in patterns {
            if let Err(e) = check(&pattern, ops) {
                errors.push(e);
            }
            let mut table = PatternTable::default();
            let root = table.add(&pattern);
            set.rules.push(Rule { pattern, table, root });
        }
        match PassError::join(errors) {
            Some(e) => Err(e),
            None => {
                set.index();
                Ok(set)
            }
        }
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The pattern of a rule.
    pub fn pattern(&self, rule: usize) -> &Pattern {
        &self.rules[rule].pattern
    }

    fn index(&mut self) {
        let root_kinds = |rule: &Rule| rule.table.root_kinds[rule.root as usize].clone();
        for rule in &self.rules {
            for op in root_kinds(rule).ops.into_iter().flatten() {
                self.by_op.entry(op).or_default();
            }
        }
        for (i, rule) in self.rules.iter().enumerate() {
            let (i, root) = (i as u32, root_kinds(rule));
            if root.kinds != 0 {
                self.others.push((i, root.kinds));
            }
            match root.ops {
                None => {
                    self.any_op.push(i);
                    self.by_op.values_mut().for_each(|list| list.push(i));
                }
                Some(ops) => ops.into_iter().for_each(|op| {
                    self.by_op.entry(op).or_default().push(i);
                }),
            }
        }
    }

    /// Calls `visit` with the indices of the rules from `from` on that may match a value, in order, until `visit` returns true.
    pub(crate) fn candidates(
        &self,
        func: &Function,
        value: Expr,
        from: usize,
        mut visit: impl FnMut(usize) -> bool,
    ) {
        let kind = match func.expr(value) {
            ExprData::Call { callee: Callee::Op(op), .. } => {
                let list = self.by_op.get(op).unwrap_or(&self.any_op);
                for &i in list.iter().filter(|&&i| i as usize >= from) {
                    if visit(i as usize) {
                        return;
                    }
                }
                return;
            }
            ExprData::Call { .. } => CALL,
            ExprData::Tuple(_) => TUPLE,
            ExprData::TupleGetItem(..) => FIELD,
            ExprData::Global(_) | ExprData::Extern(_) => NAME,
            ExprData::If { .. } | ExprData::Func(_) | ExprData::Var(_) => OTHER,
            ExprData::Constant(_) => CONSTANT,
            ExprData::Shape(_) => SHAPE,
            _ => LEAF,
        };
        for &(i, kinds) in &self.others {
            if i as usize >= from && kinds & kind != 0 && visit(i as usize) {
                return;
            }
        }
    }

    /// Whether any rule may match a value. This only compares the kind of the value and its operator, not its operands.
    pub fn may_match(&self, func: &Function, value: Expr) -> bool {
        let mut any = false;
        self.candidates(func, value, 0, |_| {
            any = true;
            true
        });
        any
    }

    /// Tries the rules on a value in order, and returns the match of the first rule that matches.
    pub fn match_value(
        &self,
        func: &Function,
        defs: &Defs,
        ops: &dyn OpRegistry,
        value: Expr,
    ) -> Option<Match> {
        let (mut syms, mut result) = (Syms::Copy(None), None);
        self.candidates(func, value, 0, |rule| {
            let entry = &self.rules[rule];
            let mut search = Search::new(func, &mut syms, defs, ops, &entry.table);
            if search.find(entry.root, value) {
                result = Some(search.to_match(rule));
            }
            result.is_some()
        });
        result
    }
}
