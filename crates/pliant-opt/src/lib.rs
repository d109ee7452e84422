//! The graph passes of Pliant, one file each.
//!
//! [`passes`] is the table of all passes, and [`pipelines`] names sequences of them. Each pass
//! file opens with what the pass does, an example before and after, what it requires,
//! keeps and never does. Every pass runs alone, leaves alone what is lowered already, and what it
//! makes can be printed,
//! parsed and built.

pub mod adjust_matmul_order;
pub mod analysis;
pub mod annotate_tir_op_pattern;
pub mod attach_global_symbol;
mod bind_constants;
pub mod bind_params;
pub mod bind_symbolic_vars;
pub mod bundle_model_params;
pub mod byoc;
mod call_sites;
pub mod call_tir_rewrite;
pub mod canonicalize_bindings;
pub mod channels_last;
pub mod combine_parallel_matmul;
pub mod convert_to_dataflow;
pub mod copy_aliased_results;
pub mod copy_written_views;
pub mod dataflow_use_inplace_calls;
pub mod dead_code_elimination;
mod dequantized;
pub mod einsum_to_matmul;
pub mod eliminate_common_subexpr;
pub mod eliminate_unused;
mod epilogue;
pub mod expand_matmul_of_sum;
pub mod expand_tuple_arguments;
pub mod fold_constant;
pub mod fuse_attention;
pub mod fuse_ops;
pub mod fuse_ops_by_pattern;
pub mod fuse_tir;
pub mod fuse_transpose_matmul;
mod infer_again;
pub mod inline_private_functions;
mod integer_sums;
mod kernels;
pub mod kill_after_last_use;
pub mod lambda_lift;
pub mod legalize_ops;
pub mod lift_transform_params;
pub mod liveness;
pub mod loop_closures;
pub mod lower_alloc_tensor;
pub mod lower_runtime_builtin;
pub mod match_unknown_shapes;
pub mod merge_composite_functions;
pub mod multiply_quantized;
pub mod names;
pub mod normalize;
pub mod normalize_global_var;
pub mod pack_constants;
pub mod pack_convolutions;
pub mod pack_integer_convolutions;
pub mod pack_integers;
pub mod pack_recurrent;
pub mod pack_stored;
pub mod passes;
pub mod pipelines;
pub mod plan_memory;
pub mod products;
mod purity;
pub mod remove_purity_checking;
pub mod remove_redundant_reshape;
pub mod remove_unused_outputs;
pub mod remove_unused_parameters;
pub mod reorder_permute_dims_after_concat;
pub mod reorder_take_after_matmul;
pub mod rewrite_dataflow_reshape;
pub mod run_codegen;
pub mod tail;
pub mod to_non_dataflow;
pub mod topological_sort;
pub mod update_param_struct_info;
pub mod vm_shape_lower;
pub mod widen_products;

pub use passes::{PASSES, PassInfo};
pub use pipelines::pipeline;
