//! Traversal of expressions without recursion, because users may build expressions of any depth.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::expr::{Expr, ExprKind, Var};
use super::expr_builders::with_children;
use super::tensor::Tensor;

/// Computes a value for each distinct node under `root`, operands first, and returns the value of
/// the root. `memo` maps the nodes visited so far, by [`Expr::id`], to their values. It may be
/// reused for further roots as long as all visited expressions exist.
///
/// # Errors
/// The first error that `f` returns.
pub fn fold<T: Clone, E>(
    root: &Expr,
    memo: &mut FxHashMap<usize, T>,
    mut f: impl FnMut(&Expr, &[T]) -> Result<T, E>,
) -> Result<T, E> {
    let mut stack: Vec<(&Expr, bool)> = vec![(root, false)];
    let mut values: SmallVec<[T; 4]> = SmallVec::new();
    while let Some((e, expanded)) = stack.pop() {
        if memo.contains_key(&e.id()) {
            continue;
        }
        let children = e.children();
        if !expanded && !children.is_empty() {
            stack.push((e, true));
            stack.extend(children.iter().rev().map(|&c| (c, false)));
            continue;
        }
        values.clear();
        values.extend(children.iter().map(|c| memo[&c.id()].clone()));
        let value = f(e, &values)?;
        memo.insert(e.id(), value);
    }
    Ok(memo[&root.id()].clone())
}

/// The number of terms of the expression written out as a tree, in which a shared node counts at each use. The number saturates at
/// `u64::MAX`.
pub fn tree_size(root: &Expr) -> u64 {
    tree_and_nodes(root).0
}

/// The number of terms of the expression written out as a tree, in which a shared node counts at each use, and the number of its
/// distinct nodes.
pub(super) fn tree_and_nodes(root: &Expr) -> (u64, u64) {
    let mut memo = FxHashMap::default();
    let result: Result<u64, std::convert::Infallible> =
        fold(root, &mut memo, |_, sizes: &[u64]| {
            Ok(sizes.iter().fold(1, |sum: u64, &size| sum.saturating_add(size)))
        });
    match result {
        Ok(size) => (size, memo.len() as u64),
    }
}

/// Visits each distinct node under `root` once, operands first.
pub fn post_order(root: &Expr, mut visit: impl FnMut(&Expr)) {
    let mut seen = FxHashMap::default();
    let result: Result<(), std::convert::Infallible> = fold(root, &mut seen, |e, _| {
        visit(e);
        Ok(())
    });
    match result {
        Ok(()) => {}
    }
}

/// The expression with variables replaced. Nodes that contain none of these variables stay shared.
/// The axes of reductions are not changed.
pub fn substitute(root: &Expr, map: &FxHashMap<Var, Expr>) -> Expr {
    let mut memo = FxHashMap::default();
    let result: Result<Expr, std::convert::Infallible> =
        fold(root, &mut memo, |e, children: &[Expr]| {
            if let Some(replacement) = e.as_var().and_then(|v| map.get(v)) {
                return Ok(replacement.clone());
            }
            Ok(with_children(e, children))
        });
    match result {
        Ok(e) => e,
    }
}

/// The expression with loads redirected to other tensors.
pub fn redirect_loads(root: &Expr, map: &FxHashMap<Tensor, Tensor>) -> Expr {
    let mut memo = FxHashMap::default();
    let result: Result<Expr, std::convert::Infallible> =
        fold(root, &mut memo, |e, children: &[Expr]| {
            Ok(match e.kind() {
                ExprKind::Load(t, _) if map.contains_key(t) => map[t].at(children),
                _ => with_children(e, children),
            })
        });
    match result {
        Ok(e) => e,
    }
}

/// The variables under `root`, in order of appearance. Axes of reductions are included.
pub fn free_vars(root: &Expr) -> Vec<Var> {
    let (mut seen, mut vars) = (FxHashSet::default(), Vec::new());
    post_order(root, |e| {
        if let Some(v) = e.as_var()
            && seen.insert(v.clone())
        {
            vars.push(v.clone());
        }
    });
    vars
}

/// The tensors whose elements are read under `root`, in order of appearance.
pub fn tensors_read(root: &Expr) -> Vec<Tensor> {
    let (mut seen, mut tensors) = (FxHashSet::default(), Vec::new());
    post_order(root, |e| {
        if let ExprKind::Load(t, _) = e.kind()
            && seen.insert(t.clone())
        {
            tensors.push(t.clone());
        }
    });
    tensors
}
