//! Estimates the memory that a file needs when decoded, before it is decoded.
//!
//! Two bytes of a file can be an empty message, which takes hundreds of bytes when decoded, and
//! nested messages use native stack. The scan traverses the wire format without allocating and adds
//! up the decoded sizes.

use std::mem::size_of;

use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TypeProto, ValueInfoProto, tensor_shape_proto,
};

/// Maximum nesting of messages; the decoder has the same limit.
const MAX_DEPTH: usize = 100;

/// The kinds of messages and fields in a model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    ValueInfo,
    Type,
    /// A type that contains another one: a sequence, an optional, a map.
    Holder,
    /// A shape, or a type that contains one.
    Shape,
    Function,
    Entry,
    /// A message that is rare in models. Its contents are estimated by their length.
    Other,
    Text,
    /// Bytes that are not copied.
    Bytes,
    /// Packed integers of 1 to 10 bytes each.
    Varints,
    /// Packed fixed-size numbers.
    Fixed,
}

impl Kind {
    /// The kind of a length-delimited field of this message.
    fn field(self, number: u64) -> Kind {
        match (self, number) {
            (Kind::Model, 7) => Kind::Graph,
            (Kind::Model, 25) => Kind::Function,
            (Kind::Model, 8 | 20 | 26) => Kind::Other,
            (Kind::Graph, 1) | (Kind::Function, 7) => Kind::Node,
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) | (Kind::SparseTensor, 1 | 2) => {
                Kind::Tensor
            }
            (Kind::Graph, 15) | (Kind::Attribute, 22 | 23) => Kind::SparseTensor,
            (Kind::Graph, 11..=13) | (Kind::Function, 12) => Kind::ValueInfo,
            (Kind::Graph, 14) | (Kind::Node, 10) | (Kind::Function, 9) => Kind::Other,
            (Kind::Node, 5) | (Kind::Function, 11) => Kind::Attribute,
            (Kind::Attribute, 6 | 11) => Kind::Graph,
            (Kind::Attribute, 14 | 15) | (Kind::ValueInfo, 2) => Kind::Type,
            (Kind::Attribute, 4 | 9) | (Kind::Tensor, 6 | 9) => Kind::Bytes,
            (Kind::Attribute, 7) | (Kind::Tensor, 4 | 10) => Kind::Fixed,
            (Kind::Attribute, 8) | (Kind::Tensor, 1 | 5 | 7 | 11) | (Kind::SparseTensor, 3) => {
                Kind::Varints
            }
            (Kind::Model | Kind::Graph, 14 | 16) | (Kind::Node, 9) | (Kind::ValueInfo, 4) => {
                Kind::Entry
            }
            (Kind::Tensor, 13 | 16) | (Kind::Function, 14) => Kind::Entry,
            (Kind::Type, 1 | 8) | (Kind::Shape, 1 | 2) => Kind::Shape,
            (Kind::Type, 4 | 5 | 9) => Kind::Holder,
            (Kind::Holder, 1 | 2) => Kind::Type,
            _ => Kind::Text,
        }
    }

    /// The decoded size of a message itself, as an item of a list that has grown by doubling.
    fn cost(self, body: &[u8]) -> u64 {
        let len = body.len() as u64;
        let own = |size: usize| 2 * size as u64;
        match self {
            Kind::Model => own(size_of::<ModelProto>()),
            Kind::Graph => own(size_of::<GraphProto>()),
            Kind::Node => own(size_of::<NodeProto>()),
            Kind::Attribute => own(size_of::<AttributeProto>()),
            Kind::Tensor => own(size_of::<TensorProto>()),
            Kind::SparseTensor => own(size_of::<SparseTensorProto>()),
            Kind::ValueInfo => own(size_of::<ValueInfoProto>()),
            Kind::Type | Kind::Holder => own(size_of::<TypeProto>()),
            Kind::Shape => own(size_of::<tensor_shape_proto::Dimension>()),
            Kind::Function => own(size_of::<FunctionProto>()),
            Kind::Entry => own(size_of::<StringStringEntryProto>()),
            Kind::Other => own(128) + 32 * len,
            Kind::Text => own(size_of::<String>()) + 16 + len,
            Kind::Bytes => own(size_of::<bytes::Bytes>()),
            Kind::Varints => own(8) + 16 * body.iter().filter(|b| **b < 0x80).count() as u64,
            Kind::Fixed => own(8) + 2 * len,
        }
    }

    fn is_message(self) -> bool {
        !matches!(self, Kind::Other | Kind::Text | Kind::Bytes | Kind::Varints | Kind::Fixed)
    }
}

/// The decoded size of a file in bytes, without the file itself. Counting stops above `most`.
///
/// # Errors
/// If messages are nested too deeply. Invalid messages are reported by the decoder.
pub(crate) fn decoded_size(file: &[u8], most: u64) -> Result<u64, String> {
    let mut scan = Scan { total: Kind::Model.cost(file), most };
    scan.message(file, Kind::Model, 0)?;
    Ok(scan.total)
}

struct Scan {
    total: u64,
    most: u64,
}

impl Scan {
    fn message(&mut self, mut rest: &[u8], kind: Kind, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("messages are nested more than {MAX_DEPTH} deep"));
        }
        while self.total <= self.most {
            let Some(key) = varint(&mut rest) else { return Ok(()) };
            let skipped = match key & 7 {
                // A list item takes 8 bytes, and twice that while the list grows.
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
                // Groups predate ONNX; the decoder skips them.
                _ => None,
            };
            if skipped.is_none() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn fixed(&mut self, rest: &mut &[u8], bytes: u64) -> Option<()> {
        self.total = self.total.saturating_add(2 * bytes);
        take(rest, bytes).map(|_| ())
    }
}

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
    fn small_files_of_many_messages_are_found_out() {
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
    fn weights_cost_nothing_and_nesting_ends() {
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
        let told = decoded_size(&model.encode_to_vec(), u64::MAX).unwrap_err();
        assert!(told.contains("nested more than 100 deep"), "{told}");
    }

    #[test]
    fn any_bytes_are_scanned() {
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
