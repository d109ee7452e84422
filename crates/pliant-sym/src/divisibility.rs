//! Divisibility of terms: the residue class in which all values of a term lie.

use crate::linear_form::{floor_div, floor_mod, gcd};
use crate::term_analyzer::{Analyzer, MAX_DEPTH};
use crate::term_types::{Node, Sym, SymKind};

/// The set of integers `coeff * k + base` for all integers `k`. If `coeff` is 0, its only member is `base`. Otherwise
/// `0 <= base < coeff`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ModularSet {
    /// The distance between adjacent members of the set; 0 if the set has only one member.
    pub coeff: i64,
    /// The least non-negative member of the set or, if `coeff` is 0, its only member.
    pub base: i64,
}

impl ModularSet {
    /// The set of all integers.
    pub const EVERYTHING: ModularSet = ModularSet { coeff: 1, base: 0 };

    /// The set that contains `base`, with the distance `coeff` between adjacent members. The sign of `coeff` is ignored.
    pub fn new(coeff: i64, base: i64) -> ModularSet {
        match coeff.checked_abs() {
            Some(0) => ModularSet { coeff: 0, base },
            Some(coeff) => ModularSet { coeff, base: base.rem_euclid(coeff) },
            None => ModularSet::EVERYTHING,
        }
    }

    /// The set whose only member is `base`.
    pub fn constant(base: i64) -> ModularSet {
        ModularSet { coeff: 0, base }
    }

    /// Returns the residue modulo `m > 0` that all members of the set have; `None` if they have different residues.
    pub fn residue(self, m: i64) -> Option<i64> {
        let common = if self.coeff == 0 { Some(0) } else { self.coeff.checked_rem(m) };
        if common == Some(0) { floor_mod(self.base, m) } else { None }
    }

    /// Whether an integer is a member of the set.
    pub fn contains(self, value: i64) -> bool {
        let (v, b, c) = (i128::from(value), i128::from(self.base), i128::from(self.coeff));
        if c == 0 { v == b } else { (v - b).rem_euclid(c) == 0 }
    }

    fn raw(coeff: Option<i64>, base: Option<i64>) -> ModularSet {
        match (coeff, base) {
            (Some(c), Some(b)) => ModularSet::new(c, b),
            _ => ModularSet::EVERYTHING,
        }
    }

    fn add(self, other: ModularSet) -> ModularSet {
        ModularSet::raw(gcd_i64(self.coeff, other.coeff), self.base.checked_add(other.base))
    }

    fn scale(self, k: i64) -> ModularSet {
        ModularSet::raw(self.coeff.checked_mul(k), self.base.checked_mul(k))
    }

    fn mul(self, other: ModularSet) -> ModularSet {
        let coeff = || {
            let square = self.coeff.checked_mul(other.coeff)?;
            let left = self.coeff.checked_mul(other.base)?;
            let right = other.coeff.checked_mul(self.base)?;
            gcd_i64(gcd_i64(square, left)?, right)
        };
        ModularSet::raw(coeff(), self.base.checked_mul(other.base))
    }

    /// The smallest set `coeff * k + base` that contains both sets.
    pub fn union(self, other: ModularSet) -> ModularSet {
        let gap = self.base.checked_sub(other.base);
        let coeff = gap.and_then(|g| gcd_i64(gcd_i64(self.coeff, other.coeff)?, g));
        ModularSet::raw(coeff, Some(self.base))
    }

    /// A superset of the intersection: the intersection itself if it can be represented, else one of the operands.
    pub fn intersect(self, other: ModularSet) -> ModularSet {
        let (large, small) = if self.coeff == 0 || (other.coeff != 0 && self.coeff >= other.coeff) {
            (self, other)
        } else {
            (other, self)
        };
        if large.coeff == 0 || large.coeff % small.coeff.max(1) == 0 {
            return large;
        }
        let step = gcd(large.coeff.unsigned_abs(), small.coeff.unsigned_abs());
        let Some(lcm) =
            i64::try_from(step).ok().and_then(|g| (large.coeff / g).checked_mul(small.coeff))
        else {
            return large;
        };
        // Finding the residue takes up to `small.coeff` steps, so limit the search.
        let steps = small.coeff.min(4096);
        let member = (0..steps)
            .filter_map(|i| large.coeff.checked_mul(i)?.checked_add(large.base))
            .find(|&v| small.contains(v));
        member.map_or(large, |v| ModularSet::new(lcm, v))
    }
}

fn gcd_i64(a: i64, b: i64) -> Option<i64> {
    i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).ok()
}

impl Analyzer<'_> {
    /// Computes a set `coeff * k + base` that contains all values of a term that are possible under the assumed facts.
    pub fn modular_set(&mut self, sym: Sym) -> ModularSet {
        self.modular_at(sym, 0)
    }

    pub(crate) fn modular_at(&mut self, sym: Sym, depth: u32) -> ModularSet {
        match self.arena.node(sym) {
            Node::Int(v) => return ModularSet::constant(v),
            _ if depth > MAX_DEPTH => return ModularSet::EVERYTHING,
            _ => {}
        }
        if let Some(&known) = self.modular_memo.get(&sym) {
            return known;
        }
        let set = self.modular_fresh(sym, depth + 1);
        self.modular_memo.insert(sym, set);
        set
    }

    fn modular_fresh(&mut self, sym: Sym, depth: u32) -> ModularSet {
        let children = self.arena.children(sym);
        match self.arena.kind(sym) {
            SymKind::Var(v) => {
                let known = self.facts.residue(v);
                match self.facts.binding(v) {
                    Some(value) => known.intersect(self.modular_at(value, depth)),
                    None => known,
                }
            }
            SymKind::Sum { terms, constant } => {
                let terms: Vec<_> = terms.to_vec();
                terms.into_iter().fold(ModularSet::constant(constant), |acc, (k, t)| {
                    acc.add(self.modular_at(t, depth).scale(k))
                })
            }
            SymKind::Product(_) | SymKind::BigMul(..) => children
                .into_iter()
                .fold(ModularSet::constant(1), |acc, c| acc.mul(self.modular_at(c, depth))),
            SymKind::BigAdd(..) => children
                .into_iter()
                .fold(ModularSet::constant(0), |acc, c| acc.add(self.modular_at(c, depth))),
            SymKind::FloorDiv(a, b) => {
                let Some(c) = self.arena.as_int(b) else { return ModularSet::EVERYTHING };
                let set = self.modular_at(a, depth);
                match set.coeff.checked_rem(c) {
                    Some(0) => ModularSet::raw(Some(set.coeff / c), floor_div(set.base, c)),
                    _ => ModularSet::EVERYTHING,
                }
            }
            SymKind::FloorMod(a, b) => {
                let Some(c) = self.arena.as_int(b).filter(|&c| c > 0) else {
                    return ModularSet::EVERYTHING;
                };
                let set = self.modular_at(a, depth);
                match set.residue(c) {
                    Some(r) => ModularSet::constant(r),
                    None => ModularSet::raw(gcd_i64(set.coeff, c), Some(set.base)),
                }
            }
            SymKind::Min(_) | SymKind::Max(_) => self.modular_union(&children, depth),
            SymKind::Select(..) => self.modular_union(&children[1..], depth),
            _ => ModularSet::EVERYTHING,
        }
    }

    fn modular_union(&mut self, items: &[Sym], depth: u32) -> ModularSet {
        let mut out = self.modular_at(items[0], depth);
        for &s in &items[1..] {
            out = out.union(self.modular_at(s, depth));
        }
        out
    }
}
