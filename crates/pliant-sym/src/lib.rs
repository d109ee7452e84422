//! Symbolic integers for the sizes, strides and indices of programs with dynamic shapes.
//!
//! A [`SymArena`] holds terms over named variables, hash-consed and in normal form: building the
//! same polynomial, quotient or comparison twice, in any order, returns the same [`Sym`]. Values
//! are mathematical integers, and `//` and `%` have Python's semantics. Nothing wraps and nothing
//! panics: an operation whose folding would overflow is kept unfolded. Sizes 0 and 1 get no special
//! treatment.
//!
//! | file | owns |
//! |---|---|
//! | `kind` | ids, [`SymKind`], the stored node |
//! | `arena` | storage, hash-consing, variables |
//! | `lin`, `sugar` | the linear form behind the normal form; recovering `%` from it |
//! | `build_linear`, `build_div`, `build_minmax`, `build_logic` | the builders, by operator family |
//! | `quotient` | exact division of polynomials |
//! | `print` | text in Python's syntax |
//! | `irregular` | subterms of sizes that loop functions take as parameters |
//! | `measure` | the number of nodes of a term when it is written as a tree |
//! | `substitute` | traversals: children, free variables, substitution, import |
//! | `evaluate` | the value of a term for given sizes |
//! | `solve` | solving a shape pattern for the variable that it defines |
//! | `facts` | [`Facts`]: ranges, divisibility, bindings, assumed predicates |
//! | `analyzer` | [`Analyzer`]: an arena and facts, the entry point for queries |
//! | `bounds`, `modular` | constant bounds; residues |
//! | `simplify` | simplification under facts |
//! | `prove`, `system`, `linear` | the prover: queries, constraints of atoms, the linear solver |

mod analyzer;
mod arena;
mod bounds;
mod build_div;
mod build_linear;
mod build_logic;
mod build_minmax;
mod evaluate;
mod facts;
mod irregular;
mod kind;
mod lin;
mod linear;
mod measure;
mod modular;
mod print;
mod prove;
mod quotient;
mod simplify;
mod solve;
mod substitute;
mod sugar;
mod system;

pub use analyzer::{Analyzer, DEFAULT_BUDGET};
pub use arena::SymArena;
pub use bounds::Bound;
pub use evaluate::EvalError;
pub use facts::Facts;
pub use kind::{CmpOp, Sym, SymKind, SymVar, Term};
pub use modular::ModularSet;
pub use print::Naming;
pub use prove::Proof;
pub use solve::{Solution, solve_match};
