//! Finds the symbols that constraints restrict to few sizes, or to none.

use pliant_ir::relax::Function;
use pliant_sym::SymVar;
use rustc_hash::{FxHashMap, FxHashSet};

use super::SymbolConstraints;
use crate::import_error::Problem;
use crate::shape_constraint_report::{Branch, Constraint, DeclaredBy, SymbolInfo};
use crate::symbolic_size_condition::SizeRelation;
use crate::value_origins::Origin;

impl SymbolConstraints {
    /// Finds for each constraint the declared symbols that it restricts to few sizes. A symbol that
    /// must equal a restricted symbol is restricted, too.
    pub(super) fn find_fixed_symbols(&mut self, func: &Function) {
        let mut equal = EqualSymbols::default();
        for c in &self.report.constraints {
            if let SizeRelation::Equal(a, b) = c.relation
                && let (Some(a), Some(b)) = (func.syms.as_var(a), func.syms.as_var(b))
            {
                equal.unite(a, b);
            }
        }
        let fixed = |c: &Constraint| {
            let mut indices: Vec<usize> = Vec::new();
            let vars = c.relation.symbols(&func.syms);
            let range = match vars[..] {
                [var] => self.symbols.get(&var).map(|&at| self.report.symbols[at].own_range()),
                _ => None,
            };
            if c.relation.allows_few_sizes(&func.syms, range.unwrap_or_default()) {
                let groups: Vec<SymVar> =
                    vars.into_iter().map(|v| equal.representative(v)).collect();
                let members = self
                    .symbols
                    .iter()
                    .filter(|(v, _)| groups.contains(&equal.representative(**v)));
                indices.extend(
                    members.map(|(_, &at)| at).filter(|&at| self.report.symbols[at].may_vary()),
                );
            }
            indices.sort_unstable();
            indices.into_iter().map(|at| self.report.symbols[at].name.clone()).collect()
        };
        let all: Vec<Vec<String>> = self.report.constraints.iter().map(fixed).collect();
        let mut paths: FxHashMap<String, BranchPaths> = FxHashMap::default();
        for (c, names) in self.report.constraints.iter().zip(&all) {
            for name in names {
                paths.entry(name.clone()).or_default().add(&c.control.branches);
            }
        }
        for (c, names) in self.report.constraints.iter_mut().zip(all) {
            let (always, sometimes): (Vec<String>, Vec<String>) =
                names.into_iter().partition(|name| paths[name].cover_all());
            c.fixes = always;
            if !c.control.branches.iter().any(|b| b.by_sizes) {
                c.may_fix = sometimes;
            }
        }
    }

    /// Returns a diagnostic for each symbol for which no size in the declared range satisfies all constraints. These are errors
    /// even if specialization is allowed.
    pub(crate) fn unsatisfiable_symbols(&self, func: &mut Function) -> Vec<Problem> {
        let mut vars: Vec<(usize, SymVar)> = self.symbols.iter().map(|(v, at)| (*at, *v)).collect();
        vars.sort_unstable();
        let mut problems = Vec::new();
        for (at, var) in vars {
            let info = &self.report.symbols[at];
            // The range applies to the declared size, not to the quotient that the symbol represents.
            if info.range == (None, None) || info.divisor.is_some_and(|by| by != 1) {
                continue;
            }
            let (mut low, mut high) = (info.range.0.unwrap_or(0).max(0), info.range.1);
            let mut last = None;
            for c in self.report.constraints.iter().filter(|c| !c.control.conditional) {
                let (min_value, max_value) = match &c.relation {
                    SizeRelation::OneOf(term, values) if func.syms.as_var(*term) == Some(var) => {
                        let fits = |v: &&i64| **v >= low && high.is_none_or(|h| **v <= h);
                        let fit: Vec<i64> = values.iter().filter(fits).copied().collect();
                        // No value is in the range.
                        let empty_range = (Some(i64::MAX), Some(0));
                        fit.iter()
                            .min()
                            .map_or(empty_range, |&l| (Some(l), fit.iter().max().copied()))
                    }
                    other => match other.symbol_bounds(&mut func.syms) {
                        Some((of, min_value, max_value)) if of == var => (min_value, max_value),
                        _ => continue,
                    },
                };
                low = min_value.map_or(low, |l| low.max(l));
                high = max_value.map_or(high, |m| Some(high.map_or(m, |h| h.min(m))));
                if high.is_some_and(|h| h < low) {
                    last = Some(c);
                    break;
                }
            }
            if high.is_none_or(|h| h >= low) {
                continue;
            }
            problems.push(info.unsatisfiable_problem(last));
        }
        problems
    }

