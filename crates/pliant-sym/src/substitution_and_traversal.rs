//! Traverses and rebuilds terms: children, free variables, substitution, import from other arenas.
//!
//! Traversals use an explicit stack and visit shared terms once.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::linear_form::LinearForm;
use crate::term_arena::SymArena;
use crate::term_types::{CmpOp, Sym, SymKind, SymList, SymVar, Term};

/// The kind and the operands of a term, copied out of the arena so that the arena can be modified.
pub(crate) enum OwnedKind {
    Int(i64),
    Var(SymVar),
    Sum(SmallVec<[Term; 6]>, i64),
    Product(SymList),
    FloorDiv(Sym, Sym),
    FloorMod(Sym, Sym),
    Min(SymList),
    Max(SymList),
    Select(Sym, Sym, Sym),
    Cmp(CmpOp, Sym, Sym),
    And(SymList),
    Or(SymList),
    Not(Sym),
    BigAdd(Sym, Sym),
    BigMul(Sym, Sym),
}

impl SymArena {
    /// The operands of a term in order. For a sum, these are its terms without their coefficients.
    pub fn children(&self, sym: Sym) -> SmallVec<[Sym; 6]> {
        match self.kind(sym) {
            SymKind::Int(_) | SymKind::Var(_) => SmallVec::new(),
            SymKind::Sum { terms, .. } => terms.iter().map(|t| t.1).collect(),
            SymKind::Product(l)
            | SymKind::Min(l)
            | SymKind::Max(l)
            | SymKind::And(l)
            | SymKind::Or(l) => SmallVec::from_slice(l),
            SymKind::FloorDiv(a, b)
            | SymKind::FloorMod(a, b)
            | SymKind::Cmp(_, a, b)
            | SymKind::BigAdd(a, b)
            | SymKind::BigMul(a, b) => SmallVec::from_slice(&[a, b]),
            SymKind::Select(c, a, b) => SmallVec::from_slice(&[c, a, b]),
            SymKind::Not(a) => SmallVec::from_slice(&[a]),
        }
    }

    pub(crate) fn owned_kind(&self, sym: Sym) -> OwnedKind {
        let list = SymList::from_slice;
        match self.kind(sym) {
            SymKind::Int(v) => OwnedKind::Int(v),
            SymKind::Var(v) => OwnedKind::Var(v),
            SymKind::Sum { terms, constant } => {
                OwnedKind::Sum(SmallVec::from_slice(terms), constant)
            }
            SymKind::Product(l) => OwnedKind::Product(list(l)),
            SymKind::FloorDiv(a, b) => OwnedKind::FloorDiv(a, b),
            SymKind::FloorMod(a, b) => OwnedKind::FloorMod(a, b),
            SymKind::Min(l) => OwnedKind::Min(list(l)),
            SymKind::Max(l) => OwnedKind::Max(list(l)),
            SymKind::Select(c, a, b) => OwnedKind::Select(c, a, b),
            SymKind::Cmp(op, a, b) => OwnedKind::Cmp(op, a, b),
            SymKind::And(l) => OwnedKind::And(list(l)),
            SymKind::Or(l) => OwnedKind::Or(list(l)),
            SymKind::Not(a) => OwnedKind::Not(a),
            SymKind::BigAdd(a, b) => OwnedKind::BigAdd(a, b),
            SymKind::BigMul(a, b) => OwnedKind::BigMul(a, b),
        }
    }

    /// The variables of a term in order of first occurrence, without duplicates.
    pub fn free_vars(&self, sym: Sym) -> SmallVec<[SymVar; 4]> {
        let mut out = SmallVec::new();
        let mut seen = FxHashSet::default();
        let mut stack = vec![sym];
        while let Some(s) = stack.pop() {
            if !seen.insert(s) {
                continue;
            }
            match self.kind(s) {
                SymKind::Var(v) => out.push(v),
                _ => stack.extend(self.children(s).into_iter().rev()),
            }
        }
        out
    }

    /// Whether a variable occurs in a term.
    pub fn contains_var(&self, sym: Sym, var: SymVar) -> bool {
        self.free_vars(sym).contains(&var)
    }

