//! The implementation of the declared kernel `transpose`: copies between tensors of any strides.
//!
//! Method: dims of size 1 are dropped, and adjacent dims that are contiguous in both tensors are
//! merged. If both tensors have the same contiguous dim, rows are copied. Otherwise the contiguous
//! dims of the two tensors span tiles that fit in the first-level cache. A tile is read along one
//! dim and written along the other. It may be longer along one of these dims ([`Plan::tile_size`]).
//! The tiles are distributed over the worker team.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernel_api::kernels::transpose::KERNEL;
use pliant_kernel_api::{Call, Kernel, MAX_RANK, Sizes, View};
use pliant_machine::Machine;

use crate::algorithm_selection::transpose::{LONG_TILE_LINES, SQUARE_TILE, piece, unit};
use crate::kernel_entry_points::Implementation;
use crate::matmul::micro_kernel::LINE;
use crate::matmul::work_partition::parallel_for;

/// The implementation of the kernel `transpose`.
pub struct Transpose;

impl Implementation for Transpose {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, _: &Sizes) -> i64 {
        let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else {
            return STATUS_OK;
        };
        let Some(plan) = Plan::of(x, out) else { return STATUS_OK };
        // SAFETY: the call was checked: both operands have these elements, and share no memory.
        unsafe {
            match x.dtype.size() {
                1 => plan.run::<u8>(runtime, x, out),
                2 => plan.run::<u16>(runtime, x, out),
                4 => plan.run::<u32>(runtime, x, out),
                _ => plan.run::<u64>(runtime, x, out),
            }
        }
    }
}

/// A dim of a copy: its size, and its strides in the source and in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dim {
    size: usize,
    from: usize,
    to: usize,
}

const UNIT_DIM: Dim = Dim { size: 1, from: 0, to: 0 };

/// The loop nest of a copy: outer loops around tiles of two dims.
#[derive(Debug)]
struct Plan {
    /// The dims of the outer loops, outermost first. The field `count` is the number of these dims.
    outer: [Dim; MAX_RANK],
    count: usize,
    /// The dim with the smallest stride in the source.
    read_dim: Dim,
    /// The dim with the smallest stride in the destination. If this is the same dim as `read_dim`,
    /// its size is set to 1.
    write_dim: Dim,
}

impl Plan {
    /// Plans a copy between two tensors with the same dims; `None` if they have no elements.
    fn of(x: &View, out: &View) -> Option<Plan> {
        let strides = x.strides().iter().zip(out.strides());
        let mut dims = [UNIT_DIM; MAX_RANK];
        let mut count = 0;
        for (&size, (&from, &to)) in x.shape().iter().zip(strides) {
            match size {
                0 => return None,
                1 => {}
                _ => {
                    dims[count] = Dim { size: size as usize, from: from as usize, to: to as usize };
                    count += 1;
                }
            }
        }
        dims[..count].sort_unstable_by_key(|d| std::cmp::Reverse((d.to, d.from)));
        let mut merged = [UNIT_DIM; MAX_RANK];
        let mut merged_count = 0;
        for &d in &dims[..count] {
            let adjacent = |outer: &Dim| outer.from == d.size * d.from && outer.to == d.size * d.to;
            match merged[..merged_count].last_mut().filter(|outer| adjacent(outer)) {
                Some(outer) => *outer = Dim { size: outer.size * d.size, ..d },
                None => {
                    merged[merged_count] = d;
                    merged_count += 1;
                }
            }
        }
        let write_dim = if merged_count == 0 { UNIT_DIM } else { merged[merged_count - 1] };
        merged_count = merged_count.saturating_sub(1);
        let fastest = (0..merged_count)
            .min_by_key(|&k| merged[k].from)
            .filter(|&k| merged[k].from < write_dim.from);
        let (read_dim, write_dim) = match fastest {
            Some(k) => {
                let read_dim = merged[k];
                merged.copy_within(k + 1..merged_count, k);
                merged_count -= 1;
                (read_dim, write_dim)
            }
            None => (write_dim, UNIT_DIM),
        };
        Some(Plan { outer: merged, count: merged_count, read_dim, write_dim })
    }

