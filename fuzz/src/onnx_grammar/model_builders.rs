//! Builds parts of ONNX models: tensors, types, attributes, nodes.

use pliant::onnx::proto::attribute_proto::AttributeType;
use pliant::onnx::proto::tensor_shape_proto::{Dimension, dimension};
use pliant::onnx::proto::type_proto::{Sequence, Tensor, Value as TypeValue};
use pliant::onnx::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};

/// Returns the ONNX element type number for a letter of the operator schemas.
pub fn elem_type_code(letter: u8) -> i32 {
    match letter {
        b'a'..=b'z' => i32::from(letter - b'a') + 1,
        _ => i32::from(letter.wrapping_sub(b'A')) + 27,
    }
}

/// Builds a tensor with these elements, cast to the element type. Missing elements repeat the first one, or are 1.
pub fn tensor(name: &str, letter: u8, dims: &[i64], elems: &[f64]) -> TensorProto {
    let count = dims.iter().product::<i64>().clamp(0, 1 << 16) as usize;
    let elem = |i: usize| elems.get(i).or(elems.first()).copied().unwrap_or(1.0);
    let elements = || (0..count).map(elem);
    let mut result = TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(elem_type_code(letter)),
        ..TensorProto::default()
    };
    let raw: Vec<u8> = match letter {
        b'a' => elements().flat_map(|v| (v as f32).to_le_bytes()).collect(),
        b'k' => elements().flat_map(f64::to_le_bytes).collect(),
        b'h' => {
            result.string_data = elements().map(|v| v.to_string().into_bytes().into()).collect();
            return result;
        }
        b'n' => elements().flat_map(|v| [v as f32, 0.0]).flat_map(f32::to_le_bytes).collect(),
        b'o' => elements().flat_map(|v| [v, 0.0]).flat_map(f64::to_le_bytes).collect(),
        b'p' => elements()
            .flat_map(|v| ((v as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec())
            .collect(),
        b'j' => elements().flat_map(|v| float16_bits(v as f32).to_le_bytes()).collect(),
        b'i' => elements().map(|v| u8::from(v != 0.0)).collect(),
        b'b' => elements().map(|v| v as u8).collect(),
        b'c' => elements().map(|v| v as i8 as u8).collect(),
        b'd' => elements().flat_map(|v| (v as u16).to_le_bytes()).collect(),
        b'e' => elements().flat_map(|v| (v as i16).to_le_bytes()).collect(),
        b'f' => elements().flat_map(|v| (v as i32).to_le_bytes()).collect(),
        b'g' => elements().flat_map(|v| (v as i64).to_le_bytes()).collect(),
        b'l' => elements().flat_map(|v| (v as u32).to_le_bytes()).collect(),
        b'm' => elements().flat_map(|v| (v as u64).to_le_bytes()).collect(),
        // Types with two and with four elements per byte.
        b'u' | b'v' | b'w' => (0..count.div_ceil(2)).map(|i| elem(i) as i64 as u8).collect(),
        b'y' | b'z' => (0..count.div_ceil(4)).map(|i| elem(i) as i64 as u8).collect(),
        _ => elements().map(|v| v as i64 as u8).collect(),
    };
    result.raw_data = Some(raw.into());
    result
}

/// Rounds a value towards zero to float16 and returns its bits; subnormal numbers become 0.
fn float16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = (bits >> 23 & 0xff) as i32 - 112;
    match exponent {
        _ if value.is_nan() => sign | 0x7e00,
        31.. => sign | 0x7c00,
        1.. => sign | (exponent as u16) << 10 | (bits >> 13) as u16 & 0x3ff,
        _ => sign,
    }
}

/// One dim of a declared tensor type.
#[derive(Clone, Debug)]
pub enum Dim {
    /// A dim of constant size.
    Number(i64),
    /// A symbolic dim with this name.
    Name(String),
    /// A dim about which nothing is declared.
    Unspecified,
}

