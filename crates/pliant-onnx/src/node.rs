//! [`Node`]: the interface that converters use. `Node` reads the inputs and attributes of a node,
//! and emits calls of Pliant's operators.

mod emit_operator_calls;

use pliant_ir::relax::{Expr, Function, TensorShape, TypeData};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;
use pliant_tensor::Tensor;

pub(crate) use emit_operator_calls::{infer_problem, ints_attr};

use crate::graph_import::{Importer, operator_name};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node_attributes::AttrReader;
use crate::proto::NodeProto;
use crate::proto::tensor_proto::DataType;

/// The result of building an expression, or the problem that prevents it.
pub type ExprResult = Result<Expr, Problem>;

/// The result of a converter: the values of the node's outputs.
pub type ConvertResult = Result<Vec<Value>, Problem>;

/// The label of a node in messages, such as `Conv 'stem/conv'`. A node without a name is labelled with its first output.
pub(crate) fn label(node: &NodeProto) -> String {
    let name = if node.name().is_empty() {
        node.output.first().map_or("", String::as_str)
    } else {
        node.name()
    };
    format!("{} '{name}'", node.op_type())
}

/// A node that is being converted.
pub struct Node<'n, 'm> {
    pub(crate) importer: &'n mut Importer<'m>,
    pub(crate) proto: &'n NodeProto,
    /// The version of the operator set for the node's domain.
    pub opset: i64,
    inputs: Vec<Value>,
}

impl<'n, 'm> Node<'n, 'm> {
    pub(crate) fn new(
        importer: &'n mut Importer<'m>,
        proto: &'n NodeProto,
        opset: i64,
        inputs: Vec<Value>,
    ) -> Self {
        Node { importer, proto, opset, inputs }
    }

    /// Records that the node violates the ONNX specification in a way that ONNX Runtime tolerates, too.
    pub(crate) fn tolerate(&mut self, violation: Problem) {
        let violation = violation.at_node(&label(self.proto), &operator_name(self.proto));
        self.importer.tolerate(violation);
    }

