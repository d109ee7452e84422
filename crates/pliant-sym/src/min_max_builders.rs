//! Functions that build minima and maxima in normal form.

use crate::term_arena::{SymArena, TermDraft};
use crate::term_types::{Sym, SymKind, SymList};

/// Maximum number of operands of one minimum or maximum. Nested minima and maxima are merged only up to this number, so that
/// a chain of operators takes linear memory.
const MAX_OPERANDS: usize = 64;

impl SymArena {
    /// The minimum of `a` and `b`.
    pub fn min(&mut self, a: Sym, b: Sym) -> Sym {
        self.extremum(a, b, true)
    }

    /// The maximum of `a` and `b`.
    pub fn max(&mut self, a: Sym, b: Sym) -> Sym {
        self.extremum(a, b, false)
    }

    fn extremum(&mut self, a: Sym, b: Sym, is_min: bool) -> Sym {
        if a == b {
            return a;
        }
        let (left, right) = (self.extremum_operands(a, is_min), self.extremum_operands(b, is_min));
        let mut kept = SymList::new();
        if left.len() + right.len() > MAX_OPERANDS {
            kept.extend([a, b]);
        } else {
            for x in left.into_iter().chain(right) {
                self.insert_operand(&mut kept, x, is_min);
            }
        }
        self.extremum_of(kept, is_min)
    }

    /// Builds the minimum (`is_min`) or maximum of operands from which redundant ones have already been removed.
    pub(crate) fn extremum_of(&mut self, mut kept: SymList, is_min: bool) -> Sym {
        kept.sort_unstable();
        kept.dedup();
        match kept.as_slice() {
            [one] => *one,
            list if is_min => self.intern(TermDraft::Min(list)),
            list => self.intern(TermDraft::Max(list)),
        }
    }

    /// The operands of a minimum or maximum. A constant addend is distributed over them: `max(a, b) + c` is `max(a + c, b + c)`.
    fn extremum_operands(&mut self, sym: Sym, is_min: bool) -> SymList {
        let (inner, constant) = match self.kind(sym) {
            SymKind::Sum { terms: &[(1, inner)], constant } => (inner, constant),
            _ => (sym, 0),
        };
        let mut list = match self.kind(inner) {
            SymKind::Min(list) if is_min => SymList::from_slice(list),
            SymKind::Max(list) if !is_min => SymList::from_slice(list),
            _ => return SymList::from_slice(&[sym]),
        };
        if constant != 0 {
            let constant = self.int(constant);
            list.iter_mut().for_each(|x| *x = self.add(*x, constant));
        }
        list
    }

    /// Adds `x` to the operands of a minimum or maximum unless another operand makes `x` redundant, and removes operands that `x`
    /// makes redundant.
    fn insert_operand(&self, kept: &mut SymList, x: Sym, is_min: bool) {
        let mut i = 0;
        while i < kept.len() {
            match self.decides(kept[i], x, is_min) {
                Some(true) => return,
                Some(false) => {
                    kept.remove(i);
                }
                None => i += 1,
            }
        }
        kept.push(x);
    }

    /// Decides which of two operands of a minimum (`is_min`) or maximum is redundant: `Some(true)` if `a` makes `b` redundant,
    /// `Some(false)` if `b` makes `a` redundant, `None` if this is not known.
    fn decides(&self, a: Sym, b: Sym, is_min: bool) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        // min(a, max(a, ..)) == a
        let dual = |s: Sym| match self.kind(s) {
            SymKind::Max(list) if is_min => Some(list),
            SymKind::Min(list) if !is_min => Some(list),
            _ => None,
        };
        if dual(b).is_some_and(|l| l.contains(&a)) {
            return Some(true);
        }
        if dual(a).is_some_and(|l| l.contains(&b)) {
            return Some(false);
        }
        let difference = self.lin(a).sub(&self.lin(b))?;
        difference.terms.is_empty().then_some((difference.constant <= 0) == is_min)
    }
}
