//! The vocabulary of terms: ids, comparison operators, the stored node and its public view.

use cranelift_entity::entity_impl;
use smallvec::SmallVec;

/// A symbolic integer: the id of a term in a [`SymArena`](crate::SymArena).
///
/// Terms are hash-consed in normal form, so within one arena two ids are equal exactly when the
/// normal forms are. "Provably equal under facts" is [`Analyzer::prove_eq`](crate::Analyzer::prove_eq).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sym(u32);
entity_impl!(Sym, "sym");

/// A variable of a [`SymArena`](crate::SymArena). Two variables may carry the same name.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymVar(u32);
entity_impl!(SymVar, "v");

/// A coefficient and the term that it multiplies.
pub type Term = (i64, Sym);

/// A short list of terms, as the builders pass it around.
pub(crate) type SymList = SmallVec<[Sym; 6]>;

/// The comparison operators that normal form keeps; `>` and `>=` are turned around.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CmpOp {
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
}

impl CmpOp {
    /// The Python spelling.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
        }
    }

    /// Whether the comparison holds between two integers.
    pub fn holds<T: Ord>(self, a: T, b: T) -> bool {
        match self {
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
        }
    }
}

/// What a term is, seen from outside.
///
/// Every list is sorted by id and every operand is itself in normal form. Predicates (`Cmp`, `And`,
/// `Or`, `Not`) are integers with the value 0 or 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SymKind<'a> {
    /// A constant.
    Int(i64),
    /// A variable.
    Var(SymVar),
    /// `constant + sum(coef * term)`: coefficients are not 0, and no term is an `Int` or a `Sum`.
    Sum {
        /// The terms: variables, products and other atoms.
        terms: &'a [Term],
        /// The constant addend.
        constant: i64,
    },
    /// A product of two or more atoms (repeated for powers), without a constant factor.
    Product(&'a [Sym]),
    /// `a // b`, rounded towards minus infinity.
    FloorDiv(Sym, Sym),
    /// `a % b`, with the sign of `b`.
    FloorMod(Sym, Sym),
    /// The least of two or more operands.
    Min(&'a [Sym]),
    /// The greatest of two or more operands.
    Max(&'a [Sym]),
    /// The second operand where the first (a predicate) holds, else the third.
    Select(Sym, Sym, Sym),
    /// A comparison.
    Cmp(CmpOp, Sym, Sym),
    /// Conjunction of two or more predicates.
    And(&'a [Sym]),
    /// Disjunction of two or more predicates.
    Or(&'a [Sym]),
    /// Negation of an `And` or an `Or` (comparisons are negated in place).
    Not(Sym),
    /// `a + b` kept as written, because folding it overflows 64 bits or grows too long.
    BigAdd(Sym, Sym),
    /// `a * b` kept as written, because folding it overflows 64 bits or grows too long.
    BigMul(Sym, Sym),
}

/// A range in one of the arena's pools.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u32,
    pub len: u32,
}

/// The stored form of a term. Lists live in the arena's pools.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Int(i64),
    Var(SymVar),
    /// A range of the term pool; its first entry holds the constant.
    Sum(Range),
    Product(Range),
    FloorDiv(Sym, Sym),
    /// The third field is the matching quotient when the divisor is a constant other than 0, so
    /// that `a % c` can be read as `a - c * (a // c)` without building anything; else it repeats `a`.
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
