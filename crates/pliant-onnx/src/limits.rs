//! [`Limits`]: how much a file may ask for before it is refused.

use std::time::Duration;

/// Bounds on what an import takes on. The defaults let every model through that fits a machine; a service that takes
/// files from strangers sets its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the model file, external data not counted. A protobuf message holds at most 2 GiB.
    pub file_bytes: u64,
    /// Bytes of what the file's messages take once they are decoded, weights not counted: they stay in the mapping.
    pub decoded_bytes: u64,
    /// Bytes of one tensor.
    pub tensor_bytes: u64,
    /// Dims of one tensor. Arrays of NumPy have 64 at most.
    pub rank: usize,
    /// Nodes of all graphs together, functions written out.
    pub nodes: usize,
    /// Graphs inside graphs, and functions inside functions.
    pub depth: usize,
    /// How long an import may take. It is looked at between nodes.
    pub time: Option<Duration>,
    /// Elements of a shape computation that is followed symbol by symbol; longer ones are computed at run time.
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
