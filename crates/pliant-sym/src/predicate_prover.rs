//! The prover decides whether a predicate over symbolic integers always holds. It answers yes, no or unknown; yes and no are
//! always correct.

use crate::divisibility::ModularSet;
use crate::linear_form::LinearForm;
use crate::term_analyzer::Analyzer;
use crate::term_types::{CmpOp, Sym, SymKind, SymList};
use crate::terms_to_linear_constraints::Constraint;

/// The prover's answer about a predicate. It refers to all values of the variables that satisfy the assumed facts and for which
/// the predicate has a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// The predicate always holds.
    Yes,
    /// The predicate never holds.
    No,
    /// The prover could show neither that the predicate always holds nor that it never holds.
    Unknown,
}

impl Proof {
    /// Whether the predicate is proved to hold.
    pub fn is_yes(self) -> bool {
        self == Proof::Yes
    }

    /// Whether the predicate is proved to never hold.
    pub fn is_no(self) -> bool {
        self == Proof::No
    }

    fn flip(self) -> Proof {
        match self {
            Proof::Yes => Proof::No,
            Proof::No => Proof::Yes,
            Proof::Unknown => Proof::Unknown,
        }
    }
}

impl Analyzer<'_> {
    /// Decides whether a predicate holds. A term that is not a predicate counts as true if it is not 0.
    pub fn prove(&mut self, predicate: Sym) -> Proof {
        self.refill();
        let proof = self.prove_at(predicate, 0);
        if proof != Proof::Unknown || self.nesting > 0 {
            return proof;
        }
        // The simplified operands may allow a proof that the constraints on their atoms do not.
        let SymKind::Cmp(op, a, b) = self.arena.kind(predicate) else { return proof };
        self.nesting += 1;
        let sides = (self.simplify(a), self.simplify(b));
        let again = if sides == (a, b) {
            Proof::Unknown
        } else {
            let simpler = self.arena.cmp(op, sides.0, sides.1);
            self.prove_at(simpler, 0)
        };
        self.nesting -= 1;
        again
    }

    /// Decides whether `a == b` holds.
    pub fn prove_eq(&mut self, a: Sym, b: Sym) -> Proof {
        let predicate = self.arena.eq(a, b);
        self.prove(predicate)
    }

    /// Decides whether `a < b` holds.
    pub fn prove_lt(&mut self, a: Sym, b: Sym) -> Proof {
        let predicate = self.arena.lt(a, b);
        self.prove(predicate)
    }

    /// Decides whether `a <= b` holds.
    pub fn prove_le(&mut self, a: Sym, b: Sym) -> Proof {
        let predicate = self.arena.le(a, b);
        self.prove(predicate)
    }

    fn prove_at(&mut self, predicate: Sym, depth: u32) -> Proof {
        self.charge(8);
        if self.steps == 0 {
            return Proof::Unknown;
        }
        let children: SymList = self.arena.children(predicate);
        let quick = match self.arena.kind(predicate) {
            SymKind::Int(v) if v != 0 => Proof::Yes,
            SymKind::Int(_) => Proof::No,
            SymKind::Cmp(op, a, b) => return self.prove_comparison(op, a, b),
            _ if depth > 16 => Proof::Unknown,
            SymKind::Not(a) => self.prove_at(a, depth + 1).flip(),
            SymKind::And(_) => self.prove_all(&children, depth),
            SymKind::Or(_) => {
                let negated: SymList = children.iter().map(|&c| self.arena.not(c)).collect();
                self.prove_all(&negated, depth).flip()
            }
            _ => {
                let zero = self.arena.int(0);
                let nonzero = self.arena.ne(predicate, zero);
                match self.arena.kind(nonzero) {
                    SymKind::Cmp(op, a, b) => return self.prove_comparison(op, a, b),
                    _ => return self.prove_at(nonzero, depth + 1),
                }
            }
        };
        if quick != Proof::Unknown {
            return quick;
        }
        if self.contradictory([Constraint::Holds(predicate, false)]) {
            return Proof::Yes;
        }
        if self.contradictory([Constraint::Holds(predicate, true)]) {
            return Proof::No;
        }
        Proof::Unknown
    }

    fn prove_all(&mut self, parts: &[Sym], depth: u32) -> Proof {
        let mut all = Proof::Yes;
        for &p in parts {
            match self.prove_at(p, depth + 1) {
                Proof::Yes => {}
                Proof::No => return Proof::No,
                Proof::Unknown => all = Proof::Unknown,
            }
        }
        all
    }

    fn prove_comparison(&mut self, op: CmpOp, a: Sym, b: Sym) -> Proof {
        let (la, lb) = (self.arena.lin_mut(a), self.arena.lin_mut(b));
        let Some(d) = la.sub(&lb) else { return Proof::Unknown };
        match op {
            CmpOp::Le => self.prove_le_zero(&d),
            CmpOp::Lt => match d.add_const(1) {
                Some(d) => self.prove_le_zero(&d),
                None => Proof::Unknown,
            },
            CmpOp::Eq => self.prove_zero(&d),
            CmpOp::Ne => self.prove_zero(&d).flip(),
        }
    }

    /// Decides whether `d <= 0` holds.
    fn prove_le_zero(&mut self, d: &LinearForm) -> Proof {
        let bound = self.relaxed_bound(d);
        if bound.hi().is_some_and(|hi| hi <= 0) {
            return Proof::Yes;
        }
        if bound.lo().is_some_and(|lo| lo > 0) {
            return Proof::No;
        }
        if self.always_le_zero(d, 0) {
            return Proof::Yes;
        }
        // `d <= 0` never holds exactly if `1 - d <= 0` always holds.
        let opposite = d.scale(-1).and_then(|n| n.add_const(1));
        let never = opposite.is_some_and(|n| self.always_le_zero(&n, 0));
        if never { Proof::No } else { Proof::Unknown }
    }

    fn always_le_zero(&mut self, d: &LinearForm, depth: u32) -> bool {
        if let Some(above) = d.clone().add_const(-1)
            && self.contradictory([Constraint::Ge(above)])
        {
            return true;
        }
        // If `f >= 0`, then `y <= 0` implies `f * y <= 0`.
        let Some((factor, rest)) = self.common_factor(d) else { return false };
        let sign = self.bound_at(factor, 0);
        depth < 4
            && match (sign.min >= 0, sign.max <= 0) {
                (true, _) => self.always_le_zero(&rest, depth + 1),
                (_, true) => rest.scale(-1).is_some_and(|r| self.always_le_zero(&r, depth + 1)),
                _ => false,
            }
    }

    /// Finds a factor that all terms of a linear form have in common. Returns the factor and the form divided by it.
    fn common_factor(&mut self, d: &LinearForm) -> Option<(Sym, LinearForm)> {
        if d.constant != 0 || d.terms.len() < 2 {
            return None;
        }
        let candidates = self.arena.factors(d.terms[0].1);
        let has = |s: &Self, t: Sym, f: Sym| s.arena.factors(t).contains(&f);
        let factor = candidates.into_iter().find(|&f| d.terms.iter().all(|t| has(self, t.1, f)))?;
        let mut rest = LinearForm::int(0);
        for &(k, t) in &d.terms {
            let mut factors = self.arena.factors(t);
            let at = factors.iter().position(|&f| f == factor)?;
            factors.remove(at);
            let part = match factors.len() {
                0 => LinearForm::int(k),
                _ => LinearForm::term(k, self.arena.product_of(factors)?),
            };
            rest = rest.add(&part)?;
        }
        Some((factor, rest))
    }

    /// Decides whether `d == 0` holds.
    fn prove_zero(&mut self, d: &LinearForm) -> Proof {
        let bound = self.relaxed_bound(d);
        if bound.as_point() == Some(0) {
            return Proof::Yes;
        }
        if !bound.contains(0) || !self.residues_of(d).contains(0) {
            return Proof::No;
        }
        let (above, below) = (d.clone().add_const(-1), d.scale(-1).and_then(|n| n.add_const(-1)));
        if let (Some(above), Some(below)) = (above, below)
            && self.contradictory([Constraint::Ge(above)])
            && self.contradictory([Constraint::Ge(below)])
        {
            return Proof::Yes;
        }
        if self.contradictory([Constraint::Eq(d.clone())]) { Proof::No } else { Proof::Unknown }
    }

    fn residues_of(&mut self, d: &LinearForm) -> ModularSet {
        let sym = self.arena.of_lin(d);
        self.modular_at(sym, 0)
    }
}
