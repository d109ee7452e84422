//! The declared kernel `sort`.
//!
//! Equal elements keep their order. NaN comes after every number in either direction, and both
//! zeros are equal. Each element becomes an integer with the required order, with its position in the
//! lower bits. These records are distinct, so an unstable sort of integers gives the stable order.
//!
//! `rules::sort` chooses the algorithm of a row: a sorting network over [`LANES`] rows, one per lane; a sorted list of few
//! candidates; selection from blocks of candidates; or selection of the part that is wanted, and a sort.

mod key;
mod network;
mod row;

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernel_api::kernels::sort::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes, View};
use pliant_machine::isa::isa;
use pliant_tensor::DType;

use self::key::{Key, Record};
use self::network::Network;
use self::row::Wanted;
use super::vectorized::{Vectorized, vectorized};
use super::view::Rows;
use crate::entry::Implementation;
use crate::product::parallel::parallel_for;
use crate::rules::sort::{Algorithm, MAX_NETWORK, algorithm, gathered_rows, piece, unit};
use crate::scratch::Scratch;

/// Sorted rows.
pub struct Sort;

impl Implementation for Sort {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let dtype = call.operand("x").map_or(DType::Float32, |x| x.dtype);
        // SAFETY: guaranteed by the caller; the elements are of these types.
        unsafe { for_dtype!(dtype, sort(runtime, call, sizes)) }
    }
}

/// Rows that are sorted side by side, or whose elements are gathered together.
const LANES: usize = 16;

// ---- rows side by side ----

/// One element of each of [`LANES`] rows.
#[derive(Clone, Copy)]
struct Column<R> {
    ranks: [R; LANES],
    positions: [u32; LANES],
}

impl<R: Copy + Ord> Column<R> {
    /// The lesser and the greater element of each lane.
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

/// A checked call.
struct Sorting<K> {
    x: Rows<K>,
    values: Option<(Rows<K>, usize)>,
    positions: Option<(Rows<u8>, usize, DType)>,
    columns: usize,
    step: usize,
    wanted: Wanted,
    /// The comparators, if rows are sorted by a network.
    network: Network,
}

/// # Safety
/// As for [`Implementation::run`]; the operands `x` and `values` have elements of type `K`.
unsafe fn sort<K: Key>(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
    let Some(x) = call.operand("x") else { return STATUS_OK };
    let (rows, count) = (sizes.get("rows") as usize, sizes.get("count") as usize);
    if rows == 0 || count == 0 {
        return STATUS_OK;
    }
    let step = |view: &View| view.strides().last().map_or(0, |&step| step as usize);
    let (columns, from) = (sizes.get("columns") as usize, call.int("first") as usize);
    let wanted = Wanted {
        from,
        to: from + count,
        descending: call.int("descending") != 0,
        algorithm: algorithm(columns, from + count),
    };
    let all = Sorting::<K> {
        x: Rows::of(x, 1),
        values: call.operand("values").map(|v| (Rows::of(v, 1), step(v))),
        positions: call.operand("positions").map(|p| (Rows::of(p, 1), step(p), p.dtype)),
        columns,
        step: step(x),
        network: wanted.network(columns),
        wanted,
    };
    // SAFETY: guaranteed by the caller.
    unsafe {
        match K::NARROW && columns < 1 << 32 {
            true => all.run::<u64>(runtime, rows),
            false => all.run::<(u64, usize)>(runtime, rows),
        }
    }
}

impl<K: Key> Sorting<K> {
    /// # Safety
    /// The rows and the results are valid, and there are some.
    unsafe fn run<R: Record>(&self, runtime: &KernelRuntime, rows: usize) -> i64 {
        let unit = unit(self.wanted.algorithm);
        let together = match self.wanted.algorithm {
            Algorithm::Network => LANES,
            _ => self.block(),
        };
        let each = (piece(unit) / self.columns).max(1).next_multiple_of(together).min(rows);
        let (block, needed) = (self.block(), self.wanted.records(self.columns));
        let count = self.wanted.to - self.wanted.from;
        let (gathered, records) = match self.wanted.algorithm {
            Algorithm::Network => (0, 0),
            _ if self.step == 1 => (0, needed + block * count),
            _ => (block * self.columns, needed + block * count),
        };
        let run = |index: usize| {
            let rows = index * each..rows.min((index + 1) * each);
            KEYS.with(|keys| {
                keys.with(gathered, |keys| {
                    RECORDS.with(|memory| {
                        memory.with(records, |memory| {
                            // SAFETY: there is memory for this many records, of which any contents are valid.
                            let memory = unsafe { std::slice::from_raw_parts_mut(memory, records) };
                            let (records, found) = memory.split_at_mut(needed);
                            let piece =
                                Piece::<K, R> { all: self, rows, block, keys, records, found };
                            // SAFETY: guaranteed by the caller; each row is in one piece. The machine has the instructions.
                            unsafe { vectorized(isa(), piece) };
                            STATUS_OK
                        })
                    })
                })
            })
        };
        let units = each.saturating_mul(self.columns) / unit;
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, rows.div_ceil(each), units.max(1), &run) }
    }

    /// The number of rows that are sorted before their results are written: several if elements or results lie apart.
    fn block(&self) -> usize {
        let steps = [self.values.as_ref().map(|v| v.1), self.positions.as_ref().map(|p| p.1)];
        let is_adjacent = |&step: &usize| step == 1;
        match self.step == 1 && steps.iter().flatten().all(is_adjacent) {
            true => 1,
            false => gathered_rows(self.columns).clamp(1, LANES),
        }
    }

    /// Writes the results of `lanes` rows from `row` on: `position` of a lane and a rank, `key` of a lane and a position.
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
        let sizes = (lanes, self.wanted.to - self.wanted.from);
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

