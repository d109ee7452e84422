//! The implementation of the declared kernel `sort`.
//!
//! The order is stable. NaN is after all numbers in both directions, or before them if the attribute `nan_first` is set. Both zeros
//! are equal. Each element is converted to an integer with the required order, with its position in the lower bits. These records
//! are distinct, so even an unstable sort of the records produces the stable order.
//!
//! [`crate::algorithm_selection::sort`] chooses the algorithm: a sorting network over [`LANES`]
//! rows, one per lane; insertion into a short sorted list; selection from blocks of candidates; or
//! selection of the requested elements, which are then sorted.

mod sort_keys;
mod sort_row;
mod sorting_networks;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernel_api::kernels::sort::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes, View};
use pliant_machine::isa::isa;
use pliant_tensor::DType;

use self::sort_keys::{Key, Order, Record};
use self::sort_row::Selection;
use self::sorting_networks::Network;
use super::isa_dispatch::{Vectorized, vectorized};
use super::row_addresses::Rows;
use crate::algorithm_selection::sort::{
    Algorithm, MAX_NETWORK, MAX_TOP, algorithm, gathered_rows, piece, unit,
};
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::parallel_for;
use crate::scratch_memory::Scratch;

/// The implementation of the kernel `sort`.
pub struct Sort;

impl Implementation for Sort {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let dtype = call.operand("x").map_or(DType::Float32, |x| x.dtype);
        // SAFETY: guaranteed by the caller; the elements are of these types.
        unsafe { for_dtype!(dtype, sort(runtime, call, sizes)) }
    }
}

/// Maximum number of rows that are sorted side by side, or copied together to contiguous memory.
const LANES: usize = 16;

// ---- rows side by side ----

/// One element of each of [`LANES`] rows.
#[derive(Clone, Copy)]
struct Column<R> {
    ranks: [R; LANES],
    positions: [u32; LANES],
}

impl<R: Copy + Ord> Column<R> {
    /// Returns the smaller and the larger element of `self` and `other` in each lane.
    #[inline(always)]
    fn sorted(self, other: Self) -> (Self, Self) {
        let (mut low, mut high) = (self, other);
        for i in 0..LANES {
            let (a, b) = (self.ranks[i], other.ranks[i]);
            let (p, q) = (self.positions[i], other.positions[i]);
            let swap = (b < a) | ((b == a) & (q < p));
            (low.ranks[i], high.ranks[i]) = if swap { (b, a) } else { (a, b) };
            (low.positions[i], high.positions[i]) = if swap { (q, p) } else { (p, q) };
        }
        (low, high)
    }
}

// ---- calls ----

thread_local! {
    static KEYS: Scratch = const { Scratch::new() };
    static RECORDS: Scratch = const { Scratch::new() };
}

/// The operands of a checked `sort` call, and the chosen algorithm.
struct Sorting<K> {
    x: Rows<K>,
    values: Option<(Rows<K>, usize)>,
    positions: Option<(Rows<u8>, usize, DType)>,
    columns: usize,
    step: usize,
    selection: Selection,
    /// The sorting network, if the algorithm is a network; otherwise a network without comparators.
    network: Network,
}

/// Computes a checked `sort` call, for elements of type `K`. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`Implementation::run`] hold; the operands `x` and `values` have elements of
/// type `K`.
unsafe fn sort<K: Key>(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
    let Some(x) = call.operand("x") else { return STATUS_OK };
    let (rows, count) = (sizes.get("rows") as usize, sizes.get("count") as usize);
    if rows == 0 || count == 0 {
        return STATUS_OK;
    }
    let step = |view: &View| view.strides().last().map_or(0, |&step| step as usize);
    let (columns, from) = (sizes.get("columns") as usize, call.int("first") as usize);
    let selection = Selection {
        from,
        to: from + count,
        order: Order {
            descending: call.int("descending") != 0,
            nan_first: call.int("nan_first") != 0,
        },
        algorithm: algorithm(columns, from + count),
    };
    let sorting = Sorting::<K> {
        x: Rows::of(x, 1),
        values: call.operand("values").map(|v| (Rows::of(v, 1), step(v))),
        positions: call.operand("positions").map(|p| (Rows::of(p, 1), step(p), p.dtype)),
        columns,
        step: step(x),
        network: selection.network(columns),
        selection,
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        match K::FITS_U64_RECORD && columns < 1 << 32 {
            true => sorting.run::<u64>(runtime, rows),
            false => sorting.run::<(u64, usize)>(runtime, rows),
        }
    }
}

