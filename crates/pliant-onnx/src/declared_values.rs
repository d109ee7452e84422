//! The inputs and outputs of a graph as the model file declares them: names, types and dims, before any conversion.

use crate::proto::tensor_proto::DataType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::Value as TypeValue;
use crate::proto::{TypeProto, ValueInfoProto};

/// An input, output or initializer of a graph, as the model file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredValue {
    /// The name in the file.
    pub name: String,
    /// The type in the notation of the ONNX specification and of ONNX Runtime, such as `tensor(float)` or
    /// `seq(tensor(int64))`. Empty if the file declares no type.
    pub ty: String,
    /// The dims of a tensor, sparse tensor or optional tensor; `None` for other types, and if the file declares no shape.
    pub dims: Option<Vec<DeclaredDim>>,
}

/// A dim of a [`DeclaredValue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredDim {
    /// The size of the dim.
    pub size: DeclaredSize,
    /// What the dim means, such as `DATA_BATCH`; empty if the file does not declare it.
    pub denotation: String,
}

/// The size of a [`DeclaredDim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredSize {
    /// A fixed size.
    Fixed(i64),
    /// The text that the file declares for a size that is not fixed: the name of a symbol, an arithmetic expression over names, or
    /// a text such as `?`, which the import does not take for a name.
    Symbol(String),
    /// The file declares no size, an empty text or a negative size.
    Unknown,
}

impl DeclaredValue {
    pub(crate) fn of(info: &ValueInfoProto) -> DeclaredValue {
        let value = info.r#type.as_ref();
        DeclaredValue {
            name: info.name().to_owned(),
            ty: value.map(type_text).unwrap_or_default(),
            dims: value.and_then(declared_dims),
        }
    }
}

/// The notation of a type, such as `map(int64,tensor(float))`.
fn type_text(ty: &TypeProto) -> String {
    let inner = |ty: &Option<Box<TypeProto>>| ty.as_deref().map(type_text).unwrap_or_default();
    match &ty.value {
        Some(TypeValue::TensorType(tensor)) => {
            format!("tensor({})", element_type(tensor.elem_type()))
        }
        Some(TypeValue::SparseTensorType(tensor)) => {
            format!("sparse_tensor({})", element_type(tensor.elem_type()))
        }
        Some(TypeValue::SequenceType(sequence)) => format!("seq({})", inner(&sequence.elem_type)),
        Some(TypeValue::OptionalType(optional)) => {
            format!("optional({})", inner(&optional.elem_type))
        }
        Some(TypeValue::MapType(map)) => {
            format!("map({},{})", element_type(map.key_type()), inner(&map.value_type))
        }
        Some(TypeValue::OpaqueType(opaque)) => {
            format!("opaque({},{})", opaque.domain(), opaque.name())
        }
        None => String::new(),
    }
}

/// The name of an element type, such as `float` for the code 1.
fn element_type(code: i32) -> String {
    DataType::try_from(code).map_or("undefined", |ty| ty.as_str_name()).to_lowercase()
}

fn declared_dims(ty: &TypeProto) -> Option<Vec<DeclaredDim>> {
    let shape = match ty.value.as_ref()? {
        TypeValue::TensorType(tensor) => tensor.shape.as_ref()?,
        TypeValue::SparseTensorType(tensor) => tensor.shape.as_ref()?,
        TypeValue::OptionalType(optional) => return declared_dims(optional.elem_type.as_deref()?),
        _ => return None,
    };
    Some(shape.dim.iter().map(declared_dim).collect())
}

fn declared_dim(dim: &Dimension) -> DeclaredDim {
    let size = match &dim.value {
        Some(dimension::Value::DimValue(size)) if *size >= 0 => DeclaredSize::Fixed(*size),
        Some(dimension::Value::DimParam(text)) if !text.is_empty() => {
            DeclaredSize::Symbol(text.clone())
        }
        _ => DeclaredSize::Unknown,
    };
    DeclaredDim { size, denotation: dim.denotation().to_owned() }
}