/// Calls `f` with each row and rank, row by row if ranks are adjacent in memory.
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

/// The rows of a piece, and memory for a block of rows.
struct Piece<'a, K, R> {
    all: &'a Sorting<K>,
    rows: Range<usize>,
    block: usize,
    /// The elements, if they lie apart.
    keys: *mut K,
    /// The records of one row.
    records: &'a mut [R],
    /// The records that are wanted.
    found: &'a mut [R],
}

impl<K: Key, R: Record> Vectorized for Piece<'_, K, R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.all.wanted.algorithm {
                Algorithm::Network => self.side_by_side(),
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
        let Piece { all, rows, .. } = self;
        let Wanted { from, descending, .. } = all.wanted;
        let first = all.x.run(rows.start).address;
        // SAFETY: guaranteed by the caller: there is a row, with an element.
        let rank = unsafe { *first }.rank(descending);
        let mut columns = [Column { ranks: [rank; LANES], positions: [0; LANES] }; MAX_NETWORK];
        for row in rows.clone().step_by(LANES) {
            let lanes = LANES.min(rows.end - row);
            let x = all.x.addresses::<LANES>(row, lanes);
            // SAFETY: guaranteed by the caller; positions are below the number of columns.
            let key = |r: usize, position: usize| unsafe { *x[r].add(position * all.step) };
            for (j, column) in columns[..all.columns].iter_mut().enumerate() {
                let keys: [K; LANES] = std::array::from_fn(|r| key(r, j));
                for r in 0..LANES {
                    column.ranks[r] = keys[r].rank(descending);
                }
                column.positions = [j as u32; LANES];
            }
            for &(low, high) in all.network.comparators() {
                let (low, high) = (usize::from(low), usize::from(high));
                (columns[low], columns[high]) = columns[low].sorted(columns[high]);
            }
            // SAFETY: guaranteed by the caller.
            unsafe { all.write((row, lanes), |r, i| columns[from + i].positions[r] as usize, key) };
        }
    }

    /// Sorts one row after the other. If elements lie apart, those of several rows are gathered together.
    ///
    /// # Safety
    /// As for [`Self::side_by_side`].
    #[inline(always)]
    unsafe fn one_by_one(self) {
        let Piece { all, rows, block, keys: gathered, records, found } = self;
        let (columns, count) = (all.columns, all.wanted.to - all.wanted.from);
        let is_adjacent = all.step == 1;
        for row in rows.clone().step_by(block) {
            let lanes = block.min(rows.end - row);
            let x = all.x.addresses::<LANES>(row, lanes);
            let keys = match is_adjacent {
                true => x,
                false => std::array::from_fn(|r| gathered.wrapping_add(r * columns)),
            };
            // SAFETY: guaranteed by the caller; there is memory for the elements of a block.
            unsafe {
                for j in 0..if is_adjacent { 0 } else { columns } {
                    for r in 0..lanes {
                        *keys[r].add(j) = *x[r].add(j * all.step);
                    }
                }
                for r in 0..lanes {
                    let keys = std::slice::from_raw_parts(keys[r].cast_const(), columns);
                    let ordered = all.wanted.order(keys, records);
                    found[r * count..][..count].copy_from_slice(ordered);
                }
                let position = |r: usize, i: usize| found[r * count + i].position();
                all.write((row, lanes), position, |r, position| *keys[r].add(position));
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

    /// Sorts rows of these elements, which are adjacent or `rows` apart.
    fn sorted<K: Key>(
        row: &[K],
        (from, to, descending): (usize, usize, bool),
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
        // The type of the view is not looked at.
        let x = view(x.as_ptr().cast_mut().cast(), DType::Int8, n);
        let values_view = view(values.as_mut_ptr().cast(), DType::Int8, count);
        let positions_view = view(positions.as_mut_ptr().cast(), DType::Int64, count);
        let step = |view: &View| view.strides()[1] as usize;
        let wanted = Wanted { from, to, descending, algorithm: algorithm(n, to) };
        let all = Sorting::<K> {
            x: Rows::of(&x, 1),
            values: Some((Rows::of(&values_view, 1), step(&values_view))),
            positions: Some((Rows::of(&positions_view, 1), step(&positions_view), DType::Int64)),
            columns: n,
            step: step(&x),
            network: wanted.network(n),
            wanted,
        };
        // SAFETY: the views lie in their vectors.
        let status = unsafe {
            match K::NARROW {
                true => all.run::<u64>(&KernelRuntime::serial(), rows),
                false => all.run::<(u64, usize)>(&KernelRuntime::serial(), rows),
            }
        };
        assert_eq!(status, STATUS_OK);
        let lane = |i: usize| if transposed { i * rows + 3 } else { 3 * count + i };
        let first = (0..count).map(lane);
        let last = |i: usize| if transposed { i * rows + rows - 1 } else { (rows - 1) * count + i };
        assert!((0..count).all(|i| positions[lane(i)] == positions[last(i)]));
        (first.clone().map(|i| values[i]).collect(), first.map(|i| positions[i]).collect())
    }

    /// Compares parts of the stable order by comparison with the kernel's results.
    fn check<K: Key + Debug>(row: &[K], less: impl Fn(&K, &K) -> bool, descending: bool) {
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
                let (values, positions) = sorted(row, (from, to, descending), transposed);
                let found: Vec<usize> = positions.iter().map(|&p| p as usize).collect();
                assert_eq!(found, want[from..to], "{row:?} {from}..{to} descending {descending}");
                let moved: Vec<K> = found.iter().map(|&p| row[p]).collect();
                assert_eq!(format!("{values:?}"), format!("{moved:?}"));
            }
        }
    }
    /// Numbers with repetitions, without a pattern.
    fn numbers(n: usize) -> Vec<i64> {
        (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as i64 - 16).collect()
    }

    #[test]
    fn rows_of_every_length_are_ordered() {
        for n in [1, 2, 3, 7, 16, 31, 64, 65, 200, 1111] {
            let row = numbers(n);
            for descending in [false, true] {
                let less = |a: i64, b: i64| if descending { a > b } else { a < b };
                check(&row, |a, b| less(*a, *b), descending);
                let small: Vec<i8> = row.iter().map(|&v| v as i8).collect();
                check(&small, |a, b| less((*a).into(), (*b).into()), descending);
                let large: Vec<u64> = row.iter().map(|&v| v.unsigned_abs() << 59).collect();
                check(&large, |a, b| if descending { a > b } else { a < b }, descending);
            }
        }
    }

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let specials = [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, 1.0];
        let row: Vec<f32> = (0..40).map(|i| specials[i * 5 % 7]).collect();
        for descending in [false, true] {
            let less = |a: f32, b: f32| {
                b.is_nan() && !a.is_nan() || if descending { a > b } else { a < b }
            };
            check(&row, |a, b| less(*a, *b), descending);
            let half: Vec<f16> = row.iter().map(|&v| f16::from_f32(v)).collect();
            check(&half, |a, b| less(a.to_f32(), b.to_f32()), descending);
            let wide: Vec<f64> = row.iter().map(|&v| v.into()).collect();
            check(&wide, |a, b| less(*a as f32, *b as f32), descending);
        }
    }
}
