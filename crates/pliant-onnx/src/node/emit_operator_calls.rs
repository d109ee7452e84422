//! Emits calls of Pliant's operators. The result of each call is bound to a variable.

use pliant_ir::op::InferError;
use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType, OpRegistry};
use pliant_ops::registry;
use pliant_sym::Sym;
use pliant_tensor::{Element, Tensor};

use super::{ExprResult, Node};
use crate::import_error::Problem;
use crate::imported_value::Value;

impl Node<'_, '_> {
    /// Emits a call of an operator with default attributes.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn op(&mut self, name: &str, args: &[Expr]) -> ExprResult {
        self.op_with(name, args, Attrs::default())
    }

    /// Emits a call of an operator with the given attributes.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn op_with(&mut self, name: &str, args: &[Expr], attrs: Attrs) -> ExprResult {
        let op = registry().lookup(name).ok_or_else(|| {
            Problem::unsupported(format!(
                "the node needs the operator {name}, which this version of Pliant lacks"
            ))
        })?;
        let call = self.importer.builder.call_op(op, args, attrs, &[]).map_err(infer_problem)?;
        if self.importer.symbol_constraints.tracks_operands(self.importer.builder.func(), args) {
            let args: Vec<Expr> =
                args.iter().map(|&a| self.importer.builder.resolve_absent(a)).collect();
            self.importer.symbol_constraints.record_call(
                self.importer.builder.func_mut(),
                (call, &args),
                self.importer.origin,
            );
        }
        Ok(self.importer.bind(call, self.proto))
    }

    /// Creates a scalar constant as a tensor expression.
    pub fn scalar<T: Element>(&mut self, value: T) -> ExprResult {
        let tensor = Tensor::scalar(value).map_err(|e| Problem::invalid(e.to_string()))?;
        Ok(self.importer.constant(&tensor))
    }

    /// Creates a scalar constant of the given dtype, to which the value is converted.
    ///
    /// # Errors
    /// If the tensor cannot be created.
    pub fn scalar_as(&mut self, value: f64, dtype: DType) -> ExprResult {
        let tensor = scalar_tensor(value, dtype).map_err(|e| Problem::invalid(e.to_string()))?;
        Ok(self.importer.constant(&tensor))
    }

    /// Emits the reinterpretation of the bits of a tensor as elements of a data type of the same size.
    ///
    /// # Errors
    /// If the sizes of the data types differ.
    pub fn bitcast(&mut self, x: Expr, dtype: DType) -> ExprResult {
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        // Loop functions convert 16-bit floats to float32 when they load them.
        let operator = match dtype.is_half() || self.dtype(x).is_ok_and(DType::is_half) {
            true => "relax.memory.view",
            false => "relax.bitcast",
        };
        self.op_with(operator, &[x], attrs)
    }

    /// Emits a cast of a tensor to another element type.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn cast(&mut self, x: Expr, dtype: DType) -> ExprResult {
        if self.func().ty(x).dtype() == Some(dtype) {
            return Ok(x);
        }
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        let result = self.op_with("relax.astype", &[x], attrs)?;
        if dtype == DType::Int64
            && let Some(known) = self.known_elements(&Value::Expr(x))
        {
            self.record_known_elements(result, known);
        }
        Ok(result)
    }

    /// Emits a computation that runs in float32 if `x` is a 16-bit float, because the squares of 16-bit floats may overflow. The
    /// result is cast back.
    pub fn in_wide_float(
        &mut self,
        x: Expr,
        compute: impl FnOnce(&mut Self, Expr) -> ExprResult,
    ) -> ExprResult {
        let dtype = self.dtype(x)?;
        let wide = self.cast(x, pliant_ops::shared_operator_rules::wide_float(dtype))?;
        let y = compute(self, wide)?;
        self.cast(y, dtype)
    }

    /// Emits a reshape of a tensor to the given dims.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn reshape(&mut self, x: Expr, dims: &[Sym]) -> ExprResult {
        if self.func().ty(x).dims() == Some(dims) {
            return Ok(x);
        }
        let shape = self.func().shape(dims);
        self.op("relax.reshape", &[x, shape])
    }

    /// Emits a concatenation of tensors along an axis.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn concat(&mut self, parts: &[Expr], axis: i64) -> ExprResult {
        if let [one] = parts {
            return Ok(*one);
        }
        let tuple = self.func().tuple(parts);
        self.op_with("relax.concat", &[tuple], ints_attr("axis", axis))
    }

    /// Emits a transpose of a tensor: dim `k` of the result is dim `axes[k]` of `x`.
    ///
    /// # Errors
    /// If type inference fails.
    pub fn permute(&mut self, x: Expr, axes: &[usize]) -> ExprResult {
        if axes.iter().enumerate().all(|(i, &a)| i == a) {
            return Ok(x);
        }
        let axes = AttrValue::ints(axes.iter().map(|&a| a as i64));
        self.op_with("relax.permute_dims", &[x], Attrs::default().with("axes", axes))
    }
}

/// Creates attributes that contain only the integer attribute `key` with the value `value`.
pub fn ints_attr(key: &str, value: i64) -> Attrs {
    Attrs::default().with(key, AttrValue::Int(value))
}

/// Converts an error of type inference to a problem of the model.
pub(crate) fn infer_problem(e: InferError) -> Problem {
    let problem = Problem::invalid(e.message);
    match e.help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

fn scalar_tensor(value: f64, dtype: DType) -> Result<Tensor, pliant_tensor::TensorError> {
    match dtype {
        DType::Float64 => Tensor::scalar(value),
        DType::Float32 => Tensor::scalar(value as f32),
        DType::Float16 => Tensor::scalar(pliant_tensor::round_to_f16(value)),
        DType::BFloat16 => Tensor::scalar(pliant_tensor::round_to_bf16(value)),
        DType::Bool => Tensor::scalar(value != 0.0),
        DType::Int8 => Tensor::scalar(value as i8),
        DType::Int16 => Tensor::scalar(value as i16),
        DType::Int32 => Tensor::scalar(value as i32),
        DType::Int64 => Tensor::scalar(value as i64),
        DType::UInt8 => Tensor::scalar(value as u8),
        DType::UInt16 => Tensor::scalar(value as u16),
        DType::UInt32 => Tensor::scalar(value as u32),
        DType::UInt64 => Tensor::scalar(value as u64),
    }
}
