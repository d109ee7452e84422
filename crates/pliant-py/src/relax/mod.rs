//! The graph level in Python: struct infos, expressions, functions and the block builder.
//!
//! | module | owns |
//! |---|---|
//! | `node`, `seq` | expressions, bindings and functions that Python code built and that belong to no function yet |
//! | `func_owner`, `keep_functions_alive` | functions that Python expressions refer to |
//! | `lower_expr`, `lower_func`, `cross_function_import` | the conversion of nodes, and of parts of other functions, to the arenas of a function |
//! | `sinfo`, `convert` | types independent of a function; the conversion of Python values to operands, attributes and types |
//! | `classes`, `blocks`, `function` | the Python classes of expressions, struct infos, blocks, bindings and functions |
//! | `accessors`, `walk`, `analysis` | the contents of expressions, their traversal, and `pliant.relax.analysis` |
//! | `builder`, `block_rewriter`, `build_order` | the construction and rewriting of functions and modules |
//! | `op`, `check_call`, `user_op` | operators as Python functions, the checks of their calls, and user-defined operators |
//! | `dpl` | the dataflow pattern language |

pub mod accessors;
pub mod analysis;
pub mod block_rewriter;
pub mod blocks;
pub mod build_order;
pub mod builder;
pub mod check_call;
pub mod classes;
pub mod convert;
pub mod cross_function_import;
pub mod dpl;
pub mod func_owner;
pub mod function;
pub mod keep_functions_alive;
pub mod lower_expr;
pub mod lower_func;
pub mod node;
pub mod op;
pub mod seq;
pub mod sinfo;
pub mod user_op;
pub mod walk;
