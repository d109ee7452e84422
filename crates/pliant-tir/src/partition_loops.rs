//! PartitionLoops: splits each loop of a function that a user has scheduled (`tir.is_scheduled`) into a first part, in which
//! conditions in its body always hold, and the rest.
//!
//! A split whose factors do not divide the extent of a loop guards its blocks by conditions such as `i_0 * 4 + i_1 < n`, which hold
//! except in the last iterations of the outer loop. In the first part, the conditions are removed, so that inner loops are
//! vectorized without them. In the rest, loops whose whole body is guarded by a condition end where it becomes false, and other
//! conditions move out of the loops on which they do not depend.

use pliant_ir::tir::{BinOp, Expr, ExprData, ForKind, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::access_guards::reads_memory;
use crate::index_arithmetic::{conjuncts, linear_index, product, sum};
use crate::lowering_error::LowerError;
use crate::lowering_pipeline::is_scheduled;
use crate::statement_traversal::{
    for_each_stmt, map_children, map_stmts, substitute, unique_vars, uses_any,
};

/// Maximum number of nested loops that are partitioned: split into a first part, in which conditions are removed, and
/// the rest. Each partitioned loop doubles the code inside it.
const MAX_DEPTH: usize = 3;

/// If a user has scheduled a function, splits its loops into a first part, in which conditions in the body always hold
/// and are removed, and the rest.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if is_scheduled(f) {
        let body = f.body;
        let body = partition(f, body, 0);
        let body = trim(f, body);
        f.body = unique_vars(f, body);
    }
    Ok(())
}

/// Splits the loops in a statement into a first part, in which conditions in the body always hold and are removed, and
/// the rest. `depth` is the number of split loops around the statement.
fn partition(f: &mut PrimFunc, s: Stmt, depth: usize) -> Stmt {
    let StmtData::For { var, min, extent, kind, body, annotations } = f.stmt(s).clone() else {
        return map_children(f, s, &mut |f, c| partition(f, c, depth));
    };
    let conditions = match f.as_int(min) {
        Some(0) if depth < MAX_DEPTH => removable_conditions(f, var, body),
        _ => Vec::new(),
    };
    let Some(end) = end_of_main_part(f, &conditions, extent) else {
        return map_children(f, s, &mut |f, c| partition(f, c, depth));
    };
    if end == extent {
        let removed: FxHashSet<Expr> = conditions.iter().map(|condition| condition.expr).collect();
        let body = without_conditions(f, body, &removed);
        let new = f.add_stmt(StmtData::For { var, min, extent, kind, body, annotations });
        return map_children(f, new, &mut |f, c| partition(f, c, depth));
    }
    let removed: FxHashSet<Expr> = conditions.iter().map(|condition| condition.expr).collect();
    let main = without_conditions(f, body, &removed);
    let main = partition(f, main, depth + 1);
    let main = f.add_stmt(StmtData::For {
        var,
        min,
        extent: end,
        kind,
        body: main,
        annotations: annotations.clone(),
    });
    let rest_var = f.add_var(f.var(var).name.clone(), f.var(var).ty);
    let rest_expr = f.var_expr(rest_var);
    let value = f.add(end, rest_expr);
    let rest = substitute(f, body, &FxHashMap::from_iter([(var, value)]));
    let rest = partition(f, rest, depth + 1);
    let rest_extent = f.binary(BinOp::Sub, extent, end);
    let rest = f.add_stmt(StmtData::For {
        var: rest_var,
        min,
        extent: rest_extent,
        kind,
        body: rest,
        annotations,
    });
    f.seq(vec![main, rest])
}

/// A condition in the body of a loop that holds in the first iterations of the loop and can be removed from them.
struct Condition {
    expr: Expr,
    /// The number of iterations at the start of the loop in which the condition holds. It may be negative or larger than the extent
    /// of the loop.
    iterations: Expr,
}

/// Returns the conditions in the body of the loop over `var` that hold in its first iterations, whatever the values of the
/// variables that the body defines.
fn removable_conditions(f: &mut PrimFunc, var: Var, body: Stmt) -> Vec<Condition> {
    let (mut inner, mut bound, mut candidates) =
        (FxHashMap::default(), FxHashSet::default(), Vec::new());
    for_each_stmt(f, body, &mut |_, data| match data {
        StmtData::For { var, min, extent, .. } => {
            bound.insert(*var);
            inner.insert(*var, (*min, *extent));
        }
        StmtData::Let(var, ..) => {
            bound.insert(*var);
        }
        StmtData::If(condition, _, None) => conjuncts(f, *condition, &mut candidates),
        _ => {}
    });
    let mut found: Vec<Condition> = Vec::new();
    for expr in candidates {
        if found.iter().any(|condition| condition.expr == expr) {
            continue;
        }
        // The body may write memory that a condition reads.
        if reads_memory(f, expr) {
            continue;
        }
        if let Some(iterations) = iterations_of(f, expr, var, &inner, &bound) {
            found.push(Condition { expr, iterations });
        }
    }
    found
}

