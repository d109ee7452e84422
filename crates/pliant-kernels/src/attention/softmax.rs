//! Rows of scores become weights, in place: scale, cap, bias and mask; the largest; exponentials and their sum.
//!
//! A row is passed over two or three times while it is in the nearest caches. Rows keep their largest score and their sum from
//! one block of keys to the next; what earlier blocks have added is scaled by [`Row::factor`].
//!
//! Recipe: online softmax (Milakov and Gimelshein, 2018): a running maximum and sum, once over where all scores are there.
//! Measured: under "Attention" in `docs/performance.md`, with the part that exponentials take and what weights of 0 gained.

use crate::lanes::MathLanes;
use crate::lanes::reduce::Reduce;
use crate::math;
use crate::vector::wide::Wide;

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// One row of a block of scores.
#[derive(Clone, Copy)]
pub struct Row {
    /// First column that the row sees.
    pub low: usize,
    /// Column after the last that it sees.
    pub high: usize,
    /// Added to the scores: that of column 0, or null.
    pub bias: *const f32,
    /// Whether columns are seen: that of column 0, or null.
    pub mask: *const u8,
    /// The largest score so far.
    pub largest: f32,
    /// The sum of the weights so far.
    pub sum: f32,
    /// What results of earlier blocks are multiplied by.
    pub factor: f32,
}

impl Row {
    /// A row before its first block.
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

/// The rows of a block of scores.
pub struct Rows<'a> {
    /// First score; rows have room for whole vectors up to `width`.
    pub scores: *mut f32,
    /// From row to row.
    pub stride: usize,
    /// Columns of the block, a multiple of the lanes of a vector.
    pub width: usize,
    /// Factor of the products.
    pub scale: f32,
    /// Limit of the scores; 0 for none.
    pub cap: f32,
    /// From column to column of the bias.
    pub bias_step: isize,
    /// Whether minus infinity that is added hides scores that are no numbers too.
    pub bias_hides: bool,
    /// From column to column of the mask.
    pub mask_step: isize,
    /// What the mask makes of scores.
    pub hidden: f32,
    /// Whether the bias is added after that.
    pub mask_first: bool,
    /// What rows get whose weights are all 0.
    pub blind: f32,
    /// Whether rows get it too whose weights are no numbers.
    pub nan_is_blind: bool,
    /// The rows.
    pub rows: &'a mut [Row],
}

/// Makes weights of the scores of all rows; columns that a row does not see get 0.
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. All addressed elements are valid.
#[inline(always)]
pub unsafe fn softmax_rows<L: MathLanes<Elem = f32> + Reduce>(all: &mut Rows<'_>) {
    for index in 0..all.rows.len() {
        let mut row = all.rows[index];
        // SAFETY: the caller's promise.
        unsafe {
            let scores = all.scores.add(index * all.stride);
            one_row::<L>(scores, &mut row, all);
        }
        all.rows[index] = row;
    }
}

/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn one_row<L: MathLanes<Elem = f32> + Reduce>(
    scores: *mut f32,
    row: &mut Row,
    all: &Rows<'_>,
) {
    row.factor = 1.0;
    // SAFETY: the caller's promise; columns stay below the width.
    unsafe {
        if row.low >= row.high {
            fill::<L>(scores, 0, all.width);
            return;
        }
        let (from, to) = (row.low / L::N * L::N, row.high.next_multiple_of(L::N));
        let plain = row.bias.is_null() && row.mask.is_null() && all.cap == 0.0 && all.scale > 0.0;
        let scale = if plain {
            all.scale
        } else {
            change::<L>(scores, (from, row.high), row, all);
            1.0
        };
        hide::<L>(scores, from, 0, row.low - from);
        hide::<L>(scores, to - L::N, L::N - (to - row.high), L::N);
        let block = largest::<L>(scores, from, to) * scale;
        let largest = if block > row.largest { block } else { row.largest };
        // Where all is masked, any number serves; infinity would make NaN of it.
        let base = if largest == f32::NEG_INFINITY { 0.0 } else { largest };
        // Nothing has been added before the first block; its rows are spared a call.
        row.factor = match row.largest {
            f32::NEG_INFINITY => 0.0,
            before => (before - base).exp(),
        };
        let sum = exponentials::<L>(scores, (from, to), scale, base);
        row.sum = row.sum * row.factor + sum;
        row.largest = largest;
        fill::<L>(scores, 0, from);
        fill::<L>(scores, to, all.width);
    }
}

/// Makes minus infinity of the lanes `low..high` of a vector of scores. All is done in a register: vectors that are read from
/// memory wait for narrower stores.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn hide<L: MathLanes<Elem = f32>>(scores: *mut f32, at: usize, low: usize, high: usize) {
    if low >= high {
        return;
    }
    // SAFETY: the caller's promise; the table is as wide as any vector.
    unsafe {
        let (x, lane) = (L::load(scores.add(at)), L::load(NUMBERS.as_ptr()));
        let none = L::splat(f32::NEG_INFINITY);
        let hidden = L::select_lt(lane, L::splat(high as f32), none, x);
        L::select_lt(lane, L::splat(low as f32), x, hidden).store(scores.add(at));
    }
}

/// The numbers of lanes.
static NUMBERS: [f32; WIDEST] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// The least argument whose exponential is a normal number. Weights below become 0: subnormal numbers take
/// machines a hundred cycles each, and what is masked would be one of them on the way to 0.
const LEAST: f32 = -87.0;

