//! [`SizeRelation`]: a condition on symbolic sizes, in a form from which the possible values of its
//! symbols can be determined.

use pliant_sym::{CmpOp, Sym, SymArena, SymKind, SymVar};

/// Sample sizes with which conditions are tested for large sizes. They are divisible by all small
/// numbers. The first one is far above the sizes in models. The others are for products of several
/// sizes, which overflow 64 bits with the first one.
const LARGE_SIZES: [i64; 4] = [(1 << 20) * 243 * 125 * 49 * 11 * 13, 720_720, 55_440, 5_040];

/// The number of sizes of a symbol, from its minimum size on, with which a condition is tested.
const TESTED_SIZES: i64 = 1024;

/// Maximum number of possible sizes of a symbol that counts as few. A condition on a size divided by a stride or window may allow
/// that many sizes.
const MAX_FEW_SIZES: usize = 64;

/// One condition of a conjunction of conditions on sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SizeRelation {
    /// The term has one of the listed values.
    OneOf(Sym, Vec<i64>),
    /// The two symbolic terms must be equal.
    Equal(Sym, Sym),
    /// A condition that is neither an equation nor a list of possible values, as a predicate over symbols.
    Predicate(Sym),
}

impl SizeRelation {
    /// The symbols that occur in the relation.
    pub fn symbols(&self, syms: &SymArena) -> Vec<SymVar> {
        let mut vars = Vec::new();
        let terms = match self {
            SizeRelation::OneOf(term, _) | SizeRelation::Predicate(term) => vec![*term],
            SizeRelation::Equal(a, b) => vec![*a, *b],
        };
        for var in terms.into_iter().flat_map(|t| syms.free_vars(t)) {
            if !vars.contains(&var) {
                vars.push(var);
            }
        }
        vars
    }

    /// The relation in words, such as `q to be 4`.
    pub fn text(&self, syms: &SymArena) -> String {
        match self {
            SizeRelation::OneOf(term, values) => {
                let values: Vec<String> = values.iter().map(i64::to_string).collect();
                format!("{} to be {}", syms.display(*term), values.join(" or "))
            }
            SizeRelation::Equal(a, b) => format!("{} to be {}", syms.display(*a), syms.display(*b)),
            SizeRelation::Predicate(cond) => match syms.kind(*cond) {
                SymKind::Or(parts) => {
                    let parts: Vec<String> =
                        parts.iter().map(|&p| syms.display(p).to_string()).collect();
                    parts.join(" or ")
                }
                _ => syms.display(*cond).to_string(),
            },
        }
    }

    /// Whether only few sizes in the range satisfy the relation.
    pub fn allows_few_sizes(
        &self,
        syms: &SymArena,
        (min_value, max_value): (Option<i64>, Option<i64>),
    ) -> bool {
        match self.symbols(syms).as_slice() {
            [] => false,
            [_] => {
                let at = |size: i64| self.holds_at(syms, size);
                let from = |&size: &i64| (size..size + 8).map(at).collect::<Option<Vec<bool>>>();
                let large = LARGE_SIZES.iter().find_map(from);
                let min_value = min_value.unwrap_or(0).max(0);
                let end = min_value.saturating_add(TESTED_SIZES);
                // Untested sizes of the range may satisfy it.
                let whole = max_value.is_some_and(|max_value| max_value <= end);
                if !whole && large.is_none_or(|large| large.contains(&true)) {
                    return false;
                }
                let end = max_value.map_or(end, |max_value| max_value.min(end));
                let near = (min_value..=end).filter(|&size| at(size) == Some(true)).count();
                let few =
                    if matches!(self, SizeRelation::Predicate(_)) { 1 } else { MAX_FEW_SIZES };
                // In a small range, few sizes are not a restriction if they are most of the range.
                near <= few && (near <= 1 || near as i64 * 2 <= end - min_value + 1)
            }
            _ => match self {
                SizeRelation::OneOf(term, _) => is_monotone(syms, *term),
                _ => false,
            },
        }
    }

    /// Whether the relation is true if its only symbol has the given size. `None` on overflow or
    /// division by zero.
    fn holds_at(&self, syms: &SymArena, size: i64) -> Option<bool> {
        let value = |term: Sym| syms.evaluate(term, &|_| Some(size)).ok();
        Some(match self {
            SizeRelation::OneOf(term, values) => values.contains(&value(*term)?),
            SizeRelation::Equal(a, b) => value(*a)? == value(*b)?,
            SizeRelation::Predicate(cond) => value(*cond)? != 0,
        })
    }

