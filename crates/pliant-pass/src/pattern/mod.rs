//! The dataflow pattern language: patterns describe parts of a graph, which are searched for and rewritten.
//!
//! | module | contains |
//! |---|---|
//! | [`node`] | [`Pattern`]: shared, immutable descriptions of expressions |
//! | [`type_pattern`] | [`SizePattern`], [`TypePattern`]: patterns of sizes and types, whose symbols are unified |
//! | [`table`] | [`PatternTable`]: patterns as a flat table, with the operators at their roots |
//! | [`check`] | detection of patterns that can never match |
//! | `contradictions`, `type_check` | contradictory conditions, and conditions that type inference refutes |
//! | [`defs`] | [`Defs`]: the values of variables, and the side effects between which they are computed |
//! | [`matcher`], `unification` | [`Match`], and the backtracking search |
//! | [`context`] | [`PatternContext`]: several patterns with use relations |
//! | [`rules`] | [`RuleSet`]: rewrite rules, indexed by the operator at the root |
//! | [`rewriter`] | [`Rewriter`]: applies rules match by match until none matches |
//! | [`apply`] | [`rewrite_call`], [`rewrite_rules`]: rules with callbacks |
//! | [`cleanup`] | removal of unused bindings after a rewrite |
//! | [`rewrite_blocks`] | [`rewrite_bindings`]: applies contexts to dataflow blocks |
//! | [`template`] | rules written as two functions, `pattern` and `replacement` |
//! | `separate_results` | templates with several results that the program does not combine to a tuple |
//! | [`predefined`] | predefined patterns |
//!
//! A pattern describes an expression together with the expressions from which it is computed: the search looks through variables,
//! copies and `match_cast`. A pattern node that occurs twice must match the same value twice. The search backtracks over
//! alternatives (`|`, and the operand order of commutative operators), so it finds a match if any combination of them matches.

pub mod apply;
pub mod check;
pub mod cleanup;
pub mod context;
mod contradictions;
pub mod defs;
pub mod matcher;
pub mod node;
pub mod predefined;
pub mod rewrite_blocks;
pub mod rewriter;
pub mod rules;
mod separate_results;
pub mod table;
pub mod template;
mod type_check;
pub mod type_pattern;
mod unification;

pub use apply::{RewriteCx, rewrite_call, rewrite_rules};
pub use context::PatternContext;
pub use defs::Defs;
pub use matcher::{Match, match_expr};
pub use node::{
    Pattern, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_gv, is_op, is_tuple,
    is_tuple_get_item, is_var, wildcard,
};
pub use rewrite_blocks::rewrite_bindings;
pub use rewriter::{Replacement, Rewriter};
pub use rules::RuleSet;
pub use table::PatternTable;
pub use type_pattern::{SizePattern, TypePattern};