/// Builds the type of a tensor. Without dims, the rank is unspecified.
pub fn tensor_type(letter: u8, dims: Option<&[Dim]>) -> TypeProto {
    let dim = |d: &Dim| Dimension {
        value: match d {
            Dim::Number(n) => Some(dimension::Value::DimValue(*n)),
            Dim::Name(name) => Some(dimension::Value::DimParam(name.clone())),
            Dim::Unspecified => None,
        },
        ..Dimension::default()
    };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = Tensor { elem_type: Some(elem_type_code(letter)), shape };
    TypeProto { value: Some(TypeValue::TensorType(tensor)), ..TypeProto::default() }
}

/// Builds the type of a sequence of tensors.
pub fn sequence_type(letter: u8) -> TypeProto {
    let elem_type = Some(Box::new(tensor_type(letter, None)));
    let value = Some(TypeValue::SequenceType(Box::new(Sequence { elem_type })));
    TypeProto { value, ..TypeProto::default() }
}

/// Builds the declaration of a value, with its type if given.
pub fn info(name: &str, ty: Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), r#type: ty, ..ValueInfoProto::default() }
}

/// Builds a node. An empty domain, the default one, is omitted.
pub fn node(domain: &str, op: &str, inputs: Vec<String>, outputs: Vec<String>) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        domain: Some(domain.into()).filter(|d: &String| !d.is_empty()),
        input: inputs,
        output: outputs,
        ..NodeProto::default()
    }
}

/// Builds the nodes that compute the loop condition `counter < 3`. This condition ends generated loops early, since an
/// infinite loop would be a valid model.
pub fn loop_condition(counter: &str, output: &str) -> [NodeProto; 2] {
    let limit = format!("{output}_limit");
    let mut constant = node("", "Constant", Vec::new(), vec![limit.clone()]);
    constant.attribute.push(attribute("value_int", "3"));
    [constant, node("", "Less", vec![counter.into(), limit], vec![output.into()])]
}

/// Builds an attribute from its value in the notation of the table in `operator_operands`.
pub fn attribute(name: &str, text: &str) -> AttributeProto {
    let result = AttributeProto { name: Some(name.into()), ..AttributeProto::default() };
    let with_type =
        |ty: AttributeType, result| AttributeProto { r#type: Some(ty as i32), ..result };
    if let Some(text) = text.strip_prefix('\'') {
        let s = Some(text.trim_end_matches('\'').as_bytes().to_vec().into());
        return with_type(AttributeType::String, AttributeProto { s, ..result });
    }
    if let Some((letter, elems)) = text.split_once(':') {
        let elems: Vec<f64> = elems.split(',').filter_map(|v| v.parse().ok()).collect();
        let letter = letter.as_bytes().first().copied().unwrap_or(b'a');
        let t = Some(tensor("", letter, &[elems.len() as i64], &elems));
        return with_type(AttributeType::Tensor, AttributeProto { t, ..result });
    }
    if let Some(f) = text.strip_suffix('f').and_then(|v| v.parse().ok()) {
        return with_type(AttributeType::Float, AttributeProto { f: Some(f), ..result });
    }
    if text.contains(',') {
        let ints = text.split(',').filter_map(|v| v.parse().ok()).collect();
        return with_type(AttributeType::Ints, AttributeProto { ints, ..result });
    }
    with_type(AttributeType::Int, AttributeProto { i: text.parse().ok(), ..result })
}

/// Builds an attribute whose value is a graph.
pub fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(graph),
        ..AttributeProto::default()
    }
}

/// An operand that was parsed from the notation of the table in `operator_operands`, such as
/// `letter:2x3=1,2`.
pub struct Operand {
    /// The letter of the element type in the notation, such as `f`; `None` if it contains no letter.
    pub letter: Option<u8>,
    /// The dims of the operand.
    pub dims: Vec<i64>,
    /// The elements, if the notation contains them.
    pub elems: Option<Vec<f64>>,
}

impl Operand {
    /// Parses the notation of a tensor operand.
    pub fn parse(text: &str) -> Operand {
        let (letter, text) = text.split_once(':').unwrap_or(("", text));
        let (dims, elems) = match text.split_once('=') {
            Some((dims, elems)) => (dims, Some(elems)),
            None => (text, None),
        };
        Operand {
            letter: letter.as_bytes().first().copied(),
            dims: dims.split('x').filter_map(|d| d.parse().ok()).collect(),
            elems: elems.map(|e| e.split(',').filter_map(|v| v.parse().ok()).collect()),
        }
    }
}
