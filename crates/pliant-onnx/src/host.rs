//! The functions of the host that imported programs call: values whose length or presence only a run knows.
//!
//! The facade registers them (`pliant/src/host`). A sequence of the run is a tuple; a chain is what the turns of a loop
//! have collected so far, to which a turn adds without copying what is there.

/// `(items...)`: a sequence.
pub const SEQUENCE: &str = "pliant.sequence";
/// `(sequence, item, place or none)`: with the item before that place, or at the end.
pub const SEQUENCE_INSERT: &str = "pliant.sequence.insert";
/// `(sequence, place or none)`: without that item, or the last.
pub const SEQUENCE_ERASE: &str = "pliant.sequence.erase";
/// `(sequence, place)`: an item.
pub const SEQUENCE_AT: &str = "pliant.sequence.at";
/// `(sequence)`: how many items there are, as an int64 scalar tensor.
pub const SEQUENCE_LENGTH: &str = "pliant.sequence.length";
/// `(sequence, axis, whether the axis is new)`: all items as one tensor.
pub const SEQUENCE_CONCAT: &str = "pliant.sequence.concat";
/// `(tensor, lengths or none, axis, whether parts of length 1 keep the axis)`: parts of a tensor.
pub const SEQUENCE_SPLIT: &str = "pliant.sequence.split";
/// `(value or none)`: whether there is one, as a bool scalar tensor.
pub const OPTIONAL_HAS: &str = "pliant.optional.has";
/// `(value or none)`: the value; an error where there is none.
pub const OPTIONAL_GET: &str = "pliant.optional.get";
/// `(chain or none, item, whether items must be alike)`: the chain with one more item.
pub const CHAIN_PUSH: &str = "pliant.chain.push";
/// `(chain or none, shape of an item, element type)`: all items along a new first axis. The shape is that of no items.
pub const CHAIN_STACK: &str = "pliant.chain.stack";
/// `(chain or none)`: all items as a sequence.
pub const CHAIN_SEQUENCE: &str = "pliant.chain.sequence";
/// `(tensor, element type)`: the same bits as elements of another type of the same width.
pub const BITCAST: &str = "pliant.bitcast";
/// `(tensor)`: the determinants of its matrices.
pub const DET: &str = "pliant.det";
/// `(value, name, kind)`: the value of an input, which is checked to be of that kind: `sequence(float32[2, ?])`,
/// `optional(int64)`.
pub const INPUT: &str = "pliant.onnx.input";
/// `(node, operands...)`: the results of a node that is imported for operands of the ranks that they have
/// ([`crate::NodeAtRun`]).
pub const NODE: &str = "pliant.onnx.node";

/// All of them.
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
