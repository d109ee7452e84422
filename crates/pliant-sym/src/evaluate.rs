//! The value of a term at given values of its variables, with checked arithmetic.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::arena::SymArena;
use crate::kind::{CmpOp, Sym, SymKind, SymVar};
use crate::lin::{floor_div, floor_mod};

/// Why a term has no value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// A variable has no value.
    Unbound(SymVar),
    /// A value does not fit in 64 bits.
    Overflow,
    /// A division or remainder by 0.
    DivideByZero,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unbound(v) => write!(f, "the symbolic variable {v} has no value"),
            EvalError::Overflow => f.write_str("a symbolic size does not fit in 64 bits"),
            EvalError::DivideByZero => f.write_str("a symbolic size divides by zero"),
        }
    }
}

impl std::error::Error for EvalError {}

impl SymArena {
    /// The value of a term. A `select` is evaluated only on the side taken.
    ///
    /// # Errors
    /// [`EvalError`] for a variable without a value, a value beyond 64 bits, a division by 0.
    pub fn evaluate(
        &self,
        sym: Sym,
        value: &dyn Fn(SymVar) -> Option<i64>,
    ) -> Result<i64, EvalError> {
        if let SymKind::Int(v) = self.kind(sym) {
            return Ok(v);
        }
        let mut done: FxHashMap<Sym, i64> = FxHashMap::default();
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            if done.contains_key(&s) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            self.push_needed(s, &done, &mut stack);
            if stack.len() == before {
                let v = self.value_of(s, &done, value)?;
                done.insert(s, v);
                stack.pop();
            }
        }
        Ok(done[&sym])
    }

    /// Pushes the operands without a value that the term needs next.
    fn push_needed(&self, sym: Sym, done: &FxHashMap<Sym, i64>, stack: &mut Vec<Sym>) {
        if let SymKind::Select(c, a, b) = self.kind(sym) {
            let next = match done.get(&c) {
                None => c,
                Some(0) => b,
                Some(_) => a,
            };
            if !done.contains_key(&next) {
                stack.push(next);
            }
            return;
        }
        let missing = |c: &Sym| !done.contains_key(c);
        for c in self.children(sym).into_iter().rev() {
            // A comparison needs its sides only before they are narrowed.
            match self.kind(c) {
                SymKind::Sum { terms, .. } if matches!(self.kind(sym), SymKind::Cmp(..)) => {
                    stack.extend(terms.iter().map(|t| t.1).filter(missing));
                }
                _ => stack.extend(Some(c).filter(missing)),
            }
        }
    }

    fn value_of(
        &self,
        sym: Sym,
        done: &FxHashMap<Sym, i64>,
        value: &dyn Fn(SymVar) -> Option<i64>,
    ) -> Result<i64, EvalError> {
        let of = |s: Sym| done[&s];
        let divide = |f: fn(i64, i64) -> Option<i64>, a: Sym, b: Sym| match of(b) {
            0 => Err(EvalError::DivideByZero),
            d => f(of(a), d).ok_or(EvalError::Overflow),
        };
        match self.kind(sym) {
            SymKind::Int(v) => Ok(v),
            SymKind::Var(v) => value(v).ok_or(EvalError::Unbound(v)),
            SymKind::Sum { .. } => narrow(self.wide_value(sym, done)),
            SymKind::Product(list) => {
                let product = list.iter().try_fold(1i64, |acc, &s| acc.checked_mul(of(s)));
                // A later 0 undoes an overflow on the way.
                let zero = || list.iter().any(|&s| of(s) == 0).then_some(0);
                product.or_else(zero).ok_or(EvalError::Overflow)
            }
            SymKind::FloorDiv(a, b) => divide(floor_div, a, b),
            SymKind::FloorMod(a, b) => divide(floor_mod, a, b),
            SymKind::Min(list) => Ok(list.iter().fold(i64::MAX, |m, &s| m.min(of(s)))),
            SymKind::Max(list) => Ok(list.iter().fold(i64::MIN, |m, &s| m.max(of(s)))),
            SymKind::Select(c, a, b) => Ok(if of(c) != 0 { of(a) } else { of(b) }),
            SymKind::Cmp(op, a, b) => {
                Ok(i64::from(holds(op, self.wide_value(a, done), self.wide_value(b, done))?))
            }
            SymKind::And(list) => Ok(i64::from(list.iter().all(|&s| of(s) != 0))),
            SymKind::Or(list) => Ok(i64::from(list.iter().any(|&s| of(s) != 0))),
            SymKind::Not(a) => Ok(i64::from(of(a) == 0)),
            SymKind::BigAdd(a, b) => of(a).checked_add(of(b)).ok_or(EvalError::Overflow),
            SymKind::BigMul(a, b) => of(a).checked_mul(of(b)).ok_or(EvalError::Overflow),
        }
    }

    /// The value of a sum over values that fit, before it is narrowed to 64 bits.
    fn wide_value(&self, sym: Sym, done: &FxHashMap<Sym, i64>) -> Option<i128> {
        match self.kind(sym) {
            SymKind::Sum { terms, constant } => {
                terms.iter().try_fold(i128::from(constant), |acc, &(k, t)| {
                    acc.checked_add(i128::from(k) * i128::from(done[&t]))
                })
            }
            _ => Some(i128::from(done[&sym])),
        }
    }
}

fn narrow(value: Option<i128>) -> Result<i64, EvalError> {
    value.and_then(|v| i64::try_from(v).ok()).ok_or(EvalError::Overflow)
}

fn holds(op: CmpOp, a: Option<i128>, b: Option<i128>) -> Result<bool, EvalError> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(op.holds(a, b)),
        _ => Err(EvalError::Overflow),
    }
}