    /// Replaces each variable in a term by the term that `map` returns for it. A variable for which `map` returns `None` is kept.
    pub fn substitute(&mut self, sym: Sym, map: &dyn Fn(SymVar) -> Option<Sym>) -> Sym {
        let mut done: FxHashMap<Sym, Sym> = FxHashMap::default();
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            if done.contains_key(&s) || !push_missing(&self.children(s), &done, &mut stack) {
                if !done.contains_key(&s) {
                    let built = match self.owned_kind(s) {
                        OwnedKind::Var(v) => map(v).unwrap_or(s),
                        owned => self.rebuild(s, owned, |c| done.get(&c).copied().unwrap_or(c)),
                    };
                    done.insert(s, built);
                }
                stack.pop();
            }
        }
        done.get(&sym).copied().unwrap_or(sym)
    }

    /// Replaces each occurrence of `term` in `sym` by `new`. `None` if `sym` contains more than `max_terms` terms or a `select`.
    /// Terms with a `select` are excluded because rebuilding a `select` calls this function again.
    pub(crate) fn replace_term(
        &mut self,
        sym: Sym,
        term: Sym,
        new: Sym,
        max_terms: usize,
    ) -> Option<Sym> {
        let mut done: FxHashMap<Sym, Sym> = FxHashMap::from_iter([(term, new)]);
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            if done.contains_key(&s) || !push_missing(&self.children(s), &done, &mut stack) {
                if !done.contains_key(&s) {
                    let built = match self.owned_kind(s) {
                        OwnedKind::Select(..) => return None,
                        owned => self.rebuild(s, owned, |c| done.get(&c).copied().unwrap_or(c)),
                    };
                    done.insert(s, built);
                }
                stack.pop();
            }
            if done.len() + stack.len() > max_terms {
                return None;
            }
        }
        done.get(&sym).copied()
    }

    /// Copies a term of another arena to this arena. For each variable of the other arena, `map` returns the term of this arena
    /// that replaces it.
    pub fn import(
        &mut self,
        other: &SymArena,
        sym: Sym,
        map: &mut dyn FnMut(&mut SymArena, SymVar) -> Sym,
    ) -> Sym {
        self.import_terms(other, sym, &FxHashMap::default(), map)
    }

    /// Copies a term of another arena to this arena. Subterms that are keys of `terms` are replaced by the associated terms of this
    /// arena. For each remaining variable, `map` returns the term that replaces it.
    pub fn import_terms(
        &mut self,
        other: &SymArena,
        sym: Sym,
        terms: &FxHashMap<Sym, Sym>,
        map: &mut dyn FnMut(&mut SymArena, SymVar) -> Sym,
    ) -> Sym {
        let mut done: FxHashMap<Sym, Sym> = FxHashMap::default();
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            if let Some(&term) = terms.get(&s) {
                done.insert(s, term);
            }
            if done.contains_key(&s) || !push_missing(&other.children(s), &done, &mut stack) {
                if !done.contains_key(&s) {
                    let built = match other.owned_kind(s) {
                        OwnedKind::Var(v) => map(self, v),
                        OwnedKind::Int(v) => self.int(v),
                        owned => self.combine(owned, |c| done.get(&c).copied().unwrap_or(c)),
                    };
                    done.insert(s, built);
                }
                stack.pop();
            }
        }
        done.get(&sym).copied().expect("the traversal has processed the root term")
    }

    /// Rebuilds a term of this arena with each operand replaced by the result of `map`. Returns the term itself if no operand
    /// changed.
    pub(crate) fn rebuild(&mut self, sym: Sym, owned: OwnedKind, map: impl Fn(Sym) -> Sym) -> Sym {
        if self.children(sym).into_iter().all(|c| map(c) == c) {
            return sym;
        }
        self.combine(owned, map)
    }

    /// Builds a term of the kind `owned` whose operands are the results of `map`.
    pub(crate) fn combine(&mut self, owned: OwnedKind, map: impl Fn(Sym) -> Sym) -> Sym {
        match owned {
            OwnedKind::Int(v) => self.int(v),
            OwnedKind::Var(v) => self.var(v),
            OwnedKind::Sum(terms, constant) => self.combine_sum(&terms, constant, map),
            OwnedKind::Product(list) => self.product(list.into_iter().map(map)),
            OwnedKind::FloorDiv(a, b) => self.floordiv(map(a), map(b)),
            OwnedKind::FloorMod(a, b) => self.floormod(map(a), map(b)),
            OwnedKind::Min(list) => self.fold(list, map, SymArena::min),
            OwnedKind::Max(list) => self.fold(list, map, SymArena::max),
            OwnedKind::Select(c, a, b) => self.select(map(c), map(a), map(b)),
            OwnedKind::Cmp(op, a, b) => self.cmp(op, map(a), map(b)),
            OwnedKind::And(list) => self.fold(list, map, SymArena::and),
            OwnedKind::Or(list) => self.fold(list, map, SymArena::or),
            OwnedKind::Not(a) => self.not(map(a)),
            OwnedKind::BigAdd(a, b) => self.add(map(a), map(b)),
            OwnedKind::BigMul(a, b) => self.mul(map(a), map(b)),
        }
    }

    fn combine_sum(&mut self, terms: &[Term], constant: i64, map: impl Fn(Sym) -> Sym) -> Sym {
        let mut sum = Some(LinearForm::int(constant));
        for &(coef, t) in terms {
            let part = self.lin_mut(map(t));
            sum = sum.and_then(|s| s.add_scaled(coef, &part));
        }
        if let Some(sum) = sum {
            return self.of_lin(&sum);
        }
        let mut acc = self.int(constant);
        for &(coef, t) in terms {
            let coef = self.int(coef);
            let part = self.mul(map(t), coef);
            acc = self.add(acc, part);
        }
        acc
    }

    fn fold(
        &mut self,
        list: SymList,
        map: impl Fn(Sym) -> Sym,
        join: fn(&mut SymArena, Sym, Sym) -> Sym,
    ) -> Sym {
        let mut items = list.into_iter().map(map);
        let first = items.next().expect("a term with an operand list has at least two operands");
        items.fold(first, |acc, x| join(self, acc, x))
    }
}

/// Pushes those operands of a term onto the stack that are not in `done` yet. Returns whether there were any.
fn push_missing(children: &[Sym], done: &FxHashMap<Sym, Sym>, stack: &mut Vec<Sym>) -> bool {
    let before = stack.len();
    stack.extend(children.iter().rev().filter(|c| !done.contains_key(c)));
    stack.len() > before
}
