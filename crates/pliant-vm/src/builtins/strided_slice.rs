//! The builtin `dynamic_strided_slice`, which slices a tensor with non-constant bounds.

use pliant_tensor::{Tensor, TensorError, checked_nbytes};

use crate::builtin_operands::Args;
use crate::{CheckKind, Value, VmError, memory_pool};

/// The elements of a sliced dim: the first index, the step and the number of elements.
struct DimSlice {
    first: i64,
    step: i64,
    len: i64,
}

/// Converts the slice `begin:end:step` of a dim of size `dim` to a [`DimSlice`], with Python's semantics.
fn slice_dim(dim: i64, begin: i64, end: i64, step: i64) -> DimSlice {
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let bound = |b: i64| (if b < 0 { b.saturating_add(dim) } else { b }).clamp(low, high);
    let (first, last) = (bound(begin), bound(end));
    let span = if step > 0 { last - first } else { first - last };
    let size = step.unsigned_abs().min(i64::MAX as u64) as i64;
    // Both values are at most the size of the dim, so the sum cannot overflow.
    let len = if span <= 0 { 0 } else { (span - 1) / size + 1 };
    DimSlice { first, step, len }
}

fn dim_slices(args: Args<'_>, tensor: &Tensor) -> Result<Vec<DimSlice>, VmError> {
    let fail = |text: String| VmError::check(CheckKind::Value, text);
    let names = ["begin", "end", "strides"];
    let mut lists = Vec::with_capacity(3);
    for (i, name) in names.into_iter().enumerate() {
        let list = args.tensor(i + 1)?.to_i64_vec()?;
        if list.len() != tensor.ndim() {
            let (n, rank) = (list.len(), tensor.ndim());
            return Err(fail(format!(
                "relax.dynamic_strided_slice: the operand '{name}' must have one element for each of the {rank} dims of the tensor, but has {n}"
            )));
        }
        lists.push(list);
    }
    let mut parts = Vec::with_capacity(tensor.ndim());
    for (d, &dim) in tensor.shape().iter().enumerate() {
        if lists[2][d] == 0 {
            return Err(fail(format!(
                "relax.dynamic_strided_slice: the stride of dim {d} is 0, expected a nonzero integer"
            )));
        }
        parts.push(slice_dim(dim, lists[0][d], lists[1][d], lists[2][d]));
    }
    Ok(parts)
}

/// `dynamic_strided_slice(x, begin, end, strides)`: slices every dim of `x`, as
/// `x[begin:end:stride]` does in Python. `begin`, `end` and `strides` are int64 vectors with one
/// element per dim.
pub(super) fn dynamic_strided_slice(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    let parts = dim_slices(args, tensor)?;
    let list = |of: fn(&DimSlice) -> i64| -> Vec<i64> { parts.iter().map(of).collect() };
    let shape = list(|p| p.len);
    let view = tensor.slice(&list(|p| p.first), &list(|p| p.step), &shape)?;
    let storage = memory_pool::alloc_storage(checked_nbytes(&shape, tensor.dtype())?)?;
    let out = Tensor::from_storage(storage, 0, &shape, tensor.dtype())?;
    let rows = shape.first().copied().unwrap_or(1);
    let row = view.numel() as i64 / rows.max(1);
    let block = (POLL_ELEMENTS / row.max(1)).max(1);
    for first in (0..rows).step_by(block as usize) {
        args.check_interrupt()?;
        let part = |t| rows_of(t, first, block.min(rows - first));
        // SAFETY: the storage is fresh and unshared.
        unsafe { part(&out)?.copy_from(&part(&view)?) }?;
    }
    Ok(Value::Tensor(out))
}

/// The number of elements that are copied between two polls of the interrupt flag.
const POLL_ELEMENTS: i64 = 1 << 24;

/// Returns a view of `count` rows of a tensor, starting at row `first`. A scalar is returned unchanged.
fn rows_of(t: &Tensor, first: i64, count: i64) -> Result<Tensor, TensorError> {
    let mut shape = t.shape().to_vec();
    let Some(rows) = shape.first_mut() else { return Ok(t.clone()) };
    *rows = count;
    let mut start = vec![0; shape.len()];
    start[0] = first;
    t.slice(&start, &vec![1; shape.len()], &shape)
}
