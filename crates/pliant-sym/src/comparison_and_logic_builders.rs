//! Functions that build comparisons, `and`, `or`, `not` and `select` in normal form.

use crate::linear_form::{LinearForm, floor_div};
use crate::term_arena::{IS_BOOL, SymArena, TermDraft};
use crate::term_types::{CmpOp, Node, Sym, SymKind, SymList};

/// Maximum number of operands of one `and` or `or` term. Nested terms are not merged into larger ones, so that a chain of
/// operators takes linear memory.
const MAX_OPERANDS: usize = 64;

/// Maximum number of terms in a branch of a `select` for which the branches are compared.
const MAX_COMPARED_TERMS: usize = 64;

impl SymArena {
    /// The predicate `a < b`.
    pub fn lt(&mut self, a: Sym, b: Sym) -> Sym {
        let difference = self.difference(a, b).and_then(|d| d.add_const(1));
        difference
            .and_then(|d| self.le_zero(d))
            .unwrap_or_else(|| self.intern(TermDraft::Leaf(Node::Cmp(CmpOp::Lt, a, b))))
    }

    /// The predicate `a <= b`.
    pub fn le(&mut self, a: Sym, b: Sym) -> Sym {
        self.difference(a, b)
            .and_then(|d| self.le_zero(d))
            .unwrap_or_else(|| self.intern(TermDraft::Leaf(Node::Cmp(CmpOp::Le, a, b))))
    }

    /// The predicate `a > b`.
    pub fn gt(&mut self, a: Sym, b: Sym) -> Sym {
        self.lt(b, a)
    }

    /// The predicate `a >= b`.
    pub fn ge(&mut self, a: Sym, b: Sym) -> Sym {
        self.le(b, a)
    }

    /// The predicate `a == b`.
    pub fn eq(&mut self, a: Sym, b: Sym) -> Sym {
        let folded = self.difference(a, b).and_then(|d| self.eq_zero(d, true));
        folded.unwrap_or_else(|| self.raw_eq(CmpOp::Eq, a, b))
    }

    /// The predicate `a != b`.
    pub fn ne(&mut self, a: Sym, b: Sym) -> Sym {
        let folded = self.difference(a, b).and_then(|d| self.eq_zero(d, false));
        folded.unwrap_or_else(|| self.raw_eq(CmpOp::Ne, a, b))
    }

    /// Compares `a` and `b` with the given operator.
    pub fn cmp(&mut self, op: CmpOp, a: Sym, b: Sym) -> Sym {
        match op {
            CmpOp::Lt => self.lt(a, b),
            CmpOp::Le => self.le(a, b),
            CmpOp::Eq => self.eq(a, b),
            CmpOp::Ne => self.ne(a, b),
        }
    }

    /// The predicate `a and b`: 1 where neither `a` nor `b` is 0, else 0.
    pub fn and(&mut self, a: Sym, b: Sym) -> Sym {
        self.junction(a, b, true)
    }

    /// The predicate `a or b`: 1 where `a` or `b` is not 0, else 0.
    pub fn or(&mut self, a: Sym, b: Sym) -> Sym {
        self.junction(a, b, false)
    }

    /// The predicate `not a`: 1 where `a` is 0, else 0.
    pub fn not(&mut self, a: Sym) -> Sym {
        let a = self.truth(a);
        match self.kind(a) {
            SymKind::Int(v) => self.int(i64::from(v == 0)),
            SymKind::Not(inner) => inner,
            SymKind::Cmp(CmpOp::Lt, x, y) => self.le(y, x),
            SymKind::Cmp(CmpOp::Le, x, y) => self.lt(y, x),
            SymKind::Cmp(CmpOp::Eq, x, y) => self.ne(x, y),
            SymKind::Cmp(CmpOp::Ne, x, y) => self.eq(x, y),
            _ => self.intern(TermDraft::Leaf(Node::Not(a))),
        }
    }

