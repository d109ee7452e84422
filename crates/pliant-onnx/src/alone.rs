//! [`NodeAtRun`]: a node that is imported when the program runs, over operands of the kinds that they turn out to have.
//!
//! Most operators are converted for tensors of known rank, and some for sizes or values that are numbers. Where only a run
//! knows these, the node goes into the program as a call of [`crate::host::NODE`] with itself as a model of one node. Whoever
//! runs it imports that model for the ranks that come, which makes an ordinary program over symbols; where ranks are not
//! enough, for the sizes and the small integers that come.
//!
//! | module | owns |
//! |---|---|
//! | `call` | the call that stands for such a node in the program |
//! | `trial` | what such a node gives, found by trying it over operands of several ranks |

mod call;
mod trial;

use pliant_ir::{DType, IRModule};
use pliant_tensor::Tensor;
use prost::Message;

use crate::error::Problem;
use crate::graph::import_alone;
use crate::limits::Limits;
use crate::model::Model;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto};
use crate::tensor;

/// Integers of an operand that may stand for their values: axes, sizes, pads.
const FEW: usize = 64;

/// How much of its operands a node is imported for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Their ranks and element types.
    Ranks,
    /// Of all but the first also their sizes, and their values where they are few integers.
    Parameters,
    /// Sizes and few integers of all.
    All,
}

impl Depth {
    /// From the least to the most.
    pub const EACH: [Depth; 3] = [Depth::Ranks, Depth::Parameters, Depth::All];

    /// Whether sizes and values of operand `i` are part of its kind.
    fn is_exact(self, i: usize) -> bool {
        match self {
            Depth::Ranks => false,
            Depth::Parameters => i > 0,
            Depth::All => true,
        }
    }
}

/// What an operand turns out to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    dtype: DType,
    dims: Vec<Option<i64>>,
    /// The elements, where they are part of its kind.
    values: Option<Vec<i64>>,
}

impl Operand {
    /// Operand `i` as it is imported at that depth.
    pub fn of(value: &Tensor, i: usize, depth: Depth) -> Operand {
        let (dtype, exact) = (value.dtype(), depth.is_exact(i));
        let few = exact && is_plain_int(dtype) && value.numel() <= FEW;
        let dims = value.shape().iter().map(|&d| exact.then_some(d)).collect();
        let values = if few { value.to_i64_vec().ok() } else { None };
        Operand { dtype, dims, values }
    }

    /// Whether its values are part of its kind.
    pub fn is_value(&self) -> bool {
        self.values.is_some()
    }
}

fn is_plain_int(dtype: DType) -> bool {
    matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool)
}

/// A node as a model of its own, whose inputs are its operands and have no types yet.
#[derive(Clone, Debug)]
pub struct NodeAtRun {
    proto: ModelProto,
}

impl NodeAtRun {
    /// The node that a program holds as text.
    ///
    /// # Errors
    /// When the text is no such node.
    pub fn from_text(text: &str) -> Result<NodeAtRun, Problem> {
        let wrong = || Problem::invalid("this is no node of an ONNX model");
        let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        let pair = |p: &[u8]| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        let limits = Limits::default();
        let model = Model::from_bytes(bytes.ok_or_else(wrong)?, limits).map_err(|_| wrong())?;
        Ok(NodeAtRun { proto: model.proto })
    }

    fn text(&self) -> String {
        self.proto.encode_to_vec().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The node as messages call it.
    pub fn label(&self) -> String {
        let node = self.proto.graph.as_ref().and_then(|g| g.node.first());
        node.map_or_else(String::new, crate::node::label)
    }

    /// The node over such operands as a module, whose function `main` takes those that are no values.
    ///
    /// # Errors
    /// What makes it impossible.
    pub fn import(&self, operands: &[Operand]) -> Result<IRModule, Problem> {
        let model = self.model(operands)?;
        match import_alone(&model) {
            Ok(imported) => Ok(imported.module),
            Err(e) => Err(e.problems.into_iter().next().unwrap_or_else(|| Problem::invalid(""))),
        }
    }

    /// The model with the operands' types.
    fn model(&self, operands: &[Operand]) -> Result<Model, Problem> {
        let mut proto = self.proto.clone();
        let wrong = || Problem::invalid("a node has other operands than it was made for");
        let graph = proto.graph.as_mut().ok_or_else(wrong)?;
        if graph.input.len() != operands.len() {
            return Err(wrong());
        }
        let inputs = std::mem::take(&mut graph.input);
        for (mut info, operand) in inputs.into_iter().zip(operands) {
            if let Some(values) = &operand.values {
                let dims = operand.dims.iter().map(|d| d.unwrap_or(0)).collect();
                graph.initializer.push(TensorProto {
                    name: info.name.take(),
                    dims,
                    data_type: Some(tensor::code(operand.dtype) as i32),
                    raw_data: Some(bytes_of(values, operand.dtype).into()),
                    ..TensorProto::default()
                });
                continue;
            }
            let dim = |d: &Option<i64>| Dimension {
                value: d.map(dimension::Value::DimValue),
                ..Dimension::default()
            };
            let own = shape_of(&info).filter(|s| s.dim.len() == operand.dims.len());
            let dims = operand.dims.iter().enumerate().map(|(axis, d)| {
                let known = own.and_then(|s| s.dim[axis].value.clone());
                Dimension { value: known.or(dim(d).value), ..Dimension::default() }
            });
            let shape = TensorShapeProto { dim: dims.collect() };
            let elem_type = Some(tensor::code(operand.dtype) as i32);
            let value = Some(TypeValue::TensorType(TensorType { elem_type, shape: Some(shape) }));
            info.r#type = Some(TypeProto { value, ..TypeProto::default() });
            graph.input.push(info);
        }
        Ok(Model { proto, folder: None, limits: Limits::default() })
    }
}

/// Integers as the bytes of a tensor.
fn bytes_of(values: &[i64], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => values.iter().map(|&v| u8::from(v != 0)).collect(),
        DType::Int32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

fn shape_of(info: &ValueInfoProto) -> Option<&TensorShapeProto> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::TensorType(tensor) => tensor.shape.as_ref(),
        _ => None,
    }
}

/// A constant as an initializer.
pub(crate) fn initializer(name: &str, tensor: &Tensor) -> Option<TensorProto> {
    let raw = tensor.to_contiguous().ok()?;
    Some(TensorProto {
        name: Some(name.into()),
        dims: raw.shape().to_vec(),
        data_type: Some(tensor::code(raw.dtype()) as i32),
        raw_data: Some(bytes::Bytes::copy_from_slice(raw.as_bytes().ok()?)),
        ..TensorProto::default()
    })
}
