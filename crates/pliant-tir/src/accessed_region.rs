//! Computes the region of a buffer that a statement accesses, for fixed values of the variables of the loops around the statement.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData, Var};
use rustc_hash::FxHashMap;

use crate::access_guards::reads_memory;
use crate::index_arithmetic::{is_non_negative, linear_index, product, sum};
use crate::statement_traversal::{children, direct_exprs, substitute_expr};

/// The kinds of accesses to a buffer that an analysis considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accesses {
    /// The analysis considers only loads.
    Loads,
    /// The analysis considers only stores.
    Stores,
    /// The analysis considers loads and stores.
    All,
}

/// A loop: its variable and its range.
#[derive(Clone, Copy, Debug)]
pub struct EnclosingLoop {
    /// The loop variable.
    pub var: Var,
    /// The first value of the loop variable.
    pub min: Expr,
    /// The number of iterations.
    pub extent: Expr,
}

/// The range of indices of one dim.
#[derive(Clone, Debug)]
pub struct DimRange {
    /// The first index in the range of indices of this dim.
    pub min: Expr,
    /// The first index of the range, written as a sum: (terms, constant). A term is (expression, factor).
    pub min_terms: (Vec<(Expr, i64)>, i64),
    /// The number of indices in the range.
    pub extent: Expr,
    /// Whether the range covers the whole dim of the buffer.
    pub is_whole: bool,
}

/// An access to a buffer inside the analyzed statement: its indices, in which block axes are replaced by their values, and the
/// loops between the statement and the access.
struct Access {
    indices: Vec<Expr>,
    inner: Vec<EnclosingLoop>,
}

/// Returns, for each dim of a buffer, the smallest range of indices that contains the selected accesses in the statement `outer`,
/// for fixed values of the variables of the loops around this statement. If an index is not linear in the variables of the loops
/// inside the statement, its range is the whole dim.
pub fn accessed_region(
    f: &mut PrimFunc,
    outer: Stmt,
    buffer: Buffer,
    selected: Accesses,
) -> Vec<DimRange> {
    let accesses = accesses_in(f, outer, buffer, selected);
    let shape = f.buffer(buffer).shape.clone();
    let whole = |f: &mut PrimFunc, dim: usize| DimRange {
        min: f.int(0),
        min_terms: (Vec::new(), 0),
        extent: shape[dim],
        is_whole: true,
    };
    (0..shape.len())
        .map(|dim| {
            let ranges: Option<Vec<IndexRange>> =
                accesses.iter().map(|access| index_range(f, access, dim)).collect();
            match ranges.and_then(|ranges| union(f, &ranges)) {
                Some(range) if range.extent != shape[dim] => range,
                _ => whole(f, dim),
            }
        })
        .collect()
}

/// Whether different iterations of the loop over a variable provably access different elements of a buffer: in one dim, the index
/// of the iteration is multiplied by at least the number of elements that an iteration accesses.
pub fn are_iterations_disjoint(f: &mut PrimFunc, body: Stmt, var: Var, buffer: Buffer) -> bool {
    let region = accessed_region(f, body, buffer, Accesses::All);
    region.iter().any(|range| {
        let step = linear_index(f, range.min, &|v| v == var)
            .and_then(|linear| linear.terms.first().and_then(|(_, factor)| factor.checked_abs()));
        let extent = f.as_int(range.extent);
        !range.is_whole && step.zip(extent).is_some_and(|(step, extent)| step >= extent)
    })
}

/// Returns the accesses of a buffer inside a statement.
fn accesses_in(f: &mut PrimFunc, outer: Stmt, buffer: Buffer, selected: Accesses) -> Vec<Access> {
    let mut walk =
        Walk { buffer, selected, loops: Vec::new(), axes: Vec::new(), found: Vec::new() };
    walk.stmt(f, outer);
    walk.found
}

/// The state of the search for the accesses to a buffer.
struct Walk {
    buffer: Buffer,
    selected: Accesses,
    loops: Vec<EnclosingLoop>,
    /// The axes of the enclosing blocks, each with the value to which it is bound.
    axes: Vec<(Var, Expr)>,
    found: Vec<Access>,
}

impl Walk {
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) {
        let data = f.stmt(s).clone();
        if let StmtData::Store { buffer, indices, .. } = &data
            && *buffer == self.buffer
            && self.selected != Accesses::Loads
        {
            self.add(f, indices);
        }
        if self.selected != Accesses::Stores {
            let mut loads: Vec<Box<[Expr]>> = Vec::new();
            direct_exprs(&data, |e| {
                for_each_expr(f, e, |e| {
                    if let ExprData::Load(b, indices) = f.expr(e)
                        && *b == self.buffer
                        && !loads.contains(indices)
                    {
                        loads.push(indices.clone());
                    }
                });
            });
            loads.iter().for_each(|indices| self.add(f, indices));
        }
        let (loops, axes) = (self.loops.len(), self.axes.len());
        match &data {
            StmtData::For { var, min, extent, .. } => {
                self.loops.push(EnclosingLoop { var: *var, min: *min, extent: *extent });
            }
            StmtData::Block(block) => {
                for it in &block.iters {
                    let value = self.value(f, it.binding);
                    self.axes.push((it.var, value));
                }
            }
            _ => {}
        }
        children(&data).into_iter().for_each(|c| self.stmt(f, c));
        self.loops.truncate(loops);
        self.axes.truncate(axes);
    }

    /// Replaces the block axes in an expression by the values to which they are bound.
    fn value(&self, f: &mut PrimFunc, e: Expr) -> Expr {
        let values: FxHashMap<Var, Expr> = self.axes.iter().copied().collect();
        if values.is_empty() { e } else { substitute_expr(f, e, &values) }
    }

    fn add(&mut self, f: &mut PrimFunc, indices: &[Expr]) {
        let indices = indices.iter().map(|&e| self.value(f, e)).collect();
        self.found.push(Access { indices, inner: self.loops.clone() });
    }
}

