//! Builtins that return properties of a tensor, or view its memory as another tensor.

use pliant_tensor::Tensor;

use crate::args::Args;
use crate::{CheckKind, Value, VmError};

/// The entry for one axis of a list with one entry per dim, such as shape or strides.
fn at(args: Args<'_>, list: fn(&Tensor) -> &[i64]) -> Result<Value, VmError> {
    let (tensor, axis) = (args.tensor(0)?, args.int(1)?);
    let entry = usize::try_from(axis).ok().and_then(|i| list(tensor).get(i).copied());
    entry.map(Value::Int).ok_or_else(|| {
        let text = format!("axis is {axis}, but the tensor has {} dims", tensor.ndim());
        VmError::check(CheckKind::Value, text)
    })
}

/// `shape_i(tensor, axis)`.
pub(super) fn shape_i(args: Args<'_>) -> Result<Value, VmError> {
    at(args, Tensor::shape)
}

/// `stride_i(tensor, axis)`, in elements.
pub(super) fn stride_i(args: Args<'_>) -> Result<Value, VmError> {
    at(args, Tensor::strides)
}

/// `ndim(tensor)`.
pub(super) fn ndim(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(args.tensor(0)?.ndim() as i64))
}

/// `dtype_code(tensor)`: DLPack's type code.
pub(super) fn dtype_code(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(i64::from(args.tensor(0)?.dtype().to_dlpack().0)))
}

/// `dtype_bits(tensor)`.
pub(super) fn dtype_bits(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(i64::from(args.tensor(0)?.dtype().bits())))
}

/// `dtype_lanes(tensor)`: always 1, because there are no vector element types.
pub(super) fn dtype_lanes(args: Args<'_>) -> Result<Value, VmError> {
    args.tensor(0).map(|_| Value::Int(1))
}

/// `byte_offset(tensor)`: DLPack's `byte_offset`. It is 0 for tensors of programs.
pub(super) fn byte_offset(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(args.tensor(0)?.dl().byte_offset as i64))
}

/// `elem_offset(tensor)`: the byte offset divided by the element size.
pub(super) fn elem_offset(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    Ok(Value::Int(tensor.dl().byte_offset as i64 / tensor.dtype().size() as i64))
}

/// `tensor_view(tensor, shape, dtype, offset in bytes)`: a view of the tensor's memory. Each of the
/// last three operands may be `None` or `()` to keep the tensor's own.
pub(super) fn tensor_view(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    let given = |i: usize| match args.get(i) {
        None | Some(Value::None) => false,
        Some(Value::Tuple(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let shape = if given(1) { args.shape(1)? } else { tensor.shape() };
    let dtype = if given(2) { args.dtype(2)? } else { tensor.dtype() };
    let offset = if given(3) { args.int(3)? } else { 0 };
    Ok(Value::Tensor(tensor.reinterpreted(shape, dtype, offset)?))
}
