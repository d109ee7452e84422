//! The implementation of the declared kernel `arg_reduce`: argmin and argmax of rows.
//!
//! Method: a contiguous row is read once, in blocks. Only the block with the best element (largest
//! or smallest) is searched again. Short rows and strided rows are computed side by side, one row
//! per lane. If there are few long rows, they are divided into parts.

use half::{bf16, f16};
use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_kernel_api::kernels::arg_reduce::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_machine::isa::isa;
use pliant_tensor::DType;

use super::isa_dispatch::{Vectorized, vectorized};
use super::row_addresses::{Rows, UniformRows};
use crate::algorithm_selection::arg_reduce::{MIN_ROW_AT_A_TIME_COLUMNS, parts, piece, unit};
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::{even_part, parallel_for};

/// The implementation of the kernel `arg_reduce`: argmax and argmin of rows.
pub struct ArgReduce;

impl Implementation for ArgReduce {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, _: &Sizes) -> i64 {
        let dtype = call.operand("x").map_or(DType::Float32, |x| x.dtype);
        // SAFETY: guaranteed by the caller; the elements are of these types.
        unsafe { for_dtype!(dtype, reduce(runtime, call)) }
    }
}

/// An element type of the operand.
trait Element: Copy {
    /// The type of the sort keys by which elements are compared.
    type Key: Key;

    /// Converts an element to a key. Keys have the same order as elements.
    fn key(self) -> Self::Key;
}

/// A number by which elements are compared.
trait Key: Copy + PartialOrd {
    /// Whether the key belongs to a NaN element.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

impl Key for f32 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Key for f64 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

macro_rules! elements {
    ($($ty:ty)*) => {$(
        impl Element for $ty {
            type Key = $ty;

            #[inline(always)]
            fn key(self) -> $ty {
                self
            }
        }
    )*};
}

macro_rules! integers {
    ($($ty:ty)*) => { $(impl Key for $ty {})* };
}

elements!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Element for f16 {
    type Key = f32;

    /// Returns the bits of the magnitude as a number, with the sign of the element. These numbers
    /// have the same order as the elements.
    #[inline(always)]
    fn key(self) -> f32 {
        let bits = self.to_bits();
        let magnitude = bits & 0x7fff;
        let value = f32::from(magnitude);
        let value = if bits == magnitude { value } else { -value };
        if magnitude > 0x7c00 { f32::NAN } else { value }
    }
}

impl Element for bf16 {
    type Key = f32;

