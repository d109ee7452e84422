//! Converts values to arguments of loop functions and to conditions of branches. Rejects arguments of the wrong kind, and
//! read-only tensors that the function writes.

use pliant_exec::LoopFuncParam;
use pliant_tensor::{DType, Tensor};

use crate::runtime_value::holds_int;
use crate::{Value, VmError};

/// Encodes `value` as the word that a loop function receives for a parameter of kind `expected`.
/// Returns `None` if the value has the wrong kind.
pub(super) fn encode_arg(value: &Value, expected: LoopFuncParam) -> Option<u64> {
    match (value, expected) {
        (Value::Tensor(tensor), LoopFuncParam::Tensor { dtype, ndim, written, .. }) => {
            let fits = dtype.is_none_or(|dtype| dtype == tensor.dtype())
                && ndim.is_none_or(|ndim| usize::from(ndim) == tensor.ndim())
                && !(written && tensor.is_read_only());
            fits.then_some(std::ptr::from_ref(tensor.dl()) as u64)
        }
        (Value::Tensor(tensor), LoopFuncParam::Any) => Some(std::ptr::from_ref(tensor.dl()) as u64),
        (Value::Int(value), LoopFuncParam::Any) => Some(*value as u64),
        (Value::Int(value), LoopFuncParam::Int(dtype)) => {
            holds_int(dtype, *value).then_some(*value as u64)
        }
        (Value::Int(value), LoopFuncParam::Float) => Some((*value as f64).to_bits()),
        (Value::Int(value @ (0 | 1)), LoopFuncParam::Bool) => Some(*value as u64),
        (Value::Float(value), LoopFuncParam::Float | LoopFuncParam::Any) => Some(value.to_bits()),
        (Value::Bool(value), LoopFuncParam::Bool | LoopFuncParam::Int(_) | LoopFuncParam::Any) => {
            Some(u64::from(*value))
        }
        _ => None,
    }
}

/// Copies a tensor to row-major, aligned memory if the loop function requires such memory. Returns
/// `None` if no copy is needed.
#[cold]
pub(super) fn row_major_copy(
    tensor: &Tensor,
    expected: LoopFuncParam,
) -> Result<Option<Tensor>, VmError> {
    match expected {
        LoopFuncParam::Tensor { strided: true, .. } if tensor.is_aligned() => Ok(None),
        // A write to a copy would be lost.
        LoopFuncParam::Tensor { written: true, .. } => Err(VmError::type_error(format!(
            "a loop function writes to an argument that is not row-major ({tensor:?} with strides {:?}); pass a row-major tensor",
            tensor.strides()
        ))),
        _ => Ok(Some(tensor.copy()?)),
    }
}

/// Returns the truth value of a branch condition, which is a bool or integer scalar, or a tensor with a single bool or
/// integer element.
pub(crate) fn condition(value: &Value) -> Result<bool, VmError> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::Int(value) => Ok(*value != 0),
        Value::Tensor(tensor) if tensor.numel() == 1 && !tensor.dtype().is_float() => {
            let is_true = match (tensor.dtype(), tensor.as_bytes()) {
                // Fast path for the most common dtype.
                (DType::Bool, Ok(bytes)) => bytes[0] != 0,
                _ => tensor.to_i64_vec()?[0] != 0,
            };
            Ok(is_true)
        }
        other => Err(VmError::type_error(format!(
            "the condition of a branch must be a bool or integer scalar, but is {other:?}"
        ))),
    }
}
