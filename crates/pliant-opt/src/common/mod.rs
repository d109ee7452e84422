//! Code that passes of several phases share: names of operators, and rewrites that are not passes.
//!
//! | module | what |
//! |---|---|
//! | `bind_constants` | binds constants to variables where their memory may be shared or written to |
//! | `call_keys` | keys of operator calls that can share a loop function |
//! | `call_sites` | rewrites calls after the parameters of a function changed |
//! | `image_layout` | channels-first and channels-last layouts in attributes |
//! | `loop_functions` | loop functions that a pass adds to the module, and their calls |
//! | `lowered_ops` | the operators of the lowered stages, and constructors of their calls |
//! | `products` | matmuls, convolutions and their operands |
//! | `purity` | purity after effects are explicit |
//! | `reinfer` | type inference after the types of parameters changed |
//! | `symbolic_sizes` | shapes of expressions, and upper bounds of symbolic sizes |

pub(crate) mod bind_constants;
pub(crate) mod call_keys;
pub(crate) mod call_sites;
pub(crate) mod image_layout;
pub(crate) mod loop_functions;
pub mod lowered_ops;
pub mod products;
pub(crate) mod purity;
pub(crate) mod reinfer;
pub(crate) mod symbolic_sizes;
