//! Softmax of rows of scores, in place: scale, cap, bias and mask, then the maximum, then the
//! exponentials and their sum. The results are unnormalized weights: the division by the sum
//! follows later.
//!
//! A row is read two or three times while it is in the nearest caches. Rows keep their maximum and
//! their sum across blocks of keys; the results of earlier blocks are scaled by [`Row::factor`].
//!
//! Method: online softmax (Milakov and Gimelshein, 2018) with a running maximum and sum. If the
//! block contains all keys, one step of the method is enough. For measurements, see "Attention" in
//! `docs/internals/measurements/attention.md`, which also states the time of the exponentials and
//! the gain from skipping weights of 0.

use crate::math;
use crate::simd::MathLanes;
use crate::simd::horizontal_reduce::Reduce;
use crate::vector_math::vector_math_ops::Wide;

/// Number of float32 lanes of the widest vector.
const WIDEST: usize = 16;

/// The softmax state of one row of scores: its visible columns (keys), its bias and mask, and its
/// running maximum and sum.
#[derive(Clone, Copy)]
pub struct Row {
    /// The first column (key) to which the row attends.
    pub low: usize,
    /// The end (exclusive) of the range of columns to which the row attends.
    pub high: usize,
    /// The address of the bias that is added to the score of column 0; null if there is no bias.
    pub bias: *const f32,
    /// The address of the mask element for the score of column 0; null if there is no mask.
    pub mask: *const u8,
    /// The maximum score of the row so far.
    pub largest: f32,
    /// The sum of the exponentials of the row so far.
    pub sum: f32,
    /// The factor by which the results of earlier key blocks must be multiplied, because the
    /// maximum changed.
    pub factor: f32,
}

impl Row {
    /// The state of a row before the first block of keys.
    pub const NEW: Row = Row {
        low: 0,
        high: 0,
        bias: std::ptr::null(),
        mask: std::ptr::null(),
        largest: f32::NEG_INFINITY,
        sum: 0.0,
        factor: 0.0,
    };
}

/// A block of scores, and the parameters of softmax.
pub struct ScoreBlock<'a> {
    /// The address of the first score. Each row has space for `width` elements.
    pub scores: *mut f32,
    /// The distance in memory between adjacent rows of scores, in elements.
    pub stride: usize,
    /// The number of columns of the block, a multiple of the lanes of a vector.
    pub width: usize,
    /// The factor by which the dot products of queries and keys are multiplied.
    pub scale: f32,
    /// The soft cap of the scores, which limits their magnitude; 0 for none.
    pub cap: f32,
    /// The distance between the biases of adjacent columns, in elements.
    pub bias_stride: isize,
    /// Whether a bias of minus infinity hides a key even if its score is NaN.
    pub bias_hides: bool,
    /// The distance between the mask elements of adjacent columns, in elements.
    pub mask_stride: isize,
    /// The score of the columns that the mask hides.
    pub masked_score: f32,
    /// Whether the bias is added to the scores after masking instead of before.
    pub mask_before_bias: bool,
    /// The result of attention for rows whose softmax weights are all 0.
    pub fully_masked: f32,
    /// Whether a row whose weights are NaN is treated as fully masked: its result is
    /// `fully_masked`, as for a row whose weights are all 0.
    pub nan_is_fully_masked: bool,
    /// The states of the rows of the block.
    pub rows: &'a mut [Row],
}

/// Replaces the scores of all rows by softmax weights, in place. The weight of a masked column is
/// 0.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All addressed elements
/// are valid.
#[inline(always)]
pub unsafe fn softmax_rows<L: MathLanes<Elem = f32> + Reduce>(block: &mut ScoreBlock<'_>) {
    for index in 0..block.rows.len() {
        let mut row = block.rows[index];
        // SAFETY: guaranteed by the caller.
        unsafe {
            let scores = block.scores.add(index * block.stride);
            one_row::<L>(scores, &mut row, block);
        }
        block.rows[index] = row;
    }
}

