//! The region of a buffer that is accessed inside a loop.

use pliant_ir::tir::{BinOp, Buffer, Expr, PrimFunc, Stmt, Var};
use pliant_tir::statement_traversal::substitute_expr;
use rustc_hash::FxHashMap;

use crate::arithmetic::{linear_index, product, sum};
use crate::loop_tree::{Loop, as_loop, for_each_body_expr, path_to};
use pliant_ir::tir::{BlockData, ExprData, StmtData};
use pliant_tir::statement_traversal::for_each_stmt;

/// The range of indices of one dim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DimRange {
    /// The first index.
    pub min: Expr,
    /// The number of indices.
    pub extent: Expr,
    /// Whether the range is the whole dim.
    pub is_whole: bool,
}

/// An access inside a loop: its indices over loop variables, and the loops inside of the loop that enclose it.
struct Access {
    indices: Vec<Expr>,
    inner: Vec<Loop>,
}

/// Returns the smallest range of each dim that contains all accesses of a buffer in the iterations of the loops inside `outer`. A
/// dim whose indices are not linear in the loop variables is accessed as a whole. `is_access` selects loads or stores.
pub(crate) fn accessed_region(
    f: &mut PrimFunc,
    outer: Stmt,
    buffer: Buffer,
    stores: bool,
) -> Vec<DimRange> {
    let accesses = accesses_in(f, outer, buffer, stores);
    let shape = f.buffer(buffer).shape.clone();
    let whole = |f: &mut PrimFunc, dim: usize| DimRange {
        min: f.int(0),
        extent: shape[dim],
        is_whole: true,
    };
    (0..shape.len())
        .map(|dim| {
            let ranges: Option<Vec<IndexRange>> =
                accesses.iter().map(|access| index_range(f, access, dim)).collect();
            match ranges.and_then(|ranges| union(f, &ranges)) {
                Some((min, extent)) if extent != shape[dim] => {
                    DimRange { min, extent, is_whole: false }
                }
                _ => whole(f, dim),
            }
        })
        .collect()
}

/// Returns the accesses of a buffer in the blocks inside a loop.
fn accesses_in(f: &mut PrimFunc, outer: Stmt, buffer: Buffer, stores: bool) -> Vec<Access> {
    let mut found: Vec<(Stmt, BlockData, Vec<Box<[Expr]>>)> = Vec::new();
    for_each_stmt(f, outer, &mut |s, data| {
        let StmtData::Block(block) = data else { return };
        let mut indices: Vec<Box<[Expr]>> = Vec::new();
        if stores {
            for_each_stmt(f, block.body, &mut |_, data| {
                if let StmtData::Store { buffer: b, indices: i, .. } = data
                    && *b == buffer
                {
                    indices.push(i.clone());
                }
            });
        } else {
            for_each_body_expr(f, block, &mut |e| {
                if let ExprData::Load(b, i) = f.expr(e)
                    && *b == buffer
                {
                    indices.push(i.clone());
                }
            });
        }
        if !indices.is_empty() {
            found.push((s, (**block).clone(), indices));
        }
    });
    let mut accesses = Vec::new();
    for (stmt, block, list) in found {
        let path = path_to(f, &|s, _| s == stmt);
        let below = path.iter().position(|&s| s == outer).map_or(0, |i| i + 1);
        let inner: Vec<Loop> = path[below..].iter().filter_map(|&s| as_loop(f, s)).collect();
        let values: FxHashMap<Var, Expr> =
            block.iters.iter().map(|it| (it.var, it.binding)).collect();
        for indices in list {
            let indices = indices.iter().map(|&e| substitute_expr(f, e, &values)).collect();
            accesses.push(Access { indices, inner: inner.clone() });
        }
    }
    accesses
}

/// The range of one index: the sum of terms and a constant, and the number of values.
struct IndexRange {
    terms: Vec<(Expr, i64)>,
    constant: i64,
    extent: Expr,
}

