//! [`Limits`]: resource limits for imported files.

use std::time::Duration;

/// Resource limits of an import. The defaults accept every model that fits the host; a service that
/// accepts untrusted files should set its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the model file in bytes, without external data. A protobuf message has at most 2
    /// GiB.
    pub file_bytes: u64,
    /// Size of the decoded messages in bytes, without weights, which remain in the mapping.
    pub decoded_bytes: u64,
    /// Size of a tensor in bytes.
    pub tensor_bytes: u64,
    /// Rank of a tensor. NumPy arrays have at most 64 dims.
    pub rank: usize,
    /// Number of nodes of all graphs together, with functions inlined.
    pub nodes: usize,
    /// Nesting depth of graphs and of function calls.
    pub depth: usize,
    /// Duration of an import, checked between nodes.
    pub time: Option<Duration>,
    /// Number of elements of a symbolic shape computation. Longer ones are computed at run time.
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