/// Replaces the scores of one row by softmax weights, in place, and updates the row's running
/// maximum and sum.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn one_row<L: MathLanes<Elem = f32> + Reduce>(
    scores: *mut f32,
    row: &mut Row,
    block: &ScoreBlock<'_>,
) {
    row.factor = 1.0;
    // SAFETY: guaranteed by the caller; columns stay below the width.
    unsafe {
        if row.low >= row.high {
            zero_fill::<L>(scores, 0, block.width);
            return;
        }
        let (from, to) = (row.low / L::N * L::N, row.high.next_multiple_of(L::N));
        let plain =
            row.bias.is_null() && row.mask.is_null() && block.cap == 0.0 && block.scale > 0.0;
        let scale = if plain {
            block.scale
        } else {
            transform_scores::<L>(scores, (from, row.high), row, block);
            1.0
        };
        hide_lanes::<L>(scores, from, 0, row.low - from);
        hide_lanes::<L>(scores, to - L::N, L::N - (to - row.high), L::N);
        let block_largest = largest::<L>(scores, from, to) * scale;
        let largest = if block_largest > row.largest { block_largest } else { row.largest };
        // If all scores are masked, any finite number works; infinity would cause NaN.
        let base = if largest == f32::NEG_INFINITY { 0.0 } else { largest };
        // There are no earlier results to rescale in the first block, which saves a call of `exp`.
        row.factor = match row.largest {
            f32::NEG_INFINITY => 0.0,
            before => (before - base).exp(),
        };
        let sum = exponentials::<L>(scores, (from, to), scale, base);
        row.sum = row.sum * row.factor + sum;
        row.largest = largest;
        zero_fill::<L>(scores, 0, from);
        zero_fill::<L>(scores, to, block.width);
    }
}

/// Sets the lanes `low..high` of a vector of scores to minus infinity. Changes the vector in a
/// register, because storing single elements and then loading the vector would stall.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn hide_lanes<L: MathLanes<Elem = f32>>(
    scores: *mut f32,
    at: usize,
    low: usize,
    high: usize,
) {
    if low >= high {
        return;
    }
    // SAFETY: guaranteed by the caller; the table is as wide as any vector.
    unsafe {
        let (x, lane) = (L::load(scores.add(at)), L::load(LANE_INDICES.as_ptr()));
        let none = L::splat(f32::NEG_INFINITY);
        let high_hidden = L::select_lt(lane, L::splat(high as f32), none, x);
        L::select_lt(lane, L::splat(low as f32), x, high_hidden).store(scores.add(at));
    }
}

/// The index of each lane as a float, for comparisons.
static LANE_INDICES: [f32; WIDEST] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// Minimum argument whose exponential is a normal number. For smaller arguments, the weight is 0:
/// subnormal weights, which masked scores may have, would cost about a hundred cycles per
/// operation.
const MIN_EXP_ARGUMENT: f32 = -87.0;

/// Writes zeros to the scores from column `from` to column `to`, which are multiples of the vector
/// length.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn zero_fill<L: MathLanes<Elem = f32>>(scores: *mut f32, from: usize, to: usize) {
    for at in (from..to).step_by(L::N) {
        // SAFETY: guaranteed by the caller.
        unsafe { L::zero().store(scores.add(at)) };
    }
}

/// Applies scale, soft cap, bias and mask to the scores of the columns `from..high`, in place.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn transform_scores<L: MathLanes<Elem = f32>>(
    scores: *mut f32,
    (from, high): (usize, usize),
    row: &Row,
    block: &ScoreBlock<'_>,
) {
    for at in (from..high).step_by(L::N) {
        let count = L::N.min(high - at);
        // SAFETY: guaranteed by the caller; bias and mask are read from the first column of a vector to the last that
        // the row sees.
        unsafe {
            let mut x = L::load(scores.add(at)).mul(L::splat(block.scale));
            if block.cap != 0.0 {
                let y = x.div(L::splat(block.cap));
                x = math::tanh(&mut Wide::<L>::new(), &y).mul(L::splat(block.cap));
            }
            if block.mask_before_bias {
                x = masked::<L>(x, at, count, row, block);
            }
            if !row.bias.is_null() {
                let bias = match block.bias_stride {
                    0 => L::splat(row.bias.read_unaligned()),
                    1 if count == L::N => L::load(row.bias.add(at)),
                    1 => L::load_first(row.bias.add(at), count),
                    step => gather::<L>(row.bias.offset(at as isize * step), step, count),
                };
                x = x.add(bias);
                if block.bias_hides {
                    let none = L::splat(f32::NEG_INFINITY);
                    x = L::select_lt(bias, L::splat(f32::MIN), none, x);
                }
            }
            if !block.mask_before_bias {
                x = masked::<L>(x, at, count, row, block);
            }
            x.store(scores.add(at));
        }
    }
}