    /// Copies all elements from `x` to `out` on the worker team. Returns a kernel status: 0 on
    /// success.
    ///
    /// # Safety
    /// Both tensors have elements of the size of `T` at all indices of the dims, and share no
    /// memory.
    unsafe fn run<T: Copy>(&self, runtime: &KernelRuntime, x: &View, out: &View) -> i64 {
        let (x, out) = (Address(x.data.cast::<T>()), Address(out.data.cast::<T>()));
        let planes: usize = self.outer[..self.count].iter().map(|d| d.size).product();
        let (read_dim, write_dim) = (self.read_dim.size, self.write_dim.size);
        // A plane is the elements of the two fastest dims. A piece is a part of a plane along its longer dim, or
        // several planes.
        let (long, short) = (read_dim.max(write_dim), read_dim.min(write_dim));
        let part_size = (piece() / short).max(1).next_multiple_of(LONG_TILE_LINES);
        let parts = long.div_ceil(part_size);
        let planes_per_piece = (piece() / (read_dim * write_dim)).clamp(1, planes);
        let pieces = planes.div_ceil(planes_per_piece) * parts;
        let run = |index: usize| {
            let (x, out) = (&x, &out);
            let first = index / parts * planes_per_piece;
            let start = index % parts * part_size;
            let part = start..long.min(start + part_size);
            let plane =
                if read_dim >= write_dim { (part, 0..write_dim) } else { (0..read_dim, part) };
            for position in first..planes.min(first + planes_per_piece) {
                let (from, to) = self.offsets(position);
                // SAFETY: guaranteed by the caller; pieces write different elements.
                unsafe { self.plane(x.0.add(from), out.0.add(to), plane.clone()) };
            }
            STATUS_OK
        };
        let units = ((read_dim * write_dim).min(piece()) * planes_per_piece / unit()).max(1);
        // SAFETY: guaranteed by the caller; copies do not unwind.
        unsafe { parallel_for(runtime, pieces, units, &run) }
    }

    /// Returns the size of a tile along `read_dim` and along `write_dim`.
    ///
    /// A line is a run of adjacent elements of the source or of the destination. In the tensor
    /// whose lines are farther apart, such as an image with channels first whose lines are in
    /// different pages, a long tile accesses many adjacent elements of each of a few lines, so that
    /// the hardware prefetches them. In the other tensor, it accesses one cache line of each of
    /// many lines. These cache lines must fit in the sets of the first-level cache to which their
    /// addresses map. Otherwise, the tile is square.
    fn tile_size<T>(&self) -> (usize, usize) {
        let distance = self.read_dim.to.min(self.write_dim.from) * size_of::<T>();
        if Machine::host().fitting_lines(distance) < LONG_TILE_LINES {
            return (SQUARE_TILE, SQUARE_TILE);
        }
        let width = LINE / size_of::<T>();
        match self.read_dim.to <= self.write_dim.from {
            true => (LONG_TILE_LINES, width),
            false => (width, LONG_TILE_LINES),
        }
    }

    /// Converts an index over the outer dims to the offsets in the source and in the destination.
    fn offsets(&self, position: usize) -> (usize, usize) {
        let (mut rest, mut from, mut to) = (position, 0, 0);
        for d in self.outer[..self.count].iter().rev() {
            from += rest % d.size * d.from;
            to += rest % d.size * d.to;
            rest /= d.size;
        }
        (from, to)
    }

