//! Estimates, before a model file is decoded, how much memory the decoded messages will take.
//!
//! A hostile file can be small and still need much memory: two bytes encode an empty message, which takes hundreds of bytes once
//! decoded. Nested messages also use native stack. The scan reads the protobuf wire format without allocating and adds up the
//! decoded sizes.

use std::mem::size_of;

use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TypeProto, ValueInfoProto, tensor_shape_proto,
};

/// Maximum nesting depth of messages. The decoder has the same limit.
const MAX_DEPTH: usize = 100;

/// The kinds of protobuf messages and length-delimited fields that a model file contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    /// A message for an ONNX type that contains another type: a sequence, an optional, or a map.
    Holder,
    /// A message for a tensor shape, or for an ONNX type that contains a shape.
    Shape,
    Function,
    Entry,
    /// A message that is rare in models. Its decoded size is estimated from its encoded length.
    Other,
    Text,
    /// A field of bytes, such as the weights of a tensor, that the decoder borrows from the file and does not copy.
    Bytes,
    /// A packed list of integers of 1 to 10 encoded bytes each.
    Varints,
    /// A packed list of numbers that all have the same encoded size, such as floats.
    Fixed,
}

impl FieldKind {
    /// The kind of the length-delimited field with the given number in a message of this kind.
    fn field(self, number: u64) -> FieldKind {
        match (self, number) {
            (FieldKind::Model, 7) => FieldKind::Graph,
            (FieldKind::Model, 25) => FieldKind::Function,
            (FieldKind::Model, 8 | 20 | 26) => FieldKind::Other,
            (FieldKind::Graph, 1) | (FieldKind::Function, 7) => FieldKind::Node,
            (FieldKind::Graph, 5)
            | (FieldKind::Attribute, 5 | 10)
            | (FieldKind::SparseTensor, 1 | 2) => FieldKind::Tensor,
            (FieldKind::Graph, 15) | (FieldKind::Attribute, 22 | 23) => FieldKind::SparseTensor,
            (FieldKind::Graph, 11..=13) | (FieldKind::Function, 12) => FieldKind::ValueInfo,
            (FieldKind::Graph, 14) | (FieldKind::Node, 10) | (FieldKind::Function, 9) => {
                FieldKind::Other
            }
            (FieldKind::Node, 5) | (FieldKind::Function, 11) => FieldKind::Attribute,
            (FieldKind::Attribute, 6 | 11) => FieldKind::Graph,
            (FieldKind::Attribute, 14 | 15) | (FieldKind::ValueInfo, 2) => FieldKind::Type,
            (FieldKind::Attribute, 4 | 9) | (FieldKind::Tensor, 6 | 9) => FieldKind::Bytes,
            (FieldKind::Attribute, 7) | (FieldKind::Tensor, 4 | 10) => FieldKind::Fixed,
            (FieldKind::Attribute, 8)
            | (FieldKind::Tensor, 1 | 5 | 7 | 11)
            | (FieldKind::SparseTensor, 3) => FieldKind::Varints,
            (FieldKind::Model | FieldKind::Graph, 14 | 16)
            | (FieldKind::Node, 9)
            | (FieldKind::ValueInfo, 4) => FieldKind::Entry,
            (FieldKind::Tensor, 13 | 16) | (FieldKind::Function, 14) => FieldKind::Entry,
            (FieldKind::Type, 1 | 8) | (FieldKind::Shape, 1 | 2) => FieldKind::Shape,
            (FieldKind::Type, 4 | 5 | 9) => FieldKind::Holder,
            (FieldKind::Holder, 1 | 2) => FieldKind::Type,
            _ => FieldKind::Text,
        }
    }

    /// The decoded size in bytes of a message or field with the encoded content `body`, including the list slot that holds it.
    /// Lists double when they grow, so a slot counts twice.
    fn cost(self, body: &[u8]) -> u64 {
        let len = body.len() as u64;
        let list_item = |size: usize| 2 * size as u64;
        match self {
            FieldKind::Model => list_item(size_of::<ModelProto>()),
            FieldKind::Graph => list_item(size_of::<GraphProto>()),
            FieldKind::Node => list_item(size_of::<NodeProto>()),
            FieldKind::Attribute => list_item(size_of::<AttributeProto>()),
            FieldKind::Tensor => list_item(size_of::<TensorProto>()),
            FieldKind::SparseTensor => list_item(size_of::<SparseTensorProto>()),
            FieldKind::ValueInfo => list_item(size_of::<ValueInfoProto>()),
            FieldKind::Type | FieldKind::Holder => list_item(size_of::<TypeProto>()),
            FieldKind::Shape => list_item(size_of::<tensor_shape_proto::Dimension>()),
            FieldKind::Function => list_item(size_of::<FunctionProto>()),
            FieldKind::Entry => list_item(size_of::<StringStringEntryProto>()),
            FieldKind::Other => list_item(128) + 32 * len,
            FieldKind::Text => list_item(size_of::<String>()) + 16 + len,
            FieldKind::Bytes => list_item(size_of::<bytes::Bytes>()),
            FieldKind::Varints => {
                list_item(8) + 16 * body.iter().filter(|b| **b < 0x80).count() as u64
            }
            FieldKind::Fixed => list_item(8) + 2 * len,
        }
    }

