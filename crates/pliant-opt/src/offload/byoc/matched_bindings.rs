//! Finds the bindings of a pattern match, if one call can replace all of them.

use std::sync::Arc;

use pliant_ir::OpRegistry;
use pliant_ir::relax::visit::{Event, for_each_expr, walk};
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_pass::pattern::{Defs, Match};
use pliant_pass::{MayWrite, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::backend_patterns::{FusionPattern, PatternCheck};

/// Returns the bindings of a match in program order, with the root last. They must be pure, in one block, and not in `excluded`.
/// Except for the root, nothing outside of the match may read them. If a condition does not hold, or if the pattern's check
/// rejects the match, the inner result is an error with the reason.
///
/// # Errors
/// If the pattern's check fails.
pub fn members(
    func: &mut Arc<Function>,
    ops: &dyn OpRegistry,
    read_info: &ReadInfo,
    (pattern, matched): (&FusionPattern, &Match),
    root: Binding,
    excluded: &FxHashSet<Var>,
) -> Result<Result<Vec<Binding>, &'static str>, PassError> {
    let defs = &read_info.defs;
    let mut member_vars: FxHashSet<Var> = FxHashSet::from_iter([root.var]);
    member_vars.extend(matched.computed().filter_map(|e| read_info.origin(func, e)));
    let mut members: Vec<(usize, Binding)> =
        member_vars.iter().filter_map(|v| read_info.bindings.get(v).copied()).collect();
    members.sort_unstable_by_key(|(at, _)| *at);
    let is_read_only_inside = |b: &Binding| {
        let readers = read_info.readers.get(&b.var).map_or(&[][..], Vec::as_slice);
        b.var == root.var || readers.iter().all(|r| r.is_some_and(|r| member_vars.contains(&r)))
    };
    let has_all = members.len() == member_vars.len();
    let members: Vec<Binding> = members.into_iter().map(|(_, b)| b).collect();
    let problem = binding_problem(func, ops, defs, &members, root, excluded);
    if let Some(problem) = problem.or((!has_all).then_some(OTHER_BLOCK)) {
        return Ok(Err(problem));
    }
    if !members.iter().all(is_read_only_inside) {
        return Ok(Err(
            "an operator outside of the match reads an intermediate result of the match, which would no longer be computed",
        ));
    }
    if let Some(check) = &pattern.check {
        let mut pattern_check = PatternCheck {
            func: &mut *func,
            defs,
            matched,
            root,
            members: &members,
            annotations: &pattern.annotations,
        };
        if !check(&mut pattern_check)? {
            return Ok(Err("the check function of the pattern has rejected the matched operators"));
        }
    }
    Ok(Ok(members))
}

const OTHER_BLOCK: &str =
    "the matched operators are not all in the same binding block, so one call cannot replace them";

/// Returns the reason why one call cannot replace bindings, of which `root` is the last one; `None` if it can.
fn binding_problem(
    func: &Function,
    ops: &dyn OpRegistry,
    defs: &Defs,
    members: &[Binding],
    root: Binding,
    excluded: &FxHashSet<Var>,
) -> Option<&'static str> {
    if members.iter().any(|b| excluded.contains(&b.var)) {
        return Some(
            "a matched operator is already part of another match, and matches must not overlap",
        );
    }
    if members.iter().any(|b| b.cast.is_some()) {
        return Some(
            "an intermediate result of the match is an R.match_cast, which a call cannot replace",
        );
    }
    if members.iter().any(|b| !defs.is_pure(func, ops, b.value)) {
        return Some("a matched operator has side effects, so a call cannot replace it");
    }
    if members.iter().any(|b| defs.block(b.var) != defs.block(root.var)) {
        return Some(OTHER_BLOCK);
    }
    if members.iter().any(|b| defs.epoch(b.var) != defs.epoch(root.var)) {
        return Some(
            "an operator with side effects runs between the matched operators, so one call cannot replace them",
        );
    }
    None
}

/// An index of a function's variables: for each variable, its value, its copies, and the bindings that read it.
pub struct ReadInfo {
    /// The values to which variables are bound.
    pub defs: Defs,
    /// Maps each variable to the variables that are copies of it (`y = x`).
    copies: FxHashMap<Var, Vec<Var>>,
    /// Maps each variable to the variables of the bindings that read it or a copy of it. `None` stands for the result of a
    /// sequence.
    readers: FxHashMap<Var, Vec<Option<Var>>>,
    /// Maps each variable to (number of preceding bindings, its binding).
    bindings: FxHashMap<Var, (usize, Binding)>,
}

impl ReadInfo {
    /// Collects the values, copies and readers of the variables of a function.
    pub fn of(func: &Function, ops: &dyn OpRegistry, writers: &MayWrite) -> Self {
        let defs = Defs::of(func, ops, Some(writers));
        let mut readers: FxHashMap<Var, Vec<Option<Var>>> = FxHashMap::default();
        let mut bindings = FxHashMap::default();
        let mut read = |e: Expr, by: Option<Var>| {
            for_each_expr(func, e, |e| {
                if let ExprData::Var(v) = func.expr(defs.origin(func, e)) {
                    readers.entry(*v).or_default().push(by);
                }
            });
        };
        let mut copies: FxHashMap<Var, Vec<Var>> = FxHashMap::default();
        walk(func, func.root(), |event| match event {
            Event::EnterBinding(_, b) => {
                bindings.insert(b.var, (bindings.len(), b));
                if !is_copy(func, &b) {
                    read(b.value, Some(b.var));
                } else if let ExprData::Var(v) = func.expr(defs.origin(func, b.value)) {
                    copies.entry(*v).or_default().push(b.var);
                }
            }
            Event::Result(seq) => read(func.seq(seq).result, None),
            _ => {}
        });
        ReadInfo { defs, copies, readers, bindings }
    }

    /// Returns the variables that are copies of `v`.
    pub fn copies(&self, v: Var) -> &[Var] {
        self.copies.get(&v).map_or(&[], Vec::as_slice)
    }

    /// Returns the original variable of an expression that is a variable or a copy of one; `None` for other expressions.
    pub fn origin(&self, func: &Function, e: Expr) -> Option<Var> {
        match func.expr(self.defs.origin(func, e)) {
            ExprData::Var(v) => Some(*v),
            _ => None,
        }
    }
}

/// Whether a binding copies a variable.
pub fn is_copy(func: &Function, b: &Binding) -> bool {
    b.cast.is_none() && matches!(func.expr(b.value), ExprData::Var(_))
}