    /// Copies a part of a plane. A plane is spanned by the dims with the smallest strides in the
    /// source and in the destination; `read_dim` and `write_dim` are the ranges to copy.
    ///
    /// # Safety
    /// The part lies in both tensors.
    unsafe fn plane<T: Copy>(&self, x: *const T, out: *mut T, (read_dim, write_dim): PlanePart) {
        let (b, a) = (self.read_dim, self.write_dim);
        let (rows, columns) = (read_dim.len(), write_dim.len());
        // SAFETY: guaranteed by the caller, for each part of the plane.
        unsafe {
            let x = x.add(read_dim.start * b.from + write_dim.start * a.from);
            let out = out.add(read_dim.start * b.to + write_dim.start * a.to);
            match (rows, columns, a.to == 1 && b.from == 1) {
                _ if a.size == 1 => row(x, out, b, rows),
                (_, 2, true) => few_columns::<T, 2>(x, out, (b, a), rows),
                (_, 3, true) => few_columns::<T, 3>(x, out, (b, a), rows),
                (_, 4, true) => few_columns::<T, 4>(x, out, (b, a), rows),
                (2, _, true) => few_rows::<T, 2>(x, out, (b, a), columns),
                (3, _, true) => few_rows::<T, 3>(x, out, (b, a), columns),
                (4, _, true) => few_rows::<T, 4>(x, out, (b, a), columns),
                _ => {
                    let (tile_rows, tile_columns) = self.tile_size::<T>();
                    for i in (0..rows).step_by(tile_rows) {
                        for k in (0..columns).step_by(tile_columns) {
                            let (x, out) = (x.add(i * b.from), out.add(i * b.to));
                            let (x, out) = (x.add(k * a.from), out.add(k * a.to));
                            let size = (tile_rows.min(rows - i), tile_columns.min(columns - k));
                            tile(x, out, (b, a), size);
                        }
                    }
                }
            }
        }
    }
}

/// A part of a plane: a range of the dim with the smallest stride in the source, and a range of the
/// dim with the smallest stride in the destination.
type PlanePart = (Range<usize>, Range<usize>);

/// An address that may be sent to other threads.
struct Address<T>(*mut T);

// SAFETY: pieces read the source and write different elements of the destination.
unsafe impl<T> Sync for Address<T> {}

/// Copies `count` elements from `x` to `out` along the dim `d`, which determines the stride in the source and in the destination.
///
/// # Safety
/// Source and destination have `count` elements at the strides of `d`.
unsafe fn row<T: Copy>(x: *const T, out: *mut T, d: Dim, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if d.from == 1 && d.to == 1 {
            return std::ptr::copy_nonoverlapping(x, out, count);
        }
        for i in 0..count {
            *out.add(i * d.to) = *x.add(i * d.from);
        }
    }
}

/// Copies a plane whose size along `write_dim` is only `N`: for each index along `read_dim`, writes
/// `N` adjacent elements of the destination.
///
/// # Safety
/// The plane lies in both tensors; `read_dim` has a stride of 1 in the source and `write_dim` in
/// the destination.
unsafe fn few_columns<T: Copy, const N: usize>(
    x: *const T,
    out: *mut T,
    (read_dim, write_dim): (Dim, Dim),
    rows: usize,
) {
    for i in 0..rows {
        for k in 0..N {
            // SAFETY: guaranteed by the caller.
            unsafe { *out.add(i * read_dim.to + k) = *x.add(k * write_dim.from + i) };
        }
    }
}

/// Copies a plane whose size along `read_dim` is only `N`: for each index along `write_dim`, reads
/// `N` adjacent elements of the source.
///
/// # Safety
/// The conditions of [`few_columns`] hold.
unsafe fn few_rows<T: Copy, const N: usize>(
    x: *const T,
    out: *mut T,
    (read_dim, write_dim): (Dim, Dim),
    columns: usize,
) {
    for k in 0..columns {
        for i in 0..N {
            // SAFETY: guaranteed by the caller.
            unsafe { *out.add(i * read_dim.to + k) = *x.add(k * write_dim.from + i) };
        }
    }
}

