//! The builtin `unique`, whose result shape depends on the values of its operand.
//!
//! Elements are compared by sort keys, which are unsigned integers. The keys of two elements have
//! the same order as the elements, and are equal if and only if the elements are equal.

use pliant_tensor::{DType, Reserved, Tensor, TensorError, checked_nbytes};

use crate::builtin_operands::{Args, POLL_INTERVAL};
use crate::memory_pool;
use crate::{CheckKind, Value, VmError};

const SIGN: u64 = 1 << 63;
/// The sort key of every NaN. No float that is not NaN has this key.
const NAN_KEY: u64 = u64::MAX;

fn float_key(value: f64) -> u64 {
    // Adding 0.0 maps -0.0 to 0.0, because the two compare equal.
    let bits = (value + 0.0).to_bits();
    match value.is_nan() {
        true => NAN_KEY,
        false if bits & SIGN != 0 => !bits,
        false => bits | SIGN,
    }
}

/// Creates an empty vector with capacity for `len` items. Fails with `OutOfMemory` instead of aborting the process.
fn vec_with_capacity<T>(len: usize) -> Result<Vec<T>, TensorError> {
    let mut list = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    list.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes })?;
    Ok(list)
}

/// Returns the sort keys of all elements of a row-major tensor. NaN is ordered last.
fn keys(tensor: &Tensor) -> Result<Vec<u64>, VmError> {
    let dtype = tensor.dtype();
    if dtype.is_float() {
        return Ok(tensor.to_f64_vec()?.into_iter().map(float_key).collect());
    }
    let signed = if dtype == DType::UInt64 { 0 } else { SIGN };
    Ok(tensor.to_i64_vec()?.into_iter().map(|value| value as u64 ^ signed).collect())
}

/// Creates an int64 tensor with the given values in pooled memory.
fn int64_tensor(shape: &[i64], values: impl IntoIterator<Item = i64>) -> Result<Value, VmError> {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_ne_bytes).collect();
    tensor_of(shape, DType::Int64, &bytes)
}

pub(super) fn tensor_of(shape: &[i64], dtype: DType, bytes: &[u8]) -> Result<Value, VmError> {
    let size = checked_nbytes(shape, dtype)?;
    if size != bytes.len() {
        return Err(TensorError::ByteLengthMismatch { expected: size, actual: bytes.len() }.into());
    }
    let storage = memory_pool::alloc_storage(size)?;
    // SAFETY: the storage is fresh, unshared and at least `size` bytes long.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_ptr(), size) };
    Ok(Value::Tensor(Tensor::from_storage(storage, 0, shape, dtype)?))
}

/// The slices of a tensor along an axis, with the sort keys of the elements. Without an axis, every
/// element is a slice.
struct Slices {
    shape: Vec<i64>,
    axis: usize,
    len: usize,
    /// The product of the sizes of those dims of the sliced tensor that precede the axis. (`inner` is the product of the sizes of
    /// the dims after the axis.)
    outer: usize,
    inner: usize,
    /// The sort keys of the elements, slice by slice.
    keys: Vec<u64>,
    /// Whether a slice that contains NaN differs from every slice, itself included.
    nan_differs: bool,
    _memory: Reserved,
}

/// Reserves the memory that `unique` needs in the memory budget: three 64-bit words per element
/// (value, key, key by slice) and six words per slice (five vectors and the sort buffer). With a
/// dim of 0, a tensor can have more slices than elements.
fn reserve_memory(numel: usize, slices: usize) -> Result<Reserved, TensorError> {
    Reserved::new(numel.saturating_mul(24).saturating_add(slices.saturating_mul(48)))
}

