//! Slices with dynamic bounds.

use pliant_tensor::{Reserved, Tensor, checked_nbytes};

use super::dynamic::tensor_of;
use crate::args::{Args, POLL_INTERVAL};
use crate::{CheckKind, Value, VmError};

/// First index, step and length of one dim's slice.
struct Part {
    first: i64,
    step: i64,
    len: i64,
}

/// The slice `begin:end:step` of a dim, with Python's semantics.
fn part(dim: i64, begin: i64, end: i64, step: i64) -> Part {
    let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let bound = |b: i64| (if b < 0 { b.saturating_add(dim) } else { b }).clamp(low, high);
    let (first, last) = (bound(begin), bound(end));
    let span = if step > 0 { last - first } else { first - last };
    let size = step.unsigned_abs().min(i64::MAX as u64) as i64;
    // Both values are at most the size of the dim, so nothing overflows.
    let len = if span <= 0 { 0 } else { (span - 1) / size + 1 };
    Part { first, step, len }
}

fn parts(args: Args<'_>, tensor: &Tensor) -> Result<Vec<Part>, VmError> {
    let fail = |text: String| VmError::check(CheckKind::Value, text);
    let names = ["begin", "end", "strides"];
    let mut lists = Vec::with_capacity(3);
    for (i, name) in names.into_iter().enumerate() {
        let list = args.tensor(i + 1)?.to_i64_vec()?;
        if list.len() != tensor.ndim() {
            let (n, rank) = (list.len(), tensor.ndim());
            return Err(fail(format!(
                "relax.dynamic_strided_slice: {name} has {n} elements for a tensor of rank {rank}"
            )));
        }
        lists.push(list);
    }
    let mut parts = Vec::with_capacity(tensor.ndim());
    for (d, &dim) in tensor.shape().iter().enumerate() {
        if lists[2][d] == 0 {
            return Err(fail(format!("relax.dynamic_strided_slice: the stride of dim {d} is 0")));
        }
        parts.push(part(dim, lists[0][d], lists[1][d], lists[2][d]));
    }
    Ok(parts)
}

/// `dynamic_strided_slice(x, begin, end, strides)`: slices each dim.
pub(super) fn dynamic_strided_slice(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?.to_contiguous()?;
    let parts = parts(args, &tensor)?;
    let shape: Vec<i64> = parts.iter().map(|p| p.len).collect();
    let (size, item) = (checked_nbytes(&shape, tensor.dtype())?, tensor.dtype().size());
    let bytes = tensor.as_bytes()?;
    let _copy = Reserved::new(size)?;
    let mut out = Vec::with_capacity(size);
    let mut index = vec![0i64; shape.len()];
    while out.len() < size {
        if out.len().is_multiple_of(POLL_INTERVAL * item) {
            args.check_interrupt()?;
        }
        let position = parts
            .iter()
            .zip(tensor.shape())
            .zip(&index)
            .fold(0, |at, ((p, &dim), &i)| at * dim + p.first + i * p.step);
        let at = position as usize * item;
        out.extend_from_slice(&bytes[at..at + item]);
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
    tensor_of(&shape, tensor.dtype(), &out)
}