/// Returns the number of iterations, at the start of the loop over `var`, in which a condition holds, whatever the values of the
/// variables that the body defines. `None` if the condition does not have the form `index < limit`, where the index is linear in
/// these variables and grows with `var`. `bound` contains the variables that the body defines, and `inner` maps the variables of
/// its loops to (first value, extent).
fn iterations_of(
    f: &mut PrimFunc,
    condition: Expr,
    var: Var,
    inner: &FxHashMap<Var, (Expr, Expr)>,
    bound: &FxHashSet<Var>,
) -> Option<Expr> {
    let ExprData::Binary(BinOp::Lt, index, limit) = *f.expr(condition) else { return None };
    let is_inside = |v: Var| v == var || bound.contains(&v);
    if uses_any(f, limit, &is_inside) {
        return None;
    }
    let linear = linear_index(f, index, &is_inside)?;
    let factor = linear.terms.iter().find(|(v, _)| *v == var)?.1;
    if factor <= 0 {
        return None;
    }
    // The largest value of the other variables.
    let mut largest = 0i64;
    for &(v, coefficient) in linear.terms.iter().filter(|(v, _)| *v != var) {
        let &(min, extent) = inner.get(&v)?;
        let (first, count) = (f.as_int(min)?, f.as_int(extent)?);
        let last = first.checked_add(count.checked_sub(1)?)?;
        let value = if coefficient > 0 { last } else { first };
        largest = largest.checked_add(value.checked_mul(coefficient)?)?;
    }
    // factor * v + rest + largest < limit holds for v <= (limit - rest - largest - 1) // factor.
    let mut bound = f.int(largest.checked_add(1)?.checked_neg()?);
    for &(e, coefficient) in &linear.rest {
        let coefficient = f.int(coefficient.checked_neg()?);
        let term = product(f, e, coefficient);
        bound = sum(f, bound, term);
    }
    let bound = sum(f, limit, bound);
    if let Some(bound) = f.as_int(bound) {
        return Some(f.int(bound.div_euclid(factor) + 1));
    }
    let factor = f.int(factor);
    let last = f.binary(BinOp::FloorDiv, bound, factor);
    let one = f.int(1);
    Some(sum(f, last, one))
}

/// Returns the number of iterations of the first part of the loop, in which all conditions hold; `None` if the loop is not
/// partitioned.
fn end_of_main_part(f: &mut PrimFunc, conditions: &[Condition], extent: Expr) -> Option<Expr> {
    let all = conditions
        .iter()
        .map(|condition| condition.iterations)
        .reduce(|a, b| f.binary(BinOp::Min, a, b))?;
    let zero = f.int(0);
    match (f.as_int(all), f.as_int(extent)) {
        (Some(all), Some(extent)) if all > 0 => Some(f.int(all.min(extent))),
        // The conditions of a loop with few iterations are not worth a copy of the code.
        (_, Some(_)) => None,
        _ => {
            let at_most = f.binary(BinOp::Min, all, extent);
            Some(f.binary(BinOp::Max, at_most, zero))
        }
    }
}

/// Removes the conditions in `removed` from the `if` statements in a statement, because they are known to hold.
fn without_conditions(f: &mut PrimFunc, s: Stmt, removed: &FxHashSet<Expr>) -> Stmt {
    map_stmts(f, s, &mut |f, s| {
        let StmtData::If(condition, then, None) = *f.stmt(s) else { return None };
        let mut all = Vec::new();
        conjuncts(f, condition, &mut all);
        let kept: Vec<Expr> = all.iter().copied().filter(|e| !removed.contains(e)).collect();
        if kept.len() == all.len() {
            return None;
        }
        match kept.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b)) {
            None => Some(then),
            Some(condition) => Some(f.add_stmt(StmtData::If(condition, then, None))),
        }
    })
}

/// Makes a loop end where the condition around its whole body becomes false, and moves conditions out of the loops on which they do
/// not depend.
fn trim(f: &mut PrimFunc, s: Stmt) -> Stmt {
    map_stmts(f, s, &mut |f, s| {
        let StmtData::For { var, min, extent, kind, body, annotations } = f.stmt(s).clone() else {
            return None;
        };
        let StmtData::If(condition, then, None) = *f.stmt(body) else { return None };
        if f.as_int(min) != Some(0) {
            return None;
        }
        let mut all = Vec::new();
        conjuncts(f, condition, &mut all);
        let (mut outside, mut inside, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for expr in all {
            let none = (FxHashMap::default(), FxHashSet::default());
            match iterations_of(f, expr, var, &none.0, &none.1) {
                _ if reads_memory(f, expr) => inside.push(expr),
                _ if !uses_any(f, expr, &|v| v == var) => outside.push(expr),
                Some(iterations) => ends.push(Condition { expr, iterations }),
                None => inside.push(expr),
            }
        }
        if outside.is_empty() && ends.is_empty() {
            return None;
        }
        let (mut new_extent, mut new_kind) = (extent, kind);
        if !ends.is_empty() {
            let zero = f.int(0);
            for end in &ends {
                new_extent = f.binary(BinOp::Min, new_extent, end.iterations);
            }
            new_extent = f.binary(BinOp::Max, new_extent, zero);
            if matches!(kind, ForKind::Vectorized | ForKind::Unrolled) {
                new_kind = ForKind::Serial;
            }
        }
        let all_of = |f: &mut PrimFunc, list: Vec<Expr>| {
            list.into_iter().reduce(|a, b| f.binary(BinOp::And, a, b))
        };
        let guarded = |f: &mut PrimFunc, condition: Option<Expr>, body: Stmt| match condition {
            Some(condition) => f.add_stmt(StmtData::If(condition, body, None)),
            None => body,
        };
        let (outside, inside) = (all_of(f, outside), all_of(f, inside));
        let body = guarded(f, inside, then);
        let new = f.add_stmt(StmtData::For {
            var,
            min,
            extent: new_extent,
            kind: new_kind,
            body,
            annotations,
        });
        Some(guarded(f, outside, new))
    })
}
