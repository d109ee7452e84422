//! The dataflow pattern language: describes, finds and replaces parts of a graph.
//!
//! | module | owns |
//! |---|---|
//! | [`node`] | [`Pattern`]: shared, immutable descriptions of expressions |
//! | [`size`] | [`SizePattern`], [`TypePattern`]: sizes and types with symbols that are unified |
//! | [`table`] | [`PatternTable`]: patterns as a flat table, with the operators at their roots |
//! | [`check`] | detects patterns that can never match |
//! | `typed` | uses type inference to check patterns |
//! | [`defs`] | [`Defs`]: the values of variables, and which may move across side effects |
//! | [`matcher`], `compare` | [`Match`], and the backtracking search |
//! | [`context`] | [`PatternContext`]: several patterns with use relations |
//! | [`rules`] | [`RuleSet`]: rewrite rules, indexed by the operator at the root |
//! | [`rewriting`] | [`Rewriting`]: applies rules match by match until none matches |
//! | [`apply`] | [`rewrite_call`], [`rewrite_rules`]: rules with callbacks |
//! | [`clean`] | cleaning up after a rewrite |
//! | [`block`] | [`rewrite_bindings`]: applies contexts to dataflow blocks |
//! | [`template`] | rules written as two functions, `pattern` and `replacement` |
//! | `scattered` | such rules with several results that are not in a tuple |
//! | [`fused`] | predefined patterns |
//!
//! A pattern describes an expression together with the expressions from which it is computed:
//! variables are looked through, across copies and `match_cast`. A pattern node that occurs twice
//! must match the same value twice. The search backtracks: if any combination of alternatives (`|`,
//! the operand order of a commutative operator) matches, a match is found.

pub mod apply;
pub mod block;
pub mod check;
pub mod cleanup;
mod contradictions;
pub mod context;
pub mod defs;
pub mod matcher;
pub mod node;
pub mod predefined;
pub mod rewriter;
pub mod rules;
mod separate_results;
pub mod table;
pub mod template;
mod type_check;
pub mod type_pattern;
mod unification;

pub use apply::{RewriteCx, rewrite_call, rewrite_rules};
pub use block::rewrite_bindings;
pub use context::PatternContext;
pub use defs::Defs;
pub use matcher::{Match, match_expr};
pub use node::{
    Pattern, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_gv, is_op, is_tuple,
    is_tuple_get_item, is_var, wildcard,
};
pub use rewriter::{Replacement, Rewriter};
pub use rules::RuleSet;
pub use type_pattern::{SizePattern, TypePattern};
pub use table::PatternTable;
