//! The graph level in Python: struct infos, expressions, functions and the block builder.
//!
//! | module | owns |
//! |---|---|
//! | `detached_expr`, `detached_functions` | expressions, bindings and functions that Python code built and that belong to no function yet |
//! | `function_owner`, `keep_functions_alive` | functions to which Python expressions refer |
//! | `lower_expr`, `lower_func`, `cross_function_import` | the conversion of nodes, and of parts of other functions, to the arenas of a function |
//! | `struct_info`, `value_conversion` | types independent of a function; the conversion of Python values to operands, attributes and types |
//! | `classes`, `binding_blocks`, `function` | the Python classes of expressions, struct infos, blocks, bindings and functions |
//! | `expr_accessors`, `expr_traversal`, `analysis` | the contents of expressions, their traversal, and `pliant.relax.analysis` |
//! | `block_builder`, `block_rewriter`, `function_build_order` | the construction and rewriting of functions and modules |
//! | `operators`, `operator_call_check`, `user_operators` | operators as Python functions, the checks of their calls, and user-defined operators |
//! | `dpl` | the dataflow pattern language |

pub mod analysis;
pub mod binding_blocks;
pub mod block_builder;
pub mod block_rewriter;
pub mod classes;
pub mod cross_function_import;
pub mod detached_expr;
pub mod detached_functions;
pub mod dpl;
pub mod expr_accessors;
pub mod expr_traversal;
pub mod function;
pub mod function_build_order;
pub mod function_owner;
pub mod keep_functions_alive;
pub mod lower_expr;
pub mod lower_func;
pub mod normal_form;
pub mod operator_call_check;
pub mod operators;
pub mod struct_info;
pub mod user_operators;
pub mod value_conversion;
