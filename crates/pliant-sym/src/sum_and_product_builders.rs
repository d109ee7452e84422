//! Functions that build constants, sums and products in normal form.

use crate::term_arena::{SymArena, TermDraft};
use crate::term_types::{Node, Sym};

impl SymArena {
    /// The constant `value`.
    pub fn int(&mut self, value: i64) -> Sym {
        self.intern(TermDraft::Leaf(Node::Int(value)))
    }

    /// The sum `a + b`.
    pub fn add(&mut self, a: Sym, b: Sym) -> Sym {
        let (la, lb) = (self.lin_mut(a), self.lin_mut(b));
        match la.add(&lb) {
            Some(sum) => self.of_lin(&sum),
            None => self.intern(TermDraft::Leaf(Node::BigAdd(a.min(b), a.max(b)))),
        }
    }

    /// The difference `a - b`.
    pub fn sub(&mut self, a: Sym, b: Sym) -> Sym {
        let (la, lb) = (self.lin_mut(a), self.lin_mut(b));
        if let Some(difference) = la.sub(&lb) {
            return self.of_lin(&difference);
        }
        let negated = self.neg(b);
        self.intern(TermDraft::Leaf(Node::BigAdd(a.min(negated), a.max(negated))))
    }

    /// The negation `-a`.
    pub fn neg(&mut self, a: Sym) -> Sym {
        let minus_one = self.int(-1);
        self.mul(a, minus_one)
    }

    /// The product `a * b`, multiplied out if `a` or `b` is a sum.
    pub fn mul(&mut self, a: Sym, b: Sym) -> Sym {
        let (la, lb) = (self.lin_mut(a), self.lin_mut(b));
        match self.mul_lin(&la, &lb) {
            Some(product) => self.of_lin(&product),
            None => self.intern(TermDraft::Leaf(Node::BigMul(a.min(b), a.max(b)))),
        }
    }

    /// The sum of the items; 0 if there are none.
    pub fn sum(&mut self, items: impl IntoIterator<Item = Sym>) -> Sym {
        let zero = self.int(0);
        items.into_iter().fold(zero, |acc, x| self.add(acc, x))
    }

    /// The product of the items; 1 if there are none. For example, the product of the dims of a shape is its number of elements.
    pub fn product(&mut self, items: impl IntoIterator<Item = Sym>) -> Sym {
        let one = self.int(1);
        items.into_iter().fold(one, |acc, x| self.mul(acc, x))
    }
}
