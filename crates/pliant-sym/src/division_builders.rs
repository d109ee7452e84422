//! Functions that build floor division, remainder and ceiling division in normal form.

use crate::linear_form::{LinearForm, floor_div, gcd};
use crate::term_arena::{HAS_DIV, IS_BOOL, SymArena, TermDraft};
use crate::term_types::{Node, Sym, SymKind};

/// Maximum weight (tree size) of the terms that are duplicated when a dividend is split into a multiple of the divisor and a
/// remainder. Dividends with heavier terms are not split.
const MAX_COPIED: u32 = 32;

impl SymArena {
    /// The quotient `a // b`, rounded towards minus infinity. Division by the constant 0 is kept as a term, whose evaluation
    /// fails.
    pub fn floordiv(&mut self, a: Sym, b: Sym) -> Sym {
        let Some(c) = self.as_int(b) else {
            return self.intern(TermDraft::Leaf(Node::FloorDiv(a, b)));
        };
        let lin = self.lin_mut(a);
        self.div_by_const(&lin, c)
            .unwrap_or_else(|| self.intern(TermDraft::Leaf(Node::FloorDiv(a, b))))
    }

    /// The remainder `a % b`, which is defined as `a - b * (a // b)` and has the sign of `b`.
    pub fn floormod(&mut self, a: Sym, b: Sym) -> Sym {
        let folded = self.as_int(b).and_then(|c| {
            let lin = self.lin_mut(a);
            let quotient = self.div_by_const(&lin, c)?;
            let quotient = self.lin_mut(quotient);
            lin.add_scaled(c.checked_neg()?, &quotient)
        });
        match folded {
            Some(remainder) => self.of_lin(&remainder),
            None => self.intern(TermDraft::Leaf(Node::FloorMod(a, b, a))),
        }
    }

    /// The quotient of `a` and `b`, rounded towards plus infinity: `(a + b - 1) // b` for a constant `b > 0`, and `-(-a // b)`
    /// otherwise.
    pub fn ceildiv(&mut self, a: Sym, b: Sym) -> Sym {
        if self.as_int(b).is_some_and(|c| c > 0) {
            let one = self.int(1);
            let slack = self.sub(b, one);
            let raised = self.add(a, slack);
            return self.floordiv(raised, b);
        }
        let negated = self.neg(a);
        let quotient = self.floordiv(negated, b);
        self.neg(quotient)
    }

    /// The quotient of a linear form by the constant `c`. `None` if `c` is 0 or on overflow.
    pub(crate) fn div_by_const(&mut self, lin: &LinearForm, c: i64) -> Option<Sym> {
        match c {
            0 => None,
            1 => Some(self.of_lin(lin)),
            ..0 => {
                let negated = lin.scale(-1)?;
                self.div_by_const(&negated, c.checked_neg()?)
            }
            _ => self.div_positive(lin, c),
        }
    }

    /// Divides a linear form by a positive constant `c`: extracts the multiples of `c`, then divides the remaining form.
    ///
    /// A coefficient that is not a multiple of `c` is split: `3 * e // 2` becomes `e + e // 2`. The result contains `e` twice, so
    /// repeated divisions would double the size of the tree every time. Therefore no coefficient is split if the total weight
    /// (tree size) of the terms to duplicate exceeds [`MAX_COPIED`]. The decision depends only on the linear form, so it is
    /// independent of the order in which the dividend was built.
    fn div_positive(&mut self, lin: &LinearForm, c: i64) -> Option<Sym> {
        let mut whole = LinearForm::int(floor_div(lin.constant, c)?);
        let mut rest = LinearForm::int(lin.constant.rem_euclid(c));
        let copied = lin.terms.iter().filter(|t| t.0 / c != 0 && t.0 % c != 0);
        let copied = copied.fold(0, |w: u32, t| w.saturating_add(self.weight(t.1)));
        for &(k, t) in &lin.terms {
            if k % c != 0 && copied > MAX_COPIED {
                rest = rest.add(&LinearForm::term(k, t))?;
                continue;
            }
            whole = whole.add(&LinearForm::term(k / c, t))?;
            rest = rest.add(&LinearForm::term(k % c, t))?;
        }
        if rest.terms.is_empty() {
            return Some(self.of_lin(&whole));
        }
        let quotient = self.div_reduced(rest, c)?;
        if whole == LinearForm::default() {
            return Some(quotient);
        }
        let quotient = self.lin_mut(quotient);
        let sum = whole.add(&quotient)?;
        Some(self.of_lin(&sum))
    }

