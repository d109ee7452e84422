//! Constant bounds of terms: interval arithmetic, refined by linear relations between terms.

use crate::linear_form::LinearForm;
use crate::term_analyzer::{Analyzer, MAX_DEPTH};
use crate::term_arena::IS_BOOL;
use crate::term_types::{Node, Sym, SymKind};

/// An interval of integers from `min` to `max`, both inclusive. [`Bound::NEG_INF`] and [`Bound::POS_INF`] mean unbounded. The
/// interval is empty if `min > max`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The least integer in the interval; `NEG_INF` if the interval has no lower bound.
    pub min: i64,
    /// The greatest integer in the interval; `POS_INF` if the interval has no upper bound.
    pub max: i64,
}

/// One end of an interval, in 128-bit arithmetic. `None` means that the interval is unbounded at this end.
type Endpoint = Option<i128>;

impl Bound {
    /// The value of the field `min` of an interval without a lower bound.
    pub const NEG_INF: i64 = i64::MIN;
    /// The value of the field `max` of an interval without an upper bound.
    pub const POS_INF: i64 = i64::MAX;
    /// The interval that contains all integers.
    pub const EVERYTHING: Bound = Bound { min: Bound::NEG_INF, max: Bound::POS_INF };

    /// Creates the interval of the integers from `min` to `max`, both inclusive.
    pub fn new(min: i64, max: i64) -> Bound {
        Bound { min, max }
    }

    /// Creates the interval that contains only `value`.
    pub fn point(value: i64) -> Bound {
        Bound { min: value, max: value }
    }

    /// Returns the only integer in the interval; `None` unless there is exactly one.
    pub fn as_point(self) -> Option<i64> {
        let finite = self.min != Bound::NEG_INF && self.max != Bound::POS_INF;
        (self.min == self.max && finite).then_some(self.min)
    }

    /// The lower end of the interval; `None` if unbounded.
    pub fn lo(self) -> Option<i64> {
        (self.min != Bound::NEG_INF).then_some(self.min)
    }

    /// The upper end of the interval; `None` if unbounded.
    pub fn hi(self) -> Option<i64> {
        (self.max != Bound::POS_INF).then_some(self.max)
    }

    /// Whether an integer is in the interval.
    pub fn contains(self, value: i64) -> bool {
        self.lo().is_none_or(|lo| lo <= value) && self.hi().is_none_or(|hi| value <= hi)
    }

