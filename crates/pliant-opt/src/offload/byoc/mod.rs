//! Bring your own codegen (BYOC): code that the passes for external code generators share.
//!
//! | module | contents |
//! |---|---|
//! | [`backend_patterns`] | named patterns of backends |
//! | [`code_generator_registry`] | code generators by backend name |
//! | [`matched_bindings`] | the bindings of a pattern match, if one call can replace them |
//! | [`outline_bindings`] | outlines bindings to a function |
//! | [`nest_composite_functions`] | nests composite functions in regions as local functions |
//! | [`gemm_backend`] | the backend `gemm`: matmuls by the kernel library, with bias and activation in the epilogue |
//!
//! [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern) outlines matches of a backend's patterns as *composite* functions
//! (attribute `Composite`, such as `gemm.matmul_bias`). [`MergeCompositeFunctions`](crate::offload::merge_composite_functions)
//! merges adjacent composite functions of one backend into regions, which are functions with the attribute `Codegen`.
//! [`RunCodegen`](crate::offload::run_codegen) passes the regions to the backend's code generator.

pub mod backend_patterns;
pub mod code_generator_registry;
pub mod gemm_backend;
pub mod matched_bindings;
pub mod nest_composite_functions;
pub mod outline_bindings;

/// Returns the name of a pattern's backend: the part of the pattern's name before the first dot.
pub fn backend_of(pattern: &str) -> &str {
    pattern.split('.').next().unwrap_or(pattern)
}