impl<K: Key> Sorting<K> {
    /// Sorts all rows on the worker team, with records of type `R`. Returns a kernel status: 0 on
    /// success.
    ///
    /// # Safety
    /// The rows and the results are valid, and there is at least one row.
    unsafe fn run<R: Record>(&self, runtime: &KernelRuntime, rows: usize) -> i64 {
        let unit = unit(self.selection.algorithm);
        let multiple = match self.selection.algorithm {
            Algorithm::Network => LANES,
            _ => self.block_rows(),
        };
        let rows_per_piece =
            (piece(unit) / self.columns).max(1).next_multiple_of(multiple).min(rows);
        let (block, record_count) = (self.block_rows(), self.selection.records(self.columns));
        let count = self.selection.to - self.selection.from;
        let (gathered_elements, records) = match self.selection.algorithm {
            Algorithm::Network => (0, 0),
            _ if self.step == 1 => (0, record_count + block * count),
            _ => (block * self.columns, record_count + block * count),
        };
        let run = |index: usize| {
            let rows = index * rows_per_piece..rows.min((index + 1) * rows_per_piece);
            KEYS.with(|keys| {
                keys.with(gathered_elements, |keys| {
                    RECORDS.with(|memory| {
                        memory.with(records, |memory| {
                            // SAFETY: there is memory for this many records, of which any contents are valid.
                            let memory = unsafe { std::slice::from_raw_parts_mut(memory, records) };
                            let (records, ordered) = memory.split_at_mut(record_count);
                            let piece = Piece::<K, R> {
                                sorting: self,
                                rows,
                                block,
                                keys,
                                records,
                                ordered,
                            };
                            // SAFETY: guaranteed by the caller; each row is in one piece. The machine has the
                            // instructions.
                            unsafe { vectorized(isa(), piece) };
                            STATUS_OK
                        })
                    })
                })
            })
        };
        let units = rows_per_piece.saturating_mul(self.columns) / unit;
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, rows.div_ceil(rows_per_piece), units.max(1), &run) }
    }

    /// Returns the number of rows in a block, which are all sorted before the results of any of them are written: several rows if
    /// elements or results are strided, otherwise 1.
    fn block_rows(&self) -> usize {
        let steps = [self.values.as_ref().map(|v| v.1), self.positions.as_ref().map(|p| p.1)];
        let is_adjacent = |&step: &usize| step == 1;
        match self.step == 1 && steps.iter().flatten().all(is_adjacent) {
            true => 1,
            false => gathered_rows(self.columns).clamp(1, LANES),
        }
    }

    /// Writes the results of `lanes` rows that start at `row`. `position(lane, i)` returns the position, in its unsorted row, of
    /// the element with index `i` among the requested elements in sorted order. `key(lane, p)` returns the element at position `p`
    /// of the unsorted row.
    ///
    /// # Safety
    /// These rows of the results are valid.
    #[inline(always)]
    unsafe fn write(
        &self,
        (row, lanes): (usize, usize),
        position: impl Fn(usize, usize) -> usize,
        key: impl Fn(usize, usize) -> K,
    ) {
        let sizes = (lanes, self.selection.to - self.selection.from);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some((values, step)) = &self.values {
                let to = values.addresses::<LANES>(row, lanes);
                for_each(sizes, *step, |r, i| *to[r].add(i * step) = key(r, position(r, i)));
            }
            match &self.positions {
                Some((positions, step, DType::Int64)) => {
                    let to = positions.of_type::<i64>().addresses::<LANES>(row, lanes);
                    for_each(sizes, *step, |r, i| *to[r].add(i * step) = position(r, i) as i64);
                }
                Some((positions, step, _)) => {
                    let to = positions.of_type::<i32>().addresses::<LANES>(row, lanes);
                    for_each(sizes, *step, |r, i| *to[r].add(i * step) = position(r, i) as i32);
                }
                None => {}
            }
        }
    }
}