/// Zeros in whole vectors.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn fill<L: MathLanes<Elem = f32>>(scores: *mut f32, from: usize, to: usize) {
    for at in (from..to).step_by(L::N) {
        // SAFETY: the caller's promise.
        unsafe { L::zero().store(scores.add(at)) };
    }
}

/// Scale, cap, bias and mask of the columns `from..high`.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn change<L: MathLanes<Elem = f32>>(
    scores: *mut f32,
    (from, high): (usize, usize),
    row: &Row,
    all: &Rows<'_>,
) {
    for at in (from..high).step_by(L::N) {
        let count = L::N.min(high - at);
        // SAFETY: the caller's promise; bias and mask are read from the first column of a vector to the last that the row sees.
        unsafe {
            let mut x = L::load(scores.add(at)).mul(L::splat(all.scale));
            if all.cap != 0.0 {
                let y = x.div(L::splat(all.cap));
                x = math::tanh(&mut Wide::<L>::new(), &y).mul(L::splat(all.cap));
            }
            if all.mask_first {
                x = masked::<L>(x, at, count, row, all);
            }
            if !row.bias.is_null() {
                let bias = match all.bias_step {
                    0 => L::splat(row.bias.read_unaligned()),
                    1 if count == L::N => L::load(row.bias.add(at)),
                    1 => L::load_first(row.bias.add(at), count),
                    step => gather::<L>(row.bias.offset(at as isize * step), step, count),
                };
                x = x.add(bias);
                if all.bias_hides {
                    let none = L::splat(f32::NEG_INFINITY);
                    x = L::select_lt(bias, L::splat(f32::MIN), none, x);
                }
            }
            if !all.mask_first {
                x = masked::<L>(x, at, count, row, all);
            }
            x.store(scores.add(at));
        }
    }
}

/// What the mask makes of `count` scores from column `at` on.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn masked<L: MathLanes<Elem = f32>>(
    x: L,
    at: usize,
    count: usize,
    row: &Row,
    all: &Rows<'_>,
) -> L {
    if row.mask.is_null() {
        return x;
    }
    let mut seen = [0f32; WIDEST];
    // SAFETY: the caller's promise; the mask is read up to the last column that the row sees; the array is as wide as any vector.
    unsafe {
        if all.mask_step == 1 && count == L::N {
            // Of a fixed number, so that it becomes vectors.
            for (i, seen) in seen.iter_mut().enumerate().take(L::N) {
                *seen = f32::from(u8::from(*row.mask.add(at + i) != 0));
            }
        } else {
            for (i, seen) in seen.iter_mut().enumerate().take(count) {
                let byte = *row.mask.offset((at + i) as isize * all.mask_step);
                *seen = f32::from(u8::from(byte != 0));
            }
        }
        L::select_lt(L::load(seen.as_ptr()), L::splat(0.5), L::splat(all.hidden), x)
    }
}

/// Elements that are not neighbours.
///
/// # Safety
/// `count` elements are readable at this step.
#[inline(always)]
unsafe fn gather<L: MathLanes<Elem = f32>>(from: *const f32, step: isize, count: usize) -> L {
    let mut all = [0f32; WIDEST];
    for (i, x) in all.iter_mut().enumerate().take(count) {
        // SAFETY: the caller's promise.
        *x = unsafe { from.offset(i as isize * step).read_unaligned() };
    }
    // SAFETY: the array is as wide as any vector.
    unsafe { L::load(all.as_ptr()) }
}

/// The largest score of whole vectors.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn largest<L: MathLanes<Elem = f32> + Reduce>(
    scores: *const f32,
    from: usize,
    to: usize,
) -> f32 {
    // SAFETY: the caller's promise.
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

/// `exp(scale * x - base)` in place, and the sum of all.
///
/// # Safety
/// As for [`softmax_rows`].
#[inline(always)]
unsafe fn exponentials<L: MathLanes<Elem = f32> + Reduce>(
    scores: *mut f32,
    (from, to): (usize, usize),
    scale: f32,
    base: f32,
) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let (scale, minus) = (L::splat(scale), L::splat(-base));
        let mut ops = Wide::<L>::new();
        let mut sum = L::zero();
        let least = L::splat(LEAST);
        for at in (from..to).step_by(L::N) {
            // Rounded as the largest was, which is then 0 however large it is.
            let x = L::load(scores.add(at)).mul(scale).add(minus);
            // In this order NaN stays.
            let kept = least.max2(x);
            let y = math::exp_within(&mut ops, &kept);
            let y = L::select_lt(x, least, L::zero(), y);
            y.store(scores.add(at));
            sum = sum.add(y);
        }
        sum.sum_lanes()
    }
}

/// Scales rows of results by what the softmax has found: after the `last` block of keys by one over the sums, before a block by
/// the factors. Rows whose sum is 0 see nothing.
///
/// # Safety
/// As for [`softmax_rows`]; `out` has as many rows of these columns.
#[inline(always)]
pub unsafe fn finish_rows<L: MathLanes<Elem = f32>>(
    all: &Rows<'_>,
    out: *mut f32,
    stride: isize,
    columns: usize,
    last: bool,
) {
    for (index, row) in all.rows.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let out = out.offset(index as isize * stride);
            let factor = if last { 1.0 / row.sum } else { row.factor };
            if last && (row.sum == 0.0 || all.nan_is_blind && row.sum.is_nan()) {
                (0..columns).for_each(|at| out.add(at).write_unaligned(all.blind));
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
