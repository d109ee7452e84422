//! Passes that replace operators by calls of library kernels or of external code generators, and passes that prepare operators
//! for them.
//!
//! | module | what |
//! |---|---|
//! | `activations` | matchers for activations of several operators |
//! | `byoc` | pattern tables and code generators of external backends |
//! | `channels_last` | rewrite the layout of convolutions to channels last |
//! | `dequantized` | matchers for dequantized operands |
//! | `epilogue` | matchers for the activation and the readers of a result |
//! | `fuse_attention` | fuse attention into one kernel call |
//! | `fuse_ops_by_pattern` | outline matches of backend patterns as functions |
//! | `integer_sums` | matchers for what follows an integer product: scales, bias, activation, requantization |
//! | `merge_composite_functions` | merge adjacent functions of one backend |
//! | `multiply_quantized` | rewrite products of dequantized operands as integer products |
//! | `pack_constants` | pack constant right operands of matmuls |
//! | `pack_convolutions` | offload float32 convolutions |
//! | `pack_integer_convolutions` | offload int8 convolutions |
//! | `pack_integers` | offload int8 matmuls |
//! | `pack_recurrent` | offload recurrent layers |
//! | `pack_stored` | offload matmuls with constant quantized weights |
//! | `run_codegen` | run external code generators |
//! | `widen_products` | compute products of 16-bit floats in float32 |

pub(crate) mod activations;
pub mod byoc;
pub mod channels_last;
pub(crate) mod dequantized;
pub(crate) mod epilogue;
pub mod fuse_attention;
pub mod fuse_ops_by_pattern;
pub(crate) mod integer_sums;
pub mod merge_composite_functions;
pub mod multiply_quantized;
pub mod pack_constants;
pub mod pack_convolutions;
pub mod pack_integer_convolutions;
pub mod pack_integers;
pub mod pack_recurrent;
pub mod pack_stored;
pub mod run_codegen;
pub mod widen_products;
