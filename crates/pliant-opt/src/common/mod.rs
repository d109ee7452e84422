//! Code that passes of several phases share: names of operators, and rewrites that are not passes.
//!
//! | module | what |
//! |---|---|
//! | `bind_constants_to_variables` | binds constants to variables where their memory may be shared or written to |
//! | `call_deduplication_keys` | keys of operator calls that can share a loop function |
//! | `rewrite_call_sites` | rewrites calls after the parameters of a function changed |
//! | `image_layout_attributes` | channels-first and channels-last layouts in attributes |
//! | `shared_loop_functions` | loop functions that a pass adds to the module, and their calls |
//! | `lowered_operators` | the operators of the lowered stages, and constructors of their calls |
//! | `matmul_and_conv_operands` | matmuls, convolutions and their operands |
//! | `purity_after_lowering` | purity after effects are explicit |
//! | `repeat_type_inference` | type inference after the types of parameters changed |
//! | `shapes_and_size_bounds` | shapes of expressions, and upper bounds of symbolic sizes |

pub(crate) mod bind_constants_to_variables;
pub(crate) mod call_deduplication_keys;
pub(crate) mod image_layout_attributes;
pub mod lowered_operators;
pub mod matmul_and_conv_operands;
pub(crate) mod purity_after_lowering;
pub(crate) mod repeat_type_inference;
pub(crate) mod rewrite_call_sites;
pub(crate) mod shapes_and_size_bounds;
pub(crate) mod shared_loop_functions;