/// The range of values that one index of an access takes over the loops inside the analyzed statement: its first value, as the sum
/// of terms and a constant, and the number of its values.
struct IndexRange {
    terms: Vec<(Expr, i64)>,
    constant: i64,
    extent: Expr,
}

/// Returns the range of the index of an access in dim `dim`. Returns `None` if the index is not linear in the variables of the
/// loops between the analyzed statement and the access.
fn index_range(f: &mut PrimFunc, access: &Access, dim: usize) -> Option<IndexRange> {
    let is_inner = |v: Var| access.inner.iter().any(|l| l.var == v);
    let linear = linear_index(f, access.indices[dim], &is_inner)?;
    let mut range = IndexRange { terms: Vec::new(), constant: 0, extent: f.int(1) };
    // Memory may change between two accesses.
    if linear.rest.iter().any(|&(e, _)| reads_memory(f, e)) {
        return None;
    }
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
        let minus_one = f.int(-1);
        let last = sum(f, l.extent, minus_one);
        let magnitude = factor.checked_abs()?;
        range.extent = match (f.as_int(range.extent), magnitude) {
            (Some(1), 1) => l.extent,
            _ => {
                let magnitude = f.int(magnitude);
                let span = product(f, last, magnitude);
                sum(f, range.extent, span)
            }
        };
        let first = f.as_int(l.min)?;
        range.constant = range.constant.checked_add(first.checked_mul(factor)?)?;
        if factor < 0 {
            range.terms.push((last, factor));
        }
    }
    Some(range)
}

/// Returns the smallest range that contains all ranges. Returns `None` if the first indices of two ranges differ by more than a
/// constant, or if the ranges have different extents that are not constant.
fn union(f: &mut PrimFunc, ranges: &[IndexRange]) -> Option<DimRange> {
    let first = ranges.first()?;
    if !ranges.iter().all(|r| r.terms == first.terms) {
        return None;
    }
    let low = ranges.iter().map(|r| r.constant).min()?;
    let extent = if ranges.iter().all(|r| r.extent == first.extent) {
        let high = ranges.iter().map(|r| r.constant).max()?;
        let spread = f.int(high.checked_sub(low)?);
        sum(f, first.extent, spread)
    } else {
        let end_of = |r: &IndexRange| r.constant.checked_add(f.as_int(r.extent)?);
        let ends: Option<Vec<i64>> = ranges.iter().map(end_of).collect();
        f.int(ends?.into_iter().max()?.checked_sub(low)?)
    };
    let mut min = f.int(low);
    for &(e, factor) in &first.terms {
        let factor = f.int(factor);
        let term = product(f, e, factor);
        min = sum(f, min, term);
    }
    Some(DimRange { min, min_terms: (first.terms.clone(), low), extent, is_whole: false })
}

/// Returns an index minus the start of a range that contains it. `is_inner` returns true for the variables of the loops
/// inside the statement for which the range was computed; the start does not depend on these variables.
pub fn relative_index(
    f: &mut PrimFunc,
    index: Expr,
    range: &DimRange,
    is_inner: &dyn Fn(Var) -> bool,
) -> Expr {
    let (terms, start) = &range.min_terms;
    let linear = linear_index(f, index, is_inner).and_then(|linear| {
        let mut constant = start.checked_neg()?;
        let mut rest: Vec<(Expr, i64)> = Vec::new();
        for &(e, factor) in &linear.rest {
            match f.as_int(e) {
                Some(value) => constant = constant.checked_add(value.checked_mul(factor)?)?,
                None => rest.push((e, factor)),
            }
        }
        rest.sort();
        (rest == *terms).then_some((linear.terms, constant))
    });
    let Some((inner, constant)) = linear else {
        return match f.as_int(range.min) {
            Some(0) => index,
            _ => f.binary(BinOp::Sub, index, range.min),
        };
    };
    let mut total = f.int(0);
    for (var, factor) in inner {
        let (var, factor) = (f.var_expr(var), f.int(factor));
        let term = product(f, var, factor);
        total = sum(f, total, term);
    }
    let constant = f.int(constant);
    sum(f, total, constant)
}

/// Returns the condition `0 <= index < size`. Returns `None` if the condition always holds because of the constant ranges of the
/// loops that the index uses.
pub fn inside_condition(
    f: &mut PrimFunc,
    index: Expr,
    size: Expr,
    loops: &[EnclosingLoop],
) -> Option<Expr> {
    if let Some((low, high)) = constant_bounds(f, index, loops)
        && low >= 0
        && f.as_int(size).is_some_and(|size| high < size)
    {
        return None;
    }
    let below = f.binary(BinOp::Lt, index, size);
    if constant_bounds(f, index, loops).is_some_and(|(low, _)| low >= 0)
        || is_non_negative(f, index, loops)
    {
        return Some(below);
    }
    let zero = f.int(0);
    let at_least = f.binary(BinOp::Ge, index, zero);
    Some(f.binary(BinOp::And, at_least, below))
}

/// Returns the smallest and the largest value of an index. Returns `None` unless the index is linear in the variables of loops with
/// constant ranges.
fn constant_bounds(f: &PrimFunc, index: Expr, loops: &[EnclosingLoop]) -> Option<(i64, i64)> {
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