/// Returns the range of one index of an access; `None` if the index is not linear in the variables of the inner loops.
fn index_range(f: &mut PrimFunc, access: &Access, dim: usize) -> Option<IndexRange> {
    let is_inner = |v: Var| access.inner.iter().any(|l| l.var == v);
    let linear = linear_index(f, access.indices[dim], &is_inner)?;
    let mut range = IndexRange { terms: Vec::new(), constant: 0, extent: f.int(1) };
    for &(e, factor) in &linear.rest {
        match f.as_int(e) {
            Some(value) => {
                range.constant = range.constant.checked_add(value.checked_mul(factor)?)?;
            }
            None => range.terms.push((e, factor)),
        }
    }
    range.terms.sort();
    for (var, factor) in linear.terms {
        let l = access.inner.iter().find(|l| l.var == var)?;
        let one = f.int(-1);
        let last = sum(f, l.extent, one);
        let factor_expr = f.int(factor.abs());
        let span = product(f, last, factor_expr);
        range.extent = sum(f, range.extent, span);
        let first = f.as_int(l.min)?;
        range.constant = range.constant.checked_add(first.checked_mul(factor)?)?;
        if factor < 0 {
            range.terms.push((last, factor));
        }
    }
    Some(range)
}

/// Returns the smallest range that contains all ranges; `None` if they differ in more than a constant.
fn union(f: &mut PrimFunc, ranges: &[IndexRange]) -> Option<(Expr, Expr)> {
    let first = ranges.first()?;
    let same = |r: &IndexRange| r.terms == first.terms && r.extent == first.extent;
    if !ranges.iter().all(same) {
        return None;
    }
    let low = ranges.iter().map(|r| r.constant).min()?;
    let high = ranges.iter().map(|r| r.constant).max()?;
    let mut min = f.int(low);
    for &(e, factor) in &first.terms {
        let factor = f.int(factor);
        let term = product(f, e, factor);
        min = sum(f, min, term);
    }
    let spread = f.int(high.checked_sub(low)?);
    Some((min, sum(f, first.extent, spread)))
}

/// Returns the condition that an index is inside a dim; `None` if it always is, because all loops that it uses have constant
/// extents.
pub(crate) fn inside_condition(
    f: &mut PrimFunc,
    index: Expr,
    size: Expr,
    loops: &[Loop],
) -> Option<Expr> {
    if let Some((low, high)) = constant_bounds(f, index, loops)
        && low >= 0
        && f.as_int(size).is_some_and(|size| high < size)
    {
        return None;
    }
    let below = f.binary(BinOp::Lt, index, size);
    if constant_bounds(f, index, loops).is_some_and(|(low, _)| low >= 0)
        || is_non_negative(f, index)
    {
        return Some(below);
    }
    let zero = f.int(0);
    let at_least = f.binary(BinOp::Ge, index, zero);
    Some(f.binary(BinOp::And, at_least, below))
}

/// The smallest and the largest value of an index, if all loops that it uses have constant ranges.
fn constant_bounds(f: &PrimFunc, index: Expr, loops: &[Loop]) -> Option<(i64, i64)> {
    let linear = linear_index(f, index, &|v| loops.iter().any(|l| l.var == v))?;
    let (mut low, mut high) = (0i64, 0i64);
    for &(e, factor) in &linear.rest {
        let value = f.as_int(e)?.checked_mul(factor)?;
        (low, high) = (low.checked_add(value)?, high.checked_add(value)?);
    }
    for &(var, factor) in &linear.terms {
        let l = loops.iter().find(|l| l.var == var)?;
        let (first, count) = (f.as_int(l.min)?, f.as_int(l.extent)?);
        let last = first.checked_add(count.checked_sub(1)?.max(0))?;
        let (a, b) = (first.checked_mul(factor)?, last.checked_mul(factor)?);
        (low, high) = (low.checked_add(a.min(b))?, high.checked_add(a.max(b))?);
    }
    Some((low, high))
}

/// Whether an index is a sum of products of variables and non-negative constants. Loop variables and sizes are not negative.
fn is_non_negative(f: &PrimFunc, index: Expr) -> bool {
    match *f.expr(index) {
        ExprData::Int(value, _) => value >= 0,
        ExprData::Var(_) => true,
        ExprData::Binary(BinOp::Add | BinOp::Mul, a, b) => {
            is_non_negative(f, a) && is_non_negative(f, b)
        }
        _ => false,
    }
}