    /// A reader of the node's attributes.
    pub(crate) fn attrs(&self) -> AttrReader<'n> {
        AttrReader(self.proto)
    }

    /// The function that is being built.
    pub fn func(&mut self) -> &mut Function {
        self.importer.builder.func_mut()
    }

    // ---- inputs ----

    /// The number of inputs, including absent ones.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether the node has input `i`.
    pub fn has_input(&self, i: usize) -> bool {
        !matches!(self.inputs.get(i), None | Some(Value::Absent))
    }

    /// The value of input `i`, which must be present.
    ///
    /// # Errors
    /// If it is absent.
    pub fn value(&self, i: usize) -> Result<Value, Problem> {
        match self.inputs.get(i) {
            None | Some(Value::Absent) => {
                Err(Problem::invalid(format!("input {i} is missing, but the operator requires it")))
            }
            Some(value) => Ok(value.clone()),
        }
    }

    /// The value of input `i`; [`Value::Absent`] if the node does not have it.
    pub fn input(&self, i: usize) -> Value {
        self.inputs.get(i).cloned().unwrap_or(Value::Absent)
    }

    /// Input `i`, which must be present, as a tensor expression.
    ///
    /// # Errors
    /// If it is absent.
    pub fn tensor(&mut self, i: usize) -> ExprResult {
        let value = self.value(i)?;
        self.materialize_as(&value, || format!("input {i}"))
    }

    /// The narrow element type ([`Value::Narrow`]) of input `i`, and the tensor that stores its elements; `None` if the
    /// element type is not narrow.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn narrow_tensor(&mut self, i: usize) -> Result<Option<(DataType, Expr)>, Problem> {
        match self.inputs.get(i) {
            Some(Value::Narrow(ty, storage)) => {
                let (ty, storage) = (*ty, storage.clone());
                Ok(Some((ty, self.materialize(&storage)?)))
            }
            _ => Ok(None),
        }
    }

    /// Input `i` as a tensor expression; `None` if the node does not have it.
    ///
    /// # Errors
    /// If it cannot be converted to a tensor.
    pub fn optional_tensor(&mut self, i: usize) -> Result<Option<Expr>, Problem> {
        if self.has_input(i) { self.tensor(i).map(Some) } else { Ok(None) }
    }

    /// All inputs of the node as tensor expressions.
    ///
    /// # Errors
    /// If one is absent.
    pub fn tensors(&mut self) -> Result<Vec<Expr>, Problem> {
        (0..self.len()).map(|i| self.tensor(i)).collect()
    }

    /// The elements of input `i` as symbolic terms; `None` if the input is neither a shape computation nor a small constant.
    pub fn symbolic(&mut self, i: usize) -> Option<SymTensor> {
        let limit = self.importer.limits.shape_elements;
        match self.inputs.get(i)? {
            Value::Symbolic(t) => Some(t.clone()),
            Value::Const(t) => SymTensor::from_constant(&t.clone(), &mut self.func().syms, limit),
            _ => None,
        }
    }

    /// Whether the elements of input `i` are known as symbolic terms, because it is a shape computation or a small integer
    /// constant.
    pub fn is_symbolic(&self, i: usize) -> bool {
        let limit = self.importer.limits.shape_elements;
        match self.inputs.get(i) {
            Some(Value::Symbolic(_)) => true,
            Some(Value::Const(t)) => {
                matches!(t.dtype(), DType::Int64 | DType::Int32 | DType::Bool) && t.numel() <= limit
            }
            _ => false,
        }
    }

    /// Input `i` as a constant tensor; `None` if it is non-constant.
    pub fn constant(&self, i: usize) -> Option<Tensor> {
        let mut value = self.inputs.get(i)?;
        if let Value::Narrow(ty, storage) = value
            && !crate::subbyte_types::is_narrow_float(*ty)
        {
            value = storage;
        }
        match value {
            Value::Const(t) => Some(t.clone()),
            Value::Symbolic(t) => {
                let values = t.constants(&self.importer.builder.func().syms)?;
                let shape: Vec<i64> = t.shape.iter().map(|&d| d as i64).collect();
                integers(&shape, &values, t.dtype).ok()
            }
            Value::Rational(r) => r.constant(&self.importer.builder.func().syms),
            _ => None,
        }
    }

    /// The elements of input `i` as integers; `None` if the input is not constant.
    pub fn const_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.constant(i).and_then(|t| t.to_i64_vec().ok())
    }

    /// The elements of input `i` as floats; `None` if the input is not constant.
    pub fn const_floats(&self, i: usize) -> Option<Vec<f64>> {
        self.constant(i).and_then(|t| t.to_f64_vec().ok())
    }

    /// Converts a value to a tensor expression.
    ///
    /// # Errors
    /// If it is a sequence or absent.
    pub fn materialize(&mut self, value: &Value) -> ExprResult {
        self.materialize_as(value, || "a value that the node uses".into())
    }

    /// Converts a value to a tensor expression. `what` names the value in messages.
    fn materialize_as(&mut self, value: &Value, what: impl FnOnce() -> String) -> ExprResult {
        match value {
            Value::Expr(e) => Ok(*e),
            Value::Const(t) => Ok(self.importer.constant(t)),
            Value::Symbolic(t) => self.symbolic_to_tensor(t),
            Value::Rational(r) => self.rational_to_tensor(r),
            Value::Narrow(ty, storage) if crate::subbyte_types::is_narrow_float(*ty) => {
                let _ = storage;
                let what = what();
                let text = format!(
                    "{what} has the element type {}, which the conversion of this node does not support",
                    ty.as_str_name()
                );
                Err(Problem::unsupported(text).with_help(format!(
                    "convert {what} to a float type with a Cast or DequantizeLinear node"
                )))
            }
            Value::Narrow(_, storage) => self.materialize(storage),
            Value::Sequence(_) => Err(Problem::invalid(format!(
                "{what} must be a tensor, but is a sequence",
                what = what()
            ))),
            Value::Object(_, kind) => {
                let text = format!(
                    "{what} must be a tensor, but is {kind}",
                    what = what(),
                    kind = kind.name()
                );
                Err(Problem::invalid(text))
            }
            Value::Absent | Value::Failed => {
                let value = what();
                Err(Problem::invalid(format!("{value} is missing, but the node requires it")))
            }
        }
    }

    fn symbolic_to_tensor(&mut self, t: &SymTensor) -> ExprResult {
        let shape: Vec<i64> = t.shape.iter().map(|&d| d as i64).collect();
        if let Some(values) = t.constants(&self.func().syms) {
            let tensor = integers(&shape, &values, t.dtype)?;
            return Ok(self.importer.constant(&tensor));
        }
        let flat = if t.elems.iter().all(|&e| self.is_non_negative(e)) {
            let shape = self.func().shape(&t.elems);
            self.op("relax.shape_to_tensor", &[shape])?
        } else {
            self.stack_values(&t.elems)?
        };
        let typed = self.cast(flat, t.dtype)?;
        let dims: Vec<Sym> = shape.iter().map(|&d| self.func().syms.int(d)).collect();
        self.reshape(typed, &dims)
    }

    /// Creates a vector of symbolic terms that may be negative. A shape value cannot contain these
    /// terms, because its elements are sizes.
    fn stack_values(&mut self, elems: &[Sym]) -> ExprResult {
        let mut parts = Vec::with_capacity(elems.len());
        for &elem in elems {
            let one = self.func().syms.int(1);
            let shape = self.func().shape(&[one]);
            let value = self.func().int_value(elem, DType::Int64);
            let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
            parts.push(self.op_with("relax.full", &[shape, value], attrs)?);
        }
        self.concat(&parts, 0)
    }

    /// Whether a term is provably not negative.
    pub fn is_non_negative(&mut self, sym: Sym) -> bool {
        let func = self.func();
        let zero = func.syms.int(0);
        pliant_ops::size_proofs::at_most(func, zero, sym) == Some(true)
    }

    // ---- types ----

    /// The rank that the file declares for output `i` of the node.
    pub fn declared_rank(&self, i: usize) -> Option<usize> {
        self.importer.declared_rank(self.proto.output.get(i)?)
    }

    /// The dims of a tensor of known rank.
    ///
    /// # Errors
    /// If the rank is unknown.
    pub fn dims(&mut self, e: Expr) -> Result<Vec<Sym>, Problem> {
        match self.func().ty(e) {
            TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => Ok(dims.to_vec()),
            _ => Err(self.unknown_rank_problem(e)),
        }
    }

    /// The dims of a tensor whose rank must be at least `min`.
    ///
    /// # Errors
    /// If the rank is lower or unknown.
    pub fn dims_with_min_rank(&mut self, e: Expr, min: usize) -> Result<Vec<Sym>, Problem> {
        let dims = self.dims(e)?;
        if dims.len() >= min {
            return Ok(dims);
        }
        let (what, rank) = (self.tensor_label(e, "an input"), dims.len());
        Err(Problem::invalid(format!("{what} has {rank} dims, but must have at least {min}")))
    }

    /// Replaces dims in the type of a tensor by the dims that `known` contains; `None` keeps a dim.
    /// The new dims are checked at run time.
    ///
    /// # Errors
    /// If the rank of the tensor is unknown.
    pub fn with_dims(&mut self, x: Expr, known: &[Option<Sym>]) -> ExprResult {
        let current = self.dims(x)?;
        let dims: Vec<Sym> =
            current.iter().zip(known).map(|(&current, known)| known.unwrap_or(current)).collect();
        if dims == current {
            return Ok(x);
        }
        let dtype = self.func().ty(x).dtype();
        let ty = self.func().intern(TypeData::tensor(dims, dtype));
        let var = self.importer.builder.match_cast(x, ty, "lv");
        Ok(self.func().var_expr(var))
    }

    /// The rank of a tensor.
    ///
    /// # Errors
    /// If it is unknown.
    pub fn rank(&mut self, e: Expr) -> Result<usize, Problem> {
        let func = self.func();
        let ty = func.expr_ty(e);
        let rank = func.rank_of(ty).map(|r| r as usize);
        rank.ok_or_else(|| self.unknown_rank_problem(e))
    }

    /// The element type of a tensor.
    ///
    /// # Errors
    /// If it is unknown.
    pub fn dtype(&mut self, e: Expr) -> Result<DType, Problem> {
        let dtype = self.func().ty(e).dtype();
        dtype.ok_or_else(|| {
            Problem::unsupported(format!(
                "the element type of {} is not known, but the conversion of the node needs it",
                self.tensor_label(e, "an input")
            ))
        })
    }

    /// The only dim of a vector. `what` names the vector in messages.
    ///
    /// # Errors
    /// If the tensor does not have exactly one dim, or its rank is unknown.
    pub fn vector_length(&mut self, vector: Expr, what: &str) -> Result<Sym, Problem> {
        match self.dims(vector)?[..] {
            [length] => Ok(length),
            ref dims => {
                let text = format!("{what} must be a vector, but has {} dims", dims.len());
                Err(Problem::invalid(text))
            }
        }
    }

    /// Names a tensor in messages, such as `input 1`. If the tensor is not one of the node's non-constant inputs, the name is
    /// `other`.
    pub(crate) fn tensor_label(&self, e: Expr, other: &str) -> String {
        let is_operand = |v: &Value| matches!(v, Value::Expr(input) if *input == e);
        let position = self.inputs.iter().position(is_operand);
        position.map_or_else(|| other.to_owned(), |i| format!("input {i}"))
    }

    /// Creates the error message for a converter that needs a rank that is known only at run time. The user sees it only if the
    /// import of the node cannot be deferred to run time.
    fn unknown_rank_problem(&self, e: Expr) -> Problem {
        Problem::known_only_at_run_time(&format!("the rank of {}", self.tensor_label(e, "an input"))).with_help(
            "declare the rank of the input in the model file: add a value_info entry for it, with a symbol or size for each dim",
        )
    }

    /// Normalizes an axis, which may be negative, to a number from 0 to `rank - 1`.
    ///
    /// # Errors
    /// If it is out of range.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Problem> {
        let r = rank as i64;
        if axis < -r || axis >= r {
            return Err(Problem::invalid(format!("axis {axis} is out of range for rank {rank}")));
        }
        Ok(axis.rem_euclid(r.max(1)) as usize)
    }
}

/// Creates a tensor with the given integer or bool elements.
fn integers(shape: &[i64], values: &[i64], dtype: DType) -> Result<Tensor, Problem> {
    let result = match dtype {
        DType::Int64 => Tensor::from_slice(shape, values),
        DType::Int32 => {
            Tensor::from_slice(shape, &values.iter().map(|&v| v as i32).collect::<Vec<_>>())
        }
        _ => Tensor::from_slice(shape, &values.iter().map(|&v| v != 0).collect::<Vec<_>>()),
    };
    result.map_err(|e| Problem::invalid(e.to_string()))
}
