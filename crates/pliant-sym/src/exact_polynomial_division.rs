//! Exact division of polynomials, used to infer the size of a dim from a known number of elements. The unknowns of the
//! polynomials are atoms: variables and other terms that are neither sums nor products.

use smallvec::SmallVec;

use crate::linear_form::{LinearForm, gcd};
use crate::term_arena::SymArena;
use crate::term_types::{Sym, SymList};

/// Maximum number of terms of dividends and quotients.
const MAX_QUOTIENT_TERMS: usize = 32;

/// An addend of a polynomial: a coefficient and the sorted factors.
type Monomial = (i64, SymList);

impl SymArena {
    /// Computes the polynomial `q` for which `a == q * b` holds for all values of the variables. `None` if there is no such
    /// polynomial, or if `b` is the constant 0.
    ///
    /// If `b` is 0 at run time, `a` is 0, too, and every `q` satisfies the equation. Therefore `q` is valid as the inferred size
    /// (`-1`) of a reshape even for empty tensors. `q` equals `a // b` only if `b` is not 0.
    pub fn exact_quotient(&mut self, a: Sym, b: Sym) -> Option<Sym> {
        let (mut rest, by) = (self.monomials(a)?, self.monomials(b)?);
        let (lead_coef, lead) = by.first()?.clone();
        let mut quotient = Vec::new();
        while let Some((coef, factors)) = rest.first() {
            if coef.checked_rem(lead_coef) != Some(0) || quotient.len() == MAX_QUOTIENT_TERMS {
                return None;
            }
            let (coef, factors) = (coef / lead_coef, without(factors, &lead)?);
            for (by_coef, by_factors) in &by {
                let product: SymList = merged(&factors, by_factors);
                add(&mut rest, (coef.checked_mul(*by_coef)?.checked_neg()?, product))?;
            }
            quotient.push((coef, factors));
        }
        let terms: Vec<Sym> = quotient.into_iter().map(|m| self.of_monomial(m)).collect();
        Some(self.sum(terms))
    }

    /// Reduces the fraction of two products of sizes to lowest terms, and returns it as (numerator, denominator). Sizes that
    /// occur in both products cancel even if they may be 0, because the inferred size of a reshape does not depend on them.
    pub fn reduced_quotient(&mut self, numerator: &[Sym], denominator: &[Sym]) -> (Sym, Sym) {
        let mut numerator = SymList::from_slice(numerator);
        let is_left = |d: &&Sym| {
            let at = numerator.iter().position(|o| o == *d);
            at.map(|at| numerator.remove(at)).is_none()
        };
        let denominator: SymList = denominator.iter().filter(is_left).copied().collect();
        let (numerator, denominator) = (self.product(numerator), self.product(denominator));
        match self.exact_quotient(numerator, denominator) {
            Some(quotient) => (quotient, self.int(1)),
            None => self.without_common_factor(numerator, denominator),
        }
    }

    /// Divides both terms by the greatest constant and the atoms that divide all of their monomials.
    fn without_common_factor(&mut self, a: Sym, b: Sym) -> (Sym, Sym) {
        let (Some(numerator), Some(denominator)) = (self.monomials(a), self.monomials(b)) else {
            return (a, b);
        };
        let (Some(first), false) = (numerator.first(), denominator.is_empty()) else {
            return (a, b);
        };
        let all = || numerator.iter().chain(&denominator);
        let divisor = all().fold(0, |g, m| gcd(g, m.0.unsigned_abs()));
        let common = all().fold(first.1.clone(), |common, m| shared(&common, &m.1));
        match i64::try_from(divisor) {
            Ok(divisor) if divisor > 1 || !common.is_empty() => (
                self.divided(&numerator, divisor, &common),
                self.divided(&denominator, divisor, &common),
            ),
            _ => (a, b),
        }
    }

    /// Divides the polynomial `list` by the constant `divisor` and the product of `common`, both of which must divide all of its
    /// monomials.
    fn divided(&mut self, list: &[Monomial], divisor: i64, common: &[Sym]) -> Sym {
        let quotient = |(coef, factors): &Monomial| {
            (coef / divisor, without(factors, common).unwrap_or_default())
        };
        let terms: Vec<Sym> = list.iter().map(|m| self.of_monomial(quotient(m))).collect();
        self.sum(terms)
    }

