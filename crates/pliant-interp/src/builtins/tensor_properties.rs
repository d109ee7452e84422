//! Builtins that return a property of a tensor, or view its memory as another tensor.

use super::Args;
use crate::InterpError;
use crate::Value;
use crate::interp_error::Result;

/// `inspect.*(tensor, axis)`: returns a property of a tensor, such as its rank. `name` is the
/// builtin that selects the property; `None` if there is no builtin of this name.
pub(super) fn inspect(name: &str, a: Args<'_>) -> Option<Result<Value>> {
    let tensor = match a.tensor(0) {
        Ok(tensor) => tensor,
        Err(e) => return Some(Err(e)),
    };
    let entry = |list: &[i64]| {
        let axis = a.int(1)?;
        let entry = usize::try_from(axis).ok().and_then(|i| list.get(i).copied());
        entry.map(Value::Int).ok_or_else(|| {
            let rank = tensor.ndim();
            InterpError::check(format!("{name}: axis is {axis}, but the tensor has {rank} dims"))
        })
    };
    let dtype = tensor.dtype();
    Some(match name.strip_prefix("inspect.")? {
        "shape_i" => entry(tensor.shape()),
        "stride_i" => entry(tensor.strides()),
        "ndim" => Ok(Value::Int(tensor.ndim() as i64)),
        "dtype_code" => Ok(Value::Int(i64::from(dtype.to_dlpack().0))),
        "dtype_bits" => Ok(Value::Int(i64::from(dtype.bits()))),
        "dtype_lanes" => Ok(Value::Int(1)),
        "byte_offset" => Ok(Value::Int(tensor.dl().byte_offset as i64)),
        "elem_offset" => Ok(Value::Int(tensor.dl().byte_offset as i64 / dtype.size() as i64)),
        _ => return None,
    })
}

/// `tensor_view(tensor, shape, dtype, offset)`: returns a view of the tensor's memory from byte
/// `offset` on. The default shape and dtype are those of the tensor, and the default offset is 0.
pub(super) fn tensor_view(a: Args<'_>) -> Result<Value> {
    let tensor = a.tensor(0)?;
    let is_present = |i: usize| match a.0.get(i) {
        None | Some(Value::None) => false,
        Some(Value::Tuple(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let shape = if is_present(1) { a.shape(1)? } else { tensor.shape() };
    let dtype = if is_present(2) { a.dtype(2)? } else { tensor.dtype() };
    let offset = if is_present(3) { a.int(3)? } else { 0 };
    Ok(tensor.reinterpreted(shape, dtype, offset)?.into())
}
