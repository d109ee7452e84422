//! Passes that merge operators and loop functions into fewer loop functions. Fusion patterns decide what is merged, not costs. The
//! cost of recomputing a value is compared within merged loop functions (`pliant-tir/src/inline_elementwise_stages.rs`).
//!
//! | module | what |
//! |---|---|
//! | `annotate_tir_op_pattern` | annotate each loop function with its fusion pattern |
//! | `fuse_ops` | group calls of loop functions |
//! | `fuse_tir` | merge each group into one loop function |
//! | `fuse_transpose_matmul` | let matmuls read transposed operands in place |
//! | `lower_unit_dim_reshapes` | lower reshapes of dims of size 1 to loop functions, which fuse |

pub mod annotate_tir_op_pattern;
pub mod fuse_ops;
pub mod fuse_tir;
pub mod fuse_transpose_matmul;
pub mod lower_unit_dim_reshapes;