impl Slices {
    fn new(args: Args<'_>, tensor: &Tensor, axis: Option<i64>) -> Result<Slices, VmError> {
        let numel = tensor.numel();
        let Some(axis) = axis else {
            let memory = reserve_memory(numel, numel)?;
            return Ok(Slices {
                shape: vec![numel as i64],
                axis: 0,
                len: numel,
                outer: 1,
                inner: 1,
                keys: keys(tensor)?,
                nan_differs: false,
                _memory: memory,
            });
        };
        let (shape, rank) = (tensor.shape().to_vec(), tensor.ndim() as i64);
        let normal = if axis < 0 { axis.saturating_add(rank) } else { axis };
        let Some(axis) = usize::try_from(normal).ok().filter(|&axis| axis < shape.len()) else {
            let text = format!("unique: a tensor of shape {shape:?} has no axis {axis}");
            return Err(VmError::check(CheckKind::Value, text));
        };
        // The product of a tensor's nonzero dims does not overflow.
        let outer: usize = shape[..axis].iter().map(|&d| d as usize).product();
        let inner: usize = shape[axis + 1..].iter().map(|&d| d as usize).product();
        let len = shape[axis] as usize;
        let memory = reserve_memory(numel, len)?;
        let keys = keys(tensor)?;
        let mut by_slice = Vec::with_capacity(keys.len());
        let mut polled = 0;
        if !keys.is_empty() {
            for i in 0..len {
                for o in 0..outer {
                    let at = (o * len + i) * inner;
                    for part in keys[at..at + inner].chunks(POLL_INTERVAL) {
                        by_slice.extend_from_slice(part);
                        if by_slice.len() >= polled {
                            polled = by_slice.len() + POLL_INTERVAL;
                            args.check_interrupt()?;
                        }
                    }
                }
            }
        }
        let nan_differs = tensor.dtype().is_float() && shape.len() > 1;
        Ok(Slices { shape, axis, len, outer, inner, keys: by_slice, nan_differs, _memory: memory })
    }

    fn width(&self) -> usize {
        self.keys.len().checked_div(self.len).unwrap_or(0)
    }

    fn keys_of(&self, slice: usize) -> &[u64] {
        let width = self.width();
        &self.keys[slice * width..(slice + 1) * width]
    }

    /// Returns groups of equal slices. The groups are sorted by value, and the slices of a group by
    /// position.
    fn groups(&self, args: Args<'_>) -> Result<Groups, VmError> {
        let mut order: Vec<usize> = vec_with_capacity(self.len)?;
        order.extend(0..self.len);
        // A merge sort that polls the interrupt flag between chunks. Each pass sorts chunks of twice the previous size. Both halves
        // of a chunk are already sorted, so the standard sort only merges them. The sort is stable: equal slices keep their order.
        let mut size = POLL_INTERVAL;
        loop {
            for chunk in order.chunks_mut(size) {
                args.check_interrupt()?;
                self.sort(chunk);
            }
            if size >= order.len() {
                break;
            }
            size = size.saturating_mul(2);
        }
        let same = |a: usize, b: usize| {
            let keys = self.keys_of(a);
            keys == self.keys_of(b) && !(self.nan_differs && keys.contains(&NAN_KEY))
        };
        let starts =
            (0..order.len()).filter(|&k| k == 0 || !same(order[k - 1], order[k])).collect();
        Ok(Groups { order, starts })
    }

    fn sort(&self, order: &mut [usize]) {
        if self.width() == 1 {
            order.sort_by_key(|&i| self.keys[i]);
        } else {
            order.sort_by(|&a, &b| self.keys_of(a).cmp(self.keys_of(b)));
        }
    }

    /// Copies the given slices of a row-major tensor to a new tensor.
    fn gather(&self, tensor: &Tensor, slices: &[usize]) -> Result<Value, VmError> {
        let (bytes, row) = (tensor.as_bytes()?, self.inner * tensor.dtype().size());
        let mut out = Vec::with_capacity(slices.len().saturating_mul(self.outer * row));
        if !bytes.is_empty() {
            for o in 0..self.outer {
                for &i in slices {
                    let at = (o * self.len + i) * row;
                    out.extend_from_slice(&bytes[at..at + row]);
                }
            }
        }
        let mut shape = self.shape.clone();
        shape[self.axis] = slices.len() as i64;
        tensor_of(&shape, tensor.dtype(), &out)
    }
}

/// The indices of slices, sorted so that equal slices form groups, and the position at which each group starts.
struct Groups {
    order: Vec<usize>,
    starts: Vec<usize>,
}

impl Groups {
    fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts.get(group + 1).copied().unwrap_or(self.order.len())
    }

    fn first(&self, group: usize) -> usize {
        self.order[self.starts[group]]
    }
}

