//! The dataflow pattern language: patterns describe parts of a graph, which are searched for and rewritten.
//!
//! | module | contains |
//! |---|---|
//! | [`pattern_nodes`] | [`Pattern`]: shared, immutable descriptions of expressions |
//! | [`type_pattern`] | [`SizePattern`], [`TypePattern`]: patterns of sizes and types, whose symbols are unified |
//! | [`pattern_table`] | [`PatternTable`]: patterns as a flat table, with the operators at their roots |
//! | [`impossible_patterns`] | detection of patterns that can never match |
//! | `contradictory_patterns`, `impossible_call_patterns` | contradictory conditions, and conditions that type inference refutes |
//! | [`variable_definitions`] | [`Defs`]: the values of variables, and the number of side effects that precede each |
//! | [`pattern_matcher`], `unification` | [`Match`], and the backtracking search |
//! | [`pattern_context`] | [`PatternContext`]: several patterns with use relations |
//! | [`rewrite_rule_set`] | [`RuleSet`]: rewrite rules, indexed by the operator at the root |
//! | [`function_rewriter`] | [`Rewriter`]: applies rules match by match until none matches |
//! | [`apply_rewrite_rules`] | [`rewrite_call`], [`rewrite_rules`]: rules with callbacks |
//! | [`rewrite_cleanup`] | removal of unused bindings after a rewrite |
//! | [`rewrite_dataflow_blocks`] | [`rewrite_bindings`]: applies contexts to dataflow blocks |
//! | [`rewrite_templates`] | rules written as two functions, `pattern` and `replacement` |
//! | `multi_result_templates` | templates with several results that the program does not combine to a tuple |
//! | [`predefined_patterns`] | predefined patterns |
//!
//! A pattern describes an expression together with the expressions from which its operands are computed: the search follows
//! variables, copies and `match_cast` to the bound values. A pattern node that occurs twice must match the same value twice. The
//! search backtracks over alternatives (`|`, and the operand order of commutative operators), so it finds a match if any
//! combination of alternatives matches.

pub mod apply_rewrite_rules;
mod contradictory_patterns;
pub mod function_rewriter;
mod impossible_call_patterns;
pub mod impossible_patterns;
mod multi_result_templates;
pub mod pattern_context;
pub mod pattern_matcher;
pub mod pattern_nodes;
pub mod pattern_table;
pub mod predefined_patterns;
pub mod rewrite_cleanup;
pub mod rewrite_dataflow_blocks;
pub mod rewrite_rule_set;
pub mod rewrite_templates;
pub mod type_pattern;
mod unification;
pub mod variable_definitions;

pub use apply_rewrite_rules::{RewriteCx, rewrite_call, rewrite_rules};
pub use function_rewriter::{Replacement, Rewriter};
pub use pattern_context::PatternContext;
pub use pattern_matcher::{Match, match_expr};
pub use pattern_nodes::{
    Pattern, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_gv, is_op, is_tuple,
    is_tuple_get_item, is_var, wildcard,
};
pub use pattern_table::PatternTable;
pub use rewrite_dataflow_blocks::rewrite_bindings;
pub use rewrite_rule_set::RuleSet;
pub use type_pattern::{SizePattern, TypePattern};
pub use variable_definitions::Defs;
