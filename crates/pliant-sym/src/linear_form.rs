//! Linear forms `constant + sum(coef * atom)` with checked arithmetic, the basis of all builders and of the prover.
//!
//! A linear form is *expanded*: `a % c` by a constant is written as `a - c * (a // c)`, also inside products. Two expressions
//! that are equal as polynomials over variables and quotients have the same linear form, in whatever order they are built.
//! [`crate::recover_remainders`] converts a linear form to a term with `%`; expanding this term gives the same linear form again.

use smallvec::SmallVec;

use crate::term_arena::{HAS_MOD, SymArena, TermDraft};
use crate::term_types::{Node, Sym, SymKind, SymList, Term};

/// Maximum number of terms of a linear form. A sum `a + b` that would be longer is stored as `BigAdd(a, b)`, so that a chain of
/// additions takes linear memory.
pub(crate) const MAX_TERMS: usize = 128;
/// Maximum number of factors of a product. A product `a * b` that would have more factors is stored as `BigMul(a, b)`.
pub(crate) const MAX_FACTORS: usize = 24;
/// Maximum nesting depth up to which remainders are expanded. Remainders that are nested deeper are treated as atoms.
const MAX_EXPAND_DEPTH: u32 = 64;

/// A linear form `constant + sum(coef * term)`. Terms are sorted by id, and coefficients are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct LinearForm {
    pub terms: SmallVec<[Term; 6]>,
    pub constant: i64,
}

impl LinearForm {
    pub fn int(constant: i64) -> LinearForm {
        LinearForm { terms: SmallVec::new(), constant }
    }

    pub fn term(coef: i64, sym: Sym) -> LinearForm {
        let mut terms = SmallVec::new();
        if coef != 0 {
            terms.push((coef, sym));
        }
        LinearForm { terms, constant: 0 }
    }

    /// The coefficient of a term; 0 if the form does not contain the term.
    pub fn coef(&self, sym: Sym) -> i64 {
        match self.terms.binary_search_by_key(&sym, |t| t.1) {
            Ok(i) => self.terms[i].0,
            Err(_) => 0,
        }
    }

    /// The sum `self + scale * other`. `None` on overflow, or if the result has more than [`MAX_TERMS`] terms.
    pub fn add_scaled(&self, scale: i64, other: &LinearForm) -> Option<LinearForm> {
        let constant = self.constant.checked_add(other.constant.checked_mul(scale)?)?;
        let mut terms = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while i < self.terms.len() || j < other.terms.len() {
            let left = self.terms.get(i);
            let right = other.terms.get(j);
            let (coef, sym) = match (left, right) {
                (Some(&(c, s)), Some(&(_, t))) if s < t => {
                    i += 1;
                    (c, s)
                }
                (Some(&(c, s)), Some(&(d, t))) if s == t => {
                    i += 1;
                    j += 1;
                    (c.checked_add(d.checked_mul(scale)?)?, s)
                }
                (_, Some(&(d, t))) => {
                    j += 1;
                    (d.checked_mul(scale)?, t)
                }
                (Some(&(c, s)), None) => {
                    i += 1;
                    (c, s)
                }
                (None, None) => break,
            };
            if coef != 0 {
                terms.push((coef, sym));
            }
        }
        (terms.len() <= MAX_TERMS).then_some(LinearForm { terms, constant })
    }

    pub fn add(&self, other: &LinearForm) -> Option<LinearForm> {
        self.add_scaled(1, other)
    }

    pub fn sub(&self, other: &LinearForm) -> Option<LinearForm> {
        self.add_scaled(-1, other)
    }

    pub fn add_const(mut self, k: i64) -> Option<LinearForm> {
        self.constant = self.constant.checked_add(k)?;
        Some(self)
    }

    pub fn scale(&self, k: i64) -> Option<LinearForm> {
        LinearForm::default().add_scaled(k, self)
    }

    /// The greatest common divisor of the coefficients, not including the constant; 0 if there are no terms.
    pub fn gcd(&self) -> u64 {
        self.terms.iter().fold(0, |g, t| gcd(g, t.0.unsigned_abs()))
    }
}

/// The greatest common divisor of two integers, with `gcd(0, x) == x`.
pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Division rounded towards minus infinity, like Python's `//`. `None` if the divisor is 0 or on overflow.
pub(crate) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

/// The remainder with the sign of the divisor, like Python's `%`. `None` if the divisor is 0.
pub(crate) fn floor_mod(a: i64, b: i64) -> Option<i64> {
    if b == -1 {
        return Some(0);
    }
    let r = a.checked_rem(b)?;
    Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
}

impl SymArena {
    /// The expanded linear form of a term. If the form would be too long, it contains the term itself as an atom.
    pub(crate) fn lin(&self, sym: Sym) -> LinearForm {
        self.expand(sym, 0).unwrap_or_else(|| LinearForm::term(1, sym))
    }

