//! The dataflow pattern language: what a piece of a graph looks like, finding it, and putting something else there.
//!
//! | module | owns |
//! |---|---|
//! | [`node`] | [`Pattern`]: shared, immutable descriptions of expressions |
//! | [`size`] | [`SizePattern`], [`TypePattern`]: sizes and types with symbols that unify |
//! | [`table`] | [`PatternTable`]: patterns as a flat table, and which operators can stand at their roots |
//! | [`check`] | finds patterns that can never match |
//! | `typed` | what the type rules of operators say about them |
//! | [`defs`] | [`Defs`]: the values of variables, and what may move past which effect |
//! | [`matcher`], `compare` | [`Match`], and the search with backtracking |
//! | [`context`] | [`PatternContext`]: several patterns with uses between them |
//! | [`rules`] | [`RuleSet`]: rewrite rules, indexed by the operator at the root |
//! | [`rewriting`] | [`Rewriting`]: rules applied match by match, until none fits |
//! | [`apply`] | [`rewrite_call`], [`rewrite_rules`]: rules with callbacks |
//! | [`clean`] | cleaning up after a rewrite |
//! | [`block`] | [`rewrite_bindings`]: contexts applied to dataflow blocks |
//! | [`template`] | rules written as two functions, `pattern` and `replacement` |
//! | `scattered` | such rules for several values that no tuple holds |
//! | [`fused`] | ready-made patterns |
//!
//! A pattern describes an expression together with those it is computed from: variables are looked through, over
//! copies and `match_cast`. One pattern node that occurs twice matches the same value twice. Searching backtracks:
//! if any choice of alternatives (`|`, the order of a commutative operator's operands) matches, a match is found.

pub mod apply;
pub mod block;
pub mod check;
pub mod clean;
mod compare;
pub mod context;
pub mod defs;
mod demands;
pub mod fused;
pub mod matcher;
pub mod node;
pub mod rewriting;
pub mod rules;
mod scattered;
pub mod size;
pub mod table;
pub mod template;
mod typed;

pub use apply::{RewriteCx, rewrite_call, rewrite_rules};
pub use block::rewrite_bindings;
pub use context::PatternContext;
pub use defs::Defs;
pub use matcher::{Match, match_expr};
pub use node::{
    Pattern, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_gv, is_op, is_tuple,
    is_tuple_get_item, is_var, wildcard,
};
pub use rewriting::{Replacement, Rewriting};
pub use rules::RuleSet;
pub use size::{SizePattern, TypePattern};
pub use table::PatternTable;
