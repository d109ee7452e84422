//! The types that represent terms: ids, comparison operators, the stored node, and its public view [`SymKind`].

use cranelift_entity::entity_impl;
use smallvec::SmallVec;

/// A symbolic integer: the id of a term in a [`SymArena`](crate::SymArena).
///
/// Terms are hash-consed in normal form: within one arena, two ids are equal exactly if the normal forms are equal.
/// [`Analyzer::prove_eq`](crate::Analyzer::prove_eq) proves equality under facts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sym(u32);
entity_impl!(Sym, "sym");

/// A variable of a [`SymArena`](crate::SymArena). Several variables may have the same name.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymVar(u32);
entity_impl!(SymVar, "v");

/// An addend of a sum: a coefficient and a term.
pub type Term = (i64, Sym);

/// A list of terms that stores up to 6 terms without heap allocation.
pub(crate) type SymList = SmallVec<[Sym; 6]>;

/// The comparison operators of the normal form. `>` and `>=` are expressed by swapping the operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CmpOp {
    /// The comparison `a < b`.
    Lt,
    /// The comparison `a <= b`.
    Le,
    /// The comparison `a == b`.
    Eq,
    /// The comparison `a != b`.
    Ne,
}

impl CmpOp {
    /// The operator as Python spells it.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
        }
    }

    /// Whether the comparison holds between the integers `a` and `b`.
    pub fn holds<T: Ord>(self, a: T, b: T) -> bool {
        match self {
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
        }
    }
}

/// The kind and the operands of a term, as returned by [`SymArena::kind`](crate::SymArena::kind).
///
/// Lists are sorted by id, and every operand is in normal form. Predicates (`Cmp`, `And`, `Or`,
/// `Not`) are integers with the value 0 or 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SymKind<'a> {
    /// An integer constant.
    Int(i64),
    /// A variable.
    Var(SymVar),
    /// The sum `constant + sum(coef * term)`. Coefficients are not 0, and no term is an `Int` or a `Sum`.
    Sum {
        /// The addends with their coefficients. An addend is a variable, a product, or any term other than a constant or a sum.
        terms: &'a [Term],
        /// The constant addend.
        constant: i64,
    },
    /// A product of two or more atoms (terms other than constants, sums and products). A power repeats the atom.
    Product(&'a [Sym]),
    /// The quotient `a // b`, rounded towards minus infinity.
    FloorDiv(Sym, Sym),
    /// The remainder `a % b`, with the sign of `b`.
    FloorMod(Sym, Sym),
    /// The minimum of two or more operands.
    Min(&'a [Sym]),
    /// The maximum of two or more operands.
    Max(&'a [Sym]),
    /// The second operand if the first (a predicate) is true, else the third.
    Select(Sym, Sym, Sym),
    /// A comparison of two terms.
    Cmp(CmpOp, Sym, Sym),
    /// Conjunction of two or more predicates.
    And(&'a [Sym]),
    /// Disjunction of two or more predicates.
    Or(&'a [Sym]),
    /// Negation of an `And` or an `Or`. The negation of a comparison is another comparison.
    Not(Sym),
    /// A sum `a + b` that is not merged into a `Sum`, because the result would overflow 64 bits or have too many terms.
    BigAdd(Sym, Sym),
    /// A product `a * b` that is not multiplied out, because the result would overflow 64 bits or have too many terms.
    BigMul(Sym, Sym),
}

/// A range of indices into one of the arena's operand lists.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u32,
    pub len: u32,
}

/// The stored form of a term. Operand lists are stored in the arena.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Int(i64),
    Var(SymVar),
    /// A sum, as a range of the arena's list of (coefficient, term). The first entry holds the constant.
    Sum(Range),
    Product(Range),
    FloorDiv(Sym, Sym),
    /// A remainder (dividend, divisor, quotient). If the divisor is a constant `c` other than 0, the third field is the quotient `a
    /// // c`, so that `a % c` can be read as `a - c * (a // c)` without creating a term. Otherwise the third field repeats the
    /// dividend `a`.
    FloorMod(Sym, Sym, Sym),
    Min(Range),
    Max(Range),
    Select(Sym, Sym, Sym),
    Cmp(CmpOp, Sym, Sym),
    And(Range),
    Or(Range),
    Not(Sym),
    BigAdd(Sym, Sym),
    BigMul(Sym, Sym),
}

const _: () = assert!(size_of::<Node>() == 16);
const _: () = assert!(size_of::<Sym>() == 4 && size_of::<SymVar>() == 4);