    #[inline(always)]
    fn key(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

/// Whether key `a` is better than key `b`: larger if `LARGEST`, otherwise smaller. NaN is better than all numbers.
#[inline(always)]
fn is_better_key<K: Key, const LARGEST: bool>(a: K, b: K) -> bool {
    (if LARGEST { a > b } else { a < b }) | (a.is_nan() & !b.is_nan())
}

// ---- contiguous rows ----

/// Number of elements of a block. A contiguous row is divided into blocks to find the block with
/// the best element (largest or smallest). The position of this element is searched only in this
/// block.
const BLOCK: usize = 512;
/// Number of elements of a block that are compared in parallel.
const LANES: usize = 64;

/// Returns the best key of a block of at least [`LANES`] elements, ignoring NaN, and whether the
/// block contains NaN. Compares [`LANES`] elements at a time; the last group may overlap the
/// previous group.
#[inline(always)]
fn best_of<T: Element, const LARGEST: bool>(block: &[T]) -> (T::Key, bool) {
    let mut best = [block[0].key(); LANES];
    let mut nan = [false; LANES];
    let mut compare = |chunk: &[T; LANES]| {
        for i in 0..LANES {
            let key = chunk[i].key();
            let is_better = if LARGEST { key > best[i] } else { key < best[i] };
            best[i] = if is_better { key } else { best[i] };
            nan[i] |= key.is_nan();
        }
    };
    block.as_chunks::<LANES>().0.iter().for_each(&mut compare);
    block.last_chunk::<LANES>().into_iter().for_each(&mut compare);
    let mut any = block[0].key().is_nan();
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            let (a, b) = (best[i], best[i + half]);
            let is_better = if LARGEST { b > a } else { b < a };
            best[i] = if is_better { b } else { a };
        }
        half /= 2;
    }
    for n in nan {
        any |= n;
    }
    (best[0], any)
}

/// Returns the index of the first element whose key satisfies a predicate; 0 if no key satisfies
/// it.
#[inline(always)]
fn first_index<T: Element>(row: &[T], predicate: impl Fn(T::Key) -> bool) -> usize {
    let (chunks, rest) = row.as_chunks::<LANES>();
    for (i, chunk) in chunks.iter().enumerate() {
        // A chunk is tested in parallel before it is searched.
        if chunk.iter().fold(false, |any, &v| any | predicate(v.key())) {
            return i * LANES + chunk.iter().position(|&v| predicate(v.key())).unwrap_or(0);
        }
    }
    rest.iter().position(|&v| predicate(v.key())).map_or(0, |i| chunks.len() * LANES + i)
}

/// Returns the position of the best element of a contiguous row of at least [`LANES`] elements.
#[inline(always)]
fn position<T: Element, const LARGEST: bool>(row: &[T]) -> usize {
    let (mut best, mut at) = (row[0].key(), 0);
    for start in (0..row.len()).step_by(BLOCK) {
        let end = row.len().min(start + BLOCK);
        // A short last block is extended to the front. The added elements are not better than `best`.
        let (value, nan) = best_of::<T, LARGEST>(&row[start.min(end - LANES)..end]);
        if nan {
            return start + first_index::<T>(&row[start..], T::Key::is_nan);
        }
        let is_better = if LARGEST { value > best } else { value < best };
        if is_better {
            (best, at) = (value, start);
        }
    }
    at + first_index::<T>(&row[at..], |v| v == best)
}

// ---- rows side by side ----

/// Returns the positions of the best elements of `N` rows, which are computed side by side.
/// `stride` is the distance between rows, and `step` the distance between the elements of a row, in
/// elements.
///
/// # Safety
/// The rows have `columns` elements, at least one.
#[inline(always)]
unsafe fn side_by_side<T: Element, const LARGEST: bool, const N: usize>(
    x: *const T,
    (stride, step): (usize, usize),
    columns: usize,
) -> [i64; N] {
    let mut positions = [0i64; N];
    // SAFETY: guaranteed by the caller.
    let mut best: [T::Key; N] = std::array::from_fn(|i| unsafe { (*x.add(i * stride)).key() });
    for j in 1..columns {
        for i in 0..N {
            // SAFETY: guaranteed by the caller.
            let key = unsafe { (*x.add(i * stride + j * step)).key() };
            let is_better = is_better_key::<T::Key, LARGEST>(key, best[i]);
            best[i] = if is_better { key } else { best[i] };
            positions[i] = if is_better { j as i64 } else { positions[i] };
        }
    }
    positions
}

/// Whether rows are contiguous and so long that they are computed one at a time instead of side by
/// side. `columns` is the length of a row, and `step` the distance between its elements.
fn is_long(columns: usize, step: usize) -> bool {
    step == 1 && columns >= LANES.max(MIN_ROW_AT_A_TIME_COLUMNS)
}

/// Number of rows that are computed side by side if they are adjacent in memory.
const ADJACENT_ROWS: usize = 64;
/// Number of rows that are computed side by side if they are not adjacent in memory.
const STRIDED_ROWS: usize = 16;

/// Some rows with a uniform stride, and the destination of their results.
struct RowBlock<T> {
    x: *const T,
    /// The distance between rows, in elements.
    stride: usize,
    /// The distance between the elements of a row, in elements.
    step: usize,
    rows: usize,
    columns: usize,
    out: *mut i64,
    out_stride: usize,
    largest: bool,
}

impl<T: Element> RowBlock<T> {
    /// Computes the results of all rows of the block.
    ///
    /// # Safety
    /// The rows and the results are valid, and the rows are not empty.
    #[inline(always)]
    unsafe fn reduce<const LARGEST: bool>(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if is_long(self.columns, self.step) {
                return self.one_by_one(position::<T, LARGEST>);
            }
            let mut done = 0;
            if self.stride == 1 {
                done = self.blocks::<LARGEST, ADJACENT_ROWS>(done, 1);
            }
            done = self.blocks::<LARGEST, STRIDED_ROWS>(done, self.stride);
            self.blocks::<LARGEST, 1>(done, self.stride);
        }
    }