    /// Splits a polynomial into monomials, with the leading monomial first. `None` if there are too many.
    fn monomials(&mut self, sym: Sym) -> Option<Vec<Monomial>> {
        let LinearForm { terms, constant } = self.lin_mut(sym);
        if terms.len() >= MAX_QUOTIENT_TERMS {
            return None;
        }
        let mut list: Vec<Monomial> =
            terms.iter().map(|&(coef, t)| (coef, sorted(self.factors(t)))).collect();
        if constant != 0 {
            list.push((constant, SmallVec::new()));
        }
        list.sort_by(|a, b| leading_first(&a.1, &b.1));
        Some(list)
    }

    fn of_monomial(&mut self, (coef, factors): Monomial) -> Sym {
        let coef = self.int(coef);
        let product = self.product(factors);
        self.mul(product, coef)
    }
}

fn sorted(mut factors: SymList) -> SymList {
    factors.sort();
    factors
}

/// Orders two monomials so that the leading one comes first: lexicographically by exponents. At the first atom whose exponents
/// differ, the monomial with the higher exponent comes first. Multiplying both monomials by a third one does not change their
/// order.
fn leading_first(a: &[Sym], b: &[Sym]) -> std::cmp::Ordering {
    let differ = a.iter().zip(b).find(|(x, y)| x != y);
    differ.map_or_else(|| b.len().cmp(&a.len()), |(x, y)| x.cmp(y))
}

/// Removes the factors in `divisor` from the list `factors`. `None` if `factors` does not contain all of them.
fn without(factors: &[Sym], divisor: &[Sym]) -> Option<SymList> {
    let mut left = SymList::from_slice(factors);
    for d in divisor {
        let at = left.iter().position(|f| f == d)?;
        left.remove(at);
    }
    Some(left)
}

fn merged(a: &[Sym], b: &[Sym]) -> SymList {
    sorted(a.iter().chain(b).copied().collect())
}

/// The factors that two lists have in common, as often as both lists contain them.
fn shared(a: &[Sym], b: &[Sym]) -> SymList {
    let mut left = SymList::from_slice(b);
    let is_shared = |f: &&Sym| {
        let at = left.iter().position(|l| l == *f);
        at.map(|at| left.remove(at)).is_some()
    };
    a.iter().filter(is_shared).copied().collect()
}

/// Adds a monomial to a sorted polynomial. `None` on overflow or if the result is too long.
fn add(list: &mut Vec<Monomial>, (coef, factors): Monomial) -> Option<()> {
    match list.binary_search_by(|m| leading_first(&m.1, &factors)) {
        Ok(at) => {
            list[at].0 = list[at].0.checked_add(coef)?;
            if list[at].0 == 0 {
                list.remove(at);
            }
        }
        Err(at) => list.insert(at, (coef, factors)),
    }
    (list.len() <= 2 * MAX_QUOTIENT_TERMS).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_quotient_divides_polynomials_exactly() {
        let mut s = SymArena::new();
        let [h, w, b] = ["h", "w", "b"].map(|n| {
            let v = s.fresh_var(n);
            s.var(v)
        });
        let (one, four) = (s.int(1), s.int(4));
        let b4 = s.mul(b, four);
        assert_eq!(s.exact_quotient(b4, b4), Some(one));
        assert_eq!(s.exact_quotient(b4, b), Some(four));
        assert_eq!(s.exact_quotient(b, b4), None);
        // (h // 2 + 1) * (w + 3) * b over (w + 3)
        let two = s.int(2);
        let half = s.floordiv(h, two);
        let rows = s.add(half, one);
        let three = s.int(3);
        let columns = s.add(w, three);
        let area = s.mul(rows, columns);
        let all = s.mul(area, b);
        let expected = s.mul(rows, b);
        assert_eq!(s.exact_quotient(all, columns), Some(expected));
        assert_eq!(s.exact_quotient(all, w), None);
        let zero = s.int(0);
        assert_eq!(s.exact_quotient(zero, b), Some(zero));
        assert_eq!(s.exact_quotient(b, zero), None);
    }

    #[test]
    fn reduced_quotient_cancels_common_sizes() {
        let mut s = SymArena::new();
        let [h, w] = ["h", "w"].map(|n| {
            let v = s.fresh_var(n);
            s.var(v)
        });
        let (zero, one, six, four) = (s.int(0), s.int(1), s.int(6), s.int(4));
        let (three, two) = (s.int(3), s.int(2));
        let expected = (s.mul(w, three), two);
        assert_eq!(s.reduced_quotient(&[h, w, six], &[four, h]), expected);
        let area = s.mul(h, w);
        assert_eq!(s.reduced_quotient(&[area, six], &[w]), (s.mul(h, six), one));
        assert_eq!(s.reduced_quotient(&[zero, h], &[zero]), (h, one));
        assert_eq!(s.reduced_quotient(&[h], &[zero]), (h, zero));
    }
}
