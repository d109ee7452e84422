//! [`ObjectType`]: the ONNX type of a value whose type is not a tensor type of the program, such as a sequence or an optional.
//!
//! Sequences of known length and optionals of known presence are eliminated during the import. If the length or the presence is
//! non-constant, the value is an opaque object of the program ([`pliant_kernel_api::host_function_names`]). Its object type
//! describes what it contains.

use pliant_ir::op::CALL_PURE_PACKED;
use pliant_ir::relax::{Expr, TensorShape, TypeData};
use pliant_ir::{Attrs, DType};
use pliant_sym::{Sym, SymArena, SymVar};

use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::node::{ExprResult, Node, infer_problem};
use crate::proto::TypeProto;
use crate::proto::tensor_proto::DataType;
use crate::proto::tensor_shape_proto::dimension;
use crate::proto::type_proto::Value as TypeValue;
use pliant_kernel_api::host_function_names;

/// The ONNX type of a dynamically typed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// The type is unknown, for example the type of the items of an empty sequence.
    Unknown,
    /// A tensor, whose properties the fields describe.
    Tensor {
        /// The dtype of the elements, or the dtype in which narrow elements are stored.
        dtype: DType,
        /// The narrow element type (an integer of 2 or 4 bits, or a float of 4 or 8 bits); `None` for other element types.
        narrow: Option<DataType>,
        /// The dims, where `None` is an unknown dim; `None` if the rank is unknown.
        dims: Option<Vec<Option<Sym>>>,
    },
    /// A sequence of items of the given type.
    Sequence(Box<ObjectType>),
    /// An optional value of the given type.
    Optional(Box<ObjectType>),
    /// A value that only the importer uses, such as a chain (the linked list of values that the iterations of a loop collect).
    Internal,
}