/// `unique(x, sorted, return_index, return_inverse, return_counts, axis)`: returns the distinct
/// elements, or the distinct slices along `axis`. `axis` is an integer; with an empty tuple or no
/// value, elements are compared. The result is sorted; if `sorted` is false, it is in order of
/// first occurrence. Each `return_*` flag appends an int64 vector to the result, which then is a
/// tuple: the position of the first occurrence of each distinct value, the index of each slice's
/// value, and the number of occurrences of each value. NaN sorts last. NaN elements are equal to
/// each other, but slices of rank 1 or more that contain NaN are all distinct.
pub(super) fn unique(args: Args<'_>) -> Result<Value, VmError> {
    let axis = match args.get(5) {
        None | Some(Value::None) => None,
        Some(Value::Tuple(items)) if items.is_empty() => None,
        Some(_) => Some(args.int(5)?),
    };
    let flag = |i: usize| if i < args.len() { args.int(i).map(|v| v != 0) } else { Ok(i == 1) };
    let tensor = args.tensor(0)?.to_contiguous()?;
    let slices = Slices::new(args, &tensor, axis)?;
    let groups = slices.groups(args)?;
    let mut listed: Vec<usize> = (0..groups.starts.len()).collect();
    if !flag(1)? {
        listed.sort_unstable_by_key(|&g| groups.first(g));
    }
    let firsts: Vec<usize> = listed.iter().map(|&g| groups.first(g)).collect();
    let mut fields = vec![slices.gather(&tensor, &firsts)?];
    let count = listed.len() as i64;
    if flag(2)? {
        fields.push(int64_tensor(&[count], firsts.iter().map(|&i| i as i64))?);
    }
    if flag(3)? {
        let mut inverse = vec![0; slices.len];
        for (number, &g) in (0..).zip(&listed) {
            groups.order[groups.range(g)].iter().for_each(|&i| inverse[i] = number);
        }
        fields.push(int64_tensor(&[slices.len as i64], inverse)?);
    }
    if flag(4)? {
        fields.push(int64_tensor(&[count], listed.iter().map(|&g| groups.range(g).len() as i64))?);
    }
    Ok(match fields.len() {
        1 => fields.remove(0),
        _ => Value::tuple(fields),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use pliant_exec::abi::KernelRuntime;

    use super::*;
    use crate::builtins::nonzero::nonzero;
    use crate::builtins::strided_slice::dynamic_strided_slice;
    use crate::executable_linker::Operand;

    /// Calls a builtin in a run that has already been interrupted.
    fn interrupted(
        builtin: fn(Args<'_>) -> Result<Value, VmError>,
        regs: &[Value],
    ) -> Result<Value, VmError> {
        let operands: Vec<Operand> = (0..regs.len() as u32).map(Operand).collect();
        let flag = AtomicBool::new(true);
        let runtime = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
        let args = Args { name: "test", regs, consts: &[], operands: &operands, runtime: &runtime };
        builtin(args)
    }

    #[test]
    fn builtins_stop_when_the_run_is_interrupted() {
        let vector = |items: &[i64]| {
            Value::Tensor(Tensor::from_slice(&[items.len() as i64], items).unwrap())
        };
        let x = vector(&[3, 1, 2]);
        let one_value = [x.clone(), Value::Int(1)];
        assert!(matches!(interrupted(nonzero, &one_value[..1]), Err(VmError::Interrupted)));
        assert!(matches!(interrupted(unique, &one_value), Err(VmError::Interrupted)));
        let slice = [x, vector(&[0]), vector(&[2]), vector(&[1])];
        assert!(matches!(interrupted(dynamic_strided_slice, &slice), Err(VmError::Interrupted)));
    }

    #[test]
    fn unique_sorts_many_chunks() {
        let numbers: Vec<i64> =
            (0..5 * POLL_INTERVAL as i64 + 7).map(|i| (i * 7919) % 1_000_003 / 3).collect();
        let tensor = Tensor::from_slice(&[numbers.len() as i64], &numbers).unwrap();
        let runtime = KernelRuntime::serial();
        let regs = [Value::Tensor(tensor.clone())];
        let args =
            Args { name: "test", regs: &regs, consts: &[], operands: &[], runtime: &runtime };
        let groups = Slices::new(args, &tensor, None).unwrap().groups(args).unwrap();
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&i| numbers[i]);
        assert_eq!(groups.order, order);
    }
}
