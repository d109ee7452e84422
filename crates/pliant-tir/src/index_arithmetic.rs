//! Arithmetic on sizes and indices: divisibility, and the decomposition of indices into linear parts.

use crate::statement_traversal::uses_any;
use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc, Var};

use crate::accessed_region::EnclosingLoop;

/// Whether a size is provably a multiple of `divisor`. The proof only uses constants and the constant factors of products.
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

/// Returns `a / b` if the division has provably no remainder: both are constants, or `a` is a product with the factor `b`.
pub fn exact_quotient(f: &mut PrimFunc, a: Expr, b: Expr) -> Option<Expr> {
    if a == b {
        return Some(f.int(1));
    }
    match (f.as_int(a), f.as_int(b)) {
        (_, Some(1)) | (Some(0), _) => return Some(a),
        (Some(x), Some(y)) => {
            let is_exact = x.checked_rem(y) == Some(0);
            return if is_exact { x.checked_div(y).map(|quotient| f.int(quotient)) } else { None };
        }
        _ => {}
    }
    let ExprData::Binary(BinOp::Mul, x, y) = *f.expr(a) else { return None };
    if let Some(quotient) = exact_quotient(f, x, b) {
        return Some(product(f, quotient, y));
    }
    let quotient = exact_quotient(f, y, b)?;
    Some(product(f, x, quotient))
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
    if let Some(quotient) = exact_quotient(f, size, divisor_expr) {
        return quotient;
    }
    let rounding = f.int(divisor - 1);
    let sum = match is_multiple(f, size, divisor) {
        true => size,
        false => f.add(size, rounding),
    };
    f.binary(BinOp::FloorDiv, sum, divisor_expr)
}

/// Whether an index or extent is provably not negative: a sum, product or quotient of dims of buffers, variables of loops that
/// start at 0, and constants.
pub fn is_non_negative(f: &PrimFunc, e: Expr, loops: &[EnclosingLoop]) -> bool {
    let holds = |e: Expr| is_non_negative(f, e, loops);
    match *f.expr(e) {
        ExprData::Int(value, _) => value >= 0,
        ExprData::Var(v) => match loops.iter().find(|l| l.var == v) {
            Some(l) => f.as_int(l.min).is_some_and(|min| min >= 0),
            None => is_dim(f, v),
        },
        ExprData::Binary(BinOp::Add | BinOp::Mul, a, b) => holds(a) && holds(b),
        ExprData::Binary(BinOp::FloorDiv, a, b) => holds(a) && f.as_int(b).is_some_and(|b| b > 0),
        ExprData::Binary(BinOp::Max, a, b) => holds(a) || holds(b),
        _ => false,
    }
}

/// Whether a variable is a dim of a parameter, which is not negative.
fn is_dim(f: &PrimFunc, v: Var) -> bool {
    let mut buffers = f.buffer_map.values();
    buffers.any(|&b| {
        f.buffer(b).shape.iter().any(|&dim| matches!(f.expr(dim), ExprData::Var(d) if *d == v))
    })
}

/// Returns `extent` if it is provably non-negative, otherwise `max(extent, 0)`: the number of iterations of a loop with this
/// extent.
pub fn not_negative(f: &mut PrimFunc, extent: Expr) -> Expr {
    if is_non_negative(f, extent, &[]) {
        return extent;
    }
    let zero = f.int(0);
    f.binary(BinOp::Max, extent, zero)
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

/// An index, split into multiples of selected variables and terms without these variables.
#[derive(Clone, Debug, Default)]
pub struct LinearIndex {
    /// The terms without the selected variables, each as (expression, factor).
    pub rest: Vec<(Expr, i64)>,
    /// The selected variables that the index uses, each with its factor.
    pub terms: Vec<(Var, i64)>,
}

/// Splits an index into multiples of the variables for which `is_inner` returns true and the other terms. Returns `None` if the
/// index is not linear in these variables.
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
            return add_term(&mut linear.terms, var, factor);
        }
        ExprData::Binary(BinOp::Add, a, b) => {
            return decompose(f, a, factor, is_inner, linear)
                && decompose(f, b, factor, is_inner, linear);
        }
        ExprData::Binary(BinOp::Sub, a, b) => {
            return decompose(f, a, factor, is_inner, linear)
                && factor.checked_neg().is_some_and(|f2| decompose(f, b, f2, is_inner, linear));
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
    add_term(&mut linear.rest, e, factor)
}

/// Adds a multiple of a term to a sum. Returns whether the factor fits 64 bits.
fn add_term<T: PartialEq>(terms: &mut Vec<(T, i64)>, term: T, factor: i64) -> bool {
    match terms.iter_mut().find(|(known, _)| *known == term) {
        Some((_, sum)) => match sum.checked_add(factor) {
            Some(total) => {
                *sum = total;
                true
            }
            None => false,
        },
        None => {
            terms.push((term, factor));
            true
        }
    }
}

/// Appends the operands of nested conjunctions to `out`; the expression itself if it is not a conjunction.
pub fn conjuncts(f: &PrimFunc, e: Expr, out: &mut Vec<Expr>) {
    match *f.expr(e) {
        ExprData::Binary(BinOp::And, a, b) => {
            conjuncts(f, a, out);
            conjuncts(f, b, out);
        }
        _ => out.push(e),
    }
}