impl ObjectType {
    /// The most specific type that covers values of both types.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn join(&self, other: &ObjectType) -> Result<ObjectType, Problem> {
        use ObjectType::{Internal, Optional, Sequence, Tensor, Unknown};
        Ok(match (self, other) {
            (Unknown, object_type) | (object_type, Unknown) => object_type.clone(),
            (Internal, Internal) => Internal,
            (
                Tensor { dtype, narrow, dims },
                Tensor { dtype: dtype_2, narrow: narrow_2, dims: dims_2 },
            ) => {
                if (dtype, narrow) != (dtype_2, narrow_2) {
                    let text = format!(
                        "the element type of the value must always be the same, but is {dtype} in one case and {dtype_2} in \
                         another"
                    );
                    return Err(Problem::invalid(text));
                }
                let dims = match (dims, dims_2) {
                    (Some(a), Some(b)) if a.len() == b.len() => {
                        Some(a.iter().zip(b).map(|(a, b)| if a == b { *a } else { None }).collect())
                    }
                    _ => None,
                };
                Tensor { dtype: *dtype, narrow: *narrow, dims }
            }
            (Sequence(a), Sequence(b)) => Sequence(Box::new(a.join(b)?)),
            (Optional(a), Optional(b)) => Optional(Box::new(a.join(b)?)),
            (Optional(a), b) | (b, Optional(a)) => Optional(Box::new(a.join(b)?)),
            _ => {
                let text = format!(
                    "the type of the value must always be the same, but it is {} in one case and {} in another",
                    self.name(),
                    other.name()
                );
                return Err(Problem::invalid(text));
            }
        })
    }

    /// Sets the rank of an `If` result to the rank that the file declares, if the two branches have
    /// different ranks. The dims are taken from the branch with this rank, and are checked at run
    /// time.
    pub fn with_declared_rank(self, rank: Option<usize>, branches: [&ObjectType; 2]) -> ObjectType {
        let ObjectType::Tensor { dtype, narrow, dims: None } = self else { return self };
        let problems = branches.into_iter().find_map(|branch| match branch {
            ObjectType::Tensor { dims: Some(dims), .. } if Some(dims.len()) == rank => {
                Some(dims.clone())
            }
            _ => None,
        });
        ObjectType::Tensor { dtype, narrow, dims: problems }
    }

    /// The part of the type that is known outside a branch or a loop body: dims with symbols that are defined inside become
    /// unknown.
    pub fn erase_inner_symbols(self, syms: &SymArena, outer: OuterSymbols) -> ObjectType {
        match self {
            ObjectType::Tensor { dtype, narrow, dims } => {
                let known = |dim: Option<Sym>| dim.filter(|&d| outer.contains(syms, d));
                let dims = dims.map(|dims| dims.into_iter().map(known).collect());
                ObjectType::Tensor { dtype, narrow, dims }
            }
            ObjectType::Sequence(item) => {
                ObjectType::Sequence(Box::new(item.erase_inner_symbols(syms, outer)))
            }
            ObjectType::Optional(content) => {
                ObjectType::Optional(Box::new(content.erase_inner_symbols(syms, outer)))
            }
            ObjectType::Unknown | ObjectType::Internal => self,
        }
    }

    /// The type in the text format that the host function [`host_function_names::INPUT`] parses.
    pub fn text(&self, syms: &SymArena) -> String {
        match self {
            ObjectType::Tensor { dtype, dims, .. } => {
                let size = |d: &Option<Sym>| match d.and_then(|d| syms.as_int(d)) {
                    Some(size) => size.to_string(),
                    None => "?".into(),
                };
                let dims = dims.as_ref().map(|dims| {
                    format!("[{}]", dims.iter().map(size).collect::<Vec<_>>().join(", "))
                });
                format!("{}{}", dtype.name(), dims.unwrap_or_default())
            }
            ObjectType::Sequence(item) => format!("sequence({})", item.text(syms)),
            ObjectType::Optional(content) => format!("optional({})", content.text(syms)),
            ObjectType::Unknown | ObjectType::Internal => String::new(),
        }
    }

    /// A description of the type for messages, such as `a tensor`.
    pub fn name(&self) -> &'static str {
        match self {
            ObjectType::Unknown => "nothing",
            ObjectType::Tensor { .. } => "a tensor",
            ObjectType::Sequence(_) => "a sequence",
            ObjectType::Optional(_) => "an optional",
            ObjectType::Internal => "an internal value",
        }
    }

    /// The object type that a file declares.
    ///
    /// # Errors
    /// If the type is not a tensor, sequence or optional, or its element type is not supported. The message starts with
    /// `subject`, which names the value.
    pub fn declared(
        subject: &str,
        ty: &TypeProto,
        syms: &mut SymArena,
    ) -> Result<ObjectType, Problem> {
        let mut inner = |elem: &Option<Box<TypeProto>>| match elem {
            Some(elem) => ObjectType::declared(subject, elem, syms).map(Box::new),
            None => Err(Problem::invalid(format!(
                "{subject} does not declare the type of its contents"
            ))),
        };
        match &ty.value {
            Some(TypeValue::TensorType(tensor)) => {
                let code = i64::from(tensor.elem_type());
                let dtype = initializer_tensors::checked_dtype(code).map_err(|p| Problem {
                    message: format!(
                        "{subject} has an element type that cannot be passed: {}",
                        p.message
                    ),
                    ..p
                })?;
                let mut size = |d: &Option<dimension::Value>| match d {
                    Some(dimension::Value::DimValue(v)) => Some(syms.int(*v)),
                    _ => None,
                };
                let dims =
                    tensor.shape.as_ref().map(|s| s.dim.iter().map(|d| size(&d.value)).collect());
                Ok(ObjectType::Tensor {
                    dtype,
                    narrow: crate::subbyte_types::narrow_type(code),
                    dims,
                })
            }
            Some(TypeValue::SequenceType(sequence)) => {
                Ok(ObjectType::Sequence(inner(&sequence.elem_type)?))
            }
            Some(TypeValue::OptionalType(optional)) => {
                Ok(ObjectType::Optional(inner(&optional.elem_type)?))
            }
            Some(TypeValue::MapType(_)) => {
                Err(Problem::unsupported(format!("{subject} is a map, which is not supported"))
                    .with_help("convert the value to a tensor before passing it to the model"))
            }
            Some(TypeValue::SparseTensorType(_)) => Err(Problem::unsupported(format!(
                "{subject} is a sparse tensor, which is not supported"
            ))
            .with_help("declare and pass a dense tensor")),
            Some(TypeValue::OpaqueType(_)) => Err(Problem::unsupported(format!(
                "{subject} is of an opaque type, which is not supported"
            ))
            .with_help("export the model with a tensor instead")),
            None => Err(Problem::invalid(format!("{subject} has no declared type"))),
        }
    }
}

