//! Finds the subterms of sizes that loop analyses cannot handle, such as selects and quotients by variables. Loop functions receive
//! the values of these subterms as parameters instead of computing them.

use rustc_hash::FxHashSet;

use crate::{Sym, SymArena, SymKind};

impl SymArena {
    /// Lists the largest subterms of a size that make loop bounds and indices hard to analyze: selects, quotients and remainders
    /// by a non-constant, and sums and products that were too long to fold. No subterm is listed twice.
    ///
    /// Of subterms inside a condition, only selects are listed, because the condition may guard its quotients against division by
    /// 0.
    pub fn unanalyzable_terms(&self, size: Sym) -> Vec<Sym> {
        self.terms_to_name(size, false)
    }

    /// Lists the largest selects in a term that is only evaluated under some condition. Quotients are not listed, because
    /// evaluating them unconditionally could divide by 0.
    pub fn conditional_terms(&self, number: Sym) -> Vec<Sym> {
        self.terms_to_name(number, true)
    }

    fn terms_to_name(&self, number: Sym, in_condition: bool) -> Vec<Sym> {
        let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
        let mut open = vec![(number, in_condition)];
        while let Some((term, in_condition)) = open.pop() {
            if !seen.insert((term, in_condition)) {
                continue;
            }
            let (unanalyzable, condition) = match self.kind(term) {
                SymKind::Select(..) => (true, false),
                SymKind::FloorDiv(_, d) | SymKind::FloorMod(_, d) => {
                    (!in_condition && self.as_int(d).is_none(), false)
                }
                SymKind::BigAdd(..) | SymKind::BigMul(..) => (!in_condition, false),
                SymKind::Cmp(..) | SymKind::And(_) | SymKind::Or(_) | SymKind::Not(_) => {
                    (false, true)
                }
                _ => (false, false),
            };
            if unanalyzable {
                if !found.contains(&term) {
                    found.push(term);
                }
            } else {
                let below = self.children(term).into_iter().rev();
                open.extend(below.map(|c| (c, in_condition || condition)));
            }
        }
        found
    }

    /// Creates a readable name for a size: its first two variables joined by `_`, or `size` if it has no variables.
    pub fn short_name(&self, size: Sym) -> String {
        let names: Vec<&str> = self.free_vars(size).iter().take(2).map(|&v| self.name(v)).collect();
        if names.is_empty() { "size".to_string() } else { names.join("_") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_and_quotients_by_variables_are_unanalyzable() {
        let mut s = SymArena::new();
        let [n, m] = ["n", "m"].map(|name| {
            let v = s.fresh_var(name);
            s.var(v)
        });
        let (one, four) = (s.int(1), s.int(4));
        let is_one = s.eq(n, one);
        let broadcast = s.select(is_one, m, n);
        let quotient = s.floordiv(n, m);
        let half = s.floordiv(broadcast, four);
        let scaled = s.mul(quotient, four);
        let size = s.add(half, scaled);
        let mut found = s.unanalyzable_terms(size);
        found.sort();
        let mut expected = vec![broadcast, quotient];
        expected.sort();
        assert_eq!(found, expected);
        let rest = s.floormod(n, m);
        let zero = s.int(0);
        let divides = s.eq(rest, zero);
        assert!(s.unanalyzable_terms(divides).is_empty());
        assert_eq!(s.short_name(broadcast), "n_m");
    }
}
