//! Finding `%` in an expanded linear form: `n - 4 * (n // 4)` becomes `n % 4`.
//!
//! The result is a function of the expanded form alone, and expanding it gives that form back. This
//! makes normal form independent of the order in which an expression is built.

use crate::arena::{Draft, HAS_DIV, SymArena};
use crate::kind::{Node, Sym, SymKind, SymList};
use crate::lin::{Lin, floor_mod};

/// Rounds of rewriting after which the form is left as it is.
const MAX_ROUNDS: usize = 64;

/// One way to read a quotient: `quotient == dividend // divisor`.
struct Reading {
    dividend: Lin,
    divisor: i64,
}

impl SymArena {
    /// Replaces quotients by remainders where their dividends are at hand.
    pub(crate) fn sugar(&mut self, lin: &Lin) -> Lin {
        let mut out = lin.clone();
        if !out.terms.iter().any(|t| self.flags(t.1) & HAS_DIV != 0) {
            return out;
        }
        for _ in 0..MAX_ROUNDS {
            match self.sugar_once(&out) {
                Some(next) => out = next,
                None => break,
            }
        }
        out
    }

    /// One replacement: those that use a quotient up before those that leave some of it, and large
    /// divisors before small ones, so that the choice does not hang on the order of ids.
    fn sugar_once(&mut self, lin: &Lin) -> Option<Lin> {
        let mut sites: Vec<(i64, i64, Sym, Sym, SymList)> = Vec::new();
        for &(coef, term) in &lin.terms {
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
                sites.push((c, coef, term, quotient, rest));
            }
        }
        sites.sort_by_key(|site| std::cmp::Reverse(site.0));
        for exact in [true, false] {
            for (_, coef, term, quotient, rest) in &sites {
                for reading in self.readings(lin, *quotient, rest) {
                    if (coef % reading.divisor == 0) != exact {
                        continue;
                    }
                    let next = self.apply_reading(lin, (*coef, *term), *quotient, rest, &reading);
                    if next.is_some() {
                        return next;
                    }
                }
            }
        }
        None
    }

    /// `q = x // C` itself, and `(e + k) // (C / c)` for each other quotient `e = y // c` in the
    /// form (with the same cofactor) where `x == y + k * c`.
    fn readings(&self, lin: &Lin, quotient: Sym, rest: &SymList) -> Vec<Reading> {
        let mut out = Vec::new();
        let Some((x, c)) = self.quotient_parts(quotient) else { return out };
        let lx = self.lin(x);
        out.push(Reading { dividend: lx.clone(), divisor: c });
        for &(_, term) in &lin.terms {
            let Some(e) = self.cofactor(term, rest) else { continue };
            let Some((y, cy)) = self.quotient_parts(e) else { continue };
            if e == quotient || cy < 2 || cy >= c || c % cy != 0 {
                continue;
            }
            let Some(delta) = lx.sub(&self.lin(y)) else { continue };
            if delta.terms.is_empty() && floor_mod(delta.constant, cy) == Some(0) {
                let mut dividend = Lin::term(1, e);
                dividend.constant = delta.constant / cy;
                out.push(Reading { dividend, divisor: c / cy });
            }
        }
        out
    }

    fn quotient_parts(&self, sym: Sym) -> Option<(Sym, i64)> {
        match self.kind(sym) {
            SymKind::FloorDiv(x, b) => Some((x, self.as_int(b)?)),
            _ => None,
        }
    }

    /// The one factor that is left of `term` after removing `rest`.
    fn cofactor(&self, term: Sym, rest: &SymList) -> Option<Sym> {
        let mut factors = self.factors(term);
        if factors.len() != rest.len() + 1 {
            return None;
        }
        for r in rest {
            let at = factors.iter().position(|f| f == r)?;
            factors.remove(at);
        }
        factors.first().copied()
    }

    /// Takes `times * rest * dividend` out of the form and puts `times * rest * (dividend % c)` in,
    /// if all of the dividend's terms are there to be taken.
    fn apply_reading(
        &mut self,
        lin: &Lin,
        (coef, term): (i64, Sym),
        quotient: Sym,
        rest: &SymList,
        reading: &Reading,
    ) -> Option<Lin> {
        let c = reading.divisor;
        let times = nearest_multiple(coef, c)?;
        let mut dividend = Lin::int(0);
        for &(k, t) in &reading.dividend.terms {
            let mut factors = rest.clone();
            factors.extend_from_slice(&self.factors(t));
            let product = self.product_of(factors)?;
            let (have, need) = (lin.coef(product), times.checked_mul(k)?);
            if have.signum() != need.signum() || have.unsigned_abs() < need.unsigned_abs() {
                return None;
            }
            dividend = dividend.add(&Lin::term(k, product))?;
        }
        if rest.is_empty() {
            dividend.constant = reading.dividend.constant;
        } else if reading.dividend.constant != 0 {
            let product = self.product_of(rest.clone())?;
            let (have, need) = (lin.coef(product), times.checked_mul(reading.dividend.constant)?);
            if have.signum() != need.signum() || have.unsigned_abs() < need.unsigned_abs() {
                return None;
            }
            dividend = dividend.add(&Lin::term(reading.dividend.constant, product))?;
        }
        let taken = lin
            .add_scaled(times.checked_neg()?, &dividend)?
            .add(&Lin::term(times.checked_mul(c)?, term))?;
        // The dividend is stored as its own normal form, which may itself hold `%`.
        let shown = self.of_lin(&reading.dividend);
        let divisor = self.int(c);
        let remainder = self.intern(Draft::Leaf(Node::FloorMod(shown, divisor, quotient)));
        let mut factors = rest.clone();
        factors.push(remainder);
        let product = self.product_of(factors)?;
        taken.add(&Lin::term(times, product))
    }
}

/// How many times `x % c` is best read in `coef * (x // c)`: `-coef / c` rounded, halves to zero.
fn nearest_multiple(coef: i64, c: i64) -> Option<i64> {
    let magnitude = (2 * i128::from(coef).abs() + i128::from(c) - 1) / (2 * i128::from(c));
    let magnitude = i64::try_from(magnitude).ok()?;
    (magnitude != 0).then(|| if coef < 0 { magnitude } else { -magnitude })
}
