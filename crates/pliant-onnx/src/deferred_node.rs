//! [`DeferredNode`]: a node that is imported at run time, once the types of its operands are known.
//!
//! Most converters need the ranks of the operands, and some need sizes or values. If these are unknown during the import, the
//! program calls the host function [`pliant_kernel_api::host_function_names::NODE`] and passes the node as a model of its own. The
//! host imports that model for the actual ranks, as an ordinary program with symbolic sizes. If the ranks are not sufficient, it
//! imports the model for the actual sizes and small integer values.
//!
//! Nodes in the graphs of an `If`, `Loop`, `Scan` or `SequenceMap` are deferred one by one, like other nodes. The whole `If` or
//! loop is deferred only if its own converter fails, and not if the import of a node inside it fails.
//!
//! Unknown operators, violations of operator schemas and calls of model functions (which are inlined) are never deferred:
//! `graph_import/node_conversion.rs` handles them before it calls a converter.
//!
//! | module | content |
//! |---|---|
//! | `defer_node` | decides whether a node that cannot be converted is deferred, and emits the call for it |
//! | `infer_results` | infers the result types of a deferred node by importing it for several ranks |

mod defer_node;
mod infer_results;

use pliant_ir::{DType, IRModule};
use pliant_tensor::Tensor;
use prost::Message;

use crate::graph_import::import_single_node;
use crate::import_error::Problem;
use crate::import_limits::Limits;
use crate::initializer_tensors;
use crate::model_file::Model;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto};

/// Maximum number of elements of an integer operand that becomes a constant when a node is imported at run time. Larger operands
/// are unlikely to be axes, sizes or pads.
const MAX_SPECIALIZED_VALUES: usize = 64;

/// How much of its operands the import of a deferred node treats as constant. A deferred node is an ONNX node that is imported at
/// run time, when its operands exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Specialization {
    /// The import treats the ranks and the element types of all operands as constants.
    Ranks,
    /// In addition to the ranks and element types of all operands, the import treats the sizes of all operands except the first as
    /// constants. It also treats their elements as constants if the operand contains at most 64 elements of type int64, int32 or
    /// bool.
    Parameters,
    /// The import treats the ranks, element types and sizes of all operands as constants, and also the elements of operands that
    /// contain at most 64 elements of type int64, int32 or bool.
    All,
}

impl Specialization {
    /// All values of `Specialization`, in the order in which the import of a deferred node tries them until one succeeds: from the
    /// fewest to the most constants.
    pub const ALL: [Specialization; 3] =
        [Specialization::Ranks, Specialization::Parameters, Specialization::All];

    /// Whether the import treats the sizes of operand `i` as constants. If so, it also treats the elements as constants if they
    /// are few integers.
    fn fixes_sizes(self, i: usize) -> bool {
        match self {
            Specialization::Ranks => false,
            Specialization::Parameters => i > 0,
            Specialization::All => true,
        }
    }
}

/// What the import of a deferred node (a node that is imported at run time) knows about one operand: dtype, rank, and possibly
/// dims and elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperandSpec {
    dtype: DType,
    dims: Vec<Option<i64>>,
    /// The elements of the operand, if the import treats them as constants.
    values: Option<Vec<i64>>,
}

impl OperandSpec {
    /// Reads from the tensor `value`, which is operand `i`, the properties that the import may use according to `specialization`.
    pub fn from_tensor(value: &Tensor, i: usize, specialization: Specialization) -> OperandSpec {
        let (dtype, fixed) = (value.dtype(), specialization.fixes_sizes(i));
        let few = fixed && is_plain_int(dtype) && value.numel() <= MAX_SPECIALIZED_VALUES;
        let dims = value.shape().iter().map(|&d| fixed.then_some(d)).collect();
        let values = if few { value.to_i64_vec().ok() } else { None };
        OperandSpec { dtype, dims, values }
    }

    /// Whether the import treats the elements of the operand as constants.
    pub fn has_values(&self) -> bool {
        self.values.is_some()
    }
}

/// Whether the dtype is int64, int32 or bool, the types of axes, sizes and flags.
fn is_plain_int(dtype: DType) -> bool {
    matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool)
}