/// Calls `f(row, index)` for each row below `rows` and each index below `ranks`. The order of the calls suits results whose
/// elements are `step` apart: row by row if `step` is 1, otherwise index by index.
#[inline(always)]
fn for_each((rows, ranks): (usize, usize), step: usize, mut f: impl FnMut(usize, usize)) {
    if step == 1 {
        for row in 0..rows {
            for rank in 0..ranks {
                f(row, rank);
            }
        }
    } else {
        for rank in 0..ranks {
            for row in 0..rows {
                f(row, rank);
            }
        }
    }
}

/// A range of rows that one thread sorts, and scratch memory for a block of rows.
struct Piece<'a, K, R> {
    sorting: &'a Sorting<K>,
    rows: Range<usize>,
    block: usize,
    /// Scratch memory for the elements of a block of rows, if rows are strided and must be copied.
    keys: *mut K,
    /// Scratch memory for the records (sort key and position) of one row.
    records: &'a mut [R],
    /// Scratch memory for the requested records of the rows of a block, in sorted order.
    ordered: &'a mut [R],
}

impl<K: Key, R: Record> Vectorized for Piece<'_, K, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.sorting.selection.algorithm {
                Algorithm::Network => self.side_by_side(),
                // Copying the rows to contiguous memory would take longer than the search.
                Algorithm::Top if self.sorting.step != 1 && self.positions_fit_lanes() => {
                    self.top_side_by_side();
                }
                _ => self.one_by_one(),
            }
        }
    }
}