/// Copies a tile. If `read_dim` is contiguous in the source and `write_dim` is contiguous in the
/// destination, copies the tile in square blocks that are transposed in registers, and only the
/// elements outside of whole blocks one by one.
///
/// # Safety
/// The tile lies in both tensors.
unsafe fn tile<T: Copy>(
    x: *const T,
    out: *mut T,
    (read_dim, write_dim): (Dim, Dim),
    (rows, columns): (usize, usize),
) {
    let contiguous = read_dim.from == 1 && write_dim.to == 1;
    let side = 16 / size_of::<T>();
    let whole = |count: usize| if contiguous { count / side * side } else { 0 };
    let (whole_rows, whole_columns) = (whole(rows), whole(columns));
    // SAFETY: guaranteed by the caller; whole blocks lie in the tile.
    unsafe {
        let blocks = Blocks { x, out, from: write_dim.from, to: read_dim.to };
        match side {
            16 => blocks.run::<16>(whole_rows, whole_columns),
            8 => blocks.run::<8>(whole_rows, whole_columns),
            4 => blocks.run::<4>(whole_rows, whole_columns),
            _ => blocks.run::<2>(whole_rows, whole_columns),
        }
        for i in 0..rows {
            let first = if i < whole_rows { whole_columns } else { 0 };
            for k in first..columns {
                let to = i * read_dim.to + k * write_dim.to;
                *out.add(to) = *x.add(i * read_dim.from + k * write_dim.from);
            }
        }
    }
}

/// A tile that is copied in square blocks. One of its dims is contiguous in the source, the other
/// is contiguous in the destination.
struct Blocks<T> {
    x: *const T,
    out: *mut T,
    /// The stride between lines (contiguous runs of elements) of the source, in elements.
    from: usize,
    /// The stride between lines (contiguous runs of elements) of the destination, in elements.
    to: usize,
}

impl<T: Copy> Blocks<T> {
    /// Transposes `rows` by `columns` elements in blocks of `N` by `N`.
    ///
    /// A line (a contiguous run of elements of the source or of the destination) is accessed once
    /// for each of its blocks. Lines whose stride is a multiple of a page, such as the channels of
    /// an image, map to the same set of the first-level cache, which holds only a few of them. So
    /// the outer loop runs over the lines with the more aligned stride, and accesses all blocks of
    /// a few lines one after the other.
    ///
    /// # Safety
    /// The elements lie in both tensors; `N` divides `rows` and `columns`.
    #[inline(always)]
    unsafe fn run<const N: usize>(&self, rows: usize, columns: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.from.trailing_zeros() > self.to.trailing_zeros() {
                for k in (0..columns).step_by(N) {
                    for i in (0..rows).step_by(N) {
                        self.block::<N>(i, k);
                    }
                }
            } else {
                for i in (0..rows).step_by(N) {
                    for k in (0..columns).step_by(N) {
                        self.block::<N>(i, k);
                    }
                }
            }
        }
    }

    /// Transposes the block of `N` by `N` elements at row `i` and column `k` of the tile.
    ///
    /// # Safety
    /// The conditions of [`Blocks::run`] hold.
    #[inline(always)]
    unsafe fn block<const N: usize>(&self, i: usize, k: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (x, out) = (self.x.add(i + k * self.from), self.out.add(k + i * self.to));
            block::<T, N>(x, out, self.from, self.to);
        }
    }
}

/// Transposes a block of `N` by `N` elements in SSE2 registers, which all x86-64 processors have. Rows have 16 bytes.
///
/// Each round interleaves the first half of the rows with the second half. This rotates the bits of an element's index
/// (row, then column) by one. After `log2(N)` rounds, row and column are exchanged.
///
/// # Safety
/// `x` points to `N` rows of `N` adjacent elements, with a distance of `from` elements between the
/// starts of consecutive rows. `out` points to memory for `N` such rows, with a distance of `to`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn block<T: Copy, const N: usize>(x: *const T, out: *mut T, from: usize, to: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_setzero_si128, _mm_storeu_si128};
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut rows = [_mm_setzero_si128(); N];
        for k in 0..N {
            rows[k] = _mm_loadu_si128(x.add(k * from).cast::<__m128i>());
        }
        for _ in 0..N.ilog2() {
            let mut next = rows;
            for k in 0..N / 2 {
                (next[2 * k], next[2 * k + 1]) = interleaved::<N>(rows[k], rows[k + N / 2]);
            }
            rows = next;
        }
        for i in 0..N {
            _mm_storeu_si128(out.add(i * to).cast::<__m128i>(), rows[i]);
        }
    }
}

/// Interleaves the elements of two vectors of `N` elements. Returns the low and the high half of the result.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn interleaved<const N: usize>(
    a: std::arch::x86_64::__m128i,
    b: std::arch::x86_64::__m128i,
) -> (std::arch::x86_64::__m128i, std::arch::x86_64::__m128i) {
    use std::arch::x86_64::*;
    // SAFETY: all x86-64 processors have SSE2.
    unsafe {
        match N {
            16 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
            8 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
            4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
            _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
        }
    }
}

