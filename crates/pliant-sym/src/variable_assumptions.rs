//! [`Facts`]: assumptions about the variables of terms: ranges, divisibility, bindings, and predicates.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::constant_term_bounds::Bound;
use crate::divisibility::ModularSet;
use crate::term_arena::SymArena;
use crate::term_types::{CmpOp, Sym, SymKind, SymVar};

/// Assumed facts about the variables of one arena. To open a scope, clone the facts, add assumptions to the clone, and drop the
/// clone at the end of the scope.
///
/// Facts may contradict each other. Contradictory facts imply every predicate.
///
/// # Examples
/// ```
/// use pliant_sym::{Analyzer, Facts, SymArena};
///
/// let mut arena = SymArena::new();
/// let var = arena.fresh_var("n");
/// let (n, four) = (arena.var(var), arena.int(4));
/// let mut facts = Facts::new();
/// facts.assume_divisible(var, 8);
/// let rest = arena.floormod(n, four);
/// let zero = arena.int(0);
/// assert!(Analyzer::new(&mut arena, &facts).prove_eq(rest, zero).is_yes());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Facts {
    var_ranges: FxHashMap<SymVar, Bound>,
    /// Ranges of terms other than variables, derived from assumed predicates.
    term_ranges: FxHashMap<Sym, Bound>,
    residues: FxHashMap<SymVar, ModularSet>,
    bindings: FxHashMap<SymVar, Sym>,
    predicates: Vec<Sym>,
    /// The elements of `predicates` as a set, so that assuming a predicate twice has no effect.
    assumed: FxHashSet<Sym>,
}

impl Facts {
    /// Creates an empty set of facts: every variable can be any integer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Assumes `lo <= var <= hi`, in addition to earlier assumptions. `None` means unbounded.
    pub fn assume_range(&mut self, var: SymVar, lo: Option<i64>, hi: Option<i64>) {
        let bound = Bound::new(lo.unwrap_or(Bound::NEG_INF), hi.unwrap_or(Bound::POS_INF));
        let entry = self.var_ranges.entry(var).or_insert(Bound::EVERYTHING);
        *entry = entry.intersect(bound);
    }

    /// Assumes `var >= 0`, which holds for every size.
    pub fn assume_size(&mut self, var: SymVar) {
        self.assume_range(var, Some(0), None);
    }

    /// Assumes that `modulus` divides the variable. A modulus below 1 is ignored.
    pub fn assume_divisible(&mut self, var: SymVar, modulus: i64) {
        self.assume_residue(var, modulus, 0);
    }

    /// Assumes `var % modulus == residue`. A modulus below 1 is ignored.
    pub fn assume_residue(&mut self, var: SymVar, modulus: i64, residue: i64) {
        if modulus < 1 {
            return;
        }
        let set = ModularSet::new(modulus, residue);
        let entry = self.residues.entry(var).or_insert(ModularSet::EVERYTHING);
        *entry = entry.intersect(set);
    }

    /// Assumes that a predicate of `arena` holds.
    pub fn assume(&mut self, arena: &SymArena, predicate: Sym) {
        let mut stack = vec![predicate];
        while let Some(p) = stack.pop() {
            match arena.kind(p) {
                SymKind::And(list) => stack.extend(list.iter().rev()),
                SymKind::Cmp(op, a, b) if self.assume_comparison(arena, op, a, b) => {}
                SymKind::Int(v) if v != 0 => {}
                _ if self.assumed.insert(p) => self.predicates.push(p),
                _ => {}
            }
        }
    }

    /// Assumes that a variable equals `value`, a term that does not depend on the variable. Replaces the term of an
    /// earlier call for this variable.
    pub fn bind(&mut self, var: SymVar, value: Sym) {
        self.bindings.insert(var, value);
    }

    /// The range in which a variable is assumed to be.
    pub fn range(&self, var: SymVar) -> Bound {
        self.var_ranges.get(&var).copied().unwrap_or(Bound::EVERYTHING)
    }

    /// The set `coeff * k + base` in which a variable is assumed to be.
    pub fn residue(&self, var: SymVar) -> ModularSet {
        self.residues.get(&var).copied().unwrap_or(ModularSet::EVERYTHING)
    }

    /// The term that a variable is assumed to equal because of [`bind`](Self::bind); `None` if there is none.
    pub fn binding(&self, var: SymVar) -> Option<Sym> {
        self.bindings.get(&var).copied()
    }

    /// The assumed predicates that ranges and residues cannot represent.
    pub fn predicates(&self) -> &[Sym] {
        &self.predicates
    }

    pub(crate) fn has_bindings(&self) -> bool {
        !self.bindings.is_empty()
    }

    pub(crate) fn term_range(&self, sym: Sym) -> Option<Bound> {
        self.term_ranges.get(&sym).copied()
    }

    /// Records a comparison of one term with a constant as a range or a residue. Returns whether the range or residue expresses
    /// the whole predicate.
    fn assume_comparison(&mut self, arena: &SymArena, op: CmpOp, a: Sym, b: Sym) -> bool {
        let Some(difference) = arena.lin(a).sub(&arena.lin(b)) else { return false };
        if op == CmpOp::Eq
            && let (SymKind::FloorMod(x, c), Some(r)) = (arena.kind(a), arena.as_int(b))
            && let (Some(v), Some(c)) = (arena.as_var(x), arena.as_int(c))
        {
            self.assume_residue(v, c, r);
            return true;
        }
        let [(coef, term)] = difference.terms.as_slice() else { return false };
        // The normal form is divided by its greatest common divisor, so the only coefficient is 1 or -1.
        let bound = match (op, coef, difference.constant.checked_neg()) {
            (CmpOp::Le, 1, Some(k)) => Bound::new(Bound::NEG_INF, k),
            (CmpOp::Le, -1, Some(k)) => match k.checked_neg() {
                Some(lo) => Bound::new(lo, Bound::POS_INF),
                None => return false,
            },
            (CmpOp::Eq, 1, Some(k)) => Bound::new(k, k),
            _ => return false,
        };
        match arena.as_var(*term) {
            Some(v) => {
                let entry = self.var_ranges.entry(v).or_insert(Bound::EVERYTHING);
                *entry = entry.intersect(bound);
            }
            None => {
                let entry = self.term_ranges.entry(*term).or_insert(Bound::EVERYTHING);
                *entry = entry.intersect(bound);
                // Also keep the predicate, because the prover relates the term to its operands.
                return false;
            }
        }
        true
    }
}
