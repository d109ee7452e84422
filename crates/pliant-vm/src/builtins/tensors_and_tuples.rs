//! Builtins that create storages, tensors, tuples and closures, or access their contents.

use pliant_tensor::{Tensor, TensorError, checked_nbytes};

use crate::builtin_operands::Args;
use crate::interpreter::condition;
use crate::memory_pool;
use crate::{CheckKind, Value, VmError};

/// `alloc_storage(size, device, dtype, scope)`: allocates a storage. `size` is a number of bytes (an integer or a shape of one dim)
/// or the shape of a tensor of `dtype` (two or more dims). `device` and `scope` are ignored, because there is only CPU memory.
pub(super) fn alloc_storage(args: Args<'_>) -> Result<Value, VmError> {
    let bytes = match args.value(0)? {
        Value::Shape(shape) if shape.len() != 1 => checked_nbytes(shape, args.dtype(2)?)?,
        _ => bytes(args)?,
    };
    Ok(Value::Storage(memory_pool::alloc_storage(bytes)?))
}

/// Returns the number of bytes in operand 0, which is an integer or a shape of one dim.
pub(crate) fn bytes(args: Args<'_>) -> Result<usize, VmError> {
    match args.value(0)? {
        Value::Shape(shape) if shape.len() == 1 => size(shape[0]),
        _ => size(args.int(0)?),
    }
}

fn size(bytes: i64) -> Result<usize, VmError> {
    usize::try_from(bytes).map_err(|_| {
        let text =
            format!("cannot allocate a storage of {bytes} bytes, because the size is negative");
        VmError::check(CheckKind::Shape, text)
    })
}

/// `alloc_tensor(storage, offset, shape, dtype)`: creates a zero-filled tensor in a storage, at an offset in bytes.
pub(super) fn alloc_tensor(args: Args<'_>) -> Result<Value, VmError> {
    alloc_tensor_unwritten(args).inspect(clear)
}

/// Creates a tensor in a storage as [`alloc_tensor`] does, but without initializing the elements.
/// The program must write the elements before it reads them.
pub(crate) fn alloc_tensor_unwritten(args: Args<'_>) -> Result<Value, VmError> {
    let (storage, shape, dtype) = (args.storage(0)?, args.shape(2)?, args.dtype(3)?);
    let offset = size(args.int(1)?)?;
    Ok(Value::Tensor(Tensor::from_storage(storage.clone(), offset, shape, dtype)?))
}

/// `alloc_tensor_with_storage(bytes, shape, dtype)`: creates a zero-filled tensor in its own storage of `bytes` bytes.
pub(super) fn alloc_tensor_with_storage(args: Args<'_>) -> Result<Value, VmError> {
    alloc_own_tensor_unwritten(args).inspect(clear)
}

/// Creates a tensor in its own storage as [`alloc_tensor_with_storage`] does, but without
/// initializing the elements. The program must write the elements before it reads them.
pub(crate) fn alloc_own_tensor_unwritten(args: Args<'_>) -> Result<Value, VmError> {
    let (shape, dtype) = (args.shape(1)?, args.dtype(2)?);
    let storage = memory_pool::alloc_storage(bytes(args)?)?;
    Ok(Value::Tensor(Tensor::from_storage(storage, 0, shape, dtype)?))
}

/// Fills a newly allocated tensor with zeros.
pub(crate) fn clear(value: &Value) {
    let Value::Tensor(tensor) = value else { return };
    // SAFETY: a newly allocated tensor is contiguous, so `nbytes` bytes at its address are
    // writable. No other thread accesses them. All-zero bytes are valid for every element type.
    unsafe { tensor.data_ptr().cast::<u8>().write_bytes(0, tensor.nbytes()) };
}

/// `reshape(tensor, shape, symbolic?)`: returns a view if the tensor is row-major, else a copy. `symbolic` is the symbolic shape as
/// a string for error messages.
pub(super) fn reshape(args: Args<'_>) -> Result<Value, VmError> {
    let (tensor, shape) = (args.tensor(0)?, args.shape(1)?);
    let reshaped = tensor.to_contiguous()?.reshape(shape).map_err(|error| match error {
        TensorError::ShapeMismatch { .. } => {
            let (numel, comma) = (tensor.numel(), if shape.len() == 1 { "," } else { "" });
            let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
            let plural = if numel == 1 { " does" } else { "s do" };
            let dims = dims.join(", ");
            let symbols = match args.text_or(2, "") {
                "" => String::new(),
                text => format!("{text} = "),
            };
            let text =
                format!("reshape: {numel} element{plural} not fit shape {symbols}({dims}{comma})");
            VmError::check(CheckKind::Shape, text)
        }
        other => other.into(),
    })?;
    Ok(Value::Tensor(reshaped))
}

/// `copy(value)` and `to_device(value, ..)`: return the operand unchanged, without copying tensors.
pub(super) fn identity(args: Args<'_>) -> Result<Value, VmError> {
    args.value(0).cloned()
}

/// `copy_tensor(tensor)`: copies the tensor into new memory.
pub(super) fn copy_tensor(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Tensor(args.tensor(0)?.copy()?))
}

/// Implements builtins without a result, which return [`Value::None`]: `null_value()`, and `kill_object` (with its aliases
/// `free_tensor` and `free_storage`) of a constant.
pub(super) fn none(_args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::None)
}

/// `tuple_getitem(tuple, index)`: returns the item of the tuple with the given index.
pub(super) fn tuple_getitem(args: Args<'_>) -> Result<Value, VmError> {
    let (items, index) = (args.tuple(0)?, args.int(1)?);
    usize::try_from(index).ok().and_then(|i| items.get(i)).cloned().ok_or_else(|| {
        let text =
            format!("tuple index {index} is out of range: the tuple has {} items", items.len());
        VmError::check(CheckKind::Value, text)
    })
}

/// `make_tuple(values..)`: creates a tuple of the operands.
pub(super) fn make_tuple(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::tuple(args.iter().cloned()))
}

/// `read_if_cond(value)`: returns the truth value of a scalar or of a tensor with one element.
pub(super) fn read_if_cond(args: Args<'_>) -> Result<Value, VmError> {
    condition(args.value(0)?).map(Value::Bool)
}

/// `make_closure(function, captured..)`: creates a closure. A call of the closure passes the
/// arguments and then the captured values to the function.
pub(super) fn make_closure(args: Args<'_>) -> Result<Value, VmError> {
    Ok(Value::Func(args.func(0)?.bind(args.iter().skip(1).cloned())))
}

/// `debug_print(values..)`: writes the values to standard error.
pub(super) fn debug_print(args: Args<'_>) -> Result<Value, VmError> {
    let text: Vec<String> = args.iter().map(|value| format!("{value:?}")).collect();
    eprintln!("{}", text.join(" "));
    Ok(Value::None)
}
