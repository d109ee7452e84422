//! Simplifies terms with the help of assumed facts about their variables, for example a floor division or a remainder by the
//! bounds of the dividend. The value of a term stays the same wherever the facts hold, and simplifying twice has no further effect.

use rustc_hash::FxHashMap;

use crate::division_builders::split_candidates;
use crate::linear_form::LinearForm;
use crate::predicate_prover::Proof;
use crate::substitution_and_traversal::OwnedKind;
use crate::term_analyzer::Analyzer;
use crate::term_types::{Sym, SymKind, SymList};
use crate::terms_to_linear_constraints::Constraint;

/// Maximum number of bottom-up passes over a term during its simplification. If the last pass still changes the term, the original
/// term is returned.
const MAX_ROUNDS: usize = 8;
/// Maximum number of nodes of a term. Larger terms are returned unsimplified.
const MAX_NODES: usize = 4096;

impl Analyzer<'_> {
    /// Returns a simpler term that has the same value wherever the assumed facts hold, or the term itself. Simplifying the result
    /// again returns the same term.
    pub fn simplify(&mut self, sym: Sym) -> Sym {
        if self.nesting > 0 {
            return self.simplify_rounds(sym).unwrap_or(sym);
        }
        self.open_pool();
        let simple = self.simplify_rounds(sym);
        let sufficed = self.close_pool();
        // If the budget was exhausted, the result might not be idempotent.
        simple.filter(|_| sufficed).unwrap_or(sym)
    }

    fn simplify_rounds(&mut self, sym: Sym) -> Option<Sym> {
        let mut current = sym;
        for _ in 0..MAX_ROUNDS {
            let next = self.simplify_round(current)?;
            if next == current {
                return Some(current);
            }
            current = next;
        }
        None
    }

    /// Simplifies a term in one bottom-up pass. `None` if the term is too large.
    fn simplify_round(&mut self, sym: Sym) -> Option<Sym> {
        let mut done: FxHashMap<Sym, Sym> = FxHashMap::default();
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            if done.contains_key(&s) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let children = self.arena.children(s);
            stack.extend(children.iter().rev().filter(|c| !done.contains_key(c)));
            if stack.len() > before {
                continue;
            }
            self.refill();
            if done.len() >= MAX_NODES || self.steps == 0 {
                return None;
            }
            let result = self.simplify_node(s, &done);
            done.insert(s, result);
            stack.pop();
        }
        done.get(&sym).copied()
    }

    fn simplify_node(&mut self, sym: Sym, done: &FxHashMap<Sym, Sym>) -> Sym {
        let map = |c: Sym| done.get(&c).copied().unwrap_or(c);
        let width = self.arena.lin(sym).terms.len();
        self.charge(4 + width * width);
        let built = match self.arena.owned_kind(sym) {
            OwnedKind::Int(_) => return sym,
            OwnedKind::Var(v) => self.facts.binding(v).unwrap_or(sym),
            OwnedKind::FloorDiv(a, b) => self.simplify_div(map(a), map(b)),
            OwnedKind::FloorMod(a, b) => self.simplify_mod(map(a), map(b)),
            owned => self.arena.rebuild(sym, owned, map),
        };
        if let Some(value) = self.constant_value(built) {
            return self.arena.int(value);
        }
        match self.arena.owned_kind(built) {
            OwnedKind::Sum(..) => self.simplify_sum(built),
            OwnedKind::Min(list) => self.simplify_extremum(built, &list, true),
            OwnedKind::Max(list) => self.simplify_extremum(built, &list, false),
            OwnedKind::Cmp(..) | OwnedKind::And(_) | OwnedKind::Or(_) | OwnedKind::Not(_) => {
                self.refill();
                match self.prove(built) {
                    Proof::Yes => self.arena.int(1),
                    Proof::No => self.arena.int(0),
                    Proof::Unknown => built,
                }
            }
            _ => built,
        }
    }

    /// Returns the value of a term if its bounds or residues allow only one value, otherwise `None`.
    fn constant_value(&mut self, sym: Sym) -> Option<i64> {
        let bound = self.const_int_bound(sym);
        if let Some(v) = bound.as_point() {
            return Some(v);
        }
        let set = self.modular_at(sym, 0);
        (set.coeff == 0).then_some(set.base)
    }

    fn simplify_div(&mut self, a: Sym, b: Sym) -> Sym {
        let quotient = match self.arena.as_int(b) {
            Some(c) if c > 1 => self.div_low_part(a, c),
            Some(_) => None,
            None => self.div_by_term(a, b).map(|q| q.0),
        };
        quotient.unwrap_or_else(|| self.arena.floordiv(a, b))
    }

    fn simplify_mod(&mut self, a: Sym, b: Sym) -> Sym {
        match self.arena.as_int(b) {
            Some(c) if c > 1 => {
                let quotient = self.simplify_div(a, b);
                let (la, lq) = (self.arena.lin_mut(a), self.arena.lin_mut(quotient));
                let rest = c.checked_neg().and_then(|m| la.add_scaled(m, &lq));
                rest.map(|r| self.arena.of_lin(&r))
            }
            Some(_) => None,
            None => self.div_by_term(a, b).map(|q| q.1),
        }
        .unwrap_or_else(|| self.arena.floormod(a, b))
    }

    /// Simplifies `a // c` with the identity `(g * y + r) // (g * d) == y // d`, if `a` can be written as `g * y + r` so that `r`
    /// is in `0..g` under the facts. `None` otherwise.
    fn div_low_part(&mut self, a: Sym, c: i64) -> Option<Sym> {
        let lin = self.arena.lin_mut(a);
        let shown = self.arena.recover_mod(&lin);
        for (g, high, low) in split_candidates(&shown, c) {
            if low.terms.is_empty() && low.constant == 0 {
                continue;
            }
            let bound = self.interval(&low, 0);
            if bound.min >= 0 && bound.hi().is_some_and(|hi| hi < g) {
                let high = self.arena.intern_lin(&high);
                let divisor = self.arena.int(c / g);
                return Some(self.arena.floordiv(high, divisor));
            }
        }
        None
    }

    /// Computes the quotient and the remainder of `a` by a non-constant divisor `b` that is not 0. If `b` divides `a` as a
    /// polynomial, the remainder is 0. Otherwise divides the terms of `a` that contain `b` as a factor; the other terms are the
    /// remainder if their sum is provably in `0..b`.
    fn div_by_term(&mut self, a: Sym, b: Sym) -> Option<(Sym, Sym)> {
        let divisor = self.bound_at(b, 0);
        self.refill();
        let positive = divisor.min >= 1 || (divisor.contains(1) && self.is_at_least(b, 1));
        if !positive && divisor.contains(0) {
            return None;
        }
        if let Some(quotient) = self.arena.exact_quotient(a, b) {
            return Some((quotient, self.arena.int(0)));
        }
        let lin = self.arena.lin_mut(a);
        let needed = self.arena.factors(b);
        let (mut whole, mut rest) = (LinearForm::int(0), LinearForm::int(lin.constant));
        for &(k, t) in &lin.terms {
            match self.without_factors(t, &needed) {
                Some(part) => whole = whole.add(&part.scale(k)?)?,
                None => rest = rest.add(&LinearForm::term(k, t))?,
            }
        }
        let zero = self.arena.int(0);
        let left = self.arena.of_lin(&rest);
        let (inner, remainder) = if left == zero {
            (zero, zero)
        } else if positive && self.is_remainder(left, b) {
            (zero, left)
        } else if whole.terms.is_empty() && whole.constant == 0 {
            return None;
        } else {
            (self.arena.floordiv(left, b), self.arena.floormod(left, b))
        };
        let whole = self.arena.of_lin(&whole);
        Some((self.arena.add(whole, inner), remainder))
    }

    /// Whether `0 <= r < d` can be proved.
    fn is_remainder(&mut self, r: Sym, d: Sym) -> bool {
        self.refill();
        let zero = self.arena.int(0);
        self.prove_le(zero, r).is_yes() && self.prove_lt(r, d).is_yes()
    }

    fn without_factors(&mut self, term: Sym, needed: &SymList) -> Option<LinearForm> {
        let mut factors = self.arena.factors(term);
        for n in needed {
            let at = factors.iter().position(|f| f == n)?;
            factors.remove(at);
        }
        match factors.len() {
            0 => Some(LinearForm::int(1)),
            _ => Some(LinearForm::term(1, self.arena.product_of(factors)?)),
        }
    }

    /// Rewrites `c * (x // c)` to `x - r` if the residue `r` of `x` modulo `c` is known.
    fn simplify_sum(&mut self, sym: Sym) -> Sym {
        let mut lin = self.arena.lin_mut(sym);
        let mut changed = false;
        for (k, t) in lin.terms.clone() {
            let SymKind::FloorDiv(x, d) = self.arena.kind(t) else { continue };
            let Some(c) = self.arena.as_int(d).filter(|&c| c > 1 && k % c == 0) else { continue };
            let Some(residue) = self.modular_at(x, 0).residue(c) else { continue };
            let dividend = self.arena.lin_mut(x).add_const(-residue);
            let replaced =
                dividend.and_then(|x| lin.sub(&LinearForm::term(k, t))?.add_scaled(k / c, &x));
            if let Some(next) = replaced {
                lin = next;
                changed = true;
            }
        }
        if changed { self.arena.of_lin(&lin) } else { sym }
    }

    fn simplify_extremum(&mut self, sym: Sym, list: &SymList, is_min: bool) -> Sym {
        let mut kept = list.clone();
        let mut i = 0;
        while i < kept.len() && kept.len() > 1 {
            let others = kept.iter().enumerate().filter(|o| o.0 != i).map(|o| *o.1);
            let others: SymList = others.collect();
            let x = kept[i];
            if others.into_iter().any(|o| self.makes_redundant(o, x, is_min)) {
                kept.remove(i);
            } else {
                i += 1;
            }
        }
        if kept.len() == list.len() {
            return sym;
        }
        self.arena.extremum_of(kept, is_min)
    }

    /// Whether `keep` makes `x` redundant: `keep <= x` for a minimum, `keep >= x` for a maximum.
    fn makes_redundant(&mut self, keep: Sym, x: Sym, is_min: bool) -> bool {
        self.refill();
        let (low, high) = if is_min { (keep, x) } else { (x, keep) };
        let (low, high) = (self.arena.lin_mut(low), self.arena.lin_mut(high));
        let Some(gap) = low.sub(&high).and_then(|d| d.add_const(-1)) else { return false };
        self.contradictory([Constraint::Ge(gap)])
    }
}