    /// Returns the symbol of a relation that compares a symbol with a constant, and the minimum and the maximum that the
    /// relation allows. Returns `None` for other relations.
    pub fn symbol_bounds(&self, syms: &mut SymArena) -> Option<(SymVar, Option<i64>, Option<i64>)> {
        let SizeRelation::Predicate(cond) = *self else { return None };
        let SymKind::Cmp(op, a, b) = syms.kind(cond) else { return None };
        let negative_terms: i64 = match op {
            CmpOp::Le => 0,
            CmpOp::Lt => 1,
            CmpOp::Eq | CmpOp::Ne => return None,
        };
        // `0 <= b - a - less`
        let difference = syms.sub(b, a);
        let (coef, var, constant) = match syms.kind(difference) {
            SymKind::Var(var) => (1, var, 0),
            SymKind::Sum { terms: &[(coef, term)], constant } => {
                (coef, syms.as_var(term)?, constant)
            }
            _ => return None,
        };
        match coef {
            1 => Some((var, Some(negative_terms.saturating_sub(constant)), None)),
            -1 => Some((var, None, Some(constant.saturating_sub(negative_terms)))),
            _ => None,
        }
    }
}

/// Whether a term is never negative and never decreases when a size grows.
pub(crate) fn is_monotone(syms: &SymArena, term: Sym) -> bool {
    match syms.kind(term) {
        SymKind::Int(v) => v >= 0,
        SymKind::Var(_) => true,
        SymKind::Sum { terms, constant } => {
            constant >= 0 && terms.iter().all(|&(coef, t)| coef > 0 && is_monotone(syms, t))
        }
        SymKind::Product(list) | SymKind::Max(list) => list.iter().all(|&t| is_monotone(syms, t)),
        SymKind::FloorDiv(a, b) => is_monotone(syms, a) && syms.as_int(b).is_some_and(|b| b > 0),
        _ => false,
    }
}

/// Splits a conjunction of conditions on sizes into relations, one for each condition.
pub(crate) fn split_condition(syms: &mut SymArena, cond: Sym) -> Vec<SizeRelation> {
    let mut list = Vec::new();
    let mut pending = vec![cond];
    while let Some(cond) = pending.pop() {
        match syms.kind(cond) {
            SymKind::And(parts) => pending.extend(parts.iter().rev()),
            SymKind::Cmp(CmpOp::Eq, a, b) => {
                list.push(simplified_equation(syms, a, b).unwrap_or(SizeRelation::Predicate(cond)));
            }
            SymKind::Or(parts) => {
                let parts = parts.to_vec();
                list.push(
                    merge_alternatives(syms, &parts).unwrap_or(SizeRelation::Predicate(cond)),
                );
            }
            SymKind::Int(_) => {}
            _ => list.push(SizeRelation::Predicate(cond)),
        }
    }
    list
}

/// Merges a disjunction of equations, such as `n == 1 or n == 4`, into one relation if all of them
/// have the same left side. `None` for other disjunctions.
fn merge_alternatives(syms: &mut SymArena, parts: &[Sym]) -> Option<SizeRelation> {
    let mut all: Option<(Sym, Vec<i64>)> = None;
    for &part in parts {
        let SymKind::Cmp(CmpOp::Eq, a, b) = syms.kind(part) else { return None };
        let SizeRelation::OneOf(term, values) = simplified_equation(syms, a, b)? else {
            return None;
        };
        match &mut all {
            None => all = Some((term, values)),
            Some((known, list)) if *known == term => list.extend(values),
            Some(_) => return None,
        }
    }
    let (term, mut values) = all?;
    values.sort_unstable();
    values.dedup();
    Some(SizeRelation::OneOf(term, values))
}

/// The relation for `a == b`, after cancelling common summands and factors. `None` if the equation does not restrict any symbol, or
/// its coefficients are too large.
fn simplified_equation(syms: &mut SymArena, a: Sym, b: Sym) -> Option<SizeRelation> {
    let difference = syms.sub(a, b);
    let (terms, constant) = match syms.kind(difference) {
        SymKind::Sum { terms, constant } => (terms.to_vec(), constant),
        SymKind::BigAdd(..) | SymKind::BigMul(..) | SymKind::Int(_) => return None,
        _ => (vec![(1, difference)], 0),
    };
    let (terms, constant) = cancel_common_factors(syms, terms, constant);
    let mut side = |sign: bool| {
        let side_terms: Vec<Sym> = terms
            .iter()
            .filter(|(coef, _)| (*coef > 0) == sign)
            .map(|&(coef, term)| {
                let coef = syms.int(coef.saturating_abs());
                syms.mul(coef, term)
            })
            .collect();
        (!side_terms.is_empty()).then(|| syms.sum(side_terms))
    };
    let (positive_terms, negative_terms) = (side(true), side(false));
    Some(match (positive_terms, negative_terms) {
        (Some(term), None) => SizeRelation::OneOf(term, vec![constant.checked_neg()?]),
        (None, Some(term)) => SizeRelation::OneOf(term, vec![constant]),
        (Some(positive_terms), Some(negative_terms)) => {
            let constant = syms.int(constant);
            let zero = syms.int(0);
            let positive = syms.as_int(constant).is_some_and(|c| c > 0);
            let (to_more, to_less) =
                if positive { (constant, zero) } else { (zero, syms.neg(constant)) };
            let (positive_terms, negative_terms) =
                (syms.add(positive_terms, to_more), syms.add(negative_terms, to_less));
            match syms.as_var(negative_terms) {
                Some(_) if syms.as_var(positive_terms).is_none() => {
                    SizeRelation::Equal(negative_terms, positive_terms)
                }
                _ => SizeRelation::Equal(positive_terms, negative_terms),
            }
        }
        (None, None) => return None,
    })
}