    /// The intersection of two intervals.
    pub fn intersect(self, other: Bound) -> Bound {
        Bound { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    /// The smallest interval that contains both intervals.
    pub fn union(self, other: Bound) -> Bound {
        Bound { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    fn ends(self) -> (Endpoint, Endpoint) {
        (self.lo().map(i128::from), self.hi().map(i128::from))
    }

    /// Converts the ends of an interval to 64 bits. An end that does not fit becomes infinite or the nearest representable
    /// integer, so that no integer of the interval is lost.
    fn from_ends(lo: Endpoint, hi: Endpoint) -> Bound {
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        Bound { min: lo.map_or(Bound::NEG_INF, clamp), max: hi.map_or(Bound::POS_INF, clamp) }
    }

    fn add(self, other: Bound) -> Bound {
        let ((a, b), (c, d)) = (self.ends(), other.ends());
        Bound::from_ends(a.zip(c).map(|(x, y)| x + y), b.zip(d).map(|(x, y)| x + y))
    }

    pub(crate) fn scale(self, k: i64) -> Bound {
        let by = |e: Endpoint| e.map(|v| v * i128::from(k));
        let (lo, hi) = self.ends();
        match k {
            0 => Bound::point(0),
            1.. => Bound::from_ends(by(lo), by(hi)),
            _ => Bound::from_ends(by(hi), by(lo)),
        }
    }

    fn mul(self, other: Bound) -> Bound {
        if let Some(k) = self.as_point() {
            return other.scale(k);
        }
        if let Some(k) = other.as_point() {
            return self.scale(k);
        }
        let ((a, b), (c, d)) = (self.ends(), other.ends());
        // If a side is unbounded, so is the product, unless the signs exclude it.
        let (left_pos, right_pos) = (self.min >= 0, other.min >= 0);
        match (a, b, c, d) {
            (Some(a), Some(b), Some(c), Some(d)) => {
                let all = [a * c, a * d, b * c, b * d];
                Bound::from_ends(all.iter().copied().min(), all.iter().copied().max())
            }
            _ if left_pos && right_pos => {
                Bound::from_ends(a.zip(c).map(|(x, y)| x * y), b.zip(d).map(|(x, y)| x * y))
            }
            _ if self.max <= 0 && other.max <= 0 => Bound::new(0, Bound::POS_INF),
            _ if (left_pos && other.max <= 0) || (right_pos && self.max <= 0) => {
                Bound::new(Bound::NEG_INF, 0)
            }
            _ => Bound::EVERYTHING,
        }
    }

    /// The possible values of `self // divisor` for divisors of at least 1.
    fn div_positive(self, divisor: Bound) -> Bound {
        let ((a, b), (c, d)) = (self.ends(), divisor.ends());
        let least = c.unwrap_or(1).max(1);
        let lo = a.map(|a| match d {
            _ if a < 0 => a.div_euclid(least),
            Some(d) => a.div_euclid(d.max(1)),
            None => 0,
        });
        let hi = b.map(|b| match d {
            _ if b >= 0 => b.div_euclid(least),
            Some(d) => b.div_euclid(d.max(1)),
            None => -1,
        });
        Bound::from_ends(lo, hi)
    }
}

impl Analyzer<'_> {
    /// Computes an interval that contains all values of a term that are possible under the assumed facts. The interval may be
    /// larger than necessary.
    pub fn const_int_bound(&mut self, sym: Sym) -> Bound {
        let bound = self.bound_at(sym, 0);
        if bound.lo().is_some() && bound.hi().is_some() {
            return bound;
        }
        let lin = self.arena.lin_mut(sym);
        bound.intersect(self.relaxed_bound(&lin))
    }

    pub(crate) fn bound_at(&mut self, sym: Sym, depth: u32) -> Bound {
        match self.arena.node(sym) {
            Node::Int(v) => return Bound::point(v),
            Node::Var(v) if !self.facts.has_bindings() => return self.facts.range(v),
            _ if depth > MAX_DEPTH => return Bound::EVERYTHING,
            _ => {}
        }
        if let Some(&known) = self.bound_memo.get(&sym) {
            return known;
        }
        let mut bound = self.bound_fresh(sym, depth + 1);
        if let Some(assumed) = self.facts.term_range(sym) {
            bound = bound.intersect(assumed);
        }
        self.bound_memo.insert(sym, bound);
        bound
    }

    fn bound_fresh(&mut self, sym: Sym, depth: u32) -> Bound {
        if self.arena.flags(sym) & IS_BOOL != 0 {
            return Bound::new(0, 1);
        }
        let children = self.arena.children(sym);
        match self.arena.kind(sym) {
            SymKind::Var(v) => {
                let known = self.facts.range(v);
                match self.facts.binding(v) {
                    Some(value) => known.intersect(self.bound_at(value, depth)),
                    None => known,
                }
            }
            SymKind::Sum { terms, constant } => {
                let lin = LinearForm { terms: terms.into(), constant };
                self.interval(&lin, depth)
            }
            SymKind::Product(_) | SymKind::BigMul(..) => self.bound_product(&children, depth),
            SymKind::FloorDiv(a, b) => {
                let (a, b) = (self.bound_at(a, depth), self.bound_at(b, depth));
                if b.min >= 1 { a.div_positive(b) } else { Bound::EVERYTHING }
            }
            SymKind::FloorMod(a, b) => {
                let (a, b) = (self.bound_at(a, depth), self.bound_at(b, depth));
                bound_mod(a, b)
            }
            SymKind::Min(_) => self.bound_extremum(&children, depth, true),
            SymKind::Max(_) => self.bound_extremum(&children, depth, false),
            SymKind::Select(_, a, b) => self.bound_at(a, depth).union(self.bound_at(b, depth)),
            SymKind::BigAdd(a, b) => self.bound_at(a, depth).add(self.bound_at(b, depth)),
            _ => Bound::EVERYTHING,
        }
    }

    fn bound_product(&mut self, factors: &[Sym], depth: u32) -> Bound {
        let mut out = Bound::point(1);
        let mut i = 0;
        while i < factors.len() {
            let bound = self.bound_at(factors[i], depth);
            // Factors are sorted, so equal ones are adjacent. An even power is never negative.
            if factors.get(i + 1) == Some(&factors[i]) {
                let square = bound.mul(bound);
                let low = if bound.contains(0) { 0 } else { square.min.max(0) };
                out = out.mul(Bound::new(low, square.max));
                i += 2;
            } else {
                out = out.mul(bound);
                i += 1;
            }
        }
        out
    }

    fn bound_extremum(&mut self, items: &[Sym], depth: u32, is_min: bool) -> Bound {
        let mut out = self.bound_at(items[0], depth);
        for &s in &items[1..] {
            let b = self.bound_at(s, depth);
            out = if is_min {
                Bound::new(out.min.min(b.min), out.max.min(b.max))
            } else {
                Bound::new(out.min.max(b.min), out.max.max(b.max))
            };
        }
        out
    }

    /// Computes an interval that contains all values of a linear form, by interval arithmetic, which treats the terms as
    /// independent.
    pub(crate) fn interval(&mut self, lin: &LinearForm, depth: u32) -> Bound {
        let mut out = Bound::point(lin.constant);
        for &(k, t) in &lin.terms {
            out = out.add(self.bound_at(t, depth).scale(k));
            if out == Bound::EVERYTHING {
                break;
            }
        }
        out
    }

    /// Computes an interval that contains all values of an expanded linear form. The inequality `x - c + 1 <= c * (x // c) <= x`
    /// replaces each quotient `x // c` by its dividend `x`, starting with the most recently created quotient. So the interval of
    /// `n - n // 2` is tighter than with plain interval arithmetic, which treats `n` and `n // 2` as independent.
    pub(crate) fn relaxed_bound(&mut self, lin: &LinearForm) -> Bound {
        let min = self.relaxed_end(lin);
        let max = lin.scale(-1).and_then(|l| self.relaxed_end(&l));
        Bound::from_ends(min, max.map(|v| -v))
    }

    /// Computes a lower bound of an expanded linear form, the lower end of [`relaxed_bound`](Self::relaxed_bound); `None` if there
    /// is none.
    fn relaxed_end(&mut self, lin: &LinearForm) -> Endpoint {
        let mut lin = lin.clone();
        let mut scale = 1i64;
        let mut best = self.interval(&lin, 0).ends().0;
        for _ in 0..8 {
            let quotient = lin.terms.iter().rev().find_map(|&(k, t)| match self.arena.kind(t) {
                SymKind::FloorDiv(x, b) => {
                    let c = self.arena.as_int(b).filter(|&c| c > 0)?;
                    Some((k, t, x, c))
                }
                _ => None,
            });
            let Some((k, t, x, c)) = quotient else { break };
            let dividend = self.arena.lin_mut(x);
            let next = || {
                let without = lin.sub(&LinearForm::term(k, t))?.scale(c)?;
                let replaced = without.add_scaled(k, &dividend)?;
                // For a lower bound with `k > 0`: `c * (x // c)` is at most `c - 1` below `x`.
                replaced.add_const(if k > 0 { k.checked_mul(1 - c)? } else { 0 })
            };
            let Some(next) = next() else { break };
            let Some(total) = scale.checked_mul(c) else { break };
            lin = next;
            scale = total;
            // The form has integer values, so its lower bound is rounded up.
            let here = self.interval(&lin, 0).ends().0.map(|v| -(-v).div_euclid(i128::from(scale)));
            best = match (best, here) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        best
    }
}

fn bound_mod(a: Bound, b: Bound) -> Bound {
    if b.min >= 1 {
        let top = b.hi().map_or(Bound::POS_INF, |v| v - 1);
        if a.min >= 0 && a.hi().is_some_and(|hi| hi < b.min) {
            return a;
        }
        let top = if a.min >= 0 { top.min(a.max) } else { top };
        return Bound::new(0, top);
    }
    if b.max <= -1 {
        return Bound::new(b.lo().map_or(Bound::NEG_INF, |v| v + 1), 0);
    }
    let low = b.lo().map_or(Bound::NEG_INF, |v| (v + 1).min(0));
    let high = b.hi().map_or(Bound::POS_INF, |v| (v - 1).max(0));
    Bound::new(low, high)
}
