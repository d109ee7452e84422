//! Compares the inferred types of intermediate values with the types that the file declares.

use pliant_ir::relax::{TensorShape, TypeData};
use pliant_sym::Sym;

use super::{Importer, identifier, operator_name};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::node::label;
use crate::proto::tensor_proto::DataType;
use crate::proto::tensor_shape_proto::dimension;
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{NodeProto, TensorShapeProto};

/// The inferred element type of a tensor, as an ONNX code, and its inferred dims; `None` where unknown.
type InferredType = (Option<i32>, Option<Vec<Option<i64>>>);

impl Importer<'_> {
    /// Checks the inferred type of a node's output against the type that the file declares. Another element type is a problem;
    /// another shape is tolerated, and the inferred shape is used. If the inferred rank is unknown, the result is cast to the
    /// declared rank. Returns the output.
    pub(super) fn check_declared_type(
        &mut self,
        node: &NodeProto,
        name: &str,
        value: Value,
    ) -> Value {
        let Some(info) = self.declared.get(name).copied() else { return value };
        if self.scopes.len() > 1 || matches!(value, Value::Failed | Value::Absent) {
            return value;
        }
        let declared = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            Some(TypeValue::TensorType(tensor)) => tensor,
            // The types of sequences and optionals are checked with their contents.
            _ => return value,
        };
        let subject = format!("output '{name}'");
        let problem = |contradiction: String| {
            let help = "the declaration in the file is wrong: infer the types again (onnx.shape_inference)";
            let problem = Problem::invalid(contradiction).with_help(help);
            problem.at_node(&label(node), &operator_name(node))
        };
        if let Some(contradiction) = self.element_type_contradiction(&subject, &value, declared) {
            self.problems.push(problem(contradiction));
            return value;
        }
        if let Some(contradiction) = self.shape_contradiction(&subject, &value, declared) {
            self.tolerate(problem(contradiction));
            return value;
        }
        match (&value, &declared.shape) {
            (Value::Expr(e), Some(shape)) => {
                let func = self.builder.func_mut();
                let &TypeData::Tensor { shape: TensorShape::Unknown, dtype, .. } = func.ty(*e)
                else {
                    return value;
                };
                let hint = identifier(name, "d");
                let dims: Vec<Sym> = (0..shape.dim.len())
                    .map(|axis| {
                        let var = func.fresh_sym(&format!("{hint}_{axis}"));
                        func.syms.var(var)
                    })
                    .collect();
                let ty =
                    func.intern(TypeData::Tensor { shape: TensorShape::Dims(dims.into()), dtype });
                let var = self.builder.match_cast(*e, ty, &hint);
                Value::Expr(self.builder.func_mut().var_expr(var))
            }
            _ => value,
        }
    }

    /// The rank that the file declares for a value of the main graph.
    pub(crate) fn declared_rank(&self, name: &str) -> Option<usize> {
        let info = self.declared.get(name).filter(|_| self.scopes.len() == 1)?;
        match info.r#type.as_ref()?.value.as_ref()? {
            TypeValue::TensorType(tensor) => Some(tensor.shape.as_ref()?.dim.len()),
            _ => None,
        }
    }

    /// Describes the contradiction between the inferred and the declared element type of a value, which `subject` names. `None` if
    /// there is none.
    pub(super) fn element_type_contradiction(
        &self,
        subject: &str,
        value: &Value,
        declared: &TensorType,
    ) -> Option<String> {
        let wanted = declared.elem_type();
        let actual = self.type_of(value)?.0.filter(|&code| wanted != 0 && code != wanted)?;
        let (wanted, actual) = (element_type_name(wanted), element_type_name(actual));
        Some(format!("{subject} is declared as {wanted}, but is {actual}"))
    }

    /// Describes the contradiction between the inferred and the declared shape of a value, which `subject` names. `None` if there
    /// is none.
    pub(super) fn shape_contradiction(
        &self,
        subject: &str,
        value: &Value,
        declared: &TensorType,
    ) -> Option<String> {
        let dims = self.type_of(value)?.1.filter(|_| self.declared_sizes)?;
        let shape = declared.shape.as_ref()?;
        let size = |d: &Option<dimension::Value>| match d {
            Some(dimension::Value::DimValue(size)) if *size >= 0 => Some(*size),
            _ => None,
        };
        let differs = dims.len() != shape.dim.len()
            || dims.iter().zip(&shape.dim).any(
                |(actual, d)| matches!((actual, size(&d.value)), (Some(actual), Some(declared_size)) if *actual != declared_size),
            );
        let dim_text = |d: &Option<i64>| d.map_or("?".to_owned(), |d| d.to_string());
        let actual: Vec<String> = dims.iter().map(dim_text).collect();
        differs.then(|| {
            format!(
                "{subject} is declared as [{}], but is [{}]",
                dims_text(shape),
                actual.join(", ")
            )
        })
    }

    /// The inferred type of a value that is a tensor; `None` for other values.
    fn type_of(&self, value: &Value) -> Option<InferredType> {
        let numbers = |shape: &[i64]| Some(shape.iter().map(|&d| Some(d)).collect());
        Some(match value {
            Value::Const(t) => {
                (Some(initializer_tensors::data_type(t.dtype()) as i32), numbers(t.shape()))
            }
            Value::Symbolic(t) => {
                let dims = t.shape.iter().map(|&d| Some(d as i64)).collect();
                (Some(initializer_tensors::data_type(t.dtype) as i32), Some(dims))
            }
            Value::Rational(r) => {
                let dims = r.numerators.shape.iter().map(|&d| Some(d as i64)).collect();
                (Some(initializer_tensors::data_type(r.dtype) as i32), Some(dims))
            }
            Value::Narrow(ty, storage) => (Some(*ty as i32), self.type_of(storage)?.1),
            Value::Expr(e) => {
                let func = self.builder.func();
                let TypeData::Tensor { shape, dtype, .. } = func.ty(*e) else { return None };
                let dims = match shape {
                    TensorShape::Dims(dims) => {
                        Some(dims.iter().map(|&d| func.syms.as_int(d)).collect())
                    }
                    _ => None,
                };
                (dtype.map(|d| initializer_tensors::data_type(d) as i32), dims)
            }
            _ => return None,
        })
    }
}

/// The declared dims as text, with `?` for an undeclared dim.
fn dims_text(shape: &TensorShapeProto) -> String {
    let text = |d: &Option<dimension::Value>| match d {
        Some(dimension::Value::DimValue(size)) => size.to_string(),
        Some(dimension::Value::DimParam(name)) => name.clone(),
        None => "?".into(),
    };
    shape.dim.iter().map(|d| text(&d.value)).collect::<Vec<_>>().join(", ")
}

/// The name of an element type in messages, such as `float32` for ONNX's code 1.
fn element_type_name(code: i32) -> String {
    let onnx_name = |ty: DataType| ty.as_str_name().to_lowercase();
    if let Some(narrow) = crate::subbyte_types::narrow_type(i64::from(code)) {
        return onnx_name(narrow);
    }
    initializer_tensors::program_dtype(code).map_or_else(
        |_| DataType::try_from(code).map_or("unknown".to_owned(), onnx_name),
        |dtype| dtype.to_string(),
    )
}