    /// Computes the results of the rows one at a time, with the function `position`.
    ///
    /// # Safety
    /// The conditions of [`Self::reduce`] hold; rows are contiguous.
    #[inline(always)]
    unsafe fn one_by_one(&self, position: impl Fn(&[T]) -> usize) {
        for i in 0..self.rows {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let row = std::slice::from_raw_parts(self.x.add(i * self.stride), self.columns);
                *self.out.add(i * self.out_stride) = position(row) as i64;
            }
        }
    }

    /// Computes the results of the rows from `first` on, `N` rows side by side. Returns the index
    /// after the last computed row; fewer than `N` rows may remain.
    ///
    /// # Safety
    /// The conditions of [`Self::reduce`] hold.
    #[inline(always)]
    unsafe fn blocks<const LARGEST: bool, const N: usize>(
        &self,
        first: usize,
        stride: usize,
    ) -> usize {
        let mut row = first;
        while row + N <= self.rows {
            // SAFETY: guaranteed by the caller; these rows exist.
            unsafe {
                let (x, strides) = (self.x.add(row * stride), (stride, self.step));
                let positions = side_by_side::<T, LARGEST, N>(x, strides, self.columns);
                for (i, &position) in positions.iter().enumerate() {
                    *self.out.add((row + i) * self.out_stride) = position;
                }
            }
            row += N;
        }
        row
    }
}

impl<T: Element> Vectorized for &RowBlock<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: guaranteed by the caller.
        unsafe { if self.largest { self.reduce::<true>() } else { self.reduce::<false>() } }
    }
}

// ---- calls ----

/// The rows, results and attributes of a checked `arg_reduce` call.
struct Reduction<T> {
    x: Rows<T>,
    out: Rows<i64>,
    columns: usize,
    step: usize,
    largest: bool,
}

/// Computes a checked `arg_reduce` call: divides its rows, or the parts of its rows, among threads.
/// Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`Implementation::run`] hold; the operand `x` has elements of type `T`.
unsafe fn reduce<T: Element>(runtime: &KernelRuntime, call: &Call) -> i64 {
    let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else { return STATUS_OK };
    let rows: usize = out.shape().iter().map(|&dim| dim as usize).product();
    let last = x.shape().len() - 1;
    let (columns, step) = (x.shape()[last] as usize, x.strides()[last] as usize);
    if rows == 0 || columns == 0 {
        return STATUS_OK;
    }
    let largest = call.int("kind") == 0;
    let reduction =
        Reduction::<T> { x: Rows::of(x, 1), out: Rows::of(out, 0), columns, step, largest };
    let parts = parts(rows, columns);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if parts > 1 {
            reduction.reduce_parts(runtime, rows, parts)
        } else {
            reduction.reduce_rows(runtime, rows)
        }
    }
}

