//! [`Limits`]: resource limits for imported files.

use std::time::Duration;

/// Resource limits of an import. The defaults accept every model that fits in the memory of the
/// machine. A service that imports files that may be hostile should set lower limits.
///
/// # Examples
/// ```
/// use pliant_onnx::{ImportOptions, Limits, Model, import};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let limits = Limits { nodes: 0, ..Limits::default() };
/// let model = Model::from_bytes(RELU, limits)?;
/// let error = import(&model, &ImportOptions::default()).expect_err("one node is too many");
/// assert!(error.to_string().contains("1 node"));
/// # Ok(())
/// # }
/// ```
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
    /// Maximum number of elements of a symbolic shape computation. Computations with more elements are executed at run time.
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
