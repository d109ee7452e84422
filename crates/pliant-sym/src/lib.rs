//! Symbolic integers for the sizes, strides and indices of programs with dynamic shapes.
//!
//! A [`SymArena`] holds terms over named variables. Terms are hash-consed and in normal form: building the same polynomial,
//! quotient or comparison twice, in any order, returns the same [`Sym`]. Values are mathematical integers, and `//` and `%` have
//! Python's semantics. Nothing wraps or panics: an operation that would overflow stays unfolded. Sizes 0 and 1 are not special.
//!
//! | file | contents |
//! |---|---|
//! | `kind` | ids, [`SymKind`], the stored node |
//! | `arena` | storage, hash-consing, variables |
//! | `linear_form`, `recover_mod` | the linear form behind the normal form; converting it back to terms with `%` |
//! | `build_linear`, `build_div`, `build_minmax`, `build_logic` | the builders, by operator family |
//! | `quotient` | exact division of polynomials |
//! | `print` | text in Python's syntax |
//! | `unanalyzable_terms` | subterms of sizes that are passed to loop functions as parameters |
//! | `tree_size` | the number of nodes of a term written as a tree |
//! | `substitute` | traversals: children, free variables, substitution, import |
//! | `evaluate` | the value of a term for given sizes |
//! | `solve` | solves a shape pattern for the variable that it defines |
//! | `facts` | [`Facts`]: ranges, divisibility, bindings, assumed predicates |
//! | `analyzer` | [`Analyzer`]: an arena and facts, the entry point for queries |
//! | `bounds`, `modular` | constant bounds; residues |
//! | `simplify` | simplification under facts |
//! | `prove`, `constraints`, `linear_solver` | the prover: queries, constraints on terms, the solver for linear constraints |

mod analyzer;
mod arena;
mod bounds;
mod build_div;
mod build_linear;
mod build_logic;
mod build_minmax;
mod constraints;
mod evaluate;
mod facts;
mod kind;
mod linear_form;
mod linear_solver;
mod modular;
mod print;
mod prove;
mod quotient;
mod recover_mod;
mod simplify;
mod solve;
mod substitute;
mod tree_size;
mod unanalyzable_terms;

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
