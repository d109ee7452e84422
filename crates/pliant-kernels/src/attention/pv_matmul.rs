//! The product of the softmax weights (P) and the values (V), for a block of rows and a block of
//! keys.
//!
//! A sliver (the rows of one register tile) is multiplied over all keys that any of its rows
//! attends to. For masked keys, a row has weight 0. But 0 times an infinity or NaN is NaN, so the
//! value of a masked key could change the result. Therefore, the values of keys that only some rows
//! attend to (few per block) are first checked for infinities and NaN. If the check finds any, the
//! tile covers only the keys to which all rows of the sliver attend, and each row adds its other
//! keys separately.
//!
//! Method: the matmul micro-kernel reads the values in place or packed. For measurements, see
//! "Attention" in `docs/internals/measurements/attention.md`, which also states the gain from
//! packing values with a large stride. The check for infinities was not measured separately.

use std::ops::Range;

use super::Ops;
use super::score_softmax::Row;
use crate::matmul::micro_kernel::{KSegment, Prefetch, Tile};
use crate::matmul::row_tiling::slivers;
use crate::simd::MathLanes;
use crate::simd::horizontal_reduce::Reduce;

/// The arguments of the product of weights and values: the weights of a block of rows, the values
/// of a block of keys, and the destination of the results.
pub struct Block<'a> {
    /// The states of the rows, with the range of keys to which each row attends (its visible keys).
    pub rows: &'a [Row],
    /// The address of the softmax weight of the first row and the first key. The field `stride` is the distance between the weights
    /// of adjacent rows, in elements. The weights of masked keys are 0.
    pub weights: *const f32,
    pub stride: isize,
    /// The address of the value vector of the block's first key. The field `v_row` is the distance between the vectors of adjacent
    /// keys, in elements.
    pub values: *const f32,
    pub v_row: isize,
    /// The number of elements of a value vector.
    pub size: usize,
    /// The address of the first result of the block. The field `out_row` is the distance between rows, in elements.
    pub out: *mut f32,
    pub out_row: isize,
    /// Whether the product of weights and values is added to the previous contents of the results.
    pub accumulate: bool,
}

impl Block<'_> {
    /// Computes the results of the block: the matrix product of weights and values.
    ///
    /// # Safety
    /// The machine has the instructions of `ops`. All elements are valid. Each row of values is
    /// readable up to a multiple of the vector length. The results overlap no operand.
    pub unsafe fn run(&self, ops: &Ops) {
        // SAFETY: guaranteed by the caller.
        let finite = VisibleKeys::of(self.rows).partly_visible().into_iter().all(|keys| unsafe {
            let from = self.values.wrapping_offset(keys.start as isize * self.v_row);
            let (rows, columns, all_finite) = (keys.len(), self.size, true);
            let mut values = FiniteCheck { from, row: self.v_row, rows, columns, all_finite };
            (ops.finite)(&mut values);
            values.all_finite
        });
        let panel = ops.kernels.columns();
        for column in (0..self.size).step_by(panel) {
            let columns = column..self.size.min(column + panel);
            for (first, height) in slivers(self.rows.len()) {
                let sliver = first..first + height;
                let visible = VisibleKeys::of(&self.rows[sliver.clone()]);
                // SAFETY: guaranteed by the caller.
                unsafe {
                    if finite {
                        self.sum(ops, sliver, &columns, visible.any, self.accumulate);
                        continue;
                    }
                    self.sum(ops, sliver.clone(), &columns, visible.all.clone(), self.accumulate);
                    for row in sliver {
                        for keys in visible.outside_common(&self.rows[row]) {
                            self.sum(ops, row..row + 1, &columns, keys, true);
                        }
                    }
                }
            }
        }
    }

    /// Computes the product of weights and values for a sliver (the rows of a register tile) and a
    /// range of keys, and stores it in the results, or adds it to them if `accumulate` is set. For
    /// an empty range of keys, the product is 0.
    unsafe fn sum(
        &self,
        ops: &Ops,
        rows: Range<usize>,
        columns: &Range<usize>,
        keys: Range<usize>,
        accumulate: bool,
    ) {
        let (row, key) = (rows.start as isize, keys.start as isize);
        let mut tile = Tile {
            segments: &[KSegment::leading(keys.len())],
            a: self.weights.wrapping_offset(row * self.stride + key),
            a_row: self.stride,
            a_col: 1,
            b: self.values.wrapping_offset(key * self.v_row).wrapping_add(columns.start),
            b_row: self.v_row,
            c: self.out.wrapping_offset(row * self.out_row).wrapping_add(columns.start),
            c_row: self.out_row,
            accumulate,
            tail_lanes: 0,
            prefetch: Prefetch::NONE,
            epilogue: None,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { ops.kernels.run(rows.len(), columns.len(), &mut tile) };
    }
}

/// The keys of a block that the rows of a sliver (the rows of a register tile) attend to: the range
/// of keys visible to at least one row, and the range visible to all rows.
struct VisibleKeys {
    any: Range<usize>,
    all: Range<usize>,
}

impl VisibleKeys {
    fn of(rows: &[Row]) -> VisibleKeys {
        let visible = rows.iter().map(|row| row.low..row.high);
        let any = visible.clone().filter(|keys| !keys.is_empty());
        let any = any.reduce(|x, y| x.start.min(y.start)..x.end.max(y.end)).unwrap_or(0..0);
        let all = visible.reduce(|x, y| x.start.max(y.start)..x.end.min(y.end));
        let mut all = all.unwrap_or(0..0);
        if all.is_empty() {
            // The visible ranges do not intersect.
            all = any.start..any.start;
        }
        VisibleKeys { any, all }
    }

    /// Returns the keys to which at least one row of the sliver attends, but not all rows: the
    /// ranges before and after the common keys.
    fn partly_visible(&self) -> [Range<usize>; 2] {
        [self.any.start..self.all.start, self.all.end..self.any.end]
    }

    /// Returns the keys to which a row attends, except the keys to which all rows attend.
    fn outside_common(&self, row: &Row) -> impl Iterator<Item = Range<usize>> {
        let before = row.low..row.high.min(self.all.start);
        let after = row.low.max(self.all.end)..row.high;
        [before, after].into_iter().filter(|keys| !keys.is_empty())
    }
}

/// The rows of values that [`check_finite`] examines, and its result.
pub struct FiniteCheck {
    /// The address of the first of the elements to check. The field `row` is the distance between rows, in elements.
    pub from: *const f32,
    pub row: isize,
    pub rows: usize,
    pub columns: usize,
    /// The result of the check: whether all checked elements are finite.
    pub all_finite: bool,
}

/// Checks whether all elements of `values` are finite, and stores the answer in
/// `values.all_finite`.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
pub unsafe fn check_finite<L: MathLanes<Elem = f32> + Reduce>(values: &mut FiniteCheck) {
    let whole = values.columns / L::N * L::N;
    // SAFETY: guaranteed by the caller.
    unsafe {
        // 0 times a finite number is 0; 0 times infinity or NaN is NaN.
        let mut sum = L::zero();
        for row in 0..values.rows as isize {
            let x = values.from.offset(row * values.row);
            for at in (0..whole).step_by(L::N) {
                sum = L::load(x.add(at)).mul_add(L::zero(), sum);
            }
            if whole < values.columns {
                sum = L::load_first(x.add(whole), values.columns - whole).mul_add(L::zero(), sum);
            }
        }
        values.all_finite = sum.sum_lanes() == 0.0;
    }
}
