//! Evaluates a term for given values of its variables, with checked arithmetic.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::linear_form::{floor_div, floor_mod};
use crate::term_arena::SymArena;
use crate::term_types::{Sym, SymKind, SymVar};

/// The reason why a term could not be evaluated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// A variable of the term has no value.
    Unbound(SymVar),
    /// An intermediate value or the result does not fit in 64 bits.
    Overflow,
    /// A divisor is 0.
    DivideByZero,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unbound(v) => {
                write!(f, "a symbolic size cannot be computed: its variable {v} has no value")
            }
            EvalError::Overflow => {
                f.write_str("a symbolic size cannot be computed: a value does not fit in 64 bits")
            }
            EvalError::DivideByZero => {
                f.write_str("a symbolic size cannot be computed: a divisor is zero")
            }
        }
    }
}

impl std::error::Error for EvalError {}

impl SymArena {
    /// Evaluates a term. Only the selected operand of a `select` is evaluated.
    ///
    /// # Errors
    /// [`EvalError`] if a variable has no value, a value exceeds 64 bits, or a divisor is 0.
    pub fn evaluate(
        &self,
        sym: Sym,
        value: &dyn Fn(SymVar) -> Option<i64>,
    ) -> Result<i64, EvalError> {
        if let SymKind::Int(v) = self.kind(sym) {
            return Ok(v);
        }
        let mut done: FxHashMap<Sym, i128> = FxHashMap::default();
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
        to_i64(done[&sym])
    }

    /// Pushes the operands of `sym` that must be evaluated before `sym` onto the stack.
    fn push_needed(&self, sym: Sym, done: &FxHashMap<Sym, i128>, stack: &mut Vec<Sym>) {
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
        let missing = self.children(sym).into_iter().rev().filter(|c| !done.contains_key(c));
        stack.extend(missing);
    }

    /// Computes the value of a term whose operands have been evaluated. Sums, products, selects and comparisons use 128 bits,
    /// because a product may fit 64 bits although its expanded terms do not. Operands of quotients, minima and maxima must fit 64
    /// bits.
    fn value_of(
        &self,
        sym: Sym,
        done: &FxHashMap<Sym, i128>,
        value: &dyn Fn(SymVar) -> Option<i64>,
    ) -> Result<i128, EvalError> {
        let wide = |s: Sym| done[&s];
        let of = |s: Sym| to_i64(done[&s]);
        let divide = |f: fn(i64, i64) -> Option<i64>, a: Sym, b: Sym| match of(b)? {
            0 => Err(EvalError::DivideByZero),
            d => f(of(a)?, d).ok_or(EvalError::Overflow).map(i128::from),
        };
        let extreme = |list: &[Sym], pick: fn(i64, i64) -> i64| {
            let values = list.iter().map(|&s| of(s)).collect::<Result<Vec<i64>, _>>()?;
            Ok(values.into_iter().reduce(pick).map_or(0, i128::from))
        };
        let sum = |constant: i64, terms: &[(i64, Sym)]| {
            let add = |acc: i128, &(k, t): &(i64, Sym)| {
                wide(t).checked_mul(i128::from(k)).and_then(|v| acc.checked_add(v))
            };
            terms.iter().try_fold(i128::from(constant), add).ok_or(EvalError::Overflow)
        };
        match self.kind(sym) {
            SymKind::Int(v) => Ok(i128::from(v)),
            SymKind::Var(v) => value(v).map(i128::from).ok_or(EvalError::Unbound(v)),
            SymKind::Sum { terms, constant } => sum(constant, terms),
            SymKind::BigAdd(a, b) => sum(0, &[(1, a), (1, b)]),
            SymKind::Product(list) => product(list.iter().map(|&s| wide(s))),
            SymKind::BigMul(a, b) => product([wide(a), wide(b)]),
            SymKind::FloorDiv(a, b) => divide(floor_div, a, b),
            SymKind::FloorMod(a, b) => divide(floor_mod, a, b),
            SymKind::Min(list) => extreme(list, i64::min),
            SymKind::Max(list) => extreme(list, i64::max),
            SymKind::Select(c, a, b) => Ok(wide(if wide(c) != 0 { a } else { b })),
            SymKind::Cmp(op, a, b) => Ok(i128::from(op.holds(wide(a), wide(b)))),
            SymKind::And(list) => Ok(i128::from(list.iter().all(|&s| wide(s) != 0))),
            SymKind::Or(list) => Ok(i128::from(list.iter().any(|&s| wide(s) != 0))),
            SymKind::Not(a) => Ok(i128::from(wide(a) == 0)),
        }
    }
}

fn to_i64(value: i128) -> Result<i64, EvalError> {
    i64::try_from(value).map_err(|_| EvalError::Overflow)
}

/// Multiplies the factors with overflow checks. If a factor is 0, the product is 0 even if the other factors overflow.
fn product(factors: impl IntoIterator<Item = i128>) -> Result<i128, EvalError> {
    let mut result = Some(1i128);
    for factor in factors {
        if factor == 0 {
            return Ok(0);
        }
        result = result.and_then(|r| r.checked_mul(factor));
    }
    result.ok_or(EvalError::Overflow)
}