    fn is_message(self) -> bool {
        !matches!(
            self,
            FieldKind::Other
                | FieldKind::Text
                | FieldKind::Bytes
                | FieldKind::Varints
                | FieldKind::Fixed
        )
    }
}

/// Estimates the decoded size of a file in bytes, not counting the bytes of the file itself. Counting stops as soon as the size
/// exceeds `max`.
///
/// # Errors
/// If messages are nested too deeply. Malformed messages are not an error here: the decoder reports them.
pub(crate) fn decoded_size(file: &[u8], max: u64) -> Result<u64, String> {
    let mut scan = DecodedSizeScan { total: FieldKind::Model.cost(file), max };
    scan.message(file, FieldKind::Model, 0)?;
    Ok(scan.total)
}

/// The state of the scan that adds up decoded sizes.
struct DecodedSizeScan {
    total: u64,
    max: u64,
}

impl DecodedSizeScan {
    /// Adds the decoded sizes of the fields of a message, and of the messages nested in it, to the total. `rest` is the
    /// encoded message.
    fn message(&mut self, mut rest: &[u8], kind: FieldKind, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "the protobuf messages of the model are nested more than {MAX_DEPTH} deep"
            ));
        }
        while self.total <= self.max {
            let Some(key) = varint(&mut rest) else { return Ok(()) };
            let skipped = match key & 7 {
                // A list item takes 8 bytes. Lists double when they grow, so it counts twice.
                0 => {
                    self.total = self.total.saturating_add(16);
                    varint(&mut rest).map(|_| ())
                }
                1 => self.fixed(&mut rest, 8),
                5 => self.fixed(&mut rest, 4),
                2 => {
                    let Some(body) = varint(&mut rest).and_then(|n| take(&mut rest, n)) else {
                        return Ok(());
                    };
                    let field = kind.field(key >> 3);
                    self.total = self.total.saturating_add(field.cost(body));
                    if field.is_message() {
                        self.message(body, field, depth + 1)?;
                    }
                    Some(())
                }
                // Groups are an obsolete protobuf feature that ONNX does not use; the decoder skips them.
                _ => None,
            };
            if skipped.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Skips an item of a list field whose encoding has a fixed size (`bytes`), and adds the decoded size of the item to the total.
    fn fixed(&mut self, rest: &mut &[u8], bytes: u64) -> Option<()> {
        self.total = self.total.saturating_add(2 * bytes);
        take(rest, bytes).map(|_| ())
    }
}

/// Reads a base-128 varint and advances past it; `None` if it is malformed.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Splits `len` bytes off the front of `rest`; `None` if there are fewer.
fn take<'a>(rest: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = tail;
    Some(head)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn estimates_the_memory_of_many_small_messages() {
        // 100,000 nodes of 2 bytes each in a graph.
        let nodes: Vec<u8> = [0x0a, 0x00].repeat(100_000);
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(nodes.len() as u64, &mut file);
        file.extend(nodes);
        let decoded = ModelProto::decode(file.as_slice()).unwrap();
        assert_eq!(decoded.graph.unwrap().node.len(), 100_000);
        let size = decoded_size(&file, u64::MAX).unwrap();
        assert!(size > 100_000 * size_of::<NodeProto>() as u64, "{size}");
        assert!(decoded_size(&file, 1_000_000).unwrap() < 1_100_000, "the scan goes on");
    }

    #[test]
    fn ignores_weights_and_limits_nesting() {
        let raw = TensorProto { raw_data: Some(vec![0; 1 << 20].into()), ..Default::default() };
        let graph = GraphProto { initializer: vec![raw], ..Default::default() };
        let model = ModelProto { graph: Some(graph), ..Default::default() };
        assert!(decoded_size(&model.encode_to_vec(), u64::MAX).unwrap() < 10_000);
        let mut graph = GraphProto::default();
        for _ in 0..60 {
            let attr = AttributeProto { g: Some(graph), ..Default::default() };
            let node = NodeProto { attribute: vec![attr], ..Default::default() };
            graph = GraphProto { node: vec![node], ..Default::default() };
        }
        let model = ModelProto { graph: Some(graph), ..Default::default() };
        let error = decoded_size(&model.encode_to_vec(), u64::MAX).unwrap_err();
        assert!(error.contains("nested more than 100 deep"), "{error}");
    }

    #[test]
    fn scans_arbitrary_bytes_without_a_panic() {
        for seed in 0..2000u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let bytes: Vec<u8> = (0..seed % 97)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect();
            let _ = decoded_size(&bytes, 1 << 20);
        }
    }
}