impl<T: Element> Reduction<T> {
    /// Computes the results in pieces of whole rows. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The rows are valid, and there is at least one row.
    unsafe fn reduce_rows(&self, runtime: &KernelRuntime, rows: usize) -> i64 {
        let multiple = if is_long(self.columns, self.step) { 1 } else { ADJACENT_ROWS };
        let rows_per_piece = (piece() / self.columns).max(1).next_multiple_of(multiple).min(rows);
        let run = |index: usize| {
            let (mut row, end) = (index * rows_per_piece, rows.min((index + 1) * rows_per_piece));
            while row < end {
                let (from, to): (UniformRows<T>, UniformRows<i64>) =
                    (self.x.uniform_rows(row), self.out.uniform_rows(row));
                let count = from.count.min(to.count).min(end - row);
                let part = RowBlock {
                    x: from.address.cast_const(),
                    stride: from.stride,
                    step: self.step,
                    rows: count,
                    columns: self.columns,
                    out: to.address,
                    out_stride: to.stride,
                    largest: self.largest,
                };
                // SAFETY: guaranteed by the caller; each row is in one piece.
                unsafe { vectorized(isa(), &part) };
                row += count;
            }
            STATUS_OK
        };
        let units = rows_per_piece.saturating_mul(self.columns) / unit();
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, rows.div_ceil(rows_per_piece), units.max(1), &run) }
    }

    /// Computes the results of rows that are divided into `parts` parts each, and combines the
    /// parts. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The conditions of [`Self::reduce_rows`] hold.
    unsafe fn reduce_parts(&self, runtime: &KernelRuntime, rows: usize, parts: usize) -> i64 {
        let mut positions: Vec<i64> = Vec::new();
        if positions.try_reserve_exact(rows * parts).is_err() {
            return STATUS_NO_MEMORY;
        }
        positions.resize(rows * parts, 0);
        let results = Rows::of_slice(&mut positions);
        let run = |index: usize| {
            let columns = even_part(self.columns, 1, index % parts, parts);
            let row = self.x.uniform_rows(index / parts).address.cast_const();
            let part = RowBlock {
                x: row.wrapping_add(columns.start * self.step),
                stride: 0,
                step: self.step,
                rows: 1,
                columns: columns.len(),
                out: results.uniform_rows(index).address,
                out_stride: 0,
                largest: self.largest,
            };
            // SAFETY: guaranteed by the caller; each part has a result.
            unsafe { vectorized(isa(), &part) };
            STATUS_OK
        };
        let units = self.columns / parts / unit();
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        let status = unsafe { parallel_for(runtime, rows * parts, units.max(1), &run) };
        if status != STATUS_OK {
            return status;
        }
        for (row, positions) in positions.chunks_exact(parts).enumerate() {
            let x = self.x.uniform_rows(row).address;
            let at = |k: usize| even_part(self.columns, 1, k, parts).start + positions[k] as usize;
            // SAFETY: guaranteed by the caller; positions are below the number of columns.
            let key = |position: usize| unsafe { (*x.add(position * self.step)).key() };
            let mut best = at(0);
            for position in (1..parts).map(at) {
                let (new, old) = (key(position), key(best));
                let is_better = match self.largest {
                    true => is_better_key::<T::Key, true>(new, old),
                    false => is_better_key::<T::Key, false>(new, old),
                };
                best = if is_better { position } else { best };
            }
            // SAFETY: guaranteed by the caller.
            unsafe { *self.out.uniform_rows(row).address = best as i64 };
        }
        STATUS_OK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_machine::isa::{Isa, available};

    /// Computes the positions of the best elements of test rows, which are stored contiguously or transposed.
    fn positions<T: Element>(
        isa: Isa,
        rows: &[Vec<T>],
        transposed: bool,
        largest: bool,
    ) -> Vec<i64> {
        let (count, columns) = (rows.len(), rows[0].len());
        let mut x = Vec::new();
        for k in 0..count * columns {
            let (row, column) =
                if transposed { (k % count, k / count) } else { (k / columns, k % columns) };
            x.push(rows[row][column]);
        }
        let (stride, step) = if transposed { (1, count) } else { (columns, 1) };
        let mut out = vec![-1; count];
        let (out_stride, rows) = (1, count);
        let part = RowBlock {
            x: x.as_ptr(),
            stride,
            step,
            rows,
            columns,
            out: out.as_mut_ptr(),
            out_stride,
            largest,
        };
        // SAFETY: the vectors have these elements.
        unsafe { vectorized(isa, &part) };
        out
    }

    #[test]
    fn first_of_equal_elements_is_found_at_any_position() {
        for isa in available() {
            for n in [1usize, 2, 7, 15, 16, 63, 64, 65, 511, 512, 513, 1500] {
                for transposed in [false, true] {
                    let at = |i: usize| [0, 1, n / 2, n.saturating_sub(2), n - 1][i % 5].min(n - 1);
                    let mut rows: Vec<Vec<f32>> =
                        vec![(0..n).map(|i| (i * 7 % 5) as f32).collect(); 83];
                    let want: Vec<i64> = (0..rows.len()).map(|i| at(i) as i64).collect();
                    let put = |rows: &mut Vec<Vec<f32>>, value: f32| {
                        for (i, row) in rows.iter_mut().enumerate() {
                            row[at(i)] = value;
                            row[n - 1] = value;
                        }
                    };
                    put(&mut rows, 9.0);
                    let case = format!("{isa:?} {n} {transposed}");
                    assert_eq!(positions(isa, &rows, transposed, true), want, "{case}");
                    let map = |f: fn(f32) -> i8| -> Vec<Vec<i8>> {
                        rows.iter().map(|r| r.iter().map(|&v| f(v)).collect()).collect()
                    };
                    let negative = map(|v| -(v as i8));
                    assert_eq!(positions(isa, &negative, transposed, false), want, "{case}");
                    let half: Vec<Vec<f16>> = rows
                        .iter()
                        .map(|r| r.iter().map(|&v| f16::from_f32(v - 4.0)).collect())
                        .collect();
                    assert_eq!(positions(isa, &half, transposed, true), want, "{case}");
                    put(&mut rows, f32::NAN);
                    assert_eq!(positions(isa, &rows, transposed, true), want, "{case}");
                    assert_eq!(positions(isa, &rows, transposed, false), want, "{case}");
                }
            }
        }
    }

    #[test]
    fn keys_of_16_bit_floats_keep_the_order() {
        let mut last = f32::NEG_INFINITY;
        for value in
            (0xfc00..=0xffffu16).rev().skip(0x3ff).chain((0x8000..0xfc00).rev()).chain(0..=0x7c00)
        {
            let key = f16::from_bits(value).key();
            assert!(key >= last, "{value:x}");
            last = key;
        }
        assert!(f16::NAN.key().is_nan() && bf16::NAN.key().is_nan());
        assert!(f16::from_bits(0x8000).key() == f16::from_bits(0).key());
    }
}