/// Replaces masked scores by [`ScoreBlock::masked_score`], in a vector of `count` scores that
/// starts at column `at`.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn masked<L: MathLanes<Elem = f32>>(
    x: L,
    at: usize,
    count: usize,
    row: &Row,
    block: &ScoreBlock<'_>,
) -> L {
    if row.mask.is_null() {
        return x;
    }
    let mut seen = [0f32; WIDEST];
    // SAFETY: guaranteed by the caller; the mask is read up to the last column that the row sees; the array is as wide
    // as any vector.
    unsafe {
        if block.mask_stride == 1 && count == L::N {
            // A fixed trip count, so that the compiler vectorizes the loop.
            for (i, seen) in seen.iter_mut().enumerate().take(L::N) {
                *seen = f32::from(u8::from(*row.mask.add(at + i) != 0));
            }
        } else {
            for (i, seen) in seen.iter_mut().enumerate().take(count) {
                let byte = *row.mask.offset((at + i) as isize * block.mask_stride);
                *seen = f32::from(u8::from(byte != 0));
            }
        }
        L::select_lt(L::load(seen.as_ptr()), L::splat(0.5), L::splat(block.masked_score), x)
    }
}

/// Loads `count` elements, which are `step` elements apart, into a vector.
///
/// # Safety
/// `count` elements are readable at this stride.
#[inline(always)]
unsafe fn gather<L: MathLanes<Elem = f32>>(from: *const f32, step: isize, count: usize) -> L {
    let mut lanes = [0f32; WIDEST];
    for (i, x) in lanes.iter_mut().enumerate().take(count) {
        // SAFETY: guaranteed by the caller.
        *x = unsafe { from.offset(i as isize * step).read_unaligned() };
    }
    // SAFETY: the array is as wide as any vector.
    unsafe { L::load(lanes.as_ptr()) }
}

/// Returns the maximum of a range of scores, which consists of whole vectors.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn largest<L: MathLanes<Elem = f32> + Reduce>(
    scores: *const f32,
    from: usize,
    to: usize,
) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut best = [L::splat(f32::NEG_INFINITY); 4];
        let mut at = from;
        while to - at >= 4 * L::N {
            for (i, best) in best.iter_mut().enumerate() {
                *best = best.max2(L::load(scores.add(at + i * L::N)));
            }
            at += 4 * L::N;
        }
        while at < to {
            best[0] = best[0].max2(L::load(scores.add(at)));
            at += L::N;
        }
        best[0].max2(best[1]).max2(best[2].max2(best[3])).largest_lane()
    }
}

/// Replaces each score `x` by `exp(scale * x - base)`. Returns the sum of the exponentials.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold.
#[inline(always)]
unsafe fn exponentials<L: MathLanes<Elem = f32> + Reduce>(
    scores: *mut f32,
    (from, to): (usize, usize),
    scale: f32,
    base: f32,
) -> f32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (scale, minus) = (L::splat(scale), L::splat(-base));
        let mut ops = Wide::<L>::new();
        let mut sum = L::zero();
        let min_argument = L::splat(MIN_EXP_ARGUMENT);
        for at in (from..to).step_by(L::N) {
            // The product is rounded like that of the maximum, so that the argument of the maximum is exactly 0.
            let x = L::load(scores.add(at)).mul(scale).add(minus);
            // This operand order propagates NaN.
            let clamped = min_argument.max2(x);
            let y = math::exp_within(&mut ops, &clamped);
            let y = L::select_lt(x, min_argument, L::zero(), y);
            y.store(scores.add(at));
            sum = sum.add(y);
        }
        sum.sum_lanes()
    }
}

/// Scales rows of results. After the last block of keys (`last`), multiplies each row by the
/// reciprocal of its sum of weights; after earlier blocks, multiplies it by [`Row::factor`]. After
/// the last block, a row whose sum of weights is 0 attends to no key, and its results are set to
/// [`ScoreBlock::fully_masked`]. With [`ScoreBlock::nan_is_fully_masked`], the same applies to a
/// row whose sum of weights is NaN.
///
/// # Safety
/// The conditions of [`softmax_rows`] hold; `out` has the rows and columns of the results.
#[inline(always)]
pub unsafe fn finish_rows<L: MathLanes<Elem = f32>>(
    block: &ScoreBlock<'_>,
    out: *mut f32,
    stride: isize,
    columns: usize,
    last: bool,
) {
    for (index, row) in block.rows.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = out.offset(index as isize * stride);
            let factor = if last { 1.0 / row.sum } else { row.factor };
            if last && (row.sum == 0.0 || block.nan_is_fully_masked && row.sum.is_nan()) {
                (0..columns).for_each(|at| out.add(at).write_unaligned(block.fully_masked));
                continue;
            }
            if factor == 1.0 {
                continue;
            }
            let whole = columns / L::N * L::N;
            let factor = L::splat(factor);
            for at in (0..whole).step_by(L::N) {
                L::load(out.add(at)).mul(factor).store(out.add(at));
            }
            if whole < columns {
                let (to, rest) = (out.add(whole), columns - whole);
                L::load_first(to, rest).mul(factor).store_first(to, rest);
            }
        }
    }
}
