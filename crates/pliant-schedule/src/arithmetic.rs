//! Arithmetic on sizes and indices: divisibility, and the decomposition of indices into linear parts.

use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Var};
use pliant_tir::statement_traversal::uses_any;

/// Whether a size is a multiple of a constant, for sizes that are products with a constant factor.
pub(crate) fn is_multiple(f: &PrimFunc, size: Expr, divisor: i64) -> bool {
    constant_factor(f, size).checked_rem(divisor) == Some(0)
}

/// Returns the constant factor of a product; 1 if there is none.
fn constant_factor(f: &PrimFunc, e: Expr) -> i64 {
    match *f.expr(e) {
        ExprData::Int(value, _) => value,
        ExprData::Binary(BinOp::Mul, a, b) => {
            constant_factor(f, a).checked_mul(constant_factor(f, b)).unwrap_or(1)
        }
        _ => 1,
    }
}

/// Returns `size / divisor`, rounded up.
pub(crate) fn ceil_div(f: &mut PrimFunc, size: Expr, divisor: i64) -> Expr {
    if let Some(size) = f.as_int(size) {
        return f.int(size.div_euclid(divisor) + i64::from(size.rem_euclid(divisor) != 0));
    }
    let divisor_expr = f.int(divisor);
    if divisor == 1 {
        return size;
    }
    let rounding = f.int(divisor - 1);
    let sum = match is_multiple(f, size, divisor) {
        true => size,
        false => f.add(size, rounding),
    };
    f.binary(BinOp::FloorDiv, sum, divisor_expr)
}

/// Returns the product of two sizes; constants are folded.
pub(crate) fn product(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(x), Some(y)) => match x.checked_mul(y) {
            Some(value) => f.int(value),
            None => f.mul(a, b),
        },
        (Some(1), _) => b,
        (_, Some(1)) => a,
        _ => f.mul(a, b),
    }
}

/// Returns the sum of two sizes or indices; constants are folded.
pub(crate) fn sum(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(x), Some(y)) => match x.checked_add(y) {
            Some(value) => f.int(value),
            None => f.add(a, b),
        },
        (Some(0), _) => b,
        (_, Some(0)) => a,
        _ => f.add(a, b),
    }
}

/// An index as the sum of a part without some variables, and multiples of these variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinearIndex {
    /// The terms without the variables: expression and factor.
    pub rest: Vec<(Expr, i64)>,
    /// The variables with their factors.
    pub terms: Vec<(Var, i64)>,
}

/// Decomposes an index. Returns `None` if it is not linear in the variables for which `is_inner` returns true.
pub(crate) fn linear_index(
    f: &PrimFunc,
    index: Expr,
    is_inner: &dyn Fn(Var) -> bool,
) -> Option<LinearIndex> {
    let mut linear = LinearIndex::default();
    decompose(f, index, 1, is_inner, &mut linear).then_some(linear)
}

fn decompose(
    f: &PrimFunc,
    e: Expr,
    factor: i64,
    is_inner: &dyn Fn(Var) -> bool,
    linear: &mut LinearIndex,
) -> bool {
    if !uses_any(f, e, is_inner) {
        linear.rest.push((e, factor));
        return true;
    }
    match *f.expr(e) {
        ExprData::Var(var) => {
            match linear.terms.iter_mut().find(|(v, _)| *v == var) {
                Some((_, sum)) => *sum += factor,
                None => linear.terms.push((var, factor)),
            }
            true
        }
        ExprData::Binary(BinOp::Add, a, b) => {
            decompose(f, a, factor, is_inner, linear) && decompose(f, b, factor, is_inner, linear)
        }
        ExprData::Binary(BinOp::Sub, a, b) => {
            decompose(f, a, factor, is_inner, linear) && decompose(f, b, -factor, is_inner, linear)
        }
        ExprData::Binary(BinOp::Mul, a, b) => {
            let (value, constant) = match (f.as_int(a), f.as_int(b)) {
                (Some(constant), _) => (b, constant),
                (_, Some(constant)) => (a, constant),
                _ => return false,
            };
            factor
                .checked_mul(constant)
                .is_some_and(|factor| decompose(f, value, factor, is_inner, linear))
        }
        _ => false,
    }
}

impl LinearIndex {
    /// Returns the part without the variables as an expression.
    pub fn rest_expr(&self, f: &mut PrimFunc) -> Expr {
        let mut total = f.int(0);
        for &(e, factor) in &self.rest {
            let factor = f.int(factor);
            let term = product(f, e, factor);
            total = sum(f, total, term);
        }
        total
    }
}
