//! Symbolic integers for the sizes, strides and indices of programs with dynamic shapes.
//!
//! A [`SymArena`] holds terms over named variables. Terms are hash-consed and in normal form: building the same polynomial,
//! quotient or comparison twice, in any order, returns the same [`Sym`]. Values are mathematical integers, and `//` and `%` have
//! Python's semantics. Arithmetic never wraps or panics: an operation whose result would overflow is kept as a term instead of
//! being folded. Sizes may be 0 or 1; no size is assumed to be greater.
//!
//! | file | contents |
//! |---|---|
//! | `term_types` | ids of terms, [`SymKind`] (the kind and operands of a term), the stored node |
//! | `term_arena` | storage, hash-consing, variables |
//! | `linear_form`, `recover_remainders` | the linear form behind the normal form; converting it back to terms with `%` |
//! | `sum_and_product_builders`, `division_builders`, `min_max_builders`, `comparison_and_logic_builders` | the builders, by operator family |
//! | `exact_polynomial_division` | exact division of polynomials |
//! | `print_terms` | text in Python's syntax |
//! | `unanalyzable_terms` | subterms of sizes that are passed to loop functions as parameters |
//! | `expanded_term_size` | the number of nodes of a term written as a tree |
//! | `substitution_and_traversal` | traversals: children, free variables, substitution, import |
//! | `evaluate_terms` | the value of a term for given sizes |
//! | `solve_match_cast_sizes` | solves a size such as `n * 4` in a `match_cast` for the variable that it defines |
//! | `variable_assumptions` | [`Facts`]: ranges, divisibility, bindings, assumed predicates |
//! | `term_analyzer` | [`Analyzer`]: an arena and facts, the entry point for queries |
//! | `constant_term_bounds`, `divisibility` | constant bounds; residues |
//! | `simplify_terms` | simplification under facts |
//! | `predicate_prover`, `terms_to_linear_constraints`, `linear_solver` | the prover: queries, constraints on terms, the solver for linear constraints |
//!
//! # Examples
//! ```
//! use pliant_sym::{Analyzer, Facts, SymArena};
//!
//! // The number of blocks of four elements that cover n elements.
//! let mut arena = SymArena::new();
//! let var = arena.fresh_var("n");
//! let (n, four) = (arena.var(var), arena.int(4));
//! let blocks = arena.ceildiv(n, four);
//! assert_eq!(arena.display(blocks).to_string(), "(n + 3) // 4");
//!
//! // There is no negative number of blocks, because n is a size.
//! let zero = arena.int(0);
//! let mut facts = Facts::new();
//! facts.assume_size(var);
//! assert!(Analyzer::new(&mut arena, &facts).prove_le(zero, blocks).is_yes());
//! ```

mod comparison_and_logic_builders;
mod constant_term_bounds;
mod divisibility;
mod division_builders;
mod evaluate_terms;
mod exact_polynomial_division;
mod expanded_term_size;
mod linear_form;
mod linear_solver;
mod min_max_builders;
mod predicate_prover;
mod print_terms;
mod recover_remainders;
mod simplify_terms;
mod solve_match_cast_sizes;
mod substitution_and_traversal;
mod sum_and_product_builders;
mod term_analyzer;
mod term_arena;
mod term_types;
mod terms_to_linear_constraints;
mod unanalyzable_terms;
mod variable_assumptions;

pub use constant_term_bounds::Bound;
pub use divisibility::ModularSet;
pub use evaluate_terms::EvalError;
pub use predicate_prover::Proof;
pub use print_terms::Naming;
pub use solve_match_cast_sizes::{Solution, solve_match};
pub use term_analyzer::{Analyzer, DEFAULT_BUDGET};
pub use term_arena::SymArena;
pub use term_types::{CmpOp, Sym, SymKind, SymVar, Term};
pub use variable_assumptions::Facts;
