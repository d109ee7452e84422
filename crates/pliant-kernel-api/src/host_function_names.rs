//! The names of the host functions that compiled programs may call besides library kernels.
//!
//! `pliant-runtime` implements and registers them, except [`NODE`], which compiles at run time and therefore belongs to the
//! crate `pliant`. Imported ONNX models call the functions on sequences and optionals, whose length or presence may be
//! non-constant. A dynamic sequence is a tuple. A chain is the linked list of values that the iterations of a loop collect.
//! Appending to it does not copy the existing items.

/// The common prefix of the names of the matmul functions, `pliant.gemm[.t][.bias][.activation]`, which programs of the offload
/// backend `gemm` call. `.t` transposes the right operand, `.bias` adds a bias, and the last part names an activation.
pub const GEMM: &str = "pliant.gemm";
/// The activations that the matmul functions can apply, each as (operator, suffix of the function's name).
pub const GEMM_ACTIVATIONS: &[(&str, &str)] = &[
    ("relax.nn.relu", "relu"),
    ("relax.nn.gelu", "gelu"),
    ("relax.nn.gelu_tanh", "gelu_tanh"),
    ("relax.nn.silu", "silu"),
    ("relax.sigmoid", "sigmoid"),
    ("relax.tanh", "tanh"),
];

/// The function that returns a sequence of its arguments. Arguments: `items...`.
pub const SEQUENCE: &str = "pliant.sequence";
/// The function that returns a sequence with an item inserted before a position, or at the end. Arguments:
/// `sequence, item, position or none`.
pub const SEQUENCE_INSERT: &str = "pliant.sequence.insert";
/// The function that returns a sequence without the item at a position, or without the last item. Arguments:
/// `sequence, position or none`.
pub const SEQUENCE_ERASE: &str = "pliant.sequence.erase";
/// The function that returns the item at a position of a sequence. Arguments: `sequence, position`.
pub const SEQUENCE_AT: &str = "pliant.sequence.at";
/// The function that returns the number of items of a sequence as an int64 scalar tensor. Arguments: `sequence`.
pub const SEQUENCE_LENGTH: &str = "pliant.sequence.length";
/// The function that concatenates the tensors in a sequence along an axis, or stacks them along a new axis. Arguments:
/// `sequence, axis, whether the axis is new`.
pub const SEQUENCE_CONCAT: &str = "pliant.sequence.concat";
/// The function that splits a tensor into a sequence. Arguments:
/// `tensor, lengths or none, axis, whether parts of length 1 keep the axis`.
pub const SEQUENCE_SPLIT: &str = "pliant.sequence.split";
/// The function that returns a bool scalar tensor, which is true if an optional has a value. Arguments: `value or none`.
pub const OPTIONAL_HAS: &str = "pliant.optional.has";
/// The function that returns the value of an optional, or an error if it has none. Arguments: `value or none`.
pub const OPTIONAL_GET: &str = "pliant.optional.get";
/// The function that appends an item to a chain (the linked list of values that the iterations of a loop collect). Arguments:
/// `chain or none, item, whether items must have equal types`.
pub const CHAIN_PUSH: &str = "pliant.chain.push";
/// The function that stacks all items of a chain (the linked list of values that the iterations of a loop collect) along a new
/// first axis. Arguments: `chain or none, shape of an item, element type`. The shape is only used if there are no items.
pub const CHAIN_STACK: &str = "pliant.chain.stack";
/// The function that converts a chain (the linked list of values that the iterations of a loop collect) to a sequence. Arguments:
/// `chain or none`.
pub const CHAIN_SEQUENCE: &str = "pliant.chain.sequence";
/// The function that computes the determinants of the matrices in the last two dims of a tensor. Arguments: `tensor`.
pub const DET: &str = "pliant.det";
/// The function that checks that the input `name` has the given type, such as `sequence(float32[2, ?])` or `optional(int64)`, and
/// returns its value. Arguments: `value, name, type`.
pub const INPUT: &str = "pliant.onnx.input";
/// The function that runs an ONNX node that is imported at run time, because its import needs the types of the operands. Returns
/// the results of the node. Arguments: `node, operands...`.
pub const NODE: &str = "pliant.onnx.node";

/// The names of all functions that imported ONNX models call, besides library kernels.
pub const ALL: &[&str] = &[
    SEQUENCE,
    SEQUENCE_INSERT,
    SEQUENCE_ERASE,
    SEQUENCE_AT,
    SEQUENCE_LENGTH,
    SEQUENCE_CONCAT,
    SEQUENCE_SPLIT,
    OPTIONAL_HAS,
    OPTIONAL_GET,
    CHAIN_PUSH,
    CHAIN_STACK,
    CHAIN_SEQUENCE,
    DET,
    INPUT,
    NODE,
];
