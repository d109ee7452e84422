//! Bring your own code generator: what the passes that hand parts of a graph to others share.
//!
//! | file | owns |
//! |---|---|
//! | [`table`] | named patterns of backends |
//! | [`registry`] | code generators by the name of their backend |
//! | [`members`] | the bindings that a match computes with |
//! | [`outline`] | bindings as a function of their own |
//! | [`nest`] | composite functions inside the functions that code generators get |
//! | [`gemm`] | the backend `gemm`: products by the library, bias and activation in its epilogue |
//!
//! [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern) makes *composite* functions of what matches a backend's patterns
//! (attribute `Composite`, such as `gemm.matmul_bias`), [`MergeCompositeFunctions`](crate::offload::merge_composite_functions)
//! joins neighbours of one backend into functions with the attribute `Codegen`, and
//! [`RunCodegen`](crate::offload::run_codegen) lets the backend's code generator take those.

pub mod gemm;
pub mod members;
pub mod nest;
pub mod outline;
pub mod registry;
pub mod table;

/// The backend of a pattern: what stands before the first dot of its name.
pub fn backend_of(pattern: &str) -> &str {
    pattern.split('.').next().unwrap_or(pattern)
}