    /// The term `select(cond, a, b)`: `a` where `cond` is not 0, else `b`.
    pub fn select(&mut self, cond: Sym, a: Sym, b: Sym) -> Sym {
        let cond = self.truth(cond);
        if let Some(value) = self.as_int(cond) {
            return if value != 0 { a } else { b };
        }
        if a == b {
            return a;
        }
        match (self.as_int(a), self.as_int(b)) {
            (Some(1), Some(0)) => return cond,
            (Some(0), Some(1)) => return self.not(cond),
            _ => {}
        }
        if self.equal_where_selected(cond, a, b) {
            return b;
        }
        match self.kind(cond) {
            SymKind::Not(inner) => self.intern(TermDraft::Leaf(Node::Select(inner, b, a))),
            SymKind::Cmp(CmpOp::Ne, x, y) => {
                let equal = self.intern(TermDraft::Leaf(Node::Cmp(CmpOp::Eq, x, y)));
                self.select(equal, b, a)
            }
            _ => self.intern(TermDraft::Leaf(Node::Select(cond, a, b))),
        }
    }

    /// Whether the branches of `select(cond, a, b)` have equal values if `cond`, which must have the form `x == constant`, is
    /// true. For example, true for `select(n == 1, min(n, 512), n)`. False for branches that contain a `select`, or more than
    /// [`MAX_COMPARED_TERMS`] terms.
    fn equal_where_selected(&mut self, cond: Sym, a: Sym, b: Sym) -> bool {
        let SymKind::Cmp(CmpOp::Eq, x, y) = self.kind(cond) else { return false };
        let (term, constant) = match (self.as_int(x), self.as_int(y)) {
            (None, Some(_)) => (x, y),
            (Some(_), None) => (y, x),
            _ => return false,
        };
        let mut replaced = |branch| self.replace_term(branch, term, constant, MAX_COMPARED_TERMS);
        match (replaced(a), replaced(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// Converts a term to a predicate: returns a predicate unchanged and any other term as `a != 0`.
    pub(crate) fn truth(&mut self, a: Sym) -> Sym {
        if self.flags(a) & IS_BOOL != 0 {
            return a;
        }
        let zero = self.int(0);
        self.ne(a, zero)
    }

    fn difference(&mut self, a: Sym, b: Sym) -> Option<LinearForm> {
        let (la, lb) = (self.lin_mut(a), self.lin_mut(b));
        la.sub(&lb)
    }

    fn raw_eq(&mut self, op: CmpOp, a: Sym, b: Sym) -> Sym {
        self.intern(TermDraft::Leaf(Node::Cmp(op, a.min(b), a.max(b))))
    }

    /// The predicate `lin <= 0`, after dividing the coefficients by their greatest common divisor.
    pub(crate) fn le_zero(&mut self, lin: LinearForm) -> Option<Sym> {
        if lin.terms.is_empty() {
            return Some(self.int(i64::from(lin.constant <= 0)));
        }
        let lin = divide_le(lin)?;
        let shown = self.recover_mod(&lin);
        if let Some((lo, hi)) = self.form_bounds(&shown) {
            if hi <= 0 {
                return Some(self.int(1));
            }
            if lo > 0 {
                return Some(self.int(0));
            }
        }
        let (plus, minus) = split_signs(&shown)?;
        if plus.terms.is_empty() || minus.terms.is_empty() || shown.constant != 1 {
            let (lhs, rhs) = self.place_constant(plus, minus, shown.constant)?;
            return Some(self.intern(TermDraft::Leaf(Node::Cmp(CmpOp::Le, lhs, rhs))));
        }
        let (lhs, rhs) = (self.renormal(&plus), self.renormal(&minus));
        Some(self.intern(TermDraft::Leaf(Node::Cmp(CmpOp::Lt, lhs, rhs))))
    }

    /// The predicate `lin == 0`, or `lin != 0` if `equal` is false, after making the first coefficient positive.
    fn eq_zero(&mut self, lin: LinearForm, equal: bool) -> Option<Sym> {
        if lin.terms.is_empty() {
            return Some(self.int(i64::from((lin.constant == 0) == equal)));
        }
        let divisor = i64::try_from(lin.gcd()).ok()?;
        if lin.constant % divisor != 0 {
            return Some(self.int(i64::from(!equal)));
        }
        let divisor = if lin.terms[0].0 < 0 { -divisor } else { divisor };
        let terms = lin.terms.iter().map(|&(k, t)| Some((k.checked_div(divisor)?, t)));
        let lin = LinearForm {
            terms: terms.collect::<Option<_>>()?,
            constant: lin.constant.checked_div(divisor)?,
        };
        let shown = self.recover_mod(&lin);
        if self.form_bounds(&shown).is_some_and(|(lo, hi)| lo > 0 || hi < 0) {
            return Some(self.int(i64::from(!equal)));
        }
        if let [(1, atom)] = shown.terms.as_slice()
            && self.flags(*atom) & IS_BOOL != 0
        {
            return Some(if (shown.constant == -1) == equal { *atom } else { self.not(*atom) });
        }
        let (plus, minus) = split_signs(&shown)?;
        let (lhs, rhs) = self.place_constant(plus, minus, shown.constant)?;
        let op = if equal { CmpOp::Eq } else { CmpOp::Ne };
        Some(self.intern(TermDraft::Leaf(Node::Cmp(op, lhs, rhs))))
    }

    /// Returns the two sides of a comparison of `plus + k` with `minus`, as terms. The constant `k` is added to `plus`, or
    /// subtracted from `minus`: on the side without terms if there is one, otherwise on the side where the added constant is
    /// positive.
    fn place_constant(
        &mut self,
        mut plus: LinearForm,
        mut minus: LinearForm,
        k: i64,
    ) -> Option<(Sym, Sym)> {
        let on_left = if minus.terms.is_empty() {
            false
        } else if plus.terms.is_empty() {
            true
        } else {
            k > 0
        };
        if on_left {
            plus.constant = k;
        } else {
            minus.constant = k.checked_neg()?;
        }
        Some((self.renormal(&plus), self.renormal(&minus)))
    }

    /// Converts a linear form, which is one side of a comparison, to a term in normal form.
    fn renormal(&mut self, part: &LinearForm) -> Sym {
        let sym = self.intern_lin(part);
        let lin = self.lin_mut(sym);
        self.of_lin(&lin)
    }

    fn junction(&mut self, a: Sym, b: Sym, is_and: bool) -> Sym {
        let (a, b) = (self.truth(a), self.truth(b));
        let (left, right) = (self.junction_operands(a, is_and), self.junction_operands(b, is_and));
        let mut kept = SymList::new();
        if left.len() + right.len() > MAX_OPERANDS {
            kept.extend([a, b]);
        } else {
            kept.extend(left.into_iter().chain(right));
        }
        kept.sort_unstable();
        kept.dedup();
        // Drops the neutral constant. The absorbing constant is the result.
        if kept.iter().any(|&s| self.as_int(s).is_some_and(|v| (v != 0) != is_and)) {
            return self.int(i64::from(!is_and));
        }
        kept.retain(|s| self.as_int(*s).is_none());
        for &s in &kept {
            let opposite = self.not(s);
            if kept.contains(&opposite) {
                return self.int(i64::from(!is_and));
            }
        }
        match kept.as_slice() {
            [] => self.int(i64::from(is_and)),
            [one] => *one,
            list if is_and => self.intern(TermDraft::And(list)),
            list => self.intern(TermDraft::Or(list)),
        }
    }

    fn junction_operands(&self, sym: Sym, is_and: bool) -> SymList {
        match self.kind(sym) {
            SymKind::And(list) if is_and => SymList::from_slice(list),
            SymKind::Or(list) if !is_and => SymList::from_slice(list),
            _ => SymList::from_slice(&[sym]),
        }
    }
}

/// Divides the inequality `lin <= 0` by the greatest common divisor of its coefficients, and rounds the constant. The result is
/// equivalent over the integers.
pub(crate) fn divide_le(lin: LinearForm) -> Option<LinearForm> {
    let g = i64::try_from(lin.gcd()).ok()?;
    if g <= 1 {
        return Some(lin);
    }
    let constant = floor_div(lin.constant.checked_neg()?, g)?.checked_neg()?;
    Some(LinearForm { terms: lin.terms.iter().map(|&(k, t)| (k / g, t)).collect(), constant })
}

fn split_signs(lin: &LinearForm) -> Option<(LinearForm, LinearForm)> {
    let (mut plus, mut minus) = (LinearForm::default(), LinearForm::default());
    for &(k, t) in &lin.terms {
        if k > 0 {
            plus.terms.push((k, t));
        } else {
            minus.terms.push((k.checked_neg()?, t));
        }
    }
    Some((plus, minus))
}