/// The set of symbols that were defined before a branch or a loop body. Only these are valid after it.
#[derive(Clone, Copy, Debug)]
pub struct OuterSymbols(Option<SymVar>);

impl OuterSymbols {
    /// The set of all symbols that have been defined so far.
    pub fn current(syms: &SymArena) -> OuterSymbols {
        OuterSymbols(syms.vars().last())
    }

    /// Whether all symbols in a term belong to the set.
    pub fn contains(self, syms: &SymArena, term: Sym) -> bool {
        syms.free_vars(term).into_iter().all(|v| Some(v) <= self.0)
    }
}

impl Node<'_, '_> {
    /// Emits a call of the runtime function with the given name ([`host_function_names`]). The type of its result is unknown.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn call_host(&mut self, name: &str, args: &[Expr]) -> ExprResult {
        let func = self.func();
        let any = func.intern(TypeData::Any);
        let mut operands = vec![func.extern_func(name)];
        operands.extend(args);
        let call =
            self.importer.builder.call_op(CALL_PURE_PACKED, &operands, Attrs::default(), &[any]);
        let call = call.map_err(infer_problem)?;
        Ok(self.importer.bind(call, self.proto))
    }

    /// Creates an int64 scalar that is passed to a runtime function ([`call_host`](Self::call_host)).
    pub fn int_operand(&mut self, value: i64) -> Expr {
        let value = self.func().syms.int(value);
        self.func().int_value(value, DType::Int64)
    }

    /// Emits a cast of an object to a tensor type, which is checked at run time. Without `dims`, the rank is unknown.
    pub fn object_to_tensor(&mut self, object: Expr, dims: Option<&[Sym]>, dtype: DType) -> Expr {
        let shape = match dims {
            Some(dims) => TensorShape::Dims(dims.into()),
            None => TensorShape::Unknown,
        };
        let func = self.func();
        let ty = func.intern(TypeData::Tensor { shape, dtype: Some(dtype) });
        let var = self.importer.builder.match_cast(object, ty, "seen");
        self.func().var_expr(var)
    }

    /// Converts a value of the import to an expression of the program and its ONNX type. The method
    /// [`value_of_object`](Self::value_of_object) converts in the opposite direction.
    ///
    /// # Errors
    /// If the value is the result of a node that could not be converted.
    pub fn object_of_value(&mut self, value: &Value) -> Result<(Expr, ObjectType), Problem> {
        match value {
            Value::Object(e, object_type) => Ok((*e, object_type.clone())),
            Value::Absent => {
                Ok((self.null_value()?, ObjectType::Optional(Box::new(ObjectType::Unknown))))
            }
            Value::Sequence(items) => {
                let mut operands = Vec::with_capacity(items.len());
                let mut object_type = ObjectType::Unknown;
                for item in items {
                    let (e, inner) = self.object_of_value(item)?;
                    object_type = object_type.join(&inner)?;
                    operands.push(e);
                }
                Ok((
                    self.call_host(host_function_names::SEQUENCE, &operands)?,
                    ObjectType::Sequence(Box::new(object_type)),
                ))
            }
            Value::Narrow(narrow, storage) => {
                let e = self.materialize(storage)?;
                Ok((e, self.tensor_object_type(e, Some(*narrow))?))
            }
            other => {
                let e = self.materialize(other)?;
                Ok((e, self.tensor_object_type(e, None)?))
            }
        }
    }

    /// The ONNX type of a tensor expression. `narrow` is its narrow element type, if it has one ([`ObjectType::Tensor`]).
    fn tensor_object_type(
        &mut self,
        e: Expr,
        narrow: Option<DataType>,
    ) -> Result<ObjectType, Problem> {
        let dtype = self.dtype(e)?;
        let func = self.func();
        let dims = match func.ty(e) {
            TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => {
                Some(dims.iter().copied().map(Some).collect())
            }
            _ => None,
        };
        Ok(ObjectType::Tensor { dtype, narrow, dims })
    }

    /// Converts an expression of the program and its ONNX type to a value of the import. Known dims of the ONNX type are added to
    /// the expression's type.
    ///
    /// # Errors
    /// If the object type is [`ObjectType::Unknown`]: the value comes from a sequence or optional that is always empty.
    pub fn value_of_object(&mut self, e: Expr, object_type: &ObjectType) -> Result<Value, Problem> {
        let ObjectType::Tensor { dtype, narrow, dims } = object_type else {
            if *object_type == ObjectType::Unknown {
                return Err(Problem::invalid(
                    "the node takes a value from a sequence or optional that is always empty, so the type of the value is unknown",
                ));
            }
            return Ok(Value::Object(e, object_type.clone()));
        };
        let tensor = match (self.func().ty(e), dims) {
            (TypeData::Tensor { shape: TensorShape::Dims(inner), .. }, Some(dims))
                if inner.len() == dims.len() =>
            {
                self.with_dims(e, dims)?
            }
            (TypeData::Tensor { shape: TensorShape::Dims(_), .. }, _)
            | (TypeData::Tensor { .. }, None) => e,
            (_, dims) => {
                let dims: Option<Vec<Sym>> = dims.as_ref().map(|dims| {
                    let func = self.func();
                    let dim = |d: &Option<Sym>| {
                        d.unwrap_or_else(|| {
                            let var = func.fresh_sym("item");
                            func.syms.var(var)
                        })
                    };
                    dims.iter().map(dim).collect()
                });
                self.object_to_tensor(e, dims.as_deref(), *dtype)
            }
        };
        Ok(match narrow {
            Some(narrow) => Value::Narrow(*narrow, Box::new(tensor.into())),
            None => tensor.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dims: &[Option<Sym>]) -> ObjectType {
        ObjectType::Tensor { dtype: DType::Float32, narrow: None, dims: Some(dims.to_vec()) }
    }

    #[test]
    fn erases_dims_with_symbols_defined_inside() {
        let mut syms = SymArena::new();
        let q = syms.fresh_var("q");
        let outer = OuterSymbols::current(&syms);
        let inner = syms.fresh_var("own");
        let (q, inner) = (syms.var(q), syms.var(inner));
        let whole = syms.mul(q, inner);
        let sequence = |object_type: ObjectType| ObjectType::Sequence(Box::new(object_type));
        let inside = sequence(tensor(&[Some(q), Some(inner), Some(whole), None]));
        let left = sequence(tensor(&[Some(q), None, None, None]));
        assert_eq!(inside.erase_inner_symbols(&syms, outer), left);
    }

    #[test]
    fn joins_types_to_the_most_specific_common_type() {
        let mut syms = SymArena::new();
        let [two, three, four] = [2, 3, 4].map(|v| Some(syms.int(v)));
        let (a, b) = (tensor(&[two, three]), tensor(&[two, four]));
        assert_eq!(a.join(&b), Ok(tensor(&[two, None])));
        let ranks = a.join(&tensor(&[None]));
        assert!(matches!(ranks, Ok(ObjectType::Tensor { dims: None, .. })), "{ranks:?}");
        let nothing = ObjectType::Optional(Box::new(ObjectType::Unknown));
        assert_eq!(nothing.join(&a), Ok(ObjectType::Optional(Box::new(a.clone()))));
        let sequence = ObjectType::Sequence(Box::new(ObjectType::Unknown));
        assert_eq!(
            sequence.join(&ObjectType::Sequence(Box::new(a.clone()))),
            Ok(ObjectType::Sequence(Box::new(a.clone())))
        );
        assert!(a.join(&sequence).is_err());
        let halves = ObjectType::Tensor { dtype: DType::Float16, narrow: None, dims: None };
        assert!(a.join(&halves).unwrap_err().message.contains("float16"));
    }
}
