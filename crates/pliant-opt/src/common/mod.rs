//! Code that passes of several phases share: names of operators, access to operands, and rewrites that are not passes themselves.
//!
//! | module | what |
//! |---|---|
//! | `bind_constants_to_variables` | binds constants to variables where results may share their memory or calls may write to it |
//! | `call_deduplication_keys` | keys of operator calls that can share a loop function |
//! | `rewrite_call_sites` | rewrites calls after the parameters of a function changed |
//! | `image_layout_attributes` | channels-first and channels-last layouts in attributes |
//! | `shared_loop_functions` | loop functions that a pass adds to the module, and their calls |
//! | `operators_after_lowering` | the operators that occur only after lowering, and functions that create calls of them |
//! | `matmul_and_conv_operands` | matmuls, convolutions and their operands |
//! | `purity_after_lowering` | updates purity when lowering adds calls with side effects |
//! | `repeat_type_inference` | infers types again after the types of parameters have changed |
//! | `shapes_and_size_bounds` | shapes of expressions, and upper bounds of symbolic sizes |

pub(crate) mod bind_constants_to_variables;
pub(crate) mod call_deduplication_keys;
pub(crate) mod image_layout_attributes;
pub mod matmul_and_conv_operands;
pub mod operators_after_lowering;
pub(crate) mod purity_after_lowering;
pub(crate) mod repeat_type_inference;
pub(crate) mod rewrite_call_sites;
pub(crate) mod shapes_and_size_bounds;
pub(crate) mod shared_loop_functions;
