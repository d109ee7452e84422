//! Passes that replace operators by calls of library kernels or of external code generators, and passes that prepare operators for
//! this.
//!
//! | module | contents |
//! |---|---|
//! | `composed_activations` | recognizes activations that are written as one or more operators |
//! | `byoc` | pattern tables and code generators of external backends |
//! | `channels_last` | rewrite the layout of convolutions to channels last |
//! | `dequantized` | matchers for dequantized operands |
//! | `epilogue_activations` | the activations that kernels apply, and the readers of variables |
//! | `fuse_ops_by_pattern` | outline matches of backend patterns as functions |
//! | `int8_epilogue` | matchers for the epilogue of an int8 matmul or convolution: scales, bias, activation, requantization |
//! | `kernel_attributes` | set attributes of kernel calls in graph functions and in loop functions |
//! | `merge_composite_functions` | merge adjacent functions of one backend |
//! | `offload_kernels` | replace operators by kernel calls, according to offload rules |
//! | `offload_rule` | the interface of offload rules |
//! | `rules` | the offload rules, and the table of all rules |
//! | `run_codegen` | run external code generators |
//! | `weight_packing_functions` | loop functions that pack non-constant weights |

pub mod byoc;
pub mod channels_last;
pub(crate) mod composed_activations;
pub(crate) mod dequantized;
pub(crate) mod epilogue_activations;
pub mod fuse_ops_by_pattern;
pub(crate) mod int8_epilogue;
pub(crate) mod kernel_attributes;
pub mod merge_composite_functions;
pub mod offload_kernels;
pub mod offload_rule;
pub mod rules;
pub mod run_codegen;
pub(crate) mod weight_packing_functions;
