//! [`Limits`]: resource limits for imported files.

use std::time::Duration;

/// Resource limits of an import. The defaults accept every model that fits in the memory of the
/// machine. A service that imports untrusted files should set lower limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the model file in bytes, without external data. A protobuf message has at most 2 GiB.
    pub file_bytes: u64,
    /// Maximum size of the decoded messages in bytes. Weights do not count, because they are borrowed from the mapped file.
    pub decoded_bytes: u64,
    /// Maximum size of a tensor in bytes.
    pub tensor_bytes: u64,
    /// Maximum rank of a tensor. NumPy arrays have at most 64 dims.
    pub rank: usize,
    /// Maximum number of nodes of all graphs together, with functions inlined.
    pub nodes: usize,
    /// Maximum nesting depth of subgraphs and of function calls.
    pub depth: usize,
    /// Maximum duration of an import. It is checked between nodes.
    pub time: Option<Duration>,
    /// Maximum number of elements of a symbolic shape computation. Larger ones are computed at run time.
    pub shape_elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: i32::MAX as u64,
            decoded_bytes: 4 << 30,
            tensor_bytes: 1 << 40,
            rank: 64,
            nodes: 1_000_000,
            depth: 32,
            time: None,
            shape_elements: 64,
        }
    }
}