    fn expand(&self, sym: Sym, depth: u32) -> Option<LinearForm> {
        match self.kind(sym) {
            SymKind::Int(v) => Some(LinearForm::int(v)),
            SymKind::Sum { terms, constant } if self.flags(sym) & HAS_MOD == 0 => {
                Some(LinearForm { terms: SmallVec::from_slice(terms), constant })
            }
            _ if self.flags(sym) & HAS_MOD == 0 || depth > MAX_EXPAND_DEPTH => {
                Some(LinearForm::term(1, sym))
            }
            SymKind::Sum { terms, constant } => {
                let mut sum = LinearForm::int(constant);
                for &(coef, t) in terms {
                    sum = sum.add_scaled(coef, &self.expand(t, depth + 1)?)?;
                }
                Some(sum)
            }
            SymKind::FloorMod(a, b) => {
                let Node::FloorMod(_, _, quotient) = self.node(sym) else { return None };
                let c = self.as_int(b)?;
                self.expand(a, depth + 1)?
                    .add_scaled(c.checked_neg()?, &LinearForm::term(1, quotient))
            }
            // Expanding a product that contains `%` creates products, which needs `expand_mut`.
            _ => Some(LinearForm::term(1, sym)),
        }
    }

    /// The expanded linear form of a term, like [`lin`](Self::lin), but also expands products that contain `%`. This may create
    /// new terms in the arena.
    pub(crate) fn lin_mut(&mut self, sym: Sym) -> LinearForm {
        let lin = self.lin(sym);
        if self.flags(sym) & HAS_MOD == 0 || !self.holds_mod_product(&lin) {
            return lin;
        }
        let mut out = LinearForm::int(lin.constant);
        for &(coef, t) in &lin.terms {
            let part = self.expand_product(t).unwrap_or_else(|| LinearForm::term(1, t));
            match out.add_scaled(coef, &part) {
                Some(sum) => out = sum,
                None => return lin,
            }
        }
        out
    }

    fn holds_mod_product(&self, lin: &LinearForm) -> bool {
        lin.terms.iter().any(|t| {
            self.flags(t.1) & HAS_MOD != 0 && matches!(self.kind(t.1), SymKind::Product(_))
        })
    }

    fn expand_product(&mut self, sym: Sym) -> Option<LinearForm> {
        if self.flags(sym) & HAS_MOD == 0 {
            return Some(LinearForm::term(1, sym));
        }
        let factors = self.factors(sym);
        if factors.len() == 1 {
            return Some(LinearForm::term(1, sym));
        }
        let mut out = LinearForm::int(1);
        for f in factors {
            let lf = self.lin_mut(f);
            out = self.mul_lin(&out, &lf)?;
        }
        Some(out)
    }

    /// The factors of a product. For any other term, the list that contains only the term itself.
    pub(crate) fn factors(&self, sym: Sym) -> SymList {
        match self.kind(sym) {
            SymKind::Product(list) => SymList::from_slice(list),
            _ => SymList::from_slice(&[sym]),
        }
    }

    /// Creates the product of one or more atoms, whose order does not matter. `None` if there are too many factors.
    pub(crate) fn product_of(&mut self, mut factors: SymList) -> Option<Sym> {
        if factors.len() > MAX_FACTORS {
            return None;
        }
        if factors.len() == 1 {
            return Some(factors[0]);
        }
        factors.sort_unstable();
        Some(self.intern(TermDraft::Product(&factors)))
    }

    /// Creates the product of two terms, each of which is an atom or a product of atoms. `None` if there are too many factors.
    pub(crate) fn mul_atoms(&mut self, a: Sym, b: Sym) -> Option<Sym> {
        let mut factors = self.factors(a);
        factors.extend_from_slice(&self.factors(b));
        self.product_of(factors)
    }

    /// The product of two linear forms, multiplied out. `None` on overflow or if the result is too long.
    pub(crate) fn mul_lin(&mut self, a: &LinearForm, b: &LinearForm) -> Option<LinearForm> {
        if a.terms.is_empty() {
            return b.scale(a.constant);
        }
        if b.terms.is_empty() {
            return a.scale(b.constant);
        }
        if a.terms.len() * b.terms.len() > 2 * MAX_TERMS {
            return None;
        }
        let mut out = b.scale(a.constant)?;
        for &(ca, ta) in &a.terms {
            let mut row = LinearForm::term(ca.checked_mul(b.constant)?, ta);
            for &(cb, tb) in &b.terms {
                let product = self.mul_atoms(ta, tb)?;
                row = row.add(&LinearForm::term(ca.checked_mul(cb)?, product))?;
            }
            out = out.add(&row)?;
        }
        Some(out)
    }

    /// Converts a linear form to a term without changing it: differences such as `a - c * (a // c)` are not rewritten to `a % c`.
    pub(crate) fn intern_lin(&mut self, lin: &LinearForm) -> Sym {
        match lin.terms.as_slice() {
            [] => self.int(lin.constant),
            [(1, sym)] if lin.constant == 0 => *sym,
            terms => self.intern(TermDraft::Sum(terms, lin.constant)),
        }
    }

    /// Converts an expanded linear form to a term in normal form, in which differences such as `a - c * (a // c)` are written as
    /// `a % c`.
    pub(crate) fn of_lin(&mut self, lin: &LinearForm) -> Sym {
        let sugared = self.recover_mod(lin);
        self.intern_lin(&sugared)
    }
}
