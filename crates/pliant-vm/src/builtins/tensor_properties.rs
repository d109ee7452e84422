//! Builtins that return a property of a tensor, or view its memory as another tensor.

use pliant_tensor::Tensor;

use crate::builtin_operands::Args;
use crate::{CheckKind, Value, VmError};

/// Returns one entry of a list with one number per dim, such as the shape or the strides. Operand 1
/// is the axis.
fn dim_entry(args: Args<'_>, list: fn(&Tensor) -> &[i64]) -> Result<Value, VmError> {
    let (tensor, axis) = (args.tensor(0)?, args.int(1)?);
    let entry = usize::try_from(axis).ok().and_then(|i| list(tensor).get(i).copied());
    entry.map(Value::Int).ok_or_else(|| {
        let (name, rank) = (args.name, tensor.ndim());
        let text = format!("{name}: axis is {axis}, but the tensor has {rank} dims");
        VmError::check(CheckKind::Value, text)
    })
}

/// `shape_i(tensor, axis)`: returns the size of one dim.
pub(super) fn shape_i(args: Args<'_>) -> Result<Value, VmError> {
    dim_entry(args, Tensor::shape)
}

/// `stride_i(tensor, axis)`: returns the stride of one dim, in elements.
pub(super) fn stride_i(args: Args<'_>) -> Result<Value, VmError> {
    dim_entry(args, Tensor::strides)
}

/// `ndim(tensor)`: returns the rank of the tensor.
pub(super) fn ndim(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(args.tensor(0)?.ndim() as i64))
}

/// `dtype_code(tensor)`: returns DLPack's type code of the elements.
pub(super) fn dtype_code(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(i64::from(args.tensor(0)?.dtype().to_dlpack().0)))
}

/// `dtype_bits(tensor)`: returns the size of an element in bits.
pub(super) fn dtype_bits(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(i64::from(args.tensor(0)?.dtype().bits())))
}

/// `dtype_lanes(tensor)`: always returns 1, because vector element types are not supported.
pub(super) fn dtype_lanes(args: Args<'_>) -> Result<Value, VmError> {
    args.tensor(0).map(|_| Value::Int(1))
}

/// `byte_offset(tensor)`: returns DLPack's `byte_offset` of the tensor; 0 for tensors that a program created.
pub(super) fn byte_offset(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Int(args.tensor(0)?.dl().byte_offset as i64))
}

/// `elem_offset(tensor)`: returns the byte offset divided by the element size.
pub(super) fn elem_offset(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    Ok(Value::Int(tensor.dl().byte_offset as i64 / tensor.dtype().size() as i64))
}

/// `tensor_view(tensor, shape, dtype, offset)`: returns a view of the tensor's memory at an offset
/// in bytes. If one of the last three operands is `None` or `()`, the view has the tensor's own
/// shape, dtype or offset.
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
