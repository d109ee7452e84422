//! The names of the host functions that imported programs call. They implement sequences and optionals, whose length or presence
//! may be non-constant.
//!
//! The crate `pliant` implements and registers these functions (`pliant/src/host`). A dynamic sequence is a tuple. A chain is the
//! list of values that the iterations of a loop collect; appending to it does not copy the existing items.

/// `(items...)`: creates a sequence.
pub const SEQUENCE: &str = "pliant.sequence";
/// `(sequence, item, position or none)`: inserts an item before the position, or at the end.
pub const SEQUENCE_INSERT: &str = "pliant.sequence.insert";
/// `(sequence, position or none)`: removes the item at the position, or the last one.
pub const SEQUENCE_ERASE: &str = "pliant.sequence.erase";
/// `(sequence, position)`: returns the item at the position.
pub const SEQUENCE_AT: &str = "pliant.sequence.at";
/// `(sequence)`: returns the number of items as an int64 scalar tensor.
pub const SEQUENCE_LENGTH: &str = "pliant.sequence.length";
/// `(sequence, axis, whether the axis is new)`: concatenates or stacks all items.
pub const SEQUENCE_CONCAT: &str = "pliant.sequence.concat";
/// `(tensor, lengths or none, axis, whether parts of length 1 keep the axis)`: splits a tensor into a sequence.
pub const SEQUENCE_SPLIT: &str = "pliant.sequence.split";
/// `(value or none)`: returns a bool scalar tensor that is true if the optional has a value.
pub const OPTIONAL_HAS: &str = "pliant.optional.has";
/// `(value or none)`: returns the value of the optional. It is an error if there is none.
pub const OPTIONAL_GET: &str = "pliant.optional.get";
/// `(chain or none, item, whether items must have equal types)`: appends an item to the chain.
pub const CHAIN_PUSH: &str = "pliant.chain.push";
/// `(chain or none, shape of an item, element type)`: stacks all items along a new first axis. The shape is only used if there are
/// no items.
pub const CHAIN_STACK: &str = "pliant.chain.stack";
/// `(chain or none)`: converts the chain to a sequence.
pub const CHAIN_SEQUENCE: &str = "pliant.chain.sequence";
/// `(tensor, element type)`: reinterprets the bits of the elements as another type of the same width.
pub const BITCAST: &str = "pliant.bitcast";
/// `(tensor)`: computes the determinants of the matrices in the last two dims of the tensor.
pub const DET: &str = "pliant.det";
/// `(value, name, type)`: checks that the input `name` has the given type, such as `sequence(float32[2, ?])` or `optional(int64)`,
/// and returns it.
pub const INPUT: &str = "pliant.onnx.input";
/// `(node, operands...)`: imports a node for the types of the operands, runs the node and returns its results
/// ([`crate::DeferredNode`]).
pub const NODE: &str = "pliant.onnx.node";

/// The names of all host functions.
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
    BITCAST,
    DET,
    INPUT,
    NODE,
];