    /// Returns errors and warnings for the constraints that restrict declared symbols to few sizes. If specialization is `allowed`,
    /// there are only warnings.
    pub(crate) fn specialization_problems(&self, allowed: bool) -> (Vec<Problem>, Vec<Problem>) {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        let all = &self.report.constraints;
        let is_reported =
            |c: &&Constraint| !c.fixes.is_empty() && !all.iter().any(|o| o.is_stricter_than(c));
        for c in all.iter().filter(is_reported) {
            let is_user_declared =
                |s: &&SymbolInfo| s.declared == DeclaredBy::User && c.fixes.contains(&s.name);
            let by_user = self.report.symbols.iter().any(|s| is_user_declared(&s));
            let list = if allowed { &mut warnings } else { &mut problems };
            list.push(self.violation(c, by_user, allowed));
        }
        for c in self.report.constraints.iter().filter(|c| !c.may_fix.is_empty()) {
            let names = c.may_fix.join(", ");
            let message = format!(
                "in runs that execute the node, {names} can have no other size: {}",
                c.text()
            );
            let problem = Problem::invalid(message);
            let help = "a run that takes the other branch may have any size";
            warnings.push(problem.with_help(help).at_node(&c.node, &c.operator));
        }
        (problems, warnings)
    }

    /// Returns the error (or the warning, if specialization is `allowed`) for a constraint that restricts declared symbols to few
    /// sizes. `by_user` states whether the user, and not the file, declares them.
    fn violation(&self, c: &Constraint, by_user: bool, allowed: bool) -> Problem {
        let noun = if c.fixes.len() == 1 { "symbol" } else { "symbols" };
        let whose = if by_user { "declared" } else { "file's" };
        let (names, text) = (c.fixes.join(", "), c.text());
        let mut message = format!("the {whose} {noun} {names} would be fixed: {text}");
        // If a symbol is fixed through another one, name the constraint that makes them equal.
        for name in c.fixes.iter().filter(|name| !c.symbols.contains(name)) {
            let relates = |o: &&Constraint| {
                matches!(o.relation, SizeRelation::Equal(..)) && o.symbols.contains(name)
            };
            if let Some(equality) = self.report.constraints.iter().find(relates) {
                message.push_str(&format!("; {} needs {}", equality.node, equality.needs));
            }
        }
        let help = match allowed {
            true => "this is allowed, and the model supports no other size",
            false => {
                "export the model with that size dynamic, declare the number instead of a symbol, or allow it: \
                 allow_specialization=True, on the command line --allow-specialization"
            }
        };
        Problem::invalid(message).with_help(help).at_node(&c.node, &c.operator)
    }
}

/// For one symbol, the combinations of `If` branches such that the symbol is restricted to few sizes in runs that take these
/// branches.
#[derive(Default)]
struct BranchPaths {
    paths: FxHashSet<Vec<(Origin, bool)>>,
}

impl BranchPaths {
    /// Adds a combination of branches. If the combinations for both branches of an `If` node are
    /// present, they are replaced by one combination without that node.
    fn add(&mut self, branches: &[Branch]) {
        let mut way: Vec<(Origin, bool)> = branches.iter().map(|b| (b.node, b.then)).collect();
        self.paths.insert(way.clone());
        while let Some((node, then)) = way.pop() {
            let mut other = way.clone();
            other.push((node, !then));
            if !self.paths.contains(&other) {
                break;
            }
            self.paths.insert(way.clone());
        }
    }

    /// Whether the combinations cover all runs, so that the symbol is restricted in every run.
    fn cover_all(&self) -> bool {
        self.paths.contains(&Vec::new())
    }
}

/// Sets of symbols that must be equal, as a union-find structure.
#[derive(Default)]
struct EqualSymbols {
    parent: FxHashMap<SymVar, SymVar>,
}

impl EqualSymbols {
    /// The symbol that represents the set of the given symbol.
    fn representative(&self, mut var: SymVar) -> SymVar {
        while let Some(&next) = self.parent.get(&var) {
            var = next;
        }
        var
    }

    /// Records that two symbols must be equal: merges the sets to which they belong.
    fn unite(&mut self, a: SymVar, b: SymVar) {
        let (a, b) = (self.representative(a), self.representative(b));
        if a != b {
            self.parent.insert(a, b);
        }
    }
}