/// Transposes a block of `N` by `N` elements, one element at a time.
///
/// # Safety
/// Each of the `N` rows at these strides has `N` adjacent elements, in the source and in the
/// destination.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn block<T: Copy, const N: usize>(x: *const T, out: *mut T, from: usize, to: usize) {
    for i in 0..N {
        for k in 0..N {
            // SAFETY: guaranteed by the caller.
            unsafe { *out.add(i * to + k) = *x.add(k * from + i) };
        }
    }
}

#[cfg(test)]
mod tests {
    use pliant_tensor::DType;

    use super::*;

    /// Returns a test tensor with permuted dims: numbered elements, the shape and the strides.
    fn permuted(dims: &[i64], order: &[usize]) -> (Vec<u32>, Vec<i64>, Vec<i64>) {
        let count: i64 = dims.iter().product();
        let data = (0..count as u32).collect();
        let strides: Vec<i64> = (0..dims.len()).map(|k| dims[k + 1..].iter().product()).collect();
        let permute = |list: &[i64]| order.iter().map(|&k| list[k]).collect();
        (data, permute(dims), permute(&strides))
    }

    #[test]
    fn all_permutations_of_dims_are_copied() {
        let cases: [(&[i64], &[usize]); 12] = [
            (&[2, 3], &[1, 0]),
            (&[1, 70, 3], &[2, 1, 0]),
            (&[2, 3, 37, 41], &[0, 2, 3, 1]),
            (&[2, 37, 41, 3], &[0, 3, 1, 2]),
            (&[2, 5, 7, 33], &[0, 2, 1, 3]),
            (&[3, 4, 5, 6, 7], &[4, 3, 2, 1, 0]),
            (&[100, 130], &[1, 0]),
            (&[2, 300, 200, 3], &[0, 3, 1, 2]),
            (&[2, 40000], &[1, 0]),
            (&[3, 70, 64], &[0, 2, 1]),
            (&[7], &[0]),
            (&[0, 3], &[1, 0]),
        ];
        for (dims, order) in cases {
            check::<u8>(dims, order, DType::UInt8, |i| i as u8);
            check::<u16>(dims, order, DType::UInt16, |i| i as u16);
            check::<u32>(dims, order, DType::UInt32, |i| i);
            check::<u64>(dims, order, DType::UInt64, u64::from);
        }
    }

    /// Copies a tensor of the elements `value(0), value(1), ...` with the kernel, and asserts that the result equals that of a loop
    /// over the elements.
    fn check<T: Copy + Default + PartialEq + std::fmt::Debug>(
        dims: &[i64],
        order: &[usize],
        dtype: DType,
        value: fn(u32) -> T,
    ) {
        let (data, shape, strides) = permuted(dims, order);
        let data: Vec<T> = data.into_iter().map(value).collect();
        let mut out = vec![T::default(); data.len()];
        let x = View::new(data.as_ptr().cast_mut().cast(), dtype, &shape, Some(&strides));
        let to = View::new(out.as_mut_ptr().cast(), dtype, &shape, None);
        let (x, to) = (x.expect("few dims"), to.expect("few dims"));
        if let Some(plan) = Plan::of(&x, &to) {
            // SAFETY: both views lie in their vectors.
            let status = unsafe { plan.run::<T>(&KernelRuntime::serial(), &x, &to) };
            assert_eq!(status, STATUS_OK);
        }
        let mut want = Vec::new();
        let mut index = vec![0i64; shape.len()];
        for _ in 0..out.len() {
            let at = index.iter().zip(&strides).map(|(i, s)| i * s).sum::<i64>();
            want.push(data[at as usize]);
            for k in (0..index.len()).rev() {
                index[k] += 1;
                if index[k] < shape[k] {
                    break;
                }
                index[k] = 0;
            }
        }
        assert_eq!(out, want, "{dtype} {dims:?} {order:?}");
    }
}
