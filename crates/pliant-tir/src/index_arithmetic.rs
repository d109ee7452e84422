//! Arithmetic on sizes and indices: divisibility, and the decomposition of indices into linear parts.

use crate::statement_traversal::uses_any;
use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Var};

/// Whether a size is a multiple of a constant, for sizes that are products with a constant factor.
pub fn is_multiple(f: &PrimFunc, size: Expr, divisor: i64) -> bool {
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
pub fn ceil_div(f: &mut PrimFunc, size: Expr, divisor: i64) -> Expr {
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
pub fn product(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
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
pub fn sum(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
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
pub struct LinearIndex {
    /// The terms without the variables: expression and factor.
    pub rest: Vec<(Expr, i64)>,
    /// The variables with their factors.
    pub terms: Vec<(Var, i64)>,
}

/// Decomposes an index. Returns `None` if it is not linear in the variables for which `is_inner` returns true.
pub fn linear_index(
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
    let is_fixed = !uses_any(f, e, is_inner);
    match *f.expr(e) {
        ExprData::Var(var) if !is_fixed => {
            match linear.terms.iter_mut().find(|(v, _)| *v == var) {
                Some((_, sum)) => *sum += factor,
                None => linear.terms.push((var, factor)),
            }
            return true;
        }
        ExprData::Binary(BinOp::Add, a, b) => {
            return decompose(f, a, factor, is_inner, linear)
                && decompose(f, b, factor, is_inner, linear);
        }
        ExprData::Binary(BinOp::Sub, a, b) => {
            return decompose(f, a, factor, is_inner, linear)
                && decompose(f, b, -factor, is_inner, linear);
        }
        ExprData::Binary(BinOp::Mul, a, b) => {
            let constant = match (f.as_int(a), f.as_int(b)) {
                (Some(constant), _) => Some((b, constant)),
                (_, Some(constant)) => Some((a, constant)),
                _ => None,
            };
            let scaled = constant.and_then(|(value, c)| Some((value, factor.checked_mul(c)?)));
            if let Some((value, factor)) = scaled {
                return decompose(f, value, factor, is_inner, linear);
            }
        }
        _ => {}
    }
    if !is_fixed {
        return false;
    }
    match linear.rest.iter_mut().find(|(known, _)| *known == e) {
        Some((_, sum)) => *sum += factor,
        None => linear.rest.push((e, factor)),
    }
    true
}