    /// Divides a form whose coefficients are not multiples of `c`, and whose constant is in `0..c`, by `c`.
    fn div_reduced(&mut self, lin: LinearForm, c: i64) -> Option<Sym> {
        let common = i64::try_from(gcd(lin.gcd(), c.unsigned_abs())).ok()?;
        if common > 1 {
            let terms = lin.terms.iter().map(|&(k, t)| (k / common, t)).collect();
            let lin = LinearForm { terms, constant: lin.constant / common };
            return self.div_by_const(&lin, c / common);
        }
        if let Some(quotient) = self.div_without_low_part(&lin, c) {
            return Some(quotient);
        }
        if let Some(quotient) = self.div_nested(&lin, c) {
            return Some(quotient);
        }
        let dividend = self.of_lin(&lin);
        let divisor = self.int(c);
        Some(self.intern(TermDraft::Leaf(Node::FloorDiv(dividend, divisor))))
    }

    /// Divides by `c` with the identity `(y + x // d) // c == (y * d + x) // (d * c)`, if exactly one term of the dividend is a
    /// quotient `x // d` by a constant with the coefficient 1. `None` otherwise, or on overflow.
    fn div_nested(&mut self, lin: &LinearForm, c: i64) -> Option<Sym> {
        let parts = |s: &SymArena, t: Sym| match s.kind(t) {
            SymKind::FloorDiv(x, d) => Some((x, s.as_int(d).filter(|&d| d > 0)?)),
            _ => None,
        };
        let mut quotients =
            lin.terms.iter().filter_map(|&(k, t)| Some((t, parts(self, t)?)).filter(|_| k == 1));
        let (inner, (x, d)) = quotients.next()?;
        if quotients.next().is_some() {
            return None;
        }
        let others = lin.sub(&LinearForm::term(1, inner))?.scale(d)?;
        let dividend = self.lin_mut(x).add(&others)?;
        self.div_by_const(&dividend, d.checked_mul(c)?)
    }

    /// Divides by `c` with the identity `(g * y + r) // (g * d) == y // d`, if the dividend can be written as `g * y + r` so that
    /// [`form_bounds`](Self::form_bounds) shows that `r` is in `0..g`. `None` otherwise.
    fn div_without_low_part(&mut self, lin: &LinearForm, c: i64) -> Option<Sym> {
        let bounded = HAS_DIV | IS_BOOL;
        if !lin.terms.iter().any(|t| self.flags(t.1) & bounded != 0) {
            return None;
        }
        let shown = self.recover_mod(lin);
        for (g, high, low) in split_candidates(&shown, c) {
            if self.form_bounds(&low).is_some_and(|(lo, hi)| lo >= 0 && hi < i128::from(g)) {
                let high = self.intern_lin(&high);
                let high = self.lin_mut(high);
                return self.div_by_const(&high, c / g);
            }
        }
        None
    }

    /// Computes bounds of a linear form that hold for any values of its variables, if all its terms are remainders or predicates,
    /// which are bounded. `None` if the form has other terms.
    pub(crate) fn form_bounds(&self, lin: &LinearForm) -> Option<(i128, i128)> {
        let (mut lo, mut hi) = (i128::from(lin.constant), i128::from(lin.constant));
        for &(k, t) in &lin.terms {
            let top = match self.kind(t) {
                SymKind::FloorMod(_, b) => self.as_int(b).filter(|&c| c > 0)? - 1,
                _ if self.flags(t) & IS_BOOL != 0 => 1,
                _ => return None,
            };
            let reach = i128::from(k).checked_mul(i128::from(top))?;
            lo = lo.checked_add(reach.min(0))?;
            hi = hi.checked_add(reach.max(0))?;
        }
        Some((lo, hi))
    }
}

/// Lists the ways to write a linear form as `g * high + low`, where `g` divides `c`, as (`g`, `high`, `low`) in descending order
/// of `g`.
pub(crate) fn split_candidates(lin: &LinearForm, c: i64) -> Vec<(i64, LinearForm, LinearForm)> {
    let mut divisors = vec![c];
    for t in &lin.terms {
        if let Ok(g) = i64::try_from(gcd(t.0.unsigned_abs(), c.unsigned_abs()))
            && g > 1
            && !divisors.contains(&g)
        {
            divisors.push(g);
        }
    }
    divisors.sort_unstable_by(|a, b| b.cmp(a));
    let split = |g: i64| {
        let mut high = LinearForm::int(lin.constant.div_euclid(g));
        let mut low = LinearForm::int(lin.constant.rem_euclid(g));
        for &(k, t) in &lin.terms {
            let (part, value) = if k % g == 0 { (&mut high, k / g) } else { (&mut low, k) };
            part.terms.push((value, t));
        }
        (g, high, low)
    };
    divisors.into_iter().map(split).collect()
}
