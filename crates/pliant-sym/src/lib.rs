//! Symbolic integers: the sizes, strides and indices of programs whose shapes are not known yet.
//!
//! A [`SymArena`] holds terms over named variables, hash-consed and in normal form: building the
//! same polynomial, quotient or comparison twice, in whatever order, gives the same [`Sym`]. Values
//! are mathematical integers, `//` and `%` are Python's; nothing wraps and nothing panics, and what
//! folding would overflow stays unfolded. Sizes 0 and 1 are ordinary.
//!
//! | file | owns |
//! |---|---|
//! | `kind` | ids, [`SymKind`], the stored node |
//! | `arena` | storage, hash-consing, variables |
//! | `lin`, `sugar` | the linear form behind the normal form; finding `%` in it |
//! | `build_linear`, `build_div`, `build_minmax`, `build_logic` | the builders, by operator family |
//! | `quotient` | exact division of polynomials |
//! | `print` | text in Python's syntax |
//! | `irregular` | parts of sizes that loop functions take as arguments |
//! | `measure` | how large a term is when it is written out |
//! | `substitute` | walks: children, free variables, substitution, import |
//! | `evaluate` | the value at given sizes |
//! | `solve` | solving a shape pattern for the variable that it defines |
//! | `facts` | [`Facts`]: ranges, divisibility, bindings, assumed predicates |
//! | `analyzer` | [`Analyzer`]: an arena and facts, to ask questions of |
//! | `bounds`, `modular` | constant bounds; residues |
//! | `simplify` | simplification under facts |
//! | `prove`, `system`, `linear` | the prover: questions, constraints of atoms, the linear solver |

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
