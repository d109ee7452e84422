//! `vm.builtin.nonzero`: counts the nonzero elements of each chunk in parallel, then writes their indices in parallel.

use std::ops::{BitAnd, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_exec::abi::KernelRuntime;
use pliant_pool::Team;
use pliant_tensor::{DType, Tensor, TensorError, checked_nbytes};

use crate::builtin_operands::Args;
use crate::memory_pool;
use crate::{Value, VmError};

/// The number of elements in a chunk. The positions of a chunk's nonzero elements fit in the L1
/// cache.
const CHUNK: usize = 4096;
/// The number of adjacent elements that are skipped together if all of them are zero.
const BLOCK: usize = 64;

/// `nonzero(x)`: returns the indices of the nonzero elements of `x` in row-major order, as an int64
/// tensor of shape (rank of x, count). NaN is nonzero.
pub(super) fn nonzero(args: Args<'_>) -> Result<Value, VmError> {
    let tensor = args.tensor(0)?;
    let tensor = if tensor.is_row_major_aligned() { tensor.clone() } else { tensor.copy()? };
    // Shift out the sign bit of floats, because -0.0 is zero.
    let shift = u32::from(tensor.dtype().is_float());
    match tensor.dtype().size() {
        1 => indices(args, &tensor, u8::MAX),
        2 => indices(args, &tensor, u16::MAX >> shift),
        4 => indices(args, &tensor, u32::MAX >> shift),
        _ => indices(args, &tensor, u64::MAX >> shift),
    }
}

/// An unsigned integer type that contains the bits of an element.
trait ElementBits: Copy + Default + PartialEq + BitAnd<Output = Self> + Sync {}

impl<T: Copy + Default + PartialEq + BitAnd<Output = T> + Sync> ElementBits for T {}

#[inline]
fn is_set<T: ElementBits>(bits: T, mask: T) -> bool {
    bits & mask != T::default()
}

/// Calls `body` with the index of each chunk, in parallel. Stops and returns an error if the run was interrupted.
fn in_parallel(
    runtime: &KernelRuntime,
    chunks: usize,
    body: &(dyn Fn(usize) + Sync),
) -> Result<(), VmError> {
    // SAFETY: the flag outlives the runtime.
    let interrupt = unsafe { &*runtime.interrupt };
    let range = |chunks: Range<usize>| {
        chunks.take_while(|_| !interrupt.load(Ordering::Relaxed)).for_each(body);
    };
    // SAFETY: the team of a runtime is null, or it outlives the runtime.
    match unsafe { runtime.team.cast::<Team>().as_ref() } {
        Some(team) => team.parallel_for(chunks, 1, &range),
        None => range(0..chunks),
    }
    crate::builtin_operands::poll(runtime)
}

fn indices<T: ElementBits>(args: Args<'_>, tensor: &Tensor, mask: T) -> Result<Value, VmError> {
    let dims = tensor.shape();
    let elements: &[T] = match tensor.numel() {
        0 => &[],
        // SAFETY: the tensor is row-major and aligned, and its elements have the size of T, of which all bits are valid.
        len => unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), len) },
    };
    let chunks = elements.len().div_ceil(CHUNK);
    let chunk = |c: usize| &elements[c * CHUNK..elements.len().min((c + 1) * CHUNK)];
    let counts = counters(chunks)?;
    in_parallel(args.runtime, chunks, &|c| {
        let count = chunk(c).iter().filter(|&&bits| is_set(bits, mask)).count();
        counts[c].store(count, Ordering::Relaxed);
    })?;
    let mut total = 0;
    for count in &counts {
        let end = total + count.load(Ordering::Relaxed);
        count.store(total, Ordering::Relaxed);
        total = end;
    }
    let shape = [dims.len() as i64, total as i64];
    let storage = memory_pool::alloc_storage(checked_nbytes(&shape, DType::Int64)?)?;
    let rows = Rows { first: storage.as_ptr().cast(), len: total, dims };
    in_parallel(args.runtime, chunks, &|c| {
        let begin = counts[c].load(Ordering::Relaxed);
        let end = counts.get(c + 1).map_or(total, |next| next.load(Ordering::Relaxed));
        let mut positions = [0u16; CHUNK];
        let count = nonzero_positions(chunk(c), mask, &mut positions);
        // Another thread may have changed elements since they were counted, so unused positions are zeroed.
        positions[count..].fill(0);
        // SAFETY: the ranges of chunks are disjoint, and the storage has `total` elements per dim.
        unsafe { rows.write(c * CHUNK, &positions[..end - begin], begin) };
    })?;
    Ok(Value::Tensor(Tensor::from_storage(storage, 0, &shape, DType::Int64)?))
}

fn counters(len: usize) -> Result<Vec<AtomicUsize>, TensorError> {
    let mut list = Vec::new();
    let bytes = len.saturating_mul(size_of::<AtomicUsize>());
    list.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { bytes })?;
    list.resize_with(len, AtomicUsize::default);
    Ok(list)
}

/// Stores the positions of the nonzero elements of a chunk in `positions` and returns their count.
fn nonzero_positions<T: ElementBits>(chunk: &[T], mask: T, positions: &mut [u16; CHUNK]) -> usize {
    let mut count = 0;
    for (first, block) in (0u16..).step_by(BLOCK).zip(chunk.chunks(BLOCK)) {
        // The compiler vectorizes this loop because it has no branch per element.
        if block.iter().fold(false, |any, &bits| any | is_set(bits, mask)) {
            for (at, &bits) in (first..).zip(block) {
                positions[count] = at;
                count += usize::from(is_set(bits, mask));
            }
        }
    }
    count
}

/// A pointer to the output tensor of `nonzero`, which has one row per dim of the input and one
/// column per nonzero element.
struct Rows<'a> {
    first: *mut i64,
    len: usize,
    dims: &'a [i64],
}

// SAFETY: threads write disjoint ranges.
unsafe impl Sync for Rows<'_> {}

impl Rows<'_> {
    /// Writes the indices of nonzero elements to the columns from `begin` on. `positions` are their offsets, in ascending order,
    /// from element `start` of the input.
    ///
    /// # Safety
    /// The columns exist, and no other thread accesses them.
    unsafe fn write(&self, start: usize, positions: &[u16], begin: usize) {
        let Some((&last, outer)) = self.dims.split_last() else { return };
        // SAFETY: guaranteed by the caller.
        let row = |dim: usize, from: usize, len: usize| unsafe {
            std::slice::from_raw_parts_mut(self.first.add(dim * self.len + begin + from), len)
        };
        let mut from = 0;
        while from < positions.len() {
            let at = (start + positions[from] as usize) as i64;
            let (mut line, column) = (at / last, at % last);
            // Elements that share all outer indices with this one.
            let end = i64::from(positions[from]) + last - column;
            let more = positions[from + 1..].iter().take_while(|&&at| i64::from(at) < end).count();
            let len = more + 1;
            let first = i64::from(positions[from]) - column;
            let columns = row(outer.len(), from, len);
            for (to, &at) in columns.iter_mut().zip(&positions[from..]) {
                *to = i64::from(at) - first;
            }
            for (dim, &size) in outer.iter().enumerate().rev() {
                row(dim, from, len).fill(line % size);
                line /= size;
            }
            from += len;
        }
    }
}
