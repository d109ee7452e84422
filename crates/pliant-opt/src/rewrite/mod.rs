//! Algebraic rewrites of operators into cheaper or more general ones, such as the order of matmuls. These passes do not depend on
//! library kernels.
//!
//! | module | what |
//! |---|---|
//! | `adjust_matmul_order` | choose the cheaper order of a chain of two matmuls |
//! | `combine_parallel_matmul` | merge matmuls that share their left operand |
//! | `einsum_to_matmul` | rewrite einsums of two operands to matmuls |
//! | `expand_matmul_of_sum` | distribute a matmul over a sum |
//! | `fold_scale_axis` | fold per-channel scales and offsets into convolutions |
//! | `reorder_permute_dims_after_concat` | concatenate before transposing |
//! | `reorder_take_after_matmul` | gather columns after the matmul instead of before |

pub mod adjust_matmul_order;
pub mod combine_parallel_matmul;
pub mod einsum_to_matmul;
pub mod expand_matmul_of_sum;
pub mod fold_scale_axis;
pub mod reorder_permute_dims_after_concat;
pub mod reorder_take_after_matmul;
