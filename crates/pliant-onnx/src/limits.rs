//! [`Limits`]: how much a file may ask for before it is refused.

/// Bounds on what an import takes on. The defaults let every model through that fits a machine; a service that takes
/// files from strangers sets its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the model file, external data not counted. A protobuf message holds at most 2 GiB.
    pub file_bytes: u64,
    /// Bytes of one tensor.
    pub tensor_bytes: u64,
    /// Nodes of all graphs together, functions written out.
    pub nodes: usize,
    /// Graphs inside graphs, and functions inside functions.
    pub depth: usize,
    /// Elements of a shape computation that is followed symbol by symbol; longer ones are computed at run time.
    pub shape_elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: i32::MAX as u64,
            tensor_bytes: 1 << 40,
            nodes: 1_000_000,
            depth: 32,
            shape_elements: 64,
        }
    }
}
