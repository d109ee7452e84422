//! Recovers `%` from expanded linear forms: `n - 4 * (n // 4)` becomes `n % 4`.
//!
//! The result depends only on the expanded form, and expanding the result gives the original form again. Therefore the normal
//! form does not depend on the order in which an expression is built.

use smallvec::SmallVec;

use crate::linear_form::{LinearForm, floor_mod};
use crate::term_arena::{HAS_DIV, SymArena, TermDraft};
use crate::term_types::{Node, Sym, SymKind, SymList};

/// Maximum number of times that the rewrite of quotients to remainders is repeated on one linear form.
const MAX_ROUNDS: usize = 8;

/// An occurrence of a quotient in a linear form: the term that contains it as a factor, and the other factors of this term (the
/// cofactor).
struct QuotientSite {
    term: Sym,
    quotient: Sym,
    divisor: i64,
    rest: SymList,
}

/// One way to write the quotient of a [`QuotientSite`] as `dividend // divisor`.
struct QuotientReading {
    dividend: LinearForm,
    /// The dividend as a term in normal form, if this term exists already.
    shown: Option<Sym>,
    divisor: i64,
}

impl SymArena {
    /// Introduces remainders into a linear form where possible: a form that contains both `x` and a multiple of `x // c`, such as
    /// `x - c * (x // c)`, is rewritten to contain `x % c`.
    pub(crate) fn recover_mod(&mut self, lin: &LinearForm) -> LinearForm {
        let mut out = lin.clone();
        if !out.terms.iter().any(|t| self.flags(t.1) & HAS_DIV != 0) {
            return out;
        }
        for _ in 0..MAX_ROUNDS {
            if !self.recover_mod_round(&mut out) {
                break;
            }
        }
        out
    }

    /// Performs one round of replacing quotients by remainders, and returns whether it replaced anything. Replacements
    /// that eliminate a quotient come before those that leave a multiple of it, and large divisors come before small
    /// ones, so that the result does not depend on the order of ids.
    fn recover_mod_round(&mut self, lin: &mut LinearForm) -> bool {
        let mut sites: Vec<QuotientSite> = Vec::new();
        for &(_, term) in &lin.terms {
            if self.flags(term) & HAS_DIV == 0 {
                continue;
            }
            let factors = self.factors(term);
            for (i, &quotient) in factors.iter().enumerate() {
                let Some((_, c)) = self.quotient_parts(quotient).filter(|q| q.1 >= 2) else {
                    continue;
                };
                let mut rest = factors.clone();
                rest.remove(i);
                sites.push(QuotientSite { term, quotient, divisor: c, rest });
            }
        }
        sites.sort_by_key(|site| std::cmp::Reverse(site.divisor));
        let mut changed = false;
        for exact in [true, false] {
            for site in &sites {
                if lin.coef(site.term) == 0 {
                    continue;
                }
                for reading in self.readings(&sites, site) {
                    let coef = lin.coef(site.term);
                    if coef == 0 || (coef % reading.divisor == 0) != exact {
                        continue;
                    }
                    let next = self.apply_reading(lin, coef, site, &reading);
                    if let Some(next) = next {
                        *lin = next;
                        changed = true;
                    }
                }
            }
        }
        changed
    }

    /// Lists the ways to write the quotient `x // C` of `site`: unchanged and, for each other quotient `e = y // c` in
    /// `sites` that is multiplied by the same factors and for which `x == y + k * c`, as `(e + k) // (C / c)`.
    fn readings(
        &self,
        sites: &[QuotientSite],
        site: &QuotientSite,
    ) -> SmallVec<[QuotientReading; 2]> {
        let mut out = SmallVec::new();
        let Some((x, c)) = self.quotient_parts(site.quotient) else { return out };
        let lx = self.lin(x);
        for other in sites {
            let smaller = other.divisor < c && c % other.divisor == 0;
            if !smaller || other.rest != site.rest {
                continue;
            }
            let Some((y, cy)) = self.quotient_parts(other.quotient) else { continue };
            let Some(delta) = lx.sub(&self.lin(y)) else { continue };
            if delta.terms.is_empty() && floor_mod(delta.constant, cy) == Some(0) {
                let mut dividend = LinearForm::term(1, other.quotient);
                dividend.constant = delta.constant / cy;
                out.push(QuotientReading { dividend, shown: None, divisor: c / cy });
            }
        }
        out.insert(0, QuotientReading { dividend: lx, shown: Some(x), divisor: c });
        out
    }

    fn quotient_parts(&self, sym: Sym) -> Option<(Sym, i64)> {
        match self.kind(sym) {
            SymKind::FloorDiv(x, b) => Some((x, self.as_int(b)?)),
            _ => None,
        }
    }

    /// Replaces a part of the form by a remainder: if the form contains all terms of the dividend, subtracts
    /// `times * rest * dividend` and adds `times * rest * (dividend % c)`. Here `rest` is the cofactor of the quotient, `c` is
    /// its divisor, and [`nearest_multiple`] chooses `times`.
    fn apply_reading(
        &mut self,
        lin: &LinearForm,
        coef: i64,
        site: &QuotientSite,
        reading: &QuotientReading,
    ) -> Option<LinearForm> {
        let QuotientSite { term, quotient, ref rest, .. } = *site;
        let c = reading.divisor;
        let times = nearest_multiple(coef, c)?;
        let dividend = self.cofactor_times(rest, &reading.dividend)?;
        // Without a cofactor, the constant is always available.
        let available = dividend.terms.iter().all(|&(k, t)| {
            let (have, need) = (lin.coef(t), i128::from(times) * i128::from(k));
            let enough = i128::from(have).unsigned_abs() >= need.unsigned_abs();
            enough && i128::from(have.signum()) == need.signum()
        });
        if !available {
            return None;
        }
        let taken = lin
            .add_scaled(times.checked_neg()?, &dividend)?
            .add(&LinearForm::term(times.checked_mul(c)?, term))?;
        let shown = match reading.shown {
            Some(shown) => shown,
            None => self.of_lin(&reading.dividend),
        };
        let divisor = self.int(c);
        let remainder = self.intern(TermDraft::Leaf(Node::FloorMod(shown, divisor, quotient)));
        let mut factors = rest.clone();
        factors.push(remainder);
        let product = self.product_of(factors)?;
        taken.add(&LinearForm::term(times, product))
    }

    /// The product of a linear form and the factors `rest`, which are the factors of a term other than its quotient. An empty
    /// list of factors is 1.
    fn cofactor_times(&mut self, rest: &SymList, lin: &LinearForm) -> Option<LinearForm> {
        if rest.is_empty() {
            return Some(lin.clone());
        }
        let product = self.product_of(rest.clone())?;
        self.mul_lin(lin, &LinearForm::term(1, product))
    }
}

/// The multiple of `x % c` to extract from `coef * (x // c)`: `-coef / c`, rounded to the nearest integer, with ties towards 0.
/// `None` on overflow.
fn nearest_multiple(coef: i64, c: i64) -> Option<i64> {
    let magnitude = (2 * i128::from(coef).abs() + i128::from(c) - 1) / (2 * i128::from(c));
    let magnitude = i64::try_from(magnitude).ok()?;
    (magnitude != 0).then(|| if coef < 0 { magnitude } else { -magnitude })
}