impl<K: Key, R: Record> Piece<'_, K, R> {
    /// Sorts [`LANES`] short rows at a time with a network.
    ///
    /// # Safety
    /// The rows and the results are valid.
    #[inline(always)]
    unsafe fn side_by_side(self) {
        let Piece { sorting, rows, .. } = self;
        let Selection { from, order, .. } = sorting.selection;
        let first = sorting.x.uniform_rows(rows.start).address;
        // SAFETY: guaranteed by the caller: there is a row, with an element.
        let rank = unsafe { *first }.rank(order);
        let mut columns = [Column { ranks: [rank; LANES], positions: [0; LANES] }; MAX_NETWORK];
        for row in rows.clone().step_by(LANES) {
            let lanes = LANES.min(rows.end - row);
            let x = sorting.x.addresses::<LANES>(row, lanes);
            // SAFETY: guaranteed by the caller; positions are below the number of columns.
            let key = |r: usize, position: usize| unsafe { *x[r].add(position * sorting.step) };
            for (j, column) in columns[..sorting.columns].iter_mut().enumerate() {
                let keys: [K; LANES] = std::array::from_fn(|r| key(r, j));
                for r in 0..LANES {
                    column.ranks[r] = keys[r].rank(order);
                }
                column.positions = [j as u32; LANES];
            }
            for &(low, high) in sorting.network.comparators() {
                let (low, high) = (usize::from(low), usize::from(high));
                (columns[low], columns[high]) = columns[low].sorted(columns[high]);
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                sorting.write((row, lanes), |r, i| columns[from + i].positions[r] as usize, key)
            };
        }
    }

    /// Whether the positions of a row fit the lanes of a [`Column`].
    fn positions_fit_lanes(&self) -> bool {
        u32::try_from(self.sorting.columns).is_ok()
    }

    /// Finds the first elements of [`LANES`] rows at a time, in sorted order, by insertion.
    ///
    /// # Safety
    /// The conditions of [`Self::side_by_side`] hold, and the algorithm is [`Algorithm::Top`].
    #[inline(always)]
    unsafe fn top_side_by_side(self) {
        let Piece { sorting, rows, .. } = self;
        let Selection { from, to, order, .. } = sorting.selection;
        for row in rows.clone().step_by(LANES) {
            let lanes = LANES.min(rows.end - row);
            let x = sorting.x.addresses::<LANES>(row, lanes);
            let are_adjacent = (1..LANES).all(|r| x[r] == x[0].wrapping_add(r));
            // SAFETY: guaranteed by the caller; positions are below the number of columns.
            let key = |r: usize, position: usize| unsafe { *x[r].add(position * sorting.step) };
            // SAFETY: adjacent rows are valid, so these elements are.
            let adjacent_keys = |position: usize| unsafe {
                x[0].add(position * sorting.step).cast::<[K; LANES]>().read_unaligned()
            };
            let column = |position: usize| {
                let keys = match are_adjacent {
                    true => adjacent_keys(position),
                    false => std::array::from_fn(|r| key(r, position)),
                };
                let mut ranks = [keys[0].rank(order); LANES];
                for r in 0..LANES {
                    ranks[r] = keys[r].rank(order);
                }
                Column { ranks, positions: [position as u32; LANES] }
            };
            let mut best = [column(0); MAX_TOP];
            for position in 1..sorting.columns {
                let mut new = column(position);
                for old in &mut best[..to.min(position)] {
                    (*old, new) = old.sorted(new);
                }
                if position < to {
                    best[position] = new;
                }
            }
            // SAFETY: guaranteed by the caller.
            unsafe {
                sorting.write((row, lanes), |r, i| best[from + i].positions[r] as usize, key)
            };
        }
    }

    /// Sorts one row after the other. If the elements of a row are not adjacent, the elements of a
    /// block of rows are copied to contiguous memory before the rows of the block are sorted.
    ///
    /// # Safety
    /// The conditions of [`Self::side_by_side`] hold.
    #[inline(always)]
    unsafe fn one_by_one(self) {
        let Piece { sorting, rows, block, keys: gathered_elements, records, ordered } = self;
        let (columns, count) = (sorting.columns, sorting.selection.to - sorting.selection.from);
        let is_adjacent = sorting.step == 1;
        for row in rows.clone().step_by(block) {
            let lanes = block.min(rows.end - row);
            let x = sorting.x.addresses::<LANES>(row, lanes);
            let keys = match is_adjacent {
                true => x,
                false => std::array::from_fn(|r| gathered_elements.wrapping_add(r * columns)),
            };
            // SAFETY: guaranteed by the caller; there is memory for the elements of a block.
            unsafe {
                for j in 0..if is_adjacent { 0 } else { columns } {
                    for r in 0..lanes {
                        *keys[r].add(j) = *x[r].add(j * sorting.step);
                    }
                }
                for r in 0..lanes {
                    let keys = std::slice::from_raw_parts(keys[r].cast_const(), columns);
                    let row_records = sorting.selection.order(keys, records);
                    ordered[r * count..][..count].copy_from_slice(row_records);
                }
                let position = |r: usize, i: usize| ordered[r * count + i].position();
                sorting.write((row, lanes), position, |r, position| *keys[r].add(position));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::fmt::Debug;

    use half::f16;

    use super::*;

    /// Sorts 19 copies of the row `row` with the kernel, and checks that all copies give the same positions. Returns the values and
    /// the positions with the indices `from..to` in sorted order, for one copy. If `transposed` is true, the elements of each copy
    /// are 19 elements apart, otherwise they are contiguous.
    fn sorted<K: Key>(
        row: &[K],
        (from, to, order): (usize, usize, Order),
        transposed: bool,
    ) -> (Vec<K>, Vec<i64>) {
        let (n, rows, count) = (row.len(), 19, to - from);
        let x: Vec<K> = match transposed {
            true => row.iter().flat_map(|&k| vec![k; rows]).collect(),
            false => row.repeat(rows),
        };
        let view = |data: *mut u8, dtype, columns: usize| {
            let strides = if transposed { [1, rows as i64] } else { [columns as i64, 1] };
            View::new(data, dtype, &[rows as i64, columns as i64], Some(&strides))
                .expect("two dims")
        };
        let (mut values, mut positions) = (vec![row[0]; rows * count], vec![-1i64; rows * count]);
        // The data type of the view is not used.
        let x = view(x.as_ptr().cast_mut().cast(), DType::Int8, n);
        let values_view = view(values.as_mut_ptr().cast(), DType::Int8, count);
        let positions_view = view(positions.as_mut_ptr().cast(), DType::Int64, count);
        let step = |view: &View| view.strides()[1] as usize;
        let selection = Selection { from, to, order, algorithm: algorithm(n, to) };
        let sorting = Sorting::<K> {
            x: Rows::of(&x, 1),
            values: Some((Rows::of(&values_view, 1), step(&values_view))),
            positions: Some((Rows::of(&positions_view, 1), step(&positions_view), DType::Int64)),
            columns: n,
            step: step(&x),
            network: selection.network(n),
            selection,
        };
        // SAFETY: the views lie in their vectors.
        let status = unsafe {
            match K::FITS_U64_RECORD {
                true => sorting.run::<u64>(&KernelRuntime::serial(), rows),
                false => sorting.run::<(u64, usize)>(&KernelRuntime::serial(), rows),
            }
        };
        assert_eq!(status, STATUS_OK);
        let lane = |i: usize| if transposed { i * rows + 3 } else { 3 * count + i };
        let first = (0..count).map(lane);
        let last = |i: usize| if transposed { i * rows + rows - 1 } else { (rows - 1) * count + i };
        assert!((0..count).all(|i| positions[lane(i)] == positions[last(i)]));
        (first.clone().map(|i| values[i]).collect(), first.map(|i| positions[i]).collect())
    }

    /// Compares the kernel with a stable sort of `row`, for several ranges of indices in sorted order.
    fn check<K: Key + Debug>(row: &[K], less: impl Fn(&K, &K) -> bool, order: Order) {
        let mut want: Vec<usize> = (0..row.len()).collect();
        want.sort_by(|&a, &b| {
            let (a, b) = (&row[a], &row[b]);
            match (less(a, b), less(b, a)) {
                (true, _) => Ordering::Less,
                (_, true) => Ordering::Greater,
                _ => Ordering::Equal,
            }
        });
        let n = row.len();
        for (from, to) in [(0, n), (0, n / 2), (0, n / 9), (0, 1), (n / 2, n / 2 + 1), (n / 3, n)] {
            if from == to {
                continue;
            }
            for transposed in [false, true] {
                let (values, positions) = sorted(row, (from, to, order), transposed);
                let ordered: Vec<usize> = positions.iter().map(|&p| p as usize).collect();
                assert_eq!(ordered, want[from..to], "{row:?} {from}..{to} {order:?}");
                let expected_values: Vec<K> = ordered.iter().map(|&p| row[p]).collect();
                assert_eq!(format!("{values:?}"), format!("{expected_values:?}"));
            }
        }
    }
    /// Returns `n` pseudo-random numbers, some of which are equal.
    fn pseudo_random(n: usize) -> Vec<i64> {
        (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as i64 - 16).collect()
    }

    #[test]
    fn rows_of_every_length_are_ordered() {
        for n in [1, 2, 3, 7, 16, 31, 64, 65, 200, 1111] {
            let row = pseudo_random(n);
            for descending in [false, true] {
                let order = Order { descending, nan_first: false };
                let less = |a: i64, b: i64| if descending { a > b } else { a < b };
                check(&row, |a, b| less(*a, *b), order);
                let small: Vec<i8> = row.iter().map(|&v| v as i8).collect();
                check(&small, |a, b| less((*a).into(), (*b).into()), order);
                let large: Vec<u64> = row.iter().map(|&v| v.unsigned_abs() << 59).collect();
                check(&large, |a, b| if descending { a > b } else { a < b }, order);
            }
        }
    }

    #[test]
    fn nan_is_last_or_first_and_zeros_are_equal() {
        let specials = [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, 1.0];
        for n in [40, 200] {
            let row: Vec<f32> = (0..n).map(|i| specials[i * 5 % 7]).collect();
            for (descending, nan_first) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let order = Order { descending, nan_first };
                let less = |a: f32, b: f32| {
                    let (first, last) = if nan_first { (a, b) } else { (b, a) };
                    let by_nan = first.is_nan() && !last.is_nan();
                    by_nan || if descending { a > b } else { a < b }
                };
                check(&row, |a, b| less(*a, *b), order);
                let half: Vec<f16> = row.iter().map(|&v| f16::from_f32(v)).collect();
                check(&half, |a, b| less(a.to_f32(), b.to_f32()), order);
                let wide: Vec<f64> = row.iter().map(|&v| v.into()).collect();
                check(&wide, |a, b| less(*a as f32, *b as f32), order);
            }
        }
    }
}
