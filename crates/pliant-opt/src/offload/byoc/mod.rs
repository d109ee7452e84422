//! Bring your own codegen (BYOC): code that the passes for external code generators share.
//!
//! | module | contents |
//! |---|---|
//! | [`table`] | named patterns of backends |
//! | [`registry`] | code generators by backend name |
//! | [`members`] | the bindings of a pattern match |
//! | [`outline`] | outlines bindings to a function |
//! | [`nest`] | nests composite functions in regions as local functions |
//! | [`gemm`] | the backend `gemm`: matmuls by the kernel library, with bias and activation in the epilogue |
//!
//! [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern) outlines matches of a backend's patterns as *composite* functions
//! (attribute `Composite`, such as `gemm.matmul_bias`). [`MergeCompositeFunctions`](crate::offload::merge_composite_functions)
//! merges adjacent ones of one backend into regions, functions with the attribute `Codegen`.
//! [`RunCodegen`](crate::offload::run_codegen) passes the regions to the backend's code generator.

pub mod gemm;
pub mod members;
pub mod nest;
pub mod outline;
pub mod registry;
pub mod table;

/// The backend of a pattern: the part of the pattern's name before the first dot.
pub fn backend_of(pattern: &str) -> &str {
    pattern.split('.').next().unwrap_or(pattern)
}