/// A node whose import is deferred to run time, in the form of a model with this node alone. The
/// inputs of the model are the node's operands, without types.
#[derive(Clone, Debug)]
pub struct DeferredNode {
    proto: ModelProto,
}

impl DeferredNode {
    /// Decodes a node from the text that a program stores.
    ///
    /// # Errors
    /// If the text does not encode a node.
    pub fn from_text(text: &str) -> Result<DeferredNode, Problem> {
        let wrong = || {
            Problem::invalid(
                "the program contains an ONNX node that must be imported at run time, but its encoding is damaged",
            )
        };
        let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        let pair = |p: &[u8]| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        let limits = Limits::default();
        let model = Model::from_bytes(bytes.ok_or_else(wrong)?, limits).map_err(|_| wrong())?;
        Ok(DeferredNode { proto: model.proto })
    }

    /// Encodes the node as a text that a program can store: hexadecimal protobuf.
    fn text(&self) -> String {
        self.proto.encode_to_vec().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The label that identifies the node in messages.
    pub fn label(&self) -> String {
        let node = self.proto.graph.as_ref().and_then(|g| g.node.first());
        node.map_or_else(String::new, crate::node::label)
    }

    /// Imports the node for the given operands. The parameters of the module's function `main` are the operands whose elements
    /// are not known ([`OperandSpec::has_values`]).
    ///
    /// # Errors
    /// The reason why the node cannot be imported.
    pub fn import(&self, operands: &[OperandSpec]) -> Result<IRModule, Problem> {
        let model = self.model(operands)?;
        match import_single_node(&model) {
            Ok(imported) => Ok(imported.module),
            Err(e) => Err(e.problems.into_iter().next().unwrap_or_else(|| {
                Problem::internal(
                    "the import of an ONNX node at run time",
                    "it failed, but reported no problem",
                )
            })),
        }
    }

    /// The model of the node, in which the inputs have the types of the operands. Operands with known elements become
    /// initializers.
    fn model(&self, operands: &[OperandSpec]) -> Result<Model, Problem> {
        let mut proto = self.proto.clone();
        let wrong = || {
            Problem::invalid(format!(
                "the call of a deferred ONNX node must pass one operand for each input of the node, but passes {}",
                operands.len()
            ))
        };
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
                    data_type: Some(initializer_tensors::data_type(operand.dtype) as i32),
                    raw_data: Some(encode_ints(values, operand.dtype).into()),
                    ..TensorProto::default()
                });
                continue;
            }
            let dim = |d: &Option<i64>| Dimension {
                value: d.map(dimension::Value::DimValue),
                ..Dimension::default()
            };
            let declared = declared_shape(&info).filter(|s| s.dim.len() == operand.dims.len());
            let dims = operand.dims.iter().enumerate().map(|(axis, d)| {
                let known = declared.and_then(|s| s.dim[axis].value.clone());
                Dimension { value: known.or(dim(d).value), ..Dimension::default() }
            });
            let shape = TensorShapeProto { dim: dims.collect() };
            let elem_type = Some(initializer_tensors::data_type(operand.dtype) as i32);
            let value = Some(TypeValue::TensorType(TensorType { elem_type, shape: Some(shape) }));
            info.r#type = Some(TypeProto { value, ..TypeProto::default() });
            graph.input.push(info);
        }
        Ok(Model { proto, folder: None, limits: Limits::default() })
    }
}

/// Encodes integers as the raw data of a tensor.
fn encode_ints(values: &[i64], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => values.iter().map(|&v| u8::from(v != 0)).collect(),
        DType::Int32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

fn declared_shape(info: &ValueInfoProto) -> Option<&TensorShapeProto> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::TensorType(tensor) => tensor.shape.as_ref(),
        _ => None,
    }
}

/// Encodes a constant as an initializer with the given name; `None` if its elements cannot be read.
pub(crate) fn constant_initializer(name: &str, tensor: &Tensor) -> Option<TensorProto> {
    let raw = tensor.to_contiguous().ok()?;
    Some(TensorProto {
        name: Some(name.into()),
        dims: raw.shape().to_vec(),
        data_type: Some(initializer_tensors::data_type(raw.dtype()) as i32),
        raw_data: Some(bytes::Bytes::copy_from_slice(raw.as_bytes().ok()?)),
        ..TensorProto::default()
    })
}
