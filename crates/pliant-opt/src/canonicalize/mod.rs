//! Passes that simplify graph functions and bring them into the form that later phases expect. They do not depend on library
//! kernels and create no loop functions.
//!
//! | module | what |
//! |---|---|
//! | `canonicalize_bindings` | remove copies of variables, and casts that cannot fail |
//! | `convert_to_dataflow` | put pure bindings into dataflow blocks |
//! | `dead_code_elimination` | remove unused bindings and functions |
//! | `eliminate_common_subexpr` | common subexpression elimination |
//! | `eliminate_unused` | remove unreachable private functions |
//! | `expand_tuple_arguments` | pass the fields of tuples as separate arguments |
//! | `fold_constant` | constant folding |
//! | `inline_private_functions` | inline private functions |
//! | `lambda_lift` | move local functions to the module |
//! | `match_unknown_shapes` | define symbols for unknown sizes that operators need |
//! | `normalize` | drop empty binding blocks and merge adjacent ones |
//! | `normalize_global_var` | rename functions to their `global_symbol` |
//! | `remove_redundant_reshape` | merge chains of reshapes |
//! | `remove_unused_outputs` | remove unread results of private functions |
//! | `remove_unused_parameters` | remove unread parameters of private functions |
//! | `topological_sort` | sort the bindings of dataflow blocks |

pub mod canonicalize_bindings;
pub mod convert_to_dataflow;
pub mod dead_code_elimination;
pub mod eliminate_common_subexpr;
pub mod eliminate_unused;
pub mod expand_tuple_arguments;
pub mod fold_constant;
pub mod inline_private_functions;
pub mod lambda_lift;
pub mod match_unknown_shapes;
pub mod normalize;
pub mod normalize_global_var;
pub mod remove_redundant_reshape;
pub mod remove_unused_outputs;
pub mod remove_unused_parameters;
pub mod topological_sort;