/// Cancels sizes that are factors of all terms of an equation. If such a factor is 0, the tensors
/// are empty and the equation is true.
fn cancel_common_factors(
    syms: &mut SymArena,
    terms: Vec<(i64, Sym)>,
    constant: i64,
) -> (Vec<(i64, Sym)>, i64) {
    if constant != 0 {
        return (terms, constant);
    }
    let factors = |syms: &SymArena, term: Sym| match syms.kind(term) {
        SymKind::Product(list) => list.to_vec(),
        _ => vec![term],
    };
    let mut lists: Vec<Vec<Sym>> = terms.iter().map(|&(_, t)| factors(syms, t)).collect();
    for factor in lists[0].clone() {
        let at: Option<Vec<usize>> =
            lists.iter().map(|list| list.iter().position(|&f| f == factor)).collect();
        // In `size == 0` with a single size, 0 is a solution that must be kept.
        let last = lists.iter().all(|list| list.len() == 1);
        let at = at.filter(|_| syms.as_var(factor).is_some() && !(last && terms.len() == 1));
        let Some(at) = at else { continue };
        for (list, at) in lists.iter_mut().zip(at) {
            list.remove(at);
        }
    }
    let (mut rest, mut constant) = (Vec::with_capacity(terms.len()), 0i64);
    for ((coef, _), list) in terms.into_iter().zip(lists) {
        if list.is_empty() {
            constant = constant.saturating_add(coef);
        } else {
            rest.push((coef, syms.product(list)));
        }
    }
    (rest, constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_conditions_that_allow_few_sizes() {
        let mut syms = SymArena::new();
        let (s, q) = (syms.fresh_var("s"), syms.fresh_var("q"));
        let (s, q) = (syms.var(s), syms.var(q));
        let n = |syms: &mut SymArena, v: i64| syms.int(v);
        let analyze = |syms: &mut SymArena, cond: Sym| -> Vec<(String, bool)> {
            let list = split_condition(syms, cond);
            list.iter().map(|r| (r.text(syms), r.allows_few_sizes(syms, (None, None)))).collect()
        };
        let is = |text: &str, fixes: bool| vec![(text.to_owned(), fixes)];
        let (one, four, six) = (n(&mut syms, 1), n(&mut syms, 4), n(&mut syms, 6));
        let cond = syms.eq(q, four);
        assert_eq!(analyze(&mut syms, cond), is("q to be 4", true));
        let (a, b) = (syms.eq(q, one), syms.eq(q, four));
        let cond = syms.or(a, b);
        assert_eq!(analyze(&mut syms, cond), is("q to be 1 or 4", true));
        // Common factors are cancelled.
        let (a, b) = (syms.mul(s, q), syms.mul(s, four));
        let cond = syms.eq(a, b);
        assert_eq!(analyze(&mut syms, cond), is("q to be 4", true));
        let cond = syms.eq(a, six);
        assert_eq!(analyze(&mut syms, cond), is("q * s to be 6", true));
        let rest = syms.floormod(q, four);
        let (whole, zero) = (syms.mul(s, rest), n(&mut syms, 0));
        let cond = syms.eq(whole, zero);
        assert_eq!(analyze(&mut syms, cond), is("q % 4 to be 0", false));
        let cond = syms.eq(q, zero);
        assert_eq!(analyze(&mut syms, cond), is("q to be 0", true));
        let zero_scalar = n(&mut syms, 0);
        let cond = syms.eq(rest, zero_scalar);
        assert_eq!(analyze(&mut syms, cond), is("q % 4 to be 0", false));
        let cond = syms.eq(s, q);
        assert!(!analyze(&mut syms, cond)[0].1);
        let half = syms.floordiv(q, four);
        let cond = syms.eq(half, six);
        assert!(analyze(&mut syms, cond)[0].1);
        // The last five elements, of at most a thousand.
        let (five, thousand) = (n(&mut syms, 5), n(&mut syms, 1000));
        let start = syms.sub(q, five);
        let (zero, end) = (n(&mut syms, 0), syms.min(q, thousand));
        let (start, cond) = (syms.max(start, zero), syms.eq(q, half));
        assert!(analyze(&mut syms, cond)[0].1);
        let last = syms.sub(end, start);
        let cond = syms.eq(last, five);
        assert!(!analyze(&mut syms, cond)[0].1);
        // The square overflows 64 bits at the largest sample size.
        let square = syms.mul(half, half);
        let cond = syms.eq(square, six);
        assert!(analyze(&mut syms, cond)[0].1);
        let cond = syms.le(four, q);
        let list = split_condition(&mut syms, cond);
        let var = syms.as_var(q).unwrap();
        assert_eq!(list[0].symbol_bounds(&mut syms), Some((var, Some(4), None)));
        let cond = syms.lt(q, four);
        let list = split_condition(&mut syms, cond);
        assert_eq!(list[0].symbol_bounds(&mut syms), Some((var, None, Some(3))));
    }
}
